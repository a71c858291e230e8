"""What kind of machine a run was of, as far as its record tells: no guesses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.reports.languages import N_, _
from edgebench.reports.sentences import fill
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import MachineRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.sentences import Sentence

_PC_ARCHITECTURES: Final = frozenset({"x86_64", "amd64", "i686"})
_PC_SYSTEMS: Final = ("windows", "macos", "darwin")
_PHONE_SYSTEMS: Final = ("android", "iphone")
_BOARDS: Final = ("raspberry pi", "jetson", "rockchip", "orange pi")

_KINDS: Final = {
    "pc": N_("a PC"),
    "browser": N_("a browser"),
    "phone": N_("a phone"),
    "board": N_("a board"),
}


def kind_of(machine: MachineRecord) -> str:
    """``pc``, ``phone`` or ``board``, as a target is asked for; empty where it is not known."""
    system = machine.system.lower()
    if any(each in system for each in _PHONE_SYSTEMS):
        return "phone"
    if any(each in machine.cpu_model.lower() for each in _BOARDS):
        return "board"
    if machine.architecture.lower() in _PC_ARCHITECTURES:
        return "pc"
    return "pc" if any(each in system for each in _PC_SYSTEMS) else ""


def machine_text(machine: MachineRecord) -> str:
    """A machine in a few words: its processor and architecture."""
    return _(
        "{processor} ({architecture})",
        processor=one_line(machine.cpu_model),
        architecture=one_line(machine.architecture),
    )


def elsewhere(data: ReportData, target: str) -> Iterator[Sentence]:
    """That the figures are of another kind of machine than the one that is asked for.

    Args:
        data: of one run or several.
        target: as in the requirements.
    """
    machines = dict.fromkeys(
        (machine_text(each.record.machine), kind_of(each.record.machine)) for each in data.parts
    )
    for machine, kind in machines:
        if kind == target:
            continue
        # A browser is a machine inside of a machine: no run is ever of one.
        if kind or target == "browser":
            yield fill(
                "These figures are of {machine}, not of {target}: rates, times and memory there "
                "will differ.",
                machine=machine,
                target=_(_KINDS[target]),
            )
        else:
            yield fill(
                "These figures are of {machine}; on {target} of another kind rates, times and "
                "memory will differ.",
                machine=machine,
                target=_(_KINDS[target]),
            )
