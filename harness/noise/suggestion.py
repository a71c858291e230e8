"""What to ask of a gate on a machine whose noise is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from edgebench.harness.noise.figures import REPETITIONS
from edgebench.harness.noise.model import Suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.noise.model import Drift, Noise

LEAST_FLOOR: Final = 0.01
FLOOR_STEP: Final = 0.005
LIMITS: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)
"""The steps in which limits are suggested."""


def floor_for(drifts: Sequence[Drift]) -> float:
    """How much separate runs may differ here without being different, as a share.

    Two halves of one run are what two short runs would be that follow each other.
    """
    moved = max((abs(each.worsening) for each in drifts), default=0.0)
    steps = math.ceil(moved / FLOOR_STEP - 1e-9)
    # A policy takes shares below 1; beyond that no floor would tell anything.
    return min(max(LEAST_FLOOR, steps * FLOOR_STEP), LIMITS[-1])


def suggestion_of(
    rows: Sequence[Noise], floor: float, certain_facts: Mapping[str, float]
) -> Suggestion:
    """Repetitions that notice the default limits where that can be afforded, and limits that fit.

    Args:
        rows: all that a gate would ask about; at least one.
        floor: of separate runs.
        certain_facts: limits of what was measured and has no noise, by metric.
    """
    least, most = REPETITIONS[0], REPETITIONS[-1]
    needed = max(most if row.needed is None else row.needed for row in rows)
    # Of the numbers that the table tells of, so that the limits can be read off it.
    repetitions = next((each for each in REPETITIONS if each >= max(least, needed)), most)
    keys = dict.fromkeys(row.metric for row in rows)
    limits: dict[str, float] = {}
    separate: dict[str, float] = {}
    for key in keys:
        found = [
            each
            for row in rows
            if row.metric == key
            for each in row.noticed
            if each.repetitions == repetitions
        ]
        limit = _limit([each.interleaved for each in found], LIMITS[0])
        if limit is not None:
            limits[key] = limit
        limit = _limit([each.separate for each in found], floor)
        if limit is not None:
            separate[key] = limit
    return Suggestion(
        repetitions,
        floor,
        {**limits, **certain_facts},
        {**separate, **certain_facts},
        tuple(key for key in keys if key not in limits),
    )


def _limit(noticed: Sequence[float | None], least: float) -> float | None:
    """The next step above what is noticed in every cell."""
    known = [each for each in noticed if each is not None]
    if len(known) < len(noticed):
        return None
    return next((each for each in LIMITS if each >= max(least, *known)), None)
