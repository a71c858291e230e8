"""Tensors of a ``.safetensors`` file, read by rows.

The format is a length, a JSON header, and the tensors' bytes. It is read here, and not by the
package ``safetensors``, because that one has no bfloat16 without torch and maps the whole file.
The format is the one that the documentation of the package describes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from edgebench.models.byte_ranges import bounds, read_bytes
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.models.weights import Floats

HEADER_LIMIT = 100_000_000
"""The longest header that the format allows, in bytes."""

ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2}
# For the check of sizes only: such a tensor may stand in a file, but is no weight.
_OTHER_BYTES = {"F64": 8, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2}
_OTHER_BYTES |= {"I8": 1, "U8": 1, "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1}


@dataclass(frozen=True, slots=True)
class SafeTensor:
    """One tensor of a file; see `edgebench.models.weights.Tensor`.

    Attributes:
        offset: of its first byte in the file.
    """

    path: Path
    shape: tuple[int, ...]
    stored_as: str
    offset: int

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries ``[start:stop]`` of the first axis as float32.

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """
        first, last = bounds(self.shape[0], start, stop)
        row = ITEM_BYTES[self.stored_as] * prod(self.shape[1:])
        raw = read_bytes(self.path, self.offset + first * row, (last - first) * row)
        shape = (last - first, *self.shape[1:])
        if self.stored_as == "F32":
            return raw.view("<f4").astype(np.float32, copy=False).reshape(shape)
        if self.stored_as == "F16":
            return raw.view("<f2").astype(np.float32).reshape(shape)
        # bfloat16 is the upper half of a float32.
        wide = raw.view("<u2").astype(np.uint32)
        wide <<= np.uint32(16)
        return wide.view(np.float32).reshape(shape)


TensorsByName: TypeAlias = dict[str, SafeTensor]


def read_safetensors(path: Path) -> TensorsByName:
    """Every tensor that a file holds, without its data.

    Raises:
        ModelFormatError: the file is cut off, damaged, or no safetensors file.
        UnsupportedModelError: a tensor is of a type that is not understood.
    """
    entries, start, size = _header(path)
    tensors: TensorsByName = {}
    spans: list[tuple[int, int, str]] = []
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        if not isinstance(entry, dict):
            msg = f"{path}: the header's entry for {name} is no object; the file is damaged"
            raise ModelFormatError(msg)
        kind, shape, first, last = _entry(Fields(f"{path}, tensor {name}", entry))
        spans.append((first, last, name))
        tensors[name] = SafeTensor(path, shape, kind, start + first)
    _check_spans(path, sorted(spans), size - start)
    for name, tensor in tensors.items():
        if tensor.stored_as not in ITEM_BYTES:
            msg = (
                f"{path}: the tensor {name} is of type {tensor.stored_as}, which is not "
                f"understood; understood are {', '.join(ITEM_BYTES)}: use an unquantised release "
                "of the model"
            )
            raise UnsupportedModelError(msg)
    return tensors


def _header(path: Path) -> tuple[dict[str, object], int, int]:
    """The header, where the data starts, and the file's size, in bytes."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            text = file.read(length) if length <= min(HEADER_LIMIT, size - 8) else b""
    except OSError as error:
        msg = f"{path} can't be read: {error}"
        raise ModelFormatError(msg) from error
    if not text:
        msg = (
            f"{path} is no safetensors file, or is cut off: its {size} bytes have no room for the "
            "header they announce; fetch it again"
        )
        raise ModelFormatError(msg)
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"{path} is no safetensors file: its header is no JSON ({error})"
        raise ModelFormatError(msg) from error
    if not isinstance(entries, dict):
        msg = f"{path} is no safetensors file: its header is no JSON object"
        raise ModelFormatError(msg)
    return entries, 8 + length, size


def _entry(fields: Fields) -> tuple[str, tuple[int, ...], int, int]:
    """Type, shape, and the first and last byte (counted from the data's start) of a tensor."""
    kind = fields.text("dtype")
    shape = _numbers(fields.get("shape"))
    span = _numbers(fields.get("data_offsets"))
    item = ITEM_BYTES.get(kind, _OTHER_BYTES.get(kind))
    if shape is None or span is None or len(span) != 2:  # noqa: PLR2004 - first and last
        msg = f"{fields.where}: shape and data_offsets are not lists of whole numbers"
        raise ModelFormatError(msg)
    first, last = span
    if item is not None and last - first != item * prod(shape):
        msg = (
            f"{fields.where}: {last - first} bytes are not what {kind} of shape {list(shape)} "
            f"takes ({item * prod(shape)}); the file is damaged"
        )
        raise ModelFormatError(msg)
    return kind, shape, first, last


def _numbers(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    if not all(type(number) is int and number >= 0 for number in value):
        return None
    return tuple(value)


def _check_spans(path: Path, spans: list[tuple[int, int, str]], size: int) -> None:
    """Tensors must fill the data without gap or overlap, as the format says."""
    end = 0
    for first, last, name in spans:
        if first != end or last < first:
            msg = (
                f"{path}: the tensor {name} starts at byte {first} of the data, where byte {end} "
                "is due: tensors overlap or leave a gap; the file is damaged"
            )
            raise ModelFormatError(msg)
        end = last
    if end != size:
        what = "is cut off" if size < end else "is longer than its tensors"
        msg = f"{path} {what}: {size} bytes of data, {end} expected; fetch it again"
        raise ModelFormatError(msg)
