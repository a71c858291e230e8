"""Integers, halves and three-part floats for MNN, decoded by hand; and which blocks fit."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.models.architecture import Architecture, Rope
from edgebench.runners import checked_weights
from edgebench.runners.base import RunnerFailure
from edgebench.runners.mnn_quantize import Blocks, in_bfloat16, in_three_parts, quantize
from edgebench.runners.mnn_shapes import check_shapes
from edgebench.runners.mnn_weights import Format, WeightFile

if TYPE_CHECKING:
    from pathlib import Path

RANDOM = np.random.default_rng(5)


def decoded(codes: Any, parameters: Any, bits: int, size: int, *, symmetric: bool) -> Any:
    """The weights that MNN reads: (code - offset) x scale, and + zero with asymmetric blocks."""
    if bits == 4:
        codes = np.stack([codes >> 4, codes & 15], axis=-1)
    signed = codes.astype(np.float64).reshape(-1, size) - (8 if bits == 4 else 128)
    numbers = parameters.astype(np.float64)
    if symmetric:
        return signed * numbers[:, None]
    return signed * numbers[1::2, None] + numbers[0::2, None]


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("size", [1.0, 0.02, 1e-5, 3000.0])
def test_no_weight_is_further_off_than_half_a_step(
    bits: int, size: float, *, symmetric: bool
) -> None:
    """Rounding to the nearest code, with no weight beyond the codes, whatever their size."""
    weights = (RANDOM.normal(0.3, 1, (12, 64)) * size).astype(np.float32)
    codes, parameters = quantize(weights.copy(), Blocks(bits, 32, symmetric))
    blocks = weights.astype(np.float64).reshape(-1, 32)
    off = np.abs(decoded(codes, parameters, bits, 32, symmetric=symmetric) - blocks)
    steps = (parameters if symmetric else parameters[1::2]).astype(np.float64)
    # A sixteenth of a step at the ends, for what float16 cuts off of 255 of them.
    assert np.all(off <= (0.5 + 1 / 16) * steps[:, None])
    if symmetric:
        least = 2 * np.abs(blocks).max(axis=1) / (2**bits - 2)
    else:
        least = np.ptp(blocks, axis=1) / (2**bits - 1)
    floor = 2.0**-23  # twice the smallest step of float16
    assert np.all(steps <= least * 1.001 + floor)


def test_four_bits_are_packed_with_the_first_in_the_upper_half() -> None:
    """Worked by hand: -7 to 7 in steps of 1 are codes 1 to 15."""
    row = np.array([[-7, -6, 0, 7, 1, 2, 3, 4]], dtype=np.float32)
    codes, scales = quantize(row, Blocks(4, 8, symmetric=True))
    assert scales.tolist() == [1.0]
    assert codes.tolist() == [0x12, 0x8F, 0x9A, 0xBC]


def test_a_block_made_of_sixteen_levels_is_kept_exactly() -> None:
    """Weights that came from a 4-bit format of the same blocks lose nothing again."""
    levels = np.arange(16)[None, :].repeat(2, axis=1)
    row = (levels * 0.125 - 0.5).astype(np.float32)
    codes, parameters = quantize(row.copy(), Blocks(4, 32, symmetric=False))
    assert np.array_equal(decoded(codes, parameters, 4, 32, symmetric=False), row)


@pytest.mark.parametrize("ends", [(-8, 7), (-8, 5), (-3, 8), (-8, -2), (0, 1), (-7, 6)])
def test_levels_that_do_not_fill_the_codes_are_found(ends: tuple[int, int]) -> None:
    """A block of Q4_0 reaches -8 at one end and anything at the other; its weights stay."""
    low, high = ends
    levels = RANDOM.integers(low, high + 1, (6, 32))
    levels[:, 0], levels[:, 1] = low, high
    row = (levels * np.float32(0.0123)).astype(np.float32)
    codes, parameters = quantize(row.copy(), Blocks(4, 32, symmetric=False), from_levels=True)
    off = np.abs(decoded(codes, parameters, 4, 32, symmetric=False) - row).max()
    assert off < 0.0123 / 100  # float16 rounds scale and zero; half a step is 0.0123 / 2


def test_weights_on_no_levels_are_rounded_as_ever() -> None:
    """Looking for levels changes nothing where there are none."""
    rows = RANDOM.normal(0, 1, (4, 64)).astype(np.float32)
    blocks = Blocks(4, 32, symmetric=False)
    plain, looked = quantize(rows.copy(), blocks), quantize(rows.copy(), blocks, from_levels=True)
    assert np.array_equal(plain[0], looked[0])
    assert np.array_equal(plain[1], looked[1])


def test_a_block_of_zeros_stays_zeros() -> None:
    """No division by a scale of 0."""
    codes, parameters = quantize(np.zeros((1, 16), np.float32), Blocks(8, 16, symmetric=False))
    assert not decoded(codes, parameters, 8, 16, symmetric=False).any()


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_three_parts_add_up_to_the_very_number(numbers: list[float]) -> None:
    """In float32 and in any order, unless a part is smaller than bfloat16 has numbers."""
    row = np.array([numbers], dtype=np.float32)
    row[np.abs(row) < 1e-30] = 0
    parts = in_three_parts(row).astype(np.uint32) << 16
    high, middle, low = parts.view(np.float32)[0]
    assert np.array_equal((high + middle) + low, row[0])
    assert np.array_equal((low + high) + middle, row[0])


def test_bfloat16_rounds_to_nearest_even() -> None:
    """Bits worked by hand: below, at and above the middle, with an even and an odd neighbour."""
    bits = np.array([0x3F80_7FFF, 0x3F80_8000, 0x3F80_8001, 0x3F81_8000], dtype=np.uint32)
    assert in_bfloat16(bits.view(np.float32)).tolist() == [0x3F80, 0x3F80, 0x3F81, 0x3F82]


@dataclass
class Lazy:
    """A tensor that knows the most rows that were asked of it."""

    values: Any
    most_rows: int = 0
    stored_as: str = "F32"

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape  # type: ignore[no-any-return]

    def read(self, start: int = 0, stop: int | None = None) -> Any:
        rows = np.array(self.values[start:stop])
        self.most_rows = max(self.most_rows, len(rows))
        return rows


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
def test_a_matrix_is_written_in_pieces_as_in_one(
    precision: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix is never whole in memory, and its file doesn't tell."""
    tensor = Lazy(RANDOM.normal(size=(50, 64)).astype(np.float32))
    form = Format(precision, 32)
    written = []
    for most in (1 << 20, 7 * 64 * 4):
        monkeypatch.setattr(checked_weights, "ROWS_BYTES", most)
        path = tmp_path / str(most)
        tensor.most_rows = 0
        with WeightFile(path, {"m": tensor}) as file:
            place = file.matrix("m", form)
        written.append(path.read_bytes())
        assert place.weight_bytes + place.scale_bytes + place.bias_bytes == len(written[-1])
    assert tensor.most_rows == 7
    assert written[0] == written[1]


