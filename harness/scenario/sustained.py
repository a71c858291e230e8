"""What does not go together where work is sustained: it must fit into the time of the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator

from edgebench.harness.scenario.problems import Finding
from edgebench.harness.scenario.quantities import amount
from edgebench.harness.scenario.values import DURATION_SCHEMA, Duration, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LEAST_S: Final = 10.0
"""Shorter work shows nothing of heat, and no fall of the rate can be told from noise in it."""
MOST_S: Final = 86_400.0


def _lasting(seconds: float) -> float:
    """That long, where it is neither too short nor too long."""
    if seconds < LEAST_S:
        message = (
            f"must last at least {LEAST_S:g} s, got {seconds:g} s: shorter work shows nothing of "
            "heat"
        )
        raise refusal(message)
    if seconds > MOST_S:
        message = f"must last at most {MOST_S / 3600:g} h, got {seconds / 3600:.4g} h"
        raise refusal(message)
    return seconds


Lasting = Annotated[Duration, AfterValidator(_lasting), DURATION_SCHEMA]
"""How long work is sustained, in seconds."""


def sustained_conflicts(
    workloads: Sequence[object], variants: int, budget_s: object
) -> list[Finding]:
    """Whether the sustained work of all variants fits into the time budget.

    Args:
        workloads: as written, or as read.
        variants: how many do it, each once.
        budget_s: for the whole run, in seconds.
    """
    groups = [each if isinstance(each, Mapping) else {} for each in workloads]
    asked = {place: _seconds(each.get("sustained")) for place, each in enumerate(groups)}
    # What is too short or too long by itself is refused for that.
    long = {at: each for at, each in asked.items() if each and LEAST_S <= each <= MOST_S}
    if not long or isinstance(budget_s, bool) or not isinstance(budget_s, int | float):
        return []
    needed = needed_s(long.values(), variants)
    if fits(needed, budget_s, alone=len(long) == len(groups)):
        return []
    who = "1 variant" if variants == 1 else f"{variants} variants"
    message = (
        f"the sustained work of {who} takes {needed:g} s, and measure.time_budget_s, for the whole "
        f"run, is {budget_s:g}; raise it above {needed:g}"
    )
    return [Finding(("workloads", next(iter(long)), "sustained"), message)]


def needed_s(seconds: Iterable[float], variants: int) -> float:
    """How long the sustained work of all variants takes, without loading and cooling down."""
    return sum(seconds) * variants


def fits(needed: float, budget_s: float, *, alone: bool) -> bool:
    """Whether there is time for it, and for what else there is to measure."""
    return needed <= budget_s if alone else needed < budget_s


def _seconds(value: object) -> float | None:
    """As the model reads it; None for what it refuses."""
    if isinstance(value, str):
        return amount(value, "s")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
