"""One model in LiteRT-LM, by its C library, and generations with it.

A generation is a session: text is taken in, and text comes out in chunks, each with the time at
which it came. See docs/decisions/0012-litert-lm-stream.md for what the engine does.
"""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


class Engine:
    """A model that the engine has loaded.

    Args:
        library: the engine.
        path: of the bundle.
        backend: cpu, gpu or npu.
        threads: of the CPU, or None for another back end.
        max_tokens: prompt and generated together, or None for as many as the bundle has.
        cache: a folder for prepared weights, or None for none.

    Raises:
        RunnerFailure: it can't be loaded.
    """

    def __init__(
        self,
        library: Library,
        path: str,
        *,
        backend: str,
        threads: int | None,
        max_tokens: int | None,
        cache: str | None,
    ) -> None:
        self._library = library
        self._functions = library.functions
        self._engine: int | None = None
        self._living: Session | None = None
        call = self._functions
        library.mark()
        settings = call.litert_lm_engine_settings_create(
            path.encode(), backend.encode(), None, None
        )
        if not settings:
            msg = f"LiteRT-LM can't load {path}: {library.reason()}"
            raise RunnerFailure(msg)
        call.litert_lm_engine_settings_enable_benchmark(settings)
        if threads is not None:
            call.litert_lm_engine_settings_set_num_threads(settings, threads)
        if max_tokens is not None:
            call.litert_lm_engine_settings_set_max_num_tokens(settings, max_tokens)
        folder = ":nocache" if cache is None else cache
        call.litert_lm_engine_settings_set_cache_dir(settings, folder.encode())
        self._engine = call.litert_lm_engine_create(settings)
        call.litert_lm_engine_settings_delete(settings)
        if not self._engine:
            msg = f"LiteRT-LM can't load {path}: {library.reason()}"
            raise RunnerFailure(msg)

    def close(self) -> None:
        """Free the model, and a session before: a living one outlasts its engine badly."""
        if self._living is not None:
            self._living.close()
            self._living = None
        if self._engine:
            self._functions.litert_lm_engine_delete(self._engine)
            self._engine = None

    @contextmanager
    def session(self, max_tokens: int = 1) -> Iterator[Session]:
        """An empty context; at most `max_tokens` are made in it.

        Raises:
            RunnerFailure: the engine makes none.
        """
        if self._living is not None:
            self._living.close()
        session = self._living = Session(self._library, self._engine, max_tokens)
        try:
            yield session
        finally:
            session.close()
            self._living = None

    def start_token(self) -> int | None:
        """What the engine itself puts before the first text of a session."""
        call = self._functions
        union = call.litert_lm_engine_get_start_token(self._engine)
        if not union:
            return None
        ids, count = ctypes.POINTER(ctypes.c_int)(), ctypes.c_size_t()
        try:
            failed = call.litert_lm_token_union_get_ids(
                union, ctypes.byref(ids), ctypes.byref(count)
            )
            return None if failed or not count.value else int(ids[0])
        finally:
            call.litert_lm_token_union_delete(union)

    def tokenize(self, text: str) -> list[int]:
        """The ids of a text, special tokens parsed, without a start token.

        Raises:
            RunnerFailure: the text can't be tokenized.
        """
        if "\0" in text:
            msg = "LiteRT-LM ends a text at a character of value 0, and this text has one"
            raise RunnerFailure(msg, reason="unsupported")
        call = self._functions
        self._library.mark()
        result = call.litert_lm_engine_tokenize(self._engine, in_utf8(text))
        if not result:
            msg = f"LiteRT-LM can't tokenize this text: {self._library.reason()}"
            raise RunnerFailure(msg)
        try:
            count = call.litert_lm_tokenize_result_get_num_tokens(result)
            return list(call.litert_lm_tokenize_result_get_tokens(result)[:count])
        finally:
            call.litert_lm_tokenize_result_delete(result)

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ids; a part of a character is a replacement sign.

        Raises:
            RunnerFailure: there is none.
        """
        call = self._functions
        self._library.mark()
        array = (ctypes.c_int * len(ids))(*ids)
        result = call.litert_lm_engine_detokenize(self._engine, array, len(ids))
        if not result:
            msg = f"LiteRT-LM makes no text of these ids: {self._library.reason()}"
            raise RunnerFailure(msg)
        try:
            text = call.litert_lm_detokenize_result_get_string(result) or b""
            return str(text.decode("utf-8", "replace"))
        finally:
            call.litert_lm_detokenize_result_delete(result)


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

        def take(_: object, chunk: Any) -> None:  # noqa: ANN401 - an address
            stamp = now()
            text = text_of(chunk)
            if text is not None:
                arrived.append((stamp, text or NUL))
            error = error_of(chunk)
            if error or is_last(chunk):
                ends.append(error or b"")
                over.set()

        # Kept as long as the session: the engine's thread may be on its way out of it afterwards.
        self._callback = self._library.callback_type(take)
        self._library.mark()
        if call.litert_lm_session_run_decode_async(self._session, self._callback, None):
            msg = f"LiteRT-LM can't generate: {self._library.reason()}"
            raise RunnerFailure(msg)
        over.wait()
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
