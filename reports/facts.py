"""Facts about a run that stand beside its figures: state, machine, files, how to run it again."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.reports.format import duration, quantity
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, paragraph
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import Artifact, MachineRecord, RunRecord
    from edgebench.reports.data import ReportData

GOVERNOR_FOR_MEASURING = "performance"
TESTING_RUNNER = "fake"

_MONTHS = (
    N_("January"),
    N_("February"),
    N_("March"),
    N_("April"),
    N_("May"),
    N_("June"),
    N_("July"),
    N_("August"),
    N_("September"),
    N_("October"),
    N_("November"),
    N_("December"),
)


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
                _("The runner '{runner}' is no framework.", runner=TESTING_RUNNER),
                _("It makes up its tokens and times, for tests of edgebench itself."),
            )
        )
    found.extend(_synthetic(data))
    found.extend(_not_the_same(data))
    if record.quick:
        found.append(
            Banner(
                _("A quick look, not a measurement."),
                _(
                    "It shows that everything works: shorter generations, too few repetitions to "
                    "compare anything. Run it without --quick for figures."
                ),
            )
        )
    # Of several runs, `parts.part_banners` says which.
    alone = len(data.parts) == 1
    if alone and record.status != "finished":
        found.append(_unfinished(data))
    if alone and data.run.damaged_lines:
        found.append(
            Banner(
                plural(
                    "{count} line of trials.jsonl could not be read.",
                    "{count} lines of trials.jsonl could not be read.",
                    data.run.damaged_lines,
                ),
                _(
                    "What the rest holds is shown. A run that was killed while it wrote leaves one "
                    "such line."
                ),
            )
        )
    if record.stopped_by_budget:
        found.append(_cut(data))
    return tuple(found)


def _synthetic(data: ReportData) -> Iterator[Banner]:
    """Figures of a model that nobody has."""
    made_up = [each for each in data.parts if each.record.synthetic is not None]
    if not made_up:
        return
    text = _(
        "Random numbers in the shape of {architectures}. Speed, memory and power are those of such "
        "a model; what it says, and whatever rates it, means nothing.",
        architectures=commas(
            dict.fromkeys(one_line(each.record.synthetic or "") for each in made_up)
        ),
    )
    if len(made_up) < len(data.parts):
        text = paragraph(
            (text, _("Runs with them: {runs}.", runs=commas(one_line(e.label) for e in made_up)))
        )
    yield Banner(_("Synthetic weights."), text)


def _not_the_same(data: ReportData) -> Iterator[Banner]:
    """Figures of another model are no comparison, however well they were measured."""
    view = data.sameness
    for row in view.bad if view else ():
        if row.differs:
            title = _("{variant} does not compute the same model.", variant=row.variant)
        else:
            title = _("{variant} could not be verified.", variant=row.variant)
        yield Banner(title, paragraph(row.why))


def _cut(data: ReportData) -> Banner:
    """What the time budget cut: repetitions, texts, or both."""
    budget = duration(data.record.protocol.time_budget_s)
    texts = [
        _(
            "{windows} of {planned} windows of {text} were rated; see below its table.",
            windows=each.quality.windows,
            planned=each.quality.windows_planned,
            text=one_line(each.name),
        )
        for each in data.record.workloads
        if each.quality and 0 < each.quality.windows < each.quality.windows_planned
    ]
    rows = any(
        "cut_by_budget" in cell.flags
        for (workload, _variant), cell in data.cells.items()
        if workload not in data.quality_names
    )
    lasting = {each.name for each in data.record.workloads if each.kind == "sustained"}
    missing = sum(
        workload in lasting and cell.status == "not_run"
        for (workload, _variant), cell in data.cells.items()
    )
    if texts and not rows and not missing:
        title = _("The time budget was not enough for all of the text.")
        return Banner(title, paragraph((_("It was {budget}.", budget=budget), *texts)))
    if missing:
        texts.append(
            plural(
                "{count} stretch of sustained work was not begun: it did not fit into what was "
                "left of it.",
                "{count} stretches of sustained work were not begun: they did not fit into what "
                "was left of it.",
                missing,
            )
        )
    if missing and not rows:
        title = _("The time budget was not enough for all of the sustained work.")
        return Banner(title, paragraph((_("It was {budget}.", budget=budget), *texts)))
    why = _(
        "{budget} were not enough for the precision that the scenario asks for. Rows marked "
        "'cut by budget' are less certain.",
        budget=budget,
    )
    return Banner(_("The time budget ended this run."), paragraph((why, *texts)))


def _unfinished(data: ReportData) -> Banner:
    cells = data.cells.values()
    have = sum(1 for cell in cells if cell.n)
    title = (
        _("This run was interrupted.")
        if data.record.status == "interrupted"
        else _("This run has not finished: it is still running, or it was killed.")
    )
    text = _(
        "{done} of {cells} cells have results so far. Run it again with --resume and this folder "
        "to go on where it stopped.",
        done=have,
        cells=len(cells),
    )
    return Banner(title, text)


def source_notes(data: ReportData) -> tuple[str, ...]:
    """What a reader must know of the model's files, each note once, and the run's own notes."""
    by_note: dict[str, list[str]] = {}
    for variant in data.record.variants:
        if variant.artifact is not None and variant.artifact.note:
            by_note.setdefault(variant.artifact.note, []).append(variant.id)
    of_files = (
        _("{variants}: {note}", variants=commas(ids), note=recorded(note))
        for note, ids in by_note.items()
    )
    return (*(recorded(each) for each in data.record.notes), *of_files)


def machine_facts(machine: MachineRecord) -> tuple[tuple[str, str], ...]:
    """The machine, as (fact, value); facts that could not be read say so."""
    unknown = _("not readable")
    cores = [_("{count} logical", count=machine.logical_cpus)]
    if machine.physical_cpus is not None:
        cores.append(_("{count} physical", count=machine.physical_cpus))
    turbo = unknown if machine.turbo is None else _("on") if machine.turbo else _("off")
    load = ", ".join(f"{value:.2f}" for value in machine.load_average) or unknown
    return (
        (_("CPU"), machine.cpu_model),
        (_("Microarchitecture"), machine.cpu_microarchitecture or unknown),
        (_("CPUs"), commas(cores)),
        (_("CPUs that may be used"), _ranges(machine.affinity) or unknown),
        (_("Governor"), machine.governor or unknown),
        (_("Turbo"), turbo),
        (_("Memory"), quantity(machine.memory_bytes, "byte")),
        (_("Virtualization"), machine.virtualization or _("none seen")),
        (_("System"), machine.system),
        (_("Kernel"), f"{machine.kernel}, {machine.architecture}"),
        (_("Python"), machine.python),
        (_("Load before (1, 5, 15 min)"), load),
        (_("Fingerprint"), machine.fingerprint),
    )


def device_facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """How another machine was reached, and whose profile it has, as (fact, value)."""
    device = record.device
    if device is None:
        return ()
    facts = []
    if device.address is not None:
        address = one_line(device.address)
        if device.reach == "ssh":
            facts.append((_("Reached"), _("over SSH, {address}", address=address)))
        elif device.reach == "adb":
            facts.append((_("Reached"), _("over adb, {address}", address=address)))
    if device.profile_name is not None:
        facts.append((_("Device profile"), one_line(device.profile_name)))
    return tuple(facts)


def bandwidth_facts(record: RunRecord) -> tuple[tuple[str, str], ...]:
    """How fast the machine's memory was read, as (fact, value); nothing where it was not."""
    disturbed = _("disturbed by other processes, so that it is more")
    return tuple(
        (
            _("Memory read, measured"),
            commas(
                (
                    _(
                        "{bandwidth} GB/s with {threads}",
                        bandwidth=f"{each.bytes_per_s / 1e9:.1f}",
                        threads=plural("{count} thread", "{count} threads", each.threads),
                    ),
                    *((disturbed,) if each.disturbed else ()),
                )
            ),
        )
        for each in record.bandwidth
    )


def machine_warnings(machine: MachineRecord) -> tuple[str, ...]:
    """What about the machine makes figures less steady or less comparable."""
    found: list[str] = []
    if machine.virtualization:
        found.append(
            _(
                "It runs inside of {hypervisor}: what else uses the same hardware can't be seen "
                "from here.",
                hypervisor=machine.virtualization,
            )
        )
    if machine.governor and machine.governor != GOVERNOR_FOR_MEASURING:
        found.append(
            _(
                "The clock governor is {governor}, not {wanted}: the clock follows the load.",
                governor=machine.governor,
                wanted=GOVERNOR_FOR_MEASURING,
            )
        )
    if machine.load_average and machine.load_average[0] > machine.logical_cpus / 2:
        found.append(_("The machine was busy with other work when the run began."))
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
    return _(
        "{day} {month} {year}, {time} UTC",
        day=when.day,
        month=_(_MONTHS[when.month - 1]),
        year=when.year,
        time=f"{when:%H:%M}",
    )


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
