"""What a series of runs says: steps, drift, or why nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Change:
    """A step: from one run on, the values are on another level.

    Attributes:
        at: the run, by its place in the series, that is most likely the first after the change.
        earliest, latest: between which that run is with 95 % certainty.
        start, end: the runs before the change are `start` to `at`, those after it `at` to `end`,
            the end left out.
        before, after: the levels: means of logarithms, outliers clipped, as values.
        ratio, low, high: after / before with its 95 % interval; None where a value is not above 0.
        p: the chance that a history of equals would show such a step anywhere.
    """

    at: int
    earliest: int
    latest: int
    start: int
    end: int
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    p: float

    def later(self, by: int) -> Change:
        """The same where so many runs come before."""
        return replace(
            self,
            at=self.at + by,
            earliest=self.earliest + by,
            latest=self.latest + by,
            start=self.start + by,
            end=self.end + by,
        )


@dataclass(frozen=True, slots=True)
class Drift:
    """A slow climb or fall, of which no single step stands out.

    Attributes:
        start, last: the first and the last run of it, by their places in the series.
        before, after: the line's values there.
        ratio, low, high, p: as those of a `Change`, over the whole span.
    """

    start: int
    last: int
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    p: float

    def later(self, by: int) -> Drift:
        """The same where so many runs come before."""
        return replace(self, start=self.start + by, last=self.last + by)


@dataclass(frozen=True, slots=True)
class Findings:
    """What a series says.

    Attributes:
        changes, drifts: oldest first.
        spread: how much one run differs from the next where nothing changed, as a share: the
            standard deviation of the logarithms; None where there are too few runs.
        reason: why nothing could be looked for; None where it could.
    """

    changes: tuple[Change, ...] = ()
    drifts: tuple[Drift, ...] = ()
    spread: float | None = None
    reason: str | None = None
