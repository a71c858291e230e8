"""Whether a model's folder and its compiled library belong together, and fit what is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure

if TYPE_CHECKING:
    from edgebench.runners.mlc_folder import Folder
    from edgebench.runners.mlc_library import Metadata
    from edgebench.runners.mlc_settings import Chosen


def check_agreement(folder: Folder, metadata: Metadata) -> None:
    """Compare the configuration and the tensor cache with what the library was compiled for.

    Raises:
        RunnerFailure: they disagree (invalid).
    """
    config = folder.config
    for name, said, compiled in (
        ("model_type", config.model_type, metadata.model_type),
        ("quantization", config.quantization, metadata.quantization),
    ):
        if said != compiled:
            raise _disagree(folder, f"{name} is {said} in its configuration and {compiled}")
    if (
        config.context_tokens is not None
        and metadata.context_tokens is not None
        and config.context_tokens > metadata.context_tokens
    ):
        both = f"{config.context_tokens} in its configuration and {metadata.context_tokens}"
        raise _disagree(folder, f"context_window_size is {both}")
    _check_parameters(folder, metadata)


def _check_parameters(folder: Folder, metadata: Metadata) -> None:
    """Each parameter against the tensor cache; a name in a shape stands for one number."""
    stored = folder.tensors
    vocabulary = folder.config.vocabulary_size
    named: dict[str, int] = {"vocab_size": vocabulary}
    for name, shape, dtype in metadata.parameters:
        found = stored.get(name)
        if found is None:
            raise _disagree(folder, f"{folder.index.name} has no {name}, a parameter")
        wanted = tuple(
            named.setdefault(length, real) if isinstance(length, str) else length
            for length, real in zip(shape, found.shape, strict=False)
        )
        if (found.shape, found.dtype) != (wanted, dtype) or len(shape) != len(found.shape):
            sizes = " x ".join(map(str, shape if len(wanted) != len(shape) else wanted))
            there = " x ".join(map(str, found.shape))
            what = f"{name} is {there} {found.dtype} in {folder.index.name} and {sizes} {dtype}"
            raise _disagree(folder, what)
    first = next((each for each in metadata.parameters if "embed" in each[0]), None)
    rows = stored[first[0]].shape[0] if first is not None else vocabulary
    if rows != vocabulary:
        both = f"{vocabulary} in its configuration and {rows} in {folder.index.name}"
        raise _disagree(folder, f"vocab_size is {both}, as")


def _disagree(folder: Folder, what: str) -> RunnerFailure:
    msg = (
        f"{folder.path} does not fit its library {folder.library.name}: {what} in the library; "
        "compile or convert the model again"
    )
    return RunnerFailure(msg, reason="invalid")


def context_limit(folder: Folder, metadata: Metadata) -> int | None:
    """The most tokens that a generation may have, or None where neither says."""
    limits = (folder.config.context_tokens, metadata.context_tokens, metadata.sliding_window)
    return min((each for each in limits if each is not None), default=None)


def check_context(folder: Folder, metadata: Metadata, context_tokens: int) -> None:
    """Whether the longest workload fits.

    Raises:
        RunnerFailure: it is longer than what was compiled for (invalid), or than what a token
            sees (unsupported).
    """
    window, limit = metadata.sliding_window, context_limit(folder, metadata)
    if window is not None and context_tokens > window:
        msg = (
            f"{folder.library} slides a window of {window} tokens over the text, and a workload "
            f"has {context_tokens}: only texts that fit in the window are run here"
        )
        raise RunnerFailure(msg, reason="unsupported")
    if limit is not None and context_tokens > limit:
        msg = (
            f"a workload takes {context_tokens} tokens and {folder.library} was compiled for "
            f"{limit}: shorten it, or compile with a longer context_window"
        )
        raise RunnerFailure(msg, reason="invalid")


def prefill_chunk(metadata: Metadata, chosen: Chosen) -> int:
    """How many tokens are taken in at once.

    Raises:
        RunnerFailure: more are asked for than the library was compiled for (invalid).
    """
    asked = chosen.prefill_chunk
    if asked is not None and asked > metadata.prefill_chunk:
        msg = (
            f"prefill_chunk is {asked} and the library was compiled for {metadata.prefill_chunk} "
            f"tokens at once; have one made with prefill_chunk_size: {asked}, or take a smaller one"
        )
        raise RunnerFailure(msg, reason="invalid")
    return asked or metadata.prefill_chunk
