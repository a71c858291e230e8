"""The tensors of a synthetic GGUF file: which there are, of which type, and their random bytes.

Types are those that llama.cpp's own quantiser gives each tensor, so that as many bytes are read
for a token as of the published file. Bytes are drawn as they will stand in the file: no weight is
ever a float.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from edgebench.models.gguf_tensors import ROPE_FACTORS
from edgebench.models.rope import default_rope, llama3_rope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from edgebench.models.shapes import ModelShape

Quantization: TypeAlias = Literal["Q4_0", "Q8_0", "F16"]
Kind: TypeAlias = Literal["F32", "F16", "Q4_0", "Q8_0", "Q6_K"]
Fill: TypeAlias = Literal["random", "ones", "rope"]

CHUNK_BYTES: Final = 8 << 20
"""Made at once."""

# By ggml's header ggml.h: the number of each type, how many weights a block has, and its bytes.
NUMBERS: Final[dict[Kind, int]] = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8, "Q6_K": 14}
BLOCKS: Final[dict[Kind, tuple[int, int]]] = {
    "F32": (1, 4),
    "F16": (1, 2),
    "Q4_0": (32, 18),
    "Q8_0": (32, 34),
    "Q6_K": (256, 210),
}

# The standard deviation of whole numbers that are drawn evenly from n in a row.
_SPREAD: Final = {n: sqrt((n * n - 1) / 12) for n in (16, 64, 256, 1 << 16)}

# Of a Q6_K block's parts: 192 bytes of weights, 16 scales, one float16.
_Q6_WEIGHTS, _Q6_SCALES, _Q6_SCALE = 192, 16, 32

_SIGN: Final = 0x80


@dataclass(frozen=True, slots=True)
class SyntheticTensor:
    """One tensor to be.

    Attributes:
        name: llama.cpp's.
        shape: outermost axis first.
        fill: random weights, ones, or what Llama 3's rotations are divided by.
        deviation: the standard deviation of random weights.
    """

    name: str
    shape: tuple[int, ...]
    kind: Kind
    fill: Fill = "random"
    deviation: float = 0.0

    @property
    def nbytes(self) -> int:
        """Its size in the file."""
        weights, size = BLOCKS[self.kind]
        return prod(self.shape) // weights * size


def synthetic_tensors(shape: ModelShape, quantization: Quantization) -> list[SyntheticTensor]:
    """Every tensor of a model, in the file's order.

    Weights are drawn with the standard deviation 1/sqrt(inputs), and norms are 1, so that what a
    layer gives is about as large as what it gets, however many there are.

    Raises:
        ValueError: a matrix's rows can't be cut into the blocks of its type.
    """
    made: list[SyntheticTensor] = []

    def matrix(name: str, rows: int, columns: int, kind: Kind, gain: float = 1.0) -> None:
        made.append(
            SyntheticTensor(f"{name}.weight", (rows, columns), kind, deviation=gain / sqrt(columns))
        )

    def ones(name: str, size: int) -> None:
        made.append(SyntheticTensor(f"{name}.weight", (size,), "F32", "ones"))

    last = _output_kind(shape.hidden, quantization)
    # Gemma multiplies what it reads from the embedding by sqrt(hidden); and where the embedding is
    # the output as well, a large one would make each token predict itself.
    gain = 0.25 if shape.family == "gemma2" else 1.0
    outer = last if shape.tied else quantization
    matrix("token_embd", shape.vocabulary, shape.hidden, outer, gain)
    if shape.long_rope:
        made.append(SyntheticTensor(ROPE_FACTORS, (shape.head_size // 2,), "F32", "rope"))
    for layer in range(shape.layers):
        prefix = f"blk.{layer}."
        ones(f"{prefix}attn_norm", shape.hidden)
        for part, (rows, columns) in shape.layer_matrices().items():
            matrix(prefix + _MATRICES[part], rows, columns, quantization)
            if shape.attention_bias and part in {"q_proj", "k_proj", "v_proj"}:
                name = f"{prefix}{_MATRICES[part]}.bias"
                made.append(SyntheticTensor(name, (rows,), "F32", deviation=0.1))
        ones(f"{prefix}ffn_norm", shape.hidden)
        if shape.family == "gemma2":
            ones(f"{prefix}post_attention_norm", shape.hidden)
            ones(f"{prefix}post_ffw_norm", shape.hidden)
    ones("output_norm", shape.hidden)
    if not shape.tied:
        matrix("output", shape.vocabulary, shape.hidden, last)
    for tensor in made:
        if tensor.shape[-1] % BLOCKS[tensor.kind][0]:
            msg = f"{tensor.name}: rows of {tensor.shape[-1]} weights can't be {tensor.kind}"
            raise ValueError(msg)
    return made


_MATRICES: Final = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}


def _output_kind(columns: int, quantization: Quantization) -> Kind:
    """llama-quantize keeps the output in 6 bits, or in 8 where its rows are no whole blocks."""
    if quantization != "Q4_0":
        return quantization
    return "Q8_0" if columns % BLOCKS["Q6_K"][0] else "Q6_K"


def tensor_bytes(tensor: SyntheticTensor, shape: ModelShape, seed: int) -> Iterator[bytes]:
    """A tensor's bytes, a few megabytes at a time.

    The same seed gives the same bytes, whatever is made beside it, on every machine: numpy
    promises the stream of its bit generators.
    """
    if tensor.fill == "ones":
        yield np.ones(tensor.shape, "<f4").tobytes()
        return
    if tensor.fill == "rope":
        yield _rope_factors(shape).tobytes()
        return
    draw = np.random.PCG64(np.random.SeedSequence([seed, zlib.crc32(tensor.name.encode())]))
    weights, size = BLOCKS[tensor.kind]
    left, step = prod(tensor.shape) // weights, CHUNK_BYTES // size
    while left:
        count = min(step, left)
        yield _BLOCKS[tensor.kind](draw, count, tensor.deviation)
        left -= count


def _octets(draw: np.random.PCG64, count: int) -> NDArray[np.uint8]:
    raw: NDArray[np.uint64] = draw.random_raw(-(-count // 8))
    return raw.astype("<u8", copy=False).view(np.uint8)[:count]


def _q4_0(draw: np.random.PCG64, count: int, deviation: float) -> bytes:
    """A float16 to multiply by, and 32 times a half byte from which 8 is taken."""
    made = np.empty((count, 18), np.uint8)
    made[:, :2] = _half(deviation / _SPREAD[16])
    # Its sign is drawn as well, as published files have both: half bytes are half a step below
    # zero in the mean, which would add up until all positions say the same.
    made[:, 1] |= _octets(draw, count) & np.uint8(_SIGN)
    made[:, 2:] = _octets(draw, count * 16).reshape(count, 16)
    return made.tobytes()


def _q8_0(draw: np.random.PCG64, count: int, deviation: float) -> bytes:
    """A float16 to multiply by, and 32 signed bytes."""
    made = np.empty((count, 34), np.uint8)
    made[:, :2] = _half(deviation / _SPREAD[256])
    made[:, 2:] = _octets(draw, count * 32).reshape(count, 32)
    return made.tobytes()


def _q6_k(draw: np.random.PCG64, count: int, deviation: float) -> bytes:
    """256 times 6 bits from which 32 is taken, 16 signed scales, a float16 to multiply by."""
    made = np.empty((count, 210), np.uint8)
    made[:, :_Q6_WEIGHTS] = _octets(draw, count * _Q6_WEIGHTS).reshape(count, _Q6_WEIGHTS)
    signs = _octets(draw, count * _Q6_SCALES).reshape(count, _Q6_SCALES) & np.uint8(_SIGN)
    scales = np.where(signs, np.uint8(256 - _Q6_SCALE), np.uint8(_Q6_SCALE))
    made[:, _Q6_WEIGHTS : _Q6_WEIGHTS + _Q6_SCALES] = scales
    made[:, -2:] = _half(deviation / _SPREAD[64] / _Q6_SCALE)
    return made.tobytes()


def _f16(draw: np.random.PCG64, count: int, deviation: float) -> bytes:
    return _even(draw, count, deviation).astype("<f2").tobytes()


def _f32(draw: np.random.PCG64, count: int, deviation: float) -> bytes:
    return _even(draw, count, deviation).astype("<f4").tobytes()


def _even(draw: np.random.PCG64, count: int, deviation: float) -> NDArray[np.float32]:
    """Evenly between two bounds, in 65,536 steps."""
    whole = _octets(draw, count * 2).view("<u2").astype(np.float32)
    return (whole - np.float32(32767.5)) * np.float32(deviation / _SPREAD[1 << 16])


_BLOCKS: Final = {"Q4_0": _q4_0, "Q8_0": _q8_0, "Q6_K": _q6_k, "F16": _f16, "F32": _f32}


def _half(value: float) -> NDArray[np.uint8]:
    return np.frombuffer(np.array(value, "<f2").tobytes(), np.uint8)


def _rope_factors(shape: ModelShape) -> NDArray[np.float32]:
    """What Llama 3.2's inverse frequencies are divided by, as in its published configuration."""
    scaled = llama3_rope(
        shape.rope_theta,
        shape.head_size,
        factor=32.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_context=8192,
    )
    plain = np.asarray(default_rope(shape.rope_theta, shape.head_size).inverse_frequencies)
    factors: NDArray[np.float32] = plain / np.asarray(scaled.inverse_frequencies)
    return factors.astype("<f4")
