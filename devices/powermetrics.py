"""macOS's ``powermetrics``: what the processor, the GPU and the neural engine draw.

Only root may run it. It prints a property list for each interval, with a NUL byte before each but
the first (``man powermetrics``). On Apple silicon ``processor`` holds ``cpu_power``,
``gpu_power``, ``ane_power`` and ``combined_power`` in milliwatts, older systems ``cpu_energy`` and
so on in millijoules over ``elapsed_ns``; on Intel ``package_watts``, or ``package_joules``. All
are means over the interval.
"""

from __future__ import annotations

import math
import os
import plistlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.parsers.expat import ExpatError

from edgebench.devices.gauge import NS, reason_of
from edgebench.devices.pieces import Pieces
from edgebench.devices.proof import Refusal
from edgebench.devices.tool import Tool
from edgebench.devices.tool_meter import meters_of
from edgebench.devices.tool_reader import ToolReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.gauge import GaugeMeter
    from edgebench.devices.power import PowerMeter

NAME = "powermetrics"
PROGRAM = "/usr/bin/powermetrics"
INTERVAL_S = 0.2
PROOF_S = 5.0
MILLI = 1e3
SUDOERS_REMEDY = (
    f"""echo "$USER ALL=(root) NOPASSWD: {PROGRAM}" """
    """| sudo tee /etc/sudoers.d/edgebench-powermetrics"""
)
_END = b"</plist>"
_MOST_BYTES = 1 << 20  # a list of this program has some kilobytes


@dataclass(frozen=True, slots=True)
class Draw:
    """What one property list says, in watts; None where it says nothing of it."""

    whole_w: float | None
    cpu_w: float | None = None
    gpu_w: float | None = None
    ane_w: float | None = None


def parse_draw(text: bytes) -> Draw | None:
    """The powers of one property list, or None where it is none or says nothing of power."""
    try:
        told = plistlib.loads(text)
    except (plistlib.InvalidFileException, ExpatError, ValueError):
        return None
    processor = told.get("processor") if isinstance(told, dict) else None
    if not isinstance(processor, dict):
        return None

    def number(name: str, within: dict[str, object] = processor) -> float | None:
        value = within.get(name)
        # A truth value is an int to Python.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if math.isfinite(value) else None

    watts = number("package_watts")
    joules, elapsed_ns = number("package_joules"), number("elapsed_ns", told)
    if watts is None and joules is not None and elapsed_ns:
        watts = joules / (elapsed_ns / NS)
    if watts is not None:
        return Draw(watts)

    def part_w(part: str) -> float | None:
        power_mw, energy_mj = number(f"{part}_power"), number(f"{part}_energy")
        if power_mw is not None:
            return power_mw / MILLI
        return (
            energy_mj / MILLI / (elapsed_ns / NS) if energy_mj is not None and elapsed_ns else None
        )

    cpu_w, gpu_w, ane_w = part_w("cpu"), part_w("gpu"), part_w("ane")
    combined_mw = number("combined_power")
    if combined_mw is not None:
        return Draw(combined_mw / MILLI, cpu_w, gpu_w, ane_w)
    known = [part for part in (cpu_w, gpu_w, ane_w) if part is not None]
    return Draw(sum(known), cpu_w, gpu_w, ane_w) if known else None


class DrawReader(ToolReader[str]):
    """Turns the program's output into the readings of meters.

    Args:
        clock: nanoseconds.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock, Pieces(_END, _MOST_BYTES), INTERVAL_S, averages=True)
        self._first: Draw | None = None
        self._moved = False

    @property
    def meters(self) -> list[GaugeMeter]:
        """The whole first."""
        with self._changed:
            return list(self._gauges.values())

    def await_proof(self, limit_s: float) -> bool:
        """Wait for two different readings; False where none came."""
        with self._changed:
            self._changed.wait_for(lambda: self._moved or self._ended is not None, limit_s)
            return self._moved

    def _understand(self, piece: bytes) -> None:
        draw = parse_draw(piece.strip(b"\0\r\n ") + _END)
        if draw is None:
            return
        now_ns = self._clock()
        told = {
            NAME: draw.whole_w,
            f"{NAME}:cpu": draw.cpu_w,
            f"{NAME}:gpu": draw.gpu_w,
            f"{NAME}:ane": draw.ane_w,
        }
        for name, watts in told.items():
            if watts is not None:
                self._add(name, name, now_ns, watts)
        self._first = self._first or draw
        self._moved = self._moved or draw != self._first


def find_powermetrics(
    clock: Callable[[], int],
    *,
    platform: str = sys.platform,
    program: tuple[str, ...] | None = None,
) -> tuple[list[PowerMeter], list[Refusal]]:
    """The meters of a Mac, all that it measures together first.

    The program runs until all meters are closed.

    Args:
        clock: nanoseconds.
        platform: as in ``sys.platform``.
        program: what to start; None for ``powermetrics``, by ``sudo`` without a question where
            this user is not root.

    Returns:
        Meters, and a refusal where there are none on a Mac. Both are empty elsewhere.
    """
    if platform != "darwin":
        return [], []
    if program is None:
        program = (PROGRAM,) if os.geteuid() == 0 else ("sudo", "-n", PROGRAM)
    reader = DrawReader(clock)
    arguments = ["--samplers", "cpu_power,gpu_power", "-f", "plist"]
    arguments += ["-i", str(round(INTERVAL_S * MILLI))]
    try:
        tool = Tool([*program, *arguments], reader.take, reader.end, _is_list)
    except OSError as error:
        return [], [Refusal(f"{NAME}: it can't be started ({reason_of(error)})")]
    if not reader.await_proof(PROOF_S):
        ended = reader.ended
        tool.close()
        return [], [_refusal(ended, told=bool(reader.meters))]
    return meters_of(tool, reader.meters), []


def _is_list(line: bytes) -> bool:
    """Whether a line is of a property list, and no complaint."""
    text = line.strip(b"\0\r\n\t ")
    return not text or text.startswith(b"<")


def _refusal(ended: str | None, *, told: bool) -> Refusal:
    if ended is None and told:
        return Refusal(f"{NAME}: its power never changes, so it measures nothing")
    if ended is None:
        return Refusal(f"{NAME}: it told no power for {PROOF_S:.0f} s")
    if "superuser" in ended or "password" in ended or "sudo" in ended:
        return Refusal(f"{NAME}: only root may run it", SUDOERS_REMEDY)
    return Refusal(f"{NAME}: {ended}")
