"""The system's linker, which turns TVM's object files into a shared library."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMANDS = ("c++", "g++", "clang++", "cc", "gcc", "clang", "ld", "ld.lld")
"""Each can link; nothing is compiled with them."""

LAST_LINES = 3


def linker() -> list[str]:
    """The command that links: what ``CXX`` or ``CC`` name, else the first that is installed.

    Raises:
        RunnerFailure: there is none.
    """
    for variable in ("CXX", "CC"):
        if command := shlex.split(os.environ.get(variable, "")):
            return command
    for name in COMMANDS:
        if path := shutil.which(name):
            return [path]
    msg = (
        "no linker was found to make a model library with; install a C compiler or binutils, "
        f"or name one as CC (looked for {', '.join(COMMANDS)})"
    )
    raise RunnerFailure(msg, reason="unavailable")


def link_command(command: Sequence[str]) -> Callable[..., None]:
    """What TVM's ``export_library`` calls with the library's name and its object files."""

    def link(output: str, objects: Sequence[str], **_options: object) -> None:
        flags = ["-shared", "-o", output, *objects]
        try:
            done = subprocess.run(
                [*command, *flags], capture_output=True, text=True, errors="replace", check=False
            )
        except OSError as error:
            msg = f"the linker {command[0]} can't be run: {error.strerror or error}"
            raise RunnerFailure(msg, reason="unavailable") from error
        if done.returncode:
            said = " / ".join(done.stderr.strip().splitlines()[-LAST_LINES:])
            msg = f"the linker {command[0]} failed on the model library: {said or 'no word of why'}"
            raise RunnerFailure(msg)

    return link
