"""One SSH connection to a board: the agent there, and on demand a runner as its child."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

from edgebench.harness.errors import (
    BoardLinkError,
    RunnerError,
    RunnerProtocolError,
    RunnerRefusedError,
    RunnerUnavailableError,
)
from edgebench.harness.session import (
    MAX_NOISE_LINES,
    STOP_TIMEOUT_S,
    Launch,
    Session,
    worker_file,
)
from edgebench.harness.ssh import parsed
from edgebench.harness.ssh.diagnosis import (
    CONNECTING,
    first_problem,
    link_error,
    naming,
    no_ssh,
    not_the_protocol,
    too_slow,
)
from edgebench.harness.ssh.words import one_line
from edgebench.harness.temporary import TemporaryFolder
from edgebench.runners import protocol

if TYPE_CHECKING:
    import selectors
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from edgebench.harness.ssh.command import Remote
    from edgebench.harness.ssh.contact import Contact

LOOK_EVERY_S = 1.0
MAX_SSH_WORDS = 1 << 16

MESSAGE_BEGINS = b'{"jsonrpc"'
"""So does whatever the board's side says; in the middle of a message it would be `\\"jsonrpc`."""

GREETING_BYTES = 1 << 18
"""A greeting is short; a board that says more before it is something else, or never ends a line."""


class AgentSession(Session):
    """A connection to the agent of a board, which is asked as a runner is.

    Both sides show that they are alive, so that a link that broke without a word is noticed
    whatever ssh is set to.

    Args:
        remote: the board.
        contact: what is known of its connections.
        log: the file that takes what the board's side prints.
        agent: the agent's arguments; a session of its own where there are none.
    """

    def __init__(
        self, remote: Remote, contact: Contact, log: Path, agent: Sequence[str] = ()
    ) -> None:
        super().__init__(Launch("board", log))
        self._remote = remote
        self._contact = contact
        self._agent = agent or ("session", str(contact.limits.silence_s))
        self._silence_s = contact.limits.silence_s
        self._writing = threading.Lock()
        self._done = threading.Event()
        self._heard = 0.0
        self._early: bytearray | None = None  # what came before the greeting
        self._unended = b""  # the last line of it
        self._understood = False
        self._meets_runner = False
        self._log_begins = 0
        self._scratch: TemporaryFolder | None = None

    # Starting ----------------------------------------------------------------------------------

    def _start(self) -> None:
        with naming(self._remote):
            self._reach()
            self._start_runner()

    def _reach(self) -> None:
        try:
            for last in self._contact.tries():
                try:
                    self._connect()
                except BoardLinkError:
                    if last:
                        raise
                    self._end()
                else:
                    self._contact.reached()
                    break
        except BoardLinkError:
            self._contact.gave_up()
            raise

    def _connect(self) -> None:
        """Connect, bring the worker there, start the agent.

        Raises:
            BoardError: that is not possible.
        """
        launch, limits = self._launch, self._contact.limits
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        self._log = launch.log.open("ab")
        self._log_begins = launch.log.stat().st_size
        self._decoder, self._inbox, self._noise = protocol.Decoder(), [], 0
        self._early, self._unended, self._understood = bytearray(), b"", False
        self._scratch = TemporaryFolder("edgebench-ssh-")
        worker = worker_file()
        command = self._remote.command(self._words_of_ssh(), worker, self._agent)
        try:
            self._spawn(command, {})
        except OSError as error:
            raise no_ssh(self._remote, error) from error
        deadline = time.monotonic() + limits.start_s
        self._greeted(deadline, worker)
        self._heard = time.monotonic()

    def _greeted(self, deadline: float, worker: Path) -> None:
        """Wait for the agent, and send the worker where it is wanted."""
        limit_s = self._contact.limits.start_s
        sent = False
        while True:
            body = self._receive(deadline, CONNECTING, limit_s)
            self._understood = True
            method, facts = parsed.message(body)
            if method == "first.want" and not sent:
                self._send(worker.read_bytes(), "sending the worker")
                sent = True
            elif method == "first.problem":
                raise first_problem(self._remote, facts)
            elif method == "board.hello":
                self._early = None
                self._done = threading.Event()
                pinger = threading.Thread(target=self._ping, args=(self._done,), daemon=True)
                pinger.start()
                return
            else:
                msg = f"{self._remote.address} answered with something that is not edgebench's"
                raise RunnerProtocolError(msg)

    def _messages(self, data: bytes) -> Iterator[dict[str, Any]]:
        if self._early is not None:
            self._early += data
            if len(self._early) > GREETING_BYTES:
                self._kill()
                raise not_the_protocol(self._remote, self._shown())
            *lines, self._unended = (self._unended + data).split(b"\n")
            for line in lines:
                yield from super()._messages(_apart(line))
                self._noise = 0  # a greeting is counted in bytes
        else:
            data, self._unended = self._unended + data, b""
            yield from super()._messages(data)

    def _shown(self) -> str:
        """The beginning of what came before the greeting."""
        return bytes(self._early or b"")[:200].decode("utf-8", "replace")

    def _too_noisy(self) -> RunnerError:
        msg = f"more than {MAX_NOISE_LINES} lines came in place of messages"
        return RunnerProtocolError(msg)

    def _too_late(self, doing: str, limit_s: float) -> RunnerError:
        if self._meets_runner:
            return super()._too_late(doing, limit_s)
        self._kill()
        if self._early and not self._understood:
            return not_the_protocol(self._remote, self._shown())
        return too_slow(self._remote, doing, limit_s)

    def _start_runner(self) -> None:
        """Nothing: the board itself is asked."""

    # Being alive -------------------------------------------------------------------------------

    def _ping(self, done: threading.Event) -> None:
        while not done.wait(self._contact.limits.ping_s):
            try:
                self._send(protocol.encode({"method": "board.ping"}), "pinging")
            except (RunnerError, AssertionError):  # whoever asks next is told
                return

    def _send(self, data: bytes, method: str) -> None:
        try:
            with self._writing:
                super()._send(data, method)
        except ValueError:  # closed on this side, when the runner had ended
            msg = f"the connection to {self._remote.address} has been closed"
            raise BoardLinkError(msg) from None

    def _wait(self, selector: selectors.BaseSelector, left_s: float, doing: str) -> bool:
        end = time.monotonic() + left_s
        silence_s = self._silence_s
        self._heard = max(self._heard, time.monotonic())
        while (now := time.monotonic()) < end:
            if selector.select(min(end - now, LOOK_EVERY_S, silence_s / 4)):
                self._heard = time.monotonic()
                return True
            # Before the greeting nobody pings, and there is a limit to the whole of it.
            if self._early is None and time.monotonic() - self._heard > silence_s:
                self._kill()
                said = f"nothing was heard of it for {silence_s:g} s"
                raise link_error(self._remote, doing, None, said, "")
        return False

    def _receive(self, deadline: float, doing: str, limit_s: float) -> dict[str, Any]:
        while True:
            with naming(self._remote):
                body = super()._receive(deadline, doing, limit_s)
                if body.get("method") == "board.pong":
                    continue
                if body.get("method") == "board.ended":
                    raise self._ended(parsed.ended(parsed.message(body)[1]), doing)
                return body

    # Ending ------------------------------------------------------------------------------------

    def _ended(self, code: int, doing: str) -> RunnerError:
        """The runner ended; its last words are in the log when ssh has ended."""
        with contextlib.suppress(OSError):
            self._pipe_in().close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._running().wait(STOP_TIMEOUT_S)
        return self._crashed(code, doing)

    def _crash(self, doing: str) -> RunnerError:
        """The connection ended, and the runner's end was not told: it was the link."""
        if self._early is not None:  # what it said last, into the log
            list(super()._messages(self._unended + b"\n"))
        process = self._running()
        code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(STOP_TIMEOUT_S)
        if code is None:
            self._kill()
        return link_error(
            self._remote, doing, code, self._said_by_ssh(), self.log_tail(self._log_begins)
        )

    def _end(self) -> None:
        self._done.set()
        super()._end()
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def _words_of_ssh(self) -> Path:
        assert self._scratch is not None
        return self._scratch.path / "ssh.log"

    def _said_by_ssh(self) -> str:
        try:
            with self._words_of_ssh().open("rb") as file:
                return file.read(MAX_SSH_WORDS).decode("utf-8", "replace")
        except OSError:
            return ""


