"""The agent that runs on a board: its lines, its answers, and its end."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from edgebench.devices.agent_lines import Lines, Output
from edgebench.harness.session import worker_file

if TYPE_CHECKING:
    from collections.abc import Iterator

DEVICES = Path(__file__).parents[3] / "devices"


@given(st.lists(st.binary(max_size=8)))
def test_lines_come_whole_however_they_arrive(pieces: list[bytes]) -> None:
    """What goes in comes out, cut at line ends and nowhere else."""
    lines = Lines()
    found = [line for piece in pieces for line in lines.feed(piece)]
    whole = b"".join(pieces)
    assert found == [line + b"\n" for line in whole.split(b"\n")[:-1]]
    rest = whole.split(b"\n")[-1]
    assert lines.last() == (rest + b"\n" if rest else b"")


def test_a_line_without_an_end_is_cut() -> None:
    """A runner that prints without end does not fill the board's memory."""
    lines = Lines(max_bytes=10)
    assert list(lines.feed(b"x" * 11)) == [b"x" * 11 + b"\n"]
    assert lines.last() == b""
    # Its end is no line, whatever stands there.
    assert list(lines.feed(b"{}")) == []
    assert list(lines.feed(b'{"id": 1}\n{}\n')) == [b"{}\n"]


def test_a_sign_of_life_never_waits() -> None:
    """Into a pipe that nobody reads, it is left out."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    filled = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            filled += os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    output = Output(writing)
    output.say_if_free({"method": "board.pong"})
    # All that comes out is what went in before; then there is room again.
    assert os.read(reading, filled) == b"x" * filled
    output.say_if_free({"method": "board.pong"})
    assert json.loads(os.read(reading, 4096)) == {"jsonrpc": "2.0", "method": "board.pong"}
    os.close(writing)
    os.close(reading)


def test_everything_in_devices_is_imported_on_a_bare_board() -> None:
    """At the top of a module there is the standard library, and devices."""
    modules = sorted(DEVICES.glob("*.py"))
    assert {"agent.py", "power.py", "bandwidth.py"} <= {path.name for path in modules}
    for path in modules:
        for node in ast.parse(path.read_text("utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                own = name == "edgebench.devices" or name.startswith("edgebench.devices.")
                assert own or name.partition(".")[0] in sys.stdlib_module_names, f"{path}: {name}"


class Talk:
    """A conversation with an agent, without ssh between."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def say(self, method: str, number: int | None = None, **params: object) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        heard: dict[str, Any] = json.loads(self.process.stdout.readline())
        return heard

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        self.say(method, 1, **params)
        while (heard := self.hear()).get("id") != 1:
            pass
        return heard


@contextmanager
def agent(*arguments: str) -> Iterator[Talk]:
    """One that runs from the file that travels, in a Python that has nothing else."""
    command = [sys.executable, "-I", "-S", str(worker_file()), "board", *arguments]
    with subprocess.Popen(
        command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        talk = Talk(process)
        assert talk.hear()["method"] == "board.hello"
        yield talk
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def test_an_agent_answers_for_its_machine_and_its_meters() -> None:
    """From the file that travels, without any package."""
    power = {"meter": None, "command": None, "estimate": None, "tdp_w": None}
    with agent("session", "60") as talk:
        assert talk.ask("board.machine")["result"]["logical_cpus"] == os.cpu_count()
        meters = talk.ask("board.meters", power=power)["result"]
        assert meters["found"] or meters["refusals"]
        changed = talk.ask("board.meters", power={**power, "meter": "rapl"})
        assert "one choice of meters" in changed["error"]["message"]


def test_an_agent_shows_that_it_is_alive() -> None:
    """Each ping has its answer, also without a question."""
    with agent("session", "60") as talk:
        talk.say("board.ping")
        assert talk.hear()["method"] == "board.pong"


def test_an_agent_refuses_what_it_does_not_know() -> None:
    """An error is an answer, and the next question is answered."""
    with agent("session", "60") as talk:
        assert "no method" in talk.ask("board.dance")["error"]["message"]
        assert "being watched" in talk.ask("board.begin")["error"]["message"]
        assert "no runner" in talk.ask("generate")["error"]["message"]
        assert talk.process.stdin is not None
        talk.process.stdin.write(b"garbage\n[]\n{}\n")
        started = talk.ask("board.start", runner="fake", python="/no/python")
        assert "/no/python can't be started" in started["error"]["message"]
        assert "result" in talk.ask("board.temperature")


def test_an_agent_passes_a_runners_lines_on() -> None:
    """Hello, an answer, and how it ended."""
    with agent("session", "60") as talk:
        pid = talk.ask("board.start", runner="fake", python=sys.executable)["result"]["pid"]
        hello = talk.hear()
        assert (hello["method"], hello["params"]["pid"]) == ("hello", pid)
        assert "already" in talk.ask("board.start", runner="fake", python=None)["error"]["message"]
        assert talk.ask("probe")["result"]["engine"] == "fake"
        assert talk.ask("shutdown")["result"] == {}
        assert talk.hear() == {
            "jsonrpc": "2.0", "method": "board.ended", "params": {"code": 0},
        }  # fmt: skip


def test_an_agent_that_hears_nothing_leaves() -> None:
    """A host that is gone without a word; here it never says one."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", str(worker_file()), "board", "session", "0.2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as process:
        assert process.wait(60) == 0


def test_a_model_with_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    """What arrives is written below its own folder only."""
    for name, path in (("..", "../x"), ("m", "../../x"), ("m", "/etc/x"), ("m", "m//x")):
        asked = {
            "sha256": "ab" * 32,
            "name": name,
            "files": [{"path": path, "bytes": 0, "sha256": "cd" * 32}],
        }
        with agent("receive", "60", str(tmp_path / "models")) as talk:
            assert talk.process.stdin is not None
            talk.process.stdin.write(json.dumps(asked).encode() + b"\n")
            heard = talk.hear()
            assert heard["method"] == "model.problem"
            assert "no name of a file" in heard["params"]["message"]
    assert not (tmp_path / "models").exists()
