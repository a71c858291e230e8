"""Where a tree and the measurements lead to different frameworks, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.format import RATIO, shown
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import N_, _
from edgebench.reports.languages.words import commas
from edgebench.reports.selection.analysis import TESTING_RUNNER
from edgebench.reports.selection.comparison import order_of, ratio_of, score_ratio
from edgebench.reports.selection.goals import GOAL_NAMES, is_higher_better, stands_of, with_source
from edgebench.reports.selection.naming import named
from edgebench.reports.sentences import Name, fill, joined, listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.results.cell import Summary
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.goals import Stands
    from edgebench.reports.selection.view import Evidence, Excluded, Measured, Walk
    from edgebench.reports.sentences import Sentence

SPEED_QUESTION: Final = "fixed_model"
"""Whose answer yes is the tree's claim that what it leads to is the fastest."""

SPEED: Final = "decode_rate"


def disagreements(
    data: ReportData,
    walks: Sequence[Walk],
    measured: Measured,
    evidence: Sequence[Evidence],
) -> tuple[Sentence, ...]:
    """A sentence or two for each tree that leads elsewhere than the measurements, and why.

    Args:
        data: of one run or several.
        walks: the trees with the ways through them; those without a recommendation say nothing.
        measured: the measurements' own answer.
        evidence: of every framework that a tree recommends, among others.

    Returns:
        Also one for a tree that claims the utmost speed for what is not the fastest here.
    """
    decided: dict[str, list[Walk]] = {}
    for walk in walks:
        if walk.recommendation:
            decided.setdefault(walk.recommendation, []).append(walk)
    if not decided or all(each.runner == TESTING_RUNNER for each in data.record.variants):
        return ()
    stands = stands_of(data)
    found = []
    for runner, own_walks in decided.items():
        own = _evidence_of(evidence, runner)
        if runner != measured.recommendation:
            found.append(_why(own_walks, own, measured, stands))
        claim = _claim(data, own_walks, measured, stands)
        if claim:
            found.append(claim)
    return tuple(found)


def _evidence_of(evidence: Sequence[Evidence], runner: str) -> Evidence | None:
    """What is known of the recommended one: of several that its runner drove, one that ran."""
    own = [each for each in evidence if each.runner == runner]
    return next((each for each in own if each.ran), own[0] if own else None)


def _why(
    walks: Sequence[Walk], own: Evidence | None, measured: Measured, stands: Stands
) -> Sentence:
    lead = _lead(walks, own)
    if measured.recommendation:
        lead = fill(
            "{tree}, the measurements to {named}.",
            tree=lead,
            named=named(measured),
        )
    else:
        lead = fill("{tree}, but the measurements recommend nothing.", tree=lead)
    return joined([lead, *_reasons(walks, own, measured, stands)])


def _trees(walks: Sequence[Walk]) -> Sentence:
    return listed([each.name for each in walks])


def _lead(walks: Sequence[Walk], own: Evidence | None) -> Sentence:
    """Where the trees lead to, as the beginning of a sentence."""
    name = framework_name(walks[0].recommendation)
    many = len(walks) > 1
    if own is not None and own.ran and own.framework != name:
        message = (
            N_("The trees {tree} lead to {framework}, for which {other} ran here")
            if many
            else N_("The tree {tree} leads to {framework}, for which {other} ran here")
        )
        return fill(message, tree=_trees(walks), framework=name, other=own.framework)
    message = (
        N_("The trees {tree} lead to {framework}")
        if many
        else N_("The tree {tree} leads to {framework}")
    )
    return fill(message, tree=_trees(walks), framework=name)


def _reasons(
    walks: Sequence[Walk], own: Evidence | None, measured: Measured, stands: Stands
) -> Iterator[Sentence]:
    if own is None:
        yield fill("Nothing of the tree's choice was measured.")
        return
    if not own.ran:
        kinds = ("failed", "lacks")
        faults = [each.sentence for each in own.findings if each.kind in kinds]
        yield from faults or [each.sentence for each in own.findings][:1]
        return
    aside = next((each for each in measured.excluded if each.variant == own.variant), None)
    if aside is not None:
        yield from _set_aside(own, aside, measured)
        # Then it is not the trees' questions that make the difference.
        if aside.state != "unknown":
            return
    elif measured.recommendation:
        yield _by_score(own, measured, stands)
    yield from _unmeasured(walks)


def _set_aside(own: Evidence, aside: Excluded, measured: Measured) -> Iterator[Sentence]:
    """Why the trees' choice is none that the measurements could recommend."""
    if aside.state != "unknown":
        yield fill("{variant} is ruled out.", variant=Name(own.variant))
    elif measured.recommendation:
        yield fill(
            "{variant} stands behind those of which all is known.", variant=Name(own.variant)
        )
    else:
        yield fill("Of {variant} not all that is asked for is known.", variant=Name(own.variant))
    yield from ((each,) for each in aside.reasons)


