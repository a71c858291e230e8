"""What a page needs to know of a table: digits that its numbers lack, what it marks and quotes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from edgebench.reports.format import NARROW_SPACE
from edgebench.reports.languages import _

if TYPE_CHECKING:
    from edgebench.reports.table_model import Column, Table

_PLAIN_NUMBER = re.compile(rf"[+\-−]?[\d{NARROW_SPACE}]+(?:\.(?P<decimals>\d+))?\Z")


def padding(table: Table) -> tuple[tuple[str, ...], ...]:
    """What each number lacks behind it so that the column's decimal points stand in one line.

    Returns:
        By row and column: digits to be set invisibly behind the text, such as ``.0`` or ``00``;
        empty where the text is no plain number or lacks nothing.
    """
    columns = [
        [None if column.words else _decimals(row.values[at].text) for row in table.rows]
        for at, column in enumerate(table.columns)
    ]
    padded = [_pads(each) for each in columns]
    return tuple(tuple(column[at] for column in padded) for at in range(len(table.rows)))


def marked(table: Table) -> bool:
    """Whether any value of the table is marked as the best."""
    return any(value.best for row in table.rows for value in row.values)


def quoted_remarks(table: Table) -> frozenset[str]:
    """The remarks of rows that a document says: they warn of nothing."""
    return frozenset(
        remark for row in table.rows if row.published and not row.failed for remark in row.remarks
    )


def labelled(column: Column) -> str:
    """A column's name with its unit, as one text."""
    unit = column.scale.unit
    return _("{label}, {unit}", label=column.label, unit=unit) if unit else column.label


def _decimals(text: str) -> int | None:
    found = _PLAIN_NUMBER.match(text)
    return len(found["decimals"] or "") if found else None


def _pads(decimals: list[int | None]) -> list[str]:
    most = max((each for each in decimals if each is not None), default=0)
    return [
        "" if each is None or each == most else ("0" * (most - each) if each else f".{'0' * most}")
        for each in decimals
    ]
