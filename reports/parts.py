"""Several runs in one report: what must be read before any figure, and which runs they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.results.run import RUN_FILE, TRIALS_FILE
from edgebench.reports.engines import engine_text
from edgebench.reports.facts import Banner, moment
from edgebench.reports.format import Scale, duration, percent, quantity
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.words import commas, paragraph, semicolons
from edgebench.reports.metered import meter_banners
from edgebench.reports.metric_names import by_source
from edgebench.reports.run_labels import machine_name
from edgebench.reports.table_model import Column, Row, Table, TableTexts, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from edgebench.harness.results.model import ProtocolRecord
    from edgebench.reports.data import Part, ReportData

_STATES = {
    "finished": N_("finished"),
    "interrupted": N_("interrupted"),
    "running": N_("running, or killed"),
}

_PROTOCOL: dict[str, tuple[str, Callable[[ProtocolRecord], str]]] = {
    "min_repetitions": (N_("fewest repetitions"), lambda each: str(each.min_repetitions)),
    "max_repetitions": (N_("most repetitions"), lambda each: str(each.max_repetitions)),
    "ci_half_width": (N_("width of the interval"), lambda each: percent(each.ci_half_width)),
    "max_cv": (N_("limit of noise"), lambda each: percent(each.max_cv)),
    "warmup_min": (N_("fewest warm-ups"), lambda each: str(each.warmup_min)),
    "warmup_max": (N_("most warm-ups"), lambda each: str(each.warmup_max)),
    "per_block": (N_("repetitions in a block"), lambda each: str(each.per_block)),
    "interleave": (N_("interleaved"), lambda each: _("yes") if each.interleave else _("no")),
    "cooldown_s": (N_("pause between processes"), lambda each: duration(each.cooldown_s)),
    "time_budget_s": (N_("time budget"), lambda each: duration(each.time_budget_s)),
}
"""What of a protocol bears on the figures: its name, and how to write it."""


def several(data: ReportData) -> bool:
    """Whether a report is about more than one run."""
    return len(data.parts) > 1


def part_banners(data: ReportData) -> tuple[Banner, ...]:
    """What limits a report of several runs, and of any: that trials are lost."""
    if not several(data):
        return tuple(_lost(data))
    return (
        _combined(data),
        *meter_banners(data),
        *_unfinished(data),
        *_damaged(data),
        *_lost(data),
    )


def part_notes(data: ReportData) -> tuple[str, ...]:
    """What else differs between the runs, a sentence each; nothing for one alone."""
    if not several(data):
        return ()
    return tuple(_notes(data))


def runs_table(data: ReportData) -> Table | None:
    """The runs: machine, time, versions, state; None for one alone."""
    if not several(data):
        return None
    heads = (
        ("machine", _("Machine")),
        ("memory", _("Memory")),
        ("kernel", _("Kernel")),
        ("started", _("Started")),
        ("state", _("State")),
        ("engines", _("Engines")),
        ("edgebench", "edgebench"),
        ("seed", _("Seed")),
        ("meter", _("Energy meter")),
        ("run", _("Run's id")),
    )
    # Where the ids are what the runs are called, they stand in front already.
    named = all(part.label == one_line(part.record.id) for part in data.parts)
    shown = len(heads) - named
    columns = tuple(
        Column(key, head, head, Scale(""), None, words=key != "seed") for key, head in heads[:shown]
    )
    rows = tuple(
        Row(
            variant=one_line(part.label),
            engine="",
            place=place,
            repetitions=0,
            remarks=(),
            failed=False,
            values=tuple(map(Value, _texts(part)[:shown])),
        )
        for place, part in enumerate(data.parts)
    )
    texts = TableTexts(how=_("as each run recorded it"), counted="", rows=_("run"))
    return Table("runs", _("Runs"), columns, rows, (), (), texts)


def _texts(part: Part) -> tuple[str, ...]:
    record, machine = part.record, part.record.machine
    engines = dict.fromkeys(filter(None, map(engine_text, record.variants)))
    return (
        machine_name(machine),
        quantity(machine.memory_bytes, "byte"),
        one_line(f"{machine.kernel}, {machine.architecture}"),
        moment(record.created_at),
        _(_STATES[record.status]),
        one_line(commas(engines)) or "–",
        one_line(record.edgebench_version),
        str(record.seed),
        one_line(by_source(record.meters[0].name, record.meters[0].source))
        if record.meters
        else "–",
        one_line(record.id),
    )


def _combined(data: ReportData) -> Banner:
    records = [each.record for each in data.parts]
    machines = len({each.machine.fingerprint for each in records})
    runs = plural("{count} run", "{count} runs", len(records))
    if machines == 1:
        title = _("This report combines {runs} of one machine.", runs=runs)
        why = _(
            "What differs between rows of different runs may be what the machine was like at the "
            "time, and not the framework."
        )
    else:
        where = plural("{count} machine", "{count} machines", machines)
        title = _("This report combines {runs} of {machines}.", runs=runs, machines=where)
        why = _(
            "What differs between rows of different machines may be the machine, and not the "
            "framework."
        )
    ratios = _("Ratios are taken within a run only: nothing of two runs was measured side by side.")
    return Banner(title, paragraph((why, ratios, *_versions(data))))


def _versions(data: ReportData) -> Iterator[str]:
    """Engines and edgebench, where the runs had different ones."""
    found: dict[str, dict[str, None]] = {}
    for part in data.parts:
        found.setdefault("edgebench", {})[part.record.edgebench_version] = None
        for variant in part.record.variants:
            if variant.engine and variant.engine_version:
                found.setdefault(variant.engine, {})[variant.engine_version] = None
    differing = [
        f"{one_line(name)} {one_line(commas(versions))}"
        for name, versions in found.items()
        if len(versions) > 1
    ]
    if differing:
        yield _("Versions differ: {versions}.", versions=semicolons(differing))


def _unfinished(data: ReportData) -> Iterator[Banner]:
    for part in data.parts:
        if part.record.status == "finished":
            continue
        measured = sum(
            1 for each in data.cells.values() if each.variant in part.variants and each.n
        )
        title = (
            _("The run of {run} was interrupted.", run=one_line(part.label))
            if part.record.status == "interrupted"
            else _(
                "The run of {run} has not finished: it is still running, or it was killed.",
                run=one_line(part.label),
            )
        )
        text = plural(
            "{count} of its cells has results so far.",
            "{count} of its cells have results so far.",
            measured,
        )
        yield Banner(title, text)


def _damaged(data: ReportData) -> Iterator[Banner]:
    for part in data.parts:
        if part.damaged_lines:
            title = plural(
                "{count} line of the trials of the run of {run} could not be read.",
                "{count} lines of the trials of the run of {run} could not be read.",
                part.damaged_lines,
                run=one_line(part.label),
            )
            yield Banner(title, _("What the rest holds is shown."))


def _lost(data: ReportData) -> Iterator[Banner]:
    """Runs that finished, and whose trials do not hold what their record counts."""
    for part in data.parts:
        if part.record.status != "finished":
            continue  # Its record counts nothing yet.
        counted = sum(each.n for each in part.record.cells)
        found = sum(each.n for each in data.cells.values() if each.variant in part.variants)
        empty = not any(each.variant in part.variants for each in data.run.trials)
        if not empty and counted - found <= part.damaged_lines:
            continue
        if not several(data):
            title = (
                _("{file} is missing or empty, though the run finished.", file=TRIALS_FILE)
                if empty
                else _("{file} is not whole, though the run finished.", file=TRIALS_FILE)
            )
        else:
            label = one_line(part.label)
            title = (
                _(
                    "{file} of the run of {run} is missing or empty, though the run finished.",
                    file=TRIALS_FILE,
                    run=label,
                )
                if empty
                else _(
                    "{file} of the run of {run} is not whole, though the run finished.",
                    file=TRIALS_FILE,
                    run=label,
                )
            )
        counts = plural(
            "{record} counts {count} result, {file} holds {found}.",
            "{record} counts {count} results, {file} holds {found}.",
            counted,
            record=RUN_FILE,
            file=TRIALS_FILE,
            found=found,
        )
        remedy = _("All figures are from it: copy the whole folder of the run, and report again.")
        # A run in which nothing could be loaded counts nothing, and still has its failures.
        yield Banner(title, paragraph((counts, remedy) if counted else (remedy,)))


def _notes(data: ReportData) -> Iterator[str]:
    # Late: what both load, nothing else here needs.
    from edgebench.reports.mixing import known_by_name_only  # noqa: PLC0415
    from edgebench.reports.selection.select import differing_requirements  # noqa: PLC0415

    records = [each.record for each in data.parts]
    differing = tuple(_protocols(data.parts))
    if differing:
        yield _(
            "The runs were made by different protocols: {differences}. Each row's flags are by its "
            "own run's.",
            differences=semicolons(differing),
        )
    if keys := differing_requirements(data):
        yield _(
            "The scenarios state different requirements ({keys}); none of them is used here.",
            keys=commas(keys),
        )
    if known_by_name_only(records):
        yield _(
            "That the runs are of the same weights is known only by the path that their scenarios "
            "name, and not by a hash."
        )


def _protocols(parts: Sequence[Part]) -> Iterator[str]:
    for name, (said, written) in _PROTOCOL.items():
        values = [getattr(each.record.protocol, name) for each in parts]
        if len(set(values)) > 1:
            texts = [f"{written(each.record.protocol)} ({one_line(each.label)})" for each in parts]
            yield _("{what} {values}", what=_(said), values=commas(texts))
