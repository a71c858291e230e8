"""Where a tree and the measurements lead to different frameworks, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.format import Scale, shown
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas, paragraph, semicolons, unstopped
from edgebench.reports.selection.comparison import order_of, ratio_of, score_ratio
from edgebench.reports.selection.goals import GOAL_NAMES, is_higher_better, stands_of
from edgebench.reports.sentences import Name, fill, joined, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.results.model import Summary
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.goals import Stands
    from edgebench.reports.selection.view import Evidence, Measured, Walk
    from edgebench.reports.sentences import Sentence

SPEED_QUESTION: Final = "fixed_model"
"""Whose answer yes is the tree's claim that what it leads to is the fastest."""

SPEED: Final = "decode_rate"
RATIO: Final = Scale("")


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
    decided = [each for each in walks if each.recommendation]
    if not decided:
        return ()
    stands = stands_of(data)
    found = []
    for walk in decided:
        own = _evidence_of(evidence, walk.recommendation)
        if walk.recommendation != measured.recommendation:
            found.append(_why(walk, own, measured, stands))
        claim = _claim(data, walk, measured, stands)
        if claim:
            found.append(claim)
    return tuple(found)


def _evidence_of(evidence: Sequence[Evidence], runner: str) -> Evidence | None:
    """What is known of the recommended one: of several that its runner drove, one that ran."""
    own = [each for each in evidence if each.runner == runner]
    return next((each for each in own if each.ran), own[0] if own else None)


def _why(walk: Walk, own: Evidence | None, measured: Measured, stands: Stands) -> Sentence:
    tree = _tree_names(walk, own)
    if not measured.recommendation:
        lead = fill("{tree}, but the measurements recommend nothing.", tree=tree)
        return joined([lead, *_own_faults(own)])
    lead = fill(
        "{tree}, the measurements to {framework} ({variant}).",
        tree=tree,
        framework=measured.framework,
        variant=Name(measured.variant),
    )
    return joined([lead, *_reasons(walk, own, measured, stands)])


def _tree_names(walk: Walk, own: Evidence | None) -> Sentence:
    name = framework_name(walk.recommendation)
    if own is not None and own.ran and own.framework != name:
        return fill(
            "The tree {tree} leads to {framework}, for which {other} ran here",
            tree=Name(walk.name),
            framework=name,
            other=own.framework,
        )
    return fill("The tree {tree} leads to {framework}", tree=Name(walk.name), framework=name)


def _own_faults(own: Evidence | None) -> list[Sentence]:
    """What alone keeps the measurements from the tree's choice: that it failed, or a limit."""
    if own is None:
        return [fill("Nothing of the tree's choice was measured.")]
    faults = [each for each in own.findings if each.kind in ("fails", "lacks")]
    if own.ran and not faults:
        return []
    if not own.ran:
        faults = faults or [each for each in own.findings if each.kind == "unknown"][:1]
    if not faults:
        return [fill("Nothing of the tree's choice was measured.")]
    why = semicolons(unstopped(plain(each.sentence)) for each in faults)
    return [fill("That is because of what is known of the tree's choice: {why}.", why=why)]


def _reasons(
    walk: Walk, own: Evidence | None, measured: Measured, stands: Stands
) -> Iterator[Sentence]:
    if faults := _own_faults(own):
        yield from faults
        return
    assert own is not None
    aside = dict(measured.excluded).get(own.variant, ())
    if aside:
        why = semicolons(unstopped(each) for each in aside)
        yield fill(
            "{variant} stands behind those of which all is known: {why}.",
            variant=Name(own.variant),
            why=why,
        )
    else:
        yield _by_score(own, measured, stands)
    yield from _unmeasured(walk)


def _by_score(own: Evidence, measured: Measured, stands: Stands) -> Sentence:
    """By how much the tree's choice scores lower, and how sure that is."""
    ratio = score_ratio(stands, measured.weights, own.variant, measured.variant)
    if ratio is None:
        return fill("{variant} has no score to compare.", variant=Name(own.variant))
    parts: dict[str, object] = {
        "variant": Name(own.variant),
        "other": Name(measured.variant),
        "ratio": str(shown(ratio, RATIO)),
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


def _unmeasured(walk: Walk) -> Iterator[Sentence]:
    """That the tree decides by what is not measured here."""
    asked = [each.question for each in walk.steps if each.key != SPEED_QUESTION]
    if asked:
        yield fill(
            "The tree decides by what edgebench does not measure: {questions}",
            questions=paragraph(asked),
        )


def _claim(data: ReportData, walk: Walk, measured: Measured, stands: Stands) -> Sentence | None:
    """That the tree claims the utmost speed for what is not the fastest here."""
    if not any(each.key == SPEED_QUESTION and each.answer == "yes" for each in walk.steps):
        return None
    out = {variant for variant, _why in measured.excluded}
    rates = {
        each.id: stands.by_goal[SPEED][each.id].value
        for each in data.record.variants
        if each.id not in out and stands.by_goal[SPEED][each.id].known
    }
    runners = {each.id: each.runner for each in data.record.variants if each.id in rates}
    mine = [each for each in rates if runners[each] == walk.recommendation]
    others = [each for each in rates if runners[each] != walk.recommendation]
    if not mine or not others:
        return None
    own, fastest = (max(each, key=rates.__getitem__) for each in (mine, others))
    ratio = ratio_of(stands, SPEED, own, fastest)
    if order_of(SPEED, ratio) != "worse":
        return None
    return fill(
        "The tree {tree} takes {framework} for the utmost speed, but its fastest here, {variant}, "
        "decodes at {ratio} times the rate of {other}.",
        tree=Name(walk.name),
        framework=framework_name(walk.recommendation),
        variant=Name(own),
        ratio=str(shown(ratio, RATIO)),
        other=Name(fastest),
    )
