"""Energy and memory of a window, against integrals worked out by hand."""

from __future__ import annotations

import pytest

from edgebench.devices.energy import energy_between
from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace, Window
from edgebench.harness.metrics.system import (
    energy_metrics,
    meter_energies,
    window_metrics,
)
from edgebench.harness.results.measured import Measured
from edgebench.runners.base import Generation

S = 1_000_000_000
MS = 1_000_000


def points(*pairs: tuple[int, float]) -> tuple[EnergyPoint, ...]:
    return tuple(EnergyPoint(t_ms * MS, joules) for t_ms, joules in pairs)


# 10 W for the first second, 30 W after it, read every 100 ms.
RAMP = points(
    *((t, t / 1000 * 10) for t in range(0, 1001, 100)),
    *((t, 10 + (t - 1000) / 1000 * 30) for t in range(1100, 3001, 100)),
)


def trace(
    readings: tuple[EnergyPoint, ...],
    meter: str = "bench:supply",
    source: str = "observed",
    **more: object,
) -> EnergyTrace:
    return EnergyTrace(meter, source, readings, **more)  # type: ignore[arg-type]


def window(**changes: object) -> Window:
    nothing = Reading(None, "not read")
    readings = (
        "peak_rss peak_anon peak_file peak_shared pss cpu_time minor_faults major_faults "
        "voluntary_switches involuntary_switches others clock temperature"
    )
    fields: dict[str, object] = dict.fromkeys(readings.split(), nothing)
    fields |= {"begin_ns": 0, "end_ns": 3 * S, "samples": ()}
    fields |= {"energy": (trace(RAMP),), "energy_reason": None}
    return Window(**{**fields, **changes})  # type: ignore[arg-type]


def generation(token_ms: list[int]) -> Generation:
    return Generation(
        token_ids=[1] * len(token_ms),
        submitted_ns=0,
        token_ns=[t * MS for t in token_ms],
        prompt_tokens=4,
        finish_reason="length",
    )


def test_energy_is_split_at_the_first_token() -> None:
    """10 W until the first token at 1 s, then 30 W: 10 J of prefill and 6 J a token of decode."""
    metrics = energy_metrics(window(), generation([1000, 1200, 1400, 1600, 1800, 2000]))
    assert metrics["prefill_energy_j"].value == pytest.approx(10.0)
    assert metrics["decode_energy_j"].value == pytest.approx(30.0)
    assert metrics["energy_per_token_j"].value == pytest.approx(6.0)
    assert metrics["mean_power_w"].value == pytest.approx(30.0)
    assert metrics["rate_per_watt"].value == pytest.approx(5 / 30)


def test_energy_between_readings_is_interpolated() -> None:
    """From 0.95 s to 1.35 s: half a reading of 10 W, then 0.35 s of 30 W."""
    assert energy_between(trace(RAMP), 950 * MS, 1350 * MS).value == pytest.approx(
        0.05 * 10 + 0.35 * 30
    )


@pytest.mark.parametrize(
    ("start_ms", "end_ms"),
    [(1000, 1010), (1000, 1250), (-500, 1000), (2500, 3500), (1000, 1000)],
    ids=["shorter than a reading", "two readings", "before", "after", "empty"],
)
def test_a_window_that_the_counter_does_not_resolve_has_no_energy(
    start_ms: int, end_ms: int
) -> None:
    """Too few readings inside, or none at an edge: no number rather than a guess."""
    assert energy_between(trace(RAMP), start_ms * MS, end_ms * MS).value is None


def test_without_a_meter_every_energy_is_null_with_its_reason() -> None:
    """The meter's own refusal stands at each of the six metrics; never 0."""
    metrics = energy_metrics(
        window(energy=(), energy_reason="permission denied: run chmod"), generation([10, 20])
    )
    assert {(item.value, item.reason) for item in metrics.values()} == {
        (None, "permission denied: run chmod")
    }
    assert len(metrics) == 6


def test_each_meter_has_its_own_energies() -> None:
    """The metrics are of the first meter; the others stand beside it, with their reasons."""
    lost = trace((), "bench:lost", reason="bench:lost can't be read any more: unplugged")
    slow = trace(RAMP, "bench:slow", resolution_s=0.15)
    made = generation([1000, 1200, 1400, 1600, 1800, 2000])
    seen = window(energy=(trace(RAMP), lost, slow))
    assert energy_metrics(seen, made)["decode_energy_j"].value == pytest.approx(30.0)
    first, second, third = meter_energies(seen, made)
    assert (first.meter, first.prefill_j, first.reason) == ("bench:supply", pytest.approx(10), None)
    assert (second.decode_j, second.reason) == (None, lost.reason)
    assert third.reason == (
        "the window is too short for bench:slow, which changes every 0.15 s: it takes 1.5 s"
    )


def test_estimates_stay_estimates() -> None:
    """What is computed from an estimate is one: the rate per watt and the power above idle too."""
    seen = window(energy=(trace(RAMP, "estimate:tdp", "estimated"),))
    idle = Measured(value=4.0, unit="W", source="estimated")
    metrics = energy_metrics(seen, generation([1000, 1500, 2000]), idle)
    assert {item.source for item in metrics.values()} == {"estimated"}
    assert {item.source for item in [meter_energies(seen, generation([1000, 2000]))[0]]} == {
        "estimated"
    }


def test_power_above_idle_is_the_difference() -> None:
    """30 W while decoding and 4 W before the block: 26 W, and none without an idle power."""
    made = generation([1000, 1500, 2000])
    idle = Measured(value=4.0, unit="W", source="observed")
    assert energy_metrics(window(), made, idle)["power_above_idle_w"].value == pytest.approx(26.0)
    lost = Measured.missing("W", "bench:supply can't be read: unplugged")
    above = energy_metrics(window(), made, lost)["power_above_idle_w"]
    assert above.reason == "no idle power: bench:supply can't be read: unplugged"


def test_a_single_token_has_prefill_energy_only() -> None:
    """One token has no decode phase to divide by."""
    metrics = energy_metrics(window(), generation([2000]))
    assert metrics["prefill_energy_j"].value == pytest.approx(10 + 30)
    assert metrics["energy_per_token_j"].value is None


def test_readings_keep_their_reasons() -> None:
    """What could not be read is null with the reason that the collector gave."""
    metrics = window_metrics(window(peak_rss=Reading(4096.0), pss=Reading(None, "not permitted")))
    assert metrics["peak_rss_bytes"].value == 4096
    assert metrics["peak_rss_bytes"].unit == "byte"
    assert metrics["peak_pss_bytes"].reason == "not permitted"
