"""A server for each test, and a board on it."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Protocol

import pytest
from ssh_server import ALIAS, SshServer, until

from edgebench.harness.ssh.board import SshBoard
from edgebench.harness.ssh.command import Remote
from edgebench.harness.ssh.contact import Contact, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUICK = Limits(ping_s=0.3, silence_s=3.0, start_s=60.0, delays_s=(0.0, 0.0))
"""A link that is silent is given up soon, and a board tried again at once."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    """A server that EDGEBENCH_SSH leads to; nothing of ours may be left on it."""
    with SshServer(tmp_path / "ssh") as made:
        monkeypatch.setenv("EDGEBENCH_SSH", made.ssh())
        yield made
        until(lambda: not made.agents(), "something was left running on the board")


class MakeBoard(Protocol):
    """A board on the server; closed at the end of the test."""

    def __call__(self, *, limits: Limits = ..., **remote: str) -> SshBoard: ...


@pytest.fixture
def make_board(server: SshServer, tmp_path: Path) -> Iterator[MakeBoard]:
    """Boards that differ from a good one in what is given."""
    made: list[SshBoard] = []

    def make(*, limits: Limits = QUICK, **remote: str) -> SshBoard:
        facts = {
            "address": ALIAS,
            "python": sys.executable,
            "folder": str(tmp_path / "board"),
            **remote,
        }
        ssh = tuple(shlex.split(facts.pop("ssh", server.ssh())))
        board = SshBoard(Remote(**facts, ssh=ssh), contact=Contact(limits))
        made.append(board)
        return board

    yield make
    for board in made:
        board.close()


@pytest.fixture
def board(make_board: MakeBoard) -> SshBoard:
    """A good one."""
    return make_board()
