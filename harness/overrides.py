"""What the command line changes in a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgebench.harness.scenario.model import Measure, Scenario, Workload

QUICK_PROMPT_TOKENS = 64
QUICK_GENERATE_TOKENS = 16
QUICK_REPETITIONS = 2


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of ``edgebench run``; empty ones change nothing."""

    runners: Sequence[str] = ()
    workloads: Sequence[str] = ()
    repetitions: int | None = None
    time_budget_s: float | None = None
    quick: bool = False


def apply_overrides(scenario: Scenario, overrides: Overrides) -> Scenario:
    """The scenario with fewer variants, fewer workloads, or other limits.

    Raises:
        UsageError: a runner or workload that the scenario does not have.
    """
    variants, workloads, measure = scenario.variants, scenario.workloads, scenario.measure
    if overrides.runners:
        _check("runner", overrides.runners, [variant.runner for variant in variants])
        variants = tuple(item for item in variants if item.runner in overrides.runners)
    if overrides.workloads:
        _check("workload", overrides.workloads, [workload.name for workload in workloads])
        workloads = tuple(item for item in workloads if item.name in overrides.workloads)
    if overrides.quick:
        workloads = tuple(_quick(item) for item in workloads)
        warmup = measure.warmup.model_copy(update={"min": 1, "max": 1})
        measure = _repeat(measure, QUICK_REPETITIONS).model_copy(update={"warmup": warmup})
    if overrides.repetitions is not None:
        measure = _repeat(measure, overrides.repetitions)
    if overrides.time_budget_s is not None:
        measure = measure.model_copy(update={"time_budget_s": overrides.time_budget_s})
    return scenario.model_copy(
        update={"variants": variants, "workloads": workloads, "measure": measure}
    )


def _check(what: str, asked: Iterable[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            there = ", ".join(dict.fromkeys(known))
            msg = f"the scenario has no {what} {name!r}"
            raise UsageError(msg, remedy=f"It has: {there}.")


def _repeat(measure: Measure, count: int) -> Measure:
    repetitions = measure.repetitions.model_copy(update={"min": count, "max": count})
    return measure.model_copy(update={"repetitions": repetitions})


def _quick(workload: Workload) -> Workload:
    if workload.quality is not None:
        quality = workload.quality
        # One window, which every variant rates in one process.
        fewer = min(quality.max_tokens, quality.window - max(quality.first_scored, 1))
        return workload.model_copy(
            update={"quality": quality.model_copy(update={"max_tokens": fewer})}
        )
    if workload.generate_tokens is None:
        return workload  # a task ends by itself; fewer repetitions are all that can be spared
    return workload.model_copy(
        update={
            "prompt_tokens": _at_most(workload.prompt_tokens, QUICK_PROMPT_TOKENS),
            "generate_tokens": min(workload.generate_tokens, QUICK_GENERATE_TOKENS),
            "depth": min(workload.depth, QUICK_PROMPT_TOKENS),
        }
    )


def _at_most(value: int | None, limit: int) -> int | None:
    return None if value is None else min(value, limit)
