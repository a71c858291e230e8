"""Tables without what tells nothing: columns of dashes, and what every row repeats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.cell import Summary
    from edgebench.reports.table_model import Table


def measured_only(
    summaries: Mapping[str, Mapping[str, Summary | None]], besides: Mapping[str, str] | None = None
) -> dict[str, Mapping[str, Summary | None]]:
    """The columns in which anybody has a value; the first one if there is none.

    Args:
        summaries: by column and variant.
        besides: by column, a variant whose value alone says nothing, such as a base that is
            compared with itself.
    """
    whole = besides or {}
    found = {
        key: values
        for key, values in summaries.items()
        if any(
            each is not None and each.median is not None and variant != whole.get(key)
            for variant, each in values.items()
        )
    }
    return found or dict(list(summaries.items())[:1])


def settled(table: Table) -> Table:
    """The table without what all its rows say alike, which is said once below it."""
    if len(table.rows) == 1:
        return table
    engines = {row.engine for row in table.rows}
    engine = engines.pop() if len(engines) == 1 else ""
    common = [
        each for each in table.rows[0].remarks if all(each in row.remarks for row in table.rows)
    ]
    rows = tuple(
        replace(
            row,
            engine="" if engine else row.engine,
            remarks=tuple(each for each in row.remarks if each not in common),
        )
        for row in table.rows
    )
    return replace(table, rows=rows, everywhere=tuple(filter(None, (engine, *common))))
