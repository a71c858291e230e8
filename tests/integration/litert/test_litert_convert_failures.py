"""What a conversion for LiteRT-LM refuses, and how it fails."""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiny_models import tiny_folder

from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.litert_convert import convert

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]

SMALL = {"cache_length": 64, "prefill_lengths": "8,16"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small random Llama's folder."""
    tiny_folder(tmp_path / "source", "llama")
    return tmp_path / "source"


def make(source: Path, quantization: str = "fp32", **options: Any) -> dict[str, str]:
    target = source.parent / "made.litertlm"
    request = ConvertRequest(str(source), quantization, str(target), {**SMALL, **options})
    return convert(request)


def change(source: Path, **changes: Any) -> None:
    """Change the model's configuration."""
    path = source / "config.json"
    config = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**config, **changes}), encoding="utf-8")


@pytest.mark.parametrize(
    ("quantization", "options", "reason", "words"),
    [
        ("int3", {}, "unsupported", "quantization is int3; edgebench makes fp32, fp16, int8, i"),
        ("int4", {"output_quantization": "int2"}, "unsupported", "output_quantization is int2; ed"),
        ("int8_weight_only", {"output_quantization": "int4"}, "unsupported",
         "of which blocks can't be widened as int8_weight_only does it; leave it out"),
        ("fp32", {"stop_tokens": "all"}, "unsupported", "stop_tokens is all; edgebench makes res"),
        ("int4", {"block_size": 64}, "invalid",
         "block_size 64 does not divide intermediate_size 96; these fit: 32"),
        ("int4", {"block_size": 48}, "invalid", "block_size 48 is no multiple of 32, without whic"),
        ("fp32", {"output_quantization": "int4", "block_size": 128}, "invalid",
         "block_size 128 does not divide hidden_size 64; these fit: 32, 64"),
        ("fp32", {"prefill_lengths": "8,x"}, "invalid", "whole numbers from 2 to cache_length 64"),
        ("fp32", {"prefill_lengths": "8,,16"}, "invalid", "with commas between, unlike ''"),
        ("fp32", {"prefill_lengths": "1,8"}, "invalid", "from 2 to cache_length 64, .* unlike '1'"),
        ("fp32", {"prefill_lengths": "8,128"}, "invalid", "to cache_length 64, .* unlike '128'"),
        ("fp32", {"prefill_lengths": "8,8"}, "invalid", "prefill_lengths 8,8 names a length twice"),
        ("fp32", {"prefill_lengths": "8,12"}, "invalid",
         "the prefill length 12 is no multiple of the shortest prefill length 8"),
        ("fp32", {"cache_length": 60}, "invalid",
         "cache_length 60 is no multiple of the shortest prefill length 8"),
    ],
)  # fmt: skip
def test_what_is_not_made_is_named_before_anything_is_written(
    quantization: str, options: dict[str, Any], reason: str, words: str, source: Path
) -> None:
    """With what would do."""
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source, quantization, **options)
    assert failure.value.reason == reason
    assert not list(source.parent.glob("*made*"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "mamba"}, "mamba"),
        ({"logit_scale": 0.5}, "logit_scale = 0.5 is not understood"),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"model_type": "mistral", "sliding_window": 32}, "sliding_window = 32"),
    ],
)
def test_what_is_not_understood_is_refused_by_name_with_the_way_out(
    changes: dict[str, Any], words: str, source: Path
) -> None:
    """Which is litert-torch, in an environment of the user's."""
    change(source, **changes)
    with pytest.raises(RunnerFailure, match=rf"{words}.* as litert_torch_python") as failure:
        make(source)
    assert failure.value.reason == "unsupported"


def test_a_model_without_ends_can_not_stop_at_them(source: Path) -> None:
    """The engine fails without anything to stop at."""
    change(source, eos_token_id=None)
    (source / "generation_config.json").unlink(missing_ok=True)
    with pytest.raises(RunnerFailure, match="names no token that ends a text; choose reserved"):
        make(source, stop_tokens="model")


