"""GGUF's types, and which of them llama.cpp gives to each matrix in its mixes.

Sizes of the blocks: ggml's ``ggml-common.h``. The mixes: ``llama_tensor_get_type`` and the types
that take the place of others in ``src/llama-quant.cpp``, without an importance matrix.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from edgebench.harness.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.predict.decoder import Decoder, MatrixShape

BLOCKS: Final[Mapping[str, tuple[int, int]]] = MappingProxyType(
    {
        "F32": (1, 4),
        "F16": (1, 2),
        "BF16": (1, 2),
        "Q8_0": (32, 34),
        "Q5_1": (32, 24),
        "Q5_0": (32, 22),
        "Q4_1": (32, 20),
        "Q4_0": (32, 18),
        "IQ4_NL": (32, 18),
        "Q6_K": (256, 210),
        "Q5_K": (256, 176),
        "Q4_K": (256, 144),
        "IQ4_XS": (256, 136),
        "Q3_K": (256, 110),
        "Q2_K": (256, 84),
    }
)
"""By type, how many weights a block has and how many bytes it takes, scales included."""

MIXES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{each: each for each in ("F32", "F16", "BF16", "Q8_0", "Q6_K")},
        **{each: each for each in ("Q5_1", "Q5_0", "Q4_1", "Q4_0", "IQ4_NL", "IQ4_XS", "Q2_K")},
        "Q5_K_M": "Q5_K",
        "Q5_K_S": "Q5_K",
        "Q4_K_M": "Q4_K",
        "Q4_K_S": "Q4_K",
        "Q3_K_L": "Q3_K",
        "Q3_K_M": "Q3_K",
        "Q3_K_S": "Q3_K",
    }
)
"""By mix, the type of most of its matrices."""

EXACT: Final = frozenset({"F32", "F16", "BF16"})

_FALLBACKS: Final = {
    "Q2_K": "Q4_0",
    "Q3_K": "Q4_0",
    "Q4_K": "Q5_0",
    "Q5_K": "Q5_1",
    "Q6_K": "Q8_0",
    "IQ4_XS": "IQ4_NL",
}
"""What stands in for a type whose blocks don't divide a row."""

_FEW_VALUES: Final = 4
"""Heads of queries for one of keys, from which on values get more bits in some mixes."""


def row_bytes(kind: str, columns: int) -> int:
    """Bytes of a row of so many weights.

    Raises:
        ModelError: the type is not known, or its blocks don't divide the row.
    """
    if kind not in BLOCKS:
        msg = f"how many bytes the type {kind} takes is not known here"
        raise ModelError(msg)
    weights, nbytes = BLOCKS[kind]
    if columns % weights:
        msg = f"rows of {columns} weights are no whole blocks of {kind}"
        raise ModelError(msg)
    return columns // weights * nbytes


def type_of(mix: str, matrix: MatrixShape, model: Decoder) -> str:
    """The type in which llama.cpp keeps a matrix.

    Args:
        mix: a key of `MIXES`.
        matrix: of the model.
        model: its whole.
    """
    base = MIXES[mix]
    if mix in EXACT:
        return base
    if matrix.role == "output" or (matrix.role == "embedding" and model.tied):
        kind = _output_type(base, matrix.columns)
    else:
        kind = _mixed(mix, base, matrix, model)
    if matrix.columns % BLOCKS[kind][0]:
        kind = _FALLBACKS.get(kind, "F16")
    return kind if matrix.columns % BLOCKS[kind][0] == 0 else "F16"


def _output_type(base: str, columns: int) -> str:
    if columns % BLOCKS[base][0] or base == "Q8_0":
        return "Q8_0"
    return "Q6_K"


def _mixed(mix: str, base: str, matrix: MatrixShape, model: Decoder) -> str:
    if matrix.layer is None:
        return base
    if matrix.role == "v":
        return _values_type(mix, base, matrix.layer, model)
    if matrix.role == "down":
        return _down_type(mix, base, matrix.layer, model.layers)
    if matrix.role == "o":
        return {"Q2_K": "Q3_K", "Q3_K_M": "Q4_K", "Q3_K_L": "Q5_K"}.get(mix, base)
    return base


def _values_type(mix: str, base: str, layer: int, model: Decoder) -> str:
    shared = model.heads // model.kv_heads >= _FEW_VALUES
    found = base
    if mix == "Q2_K":
        found = "Q4_K" if shared else "Q3_K"
    elif mix == "Q3_K_M":
        found = "Q5_K" if layer < 2 else "Q4_K"  # noqa: PLR2004 - as it stands there
    elif mix == "Q3_K_L" or (mix in ("IQ4_NL", "IQ4_XS") and shared):
        found = "Q5_K"
    elif mix in ("Q4_K_M", "Q5_K_M") and _gets_more_bits(layer, model.layers):
        found = "Q6_K"
    elif mix == "Q4_K_S" and layer < 4:  # noqa: PLR2004
        found = "Q5_K"
    return found


def _down_type(mix: str, base: str, layer: int, layers: int) -> str:
    found = base
    if mix == "Q2_K":
        found = "Q3_K"
    elif mix == "Q3_K_M":
        found = "Q5_K" if layer < layers // 16 else "Q4_K"
    elif mix == "Q3_K_L" or (mix in ("Q4_K_S", "IQ4_NL", "IQ4_XS") and layer < layers // 8):
        found = "Q5_K"
    elif mix in ("Q4_K_M", "Q5_K_M") and _gets_more_bits(layer, layers):
        found = "Q6_K"
    return found


def _gets_more_bits(layer: int, layers: int) -> bool:
    """The first and the last eighth of the layers, and every third between them."""
    eighth = layers // 8
    return layer < eighth or layer >= 7 * layers // 8 or (layer - eighth) % 3 == 2  # noqa: PLR2004
