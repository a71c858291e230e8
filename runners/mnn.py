"""MNN's engine for language models, one forward pass a token.

MNN's own loop shows no time stamps; here each token costs one pass and one argmax of its logits,
read where MNN left them. What MNN itself times is kept beside. See docs/decisions/0008-mnn-loop.md.
"""

from __future__ import annotations

import contextlib
import platform
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from edgebench.runners.base import (
    Capabilities,
    Description,
    GenerateRequest,
    Generation,
    LoadedModel,
    LoadRequest,
    Option,
    RunnerFailure,
    Scalar,
    ScoreRequest,
    Scores,
)
from edgebench.runners.checked_request import check_generation, check_scoring
from edgebench.runners.console import Console
from edgebench.runners.mnn_check import MnnModel, check_model
from edgebench.runners.mnn_engine import Engine
from edgebench.runners.mnn_score import score
from edgebench.runners.mnn_settings import (
    FALLBACK,
    MOST_THREADS,
    OPTIONS,
    PRECISIONS,
    built_backends,
    check_cache,
    check_first_pass,
    from_mnn,
    to_mnn,
    usable_caches,
)
from edgebench.runners.mnn_weight_bytes import weight_bytes_per_token
from edgebench.runners.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.runners.base import ConvertRequest

NOISE = ("The device supports:", "Warning: module need new clone", "[Error]: LLM in error state")
"""How lines of MNN's begin that stand beside the reason."""


