"""What every conversion looks at before it keeps a source's weights in another form."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.weights import Tensor

    Floats = NDArray[np.float32]

HALF_LIMIT = 65504.0
"""The largest finite float16."""

ROWS_BYTES = 16 << 20
"""Rows read at once, as float32: enough for numpy's speed, small beside everything else."""


def checked_rows(
    name: str, tensor: Tensor, limit: float, kept_as: str, instead: str = "fp32"
) -> Iterator[Floats]:
    """The rows of a matrix, some at a time, all of them numbers of at most the size `limit`.

    Args:
        name: of the tensor, for the message.
        tensor: where the rows are read from.
        limit: the largest that can be kept; ``math.inf`` where any finite number can.
        kept_as: in which form, for the message, such as ``fp16 can keep in MNN``.
        instead: the quantisation that can keep all, for the message.

    Raises:
        RunnerFailure: one is larger, or no finite number.
    """
    from edgebench.models.weights import row_blocks  # noqa: PLC0415 - only for a conversion

    for values in row_blocks(tensor, ROWS_BYTES):
        check_values(name, values, limit, kept_as, instead)
        yield values


def check_values(
    name: str,
    values: Floats,
    limit: float = math.inf,
    kept_as: str = "",
    instead: str = "fp32",
) -> None:
    """Refuse weights as `checked_rows` does.

    Raises:
        RunnerFailure: one is larger than `limit`, or no finite number.
    """
    largest = max(float(values.max()), -float(values.min()))
    if not math.isfinite(largest):
        msg = (
            f"{name} holds a weight that is no finite number: its file is damaged, or its training"
        )
        raise RunnerFailure(msg, reason="invalid")
    if largest > limit:
        msg = (
            f"{name} holds a weight of size {largest:.6g}, beyond {limit:g}, the largest that "
            f"{kept_as}; choose {instead}"
        )
        raise RunnerFailure(msg, reason="invalid")


def lossy_note(model: CanonicalModel) -> str:
    """A warning where the source had been quantised before, or nothing."""
    kinds = ", ".join(model.lossy_types)
    return f"made from {kinds} weights: what those had lost is not regained" if kinds else ""
