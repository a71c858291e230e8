"""Which tokens a pass over the layers runs, and which of its outputs are wanted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgebench.models.reference_layers import Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.models.architecture import Architecture

PASS_BYTES = 1 << 30
"""About the most that a pass keeps in memory besides weights, unless one text alone needs more."""

PASS_TOKENS = 8192
"""More tokens in a pass save nothing: reading the weights takes a small part of its time by then.
What is rated can be kept, and told of, at the end of a pass."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A row of the pass whose output rates the token `named`."""

    row: int
    named: int


@dataclass(slots=True)
class Rows:
    """The tokens of a pass, one below the other.

    Attributes:
        ids: of the tokens.
        positions: of each in its own text.
        spans: which of them follow each other.
    """

    ids: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)

    def add(self, ids: Sequence[int], position: int = 0, before: tuple[int, int] = (0, 0)) -> int:
        """Add tokens that follow each other.

        Args:
            ids: of the tokens; none is fine.
            position: of the first of them in its text.
            before: the rows, start and stop, that stand before it.

        Returns:
            The row of the first of them.
        """
        first = len(self.ids)
        self.ids += ids
        self.positions += range(position, position + len(ids))
        if ids:
            self.spans.append(Span(first, len(self.ids), before))
        return first


def tokens_a_pass(architecture: Architecture, kept: int) -> int:
    """How many tokens a pass may have.

    Args:
        architecture: of the model.
        kept: how many tokens' log-likelihoods are kept at a position, at most.
    """
    hidden = architecture.hidden_size
    queries = architecture.heads * architecture.head_size
    keys = architecture.kv_heads * architecture.head_size
    # The stream, its normalised copy and what is added to it; with them the larger of gate and up,
    # or of queries and keys while they are being rotated, values, and what was mixed of those.
    floats = 3 * hidden + max(2 * architecture.intermediate_size, 4 * queries + 3 * keys)
    # The kept ids and log-likelihoods, twice while they are put together.
    return min(PASS_TOKENS, PASS_BYTES // (4 * floats + 40 * kept))


def passes(lengths: Sequence[int], most: int) -> Iterator[slice]:
    """Cut texts of some lengths up into passes of at most so many tokens, or of one text.

    >>> list(passes([5, 5, 5, 20, 3], 10))
    [slice(0, 2, None), slice(2, 3, None), slice(3, 4, None), slice(4, 5, None)]
    """
    first, tokens = 0, 0
    for place, length in enumerate(lengths):
        if place > first and tokens + length > most:
            yield slice(first, place)
            first, tokens = place, 0
        tokens += length
    if lengths:
        yield slice(first, len(lengths))
