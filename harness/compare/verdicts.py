"""What an answer means: better, worse, the same, or can't tell, and what would settle it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from edgebench.harness.gate.wording import about, percent

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Answer, Verdict
    from edgebench.harness.metrics.definitions import Better

MOST_REPETITIONS: Final = 1000
"""Beyond, the number says no more than that nobody would run them."""
TOO_NOISY: Final = "too noisy to tell"

_ROUNDING: Final = 1e-12


def worsening_of(ratio: float, better: Better) -> float:
    """A ratio of candidate to baseline as a share of the baseline, above 0 where it is worse."""
    return 1 - ratio if better == "higher" else ratio - 1


def verdict_of(
    answer: Answer, *, confidence: float, margin: float, one_sided: bool = False
) -> Verdict:
    """What the samples say, in one word.

    A change that is certainly within the margin is none, however certain it is.

    Args:
        answer: with p that are adjusted for all questions.
        confidence: of all verdicts together. Better and worse share the chance of a false one.
        margin: up to which a change counts as none, as a share.
        one_sided: whether only one of the two directions matters, which then has all of it.
    """
    if answer.ratio is None:
        return "not_compared"
    if answer.low is not None and answer.high is not None:
        least, most = 1 / (1 + margin) - _ROUNDING, 1 + margin + _ROUNDING
        if least <= answer.low and answer.high <= most:
            return "same"
    chance = (1 - confidence) / (1 if one_sided else 2) + _ROUNDING
    if answer.p_worse is not None and answer.p_worse <= chance:
        return "worse"
    if answer.p_better is not None and answer.p_better <= chance:
        return "better"
    return "cant_tell"


def unsettled(
    answer: Answer, *, margin: float, repetitions: int | None, quality: bool = False
) -> str:
    """Why it can't be told and what would settle it, a sentence without a full stop."""
    if answer.n == 1:
        return answer.no_interval or "one repetition says nothing about certainty"
    if answer.noticeable is None:
        said = answer.no_interval or "no change, however large, would have been certain"
    elif answer.noticeable > 1:
        said = TOO_NOISY
    else:
        said = f"a change of {about(answer.noticeable)} would have been noticed"
    if quality:
        return f"{said}; a longer text tells more"
    if repetitions is None:
        return said
    count = settling(repetitions)
    return f"{said}; {count} repetitions on each side would settle {percent(margin)}"


def settling(repetitions: int) -> str:
    """How many repetitions would settle something, as people are told."""
    many = repetitions > MOST_REPETITIONS
    return f"more than {MOST_REPETITIONS}" if many else str(repetitions)
