"""MLC's own engine: ``mlc_llm.MLCEngine``, one request at a time, prompts as token ids.

Written against the published API of MLC LLM, revision 79d603f085f5; its packages are not on PyPI.
The clock of its own figures starts when its background thread takes a request.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import Generation, RunnerFailure
from edgebench.runners.mlc_names import PAGE
from edgebench.runners.mlc_package import import_package, require
from edgebench.runners.mlc_settings import MLC_LLM
from edgebench.runners.mlc_stream import TokenStream, Watch, construct

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.runners.base import GenerateRequest, LoadedModel, Reason
    from edgebench.runners.mlc_settings import Chosen

ENGINE = "MLC LLM"

SPARE = 8
"""Tokens that MLC wants room for after a prompt, or it never takes the prompt."""

FIGURES = {
    "ttft_s": "ttft_s",
    "prefill_rate": "prefill_tokens_per_s",
    "decode_rate": "decode_tokens_per_s",
}
"""MLC's figure of a request for a metric, in the metric's unit. Its prefill time is its time to
first token, choosing that token included; its decode time is the rest, divided by the tokens after
the first."""


class MlcEngine:
    """A model that MLC's own engine has loaded.

    Args:
        folder: the model's.
        library: compiled by MLC's compiler.
        chosen: how to load it.
        known: what the folder tells of the model; of its options, those that MLC does not tell.

    Raises:
        RunnerFailure: mlc_llm is not installed, the device is not there (unavailable), memory is
            short (out_of_memory), or MLC can't load the model.
    """

    def __init__(self, folder: Path, library: Path, chosen: Chosen, known: LoadedModel) -> None:
        package = import_package()
        self._version = require()
        self._numbers = count(1)
        config = package.serve.EngineConfig(
            max_num_sequence=1,
            max_single_sequence_length=chosen.context_tokens,
            max_total_sequence_length=_room(chosen.context_tokens),
            prefill_chunk_size=chosen.prefill_chunk,
            prefix_cache_mode="disable",
            verbose=False,
        )
        try:
            self._engine = construct(
                package.MLCEngine,
                str(folder),
                chosen.device,
                model_lib=str(library),
                mode="interactive",
                engine_config=config,
            )
        except Exception as error:
            said = first_line(error)
            msg = f"MLC's engine can't load {folder}: {said}"
            raise RunnerFailure(msg, reason=_reason(said)) from error
        self._broken = ""
        self._stream = TokenStream(self._engine)
        self._watch = Watch(self._wake)
        self._known = known
        self._device = chosen.device

    def facts(self) -> LoadedModel:
        """What was loaded; its settings are read back from MLC."""
        used = self._engine.engine_config
        options = {
            **self._known.effective_options,
            "engine": MLC_LLM,
            "compiler": MLC_LLM,
            "device": self._device,
            "kv_cache_tokens": used.max_total_sequence_length,
            "prefill_chunk": used.prefill_chunk_size,
            "prefix_cache": used.prefix_cache_mode,
        }
        return replace(
            self._known, effective_options=options, engine=ENGINE, engine_version=self._version
        )

    def generate(self, request: GenerateRequest) -> Generation:
        """Run one prompt; its KV cache is empty before and freed after.

        Tokens that MLC hands over together have the same time stamp. When the prompt had been
        processed can't be seen.

        Raises:
            RunnerFailure: the cache is to be filled before (unsupported), or MLC failed, or made
                another number of tokens.
        """
        if request.depth_ids:
            msg = (
                "MLC's engine can't fill the cache before the clock starts, since its prefix cache "
                "is off; `engine: tvm` can, with the same library"
            )
            raise RunnerFailure(msg, reason="unsupported")
        name = f"edgebench-{next(self._numbers)}"
        prompt = [int(number) for number in request.prompt_ids]
        stream = self._stream
        stream.begin(name)
        ended = usage = None
        submitted = time.perf_counter_ns()
        try:
            if self._broken:  # since the last generation; nobody would answer
                raise RuntimeError(self._broken)  # noqa: TRY301 - told as any failure of it
            for response in self._engine.completions.create(
                prompt=prompt,
                max_tokens=request.max_tokens,
                temperature=0.0,
                top_p=1.0,
                frequency_penalty=0.0,
                presence_penalty=0.0,
                seed=0,
                stream=True,
                stream_options={"include_usage": True},
                request_id=name,
                # Past stop tokens and stop texts alike.
                extra_body={"debug_config": {"ignore_eos": True}},
            ):
                usage = response.usage or usage
                for choice in response.choices:
                    ended = choice.finish_reason or ended
        except Exception as error:
            msg = f"MLC's engine failed: {first_line(error)}"
            raise RunnerFailure(msg) from error
        made = len(stream.ids)
        if made != request.max_tokens or usage is None:
            msg = (
                f"MLC's engine ended ({ended or 'without a reason'}) after {made} of "
                f"{request.max_tokens} tokens"
            )
            raise RunnerFailure(msg)
        return Generation(
            token_ids=stream.ids,
            submitted_ns=submitted,
            token_ns=stream.stamps_ns,
            prompt_tokens=int(usage.prompt_tokens),
            finish_reason=str(ended),
            engine=_figures(usage.extra or {}),
        )

    def close(self) -> None:
        """End MLC's threads and free the model."""
        if self._engine is not None:
            self._watch.stop()
            self._stream.stop()
            self._engine.terminate()
            self._engine = None

    def _wake(self, error: BaseException) -> None:
        """Hand a failure of MLC's thread to the one that waits for its tokens, if there is one."""
        self._broken = first_line(error)
        self._engine.state.sync_output_queue.put_nowait(error)


def refuse_own(library: Path) -> RunnerFailure:
    """What to say where a library that edgebench built is to run in MLC's engine."""
    msg = (
        f"edgebench built {library}, without what MLC's engine chooses tokens with; use "
        "`engine: tvm`, or have MLC compile the model (`compiler: mlc_llm`)"
    )
    return RunnerFailure(msg, reason="unsupported")


def first_line(error: BaseException) -> str:
    """What an exception says first; TVM's go on with a trace."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def _room(tokens: int) -> int:
    """Tokens of KV cache for a context of so many: whole pages, and what MLC keeps free."""
    return math.ceil((tokens + SPARE) / PAGE) * PAGE + PAGE


def _reason(said: str) -> Reason:
    if "Device is not found" in said:
        return "unavailable"
    if "Insufficient GPU memory" in said or "out of memory" in said.lower():
        return "out_of_memory"
    return "framework"


def _figures(extra: Mapping[str, Any]) -> dict[str, float]:
    """MLC's own figures, by metric; one that it does not give, or that is no number, is left out.

    Where one token was made there is no decoding, and it gives no rate.
    """
    numbers = {key: extra.get(name) for key, name in FIGURES.items()}
    return {
        key: float(number)
        for key, number in numbers.items()
        if isinstance(number, int | float) and math.isfinite(number) and number > 0
    }
