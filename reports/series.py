"""The raw samples that plots need, taken out of the trials one by one.

A trial's time stamps and memory timeline are nine tenths of its size. The collector keeps of them
what is drawn, so that a report of a large run needs little memory.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from edgebench.harness.results.trial import Timeline, Trial

Place = tuple[str, str]
"""A workload's name and a variant's id."""

MOST_POINTS = 160
"""More points than this on one line can't be seen apart, and make the page heavy."""

_LOW, _HIGH = 10.0, 90.0
_LEAST_GAPS = 1


@dataclass(frozen=True, slots=True)
class TokenGaps:
    """Gap before each generated token, over the repetitions of a cell.

    Attributes:
        token: the token's number, from 2 on (the first comes out of the prefill).
        median_s, low_s, high_s: median, 10th and 90th percentile over the repetitions.
        at_s: when the token came after the prompt was handed over, the median.
        first_s: when the first token came, the median.
        repetitions: how many generations.
    """

    token: NDArray[np.float64]
    median_s: NDArray[np.float64]
    low_s: NDArray[np.float64]
    high_s: NDArray[np.float64]
    at_s: NDArray[np.float64]
    first_s: float
    repetitions: int


@dataclass(frozen=True, slots=True)
class Series:
    """What is drawn over tokens and over time.

    Attributes:
        gaps: by workload and variant.
        generation_memory: the timeline of the first measured generation of each cell.
        load_memory: the timeline of the first load of each variant.
    """

    gaps: Mapping[Place, TokenGaps]
    generation_memory: Mapping[Place, Timeline]
    load_memory: Mapping[str, Timeline]


class SeriesCollector:
    """Takes the raw samples out of trials as they are read."""

    def __init__(self) -> None:
        self._stamps_ns: dict[Place, list[NDArray[np.int64]]] = defaultdict(list)
        self._generation_memory: dict[Place, Timeline] = {}
        self._load_memory: dict[str, Timeline] = {}

    def take(self, trial: Trial) -> Trial:
        """Keep what is drawn of a trial.

        Returns:
            The trial without its time stamps and its timeline.
        """
        if trial.status == "ok" and trial.phase == "measured" and trial.workload is not None:
            place = (trial.workload, trial.variant)
            if trial.tokens is not None and len(trial.tokens.token_ns) > _LEAST_GAPS:
                stamps = np.asarray(trial.tokens.token_ns, dtype=np.int64)
                self._stamps_ns[place].append(stamps)
            if _drawable(trial.timeline):
                self._generation_memory.setdefault(place, trial.timeline)
        elif trial.status == "ok" and trial.kind == "load" and _drawable(trial.timeline):
            self._load_memory.setdefault(trial.variant, trial.timeline)
        if trial.tokens is None and trial.timeline is None:
            return trial
        return trial.model_copy(update={"tokens": None, "timeline": None})

    def series(self) -> Series:
        """What was kept, ready to draw."""
        return Series(
            gaps={place: _token_gaps(each) for place, each in self._stamps_ns.items()},
            generation_memory=dict(self._generation_memory),
            load_memory=dict(self._load_memory),
        )


def _drawable(timeline: Timeline | None) -> TypeGuard[Timeline]:
    return timeline is not None and any(value is not None for value in timeline.rss_bytes)


def _token_gaps(stamps_ns: list[NDArray[np.int64]]) -> TokenGaps:
    longest = max(len(each) for each in stamps_ns)
    # One generation may have stopped early; what it lacks does not count at those tokens.
    stamps = np.full((len(stamps_ns), longest), np.nan)
    for row, each in zip(stamps, stamps_ns, strict=True):
        row[: len(each)] = each / 1e9
    complete = not np.isnan(stamps).any()
    percentile = np.percentile if complete else np.nanpercentile
    low, median, high = percentile(np.diff(stamps, axis=1), [_LOW, 50.0, _HIGH], axis=0)
    at = percentile(stamps, 50.0, axis=0)
    return TokenGaps(
        token=_thinned(np.arange(2.0, longest + 1.0)),
        median_s=_thinned(median),
        low_s=_thinned(low),
        high_s=_thinned(high),
        at_s=_thinned(at[1:]),
        first_s=float(at[0]),
        repetitions=len(stamps_ns),
    )


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The means of equal stretches, at most `MOST_POINTS` of them."""
    if len(values) <= MOST_POINTS:
        return values
    edges = np.linspace(0, len(values), MOST_POINTS + 1).astype(int)
    means = np.add.reduceat(values, edges[:-1]) / np.diff(edges)
    return np.asarray(means, dtype=np.float64)
