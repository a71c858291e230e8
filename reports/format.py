"""Numbers for people: the unit that fits, and only the digits that were measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.harness.results.model import Summary

NOT_MEASURED = "–"
NARROW_SPACE = "\N{NARROW NO-BREAK SPACE}"

_LADDERS: dict[str, tuple[tuple[float, str], ...]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "byte": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B")),
    "J": ((1.0, "J"), (1e-3, "mJ")),
    "J/token": ((1.0, "J/token"), (1e-3, "mJ/token")),
    "W": ((1.0, "W"), (1e-3, "mW")),
    "Hz": ((1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")),
}
_SPELLED = {
    "token/s": "tokens/s",
    "token/s/W": "tokens/s/W",
    "bit": "bits",
    "character": "characters",
    "1": "",
}
_DIGITS_WITHOUT_INTERVAL = 3
_MOST_DIGITS = 4
_GROUP_FROM = 10_000


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit to show values in.

    Attributes:
        unit: how it is written; empty for a count or a ratio.
        size: how many stored units one shown unit is.
    """

    unit: str
    size: float = 1.0

    @property
    def suffix(self) -> str:
        """The unit as it stands behind a number."""
        return f" {self.unit}" if self.unit else ""


def scale_for(unit: str, values: Iterable[float | None]) -> Scale:
    """The one unit in which a whole column reads well.

    Args:
        unit: the unit that the values are stored in.
        values: the values of the column, in that unit.
    """
    ladder = _LADDERS.get(unit)
    if ladder is None:
        return Scale(_SPELLED.get(unit, unit))
    sizes = [abs(value) for value in values if value]
    if not sizes:
        size, name = ladder[0]
        return Scale(name, size)
    # The geometric mean: one slow variant in the column does not turn the others into 0.01.
    typical = math.exp(sum(math.log(size) for size in sizes) / len(sizes))
    for size, name in ladder:
        if typical >= size:
            return Scale(name, size)
    size, name = ladder[-1]
    return Scale(name, size)


def decimals_for(value: float, low: float | None = None, high: float | None = None) -> int:
    """How many decimals are worth showing, in the unit in which the value is given.

    With an interval, the digit of the interval's width decides (one more where that digit is a
    1), up to four digits in all; without one, three are shown.
    """
    if value == 0 and not low and not high:
        return 0
    largest = max(abs(value), abs(low or 0.0), abs(high or 0.0))
    ceiling = _MOST_DIGITS - 1 - math.floor(math.log10(largest))
    if low is None or high is None:
        wanted = _DIGITS_WITHOUT_INTERVAL - 1 - math.floor(math.log10(largest))
    elif high <= low:
        wanted = ceiling - 1
    else:
        exponent = math.floor(math.log10(high - low))
        leading = (high - low) / 10.0**exponent
        wanted = -exponent + (1 if leading < 2 else 0)  # noqa: PLR2004 - the digit is a 1
    return max(0, min(wanted, ceiling))


def number(value: float, decimals: int) -> str:
    """A number with so many decimals; long ones in groups of three."""
    text = f"{value:,.{decimals}f}" if abs(value) >= _GROUP_FROM else f"{value:.{decimals}f}"
    return text.replace(",", NARROW_SPACE)


@dataclass(frozen=True, slots=True)
class Shown:
    """A median and its interval as text, without the unit.

    Attributes:
        value: the median, or a dash.
        interval: ``[low, high]``, or empty where there is none or it has no width.
    """

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".rstrip()


def shown(summary: Summary | None, scale: Scale) -> Shown:
    """A summary in the given unit."""
    if summary is None or summary.median is None:
        return Shown(NOT_MEASURED)
    median = summary.median / scale.size
    if summary.ci_low is None or summary.ci_high is None or summary.ci_low == summary.ci_high:
        return Shown(number(median, decimals_for(median)))
    low, high = summary.ci_low / scale.size, summary.ci_high / scale.size
    decimals = decimals_for(median, low, high)
    return Shown(
        number(median, decimals),
        f"[{number(low, decimals)}, {number(high, decimals)}]",
    )


def quantity(value: float | None, unit: str) -> str:
    """One value with the unit that fits it, such as ``92.1 MiB``."""
    if value is None:
        return NOT_MEASURED
    scale = scale_for(unit, [value])
    scaled = value / scale.size
    decimals = 0 if unit == "1" and scaled == int(scaled) else decimals_for(scaled)
    return number(scaled, decimals) + scale.suffix


def duration(seconds: float) -> str:
    """A wall time such as ``2 min 5 s``, in whole seconds from one minute on."""
    if seconds < 60:  # noqa: PLR2004 - seconds of a minute
        return quantity(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def percent(share: float) -> str:
    """A share as percent, such as ``2.5 %``."""
    return f"{round(100 * share, 1):g} %"
