"""The reader of GGUF headers against the gguf package's, and on damaged files."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np
import pytest

from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.gguf_header import is_gguf, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write(path: Path, **strings: str) -> Path:
    """A file with a key of each kind, and two tensors."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("a.uint8", 255)
    writer.add_int8("a.int8", -3)
    writer.add_uint16("a.uint16", 65535)
    writer.add_int16("a.int16", -3)
    writer.add_uint32("a.uint32", 2**32 - 1)
    writer.add_int32("a.int32", -3)
    writer.add_uint64("a.uint64", 2**64 - 1)
    writer.add_int64("a.int64", -(2**63))
    writer.add_float32("a.float32", 1e-5)
    writer.add_float64("a.float64", 0.1)
    writer.add_bool("a.bool", True)
    writer.add_string("a.string", "漢字 🙂")
    writer.add_array("a.strings", ["", "Ġthe", "x" * 1000])
    writer.add_array("a.floats", [1.5, -2.0])
    writer.add_array("a.ints", [1, 2, -3])
    for key, value in strings.items():
        writer.add_string(key.replace("__", "."), value)
    writer.add_tensor("vector", np.arange(3, dtype=np.float32))
    writer.add_tensor("matrix", np.arange(10, dtype=np.float16).reshape(5, 2))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_keys_and_tensors_are_those_of_the_gguf_package(tmp_path: Path) -> None:
    """Every type of value, and every tensor's place, is read as the package reads it."""
    path = write(tmp_path / "m.gguf")
    theirs = gguf.GGUFReader(path)

    header = read_header(path)

    keys = {key: field.contents() for key, field in theirs.fields.items() if "GGUF." not in key}
    assert set(header.metadata) == set(keys)
    for key, value in keys.items():
        ours: Any = header.metadata[key]
        assert type(ours) is type(value)
        assert ours == (pytest.approx(value, rel=1e-7) if isinstance(value, float) else value)
    for tensor in theirs.tensors:
        entry = header.tensors[tensor.name]
        assert entry.shape == tuple(reversed(tensor.shape.tolist()))
        assert (entry.kind, entry.offset) == (int(tensor.tensor_type), tensor.data_offset)
    assert header.size == path.stat().st_size


def test_a_float32_is_its_shortest_decimal(tmp_path: Path) -> None:
    """1e-05 is what was written, and what stands in the configuration it came from."""
    assert read_header(write(tmp_path / "m.gguf")).metadata["a.float32"] == 1e-05


def test_a_header_cut_off_anywhere_is_told(tmp_path: Path) -> None:
    """No length of a header's beginning is taken for a header, or ends in another error."""
    path = write(tmp_path / "m.gguf")
    whole = path.read_bytes()
    end = whole.index(b"matrix") + len("matrix") + 4 + 16 + 4 + 8

    read_header(path)
    for length in range(4, end, 3):
        path.write_bytes(whole[:length])
        with pytest.raises(ModelFormatError, match="ends within its header"):
            read_header(path)


def test_damaged_bytes_end_in_an_error_of_the_model(tmp_path: Path) -> None:
    """A byte that was changed is an error with the path, or another value; never a crash."""
    path = write(tmp_path / "m.gguf")
    whole = path.read_bytes()

    said = []
    for position in range(4, whole.index(b"matrix") + 40, 3):
        damaged = bytearray(whole)
        damaged[position] ^= 0xFF
        path.write_bytes(damaged)
        with suppress_and_keep(said):
            read_header(path)

    assert len(said) > 50
    assert all(str(path) in message for message in said)


@contextmanager
def suppress_and_keep(said: list[str]) -> Iterator[None]:
    """Collects what errors of models say."""
    try:
        yield
    except ModelFormatError as error:
        said.append(str(error))


def test_a_number_of_strings_that_no_file_has_asks_for_no_memory(tmp_path: Path) -> None:
    """A length beyond the file's end is refused before anything is read."""
    path = write(tmp_path / "m.gguf")
    place = path.read_bytes().index(b"a.floats") + len("a.floats") + 4 + 4
    data = bytearray(path.read_bytes())
    data[place : place + 8] = (2**40).to_bytes(8, "little")
    path.write_bytes(data)

    with pytest.raises(ModelFormatError, match="ends within its header"):
        read_header(path)


@pytest.mark.parametrize(
    ("version", "named"), [(1, "of version 1"), (9, "of version 9"), (3 << 24, "other byte order")]
)
def test_another_version_is_refused_by_number(version: int, named: str, tmp_path: Path) -> None:
    """Files older or newer than what is understood, or big-endian ones, are named as such."""
    path = write(tmp_path / "m.gguf")
    data = bytearray(path.read_bytes())
    data[4:8] = version.to_bytes(4, "little")
    path.write_bytes(data)

    with pytest.raises(UnsupportedModelError, match=named):
        read_header(path)


def test_only_a_file_that_starts_as_one_is_a_gguf_file(tmp_path: Path) -> None:
    """The first bytes decide, and not the name."""
    assert is_gguf(write(tmp_path / "model.bin"))
    (tmp_path / "other.gguf").write_bytes(b"GGU")
    assert not is_gguf(tmp_path / "other.gguf")
    assert not is_gguf(tmp_path / "missing.gguf")
    (tmp_path / "other.gguf").write_bytes(b"PK\x03\x04" * 9)
    with pytest.raises(ModelFormatError, match="no GGUF file"):
        read_header(tmp_path / "other.gguf")
