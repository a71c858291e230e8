"""Tensors of a GGUF file, dequantised by rows, in Hugging Face's order and by its names."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from edgebench.models.byte_ranges import bounds, read_bytes
from edgebench.models.errors import ModelFormatError, UnsupportedModelError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from edgebench.models.architecture import Architecture
    from edgebench.models.gguf_header import Header
    from edgebench.models.weights import Bytes, Floats, Tensor, Weights

    Rows = TypeVar("Rows", Bytes, Floats)

PIECE_BYTES = 4 << 20
"""Dequantised at once, counted as float32: the work needs some times as much beside it."""

OUTER_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
LAYER_NAMES = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
ROPE_FACTORS = "rope_freqs.weight"


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """One tensor of a file; see `edgebench.models.weights.Tensor`.

    Attributes:
        kind: the number of its type.
        row_bytes: what a row takes in the file; of a vector, the whole of it.
        offset: of its first byte in the file.
    """

    path: Path
    shape: tuple[int, ...]
    stored_as: str
    kind: int
    row_bytes: int
    offset: int

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries ``[start:stop]`` of the first axis, dequantised.

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """
        first, last = bounds(self.shape[0], start, stop)
        if len(self.shape) == 1:  # a vector is one row
            return self._rows(0, 1).reshape(-1)[first:last].copy()
        width = prod(self.shape[1:])
        result = np.empty((last - first, width), dtype=np.float32)
        step = max(1, PIECE_BYTES // (4 * width))
        for row in range(first, last, step):
            end = min(row + step, last)
            result[row - first : end - first] = self._rows(row, end)
        return result.reshape(last - first, *self.shape[1:])

    def read_stored(self, start: int = 0, stop: int | None = None) -> Bytes:
        """Rows ``[start:stop]`` of a matrix as the file has them: (rows, bytes of a row).

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """
        return self._raw(*bounds(self.shape[0], start, stop))

    def _rows(self, first: int, last: int) -> Floats:
        gguf = import_gguf()
        rows: Floats = gguf.quants.dequantize(
            self._raw(first, last), gguf.GGMLQuantizationType(self.kind)
        )
        return rows.astype(np.float32, copy=False)

    def _raw(self, first: int, last: int) -> Bytes:
        count = (last - first) * self.row_bytes
        raw = read_bytes(self.path, self.offset + first * self.row_bytes, count)
        return raw.reshape(last - first, self.row_bytes)


@dataclass(frozen=True, slots=True)
class HalvesTensor:
    """Rows of queries or keys, brought from llama.cpp's order into Hugging Face's.

    llama.cpp rotates neighbours, (0, 1), (2, 3), …, of each head, and its converter reorders the
    rows of Llama models for that; Hugging Face rotates the halves, (0, size/2), (1, size/2+1), ….
    """

    source: GgufTensor
    head_size: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""
        return self.source.shape

    @property
    def stored_as(self) -> str:
        """The type that the file keeps it in."""
        return self.source.stored_as

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries ``[start:stop]`` of the first axis, dequantised; whole heads are read for it.

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """
        return self._reordered(self.source.read, start, stop)

    def read_stored(self, start: int = 0, stop: int | None = None) -> Bytes:
        """Rows ``[start:stop]`` as the file has them, in Hugging Face's order.

        Raises:
            ModelFormatError: the file ends before the tensor does, or can't be read.
        """
        return self._reordered(self.source.read_stored, start, stop)

    def _reordered(self, read: Callable[[int, int], Rows], start: int, stop: int | None) -> Rows:
        first, last = bounds(self.shape[0], start, stop)
        size = self.head_size
        above, below = first // size * size, -(-last // size) * size
        rows = read(above, below)
        pairs = rows.reshape(-1, size // 2, 2, *rows.shape[1:])
        halves = pairs.swapaxes(1, 2).reshape(rows.shape)
        return np.ascontiguousarray(halves[first - above : last - above])


def read_weights(header: Header, architecture: Architecture, *, neighbours: bool) -> Weights:
    """Every tensor that an architecture wants; no other may be there.

    Args:
        header: of the file.
        architecture: what was read from its metadata.
        neighbours: queries and keys are in llama.cpp's order.

    Raises:
        ModelFormatError: tensors are missing, of another shape, or beyond the end of the file.
        UnsupportedModelError: there are others, or types that can't be dequantised.
    """
    if architecture.layers > len(header.tensors):  # before they are listed
        msg = (
            f"{header.path}: the metadata say {architecture.layers} layers, but there are only "
            f"{len(header.tensors)} tensors; the file is damaged"
        )
        raise ModelFormatError(msg)
    weights: dict[str, Tensor] = {}
    used = {ROPE_FACTORS}
    for name, shape in architecture.tensor_shapes().items():
        source = gguf_name(name)
        used.add(source)
        tensor = find_tensor(header, source)
        if tensor.shape != shape:
            msg = (
                f"{header.path}: {source} is of shape {list(tensor.shape)}, but the metadata "
                f"want {list(shape)}; the file is damaged or wrong"
            )
            raise ModelFormatError(msg)
        swapped = neighbours and ("q_proj" in name or "k_proj" in name)
        weights[name] = HalvesTensor(tensor, architecture.head_size) if swapped else tensor
    extra = [name for name in header.tensors if name not in used]
    if extra:
        more = f" and {len(extra) - 4} more" if len(extra) > 4 else ""  # noqa: PLR2004
        msg = (
            f"{header.path}: the tensors {', '.join(extra[:4])}{more} are not understood: the "
            f"model has parts that a {architecture.family} model has not"
        )
        raise UnsupportedModelError(msg)
    _check_types(header.path, weights)
    return weights


def gguf_name(name: str) -> str:
    """llama.cpp's name of a tensor.

    >>> gguf_name("model.layers.3.mlp.up_proj.weight")
    'blk.3.ffn_up.weight'
    """
    module, _, what = name.rpartition(".")
    if module in OUTER_NAMES:
        return f"{OUTER_NAMES[module]}.{what}"
    layer, _, part = module.removeprefix("model.layers.").partition(".")
    return f"blk.{layer}.{LAYER_NAMES[part]}.{what}"


def find_tensor(header: Header, name: str) -> GgufTensor:
    """A tensor of a file, which has room for it.

    Raises:
        ModelFormatError: there is none of the name, or it goes beyond the end of the file.
        UnsupportedModelError: it is of an unknown type.
    """
    entry = header.tensors.get(name)
    if entry is None:
        msg = f"{header.path} has no tensor {name}; the model is incomplete or of another kind"
        raise ModelFormatError(msg)
    gguf = import_gguf()
    try:
        kind = gguf.GGMLQuantizationType(entry.kind)
        block, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError) as error:
        msg = (
            f"{header.path}: {name} is of the type number {entry.kind}, which this release of the "
            "package gguf does not know; a newer one may: pip install -U gguf"
        )
        raise UnsupportedModelError(msg) from error
    if entry.shape[-1] % block:
        msg = (
            f"{header.path}: rows of {entry.shape[-1]} numbers can't be {kind.name}, which has "
            f"blocks of {block} ({name}); the file is damaged"
        )
        raise ModelFormatError(msg)
    row_bytes = entry.shape[-1] // block * block_bytes
    end = entry.offset + prod(entry.shape[:-1]) * row_bytes
    if end > header.size:
        msg = (
            f"{header.path} is cut off: it has {header.size} bytes, and {name} needs it up to byte "
            f"{end}; fetch it again"
        )
        raise ModelFormatError(msg)
    return GgufTensor(header.path, entry.shape, kind.name, entry.kind, row_bytes, entry.offset)


def import_gguf() -> Any:  # noqa: ANN401 - a package that may be absent
    """The package ``gguf``.

    Raises:
        ModelFormatError: it can't be imported.
    """
    try:
        import gguf  # noqa: PLC0415
        import gguf.quants  # noqa: PLC0415
    except ImportError as error:
        msg = (
            f"the package gguf can't be imported by {sys.executable} ({error}); "
            "install it with: pip install 'edgebench[convert]'"
        )
        raise ModelFormatError(msg) from error
    return gguf


def _check_types(path: Path, weights: Weights) -> None:
    """Each type that occurs is tried on an empty block, before any work is done."""
    gguf = import_gguf()
    for name in {tensor.stored_as for tensor in weights.values()}:
        kind = gguf.GGMLQuantizationType[name]
        block = np.zeros((1, gguf.GGML_QUANT_SIZES[kind][1]), dtype=np.uint8)
        try:
            gguf.quants.dequantize(block, kind)
        except NotImplementedError as error:
            msg = (
                f"{path} has weights of the type {name}, which the package gguf can't dequantise; "
                "take a file of another quantisation, best F16, BF16 or F32"
            )
            raise UnsupportedModelError(msg) from error