def test_integers_stand_behind_a_header(tmp_path: Path) -> None:
    """Two dimensions, two lengths of 16 bits, 16 codes from -8 to 7."""
    tensor = Lazy(np.ones((3, 16), np.float32))
    with WeightFile(tmp_path / "w", {"m": tensor}) as file:
        place = file.matrix("m", Format("int4", 16))
    header = (
        bytes([2]) + struct.pack("<HH", 3, 16) + bytes([16]) + struct.pack("16b", *range(-8, 8))
    )
    assert (tmp_path / "w").read_bytes()[: place.header_bytes] == header


def test_a_long_matrix_has_lengths_of_32_bits(tmp_path: Path) -> None:
    """More than 65535 rows, as large vocabularies have; 256 codes are announced as 0."""
    tensor = Lazy(np.ones((65536, 8), np.float32))
    with WeightFile(tmp_path / "w", {"m": tensor}) as file:
        place = file.matrix("m", Format("int8", 8))
    assert place.wide_header
    assert (tmp_path / "w").read_bytes()[:10] == b"\2" + struct.pack("<ii", 65536, 8) + b"\0"


@pytest.mark.parametrize(
    ("value", "precision", "words"),
    [
        (np.nan, "fp32", "lm_head.weight holds a weight that is no finite number"),
        (np.inf, "int4", "lm_head.weight holds a weight that is no finite number"),
        (7e4, "fp16", "size 70000, beyond 65504"),
        (-7e4, "int8", "size 70000, beyond 65504"),
    ],
)
def test_a_weight_that_cannot_be_kept_is_refused(
    value: float, precision: Any, words: str, tmp_path: Path
) -> None:
    """Rather than written as infinity; the message names the tensor and what to do."""
    weights = np.ones((4, 16), np.float32)
    weights[2, 5] = value
    with (
        WeightFile(tmp_path / "w", {"lm_head.weight": Lazy(weights)}) as file,
        pytest.raises(RunnerFailure, match=words) as failure,
    ):
        file.matrix("lm_head.weight", Format(precision, 16))
    assert failure.value.reason == "invalid"


