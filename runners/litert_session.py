"""One generation in LiteRT-LM: text is taken in, and text comes out in chunks, each with its time.

See docs/decisions/0012-litert-lm-stream.md for what the engine does.
"""

from __future__ import annotations

import ctypes
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.runners.litert_library import Library

TOP_P = 2
"""The one kind of sampler that the engine has for the CPU; with one candidate it is greedy."""

TEXT = 0
"""Of the kinds of input."""

NUL = b"\0"
"""The one text that C takes for an empty one."""

PADDED = "work group size exceeds available"
"""Of the engine's reason where padded text does not fit into the cache."""

CONTEXT_FULL = b"Max number of tokens reached."
"""How a generation ends where the context does; all of its tokens came."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the engine says of taking text in, or of making it: tokens, and tokens a second."""

    tokens: int
    rate: float


@dataclass(frozen=True, slots=True)
class Stream:
    """What came of a generation.

    Attributes:
        chunks: text in UTF-8, none of them empty; one may end inside a character.
        stamps: ``time.perf_counter_ns()`` at which each of them came.
        full: it ended because the context was full.
    """

    chunks: Sequence[bytes]
    stamps: Sequence[int]
    full: bool


class Session:
    """One context of an engine's; made by `Engine.session`."""

    def __init__(self, library: Library, engine: int | None, max_tokens: int) -> None:
        self._library = library
        self._functions = library.functions
        self._callback: object = None
        call = self._functions
        library.mark()
        settings = call.litert_lm_session_config_create()
        sampler = call.litert_lm_sampler_params_create(TOP_P)
        call.litert_lm_sampler_params_set_top_k(sampler, 1)
        call.litert_lm_sampler_params_set_top_p(sampler, 1.0)
        call.litert_lm_sampler_params_set_temperature(sampler, 1.0)
        call.litert_lm_session_config_set_sampler_params(settings, sampler)
        call.litert_lm_sampler_params_delete(sampler)
        call.litert_lm_session_config_set_apply_prompt_template(settings, False)  # noqa: FBT003
        call.litert_lm_session_config_set_max_output_tokens(settings, max_tokens)
        self._session = call.litert_lm_engine_create_session(engine, settings)
        call.litert_lm_session_config_delete(settings)
        if not self._session:
            msg = f"LiteRT-LM can't start a session: {library.reason()}"
            raise RunnerFailure(msg)

    def close(self) -> None:
        """Free it; a generation that is still running ends."""
        if self._session:
            self._functions.litert_lm_session_cancel_process(self._session)
            self._functions.litert_lm_session_delete(self._session)
            self._session = None

    def prefill(self, text: bytes) -> None:
        """Take text in, after what was taken in before.

        Raises:
            RunnerFailure: the engine failed.
        """
        call = self._functions
        self._library.mark()
        data = call.litert_lm_input_data_create(TEXT, text, len(text))
        try:
            failed = call.litert_lm_session_run_prefill(
                self._session, (ctypes.c_void_p * 1)(data), 1
            )
        finally:
            call.litert_lm_input_data_delete(data)
        if failed:
            why = self._library.reason()
            msg = f"LiteRT-LM can't take this text in: {why}"
            if PADDED in why:
                msg += (
                    "; text is padded to one of the lengths that the bundle takes in at once, and "
                    "the shortest is longer than what is left of its cache: have it made with a "
                    "greater cache_length, or with more prefill_lengths"
                )
            raise RunnerFailure(msg)

    def decode(self) -> Stream:
        """Make tokens until as many are made as may be, or the context is full, or the text ends.

        Raises:
            RunnerFailure: the engine failed.
        """
        arrived: list[tuple[int, bytes]] = []
        ends: list[bytes] = []
        over = threading.Event()
        call, now = self._functions, time.perf_counter_ns
        text_of, error_of = (
            call.litert_lm_stream_chunk_get_text,
            call.litert_lm_stream_chunk_get_error,
        )
        is_last = call.litert_lm_stream_chunk_is_final

        broken: list[Exception] = []

        def take(_: object, chunk: Any) -> None:  # noqa: ANN401 - an address
            stamp = now()
            try:
                text = text_of(chunk)
                if text is not None:
                    arrived.append((stamp, text or NUL))
                error = error_of(chunk)
                if error or is_last(chunk):
                    ends.append(error or b"")
                    over.set()
            except Exception as error:  # noqa: BLE001 - nobody hears it in the engine's thread
                broken.append(error)
                over.set()

        # Kept as long as the session: the engine's thread may be on its way out of it afterwards.
        self._callback = self._library.callback_type(take)
        self._library.mark()
        if call.litert_lm_session_run_decode_async(self._session, self._callback, None):
            msg = f"LiteRT-LM can't generate: {self._library.reason()}"
            raise RunnerFailure(msg)
        over.wait()
        if broken:
            msg = f"a piece of LiteRT-LM's stream can't be read: {broken[0]}"
            raise RunnerFailure(msg) from broken[0]
        if ends[0] not in (b"", CONTEXT_FULL):
            msg = f"LiteRT-LM failed while generating: {ends[0].decode('utf-8', 'replace')}"
            raise RunnerFailure(msg)
        return Stream([text for _, text in arrived], [stamp for stamp, _ in arrived], bool(ends[0]))

    def score(self, text: bytes) -> list[float]:
        """The log-likelihood of each token of a text after what was taken in.

        Raises:
            RunnerFailure: the engine failed.
        """
        call = self._functions
        self._library.mark()
        result = call.litert_lm_session_run_text_scoring(
            self._session,
            (ctypes.c_char_p * 1)(text),
            1,
            True,  # noqa: FBT003 - store_token_lengths
        )
        if not result:
            msg = f"LiteRT-LM can't score this text: {self._library.reason()}"
            raise RunnerFailure(msg)
        try:
            if not call.litert_lm_responses_has_token_scores_at(result, 0):
                msg = "LiteRT-LM gave no scores of single tokens"
                raise RunnerFailure(msg)
            count = call.litert_lm_responses_get_num_token_scores_at(result, 0)
            return list(call.litert_lm_responses_get_token_scores_at(result, 0)[:count])
        finally:
            call.litert_lm_responses_delete(result)

    def turns(self) -> tuple[list[Turn], list[Turn]]:
        """What the engine measured: each time it took text in, and each time it made text."""
        call = self._functions
        info = call.litert_lm_session_get_benchmark_info(self._session)
        if not info:
            msg = "LiteRT-LM gives no figures of its own, which tell how many tokens were made"
            raise RunnerFailure(msg)
        try:
            return self._turns(info, "prefill"), self._turns(info, "decode")
        finally:
            call.litert_lm_benchmark_info_delete(info)

    def _turns(self, info: int, what: str) -> list[Turn]:
        named = f"litert_lm_benchmark_info_get_{what}"
        tokens = getattr(self._functions, f"{named}_token_count_at")
        rate = getattr(self._functions, f"{named}_tokens_per_sec_at")
        number = getattr(self._functions, f"litert_lm_benchmark_info_get_num_{what}_turns")(info)
        return [Turn(tokens(info, at), rate(info, at)) for at in range(number)]


def in_utf8(text: str) -> bytes:
    """A text as the engine takes it: other bytes than UTF-8 make it end the process.

    Raises:
        RunnerFailure: the text has half of a pair of surrogates (unsupported).
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        msg = f"this text can't be written in UTF-8: {error}"
        raise RunnerFailure(msg, reason="unsupported") from error
