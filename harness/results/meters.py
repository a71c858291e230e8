"""Which meter an energy or a power is of: those of two meters do not compare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.results.measured import Measured

if TYPE_CHECKING:
    from edgebench.harness.results.model import RunRecord
    from edgebench.harness.results.trial import Trial

METERED: Final = frozenset(
    {
        "prefill_energy_j",
        "decode_energy_j",
        "energy_per_token_j",
        "idle_power_w",
        "mean_power_w",
        "power_above_idle_w",
        "sustained_power_w",
        "rate_per_watt",
    }
)
"""Keys of the metrics that a meter of energy tells."""


def meter_of(record: RunRecord, key: str) -> str | None:
    """The meter that a run's values of a metric are of, such as ``rapl:package``.

    Returns:
        None of a metric that no meter tells, of a run without one, and of a run of an edgebench
        that did not record it.
    """
    return record.meters[0].name if key in METERED and record.meters else None


def of_its_meter(record: RunRecord, trial: Trial) -> dict[str, Measured]:
    """A trial's metrics; those that are of another meter than the run's are null.

    That is so where a run was resumed on a machine that meanwhile had another meter.
    """
    if not record.meters or not trial.power or trial.power[0].meter == record.meters[0].name:
        return trial.metrics
    mine, its = trial.power[0].meter, record.meters[0].name
    why = f"it is of {mine}, read before the run was resumed, and the run's meter is {its}"
    return {
        key: Measured.missing(each.unit, why, each.source)
        if key in METERED and each.value is not None
        else each
        for key, each in trial.metrics.items()
    }
