"""Limits on a change against the baseline: broken, kept, or not to be decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.model import FACTS
from edgebench.harness.gate.family import is_rated
from edgebench.harness.gate.model import Check
from edgebench.harness.gate.wording import (
    TOO_NOISY,
    USELESS,
    about,
    amounts,
    chance,
    count,
    interval,
    percent,
    worse,
)
from edgebench.harness.metrics.definitions import metric

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Answer, Compared, Samples, SideCell
    from edgebench.harness.gate.family import Family
    from edgebench.harness.gate.limits import Asked
    from edgebench.harness.gate.model import Kind, Severity, Status

ROUNDING: Final = 1e-9
"""By so much a limit may be missed for floats' sake: 1.02 - 1 is not 0.02."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a limit, before severities and allowances.

    Attributes:
        status: fail, undecided or pass.
        message, detail: as in `Check`.
        repetitions: that would settle it; None where that can't be told.
    """

    status: Status
    message: str
    detail: str = ""
    repetitions: int | None = None


def missing(cell: SideCell, key: str) -> str | None:
    """Why a cell has no value of a metric; None where it has one."""
    found = cell.metrics.get(key)
    if found is None:
        return "it is not among its metrics"
    return None if found.values else _reason(found)


def _reason(found: Samples) -> str:
    return found.reason or "no repetition has it"


def lost(cell: str, key: str, asked: Asked, why: str, failures: Severity) -> Check:
    """The check of a metric that the baseline has and the candidate does not.

    Args:
        cell: its name.
        key: the metric's.
        asked: of it.
        why: what is the matter with it, as a verb and what follows.
        failures: the policy's severity for what is gone.
    """
    bounds: dict[Kind, float | None] = {
        "worse_by": asked.worse_by,
        "at_most": asked.at_most,
        "at_least": asked.at_least,
    }
    kind, limit = next((kind, each) for kind, each in bounds.items() if each is not None)
    return Check(
        cell=cell,
        metric=key,
        kind=kind,
        status="fail",
        severity="fail" if failures == asked.severity == "fail" else "warn",
        message=f"{metric(key).label} {why}",
        limit=limit,
        unit=metric(key).unit,
        confidence=asked.confidence,
    )


def change_check(
    row: Compared | None, cell: str, key: str, asked: Asked, family: Family, why: str = ""
) -> Check:
    """Hold a worsening against its limit.

    Args:
        row: what was compared; None where nothing could be.
        cell: its name.
        key: the metric's.
        asked: with a `worse_by`.
        family: what was asked together with it.
        why: of no row, why there is none.
    """
    assert asked.worse_by is not None
    if row is not None and row.answer.ratio is None and row.worsening is not None:
        outcome = _gone_to_nothing(row, asked.worse_by)
    elif row is not None and row.worsening is None and row.verdict == "same":
        outcome = Outcome("pass", f"{metric(key).label} is the same; {_limit(asked.worse_by)}")
    elif row is None or row.worsening is None:
        label = metric(key).label
        because = why if row is None else (row.answer.reason or row.why or "no value compares")
        outcome = Outcome("undecided", f"{label} can't be compared: {because}")
    else:
        outcome = _outcome(row, row.worsening, asked, family)
        row = replace(row, repetitions=outcome.repetitions)
        if outcome.status == "fail":
            # What is compared in general may call it the same, by another margin.
            row = replace(row, verdict="worse", why="")
    return Check(
        cell=cell,
        metric=key,
        kind="worse_by",
        status=outcome.status,
        severity=asked.severity,
        message=outcome.message,
        limit=asked.worse_by,
        value=None if row is None else row.worsening,
        unit=metric(key).unit if row is None else row.unit,
        confidence=asked.confidence,
        detail=outcome.detail,
        compared=row,
        estimated=row is not None and row.estimated,
    )


def _gone_to_nothing(row: Compared, limit: float) -> Outcome:
    """A rate that is 0 now: no ratio can be made of it, and it is certainly worse."""
    label = _label(row)
    why = f": {row.why}" if row.why else ""
    return Outcome("fail", f"{label} has fallen to nothing{why}; {_limit(limit)}")


def _outcome(row: Compared, worsening: float, asked: Asked, family: Family) -> Outcome:
    answer, limit, confidence = row.answer, asked.worse_by or 0.0, asked.confidence
    found = _found(row, worsening)
    beyond = worsening >= limit - ROUNDING and worsening > 0
    if row.metric in FACTS:
        status: Status = "fail" if beyond else "pass"
        return Outcome(status, f"{found}; {_limit(limit)}", "known of the artifact, not sampled")
    certain = answer.p_worse is not None and answer.p_worse <= 1 - confidence + ROUNDING
    detail = _detail(row)
    if beyond and certain:
        return Outcome("fail", f"{found}; {_limit(limit)}", detail)
    if not beyond and (_excluded(row, limit) or _would_have_been_noticed(answer, limit)):
        return Outcome("pass", f"{found}; {_limit(limit)}", detail)
    needed = family.repetitions(row, limit, confidence)
    if answer.n == 1 and answer.no_interval:
        doubt = answer.no_interval
    elif family.drowns(row, limit):
        doubt = (
            "runs that were made at different times can't tell less than the noise floor, "
            f"{percent(family.noise_floor)}"
        )
    elif beyond:
        doubt = f"that is not certain at {percent(confidence)}"
    elif answer.noticeable is None:
        doubt = f"a worsening of {percent(limit)} could not have been noticed"
    elif answer.noticeable >= USELESS:
        doubt = f"the samples are {TOO_NOISY}"
    else:
        doubt = f"only a worsening of {about(answer.noticeable)} would surely have been noticed"
    return Outcome("undecided", f"{found}; {_limit(limit)}, and {doubt}", detail, needed)


def _found(row: Compared, worsening: float) -> str:
    """What was found, with its values."""
    label = _label(row)
    if row.baseline is None or row.candidate is None:
        return f"{label} is {worse(worsening)}"
    change = row.candidate - row.baseline
    if worsening * (change if row.better == "lower" else -change) < 0:
        # The change is of pairs, or of all values with all: the medians by themselves may differ
        # the other way, which helps nobody to read it.
        return f"{label} is {worse(worsening)}{' over the pairs' if row.answer.paired else ''}"
    baseline, candidate = amounts((row.baseline, row.candidate), row.unit)
    return f"{label} is {worse(worsening)} (median {candidate}, was {baseline.split()[0]})"


def _label(row: Compared) -> str:
    return metric(row.metric).label + (" (estimated)" if row.estimated else "")


def _limit(limit: float) -> str:
    return f"the limit is {percent(limit)}" if limit else "any worsening is too much"


def _would_have_been_noticed(answer: Answer, limit: float) -> bool:
    return answer.noticeable is not None and answer.noticeable <= limit + ROUNDING


def _excluded(row: Compared, limit: float) -> bool:
    """Whether the whole interval is on the good side of the limit."""
    worst = worst_of(row)
    # A limit of 0 is broken by any worsening, but not by none.
    return worst is not None and (worst < limit or worst <= 0)


def worst_of(row: Compared) -> float | None:
    """The bad end of the interval, as a worsening."""
    low, high = row.answer.low, row.answer.high
    if low is None or high is None:
        return None
    return high - 1 if row.better == "lower" else 1 - low


def _detail(row: Compared) -> str:
    """How certain it is, in one line."""
    answer, parts = row.answer, []
    if answer.low is not None and answer.high is not None:
        parts.append(f"95 % interval {interval(answer.low - 1, answer.high - 1)}")
    elif answer.no_interval:
        parts.append(f"no interval: {answer.no_interval}")
    if answer.p_worse is not None:
        parts.append(f"adjusted {chance(answer.p_worse)}")
    if answer.n and is_rated(row):
        parts.append(count(answer.n, "window"))
    elif answer.n:
        parts.append(f"{count(answer.n * row.pair.per_block, 'repetition')} each")
    return ", ".join(parts)
