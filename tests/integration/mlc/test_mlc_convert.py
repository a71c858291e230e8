"""Folders of MLC's: tiny random models, converted and run, compared with transformers."""

from __future__ import annotations

import copy
import hashlib
import json
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mlc_library import Driver, kept_weights, put_in
from tiny_models import LLAMA3, VOCABULARY, tiny_folder

from edgebench.runners.base import ConvertRequest
from edgebench.runners.mlc_convert import convert
from edgebench.runners.mlc_quantize import quantize

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

# Some of the first tokens, which every model here has.
IDS = [int(token) for token in np.random.default_rng(3).integers(0, VOCABULARY, 90)]

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
LINEAR = {"rope_type": "linear", "factor": 2.5, "rope_theta": 12345.678}
TIED = {"tie_word_embeddings": True}
ODD = {"hidden_size": 54, "intermediate_size": 77, "num_attention_heads": 3, "head_dim": 10}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "mistral, odd sizes, llama3 rope": (
        "mistral",
        {**ODD, "num_key_value_heads": 3, "vocab_size": 323, "rope": LLAMA3},
    ),
    "qwen2, tied, linear rope": ("qwen2", {**TIED, "rope": LINEAR}),
    "qwen3, one key head": ("qwen3", {"num_key_value_heads": 1}),
}


@dataclass(frozen=True)
class Grouped:
    """A Llama with all that one can have, and its folder with codes of 4 bits.

    Rows end within a group; the output layer is one of its own.
    """

    model: Any
    folder: Path


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Grouped:
    """One that nobody changes."""
    folder = tmp_path_factory.mktemp("grouped")
    more = {"num_key_value_heads": 1, "attention_bias": True, "mlp_bias": True, "rope": YARN}
    model = tiny_folder(folder / "source", "llama", **ODD, **more)
    make(folder / "source", folder / "made", "q4f32_1", context_window=100)
    return Grouped(model, folder / "made")


def make(source: Path, target: Path, quantization: str, **options: Any) -> dict[str, str]:
    options = {"compiler": "edgebench", **options}
    return convert(ConvertRequest(str(source), quantization, str(target), options))


def expected(model: Any) -> NDArray[np.float32]:
    """The logits of all positions by transformers."""
    import torch

    with torch.no_grad():
        logits: NDArray[np.float32] = model(torch.tensor([IDS])).logits[0].numpy()
    return logits


def assert_same(folder: Path, model: Any) -> None:
    """Logits within 1e-4, after prefills and decoded alone; measured are 2e-5."""
    driver, reference = Driver(folder), expected(model)
    # Alone, at once and then alone, and in parts that fill no page or several.
    for steps in ([], [80], [5, 16, 48]):
        logits = driver.logits(IDS, steps)
        assert np.abs(logits - reference[-len(logits) :]).max() < 1e-4, steps
        assert len(logits) == len(IDS) - sum(steps) + bool(steps)
    verified = driver.verified(IDS, [33, 1, 56])
    assert np.abs(verified - reference).max() < 1e-4
    assert np.array_equal(verified.argmax(axis=1), reference.argmax(axis=1))