class SshSession(AgentSession):
    """A runner's process on a board.

    Args:
        remote: the board.
        contact: what is known of its connections.
        launch: which runner; its interpreter is one there.
    """

    def __init__(self, remote: Remote, contact: Contact, launch: Launch) -> None:
        super().__init__(remote, contact, launch.log)
        self._launch = launch
        self._pid_there: int | None = None

    @property
    def pid(self) -> int:
        """The runner's id there."""
        assert self._pid_there is not None, "the session is not open"
        return self._pid_there

    def _start_runner(self) -> None:
        launch = self._launch
        asked = {
            "runner": launch.runner,
            "python": launch.python,
            "environment": dict(launch.environment or {}),
        }
        limit_s = self._contact.limits.start_s
        try:
            answer = self.call("board.start", asked, timeout_s=limit_s)
        except (RunnerRefusedError, RunnerUnavailableError) as error:
            msg = f"{one_line(error.message)} (on {self._remote.address})"
            raise RunnerUnavailableError(
                msg,
                remedy="Give the path that a Python 3.11 or newer has there as `python`.",
            ) from error
        self._pid_there = parsed.pid(answer)
        self._meets_runner = True
        self._meet()


def _apart(line: bytes) -> bytes:
    """A line of the greeting, its message apart from what a start-up file put before it."""
    text, begins, rest = line.partition(MESSAGE_BEGINS)
    return (text + b"\n" if text.strip() else b"") + begins + rest + b"\n"
