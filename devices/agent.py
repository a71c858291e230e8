"""The board's end of an SSH connection: ``python worker.pyz board session|receive``.

Standard library only. It starts a runner as its child, passes the lines of both sides on, watches
the child, and answers what is asked of the board itself. It never outlives the link: when the
host closes it, or says nothing for a while, the child's whole group is killed, and the agent ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import queue
import select
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from edgebench.devices.agent_lines import Lines, Output, RefusedError
from edgebench.devices.agent_worker import Child

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from edgebench.devices.agent_answers import Answers

AGENT_VERSION = 1
"""Of what is said between it and the host, which come from the same version of edgebench."""

LEAVING_S = 10.0
"""After this long the agent ends in the middle of whatever it is doing."""

FAILED = -32000
"""The JSON-RPC error code of a runner's protocol; its data names the reason."""


def nothing() -> None:
    """Put nothing away."""


class Agent:
    """Serves one connection.

    Args:
        requests: the descriptor of what the host says.
        output: what is said to the host.
        silence_s: for how long the host may be silent; it pings more often.
        worker: the file that this program is in, which is the runner's as well.
        tidy: called when a runner has ended, to remove what it left.
    """

    def __init__(
        self,
        requests: int,
        output: Output,
        silence_s: float,
        worker: str,
        tidy: Callable[[], None] = nothing,
    ) -> None:
        self._requests = requests
        self._output = output
        self._silence_s = silence_s
        self._worker = worker
        self._tidy = tidy
        self._child: Child | None = None
        self._told_to_leave = False
        self._answers: Answers | None = None
        self._todo: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()

    def serve(self) -> None:
        """Answer until the host goes away, and leave nothing running."""
        threading.Thread(target=self._read, daemon=True).start()
        while (request := self._todo.get()) is not None:
            try:
                self._output.say(self._answered(request))
                if request["method"] == "board.start" and self._child is not None:
                    self._child.begin()
            except OSError:  # the host is gone: the reading thread knows
                continue
        self._leave()

    def end_soon(self) -> None:
        """Leave as if the host had gone; for a handler of signals."""
        self._todo.put(None)
        self._leave_in(LEAVING_S)

    def _read(self) -> None:
        """Take what the host says; an answer that takes long keeps nobody from noticing its end."""
        lines = Lines()
        try:
            while True:
                if not select.select([self._requests], [], [], self._silence_s)[0]:
                    return  # also in the middle of an answer: the host pings while it waits
                data = os.read(self._requests, 1 << 16)
                if not data:
                    return
                for line in lines.feed(data):
                    self._take(line)
        finally:
            self._end_child()  # at once, even if the other thread is in the middle of an answer
            self._todo.put(None)
            # That answer may wait for a host that will never read it.
            self._leave_in(LEAVING_S)

    def _take(self, line: bytes) -> None:
        try:
            request = json.loads(line)
            method = str(request["method"])
        except (ValueError, TypeError, KeyError):
            sys.stderr.write(f"edgebench: not a request: {line[:200]!r}\n")
            return
        if method == "board.ping":
            self._output.say_if_free({"method": "board.pong"})
        elif method.startswith("board."):
            self._todo.put(request)
        elif self._child is None:
            self._output.say(_error(request.get("id"), "no runner has been started"))
        else:
            self._told_to_leave = self._told_to_leave or method == "shutdown"
            self._child.send(line)

    def _answered(self, request: Mapping[str, Any]) -> dict[str, Any]:
        number, method = request.get("id"), str(request["method"])
        asked = request.get("params") or {}
        try:
            if method == "board.start":
                return {"id": number, "result": self._start(asked)}
            if self._answers is None:
                # Late: a connection that only starts a runner reads no meters, and a slow board
                # is long in importing what does.
                from edgebench.devices.agent_answers import Answers  # noqa: PLC0415

                self._answers = Answers()
            return {"id": number, "result": self._answers.answer(method, asked)}
        except RefusedError as error:
            return _error(number, str(error))
        except Exception as error:  # noqa: BLE001 - the host must learn of any failure
            traceback.print_exc()  # into the log
            return _error(number, f"{type(error).__name__}: {error}")

    def _start(self, asked: Mapping[str, Any]) -> object:
        if self._child is not None:
            msg = "a runner has been started already"
            raise RefusedError(msg)
        python = os.path.expanduser(asked["python"] or sys.executable)  # noqa: PTH111
        command = [python, self._worker, str(asked["runner"])]
        try:
            self._child = Child(command, asked.get("environment") or {}, self._output)
        except OSError as error:
            msg = f"the interpreter {python} can't be started there: {error.strerror}"
            raise RefusedError(msg) from error
        return {"pid": self._child.pid}

    def _end_child(self) -> None:
        if self._child is not None:
            self._child.end(gently=self._told_to_leave)
            self._tidy()

    def _leave_in(self, seconds: float) -> None:
        timer = threading.Timer(seconds, os._exit, (1,))
        timer.daemon = True
        timer.start()

    def _leave(self) -> None:
        self._end_child()
        if self._answers is not None:
            with contextlib.suppress(Exception):
                self._answers.close()


def main(arguments: list[str], tidy: Callable[[], None] = nothing) -> None:
    """Entry point.

    Args:
        arguments: ``session SECONDS``, or ``receive SECONDS FOLDER``.
        tidy: called when a runner has ended, to remove what it left.
    """
    what, seconds, *others = arguments
    # What a runner's children print belongs into the log, and their input is not the host.
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    output = Output(answers)
    hello = {"version": AGENT_VERSION, "python": platform.python_version(), "pid": os.getpid()}
    output.say({"method": "board.hello", "params": hello})
    if what == "receive":
        from edgebench.devices.agent_receive import receive  # noqa: PLC0415 - one of two programs

        receive(requests, output, float(seconds), others[0])
        os._exit(0)
    agent = Agent(requests, output, float(seconds), sys.argv[0], tidy)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: agent.end_soon())
    agent.serve()
    os._exit(0)


def _error(number: object, message: str) -> dict[str, Any]:
    error = {"code": FAILED, "message": message, "data": {"reason": "unavailable"}}
    return {"id": number, "error": error}
