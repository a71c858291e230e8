"""What adb and the device say when something is wrong, for a person."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from edgebench.harness.errors import (
    BoardAccessError,
    BoardError,
    BoardLinkError,
    BoardUnfitError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.adb.client import Attached

CABLE: Final = "Is it plugged in, awake and unlocked? `adb devices` tells."
MOST_TEXT: Final = 300

LINKER: Final = "CANNOT LINK EXECUTABLE"
"""In the line of Android's linker, which ends by a signal then."""
CANNOT_START: Final = frozenset({126, 127})
"""What a shell leaves with where a program can't be run, or is not there (POSIX)."""
NO_PROGRAM: Final = ("not executable", "Exec format error", "bad ELF", "unexpected e_machine")

_STATES: Final = {
    "unauthorized": (
        "does not trust this computer yet",
        "Unlock it and allow USB debugging from this computer on its screen.",
    ),
    "authorizing": ("is about to ask whether to trust this computer", "Try again in a moment."),
    "offline": (
        "is attached and does not answer (offline)",
        "Unplug it and plug it in again; `adb reconnect offline` helps as well.",
    ),
    "no permissions": (
        "may not be used by this user (no permissions)",
        (
            "Install udev rules for it (Debian: apt install android-sdk-platform-tools-common), or "
            "join the group plugdev."
        ),
    ),
}


def no_adb() -> BoardError:
    """It is not installed."""
    msg = "adb was found neither in PATH nor below ANDROID_HOME"
    return BoardUnfitError(
        msg,
        remedy="Install Android's SDK Platform-Tools (Debian, Ubuntu: apt install adb), or give "
        "adb's path in EDGEBENCH_ADB.",
    )


def no_list(words: str, said: str) -> BoardError:
    """What was started as adb is something else."""
    msg = f"`{words} devices` lists no devices, so {words} is no adb: it printed {_short(said)!r}"
    return BoardUnfitError(msg, remedy="Give adb's path in EDGEBENCH_ADB.")


def adb_failed(said: str) -> BoardError:
    """Adb itself does not work."""
    return BoardUnfitError(f"adb failed: {_short(said)}", remedy="Does `adb devices` work?")


def chosen(serial: str, attached: Sequence[Attached], anyone: str) -> str:
    """The serial number of the device that is meant, which can be used.

    Args:
        serial: as the scenario has it.
        attached: what adb knows.
        anyone: what stands for the only one.

    Raises:
        BoardError: it is not there, or not usable, or there are several that may be meant.
    """
    listed = ", ".join(_named(each) for each in attached)
    if serial == anyone and len(attached) == 1:
        serial = attached[0].serial
    if not attached:
        msg = "no Android device is attached"
        raise BoardLinkError(
            msg, remedy="Plug it in and switch on USB debugging in its developer options."
        )
    if serial == anyone:
        msg = f"{len(attached)} Android devices are attached: {listed}"
        raise BoardUnfitError(msg, remedy="Write one's serial number as device.adb.")
    for each in attached:
        if each.serial == serial:
            if each.state == "device":
                return serial
            raise _unusable(each)
    msg = f"no Android device {serial} is attached; there is {listed}"
    raise BoardLinkError(msg, remedy="Write one of these as device.adb.")


def link_broken(serial: str, said: str) -> BoardError:
    """A command's end never came."""
    lowered = said.lower()
    for state in ("unauthorized", "offline", "no permissions"):
        if state in lowered:
            what, remedy = _STATES[state]
            kind = BoardLinkError if state == "offline" else BoardAccessError
            return kind(f"the Android device {serial} {what}", remedy=remedy)
    why = _short(said) or "the connection was closed"
    return BoardLinkError(f"the link to the Android device {serial} broke: {why}", remedy=CABLE)


def no_answer(serial: str, seconds: float) -> BoardError:
    """Adb did not come back."""
    msg = f"the Android device {serial} did not answer within {seconds:g} s"
    return BoardLinkError(msg, remedy=CABLE)


