"""Why a board can't be reached or used: what ssh and the first program there said, for a person."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.errors import (
    BoardAccessError,
    BoardError,
    BoardLinkError,
    BoardUnfitError,
    RunnerProtocolError,
    RunnerTimeoutError,
)
from edgebench.harness.ssh import parsed
from edgebench.harness.ssh.address import URI, port_hint, quoted
from edgebench.harness.ssh.words import first_line, last_line, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from edgebench.harness.ssh.command import Remote

SSH_FAILED = 255
NOT_FOUND, NOT_EXECUTABLE = 127, 126
"""The statuses of ssh itself and, by POSIX, of a shell that can't start a command."""

CONNECTING = "connecting"

PYTHON_REMEDY = "Install Python 3.11 or newer there, and give its path as device.python."

MAX_SHOWN = 120

NOISE = "edgebench: not the protocol ("
"""So begins a line of the log that holds what came in place of a message."""


def link_error(
    remote: Remote, doing: str, code: int | None, said: str, log: str
) -> BoardError | RunnerProtocolError:
    """Why the connection ended.

    Args:
        remote: the board.
        doing: what was being done.
        code: how ssh ended; None where it did not.
        said: what ssh itself wrote to the file that it was given.
        log: the end of what the board's side wrote in this connection. While connecting, ssh
            itself writes there what it has to say before it knows of that file.
    """
    known = _known(remote, said) if code == SSH_FAILED else None
    if known is not None:
        return known
    if doing == CONNECTING and code == SSH_FAILED and not said.strip():
        said = first_line(log)
        if _COMMAND_LINE.search(said):
            remedy = "If EDGEBENCH_SSH is set, its words are wrong; else this ssh is too old."
            if remote.address.startswith(URI):
                remedy = (
                    "It takes ssh://USER@HOST:PORT, but no HOST in brackets: write a Host for that "
                    "into ~/.ssh/config, with HostName and Port."
                )
            return BoardAccessError(f"ssh does not take its command line: {said}", remedy=remedy)
    if code in {NOT_FOUND, NOT_EXECUTABLE}:
        why = last_line(log)
        return BoardUnfitError(
            f"there is no Python {remote.python} on {remote.address}{f': {why}' if why else ''}",
            remedy=PYTHON_REMEDY,
        )
    if doing == CONNECTING and code not in {None, SSH_FAILED}:
        return _not_greeted(remote, f"it left with status {code}", log)
    why = last_line(said) or (f"ssh left with status {code}" if code else "it was closed")
    return BoardLinkError(
        f"the link to {remote.address} broke during {doing}: {why}",
        remedy=f"Is the board up? `ssh {quoted(remote.address)} true` tells.",
    )


def _not_greeted(remote: Remote, how: str, log: str) -> BoardError | RunnerProtocolError:
    """The board's side ended before it spoke the protocol; what it is can't be known."""
    noise = [line for line in log.splitlines() if line.startswith(NOISE)]
    if noise:
        return not_the_protocol(remote, noise[0].partition("): ")[2])
    why = last_line(log)
    return BoardUnfitError(
        f"{remote.python} on {remote.address} did not start edgebench: {why or how}",
        remedy="Is that a Python 3.11 or newer? If not, give the path of one as device.python.",
    )


def not_the_protocol(remote: Remote, text: str) -> RunnerProtocolError:
    """Something else than edgebench answered."""
    shown = one_line(text)[:MAX_SHOWN].rstrip(". ")
    return RunnerProtocolError(
        f"{remote.python} on {remote.address} did not start edgebench: what it printed is not "
        f"the protocol: {shown or 'blanks'}",
        remedy="device.python must be a Python, and a shell's start-up file must not wait for "
        "somebody, or print more than 256 KiB.",
    )


@contextmanager
def naming(remote: Remote) -> Iterator[None]:
    """Say of a message that can't be understood from which board it came, and what to do.

    Raises:
        RunnerProtocolError: as it came in, with the board's address and a remedy.
    """
    try:
        yield
    except RunnerProtocolError as error:
        if error.remedy is not None:  # said already
            raise
        msg = f"{error.message} (from {remote.address})"
        raise RunnerProtocolError(
            msg,
            remedy=f"Run it again. If it stays so, is {remote.python} there a plain Python 3.11 or "
            "newer, and does nothing on the way change what is sent? If so, please report it.",
        ) from error


