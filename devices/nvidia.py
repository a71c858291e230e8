"""NVIDIA's GPUs: the energy counter where the GPU has one, else its power, integrated.

Asked through the management library, or through the program ``nvidia-smi`` where the library
can't be loaded. The meter is the whole card's: memory and fans too, the computer around it not.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from edgebench.devices.counting import Counting
from edgebench.devices.files import list_folder, read_text
from edgebench.devices.gauge import change_interval, prove, reason_of
from edgebench.devices.nvidia_smi import LOAD_REMEDY, SPLIT, ask_smi
from edgebench.devices.nvml import DRIVER_NOT_LOADED, Nvml, NvmlError, NvmlLibrary
from edgebench.devices.poller import Poller
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.devices.power import PowerMeter

INTERVAL_S = 0.05
PROOF_S = 1.0
MILLI = 1e3
NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASS = "0x03"


class EnergyCounter:
    """The energy counter of one GPU, or of several added up.

    Args:
        name: such as ``nvidia:0``.
        nvml: the library.
        indices: the GPUs.
        resolution_s: how often the counter changes.
        clock: nanoseconds.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(
        self,
        name: str,
        nvml: Nvml,
        indices: Sequence[int],
        resolution_s: float,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.name = name
        self.resolution_s = resolution_s
        self._nvml = nvml
        self._counts = {
            index: Counting(
                f"the counter of GPU {index}",
                nvml.energy_mj(index),
                round(MILLI),
                clock,
                resolution_s=resolution_s,
            )
            for index in indices
        }

    def read_j(self) -> float:
        """Joules since the meter was made; never less than before.

        Raises:
            OSError: a GPU does not answer any more, or its driver was loaded anew.
        """
        for index, count in self._counts.items():
            count.take(self._nvml.energy_mj(index))
        return sum(count.total for count in self._counts.values()) / MILLI

    def close(self) -> None:
        """The library stays loaded for others."""


@dataclass(slots=True)
class _Search:
    meters: list[PowerMeter] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, finding: str, remedy: str | None = None) -> None:
        self.refusals.append(Refusal(finding, remedy))


def find_nvidia(
    sysfs: Path,
    procfs: Path,
    clock: Callable[[], int],
    *,
    load: Callable[[], Nvml] = NvmlLibrary,
    smi: str | None = None,
) -> tuple[list[PowerMeter], list[Refusal]]:
    """The meters of NVIDIA's GPUs, their sum first where there are several.

    Args:
        sysfs: where sysfs is mounted; with `procfs` it says whether there is a GPU at all.
        procfs: where procfs is mounted.
        clock: nanoseconds.
        load: the management library.
        smi: the program ``nvidia-smi``; None looks for it.

    Returns:
        Meters, and a refusal for each GPU that can't be used. Both are empty where the machine
        has no GPU of NVIDIA's.
    """
    if not has_nvidia(sysfs, procfs):
        return [], []
    search = _Search()
    try:
        nvml = load()
        count = nvml.count()
    except NvmlError as error:
        _refuse_driver(search, error)
    except OSError:
        meters, refusals = ask_smi(smi or shutil.which("nvidia-smi"), clock)
        search.meters += meters
        search.refusals += refusals
    else:
        _ask_library(search, nvml, count, clock)
    return search.meters, search.refusals


def has_nvidia(sysfs: Path, procfs: Path) -> bool:
    """Whether the kernel knows of a GPU of NVIDIA's; those in Jetsons are no such."""
    # WSL shows its GPU through /dev/dxg, whoever made it.
    if (procfs / "driver/nvidia/version").exists() or (sysfs / "class/misc/dxg").exists():
        return True
    return any(
        read_text(device / "vendor") == NVIDIA_VENDOR
        and (read_text(device / "class") or "").startswith(DISPLAY_CLASS)
        for device in list_folder(sysfs / "bus/pci/devices")
    )


def _refuse_driver(search: _Search, error: NvmlError) -> None:
    if error.code == DRIVER_NOT_LOADED:
        search.refuse("nvidia: its driver is not loaded", LOAD_REMEDY)
    elif error.is_old_driver:
        search.refuse("nvidia: the driver was updated and the old one still runs", "sudo reboot")
    elif error.is_forbidden:
        search.refuse("nvidia: this user may not ask the driver")
    else:
        search.refuse(f"nvidia: the driver does not answer ({reason_of(error)})")


def _ask_library(search: _Search, nvml: Nvml, count: int, clock: Callable[[], int]) -> None:
    if count == 0:
        search.refuse("nvidia: the driver shows no GPU to this process")
    counters: dict[int, float] = {}
    gauges: list[PowerMeter] = []
    poller = Poller(clock, INTERVAL_S)
    for index in range(count):
        if nvml.is_split(index):
            search.refuse(f"nvidia:{index}: {SPLIT}")
            continue
        interval_s = _counter_interval(nvml, index, clock)
        if interval_s is not None:
            counters[index] = interval_s
            continue
        found = _gauge(poller, nvml, index, clock)
        if isinstance(found, Refusal):
            search.refusals.append(found)
        else:
            gauges.append(found)
    if len(counters) > 1 and len(counters) == count:
        search.meters.append(
            EnergyCounter("nvidia", nvml, list(counters), max(counters.values()), clock)
        )
    search.meters += [
        EnergyCounter(f"nvidia:{index}", nvml, [index], resolution_s, clock)
        for index, resolution_s in counters.items()
    ]
    search.meters += gauges


def _counter_interval(nvml: Nvml, index: int, clock: Callable[[], int]) -> float | None:
    """How often the energy counter changes; None where the GPU has none that moves."""
    try:
        return change_interval(lambda: nvml.energy_mj(index), clock, limit_s=PROOF_S)
    except NvmlError:
        # The power is asked for next, and what is wrong with that is told.
        return None


def _gauge(
    poller: Poller, nvml: Nvml, index: int, clock: Callable[[], int]
) -> PowerMeter | Refusal:
    name = f"nvidia:{index}"

    def read_w() -> float:
        return nvml.power_mw(index) / MILLI

    found = prove(name, read_w, clock, limit_s=PROOF_S)
    return found if isinstance(found, Refusal) else poller.gauge(name, read_w, found)
