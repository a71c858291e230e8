"""One scale for many questions, and p-values that hold for all of them together.

A question's statistic is a correlation: of signs with differences, or of sides with values. What
it would be if nothing differed is seen by flipping signs, or by exchanging sides, of whole blocks
for all questions at once. The greatest of a family in each such draw tells how great one must be
to be no accident (Westfall and Young, 1993). Nothing is assumed about how questions depend on each
other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

DRAWS, MOST_DRAWS = 20_000, 200_000
"""How many draws where there are too many to take them all: the more the surer one must be."""
DRAWS_PER_LEVEL = 40
SEED = 20_210_419
"""Of the draws: the same samples always give the same answers."""
CHUNK = 500
"""Draws at a time, so that a family of any size needs little memory."""
DRAWN_BY_CHANCE = 3.0
"""By how many standard errors a p-value from drawn patterns is told too great rather than too
small: at 1 % and 20,000 draws, what is told as 1 % is 0.8 %."""
LEAST_TOLD = (1.0 + DRAWN_BY_CHANCE) / MOST_DRAWS
"""The least p-value that drawn patterns tell."""
BEYOND = 0.05
"""How much of what lies above a question's ceiling still counts; see `Scale`."""
_FULL = 1e-9
_TOLERANCE = 1e-9
"""Two draws that give the same sum in another order are equal."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Makes correlations over different numbers of blocks comparable.

    A correlation becomes t with its degrees of freedom, and that a normal deviate (Wallace's
    approximation, 1959, good to 0.02 here). Few blocks reach any t by accident where their
    differences happen to be alike, once in 2**n draws; above the deviate of that chance, the
    ceiling, a score grows slowly, so that a question of few blocks doesn't drown those of many.
    Questions of equally many blocks stay in the order of their t.

    Attributes:
        freedom: degrees of freedom of each question.
        ceiling: the deviate of the rarest outcome that the question can have.
    """

    freedom: Floats
    ceiling: Floats

    @property
    def alike(self) -> bool:
        """Whether correlations compare as they are, so that none need be made into a deviate."""
        return bool(
            np.all(self.freedom == self.freedom[0]) and np.all(self.ceiling == self.ceiling[0])
        )

    def scores(self, correlations: Floats) -> Floats:
        """What to compare: deviates, or correlations if alike. One row a question."""
        if self.alike:
            return correlations
        size = np.square(correlations)
        np.subtract(1.0, size, out=size)
        np.maximum(size, _FULL, out=size)
        np.log(size, out=size)
        size *= -self.freedom[:, None]
        np.sqrt(np.maximum(size, 0.0, out=size), out=size)
        size *= _shrink(self.freedom)[:, None]
        ceiling = self.ceiling[:, None]
        if np.any(size > ceiling):
            size -= (1.0 - BEYOND) * np.maximum(size - ceiling, 0.0)
        return np.copysign(size, correlations, out=size)

    def t_at(self, score: float) -> Floats:
        """What t each question needs for a score; infinite where it can't reach it."""
        if not math.isfinite(score):
            return np.full(len(self.freedom), np.inf)
        if self.alike:
            room = 1.0 - score * score
            t = score / np.sqrt(room) if room > _FULL else np.inf
            return t * np.sqrt(np.maximum(self.freedom, _FULL))
        over = np.maximum(score - self.ceiling, 0.0)
        size = (np.minimum(score, self.ceiling) + over / BEYOND) / _shrink(self.freedom)
        freedom = np.maximum(self.freedom, _FULL)
        exponent = size * size / freedom
        reachable = (exponent < -np.log(_FULL)) & (self.freedom > 0)
        within = np.where(reachable, exponent, 0.0)
        return np.where(reachable, np.sqrt(freedom * np.expm1(within)), np.inf)


def _shrink(freedom: Floats) -> Floats:
    return (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0)


def ceiling_of(rarest: Floats) -> Floats:
    """The deviate of a chance, at least 0."""
    return np.maximum(-special.ndtri(np.clip(rarest, 1e-300, 0.5)), 0.0)