@pytest.mark.parametrize(("family", "changes"), CASES.values(), ids=CASES.keys())
def test_q0f32_computes_what_transformers_computes(
    family: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing is rounded, and the greedy tokens are the same; every kind of rotary scaling."""
    model = tiny_folder(tmp_path / "source", family, **changes)
    made = make(tmp_path / "source", tmp_path / "made", "q0f32")
    assert made == {
        "tool": f"edgebench's model for TVM {version('apache-tvm')}",
        "note": "TVM compiled edgebench's model with edgebench's schedules: no figure of MLC's",
    }
    assert_same(tmp_path / "made", model)


def test_q4f32_1_computes_in_float32_with_the_weights_kept(grouped: Grouped) -> None:
    """With the order of codes, a scale or a row mistaken, logits would be off by their own size."""
    model = copy.deepcopy(grouped.model)
    put_in(model, grouped.folder)
    for name, weight in model.named_parameters():
        kept, original = (each.detach().numpy() for each in
                          (weight, grouped.model.get_parameter(name)))  # fmt: skip
        if kept.ndim > 1:
            assert 0 < np.abs(kept - original).max() <= 0.501 * np.abs(original).max() / 7, name
        else:
            assert np.array_equal(kept, original), name
    assert_same(grouped.folder, model)


def test_q0f16_keeps_and_computes_in_float16(tmp_path: Path) -> None:
    """All weights are rounded once; products are summed in float32, so that little more is lost."""
    import torch

    model = tiny_folder(tmp_path / "source", "qwen3", **TIED)
    make(tmp_path / "source", tmp_path / "made", "q0f16")
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.half().float())
    kept = kept_weights(tmp_path / "made")
    embedding = model.get_input_embeddings().weight.detach().numpy()
    assert np.array_equal(kept["model.embed_tokens.weight"], embedding)
    driver, reference = Driver(tmp_path / "made"), expected(model)
    assert {each["dtype"] for each in driver.metadata["params"]} == {"float16"}
    for logits in (driver.logits(IDS, [60]), driver.verified(IDS, [90])):
        off = logits - reference[-len(logits) :]
        # A float16 is off by up to a 2048th.
        assert np.sqrt(np.square(off).mean()) < reference.std() / 500
        assert off.any()


def test_the_quantiser_is_mlcs_formula_bit_for_bit() -> None:
    """As TVM compiles it from MLC's expressions: ties, zeros, the smallest numbers and the largest.

    The formula is written down again from ``GroupQuantize._quantize``.
    """
    import tvm
    from tvm import te, tirx

    rows, columns, groups = 70, 72, 3
    weight = te.placeholder((rows, columns), "float32", "weight")
    seven, zero = tirx.const(7, "float32"), tirx.const(0, "float32")
    near = te.reduce_axis((0, 32), "near")
    largest = te.compute(
        (rows, groups),
        lambda i, g: te.max(
            tirx.if_then_else(
                g * 32 + near < columns,
                te.abs(weight[i, g * 32 + near]),
                te.min_value("float32"),
            ),
            axis=near,
        ),
    )
    scale = te.compute((rows, groups), lambda i, g: largest[i, g] / seven)
    code = te.compute(
        (rows, columns),
        lambda i, j: tirx.min(
            tirx.max(tirx.round(weight[i, j] / scale[i, j // 32] + seven), zero), seven * 2
        ).astype("uint32"),
    )
    place = te.reduce_axis((0, 8), "place")
    word = te.compute(
        (rows, groups * 4),
        lambda i, j: tirx.sum(
            tirx.if_then_else(
                j * 8 + place < columns, code[i, j * 8 + place] << (place * 4),
                tirx.const(0, "uint32"),
            ),
            axis=place,
        ),
    )  # fmt: skip
    function = te.create_prim_func([weight, word, scale]).with_attr("global_symbol", "main")
    compiled = tvm.compile(tvm.IRModule({"main": function}), target="llvm")

    values = np.random.default_rng(2).normal(size=(rows, columns)).astype(np.float32)
    values[0] = 0
    values[1] = 1e-45
    values[2, :8] = [7, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -7]  # ties
    values[3] *= 1e38
    values[4] *= 1e-41
    theirs = [tvm.runtime.tensor(np.zeros((rows, groups * 4), np.uint32)),
              tvm.runtime.tensor(np.zeros((rows, groups), np.float32))]  # fmt: skip
    compiled["main"](tvm.runtime.tensor(values), *theirs)
    words, scales = quantize(values.copy())
    assert np.array_equal(words, theirs[0].numpy())
    assert np.array_equal(scales, theirs[1].numpy())


def test_the_folder_says_the_same_of_itself_everywhere(grouped: Grouped) -> None:
    """Library, cache and configuration agree, by MLC's names; the library says who built it."""
    driver, folder = Driver(grouped.folder), grouped.folder
    index = json.loads((folder / "tensor-cache.json").read_text("utf-8"))
    config = json.loads((folder / "mlc-chat-config.json").read_text("utf-8"))
    kept = {
        tensor["name"]: (tensor["shape"], tensor["dtype"])
        for record in index["records"]
        for tensor in record["records"]
    }
    stated = {each["name"]: (each["shape"], each["dtype"]) for each in driver.metadata["params"]}
    assert stated == kept
    for name, value in {
        "model_type": "llama",
        "quantization": "q4f32_1",
        "context_window_size": 100,
        "prefill_chunk_size": 100,
        "sliding_window_size": -1,
        "tensor_parallel_shards": 1,
    }.items():
        assert driver.metadata[name] == config[name] == value
    assert config["vocab_size"] == config["model_config"]["vocab_size"] == VOCABULARY
    assert (config["bos_token_id"], config["eos_token_id"]) == (None, 1)
    assert set(config["tokenizer_files"]) <= {path.name for path in folder.iterdir()}
    digest = hashlib.sha256((folder / "lib.so").read_bytes()).hexdigest()
    assert config["edgebench"] == {"library_sha256": digest}
    assert driver.metadata["edgebench"]["tvm"] == version("apache-tvm")
    assert driver.metadata["edgebench"]["target"]["kind"] == "llvm"


def test_layers_share_their_code_and_what_a_reader_must_know_is_noted(
    tiny: Any, tmp_path: Path
) -> None:
    """Twelve layers make hardly a larger library than two; more tokens than trained are told."""
    tiny_folder(tmp_path / "source", "llama", num_hidden_layers=12)
    made = make(tmp_path / "source", tmp_path / "made", "q0f32", context_window=1000)
    assert made["note"].endswith(
        "no figure of MLC's; compiled for 1000 tokens, where the model was trained for 256"
    )
    sizes = [(folder / "lib.so").stat().st_size for folder in (tiny.artifact, tmp_path / "made")]
    assert sizes[1] < 1.25 * sizes[0]
