"""What several kinds of tests share: scenarios for the fake runner, and a store of their own."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Protocol

import pytest
from hypothesis import settings

from edgebench.harness.execute import execute, new_run_folder
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.results.run import Run


# A shell that starts the tests in the background has them ignore Ctrl-C, and with them every
# process that a test means to interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes on a busy machine is no property of the code.
settings.register_profile("edgebench", deadline=None)
settings.load_profile("edgebench")


@pytest.fixture(autouse=True)
def own_cache(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test touches the user's store; those with the real model share one, for its size."""
    if request.node.get_closest_marker("llama_cpp") is None:
        monkeypatch.setenv("EDGEBENCH_CACHE", str(tmp_path / "cache"))
    config = tmp_path / "config.toml"
    config.touch()
    monkeypatch.setenv("EDGEBENCH_CONFIG", str(config))


class MakeScenario(Protocol):
    """Writes a scenario for the fake runner."""

    def __call__(
        self, *variants: str, workloads: str = ..., measure: str = ..., name: str = ...
    ) -> Path: ...


WORKLOADS = "[{name: short, prompt: hello, generate_tokens: 4}]"
MEASURE = "{warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}, timeout_s: 20}"


@pytest.fixture
def make_scenario(tmp_path: Path) -> MakeScenario:
    """A scenario file beside a small model; each variant is YAML without the runner."""

    def make(
        *variants: str,
        workloads: str = WORKLOADS,
        measure: str = MEASURE,
        name: str = "fake",
    ) -> Path:
        (tmp_path / "model.bin").write_bytes(b"weights")
        listed = "".join(f"  - {{runner: fake{', ' * bool(v)}{v}}}\n" for v in variants or [""])
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            f"schema_version: 1\nname: {name}\n"
            "model: {name: tiny, source: 'path:model.bin'}\n"
            f"variants:\n{listed}workloads: {workloads}\nmeasure: {measure}\n",
            encoding="utf-8",
        )
        return path

    return make


class RunFake(Protocol):
    """Runs a scenario file in this process."""

    def __call__(self, path: Path, *, folder: Path | None = ...) -> Run: ...


@pytest.fixture
def run_fake(tmp_path: Path) -> RunFake:
    """Execute a scenario and read back what it left."""

    def run(path: Path, *, folder: Path | None = None) -> Run:
        scenario = load_scenario(path, runners=runner_classes())
        target = folder or new_run_folder(tmp_path / "results", scenario.name)
        execute(
            scenario,
            Settings(folder=target, base=path.parent, store=ModelStore(tmp_path / "store")),
        )
        return read_run(target)

    return run
