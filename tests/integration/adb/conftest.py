"""A phone that tests play, and scenarios for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

import pytest
from phone import SERIAL, PlayedPhone, built_tool

from edgebench.harness.execute import execute
from edgebench.harness.observer import Silent
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.harness.results.run import Run

TOOLS = {"llama.cpp": "llama-bench", "mnn": "llm_bench", "mediapipe": "litert_lm_main"}


class Notes(Silent):
    """Keeps what a user is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


class Runs(Protocol):
    """Runs a scenario on the phone."""

    notes: list[str]

    def __call__(self, **changes: object) -> Run:
        """The run, read back from its folder; `changes` replace keys of the scenario."""


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedPhone:
    """A phone that is attached."""
    made = PlayedPhone(tmp_path / "phone")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def scenario(phone: PlayedPhone, tmp_path: Path) -> dict[str, object]:
    """One workload on llama.cpp, with the tools of all runners built."""
    for name in TOOLS.values():
        built_tool(tmp_path / "tools", name)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF" + bytes(5000))
    return {
        "schema_version": 1,
        "name": "phone",
        "device": {
            "adb": SERIAL,
            "folder": str(phone.folder),
            "tools": {runner: f"tools/{name}" for runner, name in TOOLS.items()},
        },
        "model": {"name": "tiny", "source": "path:tiny.gguf"},
        "variants": [{"runner": "llama.cpp", "quantization": "source", "threads": 4}],
        "workloads": [{"name": "short", "prompt_tokens": 16, "generate_tokens": 8}],
        "measure": {
            "warmup": {"min": 0, "max": 0},
            "repetitions": {"min": 1, "max": 1},
            "timeout_s": 20,
        },
    }


@pytest.fixture
def run(scenario: Mapping[str, object], tmp_path: Path) -> Runs:
    """Runs the scenario in this process."""

    class _Runs:
        def __init__(self) -> None:
            self.notes: list[str] = []
            self._count = 0

        def __call__(self, **changes: object) -> Run:
            self._count += 1
            text = json.dumps({**scenario, **changes})
            parsed = parse_scenario(text, filename="s.yaml", base=tmp_path)
            folder = tmp_path / f"run-{self._count}"
            store = ModelStore(tmp_path / "store")
            observer = Notes()
            try:
                execute(parsed, Settings(folder, tmp_path, store=store), observer)
            finally:
                self.notes = observer.notes
            return read_run(folder)

    return _Runs()
