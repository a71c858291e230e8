"""A comparison held against a policy: every limit on every cell, and what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.compare import compare
from edgebench.harness.gate.allowances import Allowances
from edgebench.harness.gate.bounds import bound_check
from edgebench.harness.gate.cells import cell_check, name_of, vanished_check
from edgebench.harness.gate.changes import change_check, lost, missing
from edgebench.harness.gate.family import Family
from edgebench.harness.gate.headline import headline
from edgebench.harness.gate.limits import Limits
from edgebench.harness.gate.model import Gate
from edgebench.harness.gate.outcome import remedy_of, result_of
from edgebench.harness.gate.policy import default_policy
from edgebench.harness.gate.sharing import asked_once, rows_of

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterator, Mapping, Sequence

    from edgebench.harness.compare.model import Compared, Comparison, Matched, Pair, SideCell
    from edgebench.harness.gate.limits import Asked
    from edgebench.harness.gate.model import Check
    from edgebench.harness.gate.policy import Policy

DEFAULT_NAME: Final = "the default policy"

MARGIN: Final = 0.02
"""What verdicts of rows call the same, where no limit is on a change."""

_WORST_FIRST: Final = ("fail", "warn", "allowed", "undecided", "pass")
_HAS_RESULTS: Final = frozenset({"ok", "partial"})


def evaluate(
    matched: Matched, policy: Policy, *, today: dt.date, policy_name: str = DEFAULT_NAME
) -> Gate:
    """Hold the candidate of `matched` against `policy`.

    A `worse_by` limit is broken where it is certain at its confidence, over all that is asked
    together, that the candidate is worse, and the estimated worsening is at least the limit. It is
    kept where the worsening is estimated below it and either a worsening of that size would have
    been noticed or the interval excludes it; else it is undecided.

    Args:
        matched: the cells of both sides.
        policy: what is asked.
        today: the day by which allowances hold or have expired.
        policy_name: how outputs call the policy.
    """
    limits = Limits(policy)
    asked = {
        pair.name: limits.of(pair.candidate, {**pair.baseline.metrics, **pair.candidate.metrics})
        for pair in matched.pairs
    }
    asked = asked_once(matched.pairs, asked)
    new = [(cell, limits.of(cell, cell.metrics)) for cell in matched.added]
    comparisons = _comparisons(matched, policy, asked)
    family = Family.of(comparisons[policy.confidence].rows, policy.noise_floor)
    checks: list[Check] = []
    for pair in matched.pairs:
        rows = {level: rows_of(each.rows, pair) for level, each in comparisons.items()}
        checks += _pair(pair, asked[pair.name], policy, rows, family)
    checks += [vanished_check(cell, policy.failures) for cell in matched.vanished]
    for cell, wanted in new:
        checks += _bounds(name_of(cell), cell, wanted)
    allowances = Allowances(today, policy)
    settled = [allowances.settle(check) for check in checks]
    # What the default asks does not concern every run, and is nobody's mistake.
    unused = [] if policy == default_policy() else [*limits.unused()]
    names = [pair.name for pair in matched.pairs]
    names += [name_of(cell) for cell in (*matched.vanished, *matched.added)]
    unused += allowances.unused(names, settled)
    ordered = sorted(settled, key=_how_bad)
    result = result_of(ordered, family)
    return Gate(
        comparison=_as_judged(comparisons[policy.confidence], ordered),
        checks=tuple(ordered),
        outcome=result,
        policy=policy_name,
        headline=headline(ordered, family),
        unused=tuple(unused),
        remedy=remedy_of(ordered, family) if result == "undecided" else "",
    )


def _how_bad(check: Check) -> tuple[int, bool]:
    return _WORST_FIRST.index(check.status), check.undecided


def _as_judged(comparison: Comparison, checks: Sequence[Check]) -> Comparison:
    """Its rows with what limits made of them, so that no table contradicts a check."""
    judged = {
        (check.cell, check.metric): check.compared
        for check in checks
        if check.kind == "worse_by" and check.compared is not None
    }
    rows = []
    for row in comparison.rows:
        found = judged.get((row.pair.name, row.metric))
        if found is not None:
            row = replace(  # noqa: PLW2901 - the same row
                row, verdict=found.verdict, why=found.why, repetitions=found.repetitions
            )
        rows.append(row)
    return replace(comparison, rows=tuple(rows))


def _comparisons(
    matched: Matched, policy: Policy, asked: Mapping[str, Mapping[str, Asked]]
) -> dict[float, Comparison]:
    """The comparison at the gate's confidence, and at each of limits that have their own.

    All ask the same questions: what each could notice depends on the confidence.
    """
    wanted = {
        (name, key)
        for name, metrics in asked.items()
        for key, each in metrics.items()
        if each.worse_by is not None
    }
    worse_by = [
        each.worse_by
        for metrics in asked.values()
        for each in metrics.values()
        if each.worse_by is not None
    ]
    own = {each.confidence for metrics in asked.values() for each in metrics.values()}
    return {
        confidence: compare(
            matched,
            confidence=confidence,
            margin=min(worse_by, default=MARGIN),
            noise_floor=policy.noise_floor,
            wanted=lambda name, key: (name, key) in wanted,
            one_sided=True,
        )
        for confidence in {policy.confidence} | own
    }


def _pair(
    pair: Pair,
    asked: Mapping[str, Asked],
    policy: Policy,
    rows: Mapping[float, Mapping[str, Compared]],
    family: Family,
) -> Iterator[Check]:
    """The checks of one pair: whether it still has a result, then its metrics.

    Args:
        pair: the cells.
        asked: by metric.
        policy: whose failures count.
        rows: of this pair, by confidence and metric.
        family: all that was asked together.
    """
    of_cell = cell_check(
        pair,
        policy.failures,
        confidence=policy.confidence,
        least=family.least_of(pair, policy.confidence),
    )
    if of_cell is not None:
        yield of_cell
    if pair.candidate.status not in _HAS_RESULTS:
        return
    for key, each in asked.items():
        before, now = missing(pair.baseline, key), missing(pair.candidate, key)
        if before is None and now is not None:
            why = "has no value that counts" if pair.candidate.is_broken else "is not measured"
            yield lost(pair.name, key, each, f"{why} any more: {now}", policy.failures)
            continue
        if before is None and (other := _other_unit(pair, key)):
            yield lost(pair.name, key, each, other, policy.failures)
            continue
        # What is broken on both sides says nothing, and must not pass for that.
        broken = pair.candidate.is_broken and pair.baseline.is_broken and before is not None
        if each.worse_by is not None and (now is None or broken):
            row = rows[each.confidence].get(key)
            why = f"the baseline has no value: {before}" if before else "no value compares"
            yield change_check(row, pair.name, key, each, family, why)
        yield from _bounds(pair.name, pair.candidate, {key: each})


def _other_unit(pair: Pair, key: str) -> str:
    """That a metric is in another unit than it was; empty where it is not."""
    before, now = pair.baseline.metrics[key].unit, pair.candidate.metrics[key].unit
    if before == now:
        return ""
    return f"can't be compared any more: the baseline's is in {before}, the candidate's in {now}"


def _bounds(name: str, cell: SideCell, asked: Mapping[str, Asked]) -> Iterator[Check]:
    if cell.status not in _HAS_RESULTS:
        return
    for key, each in asked.items():
        if key in cell.metrics:
            if each.at_most is not None:
                yield bound_check(name, cell, key, each, "at_most")
            if each.at_least is not None:
                yield bound_check(name, cell, key, each, "at_least")
