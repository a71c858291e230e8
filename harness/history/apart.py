"""What tells series apart that have the same names."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edgebench.harness.history.model import Series

MOST_FACTS = 3
SHORT_HASH = 10
_HASH = re.compile(r"\b[0-9a-f]{40,}\b")


def told_apart(found: Iterable[Series]) -> tuple[Series, ...]:
    """The same series, each with what differs from others of its variant and workload, in words.

    They are in the order of their names.
    """
    named: dict[tuple[str, ...], list[Series]] = {}
    for series in found:
        subject = series.subject
        names = (subject.machine, subject.scenario, subject.workload, subject.variant)
        named.setdefault(names, []).append(series)
    ordered = []
    for _names, group in sorted(named.items(), key=lambda each: each[0]):
        cells = list(dict.fromkeys(each.subject.cell for each in group))
        if len(cells) == 1:
            ordered += group
            continue
        said = dict(zip(cells, differences(cells), strict=True))
        apart = [replace(each, apart=said[each.subject.cell]) for each in group]
        # By cell, so that all metrics of one stand together.
        ordered += sorted(apart, key=lambda each: (each.apart, each.subject.cell))
    return tuple(ordered)


def differences(cells: Sequence[str]) -> list[str]:
    """What is not the same in all cells, for each of them.

    Args:
        cells: as in `Subject.cell`; all are different.
    """
    facts = [_flat(json.loads(each)) for each in cells]
    keys = dict.fromkeys(key for each in facts for key in each)
    differing = [key for key in keys if len({each.get(key) for each in facts}) > 1]
    rest = len(differing) - MOST_FACTS
    more = f", and {rest} more" if rest > 0 else ""
    return [
        ", ".join(each.get(key, f"no {key}") for key in differing[:MOST_FACTS]) + more
        for each in facts
    ]


def _flat(facts: dict[str, object]) -> dict[str, str]:
    """Each fact in words, by its name; those of options by the options' names."""
    found: dict[str, str] = {}
    for key, value in facts.items():
        if isinstance(value, dict):
            found |= {name: f"{name}={_short(each)}" for name, each in value.items()}
        elif value not in (None, ""):
            found[key] = f"{key} {_short(value)}"
    return found


def _short(value: object) -> str:
    return _HASH.sub(lambda each: each[0][:SHORT_HASH], str(value))
