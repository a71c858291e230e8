"""One variant's values against those of the best of other frameworks, goal by goal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from edgebench.reports.format import CHANGE, RATIO
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import unstopped
from edgebench.reports.selection.comparison import order_of, ratio_of
from edgebench.reports.selection.goals import GOAL_NAMES, QUALITY, is_higher_better, written
from edgebench.reports.selection.view import Figures, Finding
from edgebench.reports.sentences import Name, fill, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.comparison import Order
    from edgebench.reports.selection.goals import Stands


_LEFT: Final = N_(" of those that meet the limits")

SAID: Final = {
    "decode_rate": {
        "first": N_(
            "It decodes fastest{scope}, {value} ({where}): {ratio} times the rate of {other}, the "
            "best of other frameworks."
        ),
        "ahead": N_(
            "It decodes {value} ({where}), faster than any variant of other frameworks{scope}: "
            "{ratio} times the rate of {other}, the best of these."
        ),
        "alike": N_(
            "It decodes {value} ({where}), which can't be told apart from {other}: {ratio} times "
            "its rate."
        ),
        "against": N_("It decodes {value} ({where}): {ratio} times the rate of {other}."),
        "alone": N_("It decodes {value} ({where})."),
    },
    "ttft_s": {
        "first": N_(
            "Its first token comes soonest{scope}, after {value} ({where}): {ratio} times as long "
            "as {other} takes, the best of other frameworks."
        ),
        "ahead": N_(
            "Its first token comes after {value} ({where}), sooner than any variant of other "
            "frameworks{scope}: {ratio} times as long as {other} takes, the best of these."
        ),
        "alike": N_(
            "Its first token comes after {value} ({where}), which can't be told apart from "
            "{other}: {ratio} times as long."
        ),
        "against": N_(
            "Its first token comes after {value} ({where}): {ratio} times as long as {other} takes."
        ),
        "alone": N_("Its first token comes after {value} ({where})."),
    },
    "peak_rss_bytes": {
        "first": N_(
            "It needs the least memory{scope}, {value} ({where}): {ratio} times as much as "
            "{other}, the best of other frameworks."
        ),
        "ahead": N_(
            "It needs {value} of memory ({where}), less than any variant of other "
            "frameworks{scope}: {ratio} times as much as {other}, the best of these."
        ),
        "alike": N_(
            "It needs {value} of memory ({where}), which can't be told apart from {other}: {ratio} "
            "times as much."
        ),
        "against": N_("It needs {value} of memory ({where}): {ratio} times as much as {other}."),
        "alone": N_("It needs {value} of memory ({where})."),
    },
    QUALITY: {
        "first": N_(
            "It rates the text best{scope}, with a perplexity of {value} ({where}): {ratio} "
            "against {other}, the best of other frameworks."
        ),
        "ahead": N_(
            "Its perplexity is {value} ({where}), lower than that of any variant of other "
            "frameworks{scope}: {ratio} against {other}, the best of these."
        ),
        "alike": N_(
            "Its perplexity is {value} ({where}), which can't be told apart from that of {other}: "
            "{ratio} against it."
        ),
        "against": N_("Its perplexity is {value} ({where}): {ratio} against {other}."),
        "alone": N_("Its perplexity is {value} ({where})."),
    },
    "energy_per_token_j": {
        "first": N_(
            "It needs the least energy{scope}, {value} ({where}): {ratio} times as much as "
            "{other}, the best of other frameworks."
        ),
        "ahead": N_(
            "It needs {value} ({where}), less than any variant of other frameworks{scope}: {ratio} "
            "times as much as {other}, the best of these."
        ),
        "alike": N_(
            "It needs {value} ({where}), which can't be told apart from {other}: {ratio} times as "
            "much."
        ),
        "against": N_("It needs {value} ({where}): {ratio} times as much as {other}."),
        "alone": N_("It needs {value} ({where})."),
    },
}
"""By goal: the best of all, one that a sibling is better than, one that can't be told apart from
the best of other frameworks, another one, one that is compared with nothing."""

KINDS: Final[Mapping[Order, str]] = {
    "better": "supports",
    "alike": "supports",
    "worse": "contradicts",
    "unsure": "note",
}


@dataclass(frozen=True, slots=True)
class Field:
    """What a variant is compared with.

    Attributes:
        frameworks: whose each variant is, of those that came through all workloads.
        meeting: those of them that are known to meet all limits.
    """

    frameworks: Mapping[str, tuple[str, str]]
    meeting: frozenset[str]


def goal_findings(
    data: ReportData, stands: Stands, variant: str, field: Field
) -> Iterator[Finding]:
    """What each goal says of a variant.

    Args:
        data: of one run or several.
        stands: of all variants.
        variant: which has a value of some workload.
        field: what it is compared with. What nobody has a value of is not told.
    """
    for goal, by_variant in stands.by_goal.items():
        stand = by_variant[variant]
        if stand.known:
            yield _compared(stands, goal, variant, field)
        elif any(each.known for each in by_variant.values()):
            yield from _in_part(data, stands, goal, variant)


def _in_part(data: ReportData, stands: Stands, goal: str, variant: str) -> Iterator[Finding]:
    """The values of the workloads that have one, or that there is none."""
    workloads = () if goal == QUALITY else stands.workloads
    found = {each: data.summary(each, variant, goal) for each in workloads}
    known = {
        name: each
        for name, each in found.items()
        if each and each.median is not None and not data.is_broken(name, variant)
    }
    for name, each in known.items():
        value = written(each, stands.scale(goal, [each.median or 0.0]))
        said = fill(SAID[goal]["alone"], value=value, where=Name(name))
        figures = Figures(goal, name, each.median, each.ci_low, each.ci_high, each.unit)
        yield Finding("note", said, figures=figures)
    # That it failed elsewhere is told by itself.
    if not known or any(data.cell(each, variant).n for each in found if each not in known):
        said = fill(
            "Its {goal} was not measured: {reason}.",
            goal=_(GOAL_NAMES[goal]),
            reason=unstopped(
                stands.by_goal[goal][variant].summary.reason or _("no reason was recorded")
            ),
        )
        yield Finding("unknown", said, figures=Figures(goal, _workload(stands, goal)))


def _workload(stands: Stands, goal: str) -> str:
    """The one workload that a goal's values are of; empty where there are several."""
    if goal == QUALITY:
        return stands.text
    return stands.workloads[0] if len(stands.workloads) == 1 else ""


