"""How many bytes of weights llama.cpp reads to decode a token, from its own account of the file."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgebench.runners.llama_api import meta

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOKED_UP = re.compile(r"(^|_)token_embd\.weight$|^position_embd\.weight$|^token_types\.weight$")
"""Tables of which a token takes one row."""

OUTPUT = "output.weight"
"""Where a file has none, the table of tokens is the output layer as well, and read whole."""

TABLES = re.compile(r"(^|\.)rope_")
"""Factors of the positions' frequencies, which are no weights."""

EXPERTS = re.compile(r"_exps\.(weight|bias)$")
"""All experts of a layer in one tensor, of which a token takes some."""

LAYER = re.compile(r"^blk\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor of a file.

    Attributes:
        size: in bytes.
        rows: how many rows it has; of a vector, 1.
    """

    name: str
    size: int
    rows: int


class _InitParameters(ctypes.Structure):
    """``struct gguf_init_params``."""

    _fields_ = (("no_alloc", ctypes.c_bool), ("ctx", ctypes.c_void_p))


def stored_tensors(lib: Any, path: str) -> list[StoredTensor]:  # noqa: ANN401 - no types
    """What the header of a GGUF file says, read by the library that reads it in a load.

    Returns:
        Nothing where the file can't be read, or where the library does not export its reader.
    """
    try:
        ggml = lib.llama_cpp._lib  # noqa: SLF001 - the bindings have no names for these
        read, free = ggml.gguf_init_from_file, ggml.gguf_free
        count, name = ggml.gguf_get_n_tensors, ggml.gguf_get_tensor_name
        size, lengths = ggml.gguf_get_tensor_size, ggml.gguf_get_tensor_ne
    except AttributeError:
        return []
    read.restype, read.argtypes = ctypes.c_void_p, (ctypes.c_char_p, _InitParameters)
    free.restype, free.argtypes = None, (ctypes.c_void_p,)
    count.restype, count.argtypes = ctypes.c_int64, (ctypes.c_void_p,)
    for call, kind in (
        (name, ctypes.c_char_p),
        (size, ctypes.c_size_t),
        (lengths, ctypes.POINTER(ctypes.c_int64)),
    ):
        call.restype, call.argtypes = kind, (ctypes.c_void_p, ctypes.c_int64)
    header = read(os.fsencode(path), _InitParameters(no_alloc=True, ctx=None))
    if not header:
        return []
    try:
        return [
            StoredTensor(name(header, number).decode(), size(header, number), axes[1])
            for number in range(count(header))
            for axes in [lengths(header, number)]
        ]
    finally:
        free(header)


def weight_bytes_per_token(
    lib: Any,  # noqa: ANN401
    model: Any,  # noqa: ANN401
    tensors: Sequence[StoredTensor],
) -> int | None:
    """Bytes of weights that decoding a token reads, each once.

    Args:
        lib: the bindings.
        model: what was loaded.
        tensors: of its file.

    Returns:
        None where the tensors are not all that was loaded, as of a model in several files, or
        where the model's facts can't be read.
    """
    if sum(each.size for each in tensors) != lib.llama_model_size(model):
        return None
    architecture = meta(lib, model, "general.architecture")

    def number(key: str) -> int:
        return int(meta(lib, model, f"{architecture}.{key}") or 0)

    try:
        guessing = number("nextn_predict_layers")
        return read_per_token(
            tensors,
            layers=number("block_count") - guessing if guessing else None,
            experts=number("expert_count"),
            experts_used=number("expert_used_count"),
        )
    except ValueError:  # another number for each layer
        return None


def read_per_token(
    tensors: Sequence[StoredTensor],
    *,
    layers: int | None = None,
    experts: int = 0,
    experts_used: int = 0,
) -> int:
    """What of the tensors of a file decoding a token reads, in bytes.

    Args:
        tensors: all of them.
        layers: those before this one are used; the last ones of some models guess further tokens
            ahead, which nobody asks them for. None where all are used.
        experts: in each layer; 0 where there are none.
        experts_used: of them by a token.
    """
    tied = OUTPUT not in {each.name for each in tensors}
    total = 0
    for each in tensors:
        layer = LAYER.match(each.name)
        idle = layers is not None and layer and int(layer[1]) >= layers
        if idle or TABLES.search(each.name):
            continue
        if LOOKED_UP.search(each.name) and not (tied and each.name == "token_embd.weight"):
            total += each.size // each.rows
        elif EXPERTS.search(each.name) and experts:
            total += each.size * experts_used // experts
        else:
            total += each.size
    return total
