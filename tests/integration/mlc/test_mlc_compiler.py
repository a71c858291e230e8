"""How MLC's own tools are called, shown with a stand-in that has their command lines.

These tests show the calls, not MLC: its package is not on PyPI. The stand-in refuses every option
that MLC's tools lack, and leaves the files that they leave, with what it was given.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mlc_llm_call import VERSION, call

if TYPE_CHECKING:
    from pathlib import Path

MAKE = """
from edgebench.runners.mlc_compiler import make
request = ConvertRequest(given["source"], given["quantization"], given["target"], given["options"])
answer = make(request)
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder in Hugging Face's layout, as far as the stand-in looks."""
    folder = tmp_path / "a source"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}', encoding="utf-8")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "tokenizer.json").write_text('{"a": "tokenizer"}', encoding="utf-8")
    return folder


def make(source: Path, *, said: str = "", path: Path | None = None, **options: Any) -> Any:
    """What `make` gives; `said` makes one of the tools fail."""
    where = {} if path is None else {"path": str(path)}
    return call(
        MAKE,
        more={"MLC_LLM_STAND_IN": said},
        source=str(source),
        quantization="q4f16_1",
        target=str(target_of(source)),
        options=options,
        **where,
    ).value


def target_of(source: Path) -> Path:
    return source.with_name("a target")


def given(path: Path) -> dict[str, Any]:
    """What the tool that wrote a file was given."""
    told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return told.get("given", told)


def test_the_three_tools_make_a_folder(source: Path) -> None:
    """Weights, configuration, tokenizer and library; the record names MLC's version."""
    made = make(source, context_window=640, prefill_chunk_size=96)
    assert made == {"tool": f"mlc_llm {VERSION}"}
    target = target_of(source)
    assert {path.name for path in target.iterdir()} == {
        "lib.so", "mlc-chat-config.json", "params_shard_0.bin", "tensor-cache.json",
        "tokenizer.json",
    }  # fmt: skip
    assert (target / "params_shard_0.bin").read_bytes() == b"weights"
    weights = given(target / "tensor-cache.json")
    assert (weights["quantization"], weights["device"]) == ("q4f16_1", "cpu")
    config = given(target / "mlc-chat-config.json")
    assert (config["quantization"], config["conv_template"]) == ("q4f16_1", "LM")
    assert (config["context_window_size"], config["prefill_chunk_size"]) == (640, 96)
    library = given(target / "lib.so")
    assert (library["model"], library["device"]) == (str(target), "cpu")
    assert library["output"] == str(target / "lib.so")


def test_what_is_not_asked_for_is_the_models_or_the_options_default(source: Path) -> None:
    """The context is the model's own; the chunk is the one that the option's default says."""
    make(source)
    config = given(target_of(source) / "mlc-chat-config.json")
    assert (config["context_window_size"], config["prefill_chunk_size"]) == (None, 512)


def test_a_library_for_another_device_is_asked_for_by_option(source: Path) -> None:
    """The weights are quantised on the CPU all the same, so that they are the same weights."""
    make(source, compile_for="cuda")
    assert given(target_of(source) / "lib.so")["device"] == "cuda"
    assert given(target_of(source) / "tensor-cache.json")["device"] == "cpu"


def test_the_source_is_left_as_it_was(source: Path) -> None:
    """MLC writes an index beside the weights; and nothing of the work is left."""
    before = {path.name for path in source.iterdir()}
    make(source)
    assert {path.name for path in source.iterdir()} == before
    assert not list(source.parent.glob("*.work"))


@pytest.mark.parametrize(
    ("said", "reason", "words"),
    [
        ("convert_weight:raise SystemExit('Unknown model type: mamba')", "framework",
         ("mlc_llm convert_weight ended with status 1; its last words: "
         "running convert_weight | Unknown model type: mamba")),
        ("compile:import a_package_that_is_not_there", "unavailable",
         ("mlc_llm compile needs the package a_package_that_is_not_there, which "
         f"{sys.executable} lacks; install it")),
        ("gen_config:raise OSError(28, 'No space left on device')", "framework",
         "mlc_llm gen_config ran out of disk space; free some, and try again"),
        ("compile:import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "out_of_memory",
         ("mlc_llm compile was killed by SIGKILL (as the system does where memory is short); "
         "its last words: running compile")),
        ("compile:import os, signal; os.kill(os.getpid(), signal.SIGABRT)", "framework",
         "mlc_llm compile was killed by SIGABRT; its last words: running compile"),
        ("compile:import os; os._exit(0)", "framework",
         "mlc_llm reported success, but made no lib.so"),
        ("convert_weight:import os; os.makedirs(parsed.output); os._exit(0)", "framework",
         "mlc_llm reported success, but made no tensor-cache.json"),
    ],
)  # fmt: skip
def test_a_failed_tool_is_a_clear_failure(said: str, reason: str, words: str, source: Path) -> None:
    """Which tool, and its last words or what became of it."""
    assert make(source, said=said) == {"failed": words, "reason": reason}
    assert not list(source.parent.glob("*.work"))


def test_without_mlc_llm_the_command_is_told(source: Path, tmp_path: Path) -> None:
    """Before anything is written."""
    failed = make(source, path=tmp_path)
    assert failed["reason"] == "unavailable"
    assert "mlc_llm is not installed; install MLC's own into an environment" in failed["failed"]
    assert "python: pip install --pre" in failed["failed"]
    assert not target_of(source).exists()
