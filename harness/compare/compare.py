"""From two sides to verdicts."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.decide import CONFIDENCE, NOISE_FLOOR, decide, repetitions_for
from edgebench.harness.compare.model import (
    BROKEN,
    FACTS,
    LARGEST,
    Answer,
    Compared,
    Comparison,
    Question,
)
from edgebench.harness.compare.quality import (
    NO_TEST,
    QUALITY_MARGIN,
    TESTED,
    of_bytes,
    quality_answers,
)
from edgebench.harness.compare.rates import FELL_TO_NOTHING, fell_to_nothing, without_zeros
from edgebench.harness.compare.sharing import shared_key
from edgebench.harness.compare.verdicts import unsettled, verdict_of, worsening_of
from edgebench.harness.compare.wanted import by_default
from edgebench.harness.metrics.definitions import METRICS, metric
from edgebench.harness.results.meters import METERED

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from edgebench.harness.compare.model import (
        Matched,
        Pair,
        Samples,
        Side,
        SideCell,
        Verdict,
    )
    from edgebench.harness.metrics.definitions import Better

MARGIN: Final = 0.02
"""Up to which a change counts as none, where nothing else is asked for."""

_ORDER = {key: place for place, key in enumerate(METRICS)}


@dataclass(frozen=True, slots=True)
class _Row:
    """One metric of one pair, before it has a verdict; `answer` where it needs no statistics."""

    pair: Pair
    key: str
    better: Better
    baseline: Samples | None
    candidate: Samples | None
    answer: Answer | None

    @property
    def question(self) -> Question:
        assert self.baseline is not None
        assert self.candidate is not None
        mine, theirs = self.baseline, self.candidate
        if self.better == "higher":
            mine, theirs = without_zeros(mine, theirs)
        return Question(mine.by_block(), theirs.by_block(), self.better)

    @property
    def is_quality(self) -> bool:
        return self.pair.candidate.workload.kind == "quality" and self.key in TESTED


def compare(
    matched: Matched,
    *,
    confidence: float = CONFIDENCE,
    margin: float = MARGIN,
    noise_floor: float = NOISE_FLOOR,
    wanted: Callable[[str, str], bool] | None = None,
    one_sided: bool = False,
) -> Comparison:
    """Compare metrics of every pair that have a direction in which they are better.

    Args:
        matched: the cells of both sides.
        confidence: of all verdicts together, better ones and worse ones.
        margin: up to which a change counts as none, as a share; of a figure of quality, 0.1 % at
            most.
        noise_floor: how much two runs of the same thing may differ that were not interleaved.
        wanted: of a pair's name and a metric's key, whether it is asked about: the fewer
            questions, the sharper each. By default the metrics that people choose by; see
            `edgebench.harness.compare.wanted`.
        one_sided: whether nothing but what is worse matters, as to a gate, which then has all of
            the chance of a false verdict.

    Returns:
        A row for each metric that at least one side has a value of. What could not be compared is
        a row too, with its reason. What several workloads share is asked and told once, at the
        first pair that is wanted; see `edgebench.harness.compare.sharing`.
    """
    certainty = confidence if one_sided else 1 - (1 - confidence) / 2
    rows = list(_rows(matched, wanted or by_default))
    asked = [row for row in rows if row.answer is None and not row.is_quality]
    rated = {row.pair.name: row.pair for row in rows if row.answer is None and row.is_quality}
    answers = dict(
        zip(
            map(id, asked),
            decide(
                [row.question for row in asked],
                confidence=certainty,
                noise_floor=noise_floor,
                other_families=1 if rated else 0,
            ),
            strict=True,
        )
    )
    questions = Counter(each.paired for each in answers.values() if each.p_worse is not None)
    families = len(questions) + bool(rated)
    quality = quality_answers(list(rated.values()), confidence=certainty, families=families)
    level = (1 - certainty) / max(families, 1)

    def verdict(answer: Answer, limit: float) -> Verdict:
        return verdict_of(answer, confidence=confidence, margin=limit, one_sided=one_sided)

    def compared(row: _Row) -> Compared:
        if row.answer is not None:
            return _compared(row, row.answer, verdict(row.answer, 0.0), margin=0.0)
        if row.is_quality:
            answer = quality[row.pair.candidate.key]
            if row.key == "bits_per_byte":
                answer = of_bytes(answer, row.pair)
            limit = min(margin, QUALITY_MARGIN)
            return _compared(row, answer, verdict(answer, limit), margin=limit)
        answer = answers[id(row)]
        blocks = repetitions_for(
            answer,
            margin,
            questions=questions[answer.paired],
            confidence=1 - level,
            noise_floor=noise_floor,
        )
        return _compared(row, answer, verdict(answer, margin), margin=margin, blocks=blocks)

    found = tuple(map(compared, rows))
    return Comparison(
        matched=matched,
        rows=found,
        confidence=confidence,
        margin=margin,
        noise_floor=noise_floor,
        notes=tuple(_notes(matched, found, noise_floor)),
    )


def _rows(matched: Matched, wanted: Callable[[str, str], bool]) -> Iterator[_Row]:
    told: set[Hashable] = set()
    for pair in matched.pairs:
        keys = {*pair.baseline.metrics, *pair.candidate.metrics}
        for key in sorted(keys, key=lambda each: (_ORDER.get(each, len(_ORDER)), each)):
            better = metric(key).better
            if better is None or not wanted(pair.name, key):
                continue
            mine, theirs = pair.baseline.metrics.get(key), pair.candidate.metrics.get(key)
            nothing = (mine is None or not mine.values) and (theirs is None or not theirs.values)
            # Nothing to say of what neither side has; of what both had and can't be right, that.
            if nothing and not (mine and theirs and mine.reason == theirs.reason == BROKEN):
                continue
            shared = shared_key(pair, key)
            if shared is not None:
                if shared in told:
                    continue
                told.add(shared)
            yield _Row(pair, key, better, mine, theirs, _known(pair, key, better))


def _known(pair: Pair, key: str, better: Better) -> Answer | None:
    """What can be said without statistics: a fact, or why nothing can be said."""
    mine, theirs = pair.baseline.metrics.get(key), pair.candidate.metrics.get(key)
    if better == "higher" and mine is not None and theirs is not None:
        if fell_to_nothing(mine, theirs):
            return Answer(None, reason=FELL_TO_NOTHING)
        mine, theirs = without_zeros(mine, theirs)
    reason = _incomparable(pair, mine, theirs)
    if reason or mine is None or theirs is None:
        return Answer(None, reason=reason)
    if not any(mine.values) and not any(theirs.values):
        blocks = min(len(mine.by_block()), len(theirs.by_block()))
        paired = bool(mine.by_block().keys() & theirs.by_block().keys())
        return Answer(1.0, 1.0, 1.0, paired=paired, n=blocks, p_worse=1.0, p_better=1.0)
    if key in FACTS:
        return _fact(mine.values[-1], theirs.values[-1], better)
    if pair.candidate.workload.kind == "quality" and key not in TESTED:
        return Answer(None, reason=NO_TEST)
    return None


def _incomparable(pair: Pair, mine: Samples | None, theirs: Samples | None) -> str:
    """Why no ratio can be made of two sides' values; empty where one can, or where all are 0."""
    if mine is None or not mine.values:
        return _lacks("the baseline", pair.baseline, mine)
    if theirs is None or not theirs.values:
        return _lacks("the candidate", pair.candidate, theirs)
    if unlike := _unlike(mine, theirs):
        return unlike
    if any(mine.values) or any(theirs.values):
        for side, samples in (("baseline", mine), ("candidate", theirs)):
            if max(samples.values) > LARGEST:
                return f"the {side} has a value that nothing can have, so no ratio can be made"
            if min(samples.values) <= 0:
                what = "has a value of 0 or below" if any(samples.values) else "is 0"
                return f"the {side} {what}, so no ratio can be made"
    return ""


