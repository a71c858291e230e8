"""The bytes of a GGUF file's header, for files that are written from front to back.

They depend on nothing but what is handed over, so that the same model is the same file whatever
is installed. Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from edgebench.models.gguf_header import ALIGNMENT, ARRAY, FLOAT32, MAGIC, STRING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.models.synthetic_tensors import Kind, SyntheticTensor

VERSION: Final = 3
UINT32, INT32, BOOL = 4, 5, 7

FieldValue: TypeAlias = "bool | int | float | str | Sequence[int] | Sequence[float] | Sequence[str]"


def header_bytes(
    fields: Mapping[str, FieldValue],
    tensors: Sequence[SyntheticTensor],
    numbers: Mapping[Kind, int],
) -> bytes:
    """A file's bytes up to its first tensor.

    Args:
        fields: the metadata; whole numbers are written as UINT32, in lists as INT32, others as
            FLOAT32.
        tensors: in the order in which they will be written, each padded as `padding` says.
        numbers: of their types.
    """
    parts = [MAGIC, struct.pack("<IQQ", VERSION, len(tensors), len(fields))]
    for key, value in fields.items():
        parts += [_text(key), _value(value)]
    offset = 0
    for tensor in tensors:
        axes = tensor.shape[::-1]
        place = struct.pack(f"<I{len(axes)}Q", len(axes), *axes)
        parts += [_text(tensor.name), place, struct.pack("<IQ", numbers[tensor.kind], offset)]
        offset += tensor.nbytes + padding(tensor.nbytes)
    made = b"".join(parts)
    return made + bytes(padding(len(made)))


def padding(size: int) -> int:
    """How many zeros follow so many bytes."""
    return -size % ALIGNMENT


def _value(value: FieldValue) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", STRING) + _text(value)
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", UINT32, value)
    if isinstance(value, float):
        return struct.pack("<If", FLOAT32, value)
    if all(isinstance(each, str) for each in value):
        kind, content = STRING, b"".join(_text(str(each)) for each in value)
    elif all(isinstance(each, float) for each in value):
        kind, content = FLOAT32, struct.pack(f"<{len(value)}f", *value)
    else:
        kind, content = INT32, struct.pack(f"<{len(value)}i", *value)
    return struct.pack("<IIQ", ARRAY, kind, len(value)) + content


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data