def push_failed(serial: str, target: str, said: str) -> BoardError:
    """A file could not be copied."""
    lowered = said.lower()
    if "no space left" in lowered:
        msg = f"no space is left on the Android device {serial} for {target}"
        return BoardUnfitError(msg, remedy="Free some there, or choose another device.folder.")
    if "permission denied" in lowered or "read-only" in lowered or "secure_mkdirs" in lowered:
        msg = f"the folder of {target} can't be written to on the Android device {serial}"
        return BoardUnfitError(
            f"{msg}: {_short(said)}", remedy="Leave device.folder out: /data/local/tmp works."
        )
    if any(word in lowered for word in ("not found", "offline", "closed", "no devices")):
        return link_broken(serial, said)
    return BoardLinkError(f"{target} could not be copied to {serial}: {_short(said)}", remedy=CABLE)


def cannot_start(tool: str, said: str, abi: str, code: int | None) -> BoardError | None:
    """Why a tool can't be started on the device; None where that is not what happened.

    Args:
        tool: its name.
        said: all that was printed. What a tool prints after it has started is no reason: only a
            line of the linker is, or that of a shell with its status for what can't be started.
        abi: what the device runs.
        code: the exit status; None where none was told.
    """
    linker = "\n".join(line for line in said.splitlines() if LINKER in line)
    if linker:
        return _cannot_link(tool, linker, abi)
    if code not in {None, *CANNOT_START}:
        return None
    for sign in NO_PROGRAM:
        if sign in said:
            return _no_program(tool, _line(said, sign), abi)
    if "Permission denied" in said:
        return BoardUnfitError(
            f"{tool} may not be run on the device: {_line(said, 'Permission denied')}",
            remedy="Programs run below /data/local/tmp, and not on the SD card.",
        )
    if code is None:
        return None
    return BoardUnfitError(
        f"{tool} can't be started on the device: {_last(said) or f'status {code}'}",
        remedy="Is the interpreter or the loader that it names on the device? Build it with the "
        "Android NDK.",
    )


def _cannot_link(tool: str, said: str, abi: str) -> BoardError:
    """By what the linker says."""
    if missing := re.search(r'library "([^"]+)" not found', said):
        return BoardUnfitError(
            f"{tool} needs the library {missing[1]}, which is not on the device",
            remedy=f"Put {missing[1]} beside the tool on this machine: it is copied with it.",
        )
    for sign in NO_PROGRAM:
        if sign in said:
            return _no_program(tool, _line(said, sign), abi)
    return BoardUnfitError(
        f"{tool} can't be linked on the device: {_line(said, LINKER)}",
        remedy="Build it for this Android version, with the libraries that lie beside it.",
    )


def _no_program(tool: str, said: str, abi: str) -> BoardError:
    return BoardUnfitError(
        f"{tool} is not executable on the device: {said}",
        remedy=f"Build it for {abi} with the Android NDK.",
    )


def one_line(text: str) -> str:
    """What another machine said, without line breaks and control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _unusable(device: Attached) -> BoardError:
    what, remedy = _STATES.get(
        device.state,
        (f"is in the state {one_line(device.state)!r}", "Start it normally, then try again."),
    )
    kind = BoardLinkError if device.state in {"offline", "authorizing"} else BoardAccessError
    return kind(f"the Android device {device.serial} {what}", remedy=remedy)


def _named(device: Attached) -> str:
    told = [device.about, "" if device.state == "device" else device.state]
    more = ", ".join(one_line(each) for each in told if each)
    return f"{one_line(device.serial)} ({more})" if more else one_line(device.serial)


def _last(said: str) -> str:
    return _short(next((line for line in reversed(said.splitlines()) if line.strip()), ""))


def _line(said: str, sign: str) -> str:
    return _short(next((line for line in said.splitlines() if sign in line), said))


def _short(said: str) -> str:
    return one_line(said)[:MOST_TEXT]
