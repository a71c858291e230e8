"""All that a gate asks the samples together: how many repetitions would settle one of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.decide import repetitions_for
from edgebench.harness.compare.model import FACTS
from edgebench.harness.compare.quality import TESTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Compared, Pair


_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Family:
    """What was asked, by the test that decides it.

    Attributes:
        paired, unpaired: how many questions about samples.
        rated: whether there are some about texts.
        noise_floor: as in `edgebench.harness.gate.policy.Policy`.
    """

    paired: int
    unpaired: int
    rated: bool
    noise_floor: float

    @classmethod
    def of(cls, rows: Sequence[Compared], noise_floor: float) -> Family:
        """That of a comparison's rows."""
        sampled = [row.answer.paired for row in rows if _is_tested(row)]
        return cls(
            paired=sum(sampled),
            unpaired=len(sampled) - sum(sampled),
            rated=any(is_rated(row) for row in rows),
            noise_floor=noise_floor,
        )

    def drowns(self, row: Compared, change: float) -> bool:
        """Whether a change is no larger than what counts as noise here."""
        return _is_tested(row) and not row.answer.paired and change <= self.noise_floor

    def level(self, confidence: float) -> float:
        """The chance of a false alarm that one kind of question has to itself."""
        families = bool(self.paired) + bool(self.unpaired) + self.rated
        return (1 - confidence) / max(families, 1)

    def least(self, row: Compared, confidence: float) -> int:
        """How many blocks on each side can show a worsening at all, however large it is.

        With n pairs the rarest outcome, all of them worse, has a chance of 1 in 2^n; with n blocks
        on each side, all of one above all of the other, 1 in (2n choose n).
        """
        return _least(self.level(confidence), paired=row.answer.paired)

    def least_of(self, pair: Pair, confidence: float) -> int:
        """The same of a cell, in repetitions: of the kind of test that its samples get."""
        blocks = [
            {block for each in cell.metrics.values() for block in each.blocks}
            for cell in (pair.baseline, pair.candidate)
        ]
        return _least(self.level(confidence), paired=bool(blocks[0] & blocks[1])) * pair.per_block

    def is_short(self, row: Compared, confidence: float) -> bool:
        """Whether there are fewer than that."""
        return row.answer.n < self.least(row, confidence)

    def repetitions(self, row: Compared, change: float, confidence: float) -> int | None:
        """How many on each side would notice a worsening by `change`.

        Returns:
            More than there are now; None where that can't be told, or repeating tells no more.
        """
        if not _is_tested(row):
            return None
        blocks = repetitions_for(
            row.answer,
            change,
            questions=self.paired if row.answer.paired else self.unpaired,
            confidence=1 - self.level(confidence),
            noise_floor=self.noise_floor,
        )
        if blocks is None or blocks <= row.answer.n:
            return None
        return blocks * row.pair.per_block


def _least(level: float, *, paired: bool) -> int:
    n = 1
    while (2**n if paired else math.comb(2 * n, n)) * level < 1 - _ROUNDING:
        n += 1
    return n


def is_rated(row: Compared) -> bool:
    """Whether a row is decided by a text's windows."""
    return row.pair.candidate.workload.kind == "quality" and row.metric in TESTED


def is_sampled(row: Compared) -> bool:
    """Whether a row is about repetitions, of which only enough can tell a change.

    Known facts and texts' windows are not, and neither is what is 0 on both sides.
    """
    nothing = row.baseline == row.candidate == 0
    known = row.metric in FACTS or is_rated(row) or nothing
    return row.answer.ratio is not None and not known


def _is_tested(row: Compared) -> bool:
    return row.answer.p_worse is not None and row.metric not in FACTS and not is_rated(row)
