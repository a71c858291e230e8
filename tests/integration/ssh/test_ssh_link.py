"""Links that break: at every stage, with a word and without one, and what is left on the board."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
from ssh_server import ALIAS, SshServer, until, until_gone

from edgebench.harness.errors import BoardLinkError
from edgebench.harness.session import Launch
from edgebench.runners.base import GenerateRequest, LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.ssh.conftest import MakeBoard

    from edgebench.harness.session import Session
    from edgebench.harness.ssh.board import SshBoard

pytestmark = pytest.mark.ssh

LIMIT_S = 600.0
"""So long that a test which waits for it has failed already."""


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch("fake", tmp_path / "fake.log")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(b"weights")
    return path


def load(session: Session, model: Path, **options: object) -> None:
    request = LoadRequest(str(model), 64, options)  # type: ignore[arg-type]
    session.call("load", to_wire(request), timeout_s=LIMIT_S)


def generate(session: Session) -> None:
    session.call("generate", to_wire(GenerateRequest([1], 4)), timeout_s=LIMIT_S)


class Cutter:
    """Cuts all links as soon as something has happened; a context manager."""

    def __init__(self, server: SshServer, happened: Callable[[], bool]) -> None:
        self._server = server
        self._happened = happened
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self) -> None:
        until(self._happened, "what the link was to be cut at did not happen")
        self._server.cut()


def stuck_python(folder: Path, says: str) -> tuple[Path, Path]:
    """A program that says a line, reads whatever comes, and leaves a mark when it has begun."""
    path, mark = folder / "stuck", folder / "begun"
    path.write_text(f"#!/bin/sh\nprintf '%s' '{says}'\ntouch {mark}\nexec cat > /dev/null\n")
    path.chmod(0o755)
    return path, mark


def test_a_link_cut_before_the_board_says_anything(
    server: SshServer, make_board: MakeBoard, tmp_path: Path
) -> None:
    """It is the link, and not a Python that is missing."""
    python, mark = stuck_python(tmp_path, "")
    with (
        Cutter(server, mark.exists),
        pytest.raises(BoardLinkError, match="link to board broke during connecting") as caught,
    ):
        make_board(python=str(python)).machine()
    assert caught.value.kind == "connection"


def test_a_link_cut_while_the_worker_is_sent(
    server: SshServer, make_board: MakeBoard, tmp_path: Path
) -> None:
    """The board asked for it, and the link is gone before it is there."""
    python, mark = stuck_python(tmp_path, '{"jsonrpc":"2.0","method":"first.want"}\n')
    with (
        Cutter(server, mark.exists),
        pytest.raises(BoardLinkError, match="link to board broke"),
    ):
        make_board(python=str(python)).machine()


def test_a_link_cut_while_a_model_is_loaded(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """The runner is gone from the board at once, in the middle of loading."""
    board.machine()  # a board that was reached before is tried again
    with board.open(launch) as session:
        runner = psutil.Process(session.pid)
        # It takes its memory, and then the time that it was told.
        cutter = Cutter(server, lambda: runner.memory_info().rss > 60 << 20)
        with cutter, pytest.raises(BoardLinkError, match="broke during load"):
            load(session, model, allocate_mb=60, load_s=LIMIT_S)
    until_gone(runner)
    with board.open(launch) as session:
        load(session, model)


def test_a_link_cut_while_tokens_are_made(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """What was seen until then is missing with that reason, and nothing is left running."""
    with board.open(launch) as session:
        load(session, model, fail="hang", fail_at_token=1)
        runner = psutil.Process(session.pid)
        with board.watch(session) as watch:
            watch.begin()
            cutter = Cutter(server, lambda: True)
            with cutter, pytest.raises(BoardLinkError, match="broke during generate"):
                generate(session)
            window = watch.end()
    assert window.peak_rss.value is None
    assert "board" in (window.peak_rss.reason or "")
    assert window.energy == ()
    until_gone(runner)


def test_a_link_cut_while_nothing_is_done(server: SshServer, board: SshBoard) -> None:
    """The next question finds it broken, and is answered all the same."""
    board.machine()
    server.cut()
    until(lambda: not server.agents(), "the agent outlived its link")
    assert board.machine().cpu_model


def test_a_watch_goes_on_where_only_the_boards_connection_broke(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """The window in which it happened is missing with its reason; the next one is whole."""
    board.machine()
    (own,) = server.links()
    with board.open(launch) as session:
        load(session, model)
        with board.watch(session) as watch:
            watch.begin()
            server.cut([own])
            generate(session)
            lost = watch.end()
            watch.begin()
            generate(session)
            whole = watch.end()
    assert "board" in (lost.peak_rss.reason or "")
    assert whole.peak_rss.value


def test_a_half_open_link_is_noticed_at_both_ends(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """A server that stopped dead: the host gives up, and the agent ends itself and the runner."""
    with board.open(launch) as session:
        load(session, model, fail="hang")
        agents = server.agents()
        assert len(agents) == 2  # an agent and its runner
        frozen = server.freeze()
        try:
            with pytest.raises(BoardLinkError, match="nothing was heard"):
                generate(session)
            for process in agents:
                until_gone(process)
        finally:
            for process in frozen:
                process.resume()


def test_a_half_open_link_ends_what_is_on_it_and_nothing_else(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """The agent and the runner of the dead link are gone; the board's own agent is still there."""
    board.machine()
    (own,) = server.links()
    (agent,) = server.agents()
    with board.open(launch) as session:
        load(session, model, fail="hang")
        dead = [each for each in server.agents() if each != agent]
        assert len(dead) == 2  # an agent and its runner
        frozen = server.freeze([each for each in server.links() if each != own])
        try:
            with pytest.raises(BoardLinkError, match="nothing was heard"):
                generate(session)
            for process in dead:
                until_gone(process)
        finally:
            for process in frozen:
                process.resume()
    assert board.machine().cpu_model
    assert server.agents() == [agent]


