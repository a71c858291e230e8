"""From what the collectors saw during one trial to its metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.results.model import Measured, Timeline

if TYPE_CHECKING:
    from edgebench.devices.monitor import EnergyPoint, Window
    from edgebench.devices.reading import Reading
    from edgebench.runners.base import Generation

NS = 1e9
MIN_ENERGY_POINTS = 3
"""Readings of the counter inside of a window, edges apart, before its energy is believed."""


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


def energy_metrics(window: Window, made: Generation) -> dict[str, Measured]:
    """Energy of prefill and decode, of a token, and power, over the generation's own times."""
    units = {
        "prefill_energy_j": "J",
        "decode_energy_j": "J",
        "energy_per_token_j": "J/token",
        "mean_power_w": "W",
        "rate_per_watt": "token/s/W",
    }
    trace = window.energy[0] if window.energy else None
    reason = window.energy_reason if trace is None else trace.reason
    if trace is None or reason is not None:
        why = reason or "no power meter was found"
        return {key: Measured.missing(unit, why) for key, unit in units.items()}
    start, first, last = made.submitted_ns, made.token_ns[0], made.token_ns[-1]
    prefill = energy_between(trace.points, start, first)
    decode = energy_between(trace.points, first, last)
    steps = len(made.token_ns) - 1
    short = "the window is too short for the energy counter"
    found: dict[str, float] = {}
    if prefill is not None:
        found["prefill_energy_j"] = prefill
    if decode is not None and steps:
        found["decode_energy_j"] = decode
        found["energy_per_token_j"] = decode / steps
        found["mean_power_w"] = decode / ((last - first) / NS)
        if decode:
            found["rate_per_watt"] = steps / decode
    return {
        key: Measured(value=found[key], unit=unit, source=trace.source)
        if key in found
        else Measured.missing(unit, short)
        for key, unit in units.items()
    }


def energy_between(points: tuple[EnergyPoint, ...], start_ns: int, end_ns: int) -> float | None:
    """Joules between two moments, by linear interpolation of a cumulative counter.

    Returns:
        None where fewer than `MIN_ENERGY_POINTS` readings lie inside or the window reaches past
        the readings.
    """
    if len(points) < 2 or end_ns <= start_ns:  # noqa: PLR2004
        return None
    times = np.asarray([point.t_ns for point in points], dtype=np.float64)
    joules = np.asarray([point.joules for point in points], dtype=np.float64)
    inside = int(((times > start_ns) & (times < end_ns)).sum())
    if inside < MIN_ENERGY_POINTS or start_ns < times[0] or end_ns > times[-1]:
        return None
    low, high = np.interp([start_ns, end_ns], times, joules)
    return float(high - low)


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
