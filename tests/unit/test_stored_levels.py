"""Q4_0's blocks as they are stored: the same artifact as by way of weights, or a nearer one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gguf
import numpy as np
import pytest

from edgebench.models.gguf_tensors import GgufTensor, HalvesTensor
from edgebench.runners import checked_weights, litert_levels, litert_quantize, stored_levels
from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_weights import Form, Matrix
from edgebench.runners.mnn_quantize import Blocks, quantize, repack
from edgebench.runners.mnn_weights import Format, WeightFile
from edgebench.runners.stored_levels import Levels, Rows, stored_rows

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from edgebench.models.weights import StoredMatrix

KIND = gguf.GGMLQuantizationType.Q4_0
STEPS = (7.0, 7.25, 7.5, 7.75, 8.0, 8.5, 9.0, 10.0)


def random_blocks(kind: str, count: int = 3000) -> NDArray[np.uint8]:
    """Blocks as a file has them, (count, 18)."""
    random = np.random.default_rng(11)
    if kind == "llama-quantize":
        weights = random.normal(0, 0.02, (count, 32)).astype(np.float32)
        made: NDArray[np.uint8] = gguf.quants.quantize(weights, KIND).reshape(count, 18)
        return made
    raw = random.integers(0, 256, (count, 18), dtype=np.uint8)
    scales = random.uniform(0.002, 0.005, count) * random.choice([-1, 1], count)
    if kind == "any size":
        scales = 2.0 ** random.uniform(-25, 12.9, count) * random.choice([-1, 1], count)
    if kind == "round scales":  # exact in bfloat16 as well, and weights between two codes
        scales = random.integers(-128, 128, count) / 4096
    if kind == "few levels":
        raw[:, 2:] = random.choice([0x88, 0x08, 0x80, 0x00, 0x84, 0x4C, 0x77], (count, 16))
    if kind == "levels near zero":
        raw[:, 2:] = random.choice([0x88, 0x89, 0x97, 0xA6, 0x75], (count, 16))
    if kind == "zero scales":
        scales[::2] = random.choice([0.0, -0.0], len(scales[::2]))
    raw[:, :2] = scales.astype("<f2").view(np.uint8).reshape(count, 2)
    return raw


KINDS = (
    "drawn",
    "llama-quantize",
    "any size",
    "round scales",
    "few levels",
    "levels near zero",
    "zero scales",
)


def dequantized(raw: NDArray[np.uint8]) -> NDArray[np.float32]:
    """By the package gguf; (blocks, 32)."""
    weights: NDArray[np.float32] = gguf.quants.dequantize(raw, KIND)
    return weights


def searched(weights: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """LiteRT's codes and scales the plain way: every scale tried on every weight."""
    largest = np.abs(weights).max(axis=1)
    least = np.full(len(weights), np.inf, np.float32)
    codes, best = np.zeros(weights.shape, np.int8), np.zeros(len(weights), np.float16)
    for steps in STEPS:
        scales = litert_quantize.kept_scales(largest / np.float32(steps))
        tried = np.clip(np.rint(weights / scales[:, None]), -8, 7)
        off = tried * scales[:, None] - weights
        lost = np.einsum("ij,ij->i", off, off)
        better = lost < least
        least[better], best[better], codes[better] = lost[better], scales[better], tried[better]
    bits = codes.view(np.uint8) & 15
    return (bits[:, 0::2] | (bits[:, 1::2] << 4)).reshape(-1), best


