"""The meters' counters while a tool runs on the device, and what that is for one repetition."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, Self

from edgebench.devices.counter_log import CounterLog
from edgebench.devices.energy import energy_between
from edgebench.harness.metrics.system import ENERGY_UNITS
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.power import MeterEnergy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from edgebench.devices.power import PowerMeter
    from edgebench.devices.reading import Reading
    from edgebench.devices.window import EnergyTrace
    from edgebench.harness.adb.tool import Sample
    from edgebench.harness.results.measured import Source

NS: Final = 1e9
STEP_S: Final = 0.05

UNPLACED: Final = "the tool does not tell when this repetition was, only how fast"


class EnergyLog:
    """Reads meters from a thread, as long as it is open; a context manager.

    Args:
        meters: whose counters to read; they answer within microseconds.
    """

    def __init__(self, meters: Sequence[PowerMeter]) -> None:
        self._logs = [CounterLog(each, time.perf_counter_ns) for each in meters]
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._logs:
            self._thread = threading.Thread(target=self._read, name="edgebench-adb", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def traces(self) -> tuple[EnergyTrace, ...]:
        """What each meter counted; once it is closed."""
        return tuple(each.trace() for each in self._logs)

    def _read(self) -> None:
        while True:
            last = self._ended.is_set()
            for each in self._logs:
                each.read()
                each.note_resolution()
            if last:
                break
            self._ended.wait(STEP_S)
        end_ns = time.perf_counter_ns()
        for each in self._logs:
            each.settle(end_ns)


def energies(
    prefill: tuple[EnergyTrace, Sample] | str,
    decode: tuple[EnergyTrace, Sample] | str,
    idle: Measured,
) -> tuple[dict[str, Measured], list[MeterEnergy]]:
    """Energy of one repetition, of one meter.

    Args:
        prefill: the meter's counter while the prompt was processed, and how long that took; or
            why there is no energy of it.
        decode: the same of the generation.
        idle: what the device drew before the block, in watts.
    """
    found: dict[str, Measured] = {}
    seen = [each for each in (prefill, decode) if not isinstance(each, str)]
    source: Source = seen[0][0].source if seen else "observed"

    def take(key: str, value: float | None, why: str) -> None:
        unit = ENERGY_UNITS[key]
        found[key] = (
            Measured.missing(unit, why)
            if value is None
            else Measured(value=value, unit=unit, source=source)
        )

    prompt_j, why_prompt = _joules(prefill)
    made_j, why_made = _joules(decode)
    seconds = None if isinstance(decode, str) else decode[1].seconds
    tokens = 0 if isinstance(decode, str) else decode[1].tokens
    watts = made_j / seconds if made_j is not None and seconds else None
    take("prefill_energy_j", prompt_j, why_prompt)
    take("decode_energy_j", made_j, why_made)
    take("energy_per_token_j", None if made_j is None else made_j / tokens, why_made)
    take("mean_power_w", watts, why_made)
    above = watts - idle.value if watts is not None and idle.value is not None else None
    take("power_above_idle_w", above, why_made or idle.reason or "no idle power")
    per_watt = tokens / made_j if made_j else None
    take("rate_per_watt", per_watt, why_made or "no energy was counted")
    meters = [
        MeterEnergy(
            meter=each[0].meter,
            source=each[0].source,
            prefill_j=prompt_j,
            decode_j=made_j,
            mean_power_w=watts,
            reason=why_prompt or why_made or None,
        )
        for each in seen[-1:]
    ]
    return found, meters


def _joules(seen: tuple[EnergyTrace, Sample] | str) -> tuple[float | None, str]:
    """Joules of a phase, or why there are none."""
    if isinstance(seen, str):
        return None, seen
    trace, sample = seen
    if sample.ended_ns is None or sample.seconds is None:
        return None, UNPLACED
    begun_ns = sample.ended_ns - round(sample.seconds * NS)
    found: Reading = energy_between(trace, begun_ns, sample.ended_ns)
    return found.value, found.reason or ""
