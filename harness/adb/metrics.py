"""From what a tool told to metrics: its figures are the engine's, and all else is null.

A tool tells how fast a phase was as a whole. How its tokens were spread over that time it does not,
so there is no latency between tokens, and no time to first token unless it tells one.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from edgebench.devices.reading import Reading
from edgebench.devices.window import Window
from edgebench.harness.adb.power import energies
from edgebench.harness.metrics.system import window_metrics
from edgebench.harness.results.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.devices.window import EnergyTrace
    from edgebench.harness.adb.block import Repetition, Start
    from edgebench.harness.adb.tool import Sample
    from edgebench.harness.results.power import MeterEnergy

UNITS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ttft_s": "s",
        "tokenize_s": "s",
        "prefill_s": "s",
        "prefill_rate": "token/s",
        "first_token_s": "s",
        "tpot_s": "s",
        "decode_rate": "token/s",
        "itl_p50_s": "s",
        "itl_p95_s": "s",
        "itl_p99_s": "s",
        "itl_max_s": "s",
        "e2e_rate": "token/s",
    }
)
NOTHING_BESIDE: Final = "nothing of edgebench runs on the device beside the tool"
WHOLE: Final = "the device counts it over the whole process, loading included"
NO_PEAK: Final = "the device's toybox has no `time -v`, which reads the kernel's figure"


def generate_metrics(
    program: str, made: Repetition, before: Mapping[str, Measured]
) -> tuple[dict[str, Measured], list[MeterEnergy]]:
    """All metrics of one repetition, and what each meter saw of it.

    Args:
        program: the tool's name.
        made: the repetition.
        before: what was read before the block, the idle power among it.
    """
    untold = f"{program} tells no time of single tokens"
    found = {key: Measured.missing(unit, untold, "engine") for key, unit in UNITS.items()}
    if made.prefill is not None:
        start, sample = made.prefill
        found |= _rate("prefill_rate", sample)
        if sample.seconds is not None:
            found["prefill_s"] = Measured(value=sample.seconds, unit="s", source="engine")
        if start.told.ttft_s is not None:
            found["ttft_s"] = Measured(value=start.told.ttft_s, unit="s", source="engine")
    if made.decode is not None:
        sample = made.decode[1]
        found |= _rate("decode_rate", sample)
        found["tpot_s"] = Measured(value=1 / sample.rate, unit="s", source="engine")
    found |= _process(made.starts)
    power: list[MeterEnergy] = []
    idle = before["idle_power_w"]
    traces = [start.traces for start in made.starts]
    for at in range(len(traces[0]) if traces else 0):
        metrics, seen = energies(
            _seen(made.prefill, at, program), _seen(made.decode, at, program), idle
        )
        power += seen
        if at == 0:
            found |= metrics
    if not power:
        why = idle.reason or "no power meter was found"
        metrics, _ = energies(why, why, idle)
        found |= metrics
    return found, power


def load_metrics(
    program: str, starts: Sequence[Start], model_bytes: int, before: Mapping[str, Measured]
) -> dict[str, Measured]:
    """Of a load: how long, where the tool tells it, and how large.

    Args:
        program: the tool's name.
        starts: those of the block's first repetition.
        model_bytes: of the file or folder that it loads.
        before: what was read before the block.
    """
    told = starts[-1].told
    load = Measured.missing("s", f"{program} does not tell how long it loads", "engine")
    if told.load_s is not None:
        load = Measured(value=told.load_s, unit="s", source="engine")
    bits = Measured.missing("bit", f"{program} does not tell the number of weights")
    if told.parameters:
        bits = Measured(value=8 * model_bytes / told.parameters, unit="bit", source="derived")
    return {
        "load_s": load,
        "load_cold_s": Measured.missing("s", "an Android device does not let its cache be dropped"),
        "baseline_rss_bytes": Measured.missing("byte", NOTHING_BESIDE),
        **_process(starts),
        **before,
        "model_bytes": Measured(value=model_bytes, unit="byte", source="observed"),
        "bits_per_weight": bits,
    }


def _rate(key: str, sample: Sample) -> dict[str, Measured]:
    return {key: Measured(value=sample.rate, unit="token/s", source="engine")}


def _process(starts: Sequence[Start]) -> dict[str, Measured]:
    """Memory and the rest of what is known of the tool's processes: the largest peak."""
    nothing = Reading.missing(NOTHING_BESIDE)
    peaks = [start.ended.peak_rss_bytes for start in starts]
    known = [peak for peak in peaks if peak is not None]
    peak = Reading(max(known), method="time -v") if known else Reading.missing(NO_PEAK)
    window = Window(
        begin_ns=0,
        end_ns=0,
        samples=(),
        peak_rss=peak,
        peak_anon=nothing,
        peak_file=nothing,
        peak_shared=nothing,
        pss=nothing,
        cpu_time=Reading.missing(WHOLE),
        minor_faults=Reading.missing(WHOLE),
        major_faults=Reading.missing(WHOLE),
        voluntary_switches=Reading.missing(WHOLE),
        involuntary_switches=Reading.missing(WHOLE),
        others=nothing,
        clock=nothing,
        temperature=nothing,
        energy=(),
        energy_reason=None,
    )
    return window_metrics(window)


def _seen(
    phase: tuple[Start, Sample] | None, meter: int, program: str
) -> tuple[EnergyTrace, Sample] | str:
    if phase is None:
        return f"{program} tells nothing of this phase"
    start, sample = phase
    return start.traces[meter], sample
