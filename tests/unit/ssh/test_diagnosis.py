"""What OpenSSH says, for a person; the lines are those of OpenSSH 9.2."""

from __future__ import annotations

import pytest

from edgebench.harness.errors import (
    BoardAccessError,
    BoardError,
    BoardLinkError,
    BoardUnfitError,
    RunnerProtocolError,
)
from edgebench.harness.ssh.command import Remote
from edgebench.harness.ssh.diagnosis import first_problem, link_error
from edgebench.harness.ssh.words import one_line

REMOTE = Remote("pi@board")
CHANGED = """\
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\r
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\r
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\r
The fingerprint for the ED25519 key sent by the remote host is\r
SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDHqkj.\r
Host key verification failed.\r
"""
UNKNOWN = """\
No ED25519 host key is known for board and you have requested strict checking.
Host key verification failed.
"""
MISTAKEN = """\
/home/me/.ssh/config: line 3: Bad configuration option: prot
/home/me/.ssh/config: terminating, 1 bad configuration options
"""


@pytest.mark.parametrize(
    ("said", "kind", "message", "remedy"),
    [
        (CHANGED, BoardAccessError, "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDHqkj:", "ssh-keygen -R"),
        (
            UNKNOWN,
            BoardAccessError,
            "host key of pi@board is not known",
            "fingerprint",
        ),
        (
            "pi@board: Permission denied (publickey,password).\n",
            BoardAccessError,
            "does not let us in; it takes publickey,password",
            "ssh-copy-id pi@board",
        ),
        (
            "ssh: Could not resolve hostname board: Name or service not known\n",
            BoardLinkError,
            "no machine named pi@board",
            "~/.ssh/config",
        ),
        (
            "ssh: connect to host board port 22: Connection refused\n",
            BoardLinkError,
            "can't be reached",
            "sshd",
        ),
        (
            "ssh: connect to host board port 22: Connection timed out\n",
            BoardLinkError,
            "can't be reached",
            "switched on",
        ),
        (
            "ssh: connect to host board port 22: No route to host\n",
            BoardLinkError,
            "can't be reached",
            "network",
        ),
        (
            MISTAKEN,
            BoardAccessError,
            "does not take its own configuration",
            None,
        ),
        (
            "Timeout, server board not responding.\n",
            BoardLinkError,
            "broke during load: Timeout, server board not responding",
            "Is the board up?",
        ),
        ("", BoardLinkError, "broke during load: ssh left with status 255", "Is the board up?"),
    ],
)
def test_each_failure_of_ssh_has_its_own_words(
    said: str, kind: type[BoardError], message: str, remedy: str | None
) -> None:
    """What happened, and what to do about it."""
    error = link_error(REMOTE, "load", 255, said, "")
    assert type(error) is kind
    assert message in error.message
    assert "{" not in str(error)
    if remedy is None:
        assert error.remedy is None
    else:
        assert remedy in (error.remedy or "")


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("board:22", "`ssh://board:22`"),
        ("root@127.0.0.1:41567", "`ssh://root@127.0.0.1:41567`"),
        ("root@[::1]", "no brackets, `root@::1`"),
        ("root@[::1]:22", "no brackets, `root@::1`"),
        ("root@board", None),
        ("ssh://root@board:22", None),
    ],
)
def test_a_port_in_an_address_is_explained(address: str, hint: str | None) -> None:
    """ssh takes HOST:PORT for a name, and can't find it."""
    said = f"ssh: Could not resolve hostname {address}: Name or service not known\n"
    remedy = link_error(Remote(address), "connecting", 255, said, "").remedy or ""
    assert "~/.ssh/config" in remedy
    if hint is None:
        assert "port" not in remedy.lower()
    else:
        assert hint in remedy


def test_an_ssh_that_takes_no_brackets_is_explained() -> None:
    """OpenSSH 9.2 shows its usage for ssh://[::1]:22."""
    error = link_error(Remote("ssh://[::1]:22"), "connecting", 255, "", "usage: ssh [-46Aa]\n")
    assert "no HOST in brackets" in (error.remedy or "")


