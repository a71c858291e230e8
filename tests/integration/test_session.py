"""Runner processes that misbehave in every way that frameworks do, and a host that survives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from typing import TYPE_CHECKING

import psutil
import pytest

from edgebench.harness import wire
from edgebench.harness.errors import (
    InvalidResultError,
    RunnerCrashedError,
    RunnerProtocolError,
    RunnerRefusedError,
    RunnerTimeoutError,
    RunnerUnavailableError,
)
from edgebench.harness.session import Launch, Session, worker_file
from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from edgebench.runners.base import Generation

REQUEST = GenerateRequest(prompt_ids=[1, 10, 20], max_tokens=6)
LIMIT_S = 20.0


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    path.write_bytes(b"weights")
    return path


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch("fake", tmp_path / "logs" / "fake.log")


@pytest.fixture
def load(model: Path) -> Callable[..., None]:
    def loaded(session: Session, **options: object) -> None:
        request = LoadRequest(str(model), 64, options)  # type: ignore[arg-type]
        session.call("load", to_wire(request), timeout_s=LIMIT_S)

    return loaded


def wait_until_gone(process: psutil.Process) -> None:
    """Killing is asked for, and happens a moment later."""
    deadline = time.monotonic() + 20
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"{process} outlived what started it"


def generate(session: Session, timeout_s: float = LIMIT_S) -> Generation:
    answer = session.call("generate", to_wire(REQUEST), timeout_s=timeout_s)
    return wire.generation(answer, REQUEST, 259)


def test_the_same_request_gives_the_same_tokens(launch: Launch, load: Callable[..., None]) -> None:
    """Two generations in one process, and one in another, give equal ids."""
    with Session(launch) as session:
        load(session)
        first, second = generate(session), generate(session)
    with Session(launch) as session:
        load(session)
        third = generate(session)
    assert first.token_ids == second.token_ids == third.token_ids
    assert len(first.token_ids) == 6


def test_what_a_framework_prints_goes_to_its_log(launch: Launch, load: Callable[..., None]) -> None:
    """Noise on standard output, half lines included, does not disturb the protocol."""
    with Session(launch) as session:
        load(session, garbage=True)
        assert len(generate(session).token_ids) == 6
    assert b"half a line" in launch.log.read_bytes()


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGKILL", "SIGILL", "SIGFPE"])
def test_a_crash_is_named_by_its_signal(
    launch: Launch, load: Callable[..., None], name: str
) -> None:
    """A process that dies at the third token gives the signal and the end of its log."""
    with Session(launch) as session:
        load(session, fail="crash", fail_at_token=3, signal=name)
        with pytest.raises(RunnerCrashedError) as caught:
            generate(session)
    assert caught.value.signal == name
    assert "during generate" in caught.value.message
    assert f"about to die of {name}" in caught.value.log_tail


def test_leaving_without_an_answer_is_a_crash_with_its_status(
    launch: Launch, load: Callable[..., None]
) -> None:
    """A framework that calls exit(7) is reported with that status."""
    with Session(launch) as session:
        load(session, fail="exit")
        with pytest.raises(RunnerCrashedError) as caught:
            generate(session)
    assert caught.value.exit_code == 7
    assert caught.value.signal is None


def test_a_hanging_framework_is_stopped_at_its_deadline(
    launch: Launch, load: Callable[..., None]
) -> None:
    """A hang ends in a time-out, and the process is gone."""
    with Session(launch) as session:
        load(session, fail="hang", fail_at_token=2)
        process = psutil.Process(session.pid)
        with pytest.raises(RunnerTimeoutError, match=r"did not answer generate within 0.3 s"):
            generate(session, timeout_s=0.3)
    assert not process.is_running()


def test_garbage_on_the_protocol_stream_is_survived(
    launch: Launch, load: Callable[..., None]
) -> None:
    """Lines that are no messages land in the log; the answer behind them is found."""
    with Session(launch) as session:
        load(session, fail="stream")
        assert len(generate(session).token_ids) == 6
    assert "not the protocol" in launch.log.read_text("utf-8", "replace")


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        ("count", "5 tokens were made of 6 asked for"),
        ("end_of_text", "1 tokens were made of 6 asked for (finish reason: end_of_text)"),
        ("prompt_count", "processed 4 prompt tokens, 3 were asked for"),
        ("clock", "the time stamps go back"),
        ("ids", "a token id outside of the vocabulary of 259"),
    ],
)
def test_an_answer_that_can_not_be_true_is_refused(
    launch: Launch, load: Callable[..., None], fail: str, words: str
) -> None:
    """Wrong counts, foreign ids and clocks that go back never become a rate."""
    with Session(launch) as session:
        load(session, fail=fail)
        with pytest.raises(InvalidResultError) as caught:
            generate(session)
    assert words in caught.value.message


def test_numbers_that_are_none_are_refused(launch: Launch, load: Callable[..., None]) -> None:
    """NaN among figures or scores is an error of the framework, not a value."""
    with Session(launch) as session:
        load(session, fail="nan")
        with pytest.raises(RunnerRefusedError, match="not JSON compliant"):
            generate(session)
        with pytest.raises(RunnerRefusedError, match="token 2 at position 1 is nan"):
            session.call("score", to_wire(ScoreRequest([1, 2, 3])), timeout_s=LIMIT_S)


@pytest.mark.parametrize(
    ("fail", "reason"), [("refuse", "framework"), ("out_of_memory", "out_of_memory")]
)
def test_a_refusal_leaves_the_process_usable(
    launch: Launch, load: Callable[..., None], fail: str, reason: str
) -> None:
    """After a refused generation the same process answers the next request."""
    with Session(launch) as session:
        load(session, fail=fail)
        with pytest.raises(RunnerRefusedError) as caught:
            generate(session)
        assert caught.value.reason == reason
        load(session)
        assert len(generate(session).token_ids) == 6


def test_a_missing_framework_is_unavailable(launch: Launch, load: Callable[..., None]) -> None:
    """A framework that is not installed has its own kind of failure."""
    with Session(launch) as session, pytest.raises(RunnerUnavailableError, match="missing"):
        load(session, fail="missing")


def test_an_unknown_runner_says_which_there_are(tmp_path: Path) -> None:
    """A wrong name lists the right ones."""
    with (
        pytest.raises(RunnerUnavailableError, match=r"llama\.cpp, mnn, mediapipe, mlc, fake"),
        Session(Launch("lama.cpp", tmp_path / "log")),
    ):
        pass


def test_an_unknown_method_is_refused(launch: Launch) -> None:
    """A method that does not exist is an answer, not a crash."""
    with Session(launch) as session, pytest.raises(RunnerRefusedError, match="no method 'dance'"):
        session.call("dance", timeout_s=LIMIT_S)


def test_an_interpreter_that_is_none_is_named(tmp_path: Path) -> None:
    """A wrong path of Python gives that path and what to do."""
    launch = Launch("fake", tmp_path / "log", python=str(tmp_path / "no-python"))
    with pytest.raises(RunnerUnavailableError, match="no-python"), Session(launch):
        pass


def test_a_program_that_is_no_runner_is_no_protocol(tmp_path: Path) -> None:
    """An interpreter that floods its output is stopped and named."""
    flood = tmp_path / "flood"
    flood.write_text("#!/bin/sh\nexec yes\n", encoding="utf-8")
    flood.chmod(0o755)
    launch = Launch("fake", tmp_path / "log", python=str(flood))
    with pytest.raises(RunnerProtocolError, match="more than 100 lines"), Session(launch):
        pass


def test_another_interpreter_needs_no_edgebench(tmp_path: Path, model: Path) -> None:
    """The runners travel as one file: a Python without site-packages runs them."""
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n', encoding="utf-8")
    bare.chmod(0o755)
    with Session(Launch("fake", tmp_path / "log", python=str(bare))) as session:
        session.call("load", to_wire(LoadRequest(str(model), 64)), timeout_s=LIMIT_S)
        assert len(generate(session).token_ids) == 6
    assert worker_file().suffix == ".pyz"
    # Also what reads models, for frameworks whose artifacts are made there.
    names = zipfile.ZipFile(worker_file()).namelist()
    for module in ("runners/worker.py", "models/__init__.py", "models/canonical.py"):
        assert f"edgebench/{module}" in names


def test_children_of_a_runner_are_stopped_with_it(tmp_path: Path) -> None:
    """The whole process group goes, also a child that outlives its parent."""
    wrapper = tmp_path / "python"
    wrapper.write_text(
        f'#!/bin/sh\nsleep 600 &\necho $! > {tmp_path}/child\nexec {sys.executable} "$@"\n',
        encoding="utf-8",
    )
    wrapper.chmod(0o755)
    with Session(Launch("fake", tmp_path / "log", python=str(wrapper))):
        child = psutil.Process(int((tmp_path / "child").read_text()))
    wait_until_gone(child)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of a parent's end")
def test_no_runner_outlives_a_killed_harness(tmp_path: Path, model: Path) -> None:
    """kill -9 of the harness ends a runner that is deep inside of a generation."""
    script = f"""
import sys
from pathlib import Path
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import GenerateRequest, LoadRequest, to_wire
with Session(Launch("fake", Path({str(tmp_path / "log")!r}))) as session:
    load = LoadRequest({str(model)!r}, 64, {{"fail": "hang"}})
    session.call("load", to_wire(load), timeout_s=20)
    print(session.pid, flush=True)
    session.call("generate", to_wire(GenerateRequest([1], 4)), timeout_s=600)
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as harness:
        assert harness.stdout is not None
        runner = psutil.Process(int(harness.stdout.readline()))
        os.kill(harness.pid, signal.SIGKILL)
        harness.wait()
    wait_until_gone(runner)
