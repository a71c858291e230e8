"""What a monitor saw between two moments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from edgebench.devices.reading import Reading


@dataclass(frozen=True, slots=True)
class Sample:
    """Resident memory of the process tree at one moment; None where a part can't be read."""

    t_ns: int
    rss_bytes: int | None
    anon_bytes: int | None
    file_bytes: int | None
    shared_bytes: int | None


@dataclass(frozen=True, slots=True)
class EnergyPoint:
    """An energy meter's counter at one moment.

    Attributes:
        t_ns: of the monitor's clock.
        joules: up to then.
        silent_s: how long the meter had said nothing when it told this; 0 where the time since the
            point before is all that is known.
    """

    t_ns: int
    joules: float
    silent_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a meter could not be read, between two points of its counter; and why."""

    start_ns: int
    end_ns: int
    reason: str


@dataclass(frozen=True, slots=True)
class EnergyTrace:
    """One meter's counter over a window.

    Attributes:
        meter: its name, such as ``rapl:package``.
        source: ``observed`` or ``estimated``.
        points: the edges of the window included where the meter can tell them.
        reason: why `points` is empty or stops early; None where it goes to the end.
        resolution_s: seconds from one change of the counter to the next; None where not known.
            Of points that tell their own silences, these hold.
        gaps: where it could not be read in between; energy of what touches one is not known.
        own_points: whether the points are of the meter's own times; else a counter was asked, and
            may have stood there for as long as `resolution_s`.
    """

    meter: str
    source: Literal["observed", "estimated"]
    points: tuple[EnergyPoint, ...]
    reason: str | None = None
    resolution_s: float | None = None
    gaps: tuple[Gap, ...] = ()
    own_points: bool = False


@dataclass(frozen=True, slots=True)
class Level:
    """A level that was read at one moment: a temperature in degrees Celsius, a clock in Hz."""

    t_ns: int
    value: float


@dataclass(frozen=True, slots=True)
class Window:
    """What was seen from `begin_ns` to `end_ns`.

    All times are of the monitor's clock. ``time.perf_counter_ns`` is the same clock in all
    processes of one machine.

    Attributes:
        samples: memory, the edges included; shorter where the process ended early.
        peak_rss: bytes.
        peak_anon: bytes that no file backs, in the sample with the greatest RSS.
        peak_file: bytes that files back, in the same sample.
        peak_shared: bytes of shared memory, in the same sample.
        pss: proportional set size in bytes, at the end.
        cpu_time: seconds of user and system time.
        minor_faults: page faults served from memory.
        major_faults: page faults that read a file.
        voluntary_switches: context switches because a thread waited.
        involuntary_switches: context switches because a thread had to give way.
        others: how many CPUs other processes kept busy, on average.
        clock: Hz, the mean over samples and over the CPUs that the process may use.
        temperature: the highest, in degrees Celsius.
        energy: the meters' counters, the one whose energy stands in the metrics first; empty
            where there is no meter.
        energy_reason: why there is no meter; None where there is one.
        temperatures: degrees Celsius, about once a second.
        clocks: Hz, about once a second: the mean over the CPUs that the process may use.
    """

    begin_ns: int
    end_ns: int
    samples: tuple[Sample, ...]
    peak_rss: Reading
    peak_anon: Reading
    peak_file: Reading
    peak_shared: Reading
    pss: Reading
    cpu_time: Reading
    minor_faults: Reading
    major_faults: Reading
    voluntary_switches: Reading
    involuntary_switches: Reading
    others: Reading
    clock: Reading
    temperature: Reading
    energy: tuple[EnergyTrace, ...]
    energy_reason: str | None
    temperatures: tuple[Level, ...] = ()
    clocks: tuple[Level, ...] = ()
