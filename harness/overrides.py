"""What the command line changes in a scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.expand import expand
from edgebench.harness.scenario.sustained import LEAST_S, fits, needed_s
from edgebench.harness.store.sources import synthetic_source
from edgebench.models.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgebench.harness.scenario.model import Measure, Scenario, Workload

QUICK_PROMPT_TOKENS = 64
QUICK_GENERATE_TOKENS = 16
QUICK_REPETITIONS = 2
QUICK_SUSTAINED_S = LEAST_S


@dataclass(frozen=True, slots=True)
class Overrides:
    """Options of ``edgebench run``; empty ones change nothing."""

    runners: Sequence[str] = ()
    workloads: Sequence[str] = ()
    repetitions: int | None = None
    time_budget_s: float | None = None
    quick: bool = False
    synthetic: bool = False
    ssh: str | None = None
    python: str | None = None


def apply_overrides(scenario: Scenario, overrides: Overrides) -> Scenario:
    """The scenario with fewer variants, fewer workloads, or other limits.

    Raises:
        UsageError: a runner or workload that the scenario does not have, or a time budget that its
            sustained work does not fit into; or synthetic weights are asked for, and it does not
            name any; or a board's Python, and it runs on none that is reached by SSH.
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
    changed = scenario.model_copy(
        update={"variants": variants, "workloads": workloads, "measure": measure}
    )
    for option, given in (("--ssh", overrides.ssh), ("--python", overrides.python)):
        if given is not None and not given.strip():
            msg = f"{option} is empty"
            raise UsageError(msg, remedy=f"Leave {option} out, or write a value after it.")
    if overrides.ssh is not None:
        reached = {"ssh": overrides.ssh, "adb": None}
        device = changed.device.model_copy(update=reached)
        changed = changed.model_copy(update={"device": device})
    if overrides.python is not None:
        if changed.device.ssh is None:
            msg = "--python is the Python of a board over SSH, and this scenario names none"
            raise UsageError(
                msg,
                remedy="Name it by --ssh. On this machine, write `python:` into a variant, or into "
                "your configuration for all.",
            )
        device = changed.device.model_copy(update={"python": overrides.python})
        changed = changed.model_copy(update={"device": device})
    if overrides.synthetic:
        changed = _synthetic(changed)
    check_time(changed)
    return changed


def check_time(scenario: Scenario, sides: int = 1) -> None:
    """Refuse a time budget that the sustained work does not fit into.

    Args:
        scenario: as it is to be run.
        sides: how many runs of it share the time.

    Raises:
        UsageError: it does not.
    """
    long = [each.sustained for each in scenario.workloads if each.sustained is not None]
    needed, budget = needed_s(long, sides * len(expand(scenario))), scenario.measure.time_budget_s
    if long and not fits(needed, budget, alone=len(long) == len(scenario.workloads)):
        both = " of both sides" if sides > 1 else ""
        msg = f"the sustained work{both} takes {needed:g} s, and the time budget is {budget:g} s"
        remedy = f"Give --time-budget more than {needed:g}, in seconds, or other --workloads."
        raise UsageError(msg, remedy=remedy)


def _synthetic(scenario: Scenario) -> Scenario:
    """The scenario with random weights in place of its model's; they are under no licence."""
    model = scenario.model
    if synthetic_source(model.source) is not None:
        return scenario
    if model.synthetic is None:
        msg = f"the scenario {scenario.name!r} does not say what its synthetic weights are"
        raise UsageError(
            msg,
            remedy="Write `synthetic: ARCHITECTURE` below its `model:`. Known are: "
            f"{', '.join(SHAPES)}.",
        )
    made_up = {"source": f"synthetic:{model.synthetic}", "sha256": None, "license": None}
    return scenario.model_copy(update={"model": model.model_copy(update=made_up)})


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
            "sustained": None if workload.sustained is None else QUICK_SUSTAINED_S,
        }
    )


def _at_most(value: int | None, limit: int) -> int | None:
    return None if value is None else min(value, limit)