def test_weights_that_are_cut_off_are_a_clear_failure(source: Path) -> None:
    """What the reader of models says of it, as the fault of the source."""
    path = source / "model.safetensors"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(RunnerFailure, match=r"model\.safetensors") as failure:
        make(source)
    assert failure.value.reason == "invalid"


@pytest.mark.parametrize("quantization", ["fp32", "fp16", "int8", "int4"])
def test_a_weight_that_is_no_number_is_named(quantization: str, tmp_path: Path) -> None:
    """Whatever it would be kept as; and nothing half-made stays beside the target."""
    put(tmp_path, "model.layers.1.mlp.up_proj.weight", float("nan"))
    words = "model.layers.1.mlp.up_proj.weight holds a weight that is no finite number"
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(tmp_path / "source", quantization)
    assert failure.value.reason == "invalid"
    assert not list(tmp_path.glob("*made*"))


def test_a_norm_that_is_no_number_is_named(tmp_path: Path) -> None:
    """Vectors are looked at, too."""
    put(tmp_path, "model.norm.weight", float("inf"))
    with pytest.raises(RunnerFailure, match=r"model\.norm\.weight holds a weight that is"):
        make(tmp_path / "source")


@pytest.mark.parametrize(
    ("quantization", "size", "limit"), [("fp16", 7e4, "65504"), ("int4", 5e5, "458528")]
)
def test_a_weight_beyond_what_can_be_kept_is_named(
    quantization: str, size: float, limit: str, tmp_path: Path
) -> None:
    """It would become infinite without a word."""
    put(tmp_path, "model.layers.0.self_attn.o_proj.weight", size)
    words = rf"o_proj\.weight holds a weight of size {size:.6g}, beyond {limit}, the largest that "
    with pytest.raises(RunnerFailure, match=rf"{words}{quantization} can keep .*; choose fp32"):
        make(tmp_path / "source", quantization)


def put(place: Path, name: str, value: float) -> None:
    """A small random Llama one of whose weights is something else."""
    import torch

    model = tiny_folder(place / "source", "llama")
    with torch.no_grad():
        model.get_parameter(name).view(-1)[-1] = value
    model.save_pretrained(place / "source")


def test_a_full_disk_is_a_clear_failure(source: Path) -> None:
    """The system's own words, and where; here a limit on a file's size stands in for the disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(RunnerFailure, match=r"failed in .*made.litertlm: File too large"):
            make(source)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    # What is half made is only what the caller removes: the target.
    assert {path.name for path in source.parent.glob("*made*")} <= {"made.litertlm"}


@pytest.mark.parametrize("package", ["ai_edge_litert.schema_py_generated", "litert_lm_builder"])
def test_a_missing_package_is_named_with_what_to_install(
    package: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, as for every framework."""
    monkeypatch.setitem(sys.modules, package, None)
    words = r"can't be imported .*; install it with: pip install 'edgebench\[mediapipe\]'"
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(source, "fp32")
    assert failure.value.reason == "unavailable"


def test_blocks_of_tiny_weights_keep_their_scales(tmp_path: Path) -> None:
    """Below float16's normal numbers, where a scale has few digits, and at zero."""
    import torch
    from litert_engine import ask, kept_matrices

    model = tiny_folder(tmp_path / "source", "llama")
    with torch.no_grad():
        rows = model.model.layers[0].mlp.down_proj.weight
        rows[:, :32] *= 1e-4
        rows[:, 32:64] = 0
    model.save_pretrained(tmp_path / "source")
    original = rows.detach().numpy()
    make(tmp_path / "source", "int4")
    kept = kept_matrices(tmp_path / "made.litertlm")["model.layers.0.mlp.down_proj.weight"]

    def lost(part: slice) -> float:
        """The root mean square of what rounding changes, as a share."""
        off = kept[:, part] - original[:, part]
        return float(np.sqrt(np.square(off).mean() / np.square(original[:, part]).mean()))

    # As those of common size: a few hundredths.
    assert lost(slice(32)) < 1.1 * lost(slice(64, 96)) < 0.12
    assert not kept[:, 32:64].any()
    ids = list(range(3, 20))
    assert np.isfinite(ask(tmp_path / "made.litertlm", ids=ids, steps=[8])["logits"]).all()
