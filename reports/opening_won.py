"""The second sentence of a report: what won where, by how much, how surely, at what price."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.quality.cell import windows_by_variant
from edgebench.reports.answer import best_variants
from edgebench.reports.broken import broken_text
from edgebench.reports.data import paired_ratio
from edgebench.reports.differences import change_of, compared
from edgebench.reports.format import CHANGE, number, scale_for, shown
from edgebench.reports.formats import base_of, without_reference
from edgebench.reports.languages import N_, _
from edgebench.reports.opening_words import (
    NAMED_AT_MOST,
    capital,
    in_a_row,
    named,
    places,
    with_and,
)
from edgebench.reports.quality import quality_summaries
from edgebench.reports.quantization import main_quality
from edgebench.reports.sentences import Name, Sentence, fill

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.cell import Summary
    from edgebench.reports.data import ReportData

TIES_AT_MOST = 2
"""Told with all their names; of more it is counted who can't be told apart."""

OUTCOMES_AT_MOST = 2
"""Of one metric; how it ends on further workloads stands in the short answers."""


@dataclass(frozen=True, slots=True)
class _Words:
    """What is said of one metric; all messages, to be looked up.

    Attributes:
        wins: what the best one does, with the field ``figures``.
        by: its figures and its lead, with the fields ``figures`` and ``ratio``.
        tied: what several can't be told apart in.
        name: the metric's, within a sentence.
        alone: what a variant has that nothing is compared with.
    """

    wins: str
    by: str
    tied: str
    alone: str
    name: str


_SAID = {
    "decode_rate": _Words(
        N_("decodes fastest ({figures})"),
        N_("{figures}; {ratio} times the next"),
        N_("decode rate (about {figures})"),
        N_("a decode rate of {figures}"),
        N_("decode rate"),
    ),
    "ttft_s": _Words(
        N_("gives the first token soonest ({figures})"),
        N_("{figures}; the next takes {ratio} times as long"),
        N_("time to first token (about {figures})"),
        N_("a time to first token of {figures}"),
        N_("time to first token"),
    ),
    "peak_rss_bytes": _Words(
        N_("needs the least memory ({figures})"),
        N_("{figures}; the next needs {ratio} times as much"),
        N_("peak memory (about {figures})"),
        N_("a peak memory of {figures}"),
        N_("peak memory"),
    ),
}
"""By metric, in the order in which they are told."""

_HIGHER = frozenset({"decode_rate"})


@dataclass(frozen=True, slots=True)
class _Claim:
    """How one metric ended on some workloads.

    Attributes:
        kind: ``sure``; ``unsure``, without the intervals to tell; ``tie``; or ``alone``, with
            nothing to compare with.
        best: who is best, and who can't be told apart from it, best first.
    """

    key: str
    kind: str
    best: tuple[str, ...]
    workloads: tuple[str, ...]


def won(data: ReportData) -> Sentence:
    """Who decodes fastest, answers soonest and needs the least memory, and what that costs."""
    found = {key: _claims_of(data, key) for key in _SAID}
    claims = [each for own in found.values() for each in own[:OUTCOMES_AT_MOST]]
    broken = data.broken(data.workload_names)
    if not claims and broken:
        return fill("Nothing won: {who} is {left_out}.", who=named(broken), left_out=broken_text())
    if not claims:
        return (_no_winner(data),)
    if len(data.variant_ids) == 1:
        return fill(
            "One variant alone was measured, so nothing won; it has {values}.",
            values=with_and([_alone(data, each) for each in claims]),
        )
    ties = [each for each in claims if each.kind == "tie"]
    if len(ties) > TIES_AT_MOST:
        leads = [each for each in claims if each.kind != "tie"]
        said = [_of_ties(data, ties), *_of_all(data, leads)]
    else:
        said = _of_all(data, claims)
    if any(len(own) > OUTCOMES_AT_MOST for own in found.values()):
        said.append((_("on other workloads it ends otherwise, see In short"),))
    if broken:
        said.append(fill("{who} is {left_out}", who=named(broken), left_out=broken_text()))
    if price := _price(data, claims):
        said.append(price)
    return fill("{clauses}.", clauses=capital(in_a_row(said, _("; "))))


