"""Power of a Raspberry Pi 5, as its power chip measures it rail by rail.

``vcgencmd pmic_read_adc`` prints a current and a voltage of each of twelve rails that the chip (a
Renesas DA9091) makes out of the 5 V input; the power is the sum of voltage x current. That is less
than the board draws: the input itself has no current sensor, so what is lost in the chip's
conversions is missing, and all that hangs on the 5 V directly (USB devices, a fan, a HAT, an SSD
on one). With nothing attached and a USB power meter before the board, two people found 1.13 to
1.15 times the sum, and 0.6 W more (jfikar's RPi5-power, and pitop's documentation). Nothing is
added here for it.

Where the facts are from: the program's source, ``vcgencmd.c`` in raspberrypi/utils (what it prints
where it may not ask); the output of boards, published by jfikar and cleverca22; which boards have
this processor: Raspberry Pi's documentation, "BCM2712".
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
from typing import TYPE_CHECKING

from edgebench.devices.answer import answer_of
from edgebench.devices.files import read_text
from edgebench.devices.gauge import prove, reason_of
from edgebench.devices.poller import Poller
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from edgebench.devices.power import PowerMeter

NAME = "pi_pmic"
PROGRAM = "vcgencmd"
INTERVAL_S = 0.5
"""Each reading starts a program, on a board that is being measured."""
PROOF_S = 2.0
COMMAND_S = 2.0

_MODEL = "firmware/devicetree/base/compatible"
_CHIP = "brcm,bcm2712"
_LINE = re.compile(r"^\s*(\w+)_([AV]) (?:current|volt)\(\d+\)=(\d+(?:\.\d+)?)\2\s*$", re.MULTILINE)
_MAY_NOT = re.compile(r"Can't open device file: (\S+)")
_INSTALL = "sudo apt install raspi-utils"
_LONGEST = 120  # of what the program says, in a sentence


def find_pi_pmic(
    sysfs: Path, clock: Callable[[], int], *, program: str | None = None
) -> tuple[list[PowerMeter], list[Refusal]]:
    """The meter of a Raspberry Pi 5, 500 or Compute Module 5; nothing on other machines.

    Args:
        sysfs: where sysfs is mounted.
        clock: nanoseconds.
        program: ``vcgencmd``; looked for where programs are where it is not given.
    """
    if _CHIP not in (read_text(sysfs / _MODEL) or "").split("\0"):
        return [], []
    program = program or shutil.which(PROGRAM)
    if program is None:
        return [], [Refusal(f"{NAME}: {PROGRAM} is not installed", _INSTALL)]
    poller = Poller(clock, INTERVAL_S)

    def read_w() -> float:
        return rail_watts(_ask(program))

    try:
        _ask(program)
    except PermissionError as error:
        device = str(error.filename)
        return [], [Refusal(f"{NAME}: this user may not read {device}", _allow(device))]
    except OSError as error:
        return [], [Refusal(f"{NAME}: it can't be read ({reason_of(error)})")]
    found = prove(NAME, read_w, clock, limit_s=PROOF_S, changes=2)
    if isinstance(found, Refusal):
        return [], [found]
    return [poller.gauge(NAME, read_w, found)], []


def rail_watts(text: str) -> float:
    """Watts of all rails together.

    Args:
        text: what ``vcgencmd pmic_read_adc`` prints.

    Raises:
        OSError: it tells no rail's power, or a current without its voltage: a sum without that
            rail would be too small.
    """
    told: dict[str, dict[str, float]] = {"A": {}, "V": {}}
    for rail, unit, number in _LINE.findall(text):
        told[unit][rail] = float(number)
    amperes, volts = told["A"], told["V"]
    if not amperes:
        said = " ".join(text.split())[:_LONGEST]
        msg = f"{PROGRAM} tells no currents: {said or 'it prints nothing'}"
        raise OSError(msg)
    lacking = sorted(amperes.keys() - volts.keys())
    if lacking:
        msg = f"{PROGRAM} tells a current of {', '.join(lacking)} but no voltage"
        raise OSError(msg)
    # The input (EXT5V) and the clock's battery (BATT) have voltages only.
    return sum(current * volts[rail] for rail, current in amperes.items())


def _ask(program: str) -> str:
    """What the chip says now.

    Raises:
        PermissionError: this user may not ask it; names the device file.
        OSError: the program can't be run or fails; the text says why.
    """
    done = answer_of([program, "pmic_read_adc"], COMMAND_S)
    # It complains on its standard output.
    said = " ".join(f"{done.stdout} {done.stderr}".split())[:_LONGEST]
    if (refused := _MAY_NOT.search(done.stdout)) is not None:
        device = refused[1]
        if os.path.exists(device):  # noqa: PTH110 - a name that the program printed
            raise PermissionError(errno.EACCES, "this user may not read it", device)
        msg = f"there is no {device}, by which {PROGRAM} asks the firmware"
        raise OSError(msg)
    if done.returncode:
        msg = f"{PROGRAM} failed with status {done.returncode}: {said or 'it says nothing'}"
        raise OSError(msg)
    return done.stdout


def _allow(device: str) -> str:
    """The command that lets this user ask.

    Raspberry Pi OS gives the device to the group video; other systems leave it to root.
    """
    import grp  # noqa: PLC0415 - other systems than Unix have none

    with contextlib.suppress(OSError, KeyError):
        group = os.stat(device).st_gid  # noqa: PTH116 - a name that the program printed
        if group != 0:
            return f"sudo usermod -aG {grp.getgrgid(group).gr_name} $USER, then log in again"
    return f"sudo chmod a+r {device}"
