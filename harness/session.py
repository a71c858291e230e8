"""The host's end of a runner's process: start it, ask it, stop it, survive it."""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import io
import os
import selectors
import signal
import subprocess
import sys
import time
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from edgebench.harness.errors import (
    InvalidResultError,
    RunnerCrashedError,
    RunnerError,
    RunnerProtocolError,
    RunnerRefusedError,
    RunnerTimeoutError,
    RunnerUnavailableError,
)
from edgebench.harness.temporary import TemporaryFolder
from edgebench.runners import protocol
from edgebench.runners.scratch import remove_abandoned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

PROBE_TIMEOUT_S = 120.0
"""Of the first answer, for which a framework is imported."""
START_TIMEOUT_S = 60.0
"""A cold start of Python and a framework's import from a slow disk."""

STOP_TIMEOUT_S = 5.0
LOG_TAIL_BYTES = 4096
MAX_NOISE_LINES = 100


@dataclass(frozen=True, slots=True)
class Launch:
    """How a runner's process is started.

    Attributes:
        runner: the runner's name.
        log: file that takes the framework's standard output and error.
        python: another interpreter, which needs no edgebench of its own, or None for this one.
        environment: additions to the environment.
    """

    runner: str
    log: Path
    python: str | None = None
    environment: Mapping[str, str] | None = None


class Session:
    """One runner's process. Use it as a context manager: it is always stopped at the end."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._decoder = protocol.Decoder()
        self._inbox: list[dict[str, Any]] = []
        self._number = 0
        self._noise = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._log: IO[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._running().pid

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None or isinstance(error, RunnerRefusedError | InvalidResultError):
            self.stop()  # so that it can put its things away
        else:
            self._end()  # it may be in the middle of something: don't wait for it

    def call(
        self, method: str, params: Mapping[str, object] | None = None, *, timeout_s: float
    ) -> dict[str, Any]:
        """Ask, and wait for the answer.

        Raises:
            RunnerRefusedError: the runner says that it can't.
            RunnerCrashedError: the process ended.
            RunnerTimeoutError: no answer came in time; the process has been killed.
            RunnerProtocolError: what came is not an answer.
        """
        self._number += 1
        request = protocol.encode(
            {"id": self._number, "method": method, "params": dict(params or {})}
        )
        deadline = time.monotonic() + timeout_s
        self._send(request, method)
        while True:
            body = self._receive(deadline, method, timeout_s)
            if body.get("id") == self._number:
                return self._result(body, method)
            if "method" not in body:
                self._kill()
                msg = f"the runner answered request {body.get('id')!r}, which is not open"
                raise RunnerProtocolError(msg)

    def stop(self) -> None:
        """Ask the process to leave, then make it: its whole group, and nothing else."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            with contextlib.suppress(RunnerError):
                self.call("shutdown", timeout_s=STOP_TIMEOUT_S)
            with contextlib.suppress(OSError):
                self._pipe_in().close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_TIMEOUT_S)
        self._end()

    def log_tail(self, begins: int = 0) -> str:
        """The last lines that the framework printed, of what stands behind so many bytes."""
        try:
            with self._launch.log.open("rb") as file:
                file.seek(max(begins, file.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
                text = file.read().decode("utf-8", "replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-20:])

    def _start(self) -> None:
        launch = self._launch
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        self._log = launch.log.open("ab")
        try:
            self._spawn([*_interpreter(launch.python), launch.runner], launch.environment or {})
        except OSError as error:
            msg = f"the interpreter {launch.python or sys.executable} can't be started: {error}"
            raise RunnerUnavailableError(
                msg, remedy="Give the path of a Python 3.11 or newer as `python`."
            ) from error
        self._meet()

    def _spawn(self, command: list[str], environment: Mapping[str, str]) -> None:
        """Start the process; its standard error is the log.

        Raises:
            OSError: it can't be started.
        """
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **environment},
            bufsize=0,
            # A group of its own: it can be killed with its children, and Ctrl-C is ours.
            start_new_session=True,
        )

    def _meet(self) -> None:
        """Wait for the runner to introduce itself."""
        body = self._receive(time.monotonic() + START_TIMEOUT_S, "start", START_TIMEOUT_S)
        if body.get("method") != "hello":
            self._result(body, "start")  # raises what the worker said
            msg = "the runner's process did not introduce itself"
            raise RunnerProtocolError(msg)
        facts = body.get("params")
        spoken = facts.get("protocol") if isinstance(facts, dict) else None
        if spoken != protocol.PROTOCOL_VERSION:
            msg = f"the runner speaks protocol {spoken}, this is {protocol.PROTOCOL_VERSION}"
            raise RunnerProtocolError(msg, remedy="Install the same edgebench on both sides.")

    def _send(self, data: bytes, method: str) -> None:
        try:
            view = memoryview(data)
            while view:
                view = view[self._pipe_in().write(view) or 0 :]
        except OSError:
            raise self._crash(method) from None

    def _receive(self, deadline: float, doing: str, limit_s: float) -> dict[str, Any]:
        output = self._running().stdout
        assert output is not None
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while not self._inbox:
                left = deadline - time.monotonic()
                if left <= 0 or not self._wait(selector, left, doing):
                    raise self._too_late(doing, limit_s)
                data = os.read(output.fileno(), 1 << 20)
                if not data:
                    raise self._crash(doing)
                self._inbox.extend(self._messages(data))
        return self._inbox.pop(0)

    def _wait(self, selector: selectors.BaseSelector, left_s: float, doing: str) -> bool:  # noqa: ARG002
        """Wait for the process to say something; False where it did not in so many seconds."""
        return bool(selector.select(left_s))

    def _too_late(self, doing: str, limit_s: float) -> RunnerError:
        """End the process, and say that it did not answer in time."""
        self._kill()
        msg = f"the runner {self._launch.runner} did not answer {doing} within {limit_s:g} s"
        return RunnerTimeoutError(msg, remedy="Raise measure.timeout_s if the device is only slow.")

    def _messages(self, data: bytes) -> Iterator[dict[str, Any]]:
        for item in self._decoder.feed(data):
            if isinstance(item, protocol.Message):
                yield item.body
                continue
            self._noise += 1
            assert self._log is not None
            self._log.write(f"edgebench: not the protocol ({item.reason}): {item.text}\n".encode())
            self._log.flush()
            if self._noise > MAX_NOISE_LINES:
                self._kill()
                raise self._too_noisy()

    def _too_noisy(self) -> RunnerError:
        msg = f"the runner wrote more than {MAX_NOISE_LINES} lines that are not the protocol"
        return RunnerProtocolError(msg)

    def _result(self, body: dict[str, Any], method: str) -> dict[str, Any]:
        error = body.get("error")
        if isinstance(error, dict):
            data = error.get("data")
            reason = str(data.get("reason")) if isinstance(data, dict) else "internal"
            message = str(error.get("message"))
            if reason == "unavailable":
                raise RunnerUnavailableError(message)
            raise RunnerRefusedError(message, reason=reason)
        result = body.get("result")
        if not isinstance(result, dict):
            msg = f"the runner's answer to {method} is no object"
            raise RunnerProtocolError(msg)
        return result

    def _crash(self, doing: str) -> RunnerError:
        """Say how the process ended."""
        process = self._running()
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:  # it closed its streams and lives on
            self._kill()
            code = process.wait()
        return self._crashed(code, doing)

    def _crashed(self, code: int, doing: str) -> RunnerCrashedError:
        """Say that the runner ended with a status, or by the signal of a negative one."""
        name = None
        if code < 0:
            with contextlib.suppress(ValueError):
                name = signal.Signals(-code).name
        how = (
            f"was ended by {name or f'signal {-code}'}" if code < 0 else f"left with status {code}"
        )
        return RunnerCrashedError(
            f"the runner {self._launch.runner} {how} during {doing}",
            signal=name,
            exit_code=code if code >= 0 else None,
            log_tail=self.log_tail(),
            remedy=_REMEDIES.get(name or ""),
        )

    def _kill(self) -> None:
        process = self._running()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)

    def _end(self) -> None:
        process = self._process
        if process is not None:
            self._kill()  # the group: also children that outlived their parent
            process.wait()
            remove_abandoned()  # a killed one leaves as much as the model is large
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
            self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the session is not open"
        return self._process

    def _pipe_in(self) -> IO[bytes]:
        pipe = self._running().stdin
        assert pipe is not None
        return pipe


