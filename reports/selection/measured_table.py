"""Every variant with what decides: limits, the front, the score, and the goals themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.metrics.statistics import MIN_BLOCKS
from edgebench.reports.colours import framework_colours
from edgebench.reports.engines import engine_text
from edgebench.reports.format import NOT_MEASURED, SHARE, Scale
from edgebench.reports.languages import _, plural
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import paragraph
from edgebench.reports.selection.goals import QUALITY, metric_of
from edgebench.reports.selection.score import contenders, score_text
from edgebench.reports.sentences import plain
from edgebench.reports.table import flag_meaning, flag_text
from edgebench.reports.table_model import Column, Row, Table, TableTexts, Value, Where
from edgebench.reports.table_values import ESTIMATED, value_of
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.cell import Flag, Summary
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.analysis import Analysis
    from edgebench.reports.selection.goals import Stand
    from edgebench.reports.sentences import Sentence

LIMITS, FRONT, SCORE, WINS = "limits", "front", "score", "wins"
_WORDS: Final = Scale("")

MANY: Final = 200
"""Up to so many variants the table shows all of them."""

SHOWN: Final = 100
"""Of more than that it shows the best of them: a page with thousands of rows opens slowly."""


class _Footnotes:
    """Numbers the reasons, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def number(self, reason: str) -> int:
        return self.texts.setdefault(reason, len(self.texts) + 1)


def measured_table(data: ReportData, analysis: Analysis) -> Table:
    """The table; those that are left stand first, by their score. Of very many the best ones."""
    order = _order(data, analysis)
    rest = max(0, len(order) - SHOWN) if len(order) > MANY else 0
    order = order[: len(order) - rest]
    stands = analysis.stands
    goals = {
        goal: by_variant
        for goal, by_variant in stands.by_goal.items()
        if any(each.known for each in by_variant.values())
    }
    columns = (
        *_decided(analysis),
        *(_column(analysis, goal, each) for goal, each in goals.items()),
    )
    notes = _Footnotes()
    records = {each.id: each for each in data.record.variants}
    places = {each: place for place, each in enumerate(data.variant_ids)}
    colours = framework_colours(data.record.variants)
    rows = tuple(
        replace(
            _row(data, analysis, variant, columns, goals, notes),
            engine=engine_text(records[variant]),
            place=places[variant],
            colour=colours[variant],
        )
        for variant in order
    )
    flags = dict.fromkeys(
        flag
        for workload in stands.workloads
        for variant in order
        for flag in data.cell(workload, variant).flags
    )
    return Table(
        key="selection",
        workload=_("The choice by measurements"),
        columns=columns,
        rows=rows,
        footnotes=tuple(notes.texts),
        remarks=tuple(
            (flag_text(flag), flag_meaning(flag, data.record.protocol)) for flag in flags
        ),
        texts=TableTexts(
            how=_("median, with its 95 % interval"),
            marked=_("the highest score, and what can't be told apart from it."),
            counted="n",
            rows=_("variant"),
        ),
        notes=tuple(_notes(analysis, rest)),
    )


def _decided(analysis: Analysis) -> tuple[Column, ...]:
    # Without a score there is no source of one.
    scores = analysis.scores.by_variant.values()
    sources = tuple(sorted({each.source for each in scores})) or ("derived",)
    return (
        Column(LIMITS, _("Limits met"), _("limits"), _WORDS, None, words=True),
        Column(FRONT, _("Dominated by"), _("dominated by"), _WORDS, None, words=True),
        Column(SCORE, _("Score"), _("score"), Scale(""), "higher", sources),
        Column(WINS, _("Share of resamples won"), _("wins"), SHARE, "higher", sources),
    )


def _column(analysis: Analysis, goal: str, by_variant: Mapping[str, Stand]) -> Column:
    known = metric(metric_of(goal))
    present = [each for each in by_variant.values() if each.known]
    ratio = goal == QUALITY and analysis.stands.against_reference
    return Column(
        key="perplexity_ratio" if ratio else known.key,
        label=_("Perplexity against the reference") if ratio else _(known.label),
        short=_("PPL vs ref.") if ratio else _(known.short),
        scale=analysis.stands.scale(goal, [each.value for each in present]),
        better=known.better,
        sources=tuple(sorted({each.summary.source for each in present})),
    )


def _order(data: ReportData, analysis: Analysis) -> list[str]:
    front = list(analysis.front)
    beaten = [each for each in analysis.left if each not in front]
    beaten.sort(key=lambda each: -analysis.scores.of(each))
    behind = [each for each in data.variant_ids if each in analysis.unknown]
    placed = {*front, *beaten, *behind}
    return [*front, *beaten, *behind, *(each for each in data.variant_ids if each not in placed)]


def _row(
    data: ReportData,
    analysis: Analysis,
    variant: str,
    columns: Sequence[Column],
    goals: Mapping[str, Mapping[str, Stand]],
    notes: _Footnotes,
) -> Row:
    flags = _flags(data, analysis.stands.workloads, variant)
    cells = [data.cell(each, variant) for each in analysis.stands.workloads]
    values = (
        _limits(analysis, variant, notes),
        _front(analysis, variant),
        *_scores(analysis, variant, notes),
        *(
            _value(analysis, goal, variant, column, flags, notes)
            for goal, column in zip(goals, columns[4:], strict=True)
        ),
    )
    return Row(
        variant=variant,
        engine="",
        place=0,
        repetitions=min((each.n for each in cells), default=0),
        remarks=(
            *((_("failed"),) if any(each.status == "failed" for each in cells) else ()),
            *(flag_text(each) for each in flags),
        ),
        failed=bool(cells) and all(each.status == "failed" for each in cells),
        values=values,
    )


