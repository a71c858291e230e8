"""Artifacts for MNN: tiny random models, converted, run by MNN, and compared with transformers."""

from __future__ import annotations

import json
import os
import resource
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mnn_engine import ask
from tiny_models import LLAMA3, VOCABULARY, tiny_folder

from edgebench.runners.base import ConvertRequest, RunnerFailure
from edgebench.runners.mnn_convert import convert

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = [pytest.mark.mnn, pytest.mark.transformers]

# Some of the first tokens, which every model here has.
IDS = [int(token) for token in np.random.default_rng(3).integers(0, VOCABULARY, 40)]

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
TIED = {"tie_word_embeddings": True}
ODD = {"hidden_size": 54, "intermediate_size": 77, "num_attention_heads": 3, "head_dim": 10}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, tied, every bias": ("llama", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "llama, linear rope": ("llama", {"rope": {"rope_type": "linear", "factor": 2.5}}),
    "llama, llama3 rope": ("llama", {"rope": LLAMA3}),
    "llama, yarn rope": ("llama", {"rope": YARN}),
    "llama, one key head": ("llama", {"num_key_value_heads": 1, "head_dim": 24}),
    "llama, odd sizes": ("llama", {**ODD, "num_key_value_heads": 3}),
    "mistral, large heads": ("mistral", {"head_dim": 32, "sliding_window": None}),
    "qwen2, tied": ("qwen2", TIED),
    "qwen2, untied, yarn": ("qwen2", {"rope": YARN}),
    "qwen3": ("qwen3", {}),
    "qwen3, tied, odd sizes": ("qwen3", {**ODD, **TIED, "num_key_value_heads": 1}),
}


def make(source: Path, target: Path, quantization: str, **options: Any) -> dict[str, str]:
    return convert(ConvertRequest(str(source), quantization, str(target), options))


def expected(model: Any) -> NDArray[np.float32]:
    """The logits of all positions by transformers."""
    import torch

    with torch.no_grad():
        logits: NDArray[np.float32] = model(torch.tensor([IDS])).logits[0].numpy()
    return logits


def assert_same(folder: Path, model: Any, **config: Any) -> None:
    """Logits within 1e-4, all at once and one by one; measured are 1e-5 at most."""
    reference = expected(model)
    answers = ask(folder, ids=IDS, config=config)
    for way in ("prefill", "decode"):
        assert answers[way].shape == reference.shape
        assert np.abs(answers[way] - reference).max() < 1e-4, way
        assert np.array_equal(answers[way].argmax(axis=1), reference.argmax(axis=1)), way


