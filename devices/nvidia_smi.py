"""NVIDIA's GPUs as ``nvidia-smi`` tells them: power only, a line for each GPU ten times a second.

Fields and what stands for a missing value: ``nvidia-smi --help-query-gpu`` and NVIDIA's manual.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from edgebench.devices.gauge import reason_of
from edgebench.devices.pieces import Pieces
from edgebench.devices.proof import Refusal
from edgebench.devices.tool import Tool
from edgebench.devices.tool_meter import meters_of
from edgebench.devices.tool_reader import ToolReader

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.gauge import GaugeMeter
    from edgebench.devices.power import PowerMeter

INTERVAL_S = 0.1
PROOF_S = 5.0
MILLI = 1e3
FIELDS = (
    "mig.mode.current,power.draw.instant",
    "mig.mode.current,power.draw",
    "power.draw",
)
"""What ``nvidia-smi`` is asked for; older drivers don't know the newer fields."""
SPLIT = "the GPU is split into instances (MIG), and tells only the power of all"
LOAD_REMEDY = "sudo modprobe nvidia"
LINE_BYTES = 4096


class SmiReader(ToolReader[int]):
    """What ``nvidia-smi`` says, line by line, for the meters of all GPUs.

    Args:
        clock: nanoseconds.
    """

    def __init__(self, clock: Callable[[], int]) -> None:
        super().__init__(clock, Pieces(b"\n", LINE_BYTES), INTERVAL_S)
        self._refused: dict[int, str] = {}
        self._heard: dict[int, int] = {}
        self._values: dict[int, list[float]] = {}

    @property
    def meters(self) -> dict[int, GaugeMeter]:
        """Of each GPU that told a power."""
        with self._changed:
            return dict(self._gauges)

    @property
    def refused(self) -> dict[int, str]:
        """What each GPU said instead of a power."""
        with self._changed:
            return dict(self._refused)

    def distinct(self, index: int) -> int:
        """How many readings of this GPU differ from the one before."""
        with self._changed:
            return self._distinct(index)

    def await_readings(self, limit_s: float) -> None:
        """Until every GPU has said two things, or that it can't, or the program has ended."""
        with self._changed:
            self._changed.wait_for(self._is_proved, limit_s)

    def _is_proved(self) -> bool:
        if self._ended is not None:
            return True
        # Of a GPU that was heard twice it is known that all others were heard once.
        twice = bool(self._heard) and min(self._heard.values()) > 1
        return twice and all(self._distinct(index) for index in self._gauges)

    def _distinct(self, index: int) -> int:
        values = self._values.get(index, [])
        return sum(one != other for one, other in pairwise(values))

    def _understand(self, piece: bytes) -> None:
        parts = _parts(piece)
        if not parts:
            return
        index, between, said = int(parts[0]), parts[1:-1], parts[-1]
        self._heard[index] = self._heard.get(index, 0) + 1
        if between == ["Enabled"]:
            self._refused[index] = SPLIT
            return
        watts = _watts(said)
        if watts is None:
            # Such as [N/A], [Not Supported], [Unknown Error], [GPU is lost].
            why = f"nvidia-smi says {said.strip('[]')}"
            self._refused[index] = why
            if index in self._gauges:
                self._gauges[index].fail(why)
            return
        self._values.setdefault(index, []).append(watts)
        del self._values[index][:-100]
        self._add(index, f"nvidia:{index}", self._clock(), watts)


def _parts(line: bytes) -> list[str]:
    """What a line says of a GPU, its number first; nothing where it is no such line."""
    parts = [part.strip() for part in line.decode("utf-8", "replace").split(",")]
    # Also other writing's digits are decimal.
    return parts if len(parts) in {2, 3} and parts[0].isascii() and parts[0].isdecimal() else []


def _watts(said: str) -> float | None:
    try:
        watts = float(said)
    except ValueError:
        return None
    return watts if math.isfinite(watts) else None


def ask_smi(
    program: str | None, clock: Callable[[], int]
) -> tuple[list[PowerMeter], list[Refusal]]:
    """The meters of the GPUs that tell their power; the program runs until all are closed.

    Args:
        program: ``nvidia-smi``; None where there is none.
        clock: nanoseconds.
    """
    if program is None:
        return _none("there is a GPU, but neither its driver's library nor nvidia-smi is found")
    complaint = ""
    for fields in FIELDS:
        reader = SmiReader(clock)
        arguments = [program, f"--query-gpu=index,{fields}", "--format=csv,noheader,nounits"]
        arguments += ["-lms", str(round(INTERVAL_S * MILLI))]
        try:
            tool = Tool(arguments, reader.take, reader.end, lambda line: bool(_parts(line)))
        except OSError as error:
            return _none(f"nvidia-smi can't be started ({reason_of(error)})")
        reader.await_readings(PROOF_S)
        if reader.ended is None:
            return _sort(reader, tool)
        tool.close()
        complaint = reader.ended
        if "not a valid field" not in complaint:
            break
    if "communicate with the NVIDIA driver" in complaint:
        return _none("its driver is not loaded", LOAD_REMEDY)
    return _none(complaint)


def _none(finding: str, remedy: str | None = None) -> tuple[list[PowerMeter], list[Refusal]]:
    return [], [Refusal(f"nvidia: {finding}", remedy)]


def _sort(reader: SmiReader, tool: Tool) -> tuple[list[PowerMeter], list[Refusal]]:
    """Meters for the GPUs that told two powers, and what is wrong with the others."""
    told, refused = reader.meters, reader.refused
    proved = [meter for index, meter in sorted(told.items()) if reader.distinct(index)]
    why = {
        index: f"its power said the same for {PROOF_S:.0f} s, so it measures nothing"
        for index in told
        if not reader.distinct(index)
    }
    why |= {index: said for index, said in refused.items() if index not in told}
    refusals = [Refusal(f"nvidia:{index}: {said}") for index, said in sorted(why.items())]
    if not told and not refused:
        refusals.append(Refusal(f"nvidia: nvidia-smi said nothing for {PROOF_S:.0f} s"))
    return meters_of(tool, proved), refusals
