"""The command line that reaches a board: the user's own `ssh`, with what must hold for a run."""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

DEFAULT_PYTHON = "python3"
DEFAULT_FOLDER = "~/.cache/edgebench"
SSH_VARIABLE = "EDGEBENCH_SSH"

CONNECT_S = 15
ALIVE_EVERY_S = 5
ALIVE_MISSED = 3

OPTIONS = {
    "BatchMode": "yes",  # nobody is there to answer a question
    "StrictHostKeyChecking": "yes",  # also where the user's own configuration is careless
    "ConnectTimeout": str(CONNECT_S),
    "ServerAliveInterval": str(ALIVE_EVERY_S),
    "ServerAliveCountMax": str(ALIVE_MISSED),
    "ClearAllForwardings": "yes",  # a port can be forwarded once, and we connect several times
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
    "LogLevel": "INFO",  # what went wrong is said at this level
}

# Runs what its first argument encodes. Without a line break or a quote of its own, every shell
# that a board may have passes it on as it is.
BOOT = "import sys,base64;exec(base64.b64decode(sys.argv.pop(1)))"


@dataclass(frozen=True, slots=True)
class Remote:
    """A board, and how it is reached.

    Attributes:
        address: USER@HOST, or a name of the user's OpenSSH configuration.
        python: the Python there.
        folder: where models and the worker are kept there.
        ssh: the words that start ssh.
    """

    address: str
    python: str = DEFAULT_PYTHON
    folder: str = DEFAULT_FOLDER
    ssh: tuple[str, ...] = ("ssh",)

    def __post_init__(self) -> None:
        # A leading dash would make it an option of ssh, and an option may run a command here.
        if self.address.startswith("-") or self.address.split() != [self.address]:
            msg = f"{self.address!r} is no address for ssh"
            raise UsageError(
                msg, remedy="Write USER@HOST, or a name of your OpenSSH configuration."
            )

    def command(self, errors: Path, worker: Path, agent: Sequence[str]) -> list[str]:
        """The words that connect and start the agent.

        Args:
            errors: the file that takes what ssh itself has to say.
            worker: the worker's file on this machine.
            agent: the agent's arguments.
        """
        content = worker.read_bytes()
        facts = [worker.name, str(len(content)), hashlib.sha256(content).hexdigest()]
        boot = ["-c", BOOT, first_step()]
        words = [*boot, self.folder, *facts, *agent]
        there = " ".join(["exec", _path(self.python), *map(shlex.quote, words)])
        options = [part for name, text in OPTIONS.items() for part in ("-o", f"{name}={text}")]
        return [*self.ssh, "-T", "-E", str(errors), *options, "--", self.address, there]


def ssh_words(environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """What starts ssh: ``ssh``, or the words of EDGEBENCH_SSH, such as ``ssh -F my-config``.

    Raises:
        UsageError: its quotes do not match, or it is blank.
    """
    text = environ.get(SSH_VARIABLE)
    if text is None:
        return ("ssh",)
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        msg = f"{SSH_VARIABLE} is no command: {error}"
        raise UsageError(msg) from error
    if not words:
        msg = f"{SSH_VARIABLE} is set and empty"
        raise UsageError(msg, remedy="Unset it, or write a command such as 'ssh -F my-config'.")
    return words


@lru_cache(maxsize=1)
def first_step() -> str:
    """The first program on the board, as one word."""
    source = resources.files("edgebench.harness.ssh").joinpath("first_step.py").read_bytes()
    return base64.b64encode(source).decode("ascii")


def _path(path: str) -> str:
    """A path for the board's shell; a ``~`` that begins it is the home folder there."""
    if path.startswith("~/"):
        return '"$HOME"/' + shlex.quote(path[2:])
    return shlex.quote(path)