def _claims_of(data: ReportData, key: str) -> list[_Claim]:
    """How one metric ended, that of the most workloads first."""
    groups: dict[tuple[str, frozenset[str]], list[str]] = {}
    bests: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    for workload in data.workload_names:
        summaries = data.summaries(workload, key)
        if not summaries:
            continue
        best, known = best_variants(summaries, key)
        if len(summaries) == 1:
            kind = "alone"
        elif len(best) > 1:
            kind = "tie"
        else:
            kind = "sure" if known else "unsure"
        outcome = (kind, frozenset(best))
        groups.setdefault(outcome, []).append(workload)
        bests.setdefault(outcome, best)
    ranked = sorted(groups.items(), key=lambda each: -len(each[1]))
    return [_Claim(key, each[0], bests[each], tuple(where)) for each, where in ranked]


def _of_all(data: ReportData, claims: Sequence[_Claim]) -> list[Sentence]:
    """A clause for each set of workloads; what ends alike there stands together."""
    # Where every lead is sure, that is told once, at the end.
    at_end = len(claims) > 1 and all(each.kind == "sure" for each in claims)
    where: dict[tuple[str, ...], dict[tuple[str, frozenset[str]], list[_Claim]]] = {}
    for each in claims:
        outcomes = where.setdefault(each.workloads, {})
        outcomes.setdefault((each.kind, frozenset(each.best)), []).append(each)
    clauses = []
    for workloads, outcomes in where.items():
        parts = [_predicate(data, own, remarked=not at_end) for own in outcomes.values()]
        what = parts[0]
        for part in parts[1:]:
            what = fill("{clause}, and {last}", clause=what, last=part)
        clauses.append(fill("on {where}, {what}", where=places(data, workloads), what=what))
    if at_end and len(clauses) == 1:
        return [
            fill("{clause}, each with a 95 % interval apart from all others'", clause=clauses[0])
        ]
    if at_end:
        clauses.append((_("each of these leads has a 95 % interval apart from all others'"),))
    return clauses


def _of_ties(data: ReportData, ties: Sequence[_Claim]) -> Sentence:
    """That nobody leads in some metrics, and how many share the first place where."""
    metrics = []
    for key in dict.fromkeys(each.key for each in ties):
        cases = [
            fill(
                "{count} variants can't be told apart on {where}, at about {figures}",
                count=len(each.best),
                where=places(data, each.workloads),
                figures=_figures(data, each),
            )
            for each in ties
            if each.key == key
        ]
        name = _(_SAID[key].name)
        metrics.append(fill("{metric} ({cases})", metric=name, cases=in_a_row(cases, _("; "))))
    return fill("nobody leads in {metrics}", metrics=with_and(metrics))


def _predicate(data: ReportData, claims: Sequence[_Claim], *, remarked: bool) -> Sentence:
    """What is said of those who are best in one or several metrics on the same workloads."""
    kind, best = claims[0].kind, claims[0].best
    if kind == "alone":
        values = with_and([_alone(data, each) for each in claims])
        return fill("only {who} was measured, with {values}", who=Name(best[0]), values=values)
    if kind == "tie":
        metrics = [fill(_SAID[each.key].tied, figures=_figures(data, each)) for each in claims]
        return fill(
            "{who} can't be told apart in {metrics}, for the 95 % intervals overlap",
            who=named(best),
            metrics=with_and(metrics),
        )
    what = fill(
        "{who} {wins}", who=Name(best[0]), wins=with_and([_win(data, each) for each in claims])
    )
    if kind == "unsure":
        return fill("{clause}, a hint only from too few repetitions", clause=what)
    if not remarked:
        return what
    if len(claims) == 1:
        return fill("{clause}, with a 95 % interval apart from all others'", clause=what)
    return fill("{clause}, each with a 95 % interval apart from all others'", clause=what)


def _win(data: ReportData, claim: _Claim) -> Sentence:
    words, figures = _SAID[claim.key], _figures(data, claim)
    ratios = [_lead(data, each, claim) for each in claim.workloads] if claim.kind == "sure" else []
    known = [number(each, 2) for each in ratios if each is not None]
    if known and len(known) == len(ratios):
        figures = fill(words.by, figures=figures, ratio=_each_of(known))
    return fill(words.wins, figures=figures)


def _alone(data: ReportData, claim: _Claim) -> Sentence:
    return fill(_SAID[claim.key].alone, figures=_figures(data, claim))


def _lead(data: ReportData, workload: str, claim: _Claim) -> float | None:
    """By how many times the best one is ahead of the next one, the median of blocks."""
    leader = claim.best[0]
    summaries = data.summaries(workload, claim.key)
    del summaries[leader]
    second = best_variants(summaries, claim.key)[0][0]
    pair = (leader, second) if claim.key in _HIGHER else (second, leader)
    return paired_ratio(data.run.trials, workload, claim.key, *pair)


