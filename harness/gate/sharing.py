"""Limits on what several workloads share, such as their variant's load: held once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from edgebench.harness.compare.sharing import shared_key

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from edgebench.harness.compare.model import Compared, Pair
    from edgebench.harness.gate.limits import Asked


def asked_once(
    pairs: Iterable[Pair], asked: Mapping[str, Mapping[str, Asked]]
) -> dict[str, dict[str, Asked]]:
    """The limits without those that an earlier pair has on the very same samples.

    Two limits that differ are both held.

    Args:
        pairs: in their order.
        asked: by the pair's name and the metric.
    """
    held: set[tuple[Hashable, Asked]] = set()
    found: dict[str, dict[str, Asked]] = {}
    for pair in pairs:
        found[pair.name] = {}
        for key, limit in asked[pair.name].items():
            shared = shared_key(pair, key)
            if shared is None or (shared, limit) not in held:
                found[pair.name][key] = limit
            if shared is not None:
                held.add((shared, limit))
    return found


def rows_of(rows: Iterable[Compared], pair: Pair) -> dict[str, Compared]:
    """A pair's rows by metric, those of what it shares with others among them.

    Args:
        rows: of a whole comparison, where what is shared stands once.
        pair: whose rows are wanted.
    """
    found: dict[str, Compared] = {}
    for row in rows:
        if row.pair.name == pair.name:
            found[row.metric] = row
            continue
        shared = shared_key(row.pair, row.metric)
        if shared is not None and shared == shared_key(pair, row.metric):
            found[row.metric] = replace(row, pair=pair)
    return found
