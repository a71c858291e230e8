"""One model in LiteRT-LM, by its C library, and generations with it.

A generation is a session, which litert_session.py has. See docs/decisions/0012-litert-lm-stream.md
for what the engine does.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.litert_session import Session, in_utf8

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.runners.litert_library import Library


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