def _unlike(mine: Samples, theirs: Samples) -> str:
    """How the values of two sides are of different kinds; empty where they are of one."""
    if mine.unit != theirs.unit:
        return f"the baseline's is in {mine.unit}, the candidate's in {theirs.unit}"
    one, other = (
        "estimated" if each.source == "estimated" else "measured" for each in (mine, theirs)
    )
    if one != other:
        return f"the baseline's is {one}, the candidate's {other}"
    if mine.meter != theirs.meter and mine.meter is not None and theirs.meter is not None:
        return f"the baseline's meter is {mine.meter}, the candidate's {theirs.meter}"
    return ""


def _lacks(who: str, cell: SideCell, samples: Samples | None) -> str:
    """Why a side has no value."""
    if samples is not None:
        return f"{who} has none: {(samples.reason or 'not measured').rstrip('.')}"
    if cell.status == "failed" or (cell.failure is not None and not cell.metrics):
        lines = cell.failure.message.splitlines() if cell.failure else []
        return f"{who} failed" + (f": {lines[0].rstrip('.')}" if lines else "")
    return f"{who} was not run" if cell.status == "not_run" else f"{who} does not speak of it"


def _fact(mine: float, theirs: float, better: Better) -> Answer:
    """Known, not sampled: any difference is a true one."""
    ratio = theirs / mine
    worse = worsening_of(ratio, better)
    return Answer(
        ratio=ratio,
        low=ratio,
        high=ratio,
        n=1,
        p_worse=0.0 if worse > 0 else 1.0,
        p_better=0.0 if worse < 0 else 1.0,
        noticeable=0.0,
    )


