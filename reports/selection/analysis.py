"""The choice by measurements, step by step: limits, then the front, then the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.reports.broken import broken_text
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import unstopped
from edgebench.reports.opening_words import named
from edgebench.reports.selection.front import dominated_by
from edgebench.reports.selection.goals import GOAL_NAMES, stands_of
from edgebench.reports.selection.last import Last
from edgebench.reports.selection.limits import checks, limit_texts
from edgebench.reports.selection.score import certainty_of, scored, with_wins
from edgebench.reports.sentences import Name, fill

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.scenario.requirements import Requirements
    from edgebench.reports.data import ReportData
    from edgebench.reports.selection.check import Check
    from edgebench.reports.selection.goals import Stands
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
        failed: by variant without values on some workload, why.
        excluded: by variant, why it is no candidate: it failed, a limit does, or it is broken.
        unknown: by variant, what is not known of it, so that it is none either.
        left: the variants to choose from.
        only_testing: whether nothing but the testing runner ran, whose figures recommend nothing.
        limits_given: whether the user gave a limit, or asked for an ability.
        by_documents: whether what documents say of abilities decided who is left.
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
    failed: Mapping[str, tuple[Sentence, ...]]
    excluded: Mapping[str, tuple[Sentence, ...]]
    unknown: Mapping[str, tuple[Sentence, ...]]
    left: tuple[str, ...]
    only_testing: bool
    limits_given: bool
    by_documents: bool
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
        """Whether a variant meets all limits; None where that is not known.

        The memory of the machine is one, whether any other was given or not.
        """
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
    failed = {
        each.id: why for each in data.record.variants if (why := tuple(_failed(data, each, stands)))
    }
    excluded: dict[str, tuple[Sentence, ...]] = {}
    unknown: dict[str, tuple[Sentence, ...]] = {}
    for variant in data.record.variants:
        if variant.runner == TESTING_RUNNER and not only_testing:
            excluded[variant.id] = (fill("It makes its figures up and is no framework."),)
            continue
        fails = tuple(each.sentence for each in found[variant.id] if each.fails)
        broken = _broken(data, variant, stands)
        if why := (*failed.get(variant.id, ()), *broken, *fails):
            excluded[variant.id] = why
    kept = [each for each in data.variant_ids if each not in excluded]
    for each in kept:
        if why := tuple(one.sentence for one in found[each] if one.state == "unknown"):
            unknown[each] = why
    kept = [each for each in kept if each not in unknown]
    asked, not_weighed = _asked(_weights(requirements), kept, stands)
    for each in kept:
        if lacks := tuple(_lacking(stands, each, asked)):
            unknown[each] = lacks
    left = tuple(each for each in kept if each not in unknown)
    start = _Start(
        stands=stands,
        checks=found,
        failed=failed,
        excluded=excluded,
        unknown=unknown,
        only_testing=only_testing,
        limits_given=bool(limit_texts(requirements)),
        by_documents=any(
            each.id not in failed and _by_documents(found[each.id])
            for each in data.record.variants
            if only_testing or each.runner != TESTING_RUNNER
        ),
    )
    return _chosen(start, left, asked, not_weighed)


def _by_documents(checks: Sequence[Check]) -> bool:
    """Whether nothing but the words of documents, or their silence, keeps a variant out."""
    out = [each for each in checks if each.fails or each.state == "unknown"]
    return bool(out) and all(each.quoted for each in out)


@dataclass(frozen=True, slots=True)
class _Start:
    """What is known before anything is compared; as in `Analysis`."""

    stands: Stands
    checks: Mapping[str, tuple[Check, ...]]
    failed: Mapping[str, tuple[Sentence, ...]]
    excluded: Mapping[str, tuple[Sentence, ...]]
    unknown: Mapping[str, tuple[Sentence, ...]]
    only_testing: bool
    limits_given: bool
    by_documents: bool


def _chosen(
    start: _Start, left: tuple[str, ...], asked: Mapping[str, float], not_weighed: tuple[str, ...]
) -> Analysis:
    stands = start.stands
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
        checks=start.checks,
        failed=start.failed,
        excluded=start.excluded,
        unknown=start.unknown,
        left=candidates,
        only_testing=start.only_testing,
        limits_given=start.limits_given,
        by_documents=start.by_documents,
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


def _broken(data: ReportData, variant: VariantRecord, stands: Stands) -> Iterator[Sentence]:
    """Where a variant has values that can't be right."""
    broken = [each for each in stands.workloads if data.is_broken(each, variant.id)]
    if broken:
        yield fill(
            "Its figures on {workload} are {left_out}.",
            workload=named(broken),
            left_out=broken_text(),
        )


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
