"""A board behind a real OpenSSH server: what it answers, and each way in which it can't."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from ssh_server import ALIAS, SshServer, bare_python, make_key, until_gone

from edgebench.devices.machine import describe_machine
from edgebench.harness import wire
from edgebench.harness.errors import (
    BoardAccessError,
    BoardLinkError,
    BoardUnfitError,
    RunnerCrashedError,
    RunnerRefusedError,
    RunnerTimeoutError,
    RunnerUnavailableError,
    UsageError,
)
from edgebench.harness.session import Launch, worker_file
from edgebench.runners.base import GenerateRequest, LoadRequest, to_wire

if TYPE_CHECKING:
    from tests.integration.ssh.conftest import MakeBoard

    from edgebench.harness.session import Session
    from edgebench.harness.ssh.board import SshBoard

pytestmark = pytest.mark.ssh

REQUEST = GenerateRequest(prompt_ids=[1, 10, 20], max_tokens=6)
LIMIT_S = 60.0


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch("fake", tmp_path / "logs" / "fake.log")


def load(session: Session, tmp_path: Path, **options: object) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(b"weights")
    request = LoadRequest(str(model), 64, options)  # type: ignore[arg-type]
    session.call("load", to_wire(request), timeout_s=LIMIT_S)


# What it answers ------------------------------------------------------------------------------


def test_a_board_describes_itself(board: SshBoard) -> None:
    """The machine is the board's, as it sees itself; here it is this one."""
    there, here = board.machine(), describe_machine()
    assert (there.cpu_model, there.boot_id) == (here.cpu_model, here.boot_id)
    assert there.fingerprint == here.fingerprint
    assert board.name == ALIAS
    assert board.remote


def test_a_board_tells_its_meters_and_its_heat(board: SshBoard) -> None:
    """Each is there or has a reason, and idle power has a reading for each meter."""
    meters = board.meters()
    assert meters.found or meters.why_none
    assert len(board.idle_watts(0.01)) == len(meters.found)
    heat = board.temperature()
    assert heat.value is not None or heat.reason


def test_a_runner_is_watched_where_it_runs(board: SshBoard, launch: Launch, tmp_path: Path) -> None:
    """Time stamps and the window are of one clock, and the memory is that of the runner alone."""
    with board.open(launch) as session:
        load(session, tmp_path, allocate_mb=50, token_s=0.01)
        runner = psutil.Process(session.pid)
        with board.watch(session) as watch:
            watch.begin()
            answer = session.call("generate", to_wire(REQUEST), timeout_s=LIMIT_S)
            window = watch.end()
            rss = watch.current_rss()
            truth = runner.memory_info().rss
        made = wire.generation(answer, REQUEST, 259)
    assert window.begin_ns <= made.submitted_ns <= made.token_ns[-1] <= window.end_ns
    assert rss.value == pytest.approx(truth, rel=0.05)
    assert window.peak_rss.value is not None
    assert window.peak_rss.value >= 50 << 20
    assert len(window.samples) >= 2


def test_a_board_without_any_package_runs_the_runner(
    make_board: MakeBoard, launch: Launch, tmp_path: Path
) -> None:
    """The worker and the agent need the standard library and nothing else."""
    python = bare_python(tmp_path / "bare")
    board = make_board(python=str(python))
    assert board.machine().cpu_microarchitecture is None  # archspec is not there
    with board.open(launch) as session, board.watch(session):
        load(session, tmp_path)
        assert session.call("generate", to_wire(REQUEST), timeout_s=LIMIT_S)["token_ids"]


def test_the_worker_is_sent_once(make_board: MakeBoard, tmp_path: Path) -> None:
    """A second connection finds the file by its hash; a damaged one is sent again."""
    make_board().machine()
    file = tmp_path / "board" / worker_file().name
    sent, inode = file.read_bytes(), file.stat().st_ino
    make_board().machine()
    assert file.stat().st_ino == inode
    file.write_bytes(sent[:-1])
    make_board().machine()
    assert file.read_bytes() == sent == worker_file().read_bytes()
    assert [each.name for each in (tmp_path / "board").iterdir()] == [file.name]


def test_what_the_framework_prints_is_in_the_log_here(
    board: SshBoard, launch: Launch, tmp_path: Path
) -> None:
    """Standard output of the framework comes home as the log of a local run does."""
    with board.open(launch) as session:
        load(session, tmp_path, garbage=True)
    assert b"half a line" in launch.log.read_bytes()