def _compared(
    row: _Row, answer: Answer, verdict: Verdict, *, margin: float, blocks: int | None = None
) -> Compared:
    repetitions, why = None, ""
    worsening = None if answer.ratio is None else worsening_of(answer.ratio, row.better)
    if answer.reason == FELL_TO_NOTHING:
        verdict, why, worsening = "worse", FELL_TO_NOTHING, 1.0
    elif verdict == "not_compared":
        why = answer.reason or ""
    elif verdict == "cant_tell":
        if blocks is not None and blocks > answer.n:
            repetitions = blocks * row.pair.per_block
        why = unsettled(answer, margin=margin, repetitions=repetitions, quality=row.is_quality)
    return Compared(
        pair=row.pair,
        metric=row.key,
        unit=_unit(row),
        better=row.better,
        baseline=_median(row.baseline),
        candidate=_median(row.candidate),
        answer=answer,
        verdict=verdict,
        worsening=worsening,
        why=why,
        repetitions=repetitions,
        estimated=any(
            each is not None and bool(each.values) and each.source == "estimated"
            for each in (row.baseline, row.candidate)
        ),
    )


def _unit(row: _Row) -> str:
    for samples in (row.candidate, row.baseline):
        if samples is not None and samples.values:
            return samples.unit
    return metric(row.key).unit


def _median(samples: Samples | None) -> float | None:
    if samples is None or not samples.values or max(samples.values) > LARGEST:
        return None
    return statistics.median(samples.values)


def _notes(matched: Matched, rows: Sequence[Compared], noise_floor: float) -> Iterator[str]:
    for who, side in (("baseline", matched.baseline), ("candidate", matched.candidate)):
        for note in side.notes:
            yield f"{who}: {note}"
    if _known_by_name_only(matched.baseline, matched.candidate):
        yield "Nothing but the same `path:` says that both are of the same weights."
    yield from _unknown_meters(rows)
    sampled = [row for row in rows if row.answer.p_worse is not None and row.metric not in FACTS]
    if any(not row.answer.paired for row in sampled) and noise_floor:
        yield (
            f"The two were measured at different times, so a difference of up to "
            f"{100 * noise_floor:g} % counts as noise. Both in the same blocks tell more, with "
            f"fewer repetitions: `edgebench run SCENARIO --against …`."
        )


def _unknown_meters(rows: Sequence[Compared]) -> Iterator[str]:
    """That energies were compared of which nobody knows whether they are of one meter."""
    energies = [row for row in rows if row.metric in METERED and row.answer.ratio is not None]
    sides = {
        who
        for row in energies
        for who, cell in (("baseline", row.pair.baseline), ("candidate", row.pair.candidate))
        if cell.metrics[row.metric].meter is None
    }
    if sides:
        whose = " and ".join(f"the {who}'s" for who in sorted(sides))
        yield (
            f"Nothing says which meter {whose} energies are of; those of different meters do not "
            "compare."
        )


def _known_by_name_only(baseline: Side, candidate: Side) -> bool:
    return baseline.model_source.startswith("path:") and not (
        baseline.hashes.keys() & candidate.hashes.keys()
    )
