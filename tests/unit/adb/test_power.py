"""Energy of a repetition on an Android device: only where it is known when that was."""

from __future__ import annotations

import pytest

from edgebench.devices.window import EnergyPoint, EnergyTrace
from edgebench.harness.adb.power import UNPLACED, EnergyLog, energies
from edgebench.harness.adb.tool import Sample
from edgebench.harness.results.measured import Measured

S = 1_000_000_000
IDLE = Measured(value=1.0, unit="W", source="observed")


def trace(watts: float, seconds: int, resolution_s: float) -> EnergyTrace:
    """A counter that is read each second, at a steady power."""
    points = tuple(EnergyPoint(at * S, watts * at) for at in range(seconds + 1))
    return EnergyTrace("battery", "observed", points, None, resolution_s)


def test_the_last_repetition_has_its_energy() -> None:
    """30 s at 4 W that ended at 50 s: 120 J, of 60 tokens."""
    counter = trace(4.0, 60, 1.0)
    sample = Sample(60, 2.0, 30.0, 50 * S)
    metrics, (meter,) = energies("not read", (counter, sample), IDLE)
    assert metrics["decode_energy_j"].value == pytest.approx(120.0)
    assert metrics["energy_per_token_j"].value == pytest.approx(2.0)
    assert metrics["mean_power_w"].value == pytest.approx(4.0)
    assert metrics["power_above_idle_w"].value == pytest.approx(3.0)
    assert metrics["rate_per_watt"].value == pytest.approx(0.5)
    assert metrics["prefill_energy_j"].reason == "not read"
    assert (meter.meter, meter.decode_j) == ("battery", pytest.approx(120.0))


def test_a_gauge_that_is_too_slow_tells_nothing() -> None:
    """5 s of a gauge that changes each second are too few of its changes."""
    metrics, _ = energies("-", (trace(4.0, 60, 1.0), Sample(10, 2.0, 5.0, 50 * S)), IDLE)
    assert metrics["decode_energy_j"].value is None
    assert "too short for battery" in str(metrics["decode_energy_j"].reason)


def test_a_repetition_without_a_place_in_time_has_no_energy() -> None:
    """A rate alone, or a repetition before the last, can't be laid over the counter."""
    for sample in (Sample(10, 2.0), Sample(10, 2.0, 30.0)):
        metrics, _ = energies("-", (trace(4.0, 60, 1.0), sample), IDLE)
        assert metrics["mean_power_w"].reason == UNPLACED


def test_a_meter_that_fails_is_told_with_its_reason() -> None:
    """A phone that is put on its cable in the middle: what was read before is no whole."""

    class Meter:
        name, source, resolution_s = "battery", "observed", 1.0

        def read_j(self) -> float:
            raise OSError("the phone is on a cable now")

        def close(self) -> None:
            """Nothing to close."""

    with EnergyLog([Meter()]) as log:  # type: ignore[list-item]
        pass
    (seen,) = log.traces()
    assert seen.reason == "battery can't be read any more: the phone is on a cable now"
