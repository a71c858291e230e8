"""What a gate comes to as a whole: passed, failed, or not able to decide anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.gate.family import is_sampled
from edgebench.harness.gate.wording import count, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Compared
    from edgebench.harness.gate.family import Family
    from edgebench.harness.gate.model import Check, Result

SAFE: Final = 10
"""Repetitions that a gate at 99 % can go by even where some values are tied."""

_SPARE: Final = 3


def sampled_checks(checks: Sequence[Check]) -> list[tuple[Check, Compared]]:
    """Those that ask about a change of samples, each with its row."""
    return [
        (check, check.compared)
        for check in checks
        if check.kind == "worse_by" and check.compared is not None and is_sampled(check.compared)
    ]


def result_of(checks: Sequence[Check], family: Family) -> Result:
    """What came of it.

    A gate whose samples could not have shown any worsening, whatever had happened, is no pass:
    otherwise the one that measures least would be the one that always passes.
    """
    if any(check.status == "fail" for check in checks):
        return "failed"
    sampled = sampled_checks(checks)
    if sampled and not any(_could_be_broken(check, row, family) for check, row in sampled):
        return "undecided"
    return "passed"


def remedy_of(checks: Sequence[Check], family: Family) -> str:
    """What an undecided gate would take: how many repetitions, and how to get them."""
    sampled = sampled_checks(checks)
    short = [(check, row) for check, row in sampled if family.is_short(row, check.confidence)]
    if len(short) < len(sampled):
        return (
            "The repetitions are enough, but they vary or drift too much to tell any change. "
            "Measure both sides in the same blocks, `edgebench run SCENARIO --against …`, or on a "
            "machine that does nothing else"
        )
    check, row = max(short, key=lambda each: family.least(each[1], each[0].confidence))
    each = row.pair.per_block
    least = family.least(row, check.confidence) * each
    safe = max(SAFE, least + _SPARE)
    there = count(row.answer.n * each, "repetition")
    were = "was" if row.answer.n * each == 1 else "were"
    kind = "interleaved repetitions" if row.answer.paired else "repetitions on each side"
    against = " --against …" if row.answer.paired else ""
    return (
        f"At {percent(check.confidence)} it takes {least} {kind} at the very least, and {safe} to "
        f"be safe; there {were} {there}. "
        f"Measure again: `edgebench run SCENARIO{against} --repetitions {safe}`"
    )


def noticed(check: Check, row: Compared, family: Family) -> float | None:
    """The smallest worsening that would have been noticed; None where none would have been."""
    if row.answer.noticeable is not None:
        return row.answer.noticeable
    # Values that are the same every time: any change in all of them would stand out.
    constant = row.answer.spread == 0 and not family.is_short(row, check.confidence)
    return 0.0 if constant else None


def _could_be_broken(check: Check, row: Compared, family: Family) -> bool:
    """Whether some worsening would have been certain, or this one is."""
    if noticed(check, row, family) is not None:
        return True
    return row.answer.p_worse is not None and row.answer.p_worse <= 1 - check.confidence