def _flags(data: ReportData, workloads: Sequence[str], variant: str) -> tuple[Flag, ...]:
    found = (flag for each in workloads for flag in data.cell(each, variant).flags)
    return tuple(dict.fromkeys(found))


def _limits(analysis: Analysis, variant: str, notes: _Footnotes) -> Value:
    why = analysis.excluded.get(variant) or analysis.unknown.get(variant)
    doubtful = [
        each.sentence
        for each in analysis.checks[variant]
        if each.state in ("meets_by_median", "limited")
    ]
    if variant in analysis.excluded:
        failing = any(each.fails for each in analysis.checks[variant])
        text = _("no") if failing else _("failed") if variant in analysis.failed else _("out")
    elif variant in analysis.unknown:
        text = _("not known")
    else:
        given = analysis.limits_given
        text = _("yes, in doubt") if doubtful else _("yes") if given else _("none given")
        why = tuple(doubtful)
    reason = _reason(why or ())
    return Value(text, footnote=notes.number(reason) if reason else None, reason=reason)


def _reason(sentences: Sequence[Sentence]) -> str:
    return paragraph(one_line(plain(each)) for each in sentences)


def _front(analysis: Analysis, variant: str) -> Value:
    if variant not in analysis.left:
        return Value(NOT_MEASURED, reason=_("it is not among those left to choose from"))
    by = analysis.dominated_by[variant]
    return Value(by or _("none"))


def _scores(analysis: Analysis, variant: str, notes: _Footnotes) -> tuple[Value, Value]:
    if variant not in analysis.left:
        reason = _("it is not among those left to choose from")
        number = notes.number(reason)
        gone = Value(NOT_MEASURED, unit="1", footnote=number, reason=reason)
        return gone, gone
    score = analysis.scores.by_variant[variant]
    text = score_text(score)
    wins = analysis.scores.wins
    best = _is_best(analysis, variant)
    value = Value(
        text=text.value,
        interval=text.interval,
        sort=score.median,
        low=score.ci_low,
        high=score.ci_high,
        unit="1",
        n=score.n,
        source=score.source,
        chip=_(ESTIMATED) if score.source == ESTIMATED else "",
        best=best,
    )
    if wins is None:
        reason = _("an interval needs {count} blocks", count=MIN_BLOCKS)
        return value, Value(NOT_MEASURED, unit="1", footnote=notes.number(reason), reason=reason)
    if variant not in wins:
        reason = _("it is dominated, so it is not among those that can win")
        return value, Value(NOT_MEASURED, unit="1", footnote=notes.number(reason), reason=reason)
    share = wins[variant]
    return value, Value(text=f"{100 * share:.1f}", sort=share, unit="1", source=score.source)


def _is_best(analysis: Analysis, variant: str) -> bool:
    if len(analysis.left) == 1 or analysis.certainty == "unsure":
        return False
    if analysis.certainty == "sure":
        return variant == analysis.best
    return variant in contenders(analysis.best, analysis.scores)


def _value(
    analysis: Analysis,
    goal: str,
    variant: str,
    column: Column,
    flags: Sequence[Flag],
    notes: _Footnotes,
) -> Value:
    summary: Summary = analysis.stands.by_goal[goal][variant].summary
    where = _where(analysis, goal, variant, column)
    if summary.median is None:
        reason = one_line(recorded(summary.reason or "") or _("no reason was recorded"))
        return Value(
            NOT_MEASURED,
            unit=summary.unit,
            footnote=notes.number(reason),
            reason=reason,
            where=where,
        )
    value = value_of(summary, column.scale)
    reason = "" if value.interval else one_line(recorded(summary.reason or ""))
    return replace(
        value,
        chip=_(summary.source) if len(column.sources) > 1 else value.chip,
        flags=() if goal == QUALITY else tuple(flag_text(each) for each in flags),
        footnote=notes.number(reason) if reason else None,
        reason=reason,
        where=where,
    )


def _where(analysis: Analysis, goal: str, variant: str, column: Column) -> Where | None:
    """The cell behind a value; none where it is of several workloads."""
    if goal == QUALITY:
        return Where(analysis.stands.text, variant, column.key) if analysis.stands.text else None
    workloads = analysis.stands.workloads
    return Where(workloads[0], variant, column.key) if len(workloads) == 1 else None


def _notes(analysis: Analysis, rest: int) -> tuple[str, ...]:
    stands = analysis.stands
    found = []
    if rest:
        found.append(
            plural(
                "The best {shown} are shown; {count} more variant is left out here, and is in "
                "`edgebench select --json`.",
                "The best {shown} are shown; {count} more variants are left out here, and are in "
                "`edgebench select --json`.",
                rest,
                shown=SHOWN,
            )
        )
    found += [
        _(
            "The score is the weighted geometric mean of each value relative to the best of those "
            "left: 1 is the best in everything. Its interval, and the share of wins, resample the "
            "blocks of the run, the same ones for all variants."
        )
    ]
    if len(stands.workloads) > 1:
        found.append(
            _(
                "Rates, times, memory and energy are geometric means over {count} workloads; a "
                "limit must hold on each of them.",
                count=len(stands.workloads),
            )
        )
    elif stands.workloads:
        found.append(
            _("Rates, times, memory and energy are those on {workload}.", workload=stands.where)
        )
    if stands.text:
        found.append(_("Perplexity is that on {workload}.", workload=one_line(stands.text)))
    return tuple(found)