_REMEDIES = {
    "SIGKILL": "If nobody killed it, the kernel may have, for want of memory: see dmesg.",
    "SIGILL": "The framework was compiled for another CPU: reinstall it with --no-cache-dir.",
}


WORKER_MAIN = """\
import sys

if sys.argv[1:2] == ["board"]:
    from edgebench.devices.agent import main
    from edgebench.runners.scratch import remove_abandoned

    main(sys.argv[2:], remove_abandoned)
else:
    from edgebench.runners.worker import main

    main()
"""
"""Of the file that travels: on a board the agent starts it a second time, as the runner."""

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip file can name."""


def _interpreter(python: str | None) -> list[str]:
    if python is None:
        # -P: a folder that happens to be named edgebench where the user stands is not meant.
        return [sys.executable, "-P", "-m", "edgebench.runners.worker"]
    # Another interpreter has no edgebench: it gets the runners as one file.
    return [str(Path(python).expanduser()), str(worker_file())]


@lru_cache(maxsize=1)
def worker_file() -> Path:
    """The worker and all that it may import as one zip file that any Python 3.11 or newer runs.

    Its name holds the hash of what is in it: a board that has this file has this worker.
    """
    folder = TemporaryFolder("edgebench-worker-")
    atexit.register(folder.cleanup)
    content = _zipped(
        {"__main__.py": WORKER_MAIN.encode(), "edgebench/__init__.py": b"", **_parts()}
    )
    target = folder.path / f"worker-{hashlib.sha256(content).hexdigest()[:16]}.pyz"
    target.write_bytes(content)
    return target


def _parts() -> dict[str, bytes]:
    """The modules that travel, by their place in the file.

    Models are read there where a framework's artifact is made there; devices are what an agent
    reads on a board.
    """
    return {
        f"edgebench/{part}/{file.name}": file.read_bytes()
        for part in ("runners", "models", "devices")
        for file in resources.files(f"edgebench.{part}").iterdir()
        if file.name.endswith(".py")
    }


def _zipped(files: Mapping[str, bytes]) -> bytes:
    """The same files give the same bytes, whenever they were written."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), files[name], zipfile.ZIP_DEFLATED)
    return made.getvalue()
