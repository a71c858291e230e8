"""One limit, and whether a variant meets it, as far as is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from edgebench.reports.selection.view import Figures
    from edgebench.reports.sentences import Sentence

State = Literal["fails", "fails_by_median", "unknown", "meets_by_median", "limited", "meets"]

WORST_FIRST: Final[tuple[State, ...]] = (
    "fails",
    "fails_by_median",
    "unknown",
    "meets_by_median",
    "limited",
    "meets",
)
"""A limit must hold on every workload, so the worst one decides."""

FAILING: Final = frozenset({"fails", "fails_by_median"})


@dataclass(frozen=True, slots=True)
class Check:
    """One limit, and whether a variant meets it.

    Attributes:
        limit: its field in `Requirements`, or ``machine_memory``.
        state: beyond doubt, by the median alone, or not known; ``limited`` where a document says
            that there is some of it.
        sentence: what was found, with the value and the limit.
        quoted: whether it is for documents to say, and nobody measured it.
        figures: what was measured; None where nothing was.
    """

    limit: str
    state: State
    sentence: Sentence
    quoted: bool = False
    figures: Figures | None = None

    @property
    def fails(self) -> bool:
        """Whether the limit is not met, beyond doubt or by the median."""
        return self.state in FAILING