def too_slow(remote: Remote, doing: str, limit_s: float) -> RunnerTimeoutError:
    """The board answered nothing in time, and its link was not seen to break."""
    return RunnerTimeoutError(
        f"{remote.address} did not answer within {limit_s:g} s during {doing}",
        remedy=f"Is it busy, or does it hang? `ssh {quoted(remote.address)} uptime` tells.",
    )


def first_problem(remote: Remote, facts: Mapping[str, object]) -> BoardError:
    """What the first program on the board found to be wrong.

    Raises:
        RunnerProtocolError: what it said is malformed.
    """
    kind, said = parsed.problem(facts)
    text = one_line(said)
    if kind == "python":
        return BoardUnfitError(
            f"{remote.python} on {remote.address} is Python {text}, and edgebench needs 3.11",
            remedy=PYTHON_REMEDY,
        )
    if kind == "space":
        return BoardUnfitError(
            f"no space is left on {remote.address} for the worker: {text}",
            remedy="Free some there, or name a folder on a larger disk as device.folder.",
        )
    if kind == "damaged":
        return BoardLinkError(f"the worker's file was damaged on its way to {remote.address}")
    return BoardUnfitError(
        f"the folder {remote.folder} can't be written to on {remote.address}: {text}",
        remedy="Name another one as device.folder.",
    )


def no_ssh(remote: Remote, error: OSError) -> BoardError:
    """There is no ssh on this machine."""
    return BoardAccessError(
        f"{remote.ssh[0]} can't be started on this machine: {error.strerror}",
        remedy="Install OpenSSH's client, such as the package openssh-client.",
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What ssh is known to say, and the error for it; the first that is found counts.

    The words are those of OpenSSH. In the message and the remedy, `{address}` is the board's,
    `{last}` the last line, and `{found}` what the expression holds in its first group. A remedy may
    hold `{hint}`: how a port is written, where the address looks as if it had one.
    """

    said: re.Pattern[str]
    error: type[BoardError]
    message: str
    remedy: str | None = None


_KNOWN = (
    _Known(
        re.compile(
            r"REMOTE HOST IDENTIFICATION HAS CHANGED"
            r"(?:.*sent by the remote host is\s+(\S+?)\.?\s*$)?",
            re.MULTILINE | re.DOTALL,
        ),
        BoardAccessError,
        "{address} shows another host key than the one that is known, {found}: it was set up anew, "
        "or it is another machine",
        "If you know why, remove the old key with `ssh-keygen -R HOST`, and connect once by hand.",
    ),
    _Known(
        re.compile(r"host key is known for|Host key verification failed"),
        BoardAccessError,
        "the host key of {address} is not known",
        "Connect once by hand, `ssh {address}`, and compare the fingerprint that it shows with the "
        "board's own.",
    ),
    _Known(
        re.compile(r"Permission denied(?: \(([^)]*)\))?"),
        BoardAccessError,
        "{address} does not let us in; it takes {found}",
        "Put your public key there with `ssh-copy-id {address}`. A key with a passphrase has to be "
        "in ssh-agent, for nobody is asked for it.",
    ),
    _Known(
        re.compile(r"Could not resolve hostname"),
        BoardLinkError,
        "there is no machine named {address}: {last}",
        "Check the address, or Host and HostName in ~/.ssh/config.{hint}",
    ),
    _Known(
        re.compile(r"Connection (refused|timed out)|No route to host|Network is unreachable"),
        BoardLinkError,
        "{address} can't be reached: {last}",
        "Is it switched on, in this network, and does sshd run there?",
    ),
    _Known(
        re.compile(
            r"Bad owner or permissions|Bad configuration option|terminating, \d+ bad"
            r"|Can't open user config file"
        ),
        BoardAccessError,
        "ssh does not take its own configuration: {last}",
    ),
)


# Said by OpenSSH and its getopt while they read the command line.
_COMMAND_LINE = re.compile(
    r"^command-line|unknown option|illegal option|requires an argument|^usage: ssh|^Bad |"
    r"^Unsupported|^Can't open user config|^Too many|^Multiple"
)


def _known(remote: Remote, said: str) -> BoardError | None:
    for each in _KNOWN:
        match = each.said.search(said)
        if match is not None:
            found = match[1] if match.re.groups and match[1] else "as its owner knows"
            facts = {"last": last_line(said), "found": one_line(found)}
            message = each.message.format(address=remote.address, **facts)
            remedy = each.remedy
            if remedy is not None:
                hint = port_hint(remote.address)
                remedy = remedy.format(address=quoted(remote.address), hint=hint, **facts)
            return each.error(message, remedy=remedy)
    return None
