"""How fast memory is read, as results keep it: measured once for a machine, and kept for a week.

It is kept in a small file of the user's cache for each machine and number of threads. What was
measured while other processes took the CPUs says too little, and is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from pydantic import ValidationError

from edgebench.devices.bandwidth import measure_bandwidth as read_memory
from edgebench.harness.compare.identity import TESTING_RUNNER
from edgebench.harness.errors import OutputError, RunnerError
from edgebench.harness.metrics.statistics import median, median_interval
from edgebench.harness.results.device import BandwidthRecord
from edgebench.harness.results.record import Record
from edgebench.harness.results.writer import write_atomically
from edgebench.harness.store.layout import cache_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from edgebench.devices.bandwidth import Bandwidth
    from edgebench.harness.prepared import PreparedVariant

FORMAT: Final = 1
"""Of the kept files; another one is measured anew."""

KEPT_DAYS: Final = 7
CLOCK_SLACK: Final = timedelta(minutes=1)
"""So much a clock may be put back: kept seconds ago, it is not of a time to come."""

FAKE_WEIGHTS: Final = "weight_bytes"
"""The fake runner reads no weights, unless this option of it says how many it pretends to."""

OFF: Final = "the memory's bandwidth was not measured: measure.bandwidth is off"
QUICK: Final = "the memory's bandwidth is not measured in a quick look"
DISTURBED: Final = (
    "other processes took the CPUs while the memory's bandwidth was measured, so that it came out "
    "too low to hold anything against"
)
NOT_WANTED: Final = "the memory's bandwidth was not measured"


class Kept(Record):
    """One file."""

    format: Literal[1]
    bandwidth: BandwidthRecord


def bandwidth_record(found: Bandwidth, fingerprint: str, *, now: datetime) -> BandwidthRecord:
    """What was read, with its median and interval.

    Args:
        found: which has at least one repetition.
        fingerprint: of the machine that was measured.
        now: when it was.
    """
    samples = list(found.bytes_per_s)
    interval = median_interval(samples, range(len(samples)))
    return BandwidthRecord(
        bytes_per_s=median(samples),
        ci_low=interval.low,
        ci_high=interval.high,
        samples=samples,
        threads=found.threads,
        array_bytes=found.array_bytes,
        reader=found.reader,
        measured_at=now.isoformat(timespec="seconds"),
        fingerprint=fingerprint,
        cache_bytes=found.cache_bytes,
        disturbed=found.disturbed,
        at_most_bytes_per_s=found.at_most,
    )


def stored_bandwidth(
    fingerprint: str,
    threads: int | None = None,
    *,
    root: Path | None = None,
    now: datetime | None = None,
) -> BandwidthRecord | None:
    """What is kept of a machine and no older than a week, nor of a time to come.

    Args:
        fingerprint: the machine's.
        threads: with so many; with the number that read fastest where None.
        root: the user's cache.
        now: the time.
    """
    found = stored_bandwidths(fingerprint, root=root, now=now)
    if threads is None:
        return max(found, key=lambda each: each.bytes_per_s, default=None)
    return next((each for each in found if each.threads == threads), None)


def stored_bandwidths(
    fingerprint: str, *, root: Path | None = None, now: datetime | None = None
) -> tuple[BandwidthRecord, ...]:
    """All of them, the fewest threads first."""
    folder = (root or cache_root()) / "bandwidth"
    newest = now or datetime.now(UTC)
    oldest = newest - timedelta(days=KEPT_DAYS)
    found = []
    for path in folder.glob(f"{fingerprint}-*.json") if folder.is_dir() else ():
        kept = _read(path)
        if kept is None or kept.fingerprint != fingerprint:
            continue
        # A clock that was wrong once would let it be kept for years.
        if oldest <= _moment(kept.measured_at) <= newest + CLOCK_SLACK:
            found.append(kept)
    return tuple(sorted(found, key=lambda each: each.threads))


def keep_bandwidth(record: BandwidthRecord, *, root: Path | None = None) -> None:
    """Keep it for a week, in place of what was kept before.

    What can't be written is measured anew the next time.
    """
    folder = (root or cache_root()) / "bandwidth"
    text = Kept(format=FORMAT, bandwidth=record).model_dump_json(indent=1)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / f"{record.fingerprint}-{record.threads}.json", text.encode())
    except (OSError, OutputError):
        return


def measure_bandwidth(
    threads: int,
    fingerprint: str,
    *,
    read: Callable[[int], Bandwidth] = read_memory,
    root: Path | None = None,
) -> BandwidthRecord | str:
    """Read memory now, and keep what came of it.

    Args:
        threads: how many read at once.
        fingerprint: of the machine.
        read: reads its memory with so many threads, such as a board's own way.
        root: the user's cache.

    Returns:
        What was measured, or why nothing was.
    """
    found = read(threads)
    if not found.bytes_per_s:
        return found.reason or NOT_WANTED
    record = bandwidth_record(found, fingerprint, now=datetime.now(UTC))
    if not found.disturbed:
        keep_bandwidth(record, root=root)
    return record


@dataclass(frozen=True, slots=True)
class Found:
    """What a run holds its rates against.

    Attributes:
        records: by number of threads.
        why_none: what to say where there is none.
    """

    records: tuple[BandwidthRecord, ...] = ()
    why_none: str = NOT_WANTED


def bandwidth_for_run(
    threads: Iterable[int],
    fingerprint: str,
    read: Callable[[int], Bandwidth],
    *,
    known: Sequence[BandwidthRecord] = (),
    why_not: str | None = None,
    root: Path | None = None,
) -> Found:
    """What is known, what is kept, and the rest measured.

    Args:
        threads: with how many threads it is wanted.
        fingerprint: of the machine.
        read: reads its memory.
        known: of an earlier part of the same run.
        why_not: why nothing is to be measured now; what is kept is used all the same.
        root: the user's cache.
    """
    if why_not == OFF:
        return Found(tuple(known), OFF)
    by_threads = {each.threads: each for each in stored_bandwidths(fingerprint, root=root)}
    by_threads |= {each.threads: each for each in known}
    found, why_none = [], why_not or NOT_WANTED
    for count in threads:
        record: BandwidthRecord | str | None = by_threads.get(count)
        if record is None and why_not is None:
            try:
                record = measure_bandwidth(count, fingerprint, read=read, root=root)
            except RunnerError as error:
                record = error.message
        if isinstance(record, BandwidthRecord):
            found.append(record)
        elif record is not None:
            why_none = f"the memory's bandwidth was not measured: {record}"
    return Found(tuple(found), why_none)


def wanted_threads(items: Iterable[PreparedVariant], cpus: int) -> tuple[int, ...]:
    """With how many threads memory is to be read, for what is about to be measured.

    Args:
        items: the variants; those that can't be started, and those that read no weights, need
            none.
        cpus: how many CPUs there are for a variant that does not say how many threads it uses.
    """
    found = set()
    for item in items:
        options = item.variant.options
        fake = item.variant.runner == TESTING_RUNNER and FAKE_WEIGHTS not in options
        if item.failure is None and not fake:
            asked = options.get("threads")
            found.add(asked if isinstance(asked, int) and asked > 0 else cpus)
    return tuple(sorted(found))


def for_threads(records: Sequence[BandwidthRecord], threads: int | None) -> BandwidthRecord | None:
    """The roof of so many threads: theirs, else that of the next larger number that was measured.

    More threads read no slower, so a larger number's is a roof as well; a smaller one's is none.
    Nor is a reading that other processes disturbed: it is too low.

    Args:
        records: what was measured.
        threads: how many were used; the largest number that was measured where None.
    """
    undisturbed = [each for each in records if not each.disturbed]
    by_threads = sorted(undisturbed, key=lambda each: each.threads)
    if threads is None:
        return by_threads[-1] if by_threads else None
    return next((each for each in by_threads if each.threads >= threads), None)


def _read(path: Path) -> BandwidthRecord | None:
    """None for what is no such file, or another version's: it is measured anew."""
    try:
        return Kept.model_validate_json(path.read_bytes()).bandwidth
    except (OSError, ValidationError):
        return None


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