def test_a_cold_load_is_possible(board: SshBoard, tmp_path: Path) -> None:
    """A file there is dropped from the page cache there, or it is said why not."""
    file = tmp_path / "file"
    file.write_bytes(b"x" * 8192)
    assert board.evict(str(file)) == "" or "memory" in board.evict(str(file))
    assert "can't be opened" in board.evict(str(tmp_path / "none"))


def test_a_board_is_examined_for_what_spoils_a_measurement(board: SshBoard) -> None:
    """The same checks as here."""
    assert {"CPU", "memory"} & {check.name for check in board.doctor()}


# How runners fail there -----------------------------------------------------------------------


def test_a_crash_there_is_told_as_one_here(board: SshBoard, launch: Launch, tmp_path: Path) -> None:
    """The signal is the runner's own, and its last words are in the log."""
    with board.open(launch) as session:
        load(session, tmp_path, fail="crash", signal="SIGSEGV")
        with pytest.raises(RunnerCrashedError) as caught:
            session.call("generate", to_wire(REQUEST), timeout_s=LIMIT_S)
    assert caught.value.signal == "SIGSEGV"
    assert caught.value.kind == "crash"


def test_an_exit_status_there_comes_here(board: SshBoard, launch: Launch, tmp_path: Path) -> None:
    """A framework that leaves with a status has left with that status."""
    with board.open(launch) as session:
        load(session, tmp_path, fail="exit")
        with pytest.raises(RunnerCrashedError) as caught:
            session.call("generate", to_wire(REQUEST), timeout_s=LIMIT_S)
    assert caught.value.exit_code == 7


def test_a_runner_that_hangs_is_ended_there(
    board: SshBoard, launch: Launch, tmp_path: Path
) -> None:
    """The deadline ends the process on the board too, and the next one starts."""
    with board.open(launch) as session:
        load(session, tmp_path, fail="hang")
        runner = psutil.Process(session.pid)
        with pytest.raises(RunnerTimeoutError):
            session.call("generate", to_wire(REQUEST), timeout_s=0.5)
    until_gone(runner)
    with board.open(launch) as session:
        load(session, tmp_path)


def test_a_refusal_is_an_answer(board: SshBoard, launch: Launch, tmp_path: Path) -> None:
    """What a runner can't do is no failure of the link."""
    with board.open(launch) as session:
        load(session, tmp_path, fail="refuse")
        with pytest.raises(RunnerRefusedError):
            session.call("generate", to_wire(REQUEST), timeout_s=LIMIT_S)


def test_an_interpreter_that_is_not_there_is_named(
    board: SshBoard, launch: Launch, tmp_path: Path
) -> None:
    """A runner's own interpreter is a path on the board."""
    wrong = Launch("fake", launch.log, python=str(tmp_path / "no-python"))
    with pytest.raises(RunnerUnavailableError, match="no-python"), board.open(wrong):
        pass


def test_a_runner_that_does_not_exist_is_named(board: SshBoard, tmp_path: Path) -> None:
    """As it is here."""
    wrong = Launch("lama.cpp", tmp_path / "log")
    with pytest.raises(RunnerUnavailableError, match=r"lama\.cpp"), board.open(wrong):
        pass


# How a board can't be reached -----------------------------------------------------------------


def test_a_wrong_key_is_refused(server: SshServer, make_board: MakeBoard, tmp_path: Path) -> None:
    """The server does not let us in; it is said what it takes, and how to get in."""
    make_key(tmp_path / "other")
    board = make_board(ssh=server.ssh(IdentityFile=str(tmp_path / "other")))
    with pytest.raises(BoardAccessError, match=r"does not let us in.*publickey") as caught:
        board.machine()
    assert caught.value.remedy is not None
    assert "ssh-copy-id board" in caught.value.remedy


def test_an_unknown_host_key_is_refused(server: SshServer, make_board: MakeBoard) -> None:
    """Nobody is asked, so nobody is trusted; also where the user's configuration would be."""
    ssh = server.ssh(UserKnownHostsFile="/dev/null", StrictHostKeyChecking="no")
    with pytest.raises(BoardAccessError, match="host key of board is not known") as caught:
        make_board(ssh=ssh).machine()
    assert "Connect once by hand" in str(caught.value)


