"""MediaPipe's engine for language models, LiteRT-LM: text in, a stream of text out.

MediaPipe's own LLM interface is only maintained; LiteRT-LM is the engine under it and what follows
it. What the engine's stream shows, and what is made of it, stands in
docs/decisions/0012-litert-lm-stream.md.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from edgebench.runners.base import (
    Capabilities,
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadRequest,
    Option,
    RunnerFailure,
    ScoreRequest,
    Scores,
)
from edgebench.runners.litert_bundle import read_bundle
from edgebench.runners.litert_library import PIP, Library
from edgebench.runners.litert_model import Model
from edgebench.runners.litert_settings import OPTIONS, QUANTIZATIONS, choose
from edgebench.runners.litert_weight_bytes import weight_bytes_per_token
from edgebench.runners.mediapipe_task import TASKS, MediaPipeTask, wheel_version
from edgebench.runners.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.runners.base import (
        ConvertRequest,
        LoadedTask,
        TaskDescription,
        TaskRequest,
        TaskResult,
    )

FILL_CACHE = """
import os, sys
import litert_lm
path, folder, threads, tokens = sys.argv[1:]
litert_lm.set_min_log_severity(litert_lm.LogSeverity.ERROR)
backend = litert_lm.Backend.CPU(thread_count=int(threads))
litert_lm.Engine(path, backend=backend, cache_dir=folder, max_num_tokens=int(tokens))
os._exit(0)
"""
"""Loads a bundle once in a process of its own, for the file that this leaves: loading it here
would raise this process's peak of memory."""


class MediaPipeRunner:
    """Prefill, greedy decoding, scoring and converting with LiteRT-LM, and MediaPipe's task."""

    OPTIONS: ClassVar[Mapping[str, Option]] = OPTIONS
    QUANTIZATIONS: ClassVar[tuple[str, ...]] = QUANTIZATIONS
    PIP: ClassVar[str] = PIP
    ARTIFACT_SUFFIX: ClassVar[str] = ".litertlm"
    CONVERTER_VERSION: ClassVar[str] = "1"

    def __init__(self) -> None:
        self._library: Library | None = None
        self._model: Model | None = None
        self._task = MediaPipeTask()
        self._warm: tuple[LoadRequest, str] | None = None
        self._weight_bytes: tuple[str, int | None] | None = None
        self._cleanup = contextlib.ExitStack()

    def describe(self) -> Description:
        """Import LiteRT-LM; name it, and MediaPipe where it is installed."""
        library = self._import()
        wheel = wheel_version()
        return Description(
            engine="LiteRT-LM",
            engine_version=library.version,
            capabilities=Capabilities(
                token_ids_in=False,
                token_ids_out=False,
                token_timestamps=True,
                # A bundle may have nothing that ends a text early, as ours, or the model's own.
                ignores_end_of_text=True,
                threads=True,
                tokenizer=True,
                tokenizer_loads_model=True,
                tokenizes=True,
                chat_template=True,
                scoring=True,
                gpu_backends=("gpu", "npu"),
                tasks=TASKS,
            ),
            build={"mediapipe": wheel} if wheel else {},
        )

    def prepare(self, request: LoadRequest) -> list[str]:
        """Have the file of prepared weights made, where the cache is to be warm; not measured.

        What decoding a token reads is counted here, too.

        Returns:
            The path of that file, if there is one.

        Raises:
            RunnerFailure: the bundle can't be loaded.
        """
        bundle = read_bundle(request.model_path)
        chosen = choose(request, bundle)
        self._weight_bytes = request.model_path, weight_bytes_per_token(bundle)
        if chosen.cache != "warm":
            return []
        self.close()
        folder = self._folder()
        library = self._import()
        library.mark()
        arguments = [request.model_path, folder, str(chosen.threads), str(chosen.max_tokens)]
        done = subprocess.run(
            [sys.executable, "-c", FILL_CACHE, *arguments], stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode or not any(Path(folder).iterdir()):
            msg = f"LiteRT-LM made no cache of {request.model_path}: {library.console.reason()}"
            raise RunnerFailure(msg)
        self._warm = (request, folder)
        return [str(path) for path in Path(folder).iterdir()]

    def load(self, request: LoadRequest) -> LoadedModel:
        """Check the bundle, load it and make sure that the engine uses the back end asked for."""
        library = self._import()
        bundle = read_bundle(request.model_path)
        chosen = choose(request, bundle)
        folder = None
        if chosen.cache == "warm":
            if self._warm is None or self._warm[0] != request:
                self.prepare(request)
            self._close_model()
            folder = self._warm[1] if self._warm is not None else None
        else:
            self.close()
            folder = self._folder() if chosen.cache == "cold" else None
        try:
            self._model = Model(library, bundle, chosen, folder)
            if self._weight_bytes is None or self._weight_bytes[0] != request.model_path:
                self._weight_bytes = request.model_path, weight_bytes_per_token(bundle)
            return replace(self._model.facts(), weight_bytes_per_token=self._weight_bytes[1])
        except BaseException:
            self.close()
            raise

    @property
    def model(self) -> Model:
        """What is loaded; RunnerFailure (invalid) where nothing is."""
        if self._model is None:
            msg = "no model is loaded"
            raise RunnerFailure(msg, reason="invalid")
        return self._model

    def generate(self, request: GenerateRequest) -> Generation:
        """Take the depth in, then measure prefill and each token."""
        return self.model.generate(request)

    def tokenize(self, text: str) -> list[int]:
        """The ids of `text` by the engine, behind a start token where one is due."""
        return self.model.tokenize(text)

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of `ids` by the engine, without a start token that is due."""
        return self.model.detokenize(ids)

    def score(self, request: ScoreRequest) -> Scores:
        """Log-likelihoods of ``ids[start:]``; the engine hides those of other tokens."""
        return self.model.score(request)

    def convert(self, request: ConvertRequest) -> dict[str, str]:
        """Make a bundle from a GGUF file or a folder of Hugging Face's."""
        from edgebench.runners.litert_convert import convert  # noqa: PLC0415 - needs numpy

        return convert(request)

    def describe_task(self, task: str) -> TaskDescription:
        """Import MediaPipe; which version of it runs the task."""
        return self._task.describe(task)

    def import_task(self, task: str) -> None:
        """Import MediaPipe, and not LiteRT-LM."""
        self._task.prepare(task)

    def load_task(self, task: str, request: LoadRequest) -> LoadedTask:
        """Load a bundle for MediaPipe's task."""
        return self._task.load(task, request)

    def run_task(self, request: TaskRequest) -> TaskResult:
        """Run the loaded task once."""
        return self._task.run(request)

    def close(self) -> None:
        """Free the engine and its cache."""
        self._close_model()
        self._task.close()
        self._warm = None
        self._cleanup.close()

    def _close_model(self) -> None:
        if self._model is not None:
            self._model.close()
            self._model = None

    def _import(self) -> Library:
        if self._library is None:
            self._library = Library()
        return self._library

    def _folder(self) -> str:
        """A new folder, which `close` removes."""
        return str(self._cleanup.enter_context(scratch_folder()))
