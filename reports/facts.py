"""Facts about a run that stand beside its figures: state, machine, files, how to run it again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.reports.format import duration, quantity
from edgebench.reports.sameness import VERDICTS
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import Artifact, MachineRecord
    from edgebench.reports.data import ReportData

GOVERNOR_FOR_MEASURING = "performance"
TESTING_RUNNER = "fake"


@dataclass(frozen=True, slots=True)
class Banner:
    """Something that must be read before any figure."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class File:
    """One file that frameworks loaded, with the variants that loaded it."""

    artifact: Artifact
    size: str
    bits_per_weight: str
    variants: tuple[str, ...]


def banners(data: ReportData) -> tuple[Banner, ...]:
    """What limits the whole report, most important first."""
    record = data.record
    found: list[Banner] = []
    if any(variant.runner == TESTING_RUNNER for variant in record.variants):
        found.append(
            Banner(
                f"The runner '{TESTING_RUNNER}' is no framework.",
                "It makes up its tokens and times, for tests of edgebench itself.",
            )
        )
    found.extend(_not_the_same(data))
    if record.quick:
        found.append(
            Banner(
                "A quick look, not a measurement.",
                "It shows that everything works: shorter generations, too few repetitions to "
                "compare anything. Run it without --quick for figures.",
            )
        )
    if record.status != "finished":
        found.append(_unfinished(data))
    if data.run.damaged_lines:
        lines = data.run.damaged_lines
        found.append(
            Banner(
                f"{lines} {'line' if lines == 1 else 'lines'} of trials.jsonl could not be read.",
                "What the rest holds is shown. A run that was killed while it wrote leaves one "
                "such line.",
            )
        )
    if record.stopped_by_budget:
        found.append(_cut(data))
    return tuple(found)


def _not_the_same(data: ReportData) -> Iterator[Banner]:
    """Figures of another model are no comparison, however well they were measured."""
    view = data.sameness
    for row in view.bad if view else ():
        differs = row.verdict == VERDICTS["differs"]
        what = "does not compute the same model" if differs else "could not be verified"
        yield Banner(f"{row.variant} {what}.", " ".join(row.why))


def _cut(data: ReportData) -> Banner:
    """What the time budget cut: repetitions, texts, or both."""
    budget = duration(data.record.protocol.time_budget_s)
    texts = [
        f"{each.quality.windows} of {each.quality.windows_planned} windows of "
        f"{one_line(each.name)} were rated; see below its table."
        for each in data.record.workloads
        if each.quality and 0 < each.quality.windows < each.quality.windows_planned
    ]
    rows = any(
        "cut_by_budget" in cell.flags
        for (workload, _), cell in data.cells.items()
        if workload not in data.quality_names
    )
    if texts and not rows:
        title = "The time budget was not enough for all of the text."
        return Banner(title, " ".join((f"It was {budget}.", *texts)))
    return Banner(
        "The time budget ended this run.",
        f"{budget} were not enough for the precision that the scenario asks for. "
        + " ".join(("Rows marked 'cut by budget' are less certain.", *texts)),
    )


def _unfinished(data: ReportData) -> Banner:
    cells = data.cells.values()
    have = sum(1 for cell in cells if cell.n)
    title = (
        "This run was interrupted."
        if data.record.status == "interrupted"
        else "This run has not finished: it is still running, or it was killed."
    )
    return Banner(
        title,
        f"{have} of {len(cells)} cells have results so far. "
        "Run it again with --resume and this folder to go on where it stopped.",
    )


def source_notes(data: ReportData) -> tuple[str, ...]:
    """What a reader must know of the model's files, each note once, and the run's own notes."""
    by_note: dict[str, list[str]] = {}
    for variant in data.record.variants:
        if variant.artifact is not None and variant.artifact.note:
            by_note.setdefault(variant.artifact.note, []).append(variant.id)
    of_files = (f"{', '.join(ids)}: {note}" for note, ids in by_note.items())
    return (*data.record.notes, *of_files)


def machine_facts(machine: MachineRecord) -> tuple[tuple[str, str], ...]:
    """The machine, as (fact, value); facts that could not be read say so."""
    unknown = "not readable"
    cores = f"{machine.logical_cpus} logical"
    if machine.physical_cpus is not None:
        cores += f", {machine.physical_cpus} physical"
    turbo = unknown if machine.turbo is None else "on" if machine.turbo else "off"
    load = ", ".join(f"{value:.2f}" for value in machine.load_average) or unknown
    return (
        ("CPU", machine.cpu_model),
        ("Microarchitecture", machine.cpu_microarchitecture or unknown),
        ("CPUs", cores),
        ("CPUs that may be used", _ranges(machine.affinity) or unknown),
        ("Governor", machine.governor or unknown),
        ("Turbo", turbo),
        ("Memory", quantity(machine.memory_bytes, "byte")),
        ("Virtualization", machine.virtualization or "none seen"),
        ("System", machine.system),
        ("Kernel", f"{machine.kernel}, {machine.architecture}"),
        ("Python", machine.python),
        ("Load before (1, 5, 15 min)", load),
        ("Fingerprint", machine.fingerprint),
    )


def machine_warnings(machine: MachineRecord) -> tuple[str, ...]:
    """What about the machine makes figures less steady or less comparable."""
    found: list[str] = []
    if machine.virtualization:
        found.append(
            f"It runs inside of {machine.virtualization}: what else uses the same hardware can't "
            "be seen from here."
        )
    if machine.governor and machine.governor != GOVERNOR_FOR_MEASURING:
        found.append(
            f"The clock governor is {machine.governor}, not {GOVERNOR_FOR_MEASURING}: the clock "
            "follows the load."
        )
    if machine.load_average and machine.load_average[0] > machine.logical_cpus / 2:
        found.append("The machine was busy with other work when the run began.")
    return tuple(found)


def files(data: ReportData) -> tuple[File, ...]:
    """The files that were loaded, each once."""
    variants: dict[str, list[str]] = {}
    artifacts: dict[str, Artifact] = {}
    for variant in data.record.variants:
        if variant.artifact is not None:
            artifacts.setdefault(variant.artifact.sha256, variant.artifact)
            variants.setdefault(variant.artifact.sha256, []).append(variant.id)
    return tuple(
        File(
            artifact=artifact,
            size=quantity(artifact.bytes, "byte"),
            bits_per_weight=(
                f"{8 * artifact.bytes / artifact.parameters:.2f}" if artifact.parameters else "–"
            ),
            variants=tuple(variants[sha256]),
        )
        for sha256, artifact in artifacts.items()
    )


def command(data: ReportData) -> str:
    """The command that runs it again."""
    return shlex.join(data.record.command or ["edgebench", "run", data.record.scenario_name])


def moment(text: str) -> str:
    """An ISO 8601 time for people; as it stands where it is none."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    if when.tzinfo is not None:
        when = when.astimezone(UTC)
    return f"{when.day} {when:%B %Y, %H:%M} UTC"


def scenario_text(data: ReportData, *names: str) -> str:
    """A text inside of the resolved scenario, such as ``model``, ``source``; empty without."""
    value: object = data.record.scenario
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def _ranges(numbers: list[int]) -> str:
    """Sorted numbers as ``0-3, 8``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{each[0]}-{each[-1]}" if len(each) > 1 else f"{each[0]}" for each in parts)
