"""The documents' figures against ours: how far apart they are, and what differs between the two.

It states what is known of both sides and guesses at no cause: where a document does not say on
which device or with which text it got a figure, that is what differs.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from edgebench.reports.document_figures import Pair, format_pairs, framework_pairs
from edgebench.reports.engines import made_up_text
from edgebench.reports.format import CHANGE, Shown, number, percent, shown
from edgebench.reports.formats_quoted import published_formats_table
from edgebench.reports.framework_choice import standings
from edgebench.reports.frameworks_table import (
    framework_name,
)
from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas, day_text, semicolons
from edgebench.reports.physics import (
    platform_checks,
    speedup_checks,
)
from edgebench.reports.published.cells import chip, words_column
from edgebench.reports.published.load import (
    published_frameworks,
)
from edgebench.reports.sentences import fill
from edgebench.reports.table_model import Row, Table, TableTexts, Value
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.reports.data import ReportData
    from edgebench.reports.sentences import Sentence

MOST_OF_BOUND = 0.99
"""Of the speed-up that reading fewer bytes allows; above it nothing else may take any time."""


@dataclass(frozen=True, slots=True)
class DocumentNotes:
    """The documents against this run.

    Attributes:
        tables: a row a figure that has a counterpart in this run, where any has one; then the
            chapter's formats as printed.
        notes: what differs between the two sides, and what can't be right in a document; a
            sentence or two each.
    """

    tables: tuple[Table, ...]
    notes: tuple[Sentence, ...]


def document_notes(data: ReportData) -> DocumentNotes:
    """Every figure of the documents that has a counterpart in this run, and what to know of it."""
    found = (
        ("frameworks", _("The chapter's frameworks, against this run"), framework_pairs(data)),
        ("formats", _("The chapter's formats, against this run"), format_pairs(data)),
    )
    made_up = commas(dict.fromkeys(filter(None, map(made_up_text, data.record.variants))))
    tables = tuple(
        _table(f"documents-{key}", title, pairs, made_up) for key, title, pairs in found if pairs
    )
    return DocumentNotes((*tables, published_formats_table()), (*_conditions(data), *_physics()))


def _table(key: str, title: str, pairs: Sequence[Pair], made_up: str) -> Table:
    columns = (
        words_column("published", _("Published"), _("published")),
        words_column("own", _("This run"), _("this run")),
        words_column("ratio", _("This run / published"), _("ratio")),
        words_column("agreement", _("Published, against our 95 % interval"), _("our interval")),
        words_column("differs", _("What differs: published, this run"), _("what differs")),
    )
    shared = _shared(pairs)
    same = (_("In every row: {differs}.", differs=semicolons(shared)),) if shared else ()
    return Table(
        key=key,
        workload=title,
        columns=columns,
        rows=tuple(_row(place, each, shared, made_up) for place, each in enumerate(pairs)),
        footnotes=(),
        remarks=(),
        texts=TableTexts(
            how=_("median, with its 95 % interval"), marked="", counted="", rows=_("figure")
        ),
        notes=(
            _(
                "Ratios say how far apart two figures are that were got under different "
                "conditions, and not who is right."
            ),
            *same,
        ),
    )


def _shared(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """What differs in every one of several rows, which is told once."""
    if len(pairs) == 1:
        return ()
    return tuple(
        each for each in pairs[0].differs if all(each in other.differs for other in pairs[1:])
    )


def _row(place: int, pair: Pair, shared: Sequence[str], made_up: str) -> Row:
    document = published_frameworks().document
    text = _ours(pair)
    last = pair.last or pair.own
    assert pair.own.median is not None
    # A change has its zero where nothing changes, so that a ratio of two of them says nothing.
    ratio = "" if pair.scale is CHANGE else _ratio(pair)
    return Row(
        variant=pair.what,
        engine=made_up,
        place=place,
        repetitions=min(pair.own.n, last.n),
        remarks=(),
        failed=False,
        values=(
            Value(
                pair.published,
                sort=(pair.low + pair.high) / 2,
                unit=pair.own.unit,
                chip=_("computed from published") if pair.computed else chip(document),
                origin="published",
                document=document,
            ),
            Value(
                f"{text.value}{pair.scale.suffix}",
                interval=text.interval,
                sort=pair.own.median,
                low=pair.own.ci_low,
                high=last.ci_high,
                unit=pair.own.unit,
                n=min(pair.own.n, last.n),
                source=pair.own.source,
                where=pair.where,
            ),
            Value(ratio),
            Value(_agreement(pair)),
            Value(semicolons(each for each in pair.differs if each not in shared)),
        ),
    )


def _ours(pair: Pair) -> Shown:
    """Ours without its unit: of a range the lowest and the highest, and the outer ends."""
    low = shown(pair.own, pair.scale)
    if pair.last is None:
        return low
    high = shown(pair.last, pair.scale)
    value = low.value if low.value == high.value else f"{low.value}–{high.value}"
    if not low.interval or not high.interval:
        return Shown(value)
    first, last = low.interval.partition(", ")[0], high.interval.rpartition(", ")[2]
    return Shown(value, f"{first}, {last}")


def _ratio(pair: Pair) -> str:
    last = pair.last or pair.own
    assert pair.own.median is not None
    assert last.median is not None
    lower, upper = pair.own.median / pair.high, last.median / pair.low
    low, high = (f"{each:#.2g}" if each < 1 else number(each, 2) for each in (lower, upper))
    return low if low == high else f"{low}–{high}"


def _agreement(pair: Pair) -> str:
    low, high = pair.own.ci_low, (pair.last or pair.own).ci_high
    if low is None or high is None:
        return _("ours has no interval")
    if pair.high < low:
        return _("published is below it")
    if pair.low > high:
        return _("published is above it")
    return _("published is inside it") if pair.low == pair.high else _("they overlap")


def _conditions(data: ReportData) -> Iterator[Sentence]:
    table = published_frameworks()
    machines = dict.fromkeys(one_line(each.record.machine.cpu_model) for each in data.parts)
    dates = dict.fromkeys(_day(each.record.created_at) for each in data.parts)
    versions = dict.fromkeys(
        f"{each.engine} {(each.engine_version or '').partition(' (')[0]}".strip()
        for each in data.record.variants
        if each.engine
    )
    yield fill(
        "The documents' figures are of {model}; they name neither versions, threads, prompts nor "
        "repetitions, and give no intervals. This run is of {machines}, {dates}, with {versions}; "
        "its conditions stand in its method.",
        model=table.model,
        machines=commas(machines),
        dates=commas(dates),
        versions=commas(map(one_line, versions))
        if versions
        else _("no framework that was reached"),
    )
    silent = [
        framework_name(str(row.framework))
        for row in table.rows
        if not any(each.key == row.framework and each.chosen for each in standings(data))
    ]
    if silent:
        yield fill(
            "Of {frameworks} this run has no figures to set against the documents'.",
            frameworks=commas(silent),
        )


def _day(moment: str) -> str:
    """The day of a recorded time in words; as it was recorded where it can't be read."""
    try:
        return day_text(date.fromisoformat(moment[:10]))
    except ValueError:
        return one_line(moment)


def _physics() -> Iterator[Sentence]:
    checks = platform_checks()
    wrong = sum(each.verdict != "possible" for each in checks)
    if wrong:
        yield fill(
            "{count} of the {all} published rates of platforms can't be as they stand: "
            "{section} says why, at each of them.",
            count=wrong,
            all=len(checks),
            section=_("Platforms"),
        )
    for each in speedup_checks():
        reached = each.speedup / each.bound
        if reached > 1:
            yield fill(
                "Published for {format}: {speedup} times the speed of FP16, more than the {bound} "
                "times that reading fewer bytes allows.",
                format=each.format,
                speedup=number(each.speedup, 1),
                bound=number(each.bound, 2),
            )
        elif reached >= MOST_OF_BOUND:
            yield fill(
                "Published for {format}: {speedup} times the speed of FP16, which is {share} of "
                "the {bound} times that reading fewer bytes allows at most; nothing but reading "
                "weights would take any time.",
                format=each.format,
                speedup=number(each.speedup, 1),
                share=percent(reached),
                bound=number(each.bound, 2),
            )
