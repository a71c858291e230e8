"""From what the collectors saw during one trial to its metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.devices import energy
from edgebench.devices.reading import Reading
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.power import MeterEnergy
from edgebench.harness.results.trial import Timeline

if TYPE_CHECKING:
    from edgebench.devices.window import EnergyTrace, Window
    from edgebench.runners.base import Generation

NS = 1e9
NO_METER = "no power meter was found"
ENERGY_UNITS = {
    "prefill_energy_j": "J",
    "decode_energy_j": "J",
    "energy_per_token_j": "J/token",
    "mean_power_w": "W",
    "power_above_idle_w": "W",
    "rate_per_watt": "token/s/W",
}


def window_metrics(window: Window) -> dict[str, Measured]:
    """Memory in bytes, CPU time in s, clock in Hz and counts of one window."""
    return {
        "peak_rss_bytes": _of(window.peak_rss, "byte"),
        "peak_anon_bytes": _of(window.peak_anon, "byte"),
        "peak_file_bytes": _of(window.peak_file, "byte"),
        "peak_shared_bytes": _of(window.peak_shared, "byte"),
        "peak_pss_bytes": _of(window.pss, "byte"),
        "cpu_time_s": _of(window.cpu_time, "s"),
        "minor_faults": _of(window.minor_faults, "1"),
        "major_faults": _of(window.major_faults, "1"),
        "voluntary_switches": _of(window.voluntary_switches, "1"),
        "involuntary_switches": _of(window.involuntary_switches, "1"),
        "others_cpus": _of(window.others, "1"),
        "cpu_clock_hz": _of(window.clock, "Hz"),
        "cpu_temperature_celsius": _of(window.temperature, "°C"),
    }


@dataclass(frozen=True, slots=True)
class _Energies:
    """What one meter saw of one generation: joules of each phase, watts of the decoding."""

    trace: EnergyTrace
    prefill: Reading
    decode: Reading
    mean_power: Reading


def energy_metrics(
    window: Window, made: Generation, idle: Measured | None = None
) -> dict[str, Measured]:
    """Energy of prefill and decode, of a token, and power, over the generation's own times.

    Args:
        window: with the meters' readings; the first meter's count.
        made: when each token was there.
        idle: what that meter showed before the block, in watts.
    """
    if not window.energy:
        why = window.energy_reason or NO_METER
        return {key: Measured.missing(unit, why) for key, unit in ENERGY_UNITS.items()}
    found = _energies(window.energy[0], made)
    steps = len(made.token_ns) - 1
    joules = found.decode.value
    per_token = rate = found.decode
    if joules is not None:
        per_token = Reading(joules / steps)
        rate = Reading(steps / joules) if joules > 0 else Reading.missing("no energy was counted")
    readings = {
        "prefill_energy_j": found.prefill,
        "decode_energy_j": found.decode,
        "energy_per_token_j": per_token,
        "mean_power_w": found.mean_power,
        "power_above_idle_w": _above(found.mean_power, idle),
        "rate_per_watt": rate,
    }
    source = found.trace.source
    return {
        key: Measured(value=each.value, unit=ENERGY_UNITS[key], source=source, reason=each.reason)
        for key, each in readings.items()
    }


def meter_energies(window: Window, made: Generation) -> list[MeterEnergy]:
    """What each meter saw of a generation, in the meters' order."""
    return [_meter_energy(_energies(trace, made)) for trace in window.energy]


def _energies(trace: EnergyTrace, made: Generation) -> _Energies:
    start, first, last = made.submitted_ns, made.token_ns[0], made.token_ns[-1]
    prefill = energy.energy_between(trace, start, first)
    decode = Reading.missing("a single token has no decoding to measure")
    if last > first:
        decode = energy.energy_between(trace, first, last)
    power = decode if decode.value is None else Reading(decode.value / ((last - first) / NS))
    return _Energies(trace, prefill, decode, power)


def _meter_energy(found: _Energies) -> MeterEnergy:
    reasons = dict.fromkeys(
        each.reason for each in (found.prefill, found.decode) if each.reason is not None
    )
    return MeterEnergy(
        meter=found.trace.meter,
        source=found.trace.source,
        prefill_j=found.prefill.value,
        decode_j=found.decode.value,
        mean_power_w=found.mean_power.value,
        reason="; ".join(reasons) or None,
    )


def _above(mean: Reading, idle: Measured | None) -> Reading:
    if mean.value is None:
        return mean
    if idle is None or idle.value is None:
        why = idle.reason if idle is not None and idle.reason else "it was not measured"
        return Reading.missing(f"no idle power: {why}")
    return Reading(mean.value - idle.value)


def timeline(window: Window, zero_ns: int) -> Timeline:
    """The memory samples of a window, in seconds after `zero_ns`."""
    samples = window.samples
    return Timeline(
        t_s=[round((sample.t_ns - zero_ns) / NS, 4) for sample in samples],
        rss_bytes=[sample.rss_bytes for sample in samples],
        anon_bytes=[sample.anon_bytes for sample in samples],
        file_bytes=[sample.file_bytes for sample in samples],
        shared_bytes=[sample.shared_bytes for sample in samples],
    )


def _of(reading: Reading, unit: str) -> Measured:
    if reading.value is None:
        return Measured.missing(unit, reading.reason or "not readable here")
    return Measured(value=reading.value, unit=unit, source="observed")
