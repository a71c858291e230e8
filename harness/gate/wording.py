"""Numbers in a gate's sentences."""

from __future__ import annotations

import math
from typing import Final

_LEAST_PERCENT: Final = 0.01
_WHOLE_PERCENT: Final = 99.5
_LEAST_P: Final = 0.0001
MOST_REPETITIONS: Final = 1000
"""Beyond, the number says no more than that nobody would run them."""

USELESS: Final = 1.0
"""Who would only notice a change of as much, as a share, notices nothing worth naming."""

TOO_NOISY: Final = "too noisy to tell a change of less than 100 %"

_BIG: Final = 1e5
_LEAST_DIGITS: Final = 3
_MOST_DIGITS: Final = 8

_LADDERS: Final = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "byte": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
    "token/s": ((1.0, "tokens/s"),),
    "1": ((1.0, ""),),
}


def percent(share: float) -> str:
    """A share that somebody wrote, with all its digits: ``2.5 %``."""
    return f"{round(100 * share, 6):.10g} %"


def about(share: float) -> str:
    """A share that was measured, with the digits that are worth showing: ``6.1 %``."""
    value = abs(100 * share)
    if value and value < _LEAST_PERCENT:
        return f"under {_LEAST_PERCENT} %"
    return f"{value:.0f} %" if value >= _WHOLE_PERCENT else f"{value:.2g} %"


def worse(share: float) -> str:
    """A worsening in words: ``5 % worse``, ``1.2 % better``, ``no worse``."""
    if share == 0:
        return "no worse"
    return f"{about(share)} {'worse' if share > 0 else 'better'}"


def count(number: int, thing: str) -> str:
    """``1 repetition``, ``10 repetitions``."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def repetitions(number: int) -> str:
    """How many it would take; a number that nobody would run is not worth its digits."""
    return f"more than {MOST_REPETITIONS}" if number > MOST_REPETITIONS else str(number)


def chance(p: float) -> str:
    """A p value as statisticians write it: ``p = 0.0002``, ``p < 0.0001``."""
    return f"p < {_LEAST_P}" if p < _LEAST_P else f"p = {min(p, 1.0):.2g}"


def interval(low: float, high: float) -> str:
    """Two shares with their signs: ``-4.8 to -4.2 %``."""
    ends = (100 * low, 100 * high)
    apart = abs(ends[1] - ends[0])
    decimals = next((d for d, least in enumerate((20.0, 0.2)) if apart >= least), 2)
    first, last = (f"{each:+.{decimals}f}" for each in ends)
    zero = f"{0:.{decimals}f}"
    first, last = (zero if each.lstrip("+-") == zero else each for each in (first, last))
    return f"{first} to {last} %"


def amounts(values: tuple[float, ...], unit: str) -> tuple[str, ...]:
    """Values in the one unit that fits the largest, with enough digits to tell them apart."""
    ladder = _LADDERS.get(unit, ((1.0, unit),))
    largest = max(map(abs, values), default=0.0)
    size, name = next((step for step in ladder if largest >= step[0]), ladder[-1])
    scaled = [value / size for value in values]
    digits, different = _LEAST_DIGITS, len(set(scaled))
    while digits < _MOST_DIGITS and len({f"{each:.{digits}g}" for each in scaled}) < different:
        digits += 1
    suffix = f" {name}" if name else ""
    return tuple(_plain(value, digits) + suffix for value in scaled)


def _plain(value: float, digits: int) -> str:
    """So many digits, and no power of ten where people write none."""
    if value and not 1e-4 <= abs(value) < _BIG:  # noqa: PLR2004 - as Python writes floats
        return f"{value:.{digits}g}"
    before = math.floor(math.log10(abs(value))) + 1 if value else 1
    return f"{value:.{max(0, digits - before)}f}"
