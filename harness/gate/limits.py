"""Which limits hold for which cell: those of all cells, and those of some over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias

from edgebench.harness.gate.conflicts import is_pattern
from edgebench.harness.metrics.definitions import METRICS, metric
from edgebench.harness.scenario.quantities import amount

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from edgebench.harness.compare.model import SideCell
    from edgebench.harness.gate.model import Severity
    from edgebench.harness.gate.policy import Limit, Policy

Place: TypeAlias = tuple[int | None, str]
"""Where a limit is written: the index in ``cells``, or None, and the metric's name or pattern."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of one metric of one cell.

    Attributes:
        worse_by: a share, or None; only of metrics with a direction.
        confidence: of it.
        at_most, at_least: in the metric's own unit, or None.
        severity: of a limit that is broken.
    """

    worse_by: float | None
    confidence: float
    at_most: float | None
    at_least: float | None
    severity: Severity


@dataclass(slots=True)
class Limits:
    """A policy's limits, and which of them met something.

    Attributes:
        policy: whose.
        met: the limits that met a metric.
        met_cells: the entries of ``cells`` that met a cell.
        asking: the limits that took part in asking something; one that only says how certain or
            how severe asks nothing by itself.
    """

    policy: Policy
    met: set[Place] = field(default_factory=set)
    met_cells: set[int] = field(default_factory=set)
    asking: set[Place] = field(default_factory=set)

    def of(self, cell: SideCell, keys: Iterable[str]) -> dict[str, Asked]:
        """What is asked of a cell, by metric, in the order in which reports list them.

        Args:
            cell: the candidate's; the baseline's where it vanished.
            keys: the metrics that either side speaks of.
        """
        groups: list[tuple[int | None, Mapping[str, Limit | None]]] = [(None, self.policy.limits)]
        for index, entry in enumerate(self.policy.cells):
            if entry.match.fits(cell.variant, cell.workload):
                self.met_cells.add(index)
                groups.append((index, entry.limits))
        asked = {}
        for key in sorted(set(keys), key=_order):
            found = [
                (place, limit)
                for index, limits in groups
                for place, limit in _fitting(index, limits, key)
            ]
            self.met.update(place for place, _ in found)
            if merged := self._merged([limit for _, limit in found], key):
                asked[key] = merged
                self.asking.update(place for place, _ in found)
        return asked

    def _merged(self, limits: Iterable[Limit | None], key: str) -> Asked | None:
        """Later limits over earlier ones, key by key; off forgets all before it."""
        known = metric(key)
        values: dict[str, object] = {}
        for limit in limits:
            if limit is None:
                values = {}
            else:
                values |= limit.model_dump(exclude_none=True)
        asked = Asked(
            worse_by=_number(values.get("worse_by")) if known.better is not None else None,
            confidence=_number(values.get("confidence")) or self.policy.confidence,
            at_most=_in_unit(values.get("at_most"), known.unit),
            at_least=_in_unit(values.get("at_least"), known.unit),
            severity="warn" if values.get("severity") == "warn" else "fail",
        )
        bounds = (asked.worse_by, asked.at_most, asked.at_least)
        return asked if any(each is not None for each in bounds) else None

    def unused(self) -> Iterator[str]:
        """A sentence for each entry and each limit that met nothing."""
        for index, entry in enumerate(self.policy.cells):
            if index not in self.met_cells:
                yield f"cells[{index}] ({entry.match}) fits no cell"
        yield from self._unused_limits(None, self.policy.limits)
        for index in sorted(self.met_cells):
            yield from self._unused_limits(index, self.policy.cells[index].limits)

    def _unused_limits(self, at: int | None, limits: Mapping[str, Limit | None]) -> Iterator[str]:
        where = "limits" if at is None else f"cells[{at}].limits"
        cells = "no cell" if at is None else "none of its cells"
        for name, limit in limits.items():
            if (at, name) not in self.met:
                what = "a metric that fits" if is_pattern(name) else "that metric"
                yield f"{where}.{name}: {cells} has {what}"
            elif limit is not None and _says_nothing(limit) and (at, name) not in self.asking:
                yield f"{where}.{name}: nothing is asked: it has no worse_by, at_most or at_least"


def _says_nothing(limit: Limit) -> bool:
    return limit.worse_by is None and limit.at_most is None and limit.at_least is None


def _fitting(
    index: int | None, limits: Mapping[str, Limit | None], key: str
) -> Iterator[tuple[Place, Limit | None]]:
    for name, limit in limits.items():
        if fnmatchcase(key, name):
            yield (index, name), limit


def _order(key: str) -> tuple[int, str]:
    known = list(METRICS)
    return (known.index(key) if key in METRICS else len(known), key)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _in_unit(value: object, unit: str) -> float | None:
    return amount(value, unit) if isinstance(value, str) else _number(value)