def _by_score(own: Evidence, measured: Measured, stands: Stands) -> Sentence:
    """By how much the tree's choice scores lower, and how sure that is."""
    ratio = score_ratio(stands, measured.weights, own.variant, measured.variant)
    if ratio is None:
        return fill("{variant} has no score to compare.", variant=Name(own.variant))
    parts: dict[str, object] = {
        "variant": Name(own.variant),
        "other": Name(measured.variant),
        "ratio": with_source(str(shown(ratio, RATIO)), ratio),
    }
    goals = _decisive(own, measured, stands)
    if ratio.ci_low is None or ratio.ci_high is None:
        said = fill(
            "The score of {variant} is {ratio} times that of {other}: a hint only, there are too "
            "few repetitions to be sure.",
            **parts,
        )
    elif ratio.ci_high < 1:
        said = fill(
            "The score of {variant} is {ratio} times that of {other}, which is beyond doubt.",
            **parts,
        )
    elif ratio.ci_low > 1:
        # By score alone it would be first; what dominates it came before the score.
        return fill(
            "The score of {variant} is {ratio} times that of {other}, but another variant is "
            "better in one goal and worse beyond doubt in none.",
            **parts,
        )
    else:
        return fill(
            "That is no real disagreement: the score of {variant} is {ratio} times that of "
            "{other}, and this run can't tell them apart.",
            **parts,
        )
    return joined([said, fill("What counts: {goals}.", goals=goals)]) if goals else said


def _decisive(own: Evidence, measured: Measured, stands: Stands) -> str:
    """The goals in which the measurements' choice is better, with the ratios."""
    found = []
    for goal in measured.weights:
        ratio = ratio_of(stands, goal, own.variant, measured.variant)
        if ratio.median is None or not _is_behind(goal, ratio):
            continue
        found.append(_goal_text(goal, str(shown(ratio, RATIO))))
    return commas(found)


def _is_behind(goal: str, ratio: Summary) -> bool:
    if order_of(goal, ratio) == "unsure":
        assert ratio.median is not None
        return ratio.median != 1 and (ratio.median < 1) == is_higher_better(goal)
    return order_of(goal, ratio) == "worse"


def _goal_text(goal: str, ratio: str) -> str:
    return _("{goal} {ratio} times as high", goal=_(GOAL_NAMES[goal]), ratio=ratio)


def _unmeasured(walks: Sequence[Walk]) -> Iterator[Sentence]:
    """That the trees decide by what is not measured here."""
    asked = dict.fromkeys(
        step.question for walk in walks for step in walk.steps if step.key != SPEED_QUESTION
    )
    if not asked:
        return
    message = (
        N_("What the trees decide by, edgebench does not measure: {questions}.")
        if len(walks) > 1
        else N_("What the tree decides by, edgebench does not measure: {questions}.")
    )
    yield fill(message, questions=commas(_("“{text}”", text=each) for each in asked))


def _claim(
    data: ReportData, walks: Sequence[Walk], measured: Measured, stands: Stands
) -> Sentence | None:
    """That trees claim the utmost speed for what is not the fastest here."""
    claiming = [
        walk
        for walk in walks
        if any(each.key == SPEED_QUESTION and each.answer == "yes" for each in walk.steps)
    ]
    if not claiming:
        return None
    recommendation = claiming[0].recommendation
    out = {each.variant for each in measured.excluded}
    rates = {
        each.id: stands.by_goal[SPEED][each.id].value
        for each in data.record.variants
        if each.id not in out and stands.by_goal[SPEED][each.id].known
    }
    runners = {each.id: each.runner for each in data.record.variants if each.id in rates}
    mine = [each for each in rates if runners[each] == recommendation]
    others = [each for each in rates if runners[each] != recommendation]
    if not mine or not others:
        return None
    own, fastest = (max(each, key=rates.__getitem__) for each in (mine, others))
    ratio = ratio_of(stands, SPEED, own, fastest)
    if order_of(SPEED, ratio) != "worse":
        return None
    message = (
        N_(
            "The trees {tree} take {framework} for the utmost speed, but its fastest here, "
            "{variant}, decodes at {ratio} times the rate of {other}."
        )
        if len(claiming) > 1
        else N_(
            "The tree {tree} takes {framework} for the utmost speed, but its fastest here, "
            "{variant}, decodes at {ratio} times the rate of {other}."
        )
    )
    return fill(
        message,
        tree=_trees(claiming),
        framework=framework_name(recommendation),
        variant=Name(own),
        ratio=str(shown(ratio, RATIO)),
        other=Name(fastest),
    )
