"""All that a gate asks the samples together: how many repetitions would settle one of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.compare.decide import repetitions_for
from edgebench.harness.compare.model import FACTS
from edgebench.harness.compare.quality import TESTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Compared


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
        sampled = [row.answer.paired for row in rows if _is_sampled(row)]
        return cls(
            paired=sum(sampled),
            unpaired=len(sampled) - sum(sampled),
            rated=any(_is_rated(row) for row in rows),
            noise_floor=noise_floor,
        )

    def drowns(self, row: Compared, change: float) -> bool:
        """Whether a change is no larger than what counts as noise here."""
        return _is_sampled(row) and not row.answer.paired and change <= self.noise_floor

    def repetitions(self, row: Compared, change: float, confidence: float) -> int | None:
        """How many on each side would notice a worsening by `change`.

        Returns:
            More than there are now; None where that can't be told, or repeating tells no more.
        """
        if not _is_sampled(row):
            return None
        families = bool(self.paired) + bool(self.unpaired) + self.rated
        blocks = repetitions_for(
            row.answer,
            change,
            questions=self.paired if row.answer.paired else self.unpaired,
            confidence=1 - (1 - confidence) / families,
            noise_floor=self.noise_floor,
        )
        if blocks is None or blocks <= row.answer.n:
            return None
        return blocks * row.pair.per_block


def _is_rated(row: Compared) -> bool:
    return row.pair.candidate.workload.kind == "quality" and row.metric in TESTED


def _is_sampled(row: Compared) -> bool:
    return row.answer.p_worse is not None and row.metric not in FACTS and not _is_rated(row)
