"""Meters that one program feeds together, which ends with the last of them."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.devices.gauge import GaugeMeter
    from edgebench.devices.power import PowerMeter
    from edgebench.devices.tool import Tool


class ToolMeter:
    """One of a program's meters.

    Args:
        gauge: is fed by the program.
        close_one: says that the meter of this name is not needed any more.
    """

    source: Literal["observed", "estimated"] = "observed"

    def __init__(self, gauge: GaugeMeter, close_one: Callable[[str], None]) -> None:
        self.name = gauge.name
        self.resolution_s = gauge.resolution_s
        self.read_j = gauge.read_j
        self.points_from = gauge.points_from
        self.wait_past = gauge.wait_past
        # Also when nobody closes it: at the latest when this process ends.
        self._end = weakref.finalize(self, close_one, gauge.name)

    def close(self) -> None:
        """End the program where no other meter needs it."""
        self._end()


def meters_of(tool: Tool, gauges: Sequence[GaugeMeter]) -> list[PowerMeter]:
    """A meter for each gauge; without any the program ends at once."""
    wanted = {gauge.name for gauge in gauges}

    def close_one(name: str) -> None:
        wanted.discard(name)
        if not wanted:
            tool.close()

    if not gauges:
        tool.close()
    return [ToolMeter(gauge, close_one) for gauge in gauges]