def test_a_log_of_a_runner_is_no_word_of_ssh() -> None:
    """A framework may print anything, also what ssh would."""
    error = link_error(REMOTE, "load", 255, "", "Permission denied (publickey)\n")
    assert type(error) is BoardLinkError


@pytest.mark.parametrize(
    ("code", "log", "message"),
    [
        (127, "sh: 1: exec: python3: not found\n", "no Python python3 on pi@board: sh: 1: exec"),
        (126, "sh: 1: exec: python3: Permission denied\n", "no Python python3 on pi@board"),
        (
            1,
            "SyntaxError: invalid syntax\n",
            "did not start edgebench: SyntaxError: invalid syntax",
        ),
        (1, "", "it left with status 1"),
    ],
)
def test_a_python_that_does_not_start_is_told(code: int, log: str, message: str) -> None:
    """The statuses of a shell that can't start a command are POSIX's."""
    error = link_error(REMOTE, "connecting", code, "", log)
    assert isinstance(error, BoardUnfitError)
    assert message in error.message
    assert "3.11" in (error.remedy or "")


@pytest.mark.parametrize(
    ("facts", "kind", "message"),
    [
        ({"kind": "python", "text": "3.9.2"}, BoardUnfitError, "is Python 3.9.2"),
        ({"kind": "space", "text": "No space left"}, BoardUnfitError, "no space is left"),
        ({"kind": "folder", "text": "Read-only"}, BoardUnfitError, "can't be written to"),
        ({"kind": "damaged", "text": "/x"}, BoardLinkError, "damaged on its way"),
        ({"kind": "later"}, BoardUnfitError, "can't be written to"),
    ],
)
def test_each_problem_of_the_first_program_has_its_own_words(
    facts: dict[str, object], kind: type[BoardError], message: str
) -> None:
    """Also one that a later version may name."""
    error = first_problem(REMOTE, facts)
    assert type(error) is kind
    assert message in error.message


def test_only_the_first_program_says_that_a_python_is_too_old() -> None:
    """Of a program that prints something else, that is told, short and clean, and no more."""
    log = (
        "edgebench: not the protocol (not JSON (Expecting value: line 1 column 1 (char 0))): "
        f"Usage: \x1b[1mbox\x1b[0m {'x' * 500}\n"
        "edgebench: not the protocol (not JSON (...)): second\n"
    )
    error = link_error(REMOTE, "connecting", 2, "/home/me/.ssh/id: an old key\n", log)
    assert type(error) is RunnerProtocolError
    assert "what it printed is not the protocol: Usage: [1mbox [0m xxx" in error.message
    assert len(error.message) < 300
    assert "is no Python" not in str(error)
    assert "/home/me" not in str(error)


def test_words_of_ssh_before_it_knows_where_to_write_them_are_told() -> None:
    """OpenSSH prints what is wrong with its command line to its standard error."""
    log = "command-line: line 0: Bad configuration option: foo\nusage: ssh [-46AaCfGgKkMN]\n"
    error = link_error(REMOTE, "connecting", 255, "", log)
    assert type(error) is BoardAccessError
    assert error.message.endswith("command-line: line 0: Bad configuration option: foo")
    assert "EDGEBENCH_SSH" in (error.remedy or "")
    closed = link_error(REMOTE, "connecting", 255, "", "Connection to b closed by remote host.\n")
    assert type(closed) is BoardLinkError
    assert closed.message.endswith("broke during connecting: Connection to b closed by remote host")


def test_a_remedy_can_be_copied_into_a_shell() -> None:
    """A Windows domain's user has a backslash in its name."""
    error = link_error(Remote("LAB\\me@board"), "load", 255, "", "")
    assert "`ssh 'LAB\\me@board' true`" in (error.remedy or "")


def test_what_a_board_says_can_not_move_the_cursor() -> None:
    """It goes to a terminal."""
    assert one_line("a\x1b[2Jb\r\nc\u202ed") == "a [2Jb c d"
    assert len(one_line("x" * 10_000)) < 1000
