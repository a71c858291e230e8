"""Values by block as one table, for what computes on all questions at once."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.compare.max_t import Floats
    from edgebench.harness.compare.model import BlockKey

MOST_BLOCKS = 500
"""Above, blocks that follow each other are taken together, by their median: what is quadratic in
their number stays small."""


def table_of(columns: Sequence[Mapping[BlockKey, float]]) -> tuple[Floats, list[str]]:
    """One row a block, in the order of their keys, and the session of each row.

    NaN where a column has no value. Of more than `MOST_BLOCKS`, several make a row.
    """
    keys = sorted({key for column in columns for key in column})
    group = -(-len(keys) // MOST_BLOCKS)
    rows = {key: at // group for at, key in enumerate(keys)}
    sessions = [key[0] for key in keys[::group]]
    table = np.full((len(sessions), len(columns)), np.nan)
    for at, column in enumerate(columns):
        if group == 1:
            table[[rows[key] for key in column], at] = list(column.values())
            continue
        together: dict[int, list[float]] = {}
        for key, value in column.items():
            together.setdefault(rows[key], []).append(value)
        for row, values in together.items():
            table[row, at] = statistics.median(values)
    return table, sessions


def by_run(table: Floats, sessions: Sequence[str]) -> list[Floats]:
    """The rows of each session."""
    starts = [at for at, session in enumerate(sessions) if at == 0 or session != sessions[at - 1]]
    return [
        table[start:end] for start, end in zip(starts, [*starts[1:], len(sessions)], strict=True)
    ]
