"""MediaPipe's own task on a language model, TextSummarizer: text in, text out, timed as a whole.

The wheel has an engine of its own inside, of another version than litert-lm-api's; both are told.
It takes no number of threads and shows no tokens. What makes a summary of a text is the bundle's
chat template, which is told a mode; a template that ignores it gets the bare text as a turn.
"""

from __future__ import annotations

import importlib
import time
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final, NoReturn

from edgebench.runners.base import (
    LoadedTask,
    LoadRequest,
    RunnerFailure,
    TaskDescription,
    TaskRequest,
    TaskResult,
)
from edgebench.runners.console import NO_REASON, Console
from edgebench.runners.litert_bundle import read_bundle
from edgebench.runners.litert_embedded import embedded_version

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.runners.base import Reason, Scalar
    from edgebench.runners.litert_bundle import Bundle

TASKS: Final = ("text-summarizer",)
WHEEL: Final = "mediapipe"
PIP: Final = "pip install 'edgebench[mediapipe]'"
MODE: Final = "KEYPOINTS"
"""The task's own default."""

NO_CACHE: Final = ":nocache"
WARNINGS, ERRORS = 3, 4
"""Severities from which on the engine writes to standard error."""

NOISE: Final = ("WARNING: Logging before", "=== Source Location", "third_party/", "I0000", "W0000")


def wheel_version() -> str | None:
    """The version of the installed MediaPipe wheel, which is not imported; None without one."""
    try:
        return metadata.version(WHEEL)
    except metadata.PackageNotFoundError:
        return None


class MediaPipeTask:
    """Runs `TASKS`; a process that uses it should do nothing else."""

    def __init__(self) -> None:
        self._summarizer: Any = None
        self._console = Console(_told)

    def describe(self, task: str) -> TaskDescription:
        """Import MediaPipe and have the engine in it say its version.

        Raises:
            RunnerFailure: there is no such task (unsupported), or the wheel is missing, or too old
                for it (unavailable).
        """
        _known(task)
        _api()
        version = embedded_version(lambda path: _create(path, 8, WARNINGS))
        return TaskDescription(
            engine="MediaPipe TextSummarizer",
            engine_version=wheel_version() or "of unknown version",
            build={"embedded engine": f"LiteRT-LM {version or 'of unknown version'}"},
        )

    def prepare(self, task: str) -> None:
        """Import MediaPipe, its library included.

        Raises:
            RunnerFailure: as `describe`.
        """
        _known(task)
        _api()

    def load(self, task: str, request: LoadRequest) -> LoadedTask:
        """Load a bundle.

        Raises:
            RunnerFailure: the bundle can't be read (invalid) or would never end a summary, an
                option can't be honoured (unsupported), or MediaPipe refuses it.
        """
        _known(task)
        self.close()
        bundle = read_bundle(request.model_path)
        _refuse_endless(bundle)
        _refuse_options(request.options)
        most = _most_tokens(bundle, request.options)
        _api()
        self._console.mark()
        started = time.perf_counter_ns()
        try:
            self._summarizer = _create(request.model_path, most, ERRORS)
        except Exception as error:
            # It only says that it failed; why, stands on standard error.
            why = self._console.reason()
            told = _plain(error) if why == NO_REASON else why
            msg = f"MediaPipe can't load {bundle.path.name}: {told}"
            raise RunnerFailure(msg) from error
        ready = time.perf_counter_ns()
        used: dict[str, Scalar] = {
            "mode": MODE,
            "max_num_tokens": most,
            "cache": "none",
            "backend": "cpu",
            "threads": "MediaPipe's own choice",
        }
        return LoadedTask(started, ready, used)

    def run(self, request: TaskRequest) -> TaskResult:
        """Summarize one text.

        Raises:
            RunnerFailure: the text is empty or too long (invalid), or the bundle's chat template
                can't take it (unsupported).
        """
        if self._summarizer is None:
            msg = "no task is loaded"
            raise RunnerFailure(msg, reason="invalid")
        if "\0" in request.text:
            msg = "the text holds a NUL character, at which MediaPipe would cut it off"
            raise RunnerFailure(msg, reason="invalid")
        submitted = time.perf_counter_ns()
        try:
            made = self._summarizer.summarize(request.text)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this text's failure
            _refuse_text(error)
        finished = time.perf_counter_ns()
        return TaskResult(made.summary or "", submitted, finished)

    def close(self) -> None:
        """Free the engine; may be called without one, and twice."""
        summarizer, self._summarizer = self._summarizer, None
        if summarizer is not None:
            summarizer.close()


