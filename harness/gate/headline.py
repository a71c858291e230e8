"""A gate's outcome in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from edgebench.harness.compare.model import FACTS
from edgebench.harness.gate.wording import about

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Compared
    from edgebench.harness.gate.model import Check, Status

_USELESS: Final = 1.0


def headline(checks: Sequence[Check]) -> str:
    """How many limits were broken, and how small a worsening would have been noticed."""
    counts = Counter(check.status for check in checks)
    if not checks:
        return "Nothing was asked: no limit fits any cell"
    total = len(checks)
    broken = counts["fail"]
    if broken:
        first = f"{broken} of {total} limit{_s(total)} {_are(broken)} broken"
    elif counts["undecided"] == total:
        first = f"No limit is broken, and none of {total} could be decided"
    else:
        first = "No limit is broken" if total > 1 else "The limit is kept"
    words: dict[Status, str] = {
        "warn": f"warning{_s(counts['warn'])}",
        "allowed": "allowed",
        "undecided": "undecided",
    }
    others = [
        f"{counts[status]} {word}" for status, word in words.items() if 0 < counts[status] < total
    ]
    parts = [", ".join([first, *others]), _noticed(checks)]
    return "; ".join(part for part in parts if part)


def _noticed(checks: Sequence[Check]) -> str:
    """How small a worsening half of the comparisons would have noticed, and all of them."""
    rows = [check.compared for check in checks if check.kind == "worse_by" and check.compared]
    sampled = [row for row in rows if row.answer.p_worse is not None and row.metric not in FACTS]
    if not sampled:
        return ""
    sizes = sorted(_size(row) for row in sampled)
    half, most = sizes[(len(sizes) - 1) // 2], sizes[-1]
    if math.isinf(sizes[0]):
        return "so few repetitions could have noticed nothing"
    if most == half:
        return f"a worsening of {about(most)} would have been noticed"
    if math.isinf(half):
        return (
            f"the sharpest comparison would have noticed a worsening of {about(sizes[0])}, most of "
            "them none"
        )
    if math.isinf(most):
        return f"half of the comparisons would have noticed a worsening of {about(half)}"
    return (
        f"a worsening of {about(half)} would have been noticed in half of the comparisons, of "
        f"{about(most)} in all"
    )


def _size(row: Compared) -> float:
    size = row.answer.noticeable
    # Who would only notice twice the time, notices nothing worth naming.
    return math.inf if size is None or size >= _USELESS else size


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
