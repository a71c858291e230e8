"""Small steps on llama.cpp's C API; `lib` is always the bindings' module, which has no types."""

from __future__ import annotations

import ctypes
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.runners.base import Scalar


def greedy(lib: Any, context: Any, vocabulary: int) -> Callable[[], int]:  # noqa: ANN401
    """What picks the likeliest token after a decode; waits for the logits.

    One pass over the logits in C. llama.cpp's own greedy sampler first makes a list of candidates
    of them, which takes three times as long: 1 % of a token of a small model.
    """
    import numpy as np  # noqa: PLC0415 - the bindings need it too

    known = 0
    logits = np.empty(0, dtype=np.float32)

    def pick() -> int:
        nonlocal known, logits
        pointer = lib.llama_get_logits_ith(context, -1)
        address = ctypes.cast(pointer, ctypes.c_void_p).value or 0
        if address != known:  # seldom: llama.cpp keeps its buffer
            known = address
            logits = np.ctypeslib.as_array(pointer, shape=(vocabulary,))
        return int(logits.argmax())

    return pick


def token_array(lib: Any, ids: Sequence[int]) -> Any:  # noqa: ANN401
    """`ids` as the C array that `llama_batch_get_one` takes."""
    return (lib.llama_token * len(ids))(*ids)


def kv_type(lib: Any, name: Scalar) -> int:  # noqa: ANN401
    """The number of a cache type; of f16 where none is named."""
    return int(getattr(lib, f"GGML_TYPE_{str(name or 'f16').upper()}"))


def meta(lib: Any, model: Any, key: str) -> str | None:  # noqa: ANN401
    """A text from the file's metadata, or None where there is no such key."""
    buffer = ctypes.create_string_buffer(256)
    size = lib.llama_model_meta_val_str(model, key.encode(), buffer, len(buffer))
    return buffer.value.decode("utf-8", "replace") if size >= 0 else None


def token_text(lib: Any, vocab: Any, token: int) -> str:  # noqa: ANN401
    """How the vocabulary writes a token; empty where the model has none such."""
    if token < 0:
        return ""
    text = lib.llama_vocab_get_text(vocab, token)
    return text.decode("utf-8", "replace") if text else ""


def cpus() -> int:
    """How many CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
