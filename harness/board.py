"""Where runners' processes run and are watched: this machine, or one reached from it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, Self

from edgebench.devices.bandwidth import Bandwidth, measure_bandwidth
from edgebench.devices.idle import idle_watts
from edgebench.devices.machine import Machine, describe_machine
from edgebench.devices.monitor import Monitor
from edgebench.devices.pagecache import evict
from edgebench.devices.power import MeterSearch, PowerSettings, find_meters
from edgebench.devices.thermal import find_sensors, maximum, read_hottest_celsius
from edgebench.harness.session import Launch, Session

if TYPE_CHECKING:
    from types import TracebackType

    from edgebench.devices.reading import Reading
    from edgebench.devices.window import Window
    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.store import StoredFile

THIS_MACHINE = "this machine"


class Watch(Protocol):
    """Watches a runner's process; a context manager, as `edgebench.devices.monitor.Monitor`."""

    def __enter__(self) -> Self:
        """Begin to watch."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop watching."""

    def begin(self) -> None:
        """Open a window; one that is open is dropped."""

    def end(self) -> Window:
        """Close the window; its times are of the clock of the runner's own time stamps."""

    def current_rss(self) -> Reading:
        """The process tree's resident memory now, in bytes."""


@dataclass(frozen=True, slots=True)
class MeterFacts:
    """A meter as results name it.

    Attributes:
        name: such as ``rapl:package``.
        source: ``observed``, or ``estimated`` where it computes from something else.
    """

    name: str
    source: Literal["observed", "estimated"]


@dataclass(frozen=True, slots=True)
class Meters:
    """The meters of a board.

    Attributes:
        found: the one whose energy stands in the metrics first.
        refusals: a sentence for each that can't be used, and why.
    """

    found: tuple[MeterFacts, ...] = ()
    refusals: tuple[str, ...] = ()

    @property
    def why_none(self) -> str:
        """What to say about power where there is no meter."""
        return "; ".join(self.refusals) or "no power meter was found"


class Board(Protocol):
    """A machine on which runners run.

    `BoardError`, a `RunnerError`, is raised by all methods where it can't be reached.
    """

    @property
    def name(self) -> str:
        """What people call it: `THIS_MACHINE`, or the address."""

    @property
    def remote(self) -> bool:
        """Whether it is another machine: paths and interpreters of this one are not there."""

    def open(self, launch: Launch) -> Session:
        """A runner's process there, not started yet: a context manager.

        The log is written on this machine. `launch.python` is a path there.
        """

    def watch(self, session: Session) -> Watch:
        """A watch of the process of an open session."""

    def place(self, file: StoredFile, tell: Progress) -> str:
        """The path there of a model of this machine's; copied where it is not there yet."""

    def evict(self, path: str) -> str:
        """Drop a file or folder there from the page cache; why it is not gone, or nothing."""

    def machine(self) -> Machine:
        """Which machine it is."""

    def meters(self) -> Meters:
        """Its meters; looked for once."""

    def idle_watts(self, seconds: float) -> tuple[Reading, ...]:
        """What it draws with nothing of ours running, in watts, a reading for each meter."""

    def temperature(self) -> Reading:
        """Its processor's temperature now, in degrees Celsius."""

    def bandwidth(self, threads: int) -> Bandwidth:
        """How fast so many threads read its memory; a reason where that can't be measured."""

    def close(self) -> None:
        """Leave nothing running there; may be called twice."""


class LocalBoard:
    """This machine.

    Args:
        power: which meters to use.
    """

    name = THIS_MACHINE
    remote = False

    def __init__(self, power: PowerSettings | None = None) -> None:
        self._power = power or PowerSettings()

    @cached_property
    def _search(self) -> MeterSearch:
        return find_meters(settings=self._power)

    def open(self, launch: Launch) -> Session:
        """A runner's process here."""
        return Session(launch)

    def watch(self, session: Session) -> Watch:
        """Watch it from a thread of this process."""
        return Monitor(
            session.pid, meters=self._search.meters, no_meter_reason=self.meters().why_none
        )

    def place(self, file: StoredFile, tell: Progress) -> str:  # noqa: ARG002
        """Where it is."""
        return str(file.path)

    def evict(self, path: str) -> str:
        """Drop it from this machine's page cache."""
        return evict(Path(path))

    def machine(self) -> Machine:
        """This machine."""
        return describe_machine()

    def meters(self) -> Meters:
        """This machine's meters."""
        found = tuple(MeterFacts(each.name, each.source) for each in self._search.meters)
        return Meters(found, self._search.refusals)

    def idle_watts(self, seconds: float) -> tuple[Reading, ...]:
        """Watts over so many seconds, asleep."""
        return idle_watts(self._search.meters, seconds)

    def temperature(self) -> Reading:
        """The hottest of the processor's sensors."""
        sensors = find_sensors(Path("/sys"))
        celsius = read_hottest_celsius(sensors)
        return maximum(sensors, [] if celsius is None else [celsius])

    def bandwidth(self, threads: int) -> Bandwidth:
        """Read this machine's memory for a few seconds."""
        return measure_bandwidth(threads)

    def close(self) -> None:
        """End the meters, some of which are programs."""
        search: MeterSearch | None = self.__dict__.pop("_search", None)
        for meter in search.meters if search else ():
            meter.close()
