"""The options of commands that ask a board instead of this machine."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click

from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from edgebench.harness.ssh.board import SshBoard

P = ParamSpec("P")
R = TypeVar("R")


def ssh_options(command: Callable[P, R]) -> Callable[P, R]:
    """``--ssh`` and ``--python``, as ``ssh`` and ``python``."""
    python = click.option(
        "--python", metavar="PATH", help="With --ssh: the Python 3.11 or newer there."
    )
    ssh = click.option(
        "--ssh", metavar="HOST", help="Ask that machine: USER@HOST, or a name in ~/.ssh/config."
    )
    return ssh(python(command))


@contextmanager
def board_at(ssh: str, python: str | None) -> Iterator[SshBoard]:
    """A board for one command.

    Raises:
        UsageError: that is no address.
    """
    # Late: not needed for a question about this machine.
    from edgebench.harness.ssh.board import SshBoard  # noqa: PLC0415
    from edgebench.harness.ssh.command import DEFAULT_PYTHON, Remote, ssh_words  # noqa: PLC0415

    board = SshBoard(Remote(ssh, python or DEFAULT_PYTHON, ssh=ssh_words()))
    try:
        yield board
    finally:
        board.close()


def refuse_python(ssh: str | None, python: str | None) -> None:
    """Refuse an interpreter of a board where none is named.

    Raises:
        UsageError: it is.
    """
    if python is not None and ssh is None:
        msg = "--python is the Python of a board, and no board is named"
        raise UsageError(msg, remedy="Name it by --ssh.")
