"""Codes of 4 bits for MLC: worked out by hand, and that rows go by in parts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest
from in_memory import InMemory, no_tokenizer

from edgebench.models.architecture import Architecture
from edgebench.models.canonical import CanonicalModel
from edgebench.models.rope import default_rope
from edgebench.runners import checked_weights
from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_layout import OWN
from edgebench.runners.mlc_quantize import quantize
from edgebench.runners.mlc_weights import write_weights

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = np.random.default_rng(5)


def test_a_group_is_worked_out_as_by_hand() -> None:
    """Seven steps to the largest; eight codes to a word, the first in its lowest bits."""
    row = [3.5, -3.5, 0.5, -0.5, 1.0, 0.0, 2.9, -1.1] + [0.0] * 24
    words, scales = quantize(np.array([row], np.float32))
    # (weight / 0.5 + 7): 14, 0, 8, 6, 9, 7, 12.8, 4.8
    assert scales.tolist() == [[0.5]]
    assert [hex(word) for word in words[0].tolist()] == ["0x5d79680e"] + ["0x77777777"] * 3


def test_halves_go_to_the_even_code() -> None:
    """As TVM's compiler rounds on a CPU."""
    row = [7.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, -7.0] + [0.0] * 24
    words, _ = quantize(np.array([row], np.float32))
    assert hex(int(words[0, 0])) == "0x466a88e"


def test_a_row_that_ends_within_a_group_is_filled_up() -> None:
    """With codes of 0 that nothing reads; its scale is of the weights that are there."""
    rows = np.zeros((2, 40), np.float32)
    rows[:, 32:] = -14
    words, scales = quantize(rows)
    assert words.shape == (2, 8)
    assert scales.tolist() == [[0.0, 2.0]] * 2
    assert words[0, 4:].tolist() == [0, 0, 0, 0]
    rows[:, 32:] = 14
    assert [hex(word) for word in quantize(rows)[0][0, 4:].tolist()] == ["0xeeeeeeee"] + ["0x0"] * 3


@pytest.mark.parametrize("size", [0.0, 1e-45, 1e-41, 1e-20, 1.0, 3e38])
def test_weights_of_any_size_come_back_within_half_a_step(size: float) -> None:
    """Zeros, too, and what is too small to have a scale; nothing warns."""
    rows = (RANDOM.uniform(-1, 1, (5, 64)) * size).astype(np.float32)
    words, scales = quantize(rows.copy())
    codes = (words[:, :, None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15).reshape(5, 64)
    steps = np.repeat(scales, 32, axis=1)
    found = (codes.astype(np.float32) - 7) * steps
    # Beside float32's smallest step, of which a scale may be off by half.
    assert (np.abs(found - rows) <= 0.501 * steps + 7 * 2.0**-150).all()


def tiny_model(columns: int = 40) -> CanonicalModel:
    """A model of one layer whose weights are arrays."""
    architecture = Architecture(
        family="llama", layers=1, hidden_size=columns, intermediate_size=72, heads=2, kv_heads=1,
        head_size=20, vocabulary_size=50, context_tokens=64, norm_epsilon=1e-5,
        rope=default_rope(1e4, 20),
    )  # fmt: skip
    weights = {
        name: InMemory(RANDOM.normal(size=shape).astype(np.float32))
        for name, shape in architecture.tensor_shapes().items()
    }
    return CanonicalModel(None, architecture, weights, no_tokenizer)  # type: ignore[arg-type]


@pytest.mark.parametrize("quantization", OWN)
def test_rows_go_by_in_parts(
    quantization: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However few are read at once, the same is written."""
    model, written = tiny_model(), []
    for rows_bytes in (1 << 20, 3 * 40 * 4):
        monkeypatch.setattr(checked_weights, "ROWS_BYTES", rows_bytes)
        folder = tmp_path / str(rows_bytes)
        folder.mkdir()
        write_weights(model, OWN[quantization], folder)
        written.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert written[0] == written[1]
    assert set(written[0]) == {"params_shard_0.bin", "tensor-cache.json"}


def test_joined_matrices_stand_one_below_the_other(tmp_path: Path) -> None:
    """Queries, keys and values; the gate before what it lets through."""
    model = tiny_model()
    write_weights(model, OWN["q0f32"], tmp_path)
    index = json.loads((tmp_path / "tensor-cache.json").read_text("utf-8"))
    data = (tmp_path / "params_shard_0.bin").read_bytes()
    for joined, parts in {
        "self_attn.qkv_proj": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "mlp.gate_up_proj": ["mlp.gate_proj", "mlp.up_proj"],
    }.items():
        name = f"model.layers.0.{joined}.weight"
        (entry,) = (each for each in index["records"][0]["records"] if each["name"] == name)
        end = entry["byteOffset"] + entry["nbytes"]
        kept = np.frombuffer(data[entry["byteOffset"] : end], np.float32).reshape(entry["shape"])
        each = [model.weights[f"model.layers.0.{part}.weight"].read() for part in parts]
        assert np.array_equal(kept, np.concatenate(each))


@pytest.mark.parametrize("quantization", OWN)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_weight_that_is_no_number_is_named(
    quantization: str, value: float, tmp_path: Path
) -> None:
    """In matrices and in norms."""
    for name in ("model.layers.0.mlp.up_proj.weight", "model.norm.weight"):
        model = tiny_model()
        values = model.weights[name].read()
        values.reshape(-1)[-1] = value
        damaged = CanonicalModel(
            model.path, model.architecture, {**model.weights, name: InMemory(values)}, no_tokenizer
        )
        folder = tmp_path / name
        folder.mkdir()
        with pytest.raises(RunnerFailure, match=f"{name} holds a weight that is no fin") as failure:
            write_weights(damaged, OWN[quantization], folder)
        assert failure.value.reason == "invalid"


def test_a_weight_beyond_float16_is_named(tmp_path: Path) -> None:
    """It would become infinite without a word."""
    model = tiny_model()
    name = "model.layers.0.self_attn.k_proj.weight"
    values = model.weights[name].read()
    values[3, 3] = -7e4
    damaged = CanonicalModel(
        model.path, model.architecture, {**model.weights, name: InMemory(values)}, no_tokenizer
    )
    words = r"k_proj.weight holds a weight of size 70000, beyond 65504, .* q0f16 .*; choose q0f32"
    with pytest.raises(RunnerFailure, match=words):
        write_weights(damaged, OWN["q0f16"], tmp_path)