def file_tensor(folder: Path, raw: NDArray[np.uint8], rows: int) -> GgufTensor:
    """A matrix of these blocks, a few bytes into a file."""
    path = folder / "some.gguf"
    path.write_bytes(b"head" + raw.tobytes())
    row_bytes = raw.size // rows
    return GgufTensor(path, (rows, row_bytes // 18 * 32), "Q4_0", int(KIND), row_bytes, 4)


def test_a_block_is_read_as_by_hand() -> None:
    """The first sixteen weights lie in the lower halves, the others in the upper ones."""
    block = np.array([0x00, 0xB8, *range(0xF0, 0x100)], np.uint8)  # a scale of -0.5
    levels = Levels.of(block)
    first = [-0.5 * (level - 8) for level in range(16)]
    assert levels.weights().tolist() == [first + [-3.5] * 16]
    assert levels.neighbours().tolist() == [
        [0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF] + [0xFF] * 8
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_those_of_the_package_gguf(kind: str) -> None:
    """To the last bit, the signs of zeros included."""
    raw = random_blocks(kind)
    mine = Levels.of(raw).weights()
    assert np.array_equal(mine.view(np.uint32), dequantized(raw).view(np.uint32))


def test_stored_rows_are_those_that_are_dequantised(tmp_path: Path) -> None:
    """Also of queries, whose rows change places, and of any part of them."""
    tensor = file_tensor(tmp_path, random_blocks("drawn", 48), rows=12)
    swapped = HalvesTensor(tensor, head_size=4)
    for each in (tensor, swapped):
        stored = each.read_stored(3, 9)
        assert stored.shape == (6, 72)
        assert np.array_equal(Levels.of(stored).weights().reshape(6, 128), each.read(3, 9))
        assert stored_rows(each) is each
    assert np.array_equal(Rows(swapped, 3, 9).read(1, None), swapped.read(4, 9))
    assert not np.array_equal(tensor.read_stored(), swapped.read_stored())


@pytest.mark.parametrize("size", [32, 16, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_mnn_gets_the_source_exactly(kind: str, size: int) -> None:
    """Codes, scales and zeros say the same weights, without any rounding."""
    raw = random_blocks(kind)
    blocks = Blocks(4, size, symmetric=False)
    packed, numbers = repack(Levels.of(raw), blocks)
    codes = np.stack([packed >> 4, packed & 15], axis=-1).astype(np.float64) - 8
    zeros, scales = numbers[0::2].astype(np.float64), numbers[1::2].astype(np.float64)
    assert np.all(scales > 0)
    decoded = codes.reshape(-1, size) * scales[:, None] + zeros[:, None]
    assert np.array_equal(decoded.reshape(-1, 32), dequantized(raw).astype(np.float64))


@pytest.mark.parametrize("kind", KINDS)
def test_litert_gets_the_same_scales_by_counting(kind: str) -> None:
    """Bit for bit what trying every scale on every weight gives."""
    raw = random_blocks(kind)
    codes, scales = litert_levels.to_int4(Levels.of(raw))
    wanted_codes, wanted_scales = searched(dequantized(raw))
    assert np.array_equal(scales, wanted_scales)
    assert np.array_equal(codes, wanted_codes)
    slow_codes, slow_scales = litert_quantize.to_int4(dequantized(raw).copy(), 32)
    assert np.array_equal(slow_codes, wanted_codes)
    assert np.array_equal(slow_scales.reshape(-1), wanted_scales)


def test_counting_settles_nearly_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few are searched by their weights, or counting would save no time."""
    searched_blocks = []
    search = litert_quantize.searched_scales

    def noted(blocks: NDArray[np.float32]) -> NDArray[np.float32]:
        searched_blocks.append(len(blocks))
        return search(blocks)

    monkeypatch.setattr(litert_levels, "searched_scales", noted)
    for kind in ("drawn", "llama-quantize"):
        litert_levels.to_int4(Levels.of(random_blocks(kind)))
    assert sum(searched_blocks) < 0.02 * 6000


def test_many_blocks_are_done_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the parts end makes no difference."""
    levels = Levels.of(random_blocks("drawn", 700))
    whole = litert_levels.to_int4(levels)
    monkeypatch.setattr(litert_levels, "AT_ONCE", 97)
    monkeypatch.setattr(litert_levels, "COLUMNS", 10)
    parts = litert_levels.to_int4(levels)
    assert all(np.array_equal(one, other) for one, other in zip(whole, parts, strict=True))


def artifacts(tensor: StoredMatrix, folder: Path) -> tuple[bytes, bytes, bytes]:
    """MNN's weights with their scales, and LiteRT's two parts."""
    path = folder / "made.weight"
    path.unlink(missing_ok=True)
    with WeightFile(path, {"some": tensor}) as file:
        file.matrix("some", Format("int4", 32))
    pieces = list(Matrix("some", tensor, Form("int4", 32)).made())
    codes, scales = (b"".join(bytes(each[part]) for each in pieces) for part in (0, 1))
    return path.read_bytes(), codes, scales


def test_whole_matrices_are_made_by_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file's rows in order, whatever is read at once."""
    raw = random_blocks("drawn", 48)
    tensor = file_tensor(tmp_path, raw, rows=12)
    whole = artifacts(tensor, tmp_path)
    monkeypatch.setattr(stored_levels, "ROWS_BYTES", 5 * 128 * 4)
    assert artifacts(tensor, tmp_path) == whole
    wanted_codes, wanted_scales = searched(dequantized(raw))
    assert whole[1:] == (wanted_codes.tobytes(), wanted_scales.tobytes())


@pytest.mark.parametrize("scale", [np.inf, -np.inf, np.nan])
def test_damaged_scales_are_refused(tmp_path: Path, scale: float) -> None:
    """With the name of the tensor, as when its weights are looked at."""
    raw = random_blocks("drawn", 48)
    raw[17, :2] = np.array([scale], "<f2").view(np.uint8)
    raw[17, 2:] = 0
    tensor = file_tensor(tmp_path, raw, rows=12)
    with pytest.raises(RunnerFailure, match="some holds a weight that is no finite number"):
        list(Matrix("some", tensor, Form("int4", 32)).made())
    with (
        WeightFile(tmp_path / "made", {"some": tensor}) as file,
        pytest.raises(RunnerFailure, match="some holds a weight that is no finite number"),
    ):
        file.matrix("some", Format("int4", 32))


def test_large_scales_count_only_with_large_weights(tmp_path: Path) -> None:
    """What float16 can't hold is refused; a large scale whose levels are small is not."""
    raw = random_blocks("drawn", 48)
    raw[17, :2] = np.array([60000.0], "<f2").view(np.uint8)
    raw[17, 2:] = 0x89  # weights of 0 and 60000
    tensor = file_tensor(tmp_path, raw, rows=12)
    mnn, codes, scales = artifacts(tensor, tmp_path)
    blocks = Blocks(4, 32, symmetric=False)
    kept = quantize(dequantized(raw).copy(), blocks, from_levels=True)
    assert mnn.endswith(b"".join(each.tobytes() for each in kept))
    wanted_codes, wanted_scales = searched(dequantized(raw))
    assert (codes, scales) == (wanted_codes.tobytes(), wanted_scales.tobytes())
    raw[17, 2:] = 0  # and of -480000
    tensor = file_tensor(tmp_path, raw, rows=12)
    with pytest.raises(RunnerFailure, match=r"of size 480000, beyond 458528.*choose fp32"):
        list(Matrix("some", tensor, Form("int4", 32)).made())
    assert checked_weights.HALF_LIMIT * 7 == 458528