def _figures(data: ReportData, claim: _Claim) -> Sentence:
    """The best one's medians: each with its workload, of many the lowest and the highest."""
    medians: dict[str, Summary] = {}
    for workload in claim.workloads:
        summary = data.summary(workload, claim.best[0], claim.key)
        if summary is not None and summary.median is not None:
            medians[workload] = summary
    texts = {each: _figure(summary) for each, summary in medians.items()}
    if len(set(texts.values())) == 1:
        return (next(iter(texts.values())),)
    if len(texts) <= NAMED_AT_MOST:
        each_one = [
            fill("{figure} on {workload}", figure=text, workload=Name(workload))
            for workload, text in texts.items()
        ]
        return in_a_row(each_one, _(", "))
    ranked = sorted(medians, key=lambda each: medians[each].median or 0.0)
    low, high = (
        fill("{figure} on {workload}", figure=texts[each], workload=Name(each))
        for each in (ranked[0], ranked[-1])
    )
    return fill("from {low} to {high}, of {count} workloads", low=low, high=high, count=len(texts))


def _figure(summary: Summary) -> str:
    """A median as the short answer writes it, with no more digits than its interval has."""
    scale = scale_for(summary.unit, [summary.median])
    return f"{shown(summary, scale).value}{scale.suffix}"


def _each_of(ratios: Sequence[str]) -> Sentence:
    """Ratios in the order of their workloads; of many the lowest and the highest."""
    if len(set(ratios)) == 1:
        return (ratios[0],)
    if len(ratios) <= NAMED_AT_MOST:
        return with_and([(each,) for each in ratios])
    low, *_middle, high = sorted(ratios, key=float)
    return fill("{low} to {high}", low=low, high=high)


# What the winners lose in quality


def _price(data: ReportData, claims: Sequence[_Claim]) -> Sentence:
    """What the perplexity of those who lead is; empty where no text was rated."""
    winners = dict.fromkeys(name for each in claims for name in each.best[:NAMED_AT_MOST])
    workload = main_quality(data)
    if workload is None:
        return ()
    ratios, whose = _ratios(data, winners)
    known = {each: ratio for each, ratio in ratios.items() if ratio.median is not None}
    if not known:
        return ()
    items = [
        fill("{change} with {who}", change=_change(ratio), who=Name(each))
        for each, ratio in list(known.items())[:NAMED_AT_MOST]
    ]
    unknown = [each for each in winners if each not in known and whose != (Name(each),)]
    if unknown:
        items.append(fill("not known with {who}", who=named(unknown)))
    return fill(
        "against {whose}, perplexity on {text} is {changes}",
        text=Name(workload.name),
        whose=whose,
        changes=with_and(items),
    )


def _ratios(data: ReportData, winners: Mapping[str, None]) -> tuple[dict[str, Summary], Sentence]:
    """By winner, its perplexity over that of the reference, else of the base; and whose it is."""
    workload = main_quality(data)
    assert workload is not None
    assert workload.quality is not None
    summaries = quality_summaries(data, workload.name, workload.quality).get("perplexity_ratio", {})
    found = {each: ratio for each in winners if (ratio := summaries.get(each)) is not None}
    if any(each.median is not None for each in found.values()):
        return found, fill("the reference")
    windows = windows_by_variant(data.run.trials, workload.name, workload.quality)
    base = base_of(data.record.variants, windows, alone=without_reference(workload))
    if base is None or base.id not in windows:
        return {}, ()
    return {
        each: change_of(compared(windows[each], windows[base.id]))
        for each in winners
        if each in windows and each != base.id
    }, (Name(base.id),)


def _change(ratio: Summary) -> str:
    text = shown(ratio, CHANGE)
    return f"{text.value}{CHANGE.suffix} {text.interval}".rstrip()


def _no_winner(data: ReportData) -> str:
    if _any_value(data, data.quality_names):
        return _("Texts were rated and no speed was compared: see Quality for what won.")
    if _any_value(data, data.task_names):
        return _("Whole tasks were measured, of which nothing is ranked.")
    return _("Nothing won: no speed and no memory was measured.")


def _any_value(data: ReportData, workloads: Sequence[str]) -> bool:
    return any(data.cell(each, v).n for each in workloads for v in data.variant_ids)
