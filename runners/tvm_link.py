"""The system's linker, which turns TVM's object files into a shared library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = ("c++", "g++", "clang++", "cc", "gcc", "clang", "ld", "ld.lld")
"""Each can link; nothing is compiled with them."""

VARIABLES = ("CXX", "CC")
"""Of the environment, in the order in which they are looked at."""

LAST_LINES = 3


def linker() -> list[str]:
    """The command that links: what ``CXX`` or ``CC`` name, else the first that is installed.

    Raises:
        RunnerFailure: there is none, or what a variable names can't be run (unavailable).
    """
    for variable in VARIABLES:
        if command := _named_by(variable):
            if shutil.which(command[0]) is None:
                msg = f"{variable} names {command[0]}, which can't be run: correct or unset it"
                raise RunnerFailure(msg, reason="unavailable")
            return command
    for name in COMMANDS:
        if path := shutil.which(name):
            return [path]
    msg = (
        "no linker was found to make a model library with; install a C compiler or binutils, "
        f"or name one as CC (looked for {', '.join(COMMANDS)})"
    )
    raise RunnerFailure(msg, reason="unavailable")


def _named_by(variable: str) -> list[str]:
    """The command in a variable of the environment; empty where it isn't set."""
    text = os.environ.get(variable, "")
    try:
        return shlex.split(text)
    except ValueError as error:
        msg = f"{variable} can't be read as a command ({error}): {text}; correct or unset it"
        raise RunnerFailure(msg, reason="unavailable") from None


def link_command(command: Sequence[str]) -> Callable[..., None]:
    """What TVM's ``export_library`` calls with the library's name and its object files."""

    def link(output: str, objects: Sequence[str], **_options: object) -> None:
        flags = ["-shared", "-o", output, *objects]
        try:
            done = subprocess.run(
                [*command, *flags], capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            named = [each for each in VARIABLES if _named_by(each) == [*command]]
            which = f" ({named[0]})" if named else ""
            msg = f"the linker {command[0]}{which} can't be run: {error.strerror or error}"
            raise RunnerFailure(msg, reason="unavailable") from error
        if done.returncode or not Path(output).is_file():
            said = " / ".join(done.stderr.strip().splitlines()[-LAST_LINES:])
            msg = f"the linker {command[0]} failed on the model library: {said or 'no word of why'}"
            raise RunnerFailure(msg)

    return link