def draws_for(level: float) -> int:
    """How many draws tell chances as small as a level."""
    if level <= DRAWS_PER_LEVEL / MOST_DRAWS:
        return MOST_DRAWS
    return max(DRAWS, math.ceil(DRAWS_PER_LEVEL / level))


class StepDown:
    """Adjusted p-values by step-down max-T, for scores that are great where something differs.

    Questions that could not reach the level by themselves, whatever their values, stay out of the
    others' way; their own p-values are multiplied by the number of all questions.

    Args:
        observed: the score of each question.
        able: of each question whether it could reach the level by itself.
    """

    def __init__(self, observed: Floats, able: NDArray[np.bool_]) -> None:
        order = np.argsort(observed, kind="stable")
        self._questions = len(observed)
        self._able, self._unable = order[able[order]], np.flatnonzero(~able)
        self._least = observed - _TOLERANCE
        self._counts = np.zeros(len(observed))
        self._drawn = 0

    def add(self, scores: Floats) -> None:
        """Count draws, one column each; the observed scores must be among all that are added."""
        self._drawn += scores.shape[1]
        if len(self._unable):
            own = scores[self._unable] >= self._least[self._unable, None]
            self._counts[self._unable] += np.count_nonzero(own, axis=1)
        if len(self._able):
            running = np.maximum.accumulate(scores[self._able], axis=0)
            reached = running >= self._least[self._able, None]
            self._counts[self._able] += np.count_nonzero(reached, axis=1)

    def p(self, *, every: bool) -> Floats:
        """Adjusted p-values, in the order of the questions; 1 at most.

        Args:
            every: whether these are all draws that there are; otherwise p-values are what they may
                be at most, by `DRAWN_BY_CHANCE` standard errors of the drawing.
        """
        p = self._counts / max(self._drawn, 1)
        p += _drawing_error(self._drawn, every=every) * np.sqrt(p)
        p[self._unable] *= self._questions
        # The more extreme question is never the less certain one.
        p[self._able] = np.maximum.accumulate(p[self._able][::-1])[::-1]
        return np.minimum(p, 1.0)


class Critical:
    """The score that a change must exceed to be called one, as far as the noise alone tells.

    Its draws are of residuals: what changed is taken off, or it would raise the bar for itself.

    Args:
        scale: of the scores.
        able: as in `StepDown`.
    """

    def __init__(self, scale: Scale, able: NDArray[np.bool_]) -> None:
        self._scale, self._able = scale, able
        self._greatest: list[Floats] = []

    def add(self, scores: Floats) -> None:
        """Count draws, one column each."""
        if np.any(self._able):
            self._greatest.append(scores[self._able].max(axis=0))

    def t(self, level: float, *, every: bool) -> Floats:
        """What t each question needs; infinite where none is enough.

        Args:
            level: the accepted chance of calling any of the family different where none is.
            every: as in `StepDown.p`.
        """
        none = np.full(len(self._able), np.inf)
        if not self._greatest:
            return none
        greatest = np.concatenate(self._greatest)
        drawn = len(greatest)
        error = _drawing_error(drawn, every=every)
        # The share whose p-value, as `StepDown` tells it, is the level.
        share = ((math.sqrt(error * error + 4.0 * level) - error) / 2.0) ** 2
        allowed = math.floor(share * drawn * (1 + 1e-12))
        if allowed < 1:
            return none
        # What is observed counts as one. Another gate's critical score is another one: by its own
        # error on the safe side, where there are enough draws to have one.
        rank = max(allowed - math.ceil(math.sqrt(allowed)), min(allowed, 2))
        score = float(np.partition(greatest, drawn - rank)[drawn - rank])
        return np.where(self._able, self._scale.t_at(score), np.inf)


def _drawing_error(drawn: int, *, every: bool) -> float:
    return 0.0 if every else DRAWN_BY_CHANCE / math.sqrt(max(drawn, 1))
