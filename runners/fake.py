"""A runner without a framework: deterministic, scriptable, for testing the harness only.

Its options make it slow, large, wrong or dead at a chosen moment. It says nothing about any
framework, and no report should ever show it beside one.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from edgebench.runners.base import (
    Capabilities,
    ConvertRequest,
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadedTask,
    LoadRequest,
    RunnerFailure,
    Scalar,
    ScoreRequest,
    Scores,
    TaskDescription,
    TaskRequest,
    TaskResult,
)
from edgebench.runners.fake_options import OPTIONS
from edgebench.runners.fake_score import score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.runners.base import Option

CHAT_TEMPLATE = (
    "{% for turn in messages %}"
    "{% if turn.content == 'refused' %}{{ raise_exception('no such turn') }}{% endif %}"
    "<{{ turn.role }}>{{ turn.content }}{% endfor %}"
)

NS = 1_000_000_000

TASKS = ("text-summarizer",)


class FakeRunner:
    """Makes tokens from a hash of what came before, at the pace its options ask for."""

    OPTIONS: ClassVar[Mapping[str, Option]] = OPTIONS
    QUANTIZATIONS: ClassVar[tuple[str, ...]] = ("copy",)
    PIP: ClassVar[str] = "edgebench"

    def __init__(self) -> None:
        self._options: dict[str, Scalar] = {}
        self._calls = 0
        self._ratings = 0
        self._context = 0
        self._virtual_ns = self._first_ns = 0
        self._model = ""
        self._ballast: bytearray | None = None
        self._prepared: Path | None = None
        self._cleanup = contextlib.ExitStack()

    def describe(self) -> Description:
        """It drives nothing."""
        if self._options.get("fail") == "missing":
            msg = "the fake framework was told to be missing"
            raise RunnerFailure(msg, reason="unavailable")
        return Description(
            engine="fake",
            engine_version="1",
            capabilities=Capabilities(
                token_ids_in=True,
                token_ids_out=True,
                token_timestamps=True,
                ignores_end_of_text=True,
                threads=True,
                tokenizer=True,
                chat_template=True,
                scoring=True,
                top_k_logits=True,
                tasks=TASKS,
            ),
        )

    def prepare(self, request: LoadRequest) -> list[str]:
        """Write a file for `load`, where that is asked for."""
        if not request.options.get("prepares"):
            return []
        self._prepared = Path(self._cleanup.enter_context(tempfile.TemporaryDirectory())) / "ready"
        self._prepared.write_text("ready", encoding="utf-8")
        return [str(self._prepared)]

    def load(self, request: LoadRequest) -> LoadedModel:
        """Read the file's hash, take the memory asked for, wait as long as asked."""
        self._options = {name: option.default for name, option in self.OPTIONS.items()}
        self._options |= request.options
        if "makes" in request.options:
            msg = "makes is no option of loading"
            raise RunnerFailure(msg, reason="invalid")
        self._calls = self._ratings = 0
        self._virtual_ns = self._first_ns = 0
        self._context = request.context_tokens
        path = Path(request.model_path)
        content = _content(path)
        self._model = hashlib.sha256(content).hexdigest()
        if not request.vocab_only:
            self._load_weights()
        says, weights = self._options["says_engine"], self._options["weight_bytes"]
        return LoadedModel(
            effective_options={"threads": self._options["threads"], "context": self._context},
            vocabulary_size=self._number("vocabulary"),
            architecture="fake",
            parameters=len(content) + (len(self._prepared.read_text()) if self._prepared else 0),
            chat_template=CHAT_TEMPLATE,
            weight_bytes_per_token=None if weights is None else int(weights),
            engine=None if says is None else str(says),
            engine_version=None if says is None else "2",
        )

    def _load_weights(self) -> None:
        fail = self._options["fail"]
        if fail == "missing":
            self.describe()
        if fail == "load":
            msg = "the fake framework was told to refuse this model"
            raise RunnerFailure(msg)
        if fail == "crash_at_load":
            self._die()
        if self._options["garbage"]:
            # As C code would, past Python's own buffers.
            os.write(1, b'\xff\xfe{"jsonrpc": garbage\nhalf a line')
        self._ballast = bytearray(self._number("allocate_mb") * 1024 * 1024)
        self._ballast[::4096] = b"\x01" * len(self._ballast[::4096])
        time.sleep(float(self._options["load_s"] or 0))

    def generate(self, request: GenerateRequest) -> Generation:
        """Tokens from a hash of the model, the prompt and the position."""
        if len(request.depth_ids) + len(request.prompt_ids) + request.max_tokens > self._context:
            msg = f"more tokens than the context of {self._context}"
            raise RunnerFailure(msg, reason="invalid")
        fail = self._fails("generate", self._calls)
        if fail == "refuse":
            msg = "the fake framework was told to refuse this prompt"
            raise RunnerFailure(msg)
        seed = f"{self._model},{list(request.depth_ids)},{list(request.prompt_ids)}"
        clock = _Clock(virtual=bool(self._options["virtual_clock"]), after=self._virtual_ns)
        submitted = clock.now()
        self._first_ns = self._first_ns or submitted
        tokenized = None
        if request.prompt_text is not None:
            if self.tokenize(request.prompt_text) != list(request.prompt_ids):
                msg = "the prompt's text does not tokenize to the given ids"
                raise RunnerFailure(msg, reason="invalid")
            tokenized = clock.now()
        clock.wait(self._pace("prefill_s", 0))
        prefilled = clock.now()
        ids: list[int] = []
        stamps: list[int] = []
        for position in range(request.max_tokens):
            if position == self._number("fail_at_token"):
                self._misbehave(fail)
            if position:
                slow = self._slowness((clock.now() - self._first_ns) / NS)
                clock.wait(slow * self._pace("token_s", position))
            digest = hashlib.sha256(f"{seed},{position}".encode()).digest()
            ids.append(3 + digest[0])
            stamps.append(clock.now())
        self._calls += 1
        self._virtual_ns = clock.now()
        told = {"two": 2, "none": 0}.get(str(self._options["tells"]), len(ids))
        return _spoiled(
            Generation(
                token_ids=[*ids[:told], *[None] * (len(ids) - told)],
                submitted_ns=submitted,
                tokenized_ns=tokenized,
                prefilled_ns=prefilled,
                token_ns=stamps,
                prompt_tokens=len(request.prompt_ids),
                depth_tokens=len(request.depth_ids),
                finish_reason="length",
            ),
            fail,
            self._number("vocabulary"),
        )

    def tokenize(self, text: str, *, special: bool = True) -> list[int]:  # noqa: ARG002 - all is text
        """A start token, then one id a byte."""
        return [1, *(3 + byte for byte in text.encode())]

    def detokenize(self, ids: Sequence[int]) -> str:
        """The bytes of `ids`, special ids left out."""
        return bytes(number - 3 for number in ids if number > 2).decode("utf-8", "replace")  # noqa: PLR2004

    def score(self, request: ScoreRequest) -> Scores:
        """Likelihoods by what `probabilities` says, the same at every position."""
        fail = self._fails("score", self._ratings)
        self._ratings += 1
        self._misbehave(fail)
        pace = float(self._options["score_s"] or 0)
        _Clock(virtual=bool(self._options["virtual_clock"])).wait(
            pace * (len(request.ids) - request.start)
        )
        return score(
            request,
            self._number("vocabulary"),
            str(self._options["probabilities"]),
            str(self._options["tells"]),
            fail,
            self._number("fail_at_token"),
        )

    def describe_task(self, task: str) -> TaskDescription:
        """It drives nothing here either."""
        if task not in TASKS:
            msg = f"the fake runner has no task {task}"
            raise RunnerFailure(msg, reason="unsupported")
        return TaskDescription("fake summarizer", "1", {"embedded engine": "fake 1"})

    def import_task(self, task: str) -> None:
        """There is nothing to import."""
        self.describe_task(task)

    def load_task(self, task: str, request: LoadRequest) -> LoadedTask:
        """As `load` does it."""
        self.describe_task(task)
        started = time.perf_counter_ns()
        self.load(request)
        return LoadedTask(started, time.perf_counter_ns(), {"mode": "the first words"})

    def run_task(self, request: TaskRequest) -> TaskResult:
        """The first half of the text's words."""
        fail = str(self._options["fail"])
        clock = _Clock(virtual=bool(self._options["virtual_clock"]))
        submitted = clock.now()
        if self._calls >= self._number("fail_from_call"):
            if fail == "refuse":
                msg = "the fake framework was told to refuse this text"
                raise RunnerFailure(msg)
            self._misbehave(fail)
        clock.wait(self._pace("task_s", 0))
        self._calls += 1
        words = request.text.split()
        text = "" if fail == "empty" else " ".join(words[: len(words) // 2 + 1])
        finished = clock.now() if fail != "clock" else submitted - 1
        return TaskResult(text, submitted, finished)

    def convert(self, request: ConvertRequest) -> dict[str, str]:
        """A copy of the source, as a file or in a folder, or what else `makes` says."""
        if request.quantization not in self.QUANTIZATIONS:
            made = ", ".join(self.QUANTIZATIONS)
            msg = f"the fake runner makes {made}, not {request.quantization}"
            raise RunnerFailure(msg, reason="unsupported")
        makes = request.options.get("makes") or "file"
        target = Path(request.target)
        if makes == "refusal":
            msg = "the fake framework was told to refuse this source"
            raise RunnerFailure(msg, reason="unsupported")
        if makes in ("folder", "half", "crash"):
            target.mkdir()
            (target / "config.json").write_text("{}", encoding="utf-8")
        if makes == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        if makes == "half":
            raise MemoryError
        if makes == "folder":
            (target / "weights").mkdir()
            target = target / "weights" / "model.bin"
        if makes != "nothing":
            target.write_bytes(_content(Path(request.source)))
        return {"tool": "fake 1"}

    def close(self) -> None:
        """Give the memory back."""
        self._ballast = None
        self._cleanup.close()

    def _fails(self, work: str, calls: int) -> str:
        """What goes wrong in a call, of which a process had so many of this kind before."""
        here = self._options["fail_in"] in ("any", work)
        late = calls >= self._number("fail_from_call")
        return str(self._options["fail"]) if here and late else "nothing"

    def _number(self, name: str) -> int:
        return int(self._options.get(name) or 0)

    def _slowness(self, after_s: float) -> float:
        begins = float(self._options["slow_after_s"] or 0)
        return float(self._options["slow_factor"] or 0) if begins and after_s >= begins else 1.0

    def _pace(self, name: str, position: int) -> float:
        digest = hashlib.sha256(f"{os.getpid()},{self._calls},{position},{name}".encode()).digest()
        share = digest[0] / 255 * 2 - 1
        return float(self._options[name] or 0) * (1 + float(self._options["jitter"] or 0) * share)

    def _die(self) -> None:
        number = signal.Signals[str(self._options["signal"])]
        sys.stderr.write(f"fake framework: about to die of {number.name}\n")
        sys.stderr.flush()
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)
        signal.pause()

    def _misbehave(self, fail: str) -> None:
        if fail == "crash":
            self._die()
        if fail == "exit":
            os._exit(7)
        if fail == "hang":
            signal.pause()
        if fail == "out_of_memory":
            raise MemoryError
        if fail == "stream":
            # The protocol's own stream is the last descriptor that was opened before this class.
            for descriptor in range(3, 16):
                _write_quietly(descriptor, b"Segmentation fault (not really)\n" * 3)


def _content(path: Path) -> bytes:
    """The bytes of a file, or of all files of a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return b"".join(file.read_bytes() for file in files if file.is_file())


class _Clock:
    """Real time, or the time that would have passed.

    Args:
        virtual: the second.
        after: when it begins at the earliest: the time that would have passed is over then.
    """

    def __init__(self, *, virtual: bool, after: int = 0) -> None:
        self._virtual = virtual
        self._now = max(time.perf_counter_ns(), after)

    def wait(self, seconds: float) -> None:
        if self._virtual:
            self._now += round(seconds * NS)
        elif seconds:
            time.sleep(seconds)

    def now(self) -> int:
        return self._now if self._virtual else time.perf_counter_ns()


def _spoiled(good: Generation, fail: str, vocabulary: int) -> Generation:
    changes: dict[str, object] = {}
    if fail == "count":
        changes = {"token_ids": good.token_ids[:-1], "token_ns": good.token_ns[:-1]}
    elif fail == "end_of_text":
        changes = {
            "token_ids": good.token_ids[:1],
            "token_ns": good.token_ns[:1],
            "finish_reason": "end_of_text",
        }
    elif fail == "prompt_count":
        changes = {"prompt_tokens": good.prompt_tokens + 1}
    elif fail == "clock":
        changes = {"token_ns": [*reversed(good.token_ns[:-1]), good.submitted_ns - 1]}
    elif fail == "nan":
        changes = {"engine": {"decode_rate": math.nan}}
    elif fail == "ids":
        changes = {"token_ids": [vocabulary + 1, *good.token_ids[1:]]}
    fields = {name: getattr(good, name) for name in good.__slots__}
    return Generation(**{**fields, **changes})


def _write_quietly(descriptor: int, data: bytes) -> None:
    try:
        os.write(descriptor, data)
    except OSError:
        return  # closed, or not open for writing
