"""The reader of safetensors files, on files made byte by byte."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.safetensors_file import read_safetensors

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, header: object, data: bytes = b"", *, length: int | None = None) -> Path:
    text = json.dumps(header).encode()
    path.write_bytes((len(text) if length is None else length).to_bytes(8, "little") + text + data)
    return path


def entry(dtype: str, shape: list[int], first: int, last: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def test_every_type_is_read_as_float32(tmp_path: Path) -> None:
    """float32, float16 and bfloat16 give the numbers that their bits stand for."""
    data = np.array([1.5, -2.0], "<f4").tobytes()
    data += np.array([[0.5], [65504.0]], "<f2").tobytes()
    data += bytes.fromhex("803f 40c0 0100")  # 1.0, -3.0, and the least above 0
    path = write(
        tmp_path / "m.safetensors",
        {
            "__metadata__": {"format": "pt"},
            "a": entry("F32", [2], 0, 8),
            "b": entry("F16", [2, 1], 8, 12),
            "c": entry("BF16", [3], 12, 18),
        },
        data,
    )

    tensors = read_safetensors(path)

    assert tensors["a"].read().tolist() == [1.5, -2.0]
    assert tensors["b"].read().tolist() == [[0.5], [65504.0]]
    assert tensors["b"].read(1).tolist() == [[65504.0]]
    assert tensors["c"].read().tolist() == [1.0, -3.0, 2.0**-133]
    assert tensors["c"].stored_as == "BF16"


@pytest.mark.parametrize(
    ("header", "data", "said"),
    [
        ({"a": entry("F32", [2], 0, 8)}, b"1234567", "is cut off: 7 bytes of data, 8 expected"),
        ({"a": entry("F32", [2], 0, 8)}, b"123456789", "is longer than its tensors"),
        ({"a": entry("F32", [3], 0, 8)}, b"12345678", "8 bytes are not what F32 of shape"),
        (
            {"a": entry("F16", [2], 0, 4), "b": entry("F16", [2], 2, 6)},
            b"123456",
            "tensor b starts at byte 2 of the data, where byte 4 is due",
        ),
        ({"a": {"dtype": "F32", "shape": [1]}}, b"1234", "tensor a: shape and data_offsets"),
        ({"a": entry("F32", [-1], 0, 4)}, b"1234", "tensor a: shape and data_offsets"),
        ({"a": {"shape": [1], "data_offsets": [0, 4]}}, b"1234", "dtype should be a text"),
        ({"a": 3}, b"", "entry for a is no object"),
        ([], b"", "no JSON object"),
    ],
)
def test_damage_is_told_where_it_is(header: object, data: bytes, said: str, tmp_path: Path) -> None:
    """A header that does not fit its data is refused, with the tensor and the numbers."""
    path = write(tmp_path / "m.safetensors", header, data)

    with pytest.raises(ModelFormatError, match=said):
        read_safetensors(path)


@pytest.mark.parametrize("content", [b"", b"short", b"\xff" * 8, b"\x40" + bytes(7) + b"{}"])
def test_what_has_no_room_for_its_header_is_refused(content: bytes, tmp_path: Path) -> None:
    """A file cut off within its header, or of another kind, is told from a sound one."""
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)

    with pytest.raises(ModelFormatError, match="no safetensors file, or is cut off"):
        read_safetensors(path)


def test_a_header_that_is_no_json_is_refused(tmp_path: Path) -> None:
    """Bytes that can't be parsed are told as such."""
    path = tmp_path / "m.safetensors"
    path.write_bytes((4).to_bytes(8, "little") + b"\xff{}}")

    with pytest.raises(ModelFormatError, match="its header is no JSON"):
        read_safetensors(path)


def test_a_type_that_is_not_understood_is_named(tmp_path: Path) -> None:
    """Weights in eight bits are refused by their type's name."""
    path = write(tmp_path / "m.safetensors", {"w": entry("F8_E4M3", [2], 0, 2)}, b"12")

    with pytest.raises(UnsupportedModelError, match="w is of type F8_E4M3"):
        read_safetensors(path)


def test_a_file_cut_off_after_it_was_opened_is_told(tmp_path: Path) -> None:
    """Reading beyond the end of a file is an error, and not a shorter tensor."""
    path = write(tmp_path / "m.safetensors", {"w": entry("F32", [4], 0, 16)}, bytes(16))
    tensor = read_safetensors(path)["w"]
    path.write_bytes(path.read_bytes()[:-1])

    assert tensor.read(0, 3).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ModelFormatError, match="a tensor needs it up to byte"):
        tensor.read()
