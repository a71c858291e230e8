"""Markdown that keeps within a size: tables and lists lose their last rows, and say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FOR_THE_SENTENCE = 120


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a page.

    Attributes:
        before: all that stands above the rows, a table's head included; Markdown.
        rows: of a table or a list, a line each; Markdown.
        after: what stands below them.
    """

    before: str
    rows: tuple[str, ...] = ()
    after: str = ""

    def with_rows(self, count: int) -> str:
        """The block with its first rows, and with what was left out said below them."""
        kept = "\n".join((self.before, *self.rows[:count]))
        lost = len(self.rows) - count
        said = f"\n\n{_left_out(lost)}" if lost else ""
        return kept + said + (f"\n\n{self.after}" if self.after else "")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int]) -> Block:
    """A table of texts that are Markdown already.

    Args:
        head: one for each column.
        rows: as many texts each.
        numbers: places of the columns that align right.
    """
    right = set(numbers)
    rule = ["---:" if place in right else "---" for place in range(len(head))]
    return Block("\n".join((_line(head), _line(rule))), tuple(map(_line, rows)))


def fitted(blocks: Iterable[Block], most_bytes: int) -> str:
    """The blocks one after the other, in UTF-8 no longer than that.

    What has no rows is kept whole; earlier rows are kept before later ones.
    """
    kept = list(blocks)
    fixed = sum(_size(each.with_rows(0)) + 2 + _FOR_THE_SENTENCE for each in kept)
    left = most_bytes - fixed
    written: list[str] = []
    for block in kept:
        count = 0
        for row in block.rows:
            size = _size(row) + 1
            if size > left:
                # Nothing of what follows is more worth having than this row was.
                left = 0
                break
            left -= size
            count += 1
        written.append(block.with_rows(count))
    return "\n\n".join(written) + "\n"


def _left_out(count: int) -> str:
    rows = "1 more is" if count == 1 else f"{count} more are"
    return f"… {rows} left out here, where a text may be only so long."


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _size(text: str) -> int:
    return len(text.encode())