def test_a_frozen_agent_is_noticed(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """A board that hangs as a whole does not answer, whatever its network does."""
    with board.open(launch) as session:
        load(session, model, fail="hang")
        stopped = server.agents()
        for process in stopped:
            process.suspend()
        with pytest.raises(BoardLinkError, match="nothing was heard"):
            generate(session)
    for process in stopped:
        with contextlib.suppress(psutil.NoSuchProcess):  # an agent that goes on ends its own
            process.resume()
    for process in stopped:
        until_gone(process)


def test_an_agent_that_is_killed_takes_its_runner_along(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """Also the kernel, for want of memory, may kill the agent and not the runner."""
    with board.open(launch) as session:
        load(session, model, fail="hang")
        runner = psutil.Process(session.pid)
        runner.parent().kill()
        with pytest.raises(BoardLinkError):
            generate(session)
        until_gone(runner)


def test_a_terminated_agent_ends_its_runner(
    server: SshServer, board: SshBoard, launch: Launch, model: Path
) -> None:
    """A board that shuts down asks first."""
    with board.open(launch) as session:
        load(session, model, fail="hang")
        runner = psutil.Process(session.pid)
        runner.parent().terminate()
        with pytest.raises(BoardLinkError):
            generate(session)
        until_gone(runner)


def test_nothing_outlives_a_killed_harness(
    server: SshServer, launch: Launch, model: Path, tmp_path: Path
) -> None:
    """kill -9 of the harness, in the middle of a generation: the board is empty a moment later."""
    script = f"""
import sys
from pathlib import Path
from edgebench.harness.session import Launch
from edgebench.harness.ssh.board import SshBoard
from edgebench.harness.ssh.command import Remote, ssh_words
from edgebench.runners.base import GenerateRequest, LoadRequest, to_wire
remote = Remote({ALIAS!r}, {sys.executable!r}, {str(tmp_path / "board")!r}, ssh_words())
board = SshBoard(remote)
with board.open(Launch("fake", Path({str(launch.log)!r}))) as session:
    load = LoadRequest({str(model)!r}, 64, {{"fail": "hang"}})
    session.call("load", to_wire(load), timeout_s=60)
    with board.watch(session) as watch:
        watch.begin()
        print("running", flush=True)
        session.call("generate", to_wire(GenerateRequest([1], 4)), timeout_s=600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        assert harness.stdout.readline() == b"running\n"
        agents, clients = server.agents(), psutil.Process(harness.pid).children()
        assert len(agents) == 3  # two agents and a runner
        os.kill(harness.pid, signal.SIGKILL)
        harness.wait()
    for process in [*agents, *clients]:
        until_gone(process)


def test_a_board_that_comes_back_is_waited_for(
    server: SshServer, make_board: MakeBoard, launch: Launch, tmp_path: Path
) -> None:
    """One that was reached before is tried again, with pauses; one that never was is not."""
    waited: list[float] = []
    hidden = tmp_path / "hidden"

    def come_back(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            hidden.rename(config)

    board = make_board()
    board._contact.sleep = come_back
    board._contact.limits = type(board._contact.limits)(delays_s=(1.0, 3.0, 9.0))
    board.machine()
    config = Path(shlex.split(server.ssh())[-1])
    config.rename(hidden)
    # Without its configuration ssh does not know the board, and that is no broken link.
    config.write_text(hidden.read_text().replace(str(server.port), "1"), encoding="utf-8")
    with board.open(launch):
        pass
    assert waited == [1.0, 3.0]
