"""The runner's process: ``python -m edgebench.runners.worker NAME``.

Standard library only. The protocol's two streams are put aside before anything else happens:
what was standard output becomes the log, so a framework may print what it likes.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, cast

from edgebench.runners import protocol
from edgebench.runners.base import (
    Converter,
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    Preparer,
    Runner,
    RunnerFailure,
    Scorer,
    ScoreRequest,
    TaskRequest,
    TaskRunner,
    Tokenizer,
    to_wire,
)
from edgebench.runners.checked_scores import not_finite
from edgebench.runners.registry import runner_class

if TYPE_CHECKING:
    from collections.abc import Callable

METHOD_NOT_FOUND = -32601
RUNNER_FAILURE = -32000
"""JSON-RPC error codes; the last one is ours, its data names the reason."""

TOKENIZING = "give access to its tokenizer"
TOKENIZING_PLAIN = "take the texts of special tokens for text as any other"
SCORING = "score given tokens"
CONVERTING = "make artifacts from a source model"
TASKS = "run whole tasks"


def take_streams() -> tuple[int, int]:
    """Keep standard input and output for the protocol; give the framework others.

    Returns:
        The descriptors to read requests from and to write answers to; children don't inherit them.
    """
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return requests, answers


class Worker:
    """Answers requests with one runner, one at a time.

    Args:
        runner: the runner that does the work.
    """

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._methods: dict[str, Callable[[dict[str, Any]], object]] = {
            "probe": self._probe,
            "prepare": self._prepare,
            "load": self._load,
            "generate": self._generate,
            "tokenize": self._tokenize,
            "detokenize": self._detokenize,
            "score": self._score,
            "convert": self._convert,
            "describe_task": self._describe_task,
            "import_task": self._import_task,
            "load_task": self._load_task,
            "task": self._task,
            "unload": self._unload,
            "shutdown": self._unload,
        }

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to one request; never raises."""
        call = self._methods.get(str(request.get("method")))
        number = request.get("id")
        if call is None:
            known = ", ".join(self._methods)
            text = f"no method {request.get('method')!r}; there are {known}"
            return _error(number, METHOD_NOT_FOUND, text, "unsupported")
        try:
            return {"id": number, "result": call(request.get("params") or {})}
        except RunnerFailure as failure:
            return _error(number, RUNNER_FAILURE, str(failure), failure.reason)
        except MemoryError:
            return _error(number, RUNNER_FAILURE, "out of memory", "out_of_memory")
        except Exception as error:  # noqa: BLE001 - the host must learn of any failure
            traceback.print_exc()  # into the log
            text = f"{type(error).__name__}: {error}"
            return _error(number, RUNNER_FAILURE, text, "internal")

    def _probe(self, params: dict[str, Any]) -> object:  # noqa: ARG002
        """The framework, and what the harness must know to find an artifact made before."""
        options = self._runner.OPTIONS
        return {
            **to_wire(self._runner.describe()),
            "convert_options": [name for name in options if options[name].stage == "convert"],
            "converter_version": str(getattr(self._runner, "CONVERTER_VERSION", "")),
            "artifact_suffix": str(getattr(self._runner, "ARTIFACT_SUFFIX", "")),
        }

    def _load(self, params: dict[str, Any]) -> object:
        request = LoadRequest(**params)
        self._runner.describe()  # imports the framework, which is no part of loading
        started_ns = time.perf_counter_ns()
        model = self._runner.load(request)
        ready_ns = time.perf_counter_ns()
        return {"started_ns": started_ns, "ready_ns": ready_ns, "model": to_wire(model)}

    def _prepare(self, params: dict[str, Any]) -> object:
        self._runner.describe()
        if not isinstance(self._runner, Preparer):
            return {"reads": []}
        return {"reads": list(self._runner.prepare(LoadRequest(**params)))}

    def _generate(self, params: dict[str, Any]) -> object:
        return to_wire(self._runner.generate(GenerateRequest(**params)))

    def _tokenize(self, params: dict[str, Any]) -> object:
        tokenize = getattr(self._runner, "tokenize", None)
        if tokenize is None:
            raise _lacks(TOKENIZING)
        if params.get("special", True):
            return {"ids": tokenize(params["text"])}
        if "special" not in inspect.signature(tokenize).parameters:
            raise _lacks(TOKENIZING_PLAIN)
        return {"ids": tokenize(params["text"], special=False)}

    def _detokenize(self, params: dict[str, Any]) -> object:
        if not isinstance(self._runner, Tokenizer):
            raise _lacks(TOKENIZING)
        return {"text": self._runner.detokenize(params["ids"])}

    def _score(self, params: dict[str, Any]) -> object:
        if not isinstance(self._runner, Scorer):
            raise _lacks(SCORING)
        request = ScoreRequest(**params)
        scores = self._runner.score(request)
        if problem := not_finite(scores, request):
            raise RunnerFailure(problem)
        return to_wire(scores)

    def _convert(self, params: dict[str, Any]) -> object:
        if not isinstance(self._runner, Converter):
            raise _lacks(CONVERTING)
        return {"made": self._runner.convert(ConvertRequest(**params))}

    def _describe_task(self, params: dict[str, Any]) -> object:
        return to_wire(self._task_runner().describe_task(params["task"]))

    def _import_task(self, params: dict[str, Any]) -> object:
        self._task_runner().import_task(params["task"])
        return {}

    def _load_task(self, params: dict[str, Any]) -> object:
        request = LoadRequest(**params["request"])
        return to_wire(self._task_runner().load_task(params["task"], request))

    def _task(self, params: dict[str, Any]) -> object:
        return to_wire(self._task_runner().run_task(TaskRequest(**params)))

    def _task_runner(self) -> TaskRunner:
        if not isinstance(self._runner, TaskRunner):
            raise _lacks(TASKS)
        return self._runner

    def _unload(self, params: dict[str, Any]) -> object:  # noqa: ARG002
        self._runner.close()
        return {}


