"""The command line that reaches a board: the user's own `ssh`, with what must hold for a run."""

from __future__ import annotations

import base64
import hashlib
import os
import shlex
import subprocess
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.errors import UsageError
from edgebench.harness.ssh import address as addresses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

DEFAULT_PYTHON = "python3"
DEFAULT_FOLDER = "~/.cache/edgebench"
SSH_VARIABLE = "EDGEBENCH_SSH"

CONNECT_S = 15
ALIVE_EVERY_S = 5
ALIVE_MISSED = 3

OPTIONS = {
    "BatchMode": "yes",  # nobody is there to answer a question
    "StrictHostKeyChecking": "yes",  # also where the user's own configuration is careless
    "NoHostAuthenticationForLocalhost": "no",  # a board may be behind a forwarded port
    "ConnectTimeout": str(CONNECT_S),
    "ServerAliveInterval": str(ALIVE_EVERY_S),
    "ServerAliveCountMax": str(ALIVE_MISSED),
    "ClearAllForwardings": "yes",  # a port can be forwarded once, and we connect several times
    "ForwardAgent": "no",  # a board needs no key of its user's
    "ForwardX11": "no",
    "Tunnel": "no",
    "RequestTTY": "no",
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
    "LogLevel": "INFO",  # what went wrong is said at this level
}

NEWER_OPTIONS = {"SessionType": "default", "StdinNull": "no", "ForkAfterAuthentication": "no"}
"""Since OpenSSH 8.7; an older one ends at them, and its configuration can't hold them either."""

PROBE_S = 5.0

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
        wrong = addresses.refusal(self.address)
        if wrong is not None:
            raise UsageError(wrong, remedy=addresses.REMEDY)

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
        # Of an option that is given twice ssh takes the first: ours come before the user's words.
        # Of -E it takes the last.
        at = _after_program(self.ssh)
        newer = NEWER_OPTIONS if knows_newer(self.ssh) else {}
        options = _as_words({**OPTIONS, **newer})
        ours = [*self.ssh[:at], *options, *self.ssh[at:]]
        return [*ours, "-T", "-E", str(errors), "--", self.address, there]


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


@lru_cache
def knows_newer(ssh: tuple[str, ...]) -> bool:
    """Whether an ssh takes `NEWER_OPTIONS`: it is asked, for versions say little of patched ones.

    IgnoreUnknown would do as well, but for taking the place of the user's own.
    """
    at = _after_program(ssh)
    command = [*ssh[:at], *_as_words(NEWER_OPTIONS), "-V"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _as_words(options: Mapping[str, str]) -> list[str]:
    return [part for name, text in options.items() for part in ("-o", f"{name}={text}")]


def _after_program(ssh: Sequence[str]) -> int:
    """Behind the word that names ssh, which another program may start: ``nice ssh -F x``."""
    names = [Path(word).name for word in ssh]
    return names.index("ssh") + 1 if "ssh" in names else 1


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
