"""A gate's outcome in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Final

from edgebench.harness.gate.outcome import noticed, result_of, sampled_checks
from edgebench.harness.gate.wording import TOO_NOISY, USELESS, about, count
from edgebench.harness.metrics.definitions import metric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.gate.family import Family
    from edgebench.harness.gate.model import Check

_NOTHING: Final = 1e-6


def headline(checks: Sequence[Check], family: Family) -> str:
    """How many limits were broken, and how small a worsening would have been noticed."""
    if not checks:
        return "Nothing was asked: no limit fits any cell"
    parts = [", ".join([_first(checks), *_others(checks)]), _noticed(checks, family)]
    return "; ".join(part for part in parts if part)


def _first(checks: Sequence[Check]) -> str:
    total = len(checks)
    broken = sum(check.status == "fail" and not check.undecided for check in checks)
    if broken:
        are = "is" if broken == 1 else "are"
        return f"{broken} of {count(total, 'limit')} {are} broken"
    if total > 1:
        return "No limit is broken"
    (only,) = checks
    if only.undecided:
        return "The limit could not be decided"
    return "The limit is kept" if only.status == "pass" else "The limit is broken"


def _others(checks: Sequence[Check]) -> list[str]:
    """What else there is, in the order of how bad it is."""
    total = len(checks)
    counts = Counter(check.status for check in checks if not check.undecided)
    open_ = Counter(check.status for check in checks if check.undecided)
    found = []
    if total == 1:
        if counts["warn"]:
            found.append("which is only warned of")
        if counts["allowed"] or open_["allowed"]:
            found.append("which is allowed for a while")
        if open_["fail"]:
            found.append("which fails here")
        return found
    if open_["fail"]:
        found.append(f"{open_['fail']} undecided, which fails here")
    if counts["warn"]:
        found.append(count(counts["warn"], "warning"))
    if allowed := counts["allowed"] + open_["allowed"]:
        found.append(f"{allowed} allowed")
    rest = open_["warn"] + open_["undecided"]
    if rest == total:
        found.append(f"and none of {total} could be decided")
    elif rest:
        found.append(f"{rest} undecided")
    return found


def _noticed(checks: Sequence[Check], family: Family) -> str:
    """How small a worsening the sharpest comparison would have noticed, and the bluntest."""
    sampled = sampled_checks(checks)
    if not sampled:
        return ""
    sizes = [_size(noticed(check, row, family)) for check, row in sampled]
    least, most = min(sizes), max(sizes)
    bluntest, _ = sampled[sizes.index(most)]
    if math.isinf(least):
        short = all(family.is_short(row, check.confidence) for check, row in sampled)
        if short or result_of(checks, family) == "undecided":
            so = "so few" if short else "such"
            return f"{so} repetitions could have noticed nothing"
        return TOO_NOISY
    if _told(least) == _told(most):
        return f"{_told(most)} would have been noticed"
    where = f"{metric(bluntest.metric).label} of {bluntest.cell}"
    if math.isinf(most):
        return f"{_told(least)} would have been noticed at best, and none in {where}"
    return f"{_told(least)} would have been noticed at best, {about(most)} at worst ({where})"


def _told(size: float) -> str:
    # Floats that should be equal differ in their last digits.
    return "any worsening" if size < _NOTHING else f"a worsening of {about(size)}"


def _size(size: float | None) -> float:
    return math.inf if size is None or size >= USELESS else size
