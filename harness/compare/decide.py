"""Is it worse, and how certain is that? For many questions at once, with few false alarms."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Answer, Question

CONFIDENCE = 0.95
NOISE_FLOOR = 0.01


def decide(
    questions: Sequence[Question],
    *,
    confidence: float = CONFIDENCE,
    noise_floor: float = NOISE_FLOOR,
) -> list[Answer]:
    """Answer all questions of one family."""
    raise NotImplementedError


def repetitions_for(
    answer: Answer, change: float, *, questions: int, confidence: float = CONFIDENCE
) -> int | None:
    """How many blocks on each side would notice a worsening by `change` in 95 % of cases."""
    raise NotImplementedError
