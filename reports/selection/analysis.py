"""The choice by measurements, step by step: limits, then the front, then the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import unstopped
from edgebench.reports.selection.front import dominated_by
from edgebench.reports.selection.goals import GOAL_NAMES, stands_of
from edgebench.reports.selection.last import Last
from edgebench.reports.selection.limits import checks
from edgebench.reports.selection.score import certainty_of, scored, with_wins
from edgebench.reports.sentences import Name, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.goals import Stands
    from edgebench.reports.selection.limits import Check
    from edgebench.reports.selection.score import Scores
    from edgebench.reports.sentences import Sentence

TESTING_RUNNER: Final = "fake"
"""It makes its figures up, and is no framework."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that the choice rests on.

    Attributes:
        stands: where each variant stands in each goal.
        checks: by variant, all limits.
        excluded: by variant, why it is no candidate: it failed, or a limit does.
        unknown: by variant, what is not known of it, so that it stands behind those of which all
            is known; empty where nothing better is left.
        left: the variants to choose from.
        limits_known: whether all limits are known to be met by those that are left.
        goals: by which the front is found: those that all that are left have a value of.
        absent: by goal that is left out, a variant that lacks it, and why.
        nowhere: those of them that no variant that is left has.
        weights: by goal; they add up to 1. Empty where nothing is left or nothing was measured.
        weights_given: whether the user gave them.
        not_weighed: goals that the user gave a weight, and no variant that is left has.
        dominated_by: of those that are left, who dominates it; empty where none does.
        scores: of those that are left.
        best: the variant; empty where there is none.
        certainty: as `edgebench.reports.selection.view.Measured`.
    """

    stands: Stands
    checks: Mapping[str, tuple[Check, ...]]
    excluded: Mapping[str, tuple[Sentence, ...]]
    unknown: Mapping[str, tuple[Sentence, ...]]
    left: tuple[str, ...]
    limits_known: bool
    goals: tuple[str, ...]
    absent: Mapping[str, tuple[str, str]]
    nowhere: frozenset[str]
    weights: Mapping[str, float]
    weights_given: bool
    not_weighed: tuple[str, ...]
    dominated_by: Mapping[str, str]
    scores: Scores
    best: str
    certainty: str

    @property
    def front(self) -> tuple[str, ...]:
        """The variants that none dominates, the highest score first."""
        kept = [each for each in self.left if self.weights and not self.dominated_by[each]]
        return tuple(sorted(kept, key=lambda each: -self.scores.of(each)))

    def meets_limits(self, variant: str) -> bool | None:
        """Whether a variant meets all limits; None where that is not known."""
        found = self.checks[variant]
        if any(each.fails for each in found):
            return False
        return None if any(each.state == "unknown" for each in found) else True


def analyse(data: ReportData, requirements: Requirements) -> Analysis:
    """Choose among all variants of a report."""
    return _LAST.get(data, requirements, lambda: _analysis(data, requirements))


_LAST: Final[Last[Analysis]] = Last()


def _analysis(data: ReportData, requirements: Requirements) -> Analysis:
    stands = stands_of(data)
    found = {
        each.id: checks(data, each, requirements, stands.workloads) for each in data.record.variants
    }
    only_testing = all(each.runner == TESTING_RUNNER for each in data.record.variants)
    excluded: dict[str, tuple[Sentence, ...]] = {}
    unknown: dict[str, tuple[Sentence, ...]] = {}
    for variant in data.record.variants:
        if variant.runner == TESTING_RUNNER and not only_testing:
            excluded[variant.id] = (fill("It makes its figures up and is no framework."),)
            continue
        why = (
            *_failed(data, variant, stands),
            *(each.sentence for each in found[variant.id] if each.fails),
        )
        if why:
            excluded[variant.id] = why
    kept = [each for each in data.variant_ids if each not in excluded]
    for each in kept:
        if why := tuple(one.sentence for one in found[each] if one.state == "unknown"):
            unknown[each] = why
    kept = _without(kept, unknown)
    asked, not_weighed = _asked(_weights(requirements), kept, stands)
    for each in kept:
        lacks = tuple(_lacking(stands, each, asked))
        if lacks:
            unknown[each] = (*unknown.get(each, ()), *lacks)
    left = tuple(each for each in kept if not any(_lacking(stands, each, asked)))
    return _chosen(found, stands, excluded, unknown, left, asked, not_weighed)


def _chosen(
    found: Mapping[str, tuple[Check, ...]],
    stands: Stands,
    excluded: Mapping[str, tuple[Sentence, ...]],
    unknown: Mapping[str, tuple[Sentence, ...]],
    left: tuple[str, ...],
    asked: Mapping[str, float],
    not_weighed: tuple[str, ...],
) -> Analysis:
    absent = {
        goal: (lacking[0], stands.by_goal[goal][lacking[0]].summary.reason or "")
        for goal in stands.by_goal
        if (lacking := [each for each in left if not stands.by_goal[goal][each].known])
    }
    goals = tuple(each for each in stands.by_goal if left and each not in absent)
    weights = asked or dict.fromkeys(goals, 1.0)
    total = sum(weights.values())
    weights = {goal: weight / total for goal, weight in weights.items()}
    candidates = left if weights else ()
    scores, logs = scored(candidates, stands.by_goal, weights)
    by = dominated_by(
        candidates,
        {goal: stands.by_goal[goal] for goal in goals},
        {each: scores.of(each) for each in candidates},
    )
    front = sorted((each for each in candidates if not by[each]), key=lambda one: -scores.of(one))
    scores = with_wins(scores, front, logs)
    best = front[0] if front else ""
    return Analysis(
        stands=stands,
        checks=found,
        excluded=excluded,
        unknown={each: why for each, why in unknown.items() if each not in candidates},
        left=candidates,
        limits_known=not any(one.state == "unknown" for each in candidates for one in found[each]),
        goals=goals,
        absent=absent,
        nowhere=frozenset(
            goal
            for goal, by_variant in stands.by_goal.items()
            if not any(by_variant[each].known for each in left)
        ),
        weights=weights if candidates else {},
        weights_given=bool(asked),
        not_weighed=not_weighed,
        dominated_by=by,
        scores=scores,
        best=best,
        certainty=certainty_of(best, scores, len(candidates)) if best else "none",
    )


def _failed(data: ReportData, variant: VariantRecord, stands: Stands) -> Iterator[Sentence]:
    """Where a variant has no values at all; one that failed in a few repetitions has."""
    for workload in stands.workloads:
        cell = data.cell(workload, variant.id)
        if cell.n:
            continue
        if cell.failure is not None:
            why = unstopped(recorded(cell.failure.message))
            yield fill("It failed on {workload}: {why}.", workload=Name(workload), why=why)
        else:
            yield fill("It was not run on {workload}.", workload=Name(workload))
    if not stands.workloads and not any(
        by_variant[variant.id].known for by_variant in stands.by_goal.values()
    ):
        yield fill("Nothing of it was measured.")


def _without(kept: list[str], unknown: Mapping[str, object]) -> list[str]:
    """Those of which all limits are known; all where there is none such."""
    return [each for each in kept if each not in unknown] or kept


def _weights(requirements: Requirements) -> dict[str, float]:
    return {str(goal): weight for goal, weight in requirements.weights.items()}


def _asked(
    weights: Mapping[str, float], kept: Sequence[str], stands: Stands
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The user's weights of goals that somebody has a value of, and the goals without."""
    positive = {goal: weight for goal, weight in weights.items() if weight > 0}
    # Enough that all of them can be had at once by somebody; else the rarest goals go.
    nobody = [
        goal for goal in positive if not any(stands.by_goal[goal][each].known for each in kept)
    ]
    asked = {goal: weight for goal, weight in positive.items() if goal not in nobody}
    if asked and not any(all(stands.by_goal[goal][each].known for goal in asked) for each in kept):
        everybody = [
            goal for goal in asked if all(stands.by_goal[goal][each].known for each in kept)
        ]
        nobody += [goal for goal in asked if goal not in everybody]
        asked = {goal: asked[goal] for goal in everybody}
    return asked, tuple(nobody)


def _lacking(stands: Stands, variant: str, goals: Mapping[str, float]) -> Iterator[Sentence]:
    """What is weighed and was not measured of a variant, a sentence each."""
    for goal in goals:
        stand = stands.by_goal[goal][variant]
        if not stand.known:
            yield fill(
                "Its {goal}, which is weighed, was not measured: {reason}.",
                goal=_(GOAL_NAMES[goal]),
                reason=unstopped(stand.summary.reason or _("no reason was recorded")),
            )