def _compared(stands: Stands, goal: str, variant: str, field: Field) -> Finding:
    """The variant's value against that of the best of the other frameworks'."""
    value = stands.written(goal, variant)
    if goal == QUALITY and stands.against_reference:
        value = _("{value} against the reference", value=value)
    parts: dict[str, object] = {
        "value": value,
        "where": Name(stands.text) if goal == QUALITY else stands.where,
    }
    summary = stands.by_goal[goal][variant].summary
    figures = Figures(
        goal,
        _workload(stands, goal),
        summary.median,
        summary.ci_low,
        summary.ci_high,
        summary.unit,
    )
    other, scope = _rival(stands, goal, variant, field)
    alone = fill(SAID[goal]["alone"], **parts)
    if not other:
        note = _("No other framework was measured.")
        return Finding("note", joined([alone, (note,)]), figures=figures)
    ratio = ratio_of(stands, goal, variant, other)
    order = order_of(goal, ratio)
    figures = replace(
        figures,
        other=other,
        ratio=ratio.median,
        ratio_low=ratio.ci_low,
        ratio_high=ratio.ci_high,
    )
    if ratio.median is None:
        return Finding("note", alone, figures=figures)
    parts |= {
        "other": Name(other),
        "ratio": written(ratio, CHANGE if goal == QUALITY else RATIO),
        "scope": _(_LEFT) if scope else "",
    }
    better = order == "better" or (
        order == "unsure" and ratio.median != 1 and (ratio.median > 1) == is_higher_better(goal)
    )
    place = _place(stands, goal, variant, field, scoped=scope) if better else "against"
    said = fill(SAID[goal]["alike" if order == "alike" else place], **parts)
    if order == "unsure":
        doubt = (
            _("A hint only: there are too few windows of the text for an interval.")
            if goal == QUALITY
            else _("A hint only: there are too few repetitions for an interval.")
        )
        said = joined([said, (doubt,)])
    return Finding(KINDS[order], said, figures=figures)


def _others(stands: Stands, goal: str, variant: str, field: Field) -> list[str]:
    """All other variants that have a value."""
    by_variant = stands.by_goal[goal]
    return [each for each in field.frameworks if each != variant and by_variant[each].known]


def _rival(stands: Stands, goal: str, variant: str, field: Field) -> tuple[str, bool]:
    """The best of the other frameworks' variants, and whether a better one meets not all limits.

    What is known to meet the limits is held against what is known to meet them too, if anything is.
    """
    others = _others(stands, goal, variant, field)
    # One that failed somewhere belongs to no framework of the field: it is never compared.
    own = field.frameworks.get(variant)
    rivals = [each for each in others if field.frameworks[each] != own]
    meeting = [each for each in rivals if each in field.meeting]
    narrowed = variant in field.meeting and bool(meeting)
    best = min(
        meeting if narrowed else rivals,
        key=lambda each: _merit(stands, goal, each),
        default="",
    )
    outside = (each for each in others if each not in field.meeting)
    return best, narrowed and any(_is_ahead(stands, goal, each, variant) for each in outside)


def _place(stands: Stands, goal: str, variant: str, field: Field, *, scoped: bool) -> str:
    """Which sentence is true of one that is ahead of the best of the other frameworks' variants."""
    others = _others(stands, goal, variant, field)
    if scoped:
        others = [each for each in others if each in field.meeting]
    ahead = [each for each in others if _is_ahead(stands, goal, each, variant)]
    own = field.frameworks.get(variant)
    if any(field.frameworks[each] != own for each in ahead):
        # By pairs it is ahead, by medians it is not: neither sentence holds.
        return "against"
    return "ahead" if ahead else "first"


def _merit(stands: Stands, goal: str, variant: str) -> float:
    """Less is better."""
    value = stands.by_goal[goal][variant].value
    return -value if is_higher_better(goal) else value


def _is_ahead(stands: Stands, goal: str, one: str, other: str) -> bool:
    return _merit(stands, goal, one) < _merit(stands, goal, other)