@pytest.mark.parametrize(("family", "changes"), CASES.values(), ids=CASES.keys())
def test_fp32_computes_what_transformers_computes(
    family: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing is rounded, embeddings included, and the greedy tokens are the same."""
    model = tiny_folder(tmp_path / "source", family, **changes)
    make(tmp_path / "source", tmp_path / "made", "fp32")
    assert_same(tmp_path / "made", model)


@pytest.mark.parametrize(
    "case", ["llama", "llama, tied, every bias", "qwen2, untied, yarn", "qwen3, tied, odd sizes"]
)
def test_fp16_computes_with_the_weights_rounded_to_float16(case: str, tmp_path: Path) -> None:
    """Matrices and embeddings are rounded once; norms and biases stay in float32."""
    import torch

    family, changes = CASES[case]
    model = tiny_folder(tmp_path / "source", family, **changes)
    make(tmp_path / "source", tmp_path / "made", "fp16")
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.copy_(weight.half().float())
    assert_same(tmp_path / "made", model)


def kept_matrices(folder: Path, scratch: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """The matrices of an artifact, found as MNN's own dump of its graph says, decoded by hand."""
    import _tools

    dump = scratch / "dump.json"
    _tools.mnnconvert(
        ["", "-f", "MNN", "--modelFile", str(folder / "llm.mnn"), "--JsonFile", str(dump)]
    )
    raw = np.fromfile(folder / "llm.mnn.weight", np.uint8)
    for operator in json.loads(dump.read_text("utf-8"))["oplists"]:
        if operator["type"] != "Convolution":
            continue
        main = operator["main"]
        offset, length, scales = main["external"][:3]
        shape = (main["common"]["outputCount"], main["common"]["inputCount"])
        kept = main.get("quanParameter", {"type": 0})
        data = raw[offset : offset + length]
        if kept["type"] != 1:
            kind = np.float32 if kept["type"] == 0 else np.float16
            yield operator["name"], data.view(kind).astype(np.float32).reshape(shape)
            continue
        bits = kept["aMaxOrBits"]
        codes = data[1 + (8 if kept["shapeInt32"] else 4) + 1 + 2**bits :]
        if bits == 4:
            codes = np.stack([codes >> 4, codes & 15], axis=1)
        numbers = raw[offset + length : offset + length + scales].view(np.float16)
        numbers = numbers.astype(np.float32).reshape(-1, 2 if kept["aMin"] else 1)
        values = codes.astype(np.float32).reshape(len(numbers), -1) - 2 ** (bits - 1)
        values = values * numbers[:, -1:] + (numbers[:, :1] if kept["aMin"] else 0)
        yield operator["name"], values.reshape(shape)


def put_in(model: Any, folder: Path, scratch: Path, *, rounded_embedding: bool) -> None:
    """Give transformers' model the matrices that the artifact keeps."""
    import torch

    weights = dict(model.named_parameters())
    count = 0
    with torch.no_grad():
        if rounded_embedding:
            embedding = weights["model.embed_tokens.weight"]
            embedding.copy_(embedding.bfloat16().float())
        for name, matrix in kept_matrices(folder, scratch):
            full = name + ".weight"
            if full == "lm_head.weight" and model.config.tie_word_embeddings:
                full = "model.embed_tokens.weight"
            off = float((weights[full] - torch.from_numpy(matrix)).abs().max())
            assert off < 0.3 * float(weights[full].abs().max()), "these are other weights"
            weights[full].copy_(torch.from_numpy(matrix.copy()))
            count += 1
    assert count == 7 * model.config.num_hidden_layers + 1


@pytest.mark.parametrize("changes", [TIED, {}], ids=["tied", "untied"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["asymmetric", "symmetric"])
@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_integers_are_decoded_as_by_hand(
    quantization: str, changes: dict[str, Any], tmp_path: Path, *, symmetric: bool
) -> None:
    """MNN computes with exactly the numbers meant: order of halves, scales, zeros, embeddings."""
    model = tiny_folder(tmp_path / "source", "llama", **changes)
    options = {"block_size": 32, "symmetric": symmetric}
    make(tmp_path / "source", tmp_path / "made", quantization, **options)
    put_in(model, tmp_path / "made", tmp_path, rounded_embedding=not changes)
    assert_same(tmp_path / "made", model)


@pytest.mark.parametrize(
    ("quantization", "output", "changes"),
    [("int4", "int8", TIED), ("int4", "fp32", TIED), ("int8", "fp16", {}), ("fp16", "int8", {})],
)
def test_the_output_layer_has_a_precision_of_its_own(
    quantization: str, output: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Tied embeddings share it; others are kept in 16 bits."""
    import torch

    model = tiny_folder(tmp_path / "source", "qwen3", **changes)
    options = {"block_size": 32, "output_quantization": output}
    make(tmp_path / "source", tmp_path / "made", quantization, **options)
    integers = quantization.startswith("int")
    if not changes and not integers:
        with torch.no_grad():
            embedding = model.model.embed_tokens.weight
            embedding.copy_(embedding.half().float())
    rounded = not changes and integers
    put_in(model, tmp_path / "made", tmp_path, rounded_embedding=rounded)
    assert_same(tmp_path / "made", model)
    facts = json.loads((tmp_path / "made" / "edgebench.json").read_text("utf-8"))
    assert (facts["weights"], facts["output"]) == (quantization, output)


def test_whole_rows_can_share_a_scale(tmp_path: Path) -> None:
    """A block size of 0, as MNN's own exporter has it, and no bias anywhere."""
    model = tiny_folder(tmp_path / "source", "llama")
    make(tmp_path / "source", tmp_path / "made", "int8", block_size=0)
    put_in(model, tmp_path / "made", tmp_path, rounded_embedding=True)
    assert_same(tmp_path / "made", model)


@pytest.mark.parametrize("changes", [TIED, {}], ids=["tied", "untied"])
def test_a_large_vocabulary_is_decoded_as_a_small_one(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """Beyond 65535 tokens the lengths in front of integers are wider."""
    model = tiny_folder(tmp_path / "source", "llama", vocab_size=65_600, **changes)
    make(tmp_path / "source", tmp_path / "made", "int4", block_size=32)
    put_in(model, tmp_path / "made", tmp_path, rounded_embedding=not changes)
    assert_same(tmp_path / "made", model)


def test_threads_change_nothing_with_the_smallest_blocks(tmp_path: Path) -> None:
    """Blocks of 8 are the least that MNN shares among threads rightly in its low-memory mode."""
    tiny_folder(tmp_path / "source", "llama", hidden_size=40, num_attention_heads=5, head_dim=8,
                num_key_value_heads=1, intermediate_size=72)  # fmt: skip
    make(tmp_path / "source", tmp_path / "made", "int4", block_size=8)
    one = ask(tmp_path / "made", ids=IDS, config={"memory": "low", "thread_num": 1})
    four = ask(tmp_path / "made", ids=IDS, config={"memory": "low", "thread_num": 4})
    assert np.allclose(one["prefill"], four["prefill"], atol=1e-4)


def test_the_folder_holds_what_mnn_reads_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No draft is left, nothing elsewhere, and the facts are those of the model."""
    model = tiny_folder(tmp_path / "source", "qwen2")
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    made = make(tmp_path / "source", tmp_path / "made", "int4", block_size=32)
    files = {"config.json", "llm_config.json", "llm.mnn", "llm.mnn.weight", "tokenizer.mtok"}
    found = {path.name for path in (tmp_path / "made").iterdir()}
    assert found == files | {"embeddings_bf16.bin", "edgebench.json"}
    assert not list((tmp_path / "cwd").iterdir())
    folders = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert folders == {"source", "cwd", "made"}
    facts = json.loads((tmp_path / "made" / "edgebench.json").read_text("utf-8"))
    assert facts["architecture"] == "qwen2"
    assert facts["vocabulary_size"] == VOCABULARY
    assert facts["parameters"] == sum(weight.numel() for weight in model.parameters())
    assert facts["trained_context_tokens"] == 256
    assert facts["block_size"] == 32
    assert facts["symmetric"] is False
    assert facts["end_ids"] == [1]
    assert facts["embedding"] == "bfloat16"
    assert made == {
        "tool": "edgebench's graph, MNN 3.6.1 mnnconvert",
        "note": "embeddings are kept as bfloat16",
    }


def test_blocks_that_do_not_divide_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    """The message has the sizes and what would fit."""
    tiny_folder(tmp_path / "source", "llama")
    words = "block_size 64 does not divide intermediate_size 96; these fit: 16, 32"
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(tmp_path / "source", tmp_path / "made", "int4")
    assert failure.value.reason == "invalid"
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("quantization", "options", "words"),
    [
        ("int3", {}, "quantization is int3; edgebench makes fp32, fp16, int8, int4 for MNN"),
        ("int4", {"output_quantization": "int2"}, "output_quantization is int2; edgebench makes"),
    ],
)
def test_a_precision_that_is_not_made_is_named(
    quantization: str, options: dict[str, Any], words: str, tmp_path: Path
) -> None:
    """With those that are."""
    with pytest.raises(RunnerFailure, match=words) as failure:
        make(tmp_path, tmp_path / "made", quantization, **options)
    assert failure.value.reason == "unsupported"


def test_another_architecture_is_refused_by_name_with_the_way_out(tmp_path: Path) -> None:
    """MNN's own exporter, from the user's checkout."""
    tiny_folder(tmp_path / "source", "llama")
    path = tmp_path / "source" / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), "model_type": "mamba"}))
    with pytest.raises(RunnerFailure, match=r"mamba.* name your checkout of MNN as mnn_repo") as it:
        make(tmp_path / "source", tmp_path / "made", "fp16")
    assert it.value.reason == "unsupported"


def test_weights_that_are_cut_off_are_a_clear_failure(tmp_path: Path) -> None:
    """What the reader of models says of it, as the fault of the source."""
    tiny_folder(tmp_path / "source", "llama")
    path = tmp_path / "source" / "model.safetensors"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(RunnerFailure, match=r"model\.safetensors") as failure:
        make(tmp_path / "source", tmp_path / "made", "fp16")
    assert failure.value.reason == "invalid"


def test_a_full_disk_is_a_clear_failure(tmp_path: Path) -> None:
    """The system's own words, and where; here a limit on a file's size stands in for the disk."""
    tiny_folder(tmp_path / "source", "llama")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(RunnerFailure, match=f"failed in {tmp_path}/made: File too large"):
            make(tmp_path / "source", tmp_path / "made", "fp32")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Silent:
    """A converter that makes nothing and says that all is well, as MNN's does when it fails."""

    @staticmethod
    def mnnconvert(arguments: list[str]) -> bool:
        return True


def test_a_failure_of_mnns_converter_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports success whatever happens; only its file tells."""
    tiny_folder(tmp_path / "source", "llama")
    monkeypatch.setitem(__import__("sys").modules, "_tools", Silent())
    with pytest.raises(RunnerFailure, match=r"MNN 3.6.1's converter made no llm.mnn"):
        make(tmp_path / "source", tmp_path / "made", "fp16")
