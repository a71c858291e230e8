"""What a history is made of: runs, and one series for each thing that they measured again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple, Self, overload

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from datetime import datetime

SHORT_SHA = 10


@dataclass(frozen=True, slots=True)
class RunFacts:
    """One run of a history.

    Attributes:
        id: the run's.
        path: its folder, relative to that of all results.
        created_at: as recorded; `moment` is the same in seconds since 1970, 0 where unreadable.
        sha, branch, committed_at, dirty: of the commit; None where none was recorded.
    """

    id: str
    path: str
    created_at: str
    moment: float
    scenario: str
    cpu_model: str
    version: str
    sha: str | None = None
    branch: str | None = None
    committed_at: str | None = None
    dirty: bool | None = None

    @property
    def commit(self) -> str:
        """The commit, short, with a plus where files were changed; empty without."""
        if not self.sha:
            return ""
        return self.sha[:SHORT_SHA] + ("+" if self.dirty else "")


@dataclass(frozen=True, slots=True)
class Setup:
    """What may change along a series, and is named where it does.

    Attributes:
        engine: what was driven, with its version.
        artifact: the hash of the file that was loaded.
        effective: the options in effect, as ``name=value``, sorted.
    """

    engine: str = ""
    artifact: str = ""
    effective: tuple[str, ...] = ()


class Point(NamedTuple):
    """One run in a series: the median with its 95 % interval, of so many samples."""

    run: RunFacts
    median: float
    low: float | None
    high: float | None
    n: int
    setup: Setup


@dataclass(frozen=True, slots=True)
class Points(Sequence[Point]):
    """The runs of a series, an entry for each in every column.

    A history has hundreds of thousands of them, of which few are looked at but for their medians:
    a `Point` is made when it is asked for.
    """

    runs: tuple[RunFacts, ...]
    medians: tuple[float, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    ns: tuple[int, ...]
    setups: tuple[Setup, ...]

    @classmethod
    def of(cls, points: Sequence[Point]) -> Self:
        """The same, of at least one point."""
        return cls(*zip(*points, strict=True))

    @overload
    def __getitem__(self, place: int) -> Point: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Point, ...]: ...
    def __getitem__(self, place: int | slice) -> Point | tuple[Point, ...]:
        if isinstance(place, slice):
            return tuple(self)[place]
        return Point(
            self.runs[place],
            self.medians[place],
            self.lows[place],
            self.highs[place],
            self.ns[place],
            self.setups[place],
        )

    def __iter__(self) -> Iterator[Point]:
        columns = (self.runs, self.medians, self.lows, self.highs, self.ns, self.setups)
        return map(Point, *columns)

    def __len__(self) -> int:
        return len(self.runs)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a series is of; runs that differ in any of it are of different series.

    Attributes:
        machine: the fingerprint.
        model, weights: the name, and what tells which weights: the source and a hash.
        variant: the id; `identity` holds what it was made of.
        meter: of an energy or a power, what measured it; empty where that is not known.
        testing: whether the testing runner made it up.
        identity: all that must be equal, as text.
    """

    machine: str
    model: str
    weights: str
    variant: str
    workload: str
    scenario: str
    metric: str
    unit: str
    source: str
    meter: str
    testing: bool
    identity: str

    @property
    def synthetic(self) -> bool:
        """Whether its weights are made up."""
        return self.weights.startswith("synthetic:")

    @property
    def cell(self) -> str:
        """The same without metric, unit, source and meter: an object of JSON."""
        return self.identity.removesuffix(
            measured_by(self.metric, self.unit, self.source, self.meter)
        )


def measured_by(metric: str, unit: str, source: str, meter: str) -> str:
    """The end of an identity: what was measured, and by what."""
    return f" {metric} {unit} {source}" + (f" {meter}" if meter else "")


@dataclass(frozen=True, slots=True)
class Series:
    """One subject over all its runs, oldest first.

    Attributes:
        apart: what tells it from others of the same variant and workload; empty where none are.
    """

    subject: Subject
    points: Points
    apart: str = ""

    @property
    def cpu_model(self) -> str:
        """Of the newest run."""
        return self.points[-1].run.cpu_model

    @property
    def medians(self) -> tuple[float, ...]:
        """Of all runs."""
        return self.points.medians

    @property
    def name(self) -> str:
        """The variant's, and what tells it from others of that name."""
        return f"{self.subject.variant} ({self.apart})" if self.apart else self.subject.variant


@dataclass(frozen=True, slots=True)
class Selection:
    """Which series, and which runs of them; what is None or empty selects all.

    Attributes:
        metrics: keys.
        variant, workload: fnmatch patterns; without a wildcard, a part of the name is enough.
        machine: a fingerprint, or its beginning.
    """

    metrics: Collection[str] = ()
    variant: str | None = None
    workload: str | None = None
    scenario: str | None = None
    machine: str | None = None
    since: datetime | None = None
    branch: str | None = None

    def takes(self, subject: Subject) -> bool:
        """Whether it selects a series."""
        return (
            (not self.metrics or subject.metric in self.metrics)
            and _matches(subject.variant, self.variant)
            and _matches(subject.workload, self.workload)
            and (self.scenario is None or subject.scenario == self.scenario)
            and (self.machine is None or subject.machine.startswith(self.machine))
        )

    def takes_run(self, run: RunFacts) -> bool:
        """Whether it selects a run."""
        return (self.since is None or run.moment >= self.since.timestamp()) and (
            self.branch is None or run.branch == self.branch
        )


def _matches(name: str, pattern: str | None) -> bool:
    if pattern is None:
        return True
    if any(each in pattern for each in "*?["):
        return fnmatchcase(name, pattern)
    return pattern in name
