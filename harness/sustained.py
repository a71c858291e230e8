"""From generations that followed each other for minutes to a stretch of work and its metrics."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from edgebench.harness.errors import InvalidResultError
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.sustained import GenerationSpan, SustainedRecord
from edgebench.harness.sustained_power import NS, power_metrics, power_over_time
from edgebench.harness.throttling import Verdict, judged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgebench.devices.window import Level, Window
    from edgebench.runners.base import Generation

    Floats = NDArray[np.float64]

RATE: Final = "token/s"

INTERVALS: Final = 60
"""Into so many a stretch is cut, as long as none is shorter or longer than these."""
SHORTEST_S: Final = 1.0
LONGEST_S: Final = 10.0
FINE_S: Final = 1.0
"""About so long are the intervals in which a fall is looked for: a boost may last ten seconds."""

EDGE_S: Final = 60.0
"""The first and the last minute are compared, as design and documents have it."""
EDGE_SHARE: Final = 0.1
"""Of a stretch that is shorter than ten minutes, its first and its last tenth."""


def interval_s(asked_s: float) -> float:
    """How long each interval of a stretch is."""
    return min(max(asked_s / INTERVALS, SHORTEST_S), LONGEST_S)


def edge_s(lasted_s: float) -> float:
    """How long the first and the last part are that are compared."""
    return min(EDGE_S, EDGE_SHARE * lasted_s)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Generations that followed each other.

    Attributes:
        asked_s: how long it was asked to last.
        made: each checked; at least one. Their clock is the runner's.
    """

    asked_s: float
    made: tuple[Generation, ...]

    @property
    def begun_ns(self) -> int:
        """When the first prompt was handed over."""
        return self.made[0].submitted_ns

    @property
    def ended_ns(self) -> int:
        """When the last token was there."""
        return self.made[-1].token_ns[-1]

    @property
    def lasted_s(self) -> float:
        """From the first prompt to the last token."""
        return (self.ended_ns - self.begun_ns) / NS

    def check(self) -> None:
        """Refuse what can't be true.

        Raises:
            InvalidResultError: a generation began before the one before it was over.
        """
        for before, after in pairwise(self.made):
            if after.submitted_ns < before.token_ns[-1]:
                msg = "the time stamps go back from one generation to the next"
                raise InvalidResultError(msg)

    def outcome(self, window: Window) -> tuple[dict[str, Measured], SustainedRecord]:
        """The metrics of a stretch, and how it went over time.

        Args:
            window: what was seen of the machine meanwhile, by the runner's clock.
        """
        zero, lasted = self.begun_ns, self.lasted_s
        step, edge = interval_s(self.asked_s), edge_s(lasted)
        # What is left at the end and shorter than half an interval is no interval of its own.
        count = max(1, math.floor(lasted / step + 0.5))
        edges = np.append(np.arange(count) * step, lasted)
        gaps = _gaps(self.made, zero)
        power = power_over_time(window, zero, edges.tolist())
        first, last = _rate(gaps, 0.0, edge), _rate(gaps, lasted - edge, lasted)
        rates = _rates(first, last)
        verdict = _verdict(gaps, window, zero, edges, rates["sustained_ratio"].value)
        record = SustainedRecord(
            asked_s=self.asked_s,
            lasted_s=lasted,
            interval_s=step,
            edge_s=edge,
            generations=len(self.made),
            tokens=sum(len(each.token_ns) for each in self.made),
            t_s=_middles(edges),
            decode_rate=_rates_within(gaps, edges),
            clock_hz=_levels(window.clocks, zero, edges),
            temperature_celsius=_levels(window.temperatures, zero, edges),
            power_w=power.watts,
            power_source=window.energy[0].source if window.energy else None,
            power_over_s=power.longest_s,
            power_reason=power.reason,
            spans=[_span(each, zero) for each in self.made],
            throttled=verdict.throttled,
            throttled_at_s=verdict.at_s,
            throttled_because=verdict.because,
        )
        return {**rates, **power_metrics(window, zero, lasted, edge)}, record


def _verdict(
    gaps: Floats, window: Window, zero: int, edges: Floats, kept_share: float | None
) -> Verdict:
    """Whether it throttled, by shorter intervals than those of the record."""
    parts_each = max(1, math.floor(float(edges[1] - edges[0]) / FINE_S))
    parts = [np.linspace(low, high, parts_each, endpoint=False) for low, high in pairwise(edges)]
    fine = np.append(np.concatenate(parts), edges[-1])
    return judged(
        _middles(fine),
        _rates_within(gaps, fine),
        _levels(window.clocks, zero, fine),
        _levels(window.temperatures, zero, fine),
        kept_share=kept_share,
    )


def _rates(first: float | None, last: float | None) -> dict[str, Measured]:
    nothing = "no token was decoded in that part of the stretch: make it longer"
    found = {"burst_rate": first, "sustained_rate": last}
    metrics = {
        key: Measured.missing(RATE, nothing, "derived")
        if value is None
        else Measured(value=value, unit=RATE, source="derived")
        for key, value in found.items()
    }
    metrics["sustained_ratio"] = (
        Measured.missing("1", nothing, "derived")
        if first is None or last is None
        else Measured(value=last / first, unit="1", source="derived")
    )
    return metrics


def _gaps(made: Sequence[Generation], zero: int) -> Floats:
    """Begin and end of the making of each token but the first ones, in seconds; two columns.

    A first token comes out of the prefill, which is no decoding.
    """
    pairs = [pair for each in made for pair in pairwise(each.token_ns)]
    return (np.asarray(pairs, dtype=np.float64).reshape(-1, 2) - zero) / NS


def _rate(gaps: Floats, low: float, high: float) -> float | None:
    """Tokens of the decoding within, over its seconds within; a token may lie in it in part."""
    near = slice(
        int(np.searchsorted(gaps[:, 1], low, "right")),
        int(np.searchsorted(gaps[:, 0], high, "right")),
    )
    begins, ends = gaps[near, 0], gaps[near, 1]
    inside = np.minimum(ends, high) - np.maximum(begins, low)
    touched = inside > 0
    seconds = float(inside[touched].sum())
    if seconds <= 0:
        return None
    # Some frameworks give out several tokens at once.
    at_once = int(((ends == begins) & (ends > low) & (ends <= high)).sum())
    return (float((inside[touched] / (ends - begins)[touched]).sum()) + at_once) / seconds


def _middles(edges: Floats) -> list[float]:
    return [round(float(low + high) / 2, 3) for low, high in pairwise(edges)]


def _rates_within(gaps: Floats, edges: Floats) -> list[float | None]:
    return [_rate(gaps, low, high) for low, high in pairwise(edges.tolist())]


def _levels(levels: Sequence[Level], zero: int, edges: Floats) -> list[float | None]:
    """The mean of what was read within each interval."""
    times = [(each.t_ns - zero) / NS for each in levels]
    places = [bisect_left(times, edge) for edge in edges.tolist()]
    found = [[each.value for each in levels[low:high]] for low, high in pairwise(places)]
    return [sum(values) / len(values) if values else None for values in found]


def _span(made: Generation, zero: int) -> GenerationSpan:
    return GenerationSpan(
        started_s=round((made.submitted_ns - zero) / NS, 4),
        first_token_s=round((made.token_ns[0] - zero) / NS, 4),
        last_token_s=round((made.token_ns[-1] - zero) / NS, 4),
        tokens=len(made.token_ns),
    )
