"""Is it worse, and how certain is that? For many questions at once, with few false alarms.

See docs/decisions/0019-gate-statistics.md for the method and docs/gate-power.md for what it was
measured to do.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.compare import intervals
from edgebench.harness.compare.drift import drift_of
from edgebench.harness.compare.model import Answer
from edgebench.harness.compare.noticeable import (
    as_shift,
    as_worsening,
    blocks_for,
    errors_needed,
    noticed_apart,
    noticed_in_pairs,
)
from edgebench.harness.compare.paired import paired_test
from edgebench.harness.compare.tables import by_run, table_of
from edgebench.harness.compare.unpaired import unpaired_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgebench.harness.compare.model import BlockKey, Question

CONFIDENCE = 0.95
MOST_CONFIDENCE = 0.999
"""Draws can tell no greater one of three families and two directions."""
NOISE_FLOOR = 0.01
LEAST_NOTICEABLE = 1e-6
ONE_BLOCK = "one repetition says nothing about certainty"


def decide(
    questions: Sequence[Question],
    *,
    confidence: float = CONFIDENCE,
    noise_floor: float = NOISE_FLOOR,
    other_families: int = 0,
) -> list[Answer]:
    """Answer all questions of one gate or comparison.

    Questions whose sides have blocks in common are decided by their pairs, others by all blocks of
    both sides. The two kinds are families of their own, and share the chance of a false alarm
    equally, with as many others as are decided elsewhere.

    Args:
        questions: in any order; it does not matter to the answers.
        confidence: at which `Answer.noticeable` is told; of all families together.
        noise_floor: how much two runs that were not interleaved may differ without being different,
            as a share.
        other_families: families of questions that are decided by another test, such as quality's.

    Returns:
        An answer to each, in their order.
    """
    answers: dict[int, Answer] = {}
    pairs: list[int] = []
    apart: list[int] = []
    for at, question in enumerate(questions):
        reason = _unfit(question)
        common = question.baseline.keys() & question.candidate.keys()
        blocks = len(common) or min(len(question.baseline), len(question.candidate))
        if reason:
            answers[at] = Answer(None, reason=reason, no_interval=reason)
        elif blocks == 1:
            answers[at] = _of_one_block(question, common)
        else:
            (pairs if common else apart).append(at)
    families = bool(pairs) + bool(apart) + other_families
    level = (1.0 - confidence) / max(families, 1)
    found = _paired([questions[at] for at in pairs], families=families, level=level)
    answers.update(zip(pairs, found, strict=True))
    found = _unpaired([questions[at] for at in apart], noise_floor, families=families, level=level)
    answers.update(zip(apart, found, strict=True))
    return [answers[at] for at in range(len(questions))]


def families_of(answers: Iterable[Answer], *, others: int = 0) -> int:
    """Among how many families `decide` shared the chance of a false alarm; at least 1.

    Args:
        answers: all that one call gave.
        others: families that are decided elsewhere, as there.
    """
    kinds = {answer.paired for answer in answers if answer.p_worse is not None}
    return max(len(kinds) + others, 1)


def repetitions_for(
    answer: Answer,
    change: float,
    *,
    questions: int,
    confidence: float = CONFIDENCE,
    noise_floor: float = NOISE_FLOOR,
) -> int | None:
    """How many blocks on each side would notice a worsening by `change` in 95 % of cases.

    Args:
        answer: to go by: its spread and, of runs made at different times, its inflation, which is
            taken to stay as it is.
        change: as a share of the baseline.
        questions: how many are asked together; taken as if independent, which is never too few.
        confidence: of all of them together.
        noise_floor: as in `decide`.

    Returns:
        The least number; None where the spread isn't known, or the change is within the noise floor
        of runs made at different times.
    """
    if answer.spread is None or not 0 < change < math.inf:
        return None
    shift = math.log1p(change)
    if not answer.paired:
        shift -= math.log1p(noise_floor)
    return blocks_for(
        shift,
        spread=answer.spread,
        paired=answer.paired,
        inflation=answer.inflation,
        level=1.0 - confidence,
        questions=max(questions, 1),
    )


def _unfit(question: Question) -> str | None:
    if not question.baseline or not question.candidate:
        side = "baseline" if not question.baseline else "candidate"
        return f"the {side} has no value"
    for side, values in (("baseline", question.baseline), ("candidate", question.candidate)):
        if any(not math.isfinite(value) for value in values.values()):
            return f"the {side} has a value that is no number"
        if any(value <= 0 for value in values.values()):
            return f"the {side} has a value of 0 or below, of which no ratio can be made"
    return None


def _of_one_block(question: Question, common: Iterable[BlockKey]) -> Answer:
    shared = set(common)
    baseline = [v for key, v in question.baseline.items() if not shared or key in shared]
    candidate = [v for key, v in question.candidate.items() if not shared or key in shared]
    shift = float(np.median(np.log(candidate)) - np.median(np.log(baseline)))
    return Answer(_ratio(shift), paired=bool(shared), n=1, no_interval=ONE_BLOCK)


def _paired(questions: Sequence[Question], *, families: int, level: float) -> list[Answer]:
    if not questions:
        return []
    columns = [
        {
            key: _sign(question) * (math.log(question.candidate[key]) - math.log(value))
            for key, value in question.baseline.items()
            if key in question.candidate
        }
        for question in questions
    ]
    differences, _ = table_of(columns)
    known = [column[~np.isnan(column)] for column in differences.T]
    estimates = [intervals.one_sample(values) for values in known]
    centres = np.array([estimate.centre for estimate in estimates])
    test = paired_test(differences, level=level, centres=centres)
    answers = []
    for at, question in enumerate(questions):
        values, estimate = known[at], estimates[at]
        residuals = values - estimate.centre
        spread, shift = intervals.robust_spread(residuals), math.inf
        needed = errors_needed(float(test.limits[at]), float(len(values) - 1))
        if needed is not None:
            shift, spread = noticed_in_pairs(residuals, needed / math.sqrt(len(values)))
        low, high = _bounds(estimate, _sign(question))
        n = len(columns[at])
        answers.append(
            Answer(
                ratio=_ratio(_sign(question) * estimate.centre),
                low=low,
                high=high,
                paired=True,
                n=n,
                p_worse=min(families * float(test.worse[at]), 1.0),
                p_better=min(families * float(test.better[at]), 1.0),
                noticeable=_noticeable(shift, question),
                spread=spread * math.sqrt(n / len(values)),
                no_interval=None
                if low is not None
                else f"{n} pairs are too few for an interval; {intervals.LEAST_PAIRS} are enough",
            )
        )
    return answers


def _unpaired(
    questions: Sequence[Question], noise_floor: float, *, families: int, level: float
) -> list[Answer]:
    if not questions:
        return []
    signs = [_sign(question) for question in questions]
    logs = [
        [{key: sign * math.log(value) for key, value in side.items()} for side in sides]
        for sign, sides in zip(
            signs, ((question.baseline, question.candidate) for question in questions), strict=True
        )
    ]
    baseline, first = table_of([side[0] for side in logs])
    candidate, second = table_of([side[1] for side in logs])
    drift = drift_of(by_run(baseline, first), by_run(candidate, second))
    floors = np.array([as_shift(noise_floor, question.better) for question in questions])
    likely, likely_trend = drift.likely
    test = unpaired_test(
        baseline,
        candidate,
        floors=floors + drift.allowance,
        inflation=drift.inflation,
        level=level,
    )
    answers = []
    for at, question in enumerate(questions):
        one = baseline[~np.isnan(baseline[:, at]), at]
        other = candidate[~np.isnan(candidate[:, at]), at]
        estimate = intervals.two_samples(one, other)
        off_one, off_other = one - np.median(one), other - np.median(other)
        spread = intervals.robust_spread(np.r_[off_one, off_other], freedom=2)
        shift = math.inf
        inflation = float(drift.inflation[at])
        needed = errors_needed(float(test.limits[at]), float(len(one) + len(other) - 2))
        if needed is not None:
            error = float(likely[at]) * math.sqrt(1 / len(one) + 1 / len(other))
            shift, spread = noticed_apart(off_one, off_other, needed * error)
            shift += float(floors[at] + likely_trend[at])
        low, high = _bounds(_widened(estimate, inflation, drift.allowance[at]), signs[at])
        n = min(len(logs[at][0]), len(logs[at][1]))
        answers.append(
            Answer(
                ratio=_ratio(signs[at] * estimate.centre),
                low=low,
                high=high,
                n=n,
                p_worse=min(families * float(test.worse[at]), 1.0),
                p_better=min(families * float(test.better[at]), 1.0),
                noticeable=_noticeable(shift, question),
                spread=spread * math.sqrt(n / min(len(one), len(other))),
                inflation=inflation,
                no_interval=None
                if low is not None
                else f"{n} repetitions are too few for an interval; "
                f"{intervals.LEAST_BLOCKS} on each side are enough",
            )
        )
    return answers


def _sign(question: Question) -> float:
    """Of logarithms, so that greater is worse."""
    return -1.0 if question.better == "higher" else 1.0


def _noticeable(shift: float, question: Question) -> float | None:
    """Never nothing: also of what never varied yet, some change is too small."""
    found = as_worsening(shift, question.better)
    return None if found is None else max(found, LEAST_NOTICEABLE)


def _widened(estimate: intervals.Estimate, factor: float, allowance: float) -> intervals.Estimate:
    if estimate.low is None or estimate.high is None:
        return estimate
    centre, low, high = estimate.centre, estimate.low, estimate.high
    return intervals.Estimate(
        centre,
        centre - factor * (centre - low) - allowance,
        centre + factor * (high - centre) + allowance,
    )


def _bounds(estimate: intervals.Estimate, sign: float) -> tuple[float | None, float | None]:
    """The interval of the ratio, from that of the shift towards worse."""
    if estimate.low is None or estimate.high is None:
        return None, None
    low, high = sorted((_ratio(sign * estimate.low), _ratio(sign * estimate.high)))
    return low, high


def _ratio(shift: float) -> float:
    """Finite and above 0, however far apart the sides are."""
    return math.exp(min(max(shift, -700.0), 700.0))
