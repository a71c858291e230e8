"""A text to rate, made concrete for one model: token ids in windows, and the protocol in words."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from edgebench.harness.errors import ModelError
from edgebench.harness.quality.windows import Span, chunks, scored_in_chunk, sliding
from edgebench.harness.results.quality import QualityRecord
from edgebench.models.reference import Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.quality.texts import QualityText
    from edgebench.harness.scenario.quality import Quality


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """A text as a model's tokens.

    Attributes:
        ids: of the text alone; special tokens' texts are text like any other.
        ends: where in the text's UTF-8 each token ends, in bytes; None where that is not known.
        due_start: the token that the model's tokenizer puts before a text, or None.
        any_start: the model's start token, whether it is put there or not; None where unknown.
        vocabulary_size: ids are below it.
        tokenizer: who made the ids.
    """

    ids: Sequence[int]
    ends: Sequence[int] | None
    due_start: int | None
    any_start: int | None
    vocabulary_size: int
    tokenizer: str


@dataclass(frozen=True, slots=True)
class QualityTask:
    """A quality workload that can be scored.

    Attributes:
        workload: its name.
        windows: what each variant rates, in the text's order.
        scored_bytes: UTF-8 bytes of each window's scored tokens; None where that is not known.
        record: the protocol, with no window scored yet.
    """

    workload: str
    windows: tuple[Window, ...]
    scored_bytes: tuple[int | None, ...]
    record: QualityRecord

    @property
    def context_tokens(self) -> int:
        """The longest window."""
        return max(len(window.ids) for window in self.windows)

    def scored_tokens(self, windows: int) -> int:
        """How many tokens the first windows score."""
        return sum(len(each.ids) - each.start for each in self.windows[:windows])

    def recorded(self, windows: int) -> QualityRecord:
        """The protocol, when so many windows were scored by every variant."""
        sizes = [each for each in self.scored_bytes[:windows] if each is not None]
        return self.record.model_copy(
            update={
                "windows": windows,
                "scored_tokens": self.scored_tokens(windows),
                "scored_bytes": sum(sizes) if len(sizes) == windows else None,
            }
        )


def quality_task(
    workload: str, quality: Quality, text: QualityText, tokenized: TokenizedText
) -> QualityTask:
    """Cut a text into windows.

    Raises:
        ModelError: the text is too short, or the model has no start token where one is asked for.
    """
    start = _start_token(quality, tokenized)
    spans = _spans(quality, tokenized, starts=start is not None)
    before = [] if start is None else [start]
    if not spans:
        raise _too_short(quality, text, len(tokenized.ids) + len(before))
    ids = [int(number) for number in tokenized.ids[: spans[-1].end]]
    return QualityTask(
        workload=workload,
        windows=tuple(
            Window((*before, *ids[span.start : span.end]), len(before) + span.first - span.start)
            for span in spans
        ),
        scored_bytes=tuple(_scored_bytes(tokenized.ends, span) for span in spans),
        record=QualityRecord(
            text=text.name,
            text_sha256=text.sha256,
            text_bytes=len(text.text.encode()),
            text_origin=text.origin,
            protocol=quality.protocol,
            window=quality.window,
            stride=quality.stride_tokens,
            score_from=quality.first_scored,
            bos=quality.bos,
            bos_id=start,
            tokenizer=tokenized.tokenizer,
            ids_sha256=hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest(),
            vocabulary_size=tokenized.vocabulary_size,
            metrics=list(quality.metrics),
            windows_planned=len(spans),
        ),
    )


def tokens_needed(quality: Quality) -> int:
    """How many of a text's tokens its windows can hold at the most."""
    if quality.protocol == "llama-perplexity":
        return (1 + quality.max_tokens // scored_in_chunk(quality.window)) * quality.window
    return quality.first_scored + quality.max_tokens + quality.window


def affordable(
    planned: int, left_s: float, loads_s: Sequence[float], windows_s: Sequence[float]
) -> int:
    """How many windows there is time for, the first of which everyone has rated already.

    Args:
        planned: no more than so many.
        left_s: time left, in seconds.
        loads_s: what starting each of those that rate costs once more, in seconds.
        windows_s: what one window costs each of them.
    """
    each = sum(windows_s)
    if each <= 0:
        return planned
    return max(1, min(planned, 1 + int((left_s - sum(loads_s)) / each)))


def _start_token(quality: Quality, tokenized: TokenizedText) -> int | None:
    if quality.bos == "never":
        return None
    if quality.bos == "model":
        return tokenized.due_start
    if tokenized.any_start is None:
        msg = "bos: always asks for a start token before each window, and the model has none"
        raise ModelError(msg, remedy="Set bos: model, which puts one where the tokenizer does.")
    return tokenized.any_start


def _spans(quality: Quality, tokenized: TokenizedText, *, starts: bool) -> list[Span]:
    count = len(tokenized.ids)
    if quality.protocol == "llama-perplexity":
        return chunks(count, window=quality.window, starts=starts, most=quality.max_tokens)
    return sliding(
        count,
        window=quality.window,
        stride=quality.stride_tokens,
        score_from=quality.first_scored,
        starts=starts,
        most=quality.max_tokens,
    )


def _too_short(quality: Quality, text: QualityText, count: int) -> ModelError:
    first = max(quality.first_scored, 1)
    need = (
        f"one window takes {quality.window}"
        if quality.protocol == "llama-perplexity"
        else f"more than {first} are needed, since the first {first} are not scored"
    )
    msg = f"{text.name} has {count} token{'' if count == 1 else 's'} for this model; {need}"
    return ModelError(msg, remedy="Take a longer text, or a smaller window or score_from.")


def _scored_bytes(ends: Sequence[int] | None, span: Span) -> int | None:
    if ends is None:
        return None
    return int(ends[span.end - 1] - (ends[span.first - 1] if span.first else 0))


def text_range(task: QualityTask, place: int) -> str:
    """Which of the text's scored tokens a window holds, for people; counted from 1."""
    counts = list(accumulate(len(each.ids) - each.start for each in task.windows[: place + 1]))
    first = counts[place - 1] + 1 if place else 1
    return f"window {place + 1} of {len(task.windows)}, scored tokens {first} to {counts[place]}"