def test_a_changed_host_key_is_refused(
    server: SshServer, make_board: MakeBoard, tmp_path: Path
) -> None:
    """It is another machine, or one that was set up anew: the key that it shows is told."""
    hosts = server.known_as(make_key(tmp_path / "old"))
    with pytest.raises(BoardAccessError, match=r"another host key.*SHA256:"):
        make_board(ssh=server.ssh(UserKnownHostsFile=str(hosts))).machine()


def test_a_board_that_is_off_can_not_be_reached(server: SshServer, make_board: MakeBoard) -> None:
    """Nobody listens there."""
    with pytest.raises(BoardLinkError, match=r"can't be reached.*refused"):
        make_board(ssh=server.ssh(Port="1")).machine()


@pytest.mark.parametrize("words", ["", " -o StrictHostKeyChecking=no -o BatchMode=no"])
def test_the_users_own_words_do_not_let_an_unknown_board_in(
    server: SshServer, make_board: MakeBoard, words: str
) -> None:
    """Neither a careless command nor a configuration that trusts whatever is behind localhost."""
    careless = {"NoHostAuthenticationForLocalhost": "yes", "StrictHostKeyChecking": "no"}
    ssh = server.ssh(UserKnownHostsFile="/dev/null", **careless) + words
    with pytest.raises(BoardAccessError, match="host key of board is not known"):
        make_board(ssh=ssh).machine()


def test_a_configuration_for_tunnels_does_not_stand_in_the_way(
    server: SshServer, make_board: MakeBoard
) -> None:
    """Options that leave a session without input or command are for forwardings only."""
    tunnel = {"SessionType": "none", "StdinNull": "yes", "RequestTTY": "force"}
    board = make_board(ssh=server.ssh(ForkAfterAuthentication="yes", **tunnel))
    assert board.machine().cpu_model


def test_a_name_that_does_not_exist_is_told(make_board: MakeBoard) -> None:
    """The name is not found, which is another thing than a board that is off."""
    with pytest.raises(BoardLinkError, match="no machine named nowhere"):
        make_board(address="nowhere.invalid").machine()


def test_a_board_without_python_is_told(make_board: MakeBoard) -> None:
    """The shell there does not find it."""
    with pytest.raises(BoardUnfitError, match="no Python /no/python3 on board"):
        make_board(python="/no/python3").machine()


def test_a_python_that_is_none_is_told(make_board: MakeBoard) -> None:
    """What is started is another program."""
    with pytest.raises(BoardUnfitError, match="/bin/false on board did not start edgebench"):
        make_board(python="/bin/false").machine()


def test_a_python_that_is_old_is_told(make_board: MakeBoard, tmp_path: Path) -> None:
    """It says its version itself."""
    old = tmp_path / "old-python"
    # As old a Python would: it runs the same program, and takes itself for 3.9.
    old.write_text(
        "#!/bin/sh\nshift\nprogram=$1\nshift\n"
        f"exec {Path(bare_python(tmp_path / 'bare'))} "
        '-c "import sys; sys.version_info = (3, 9, 2); $program" "$@"\n',
        encoding="utf-8",
    )
    old.chmod(0o755)
    with pytest.raises(BoardUnfitError, match=r"is Python 3\.9\.2, and edgebench needs 3\.11"):
        make_board(python=str(old)).machine()


def test_a_folder_that_can_not_be_written_is_told(make_board: MakeBoard) -> None:
    """The folder and the system's own reason."""
    with pytest.raises(BoardUnfitError, match="/proc/edgebench can't be written to on board"):
        make_board(folder="/proc/edgebench").machine()


def test_there_may_be_no_ssh_here(make_board: MakeBoard) -> None:
    """The client is what is missing."""
    with pytest.raises(BoardAccessError, match="no-ssh can't be started on this machine"):
        make_board(ssh="/no-ssh").machine()


def test_an_address_can_not_be_an_option(make_board: MakeBoard) -> None:
    """ssh has options that run commands on this machine."""
    with pytest.raises(UsageError, match="no address"):
        make_board(address="-oProxyCommand=touch /tmp/x")


def test_a_chatty_login_does_no_harm(make_board: MakeBoard, tmp_path: Path) -> None:
    """What a shell's start file prints goes before the protocol, and is no part of it."""
    chatty = tmp_path / "chatty"
    python = bare_python(tmp_path / "bare")
    chatty.write_text(f'#!/bin/sh\necho "Welcome to the board!"\nexec {python} "$@"\n')
    chatty.chmod(0o755)
    assert make_board(python=str(chatty)).machine().cpu_model