def _refuse_text(error: Exception) -> NoReturn:
    why = _plain(error)
    if "too long" in why:
        msg = f"the text does not fit into the cache, which the summary needs too: {why}"
        raise RunnerFailure(msg, reason="invalid") from error
    if "apply template" in why:
        msg = (
            "TextSummarizer hands the text over in parts, and this bundle's chat template can't "
            f"take that: {why}; have the bundle made by edgebench, or use another one"
        )
        raise RunnerFailure(msg, reason="unsupported") from error
    msg = f"TextSummarizer failed: {why}"
    reason: Reason = "invalid" if isinstance(error, ValueError) else "framework"
    raise RunnerFailure(msg, reason=reason) from error


def _plain(error: Exception) -> str:
    return str(error).strip().rstrip(".") or type(error).__name__


def _told(line: str) -> str:
    """What a line of the engine's log tells; empty where it tells nothing."""
    if line.startswith(NOISE):
        return ""
    # Such as E0000 00:00:1795991971.251281   14575 engine.cc:1158] Failed to …
    head, bracket, rest = line.partition("] ")
    return (rest if bracket and head.startswith("E0000") else line).lstrip("└ ")


def _known(task: str) -> None:
    if task not in TASKS:
        msg = f"MediaPipe has no task {task} here; there is {', '.join(TASKS)}"
        raise RunnerFailure(msg, reason="unsupported")


def _api() -> tuple[Any, Any]:
    """The modules of the task and of its options, with the library that they call."""
    version = wheel_version()
    try:
        summarizer = importlib.import_module("mediapipe.tasks.python.text.text_summarizer")
        base = importlib.import_module("mediapipe.tasks.python.core.base_options")
        bindings = importlib.import_module("mediapipe.tasks.python.core.mediapipe_c_bindings")
        bindings.load_raw_library()  # by itself it would wait for the first bundle
    except (ImportError, OSError, AttributeError) as error:
        what = (
            f"mediapipe {version} has no TextSummarizer that can be imported ({error})"
            if version
            else "the task text-summarizer needs the MediaPipe wheel"
        )
        msg = f"{what}; install it with: {PIP}"
        raise RunnerFailure(msg, reason="unavailable") from error
    return summarizer, base


def _create(path: str, most: int, severity: int) -> object:
    summarizer, base = _api()
    options = summarizer.TextSummarizerOptions(
        base_options=base.BaseOptions(model_asset_path=path),
        mode=summarizer.Mode[MODE],
        max_num_tokens=most,
        cache_dir=NO_CACHE,
        min_log_severity=severity,
    )
    made: object = summarizer.TextSummarizer.create_from_options(options)
    return made


def _refuse_endless(bundle: Bundle) -> None:
    if bundle.facts is not None and bundle.facts.stop_tokens == "reserved":
        msg = (
            f"{bundle.path.name} was made for generations of exact length, in which the model's "
            "own end of a text ends nothing, so a summary would go on until the cache is full; "
            "set stop_tokens: model for a variant that runs a task"
        )
        raise RunnerFailure(msg, reason="unsupported")


def _refuse_options(options: Mapping[str, Scalar]) -> None:
    for name, only in (("backend", "cpu"), ("cache", "none")):
        if options.get(name) not in (None, only):
            msg = (
                f"the task text-summarizer is run with {name}: {only}, not {options[name]}; leave "
                f"{name} out in the variant that runs it"
            )
            raise RunnerFailure(msg, reason="unsupported")


def _most_tokens(bundle: Bundle, options: Mapping[str, Scalar]) -> int:
    """Tokens of the text, of what the template adds, and of the summary, together."""
    limits = [n for n in (bundle.cache_length, bundle.settings.max_tokens) if n]
    asked = options.get("max_num_tokens")
    if not isinstance(asked, int):
        return min(limits, default=0)
    if any(asked > limit for limit in limits):
        msg = f"max_num_tokens is {asked}, and {bundle.path.name} holds {min(limits)}"
        raise RunnerFailure(msg, reason="invalid")
    return asked
