"""Boards that say what they should not: a program in ssh's place plays their part."""

from __future__ import annotations

import contextlib
import copy
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgebench.harness.errors import (
    BoardError,
    BoardUnfitError,
    RunnerError,
    RunnerProtocolError,
    RunnerUnavailableError,
)
from edgebench.harness.session import Launch
from edgebench.harness.ssh import parsed
from edgebench.harness.ssh.board import SshBoard
from edgebench.harness.ssh.command import Remote
from edgebench.harness.ssh.contact import Contact, Limits
from edgebench.harness.ssh.diagnosis import first_problem
from edgebench.harness.store.progress import silent
from edgebench.harness.store.store import StoredFile
from edgebench.runners.protocol import PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HELLO = {"method": "board.hello", "params": {"version": 1, "python": "3.11.2", "pid": 7}}
STARTED = {"id": 1, "result": {"pid": 8}}
RUNNER = {"method": "hello", "params": {"protocol": PROTOCOL_VERSION}}
SEND = {"method": "model.send", "params": {"offsets": [0]}}
READING = {"value": 1.5, "reason": None, "method": "x"}

GONE = object()

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)

LATER_FACTS: dict[str, tuple[Callable[[Mapping[str, object]], object], dict[str, Any]]] = {
    "first.problem": (
        lambda facts: first_problem(Remote("board"), facts),
        {"kind": "space", "text": "No space left"},
    ),
    "board.start": (parsed.pid, {"pid": 8}),
    "board.ended": (parsed.ended, {"code": -9}),
    "board.evict": (parsed.reason, {"reason": ""}),
    "board.temperature": (parsed.reading, READING),
    "board.idle": (lambda facts: parsed.readings(facts.get("watts")), {"watts": [READING]}),
    "board.meters": (
        lambda facts: (
            parsed.meter_facts(facts.get("found")),
            parsed.texts(facts.get("refusals")),
        ),
        {"found": [{"name": "rapl", "source": "observed"}], "refusals": ["none"]},
    ),
    "board.bandwidth": (
        parsed.bandwidth,
        {"threads": 1, "buffer_bytes": 1, "reason": None, "kernel": "m", "passes": [1.0]},
    ),
    "board.doctor": (lambda facts: parsed.checks(facts.get("checks")), {"checks": []}),
    "model.send": (lambda facts: parsed.offsets(facts, [5, 9]), {"offsets": [5, 0]}),
    "model.there": (parsed.model_path, {"path": "/x"}),
    "model.problem": (
        parsed.copy_problem,
        {"kind": "space", "message": "", "needed": 5, "free": 3},
    ),
}
"""What takes the facts of each kind of message, and facts that are right."""


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Where something stands in a message, the whole of it first."""
    found = [path]
    if isinstance(value, dict):
        found += [each for key in value for each in places(value[key], (*path, key))]
    elif isinstance(value, list):
        found += [each for key in range(len(value)) for each in places(value[key], (*path, key))]
    return found


def changed(value: object, path: tuple[str | int, ...], new: object) -> Any:
    """A copy with something else, or nothing, at one place."""
    if not path:
        return new
    made: Any = copy.deepcopy(value)
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    if new is GONE:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return made


@pytest.mark.parametrize("kind", LATER_FACTS)
@given(data=st.data())
def test_a_message_with_any_change_is_taken_or_refused(kind: str, data: st.DataObject) -> None:
    """Nothing but the errors that the harness knows comes of it, whatever stands where."""
    take, facts = LATER_FACTS[kind]
    body = {"method": kind, "params": facts}
    where = data.draw(st.sampled_from(places(body)[1:]))
    new = data.draw(st.just(GONE) | ANYTHING)
    told = ""
    try:
        take(parsed.message(changed(body, where, new))[1])
    except RunnerError as error:
        told = error.message
    assert told.isprintable()
    assert len(told) < 1000


def test_an_infinity_is_no_number() -> None:
    """JSON has none, but 1e999 is well-formed."""
    sent = json.loads('{"value": 1e999, "reason": null, "method": "x"}')
    with pytest.raises(RunnerProtocolError, match="reading is malformed"):
        parsed.reading(sent)


class Player:
    """Plays boards: all that one says comes at once.

    Args:
        folder: for what it needs.
        then: what it does then, for a shell: wait until it was told two things, if nothing else.
        start_s: how long it is waited for.
    """

    def __init__(
        self, folder: Path, then: str = "read first; read second", start_s: float = 20.0
    ) -> None:
        self._start_s = start_s
        self._folder = folder
        self._said = folder / "said"
        self._ssh = folder / "ssh"
        self._ssh.write_text(
            f"#!/bin/sh\ncase \"$*\" in *-V) exit;; esac\ncat '{self._said}'\n{then}\n"
        )
        self._ssh.chmod(0o755)

    def board(self, *said: object) -> SshBoard:
        """One that says these messages, or bytes."""
        lines = [
            each if isinstance(each, bytes) else json.dumps({"jsonrpc": "2.0", **each}).encode()  # type: ignore[dict-item]
            for each in said
        ]
        self._said.write_bytes(b"".join(line + b"\n" for line in lines))
        limits = Limits(start_s=self._start_s, delays_s=())
        return SshBoard(Remote("board", ssh=(str(self._ssh),)), contact=Contact(limits))

    def start(self, *said: object) -> int:
        """Start a runner there; its process."""
        board = self.board(*said)
        try:
            with board.open(Launch("fake", self._folder / "fake.log")) as session:
                return session.pid
        finally:
            board.close()

    def copy(self, *said: object) -> str:
        """Copy a model of five bytes there; its path."""
        path = self._folder / "model"
        path.write_bytes(b"12345")
        board = self.board(*said)
        try:
            return board.place(StoredFile(path, "ab" * 32, 5, "model", "x", None), silent)
        finally:
            board.close()


@pytest.fixture
def player(tmp_path: Path) -> Player:
    return Player(tmp_path)


def test_a_board_that_is_right_is_understood(player: Player) -> None:
    """So that what is wrong below is what was changed."""
    assert player.start(HELLO, STARTED, RUNNER) == 8
    there = {"method": "model.there", "params": {"path": "/there"}}
    assert player.copy(HELLO, SEND, there) == "/there"


@pytest.mark.parametrize(
    "said",
    [
        [{"method": "first.problem", "params": 3}],
        [{"method": "first.problem", "params": ["kind"]}],
        [{"method": "first.problem", "params": {"kind": 3}}],
        [{"method": ["board.hello"]}],
        [{**HELLO, "params": "x"}],
        [HELLO, {"id": 1, "result": {"pid": "x"}}],
        [HELLO, {"id": 1, "result": {}}],
        [HELLO, {"id": 1, "result": {"pid": -1}}],
        [HELLO, {"id": 1, "result": {"pid": True}}],
        [HELLO, {"id": 1, "result": []}],
        [HELLO, STARTED, {"method": "hello", "params": 3}],
        [HELLO, {"method": "board.ended", "params": "now"}],
        [HELLO, {"method": "board.ended", "params": {"code": "x"}}],
    ],
)
def test_a_start_that_is_malformed_is_the_boards_fault(player: Player, said: list[object]) -> None:
    """It is told as such, whatever the board says in whichever place."""
    with pytest.raises(RunnerProtocolError):
        player.start(*said)


@pytest.mark.parametrize(
    "offsets", [["x"], [], [0, 0], [-1], [6], [1.5], [True], None, 3, {"0": 0}, [1 << 70]]
)
def test_offsets_that_can_not_be_are_refused(player: Player, offsets: object) -> None:
    """A wrong count, less than nothing, more than the file, and what is no number."""
    with pytest.raises(RunnerProtocolError, match="list of what arrived"):
        player.copy(HELLO, {"method": "model.send", "params": {"offsets": offsets}})


@pytest.mark.parametrize(
    "said",
    [
        {"method": "model.send", "params": [0]},
        {"method": "model.there", "params": {"path": 3}},
        {"method": "model.problem", "params": {"kind": "space", "needed": "much"}},
        {"method": "model.else"},
        {"id": 1, "result": {}},
    ],
)
def test_a_copy_that_is_malformed_is_the_boards_fault(player: Player, said: object) -> None:
    """The same for what a board says while it takes a model."""
    with pytest.raises(RunnerProtocolError):
        player.copy(HELLO, said)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_whatever_changes_in_a_conversation_is_an_error_of_the_runner(data: st.DataObject) -> None:
    """A start and a copy with one change at any place of any message."""
    there = {"method": "model.there", "params": {"path": "/there"}}
    copying = data.draw(st.booleans())
    said: list[object] = [HELLO, SEND, there] if copying else [HELLO, STARTED, RUNNER]
    where = data.draw(st.sampled_from([each for each in places(said) if len(each) > 1]))
    played = changed(said, where, data.draw(st.just(GONE) | ANYTHING))
    with tempfile.TemporaryDirectory() as folder:
        player = Player(Path(folder), "exit")
        with contextlib.suppress(RunnerError):
            player.copy(*played) if copying else player.start(*played)


def test_a_refusal_names_the_board(player: Player) -> None:
    """What its agent can't do is told as the board's, and on one line."""
    data = {"reason": "unavailable"}
    refused = {"id": 1, "error": {"code": -32000, "message": "the python\n is gone.", "data": data}}
    with pytest.raises(RunnerUnavailableError, match=r"the python is gone \(on board\)"):
        player.start(HELLO, refused)
    board = player.board(HELLO, refused)
    with pytest.raises(BoardError, match=r"board can't answer .*: the python is gone"):
        board.machine()
    board.close()


def test_a_greeting_without_an_end_of_its_line_is_read_past(player: Player) -> None:
    """A start-up file that prints a word puts it before the first message."""
    hello = b"Welcome to the box! " + json.dumps({"jsonrpc": "2.0", **HELLO}).encode()
    assert player.start(hello, STARTED, RUNNER) == 8


def test_a_long_greeting_is_read_past(player: Player) -> None:
    """Its bytes are counted, and not its lines."""
    assert player.start(*[b"rules of the lab"] * 500, HELLO, STARTED, RUNNER) == 8


def test_a_board_that_talks_after_the_greeting_is_left(tmp_path: Path) -> None:
    """Then each line has to be a message; the board is named, and what can be done."""
    with pytest.raises(RunnerProtocolError, match=r"100 lines .*\(from board\)\nRun it again"):
        Player(tmp_path, "read first; yes chatter | head -n 101; read second").start(HELLO)


def test_a_board_that_prints_and_then_hangs_is_shown(tmp_path: Path) -> None:
    """What it printed says more than that it did not answer."""
    player = Player(tmp_path, "printf 'Which session? '; read answer", start_s=2.0)
    with pytest.raises(RunnerProtocolError, match="is not the protocol: Which session"):
        player.start()


def test_a_malformed_answer_names_its_board_and_a_remedy(player: Player) -> None:
    """Whichever of the things it can be asked."""
    for ask in (SshBoard.machine, SshBoard.doctor, lambda board: board.bandwidth(1)):
        board = player.board(HELLO, {"id": 1, "result": {"checks": 3}})
        with pytest.raises(RunnerProtocolError, match=r"malformed.*\(from board\)\nRun it again"):
            ask(board)
        board.close()


def test_a_board_that_never_ends_a_line_is_left(player: Player) -> None:
    """Long before the longest message is reached, and with its beginning to see."""
    with pytest.raises(RunnerProtocolError, match="is not the protocol: y y y"):
        player.start(b"y " * (1 << 18))


def test_a_board_that_wants_the_worker_for_ever_is_left(tmp_path: Path) -> None:
    """It is sent it once."""
    want = {"method": "first.want"}
    with pytest.raises(RunnerProtocolError, match="not edgebench's"):
        Player(tmp_path, "cat > /dev/null").start(want, want, want)


def test_what_is_not_edgebench_is_not_called_an_old_python(tmp_path: Path) -> None:
    """An account that may not log in prints a sentence and ends."""
    with pytest.raises(RunnerProtocolError, match="the protocol: This account is locked\n"):
        Player(tmp_path, "exit").start(b"This account is locked.")


def test_last_words_without_an_end_are_shown(tmp_path: Path) -> None:
    """The same without the end of its line."""
    with pytest.raises(RunnerProtocolError, match="the protocol: This account is locked\n"):
        Player(tmp_path, "printf 'This account is locked.'; exit").start()


def test_a_silent_end_is_told_with_its_status(tmp_path: Path) -> None:
    """Nothing was printed at all."""
    with pytest.raises(BoardUnfitError, match="did not start edgebench: it left with status 0"):
        Player(tmp_path, "exit").start(b"")