def serve(worker: Worker, requests: int, answers: int) -> None:
    """Answer every request until the host says ``shutdown`` or goes away."""
    decoder = protocol.Decoder()
    while data := os.read(requests, 1 << 16):
        for item in decoder.feed(data):
            if isinstance(item, protocol.Noise):
                sys.stderr.write(f"edgebench: not a request ({item.reason}): {item.text}\n")
                continue
            _write(answers, _encoded(worker.answer(item.body)))
            if item.body.get("method") == "shutdown":
                return


def die_with_parent() -> None:
    """Ask Linux to end this process when its parent ends, so that none is left behind."""
    if sys.platform != "linux":
        return
    # Late, and no dependency: the only way to prctl from the standard library.
    import ctypes  # noqa: PLC0415
    import signal  # noqa: PLC0415

    pr_set_pdeathsig = 1
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL), 0, 0, 0)


def main() -> None:
    """Entry point; leaves by ``os._exit`` so that no framework's exit handler can crash it."""
    requests, answers = take_streams()
    parent = os.getppid()
    die_with_parent()
    if os.getppid() != parent:  # it ended before the line above could take effect
        os._exit(1)
    name = sys.argv[1]
    try:
        runner: Runner = runner_class(name)()
    except RunnerFailure as failure:
        _write(answers, protocol.encode(_error(None, RUNNER_FAILURE, str(failure), failure.reason)))
        os._exit(1)
    hello = {"protocol": protocol.PROTOCOL_VERSION, "runner": name, "pid": os.getpid()}
    _write(answers, protocol.encode({"method": "hello", "params": hello}))
    serve(Worker(runner), requests, answers)
    sys.stdout.flush()
    sys.stderr.flush()
    if threading.active_count() > 1:
        sys.stderr.write("edgebench: threads of the framework are still running at the end\n")
    os._exit(0)


def _encoded(answer: dict[str, Any]) -> bytes:
    try:
        return protocol.encode(answer)
    except ValueError as error:
        text = f"the runner's answer can't be sent: {error}"
        return protocol.encode(
            _error(answer.get("id"), RUNNER_FAILURE, text, "framework"),
        )


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _error(number: object, code: int, message: str, reason: str) -> dict[str, Any]:
    error = {"code": code, "message": message, "data": {"reason": reason}}
    return {"id": cast("int | None", number), "error": error}


def _lacks(what: str) -> RunnerFailure:
    return RunnerFailure(f"this runner can't {what}", reason="unsupported")


if __name__ == "__main__":
    main()
