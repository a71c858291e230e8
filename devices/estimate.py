"""Energy computed from a power that the maker names, where nothing measures it; only when asked."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Literal

from edgebench.devices.cpu import ticks_to_seconds
from edgebench.devices.others import read_busy
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.devices.others import Busy

NAME = "estimate:tdp"


class TdpMeter:
    """Thermal design power times the share of the CPUs that were busy, over time.

    In other words each CPU draws its part of that power while it is busy, whoever uses it, and
    nothing while it is not. Idle power, memory, accelerators, clocks and what an instruction
    needs are left out, so it can be wrong by a factor of two or more either way: it tells orders
    of magnitude, and which of two variants keeps more of the machine busy.

    Args:
        tdp_w: that power, in watts.
        procfs: where procfs is mounted: ``/proc/stat``, proc_stat(5).

    Raises:
        OSError: from `read_j`, where this system does not tell how busy its CPUs are.
    """

    name = NAME
    source: Literal["observed", "estimated"] = "estimated"

    def __init__(self, tdp_w: float, procfs: Path) -> None:
        self.resolution_s = ticks_to_seconds(1)
        self._tdp_w = tdp_w
        self._procfs = procfs
        self._joules = 0.0
        self._last: Busy | None = None

    def read_j(self) -> float:
        """Joules since the meter was first read."""
        busy = read_busy(self._procfs)
        if busy is None:
            raise OSError(errno.ENODATA, "this system does not tell how busy its CPUs are")
        last, self._last = self._last, busy
        # A CPU that was taken offline meanwhile took its ticks with it.
        if last is not None and last.cpus == busy.cpus:
            ticks = max(0, busy.busy - last.busy)
            self._joules += self._tdp_w * ticks_to_seconds(ticks) / busy.cpus
        return self._joules

    def close(self) -> None:
        """Nothing is open."""


def estimated_meter(tdp_w: float | None, procfs: Path) -> TdpMeter | Refusal:
    """The meter of an estimate, or why there can't be one."""
    if tdp_w is None:
        return Refusal(f"{NAME}: no thermal design power is known", "set tdp_w under power")
    meter = TdpMeter(tdp_w, procfs)
    try:
        meter.read_j()
    except OSError as error:
        return Refusal(f"{NAME}: {error.strerror or os.fspath(procfs)}")
    return meter