def shaped(hidden: int, inner: int, head: int = 64) -> Architecture:
    return Architecture(
        family="llama",
        layers=1,
        hidden_size=hidden,
        intermediate_size=inner,
        heads=hidden // head if hidden % head == 0 else 1,
        kv_heads=1,
        head_size=head,
        vocabulary_size=100,
        context_tokens=128,
        norm_epsilon=1e-5,
        rope=Rope(theta=1e4, kind="default", inverse_frequencies=(1.0,) * (head // 2)),
    )


@pytest.mark.parametrize(
    ("hidden", "inner", "size", "words"),
    [
        (576, 1536, 128, "128 does not divide hidden_size 576 and heads x head_size 576; these"),
        (576, 1536, 128, "these fit: 16, 32, 48, 64, 96, 192$"),
        (576, 1536, 36, "36 is no multiple of 8, which MNN needs .*; these fit: 16, 32"),
        (64, 90, 0, r"0 \(whole rows\) needs multiples of 8, unlike intermediate_size 90;"),
        (64, 90, 0, "none fits this model: choose fp16 or fp32"),
        (64, 200, 64, "64 does not divide intermediate_size 200; 8 fits, and 0 for whole rows"),
        (64, 128, -8, "-8 is no multiple of 8"),
    ],
)  # fmt: skip
def test_blocks_that_do_not_fit_are_refused_with_those_that_do(
    hidden: int, inner: int, size: int, words: str
) -> None:
    """The sizes are named, and what would fit all of them."""
    form = Format("int4", size)
    with pytest.raises(RunnerFailure, match=words) as failure:
        check_shapes(shaped(hidden, inner), form, form)
    assert failure.value.reason == "invalid"


def test_blocks_matter_only_where_there_are_integers() -> None:
    """fp16 layers with an int8 output layer need blocks of the hidden size alone."""
    check_shapes(shaped(64, 90), Format("fp16", 13), Format("fp16", 13))
    check_shapes(shaped(64, 90), Format("fp16", 32), Format("int8", 32))
    with pytest.raises(RunnerFailure, match="48 does not divide hidden_size 64"):
        check_shapes(shaped(64, 90), Format("fp16", 48), Format("int8", 48))


def test_a_head_of_odd_size_is_refused() -> None:
    """Its halves could not be rotated against each other."""
    with pytest.raises(RunnerFailure, match="heads of 13 numbers"):
        check_shapes(shaped(64, 128, head=13), Format("fp32"), Format("fp32"))
