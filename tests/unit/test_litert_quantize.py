"""Integers for LiteRT: what rounding costs, how they are laid out, and that rows go by in parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edgebench.runners import checked_weights
from edgebench.runners.litert_quantize import kept_scales, to_int4, to_int8
from edgebench.runners.litert_weights import Form, Matrix

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgebench.runners.litert_weights import Precision

RANDOM = np.random.default_rng(5)


@dataclass
class Lazy:
    """A tensor that tells how many rows were read at most at once."""

    values: NDArray[np.float32]
    stored_as: str = "F32"
    most_rows: int = field(default=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[np.float32]:
        rows = self.values[start:stop].copy()
        self.most_rows = max(self.most_rows, len(rows))
        return rows


def unpacked(packed: NDArray[np.uint8], scales: NDArray[np.float16], size: int) -> NDArray:
    """Weights from two codes to a byte, the first in the lower half, in two's complement."""
    codes = [
        code - 16 if code > 7 else code
        for byte in packed.tolist()
        for code in (byte & 15, byte >> 4)
    ]
    blocks = np.array(codes, np.float32).reshape(-1, size)
    return (blocks * scales.reshape(-1, 1).astype(np.float32)).reshape(len(scales), -1)


def test_int8_is_worked_out_as_by_hand() -> None:
    """The largest is 127 steps; a row of zeros stays one."""
    rows = np.array([[0.0, 1.27, -0.64, 0.004], [-254, 127, 3, 0], [0, 0, 0, 0]], np.float32)
    codes, scales = to_int8(rows.copy())
    assert codes.tolist() == [[0, 127, -64, 0], [-127, 64, 2, 0], [0, 0, 0, 0]]
    assert scales[:2] == pytest.approx([0.01, 2.0])
    assert scales[2] > 0


def test_int4_is_laid_out_as_by_hand() -> None:
    """From -8 to 7 with a scale that has few digits: nothing is lost, whatever is searched."""
    block = [-8, 7, 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, -7]
    rows = np.array([block + block], np.float32)
    rows[0, 16:] *= 0.5
    packed, scales = to_int4(rows.copy(), 16)
    assert scales.tolist() == [[1.0, 0.5]]
    assert packed.tolist()[:4] == [0x78, 0x10, 0x2F, 0x3E]
    assert np.array_equal(unpacked(packed, scales, 16), rows)


def test_int4_loses_no_more_than_with_any_scale_of_those_tried() -> None:
    """Among the plain choices: the largest weight at 7 steps, and at 8."""
    rows = RANDOM.normal(0, 0.05, (64, 128)).astype(np.float32)
    packed, scales = to_int4(rows.copy(), 32)
    lost = np.square(unpacked(packed, scales, 32) - rows).reshape(-1, 32).sum(axis=1)
    blocks = rows.reshape(-1, 32)
    for steps in (7, 8):
        scale = kept_scales(np.abs(blocks).max(axis=1) / np.float32(steps))[:, None]
        plain = np.clip(np.rint(blocks / scale), -8, 7) * scale
        assert (lost <= np.square(plain - blocks).sum(axis=1) * (1 + 1e-5)).all()
    assert lost.sum() < 0.01 * np.square(rows).sum()


@pytest.mark.parametrize("size", [1e-7, 3e-6, 1e-4, 0.02, 1.0, 9000.0])
def test_kept_scales_are_exact_in_both_half_formats(size: float) -> None:
    """At most eight significant bits, and a whole number of float16's steps; never 0."""
    wanted = RANDOM.uniform(size / 2, size, 1000).astype(np.float32)
    kept = kept_scales(wanted)
    assert np.array_equal(kept.astype(np.float16).astype(np.float32), kept)
    assert not np.any(kept.view(np.uint32) & 0xFFFF)
    assert (np.abs(kept - wanted) <= 2.0**-8 * wanted + 2.0**-25).all()
    assert kept_scales(np.zeros(1, np.float32)) == np.float32(2.0**-24)


def test_the_largest_weights_have_a_scale_that_is_finite() -> None:
    """A seventh of them rounds to float16's infinity, but for a limit."""
    rows = np.full((1, 32), 7 * 65504, np.float32)
    rows[0, 1:] = RANDOM.normal(0, 1e5, 31)
    packed, scales = to_int4(rows.copy(), 32)
    assert np.isfinite(scales).all()
    off = np.abs(unpacked(packed, scales, 32) - rows)
    assert off.max() <= 0.51 * 65504


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "int4"])
def test_a_matrix_is_made_in_pieces_as_in_one(
    precision: Precision, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never whole in memory, and what is written doesn't tell."""
    tensor = Lazy(RANDOM.normal(size=(50, 64)).astype(np.float32))
    made = []
    for most in (1 << 20, 7 * 64 * 4):
        monkeypatch.setattr(checked_weights, "ROWS_BYTES", most)
        tensor.most_rows = 0
        matrix = Matrix("m", tensor, Form(precision))
        weights, scales = b"", b""
        for first, *rest in matrix.made():
            weights += first
            scales += rest[0] if rest else b""
        assert (len(weights), len(scales)) == matrix.part_bytes
        made.append((weights, scales, matrix.row_scales.tobytes()))
    assert tensor.most_rows == 7
    assert made[0] == made[1]