class MnnRunner:
    """Prefill, greedy decoding, scoring and converting with MNN."""

    OPTIONS: ClassVar[Mapping[str, Option]] = OPTIONS
    QUANTIZATIONS: ClassVar[tuple[str, ...]] = PRECISIONS
    PIP: ClassVar[str] = "edgebench[mnn]"
    CONVERTER_VERSION: ClassVar[str] = "2"

    def __init__(self) -> None:
        self._library: Any = None
        self._console = Console(_told)
        self._engine: Engine | None = None
        self._context_tokens = 0
        self._options: Mapping[str, Scalar] = {}
        self._timers = "first"
        self._timed: set[int] = set()
        self._tokenizes: dict[int, bool] = {}
        self._threads_before = 0
        self._weight_bytes: tuple[str, int | None] | None = None
        self._cleanup = contextlib.ExitStack()

    def describe(self) -> Description:
        """Import MNN; name it and what its build can use."""
        library = self._import()
        gpus = built_backends(library.__file__)
        return Description(
            engine="MNN",
            engine_version=str(library.version()),
            capabilities=Capabilities(
                token_ids_in=True,
                token_ids_out=True,
                token_timestamps=True,
                ignores_end_of_text=True,
                threads=True,
                tokenizes=True,
                chat_template=True,
                scoring=True,
                top_k_logits=True,
                kv_cache_types=usable_caches(platform.machine()),
                gpu_backends=gpus or (),
            ),
            build={
                "backends": ", ".join(["cpu", *(gpus or ())]) if gpus is not None else "not told"
            },
        )

    def prepare(self, request: LoadRequest) -> list[str]:
        """Count what decoding a token reads, by the graph; that takes some milliseconds.

        Returns:
            No files.

        Raises:
            RunnerFailure: the folder is none of MNN's, or not whole.
        """
        library = self._import()
        self._count_weights(
            request.model_path, check_model(request.model_path, str(library.version()))
        )
        return []

    def load(self, request: LoadRequest) -> LoadedModel:
        """Check the folder, load it and make sure that MNN uses the back end asked for."""
        library = self._import()
        self.close()
        options = request.options
        model = check_model(request.model_path, str(library.version()))
        self._check_backend(options)
        check_cache(options, platform.machine())
        mapped = None
        if options.get("mmap"):
            mapped = str(self._cleanup.enter_context(scratch_folder()))
        engine = Engine(library, model.config, to_mnn(options, mapped), self._console)
        self._check_fallback(options)
        engine.vocabulary_size = model.vocabulary_size or engine.measure_vocabulary()
        self._engine = engine
        self._context_tokens = request.context_tokens
        self._options = options
        self._timers = str(options.get("engine_timers") or "first")
        if self._weight_bytes is None or self._weight_bytes[0] != request.model_path:
            self._count_weights(request.model_path, model)
        return self._facts(engine, model, options)

    @property
    def engine(self) -> Engine:
        """What is loaded; RunnerFailure (invalid) where nothing is."""
        if self._engine is None:
            msg = "no model is loaded"
            raise RunnerFailure(msg, reason="invalid")
        return self._engine

    def generate(self, request: GenerateRequest) -> Generation:
        """Empty the cache, fill the depth, then measure prefill and each token."""
        engine = self.engine
        check_generation(request, engine.vocabulary_size, self._context_tokens)
        check_first_pass(self._options, len(request.depth_ids or request.prompt_ids))
        prompt = [int(number) for number in request.prompt_ids]
        text = request.prompt_text if self._has_same_ids(request.prompt_text, prompt) else None
        engine.restart()
        engine.fill(request.depth_ids)

        now, next_token = time.perf_counter_ns, engine.next_token
        tokenized = None
        submitted = now()
        if text is not None:
            prompt = engine.encode(text)
            tokenized = now()
        token = next_token(prompt)
        made, stamps = [token], [now()]
        for _ in range(request.max_tokens - 1):
            token = next_token([token])
            stamps.append(now())
            made.append(token)
        return Generation(
            token_ids=made,
            submitted_ns=submitted,
            tokenized_ns=tokenized,
            prefilled_ns=stamps[0],  # the argmax is some microseconds of it
            token_ns=stamps,
            prompt_tokens=len(prompt),
            depth_tokens=len(request.depth_ids),
            finish_reason="length",
            engine=self._engine_figures(engine, request, made),
        )

    def tokenize(self, text: str) -> list[int]:
        """The ids of `text` by MNN's own tokenizer."""
        return self.engine.encode(text)

    def score(self, request: ScoreRequest) -> Scores:
        """Log-likelihoods of ``ids[start:]`` from the logits of the positions before them."""
        engine = self.engine
        check_scoring(request, engine.vocabulary_size, self._context_tokens)
        count = len(request.ids)
        # What is not scored is taken in one pass before, the rest in passes of many positions.
        check_first_pass(self._options, request.start - 1 or count - 1)
        return score(engine, request)

    def convert(self, request: ConvertRequest) -> dict[str, str]:
        """Make an MNN folder from a GGUF file or a folder of Hugging Face's."""
        self._import()
        from edgebench.runners.mnn_convert import convert  # noqa: PLC0415 - needs numpy and models

        return convert(request)

    def close(self) -> None:
        """Free the engine and the mapped weights."""
        self._engine = None
        self._timed.clear()
        self._tokenizes.clear()
        self._cleanup.close()

    def _import(self) -> Any:  # noqa: ANN401 - a module without types
        """MNN's compiled module alone; its package ``MNN.tools`` would run pip."""
        if self._library is None:
            try:
                import _mnncengine  # noqa: PLC0415
            except ImportError as error:
                msg = f"MNN can't be imported ({error}); install it with: pip install '{self.PIP}'"
                raise RunnerFailure(msg, reason="unavailable") from error
            self._library = _mnncengine
            self._threads_before = _threads()
        return self._library

    def _check_backend(self, options: Mapping[str, Scalar]) -> None:
        """Before anything is loaded: MNN would take the CPU instead and only print so."""
        asked = options.get("backend") or "cpu"
        built = built_backends(self._library.__file__)
        if asked == "cpu" or (built is not None and asked in built):
            return
        if built is None:
            msg = f"this build of MNN does not tell whether it has the back end {asked}"
            raise RunnerFailure(msg, reason="unavailable")
        has = ", ".join(["cpu", *built])
        msg = (
            f"the back end {asked} is not in this build of MNN or can't start here; it has: {has}. "
            "MNN's packages from PyPI have the CPU only; build MNN from source for others"
        )
        raise RunnerFailure(msg, reason="unavailable")

    def _check_fallback(self, options: Mapping[str, Scalar]) -> None:
        told = [line for line in self._console.lines() if line.startswith(FALLBACK)]
        if told:
            msg = f"MNN does not use the back end {options.get('backend')}: {told[0]}"
            raise RunnerFailure(msg, reason="unavailable")

    def _facts(self, engine: Engine, model: MnnModel, options: Mapping[str, Scalar]) -> LoadedModel:
        asked = int(to_mnn(options, None)["thread_num"] or 1)
        pool = _threads() - self._threads_before
        threads = min(asked, MOST_THREADS, *([1 + pool] if self._threads_before else []))
        effective = from_mnn(engine.settings(), threads=threads, context=self._context_tokens)
        return LoadedModel(
            effective_options=effective | {"engine_timers": self._timers},
            vocabulary_size=engine.vocabulary_size,
            architecture=model.architecture,
            parameters=model.parameters,
            trained_context_tokens=model.trained_context_tokens,
            chat_template=model.chat_template,
            bos_text=model.start_text,
            eos_text=model.end_text,
            weight_bytes_per_token=self._weight_bytes[1] if self._weight_bytes else None,
        )

    def _count_weights(self, path: str, model: MnnModel) -> None:
        self._weight_bytes = path, weight_bytes_per_token(model)

    def _engine_figures(
        self, engine: Engine, request: GenerateRequest, made: list[int]
    ) -> dict[str, float]:
        """MNN's own figures of the same generation, by running it again in MNN's own loop.

        That loop ends at a stop token, so it is asked for the tokens before the first one.

        Raises:
            RunnerFailure: it makes other tokens.
        """
        prompt, depth = list(request.prompt_ids), list(request.depth_ids)
        key = hash((tuple(depth), tuple(prompt), request.max_tokens))
        if self._timers == "off" or (self._timers == "first" and key in self._timed):
            return {}
        self._timed.add(key)
        stops = {token for token in set(made) if engine.is_stop(token)}
        count = next((at for at, token in enumerate(made) if token in stops), len(made))
        native = engine.generate(depth, prompt, count)
        if native.token_ids != made[:count]:
            at = next(at for at in range(count) if native.token_ids[at] != made[at])
            msg = (
                f"MNN's own loop makes token {native.token_ids[at]} at position {at}, "
                f"and {made[at]} comes of pass by pass"
            )
            raise RunnerFailure(msg)
        figures = {}
        if native.prefill_s > 0:  # its timers count whole microseconds
            figures["prefill_s"] = native.prefill_s
            figures["prefill_rate"] = len(prompt) / native.prefill_s
        if count == len(made) and native.decode_s > 0:
            figures["decode_rate"] = count / native.decode_s
        return figures

    def _has_same_ids(self, text: str | None, ids: list[int]) -> bool:
        """Whether MNN's own tokenizer makes these ids of the text: of some texts it doesn't."""
        if text is None:
            return False
        key = hash((text, tuple(ids)))
        if key not in self._tokenizes:
            self._tokenizes[key] = self.engine.encode(text) == ids
        return self._tokenizes[key]


def _told(line: str) -> str:
    return "" if line.startswith(NOISE) else line


def _threads() -> int:
    """How many threads this process has, or 0 where that can't be seen."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 0
