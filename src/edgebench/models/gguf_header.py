"""The header of a GGUF file: metadata, and where each tensor stands.

It is read here, and not by the reader in the package ``gguf``, because that one makes an array of
each of a vocabulary's strings (seconds for SmolLM2's 49,152 tokens and merges, many for 150,000)
and maps the file. What the types mean comes from that package.
Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import numpy as np

from edgebench.models.errors import ModelFormatError, UnsupportedModelError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
STRING, ARRAY, FLOAT32 = 8, 9, 6
# The scalar types by the number that stands for them.
SCALARS: dict[int, np.dtype[np.number | np.bool]] = {
    0: np.dtype("<u1"),
    1: np.dtype("<i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    FLOAT32: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
MOST_AXES = 4

Value: TypeAlias = "bool | int | float | str | list[bool] | list[int] | list[float] | list[str]"


@dataclass(frozen=True, slots=True)
class TensorEntry:
    """What the header says of a tensor.

    Attributes:
        shape: outermost axis first (the file has them the other way round).
        kind: the number of its type.
        offset: of its first byte in the file.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class Header:
    """A file's header.

    Attributes:
        metadata: values by key.
        tensors: by the names that llama.cpp gives them.
        size: of the file, in bytes.
    """

    path: Path
    metadata: dict[str, Value]
    tensors: dict[str, TensorEntry]
    size: int


def is_gguf(path: Path) -> bool:
    """Whether a file starts as a GGUF file does."""
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_header(path: Path) -> Header:
    """Read the header of a GGUF file.

    Raises:
        ModelFormatError: the file can't be read, is no GGUF file, or ends within its header.
        UnsupportedModelError: a version or byte order that is not understood.
    """
    try:
        size = path.stat().st_size
        with path.open("rb", buffering=1 << 20) as file:
            return _Reader(path, file, size).header()
    except OSError as error:
        msg = f"{path} can't be read: {error}"
        raise ModelFormatError(msg) from error


class _Reader:
    """Reads one header from front to back."""

    def __init__(self, path: Path, file: BinaryIO, size: int) -> None:
        self._path, self._file, self._size = path, file, size
        self._at = 0

    def header(self) -> Header:
        if self._take(len(MAGIC)) != MAGIC:
            msg = f"{self._path} is no GGUF file"
            raise ModelFormatError(msg)
        version = self._uint32()
        if version not in VERSIONS:
            known = " and ".join(str(number) for number in VERSIONS)
            what = "of the other byte order" if not version & 0xFFFF else f"of version {version}"
            msg = f"{self._path} is a GGUF file {what}; understood are versions {known}"
            raise UnsupportedModelError(msg)
        tensor_count, key_count = self._uint64(), self._uint64()
        metadata: dict[str, Value] = {}
        for _ in range(key_count):
            key = self._string()
            if key in metadata:
                self._damaged(f"the key {key} stands twice")
            metadata[key] = self._value(self._uint32(), key)
        entries: dict[str, TensorEntry] = {}
        for _ in range(tensor_count):
            name = self._string()
            if name in entries:
                self._damaged(f"the tensor {name} stands twice")
            entries[name] = self._entry(name)
        alignment = metadata.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1:
            self._damaged(f"general.alignment is {alignment}")
        start = -(-self._at // alignment) * alignment
        tensors = {
            name: TensorEntry(entry.shape, entry.kind, start + entry.offset)
            for name, entry in entries.items()
        }
        return Header(self._path, metadata, tensors, self._size)

    def _entry(self, name: str) -> TensorEntry:
        axes = self._uint32()
        if not 1 <= axes <= MOST_AXES:
            self._damaged(f"the tensor {name} has {axes} axes")
        shape = tuple(self._uint64() for _ in range(axes))[::-1]
        return TensorEntry(shape, self._uint32(), self._uint64())

    def _value(self, kind: int, key: str) -> Value:
        if kind == STRING:
            return self._string()
        if kind in SCALARS:
            return self._scalars(kind, 1)[0]
        if kind != ARRAY:
            self._damaged(f"{key} is of the unknown type {kind}")
        inner, length = self._uint32(), self._uint64()
        if inner == STRING:
            return [self._string() for _ in range(length)]
        if inner not in SCALARS:
            self._damaged(f"{key} is a list of the unknown type {inner}")
        return self._scalars(inner, length)

    def _scalars(self, kind: int, count: int) -> list[bool] | list[int] | list[float]:
        dtype = SCALARS[kind]
        numbers = np.frombuffer(self._take(dtype.itemsize * count), dtype)
        if dtype == SCALARS[FLOAT32]:
            # The shortest decimal of a float32: 1e-05, where the bits alone say
            # 9.99999974737875e-06.
            return [float(str(number)) for number in numbers]
        whole: list[bool] | list[int] | list[float] = numbers.tolist()
        return whole

    def _string(self) -> str:
        raw = self._take(self._uint64())
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self._damaged(f"a text before byte {self._at} is no UTF-8")

    def _uint32(self) -> int:
        return int(struct.unpack("<I", self._take(4))[0])

    def _uint64(self) -> int:
        return int(struct.unpack("<Q", self._take(8))[0])

    def _take(self, count: int) -> bytes:
        # Checked first, so that a damaged length asks for no memory.
        if count > self._size - self._at:
            msg = (
                f"{self._path} ends within its header, at byte {self._size}: it is cut off or "
                "damaged; fetch it again"
            )
            raise ModelFormatError(msg)
        self._at += count
        return self._file.read(count)

    def _damaged(self, what: str) -> NoReturn:
        msg = f"{self._path}: {what}; the file is damaged"
        raise ModelFormatError(msg)
