"""One variant's values against those of the best of the others, goal by goal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.format import CHANGE, Scale
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import unstopped
from edgebench.reports.selection.comparison import order_of, ratio_of
from edgebench.reports.selection.goals import GOAL_NAMES, QUALITY, is_higher_better, written
from edgebench.reports.selection.view import Finding
from edgebench.reports.sentences import Name, fill, joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.reports.selection.comparison import Order
    from edgebench.reports.selection.goals import Stands

RATIO: Final = Scale("")

SAID: Final = {
    "decode_rate": {
        "better": N_(
            "It decodes fastest, {value} ({where}): {ratio} times the rate of {other}, the next."
        ),
        "alike": N_(
            "It decodes {value} ({where}), which can't be told apart from {other}: {ratio} times "
            "its rate."
        ),
        "worse": N_("It decodes {value} ({where}): {ratio} times the rate of {other}."),
        "alone": N_("It decodes {value} ({where})."),
    },
    "ttft_s": {
        "better": N_(
            "Its first token comes soonest, after {value} ({where}): {ratio} times as long as "
            "{other}, the next, takes."
        ),
        "alike": N_(
            "Its first token comes after {value} ({where}), which can't be told apart from "
            "{other}: {ratio} times as long."
        ),
        "worse": N_(
            "Its first token comes after {value} ({where}): {ratio} times as long as {other} takes."
        ),
        "alone": N_("Its first token comes after {value} ({where})."),
    },
    "peak_rss_bytes": {
        "better": N_(
            "It needs the least memory, {value} ({where}): {ratio} times as much as {other}, the "
            "next."
        ),
        "alike": N_(
            "It needs {value} of memory ({where}), which can't be told apart from {other}: {ratio} "
            "times as much."
        ),
        "worse": N_("It needs {value} of memory ({where}): {ratio} times as much as {other}."),
        "alone": N_("It needs {value} of memory ({where})."),
    },
    QUALITY: {
        "better": N_(
            "It rates the text best, with a perplexity of {value} ({where}): {ratio} against "
            "{other}, the next."
        ),
        "alike": N_(
            "Its perplexity is {value} ({where}), which can't be told apart from that of {other}: "
            "{ratio} against it."
        ),
        "worse": N_("Its perplexity is {value} ({where}): {ratio} against {other}."),
        "alone": N_("Its perplexity is {value} ({where})."),
    },
    "energy_per_token_j": {
        "better": N_(
            "It needs the least energy, {value} ({where}): {ratio} times as much as {other}, the "
            "next."
        ),
        "alike": N_(
            "It needs {value} ({where}), which can't be told apart from {other}: {ratio} times as "
            "much."
        ),
        "worse": N_("It needs {value} ({where}): {ratio} times as much as {other}."),
        "alone": N_("It needs {value} ({where})."),
    },
}
"""By goal: the best, one that can't be told apart from the best, another one, the only one."""

KINDS: Final[Mapping[Order, str]] = {
    "better": "supports",
    "alike": "supports",
    "worse": "contradicts",
    "unsure": "unknown",
}


def goal_findings(
    stands: Stands, variant: str, rivals: Sequence[str], *, weighed: Sequence[str]
) -> Iterator[Finding]:
    """What each goal says of a variant.

    Args:
        stands: of all variants.
        variant: which has a value of some goal.
        rivals: the variants that it is compared with; in each goal the best of them counts.
        weighed: goals that the user gave a weight. What nobody has a value of is told of them
            alone.
    """
    for goal, by_variant in stands.by_goal.items():
        stand = by_variant[variant]
        if not stand.known:
            if goal in weighed or any(each.known for each in by_variant.values()):
                yield _not_measured(goal, stand.summary.reason)
            continue
        known = [each for each in rivals if by_variant[each].known]
        yield _compared(stands, goal, variant, known)


def _not_measured(goal: str, reason: str | None) -> Finding:
    said = fill(
        "Its {goal} was not measured: {reason}.",
        goal=_(GOAL_NAMES[goal]),
        reason=unstopped(reason or _("no reason was recorded")),
    )
    return Finding("unknown", said)


def _compared(stands: Stands, goal: str, variant: str, rivals: Sequence[str]) -> Finding:
    """The variant's value against that of the best of the others."""
    value = stands.written(goal, variant)
    if goal == QUALITY and stands.against_reference:
        value = _("{value} against the reference", value=value)
    parts: dict[str, object] = {
        "value": value,
        "where": Name(stands.text) if goal == QUALITY else stands.where,
    }
    if not rivals:
        said = fill(SAID[goal]["alone"], **parts)
        note = _("Nothing else was measured to compare it with.")
        return Finding("unknown", joined([said, (note,)]))
    sign = -1 if is_higher_better(goal) else 1
    other = min(rivals, key=lambda each: sign * stands.by_goal[goal][each].value)
    ratio = ratio_of(stands, goal, variant, other)
    order = order_of(goal, ratio)
    scale = CHANGE if goal == QUALITY else RATIO
    parts |= {"other": Name(other), "ratio": written(ratio, scale)}
    if order != "unsure":
        return Finding(KINDS[order], fill(SAID[goal][order], **parts))
    if ratio.median is None:
        return Finding("unknown", fill(SAID[goal]["alone"], **parts))
    ahead = (ratio.median > 1) == is_higher_better(goal) and ratio.median != 1
    said = fill(SAID[goal]["better" if ahead else "worse"], **parts)
    doubt = _("A hint only: there are too few repetitions for an interval.")
    return Finding("unknown", joined([said, (doubt,)]))
