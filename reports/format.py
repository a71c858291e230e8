"""Numbers for people: the unit that fits, and only the digits that were measured."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.languages import N_, _, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.harness.results.cell import Summary

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
    "bit": N_("bits"),
    "character": N_("characters"),
    "1": "",
}
_DIGITS_WITHOUT_INTERVAL = 3
_MOST_DIGITS = 4
_MOST_DECIMALS = 6
_GROUP_FROM = 10_000
_HUGE = 1e9


@dataclass(frozen=True, slots=True)
class Scale:
    """A unit to show values in.

    Attributes:
        unit: how it is written; empty for a count or a ratio.
        size: how many stored units one shown unit is.
        zero: the stored value that is shown as 0: 1 where a ratio is shown as a change.
        signed: whether a value above 0 has a plus sign.
        digits: how many digits a value has whatever its interval, which then has as many
            decimals; None lets the interval decide. For what is exact on its text, such as a
            perplexity, whose interval is of other texts.
        alone: how many decimals a value without an interval has, up to four digits in all; with
            one it has two more at most. None shows three digits.
        least: how many decimals a value has at least, however wide its interval.
    """

    unit: str
    size: float = 1.0
    zero: float = 0.0
    signed: bool = False
    digits: int | None = None
    alone: int | None = None
    least: int = 0

    @property
    def suffix(self) -> str:
        """The unit as it stands behind a number."""
        return f" {self.unit}" if self.unit else ""

    def of(self, value: float) -> float:
        """A stored value in this unit."""
        return (value - self.zero) / self.size

    def decimals(self, value: float, low: float | None = None, high: float | None = None) -> int:
        """How many decimals a value of this unit is shown with, beside its interval."""
        if self.digits is None:
            decimals = max(self.least, decimals_for(value, low, high))
            if self.alone is None:
                return decimals
            if low is None or high is None:
                return min(self.alone, _ceiling(value)) if value else self.alone
            return min(decimals, self.alone + 2)
        return max(0, self.digits - 1 - (math.floor(math.log10(abs(value))) if value else 0))

    def write(self, value: float, decimals: int) -> str:
        """A value of this unit as text."""
        # A perplexity of a model that fell to pieces has no bound, and no digits worth showing.
        text = f"{value:.3g}" if abs(value) >= _HUGE else number(value, decimals)
        if not text.strip("-0."):
            return text.lstrip("-")
        return f"+{text}" if self.signed and value > 0 else text


SHARE = Scale("%", 0.01, digits=3)
"""For a share, such as how often two models agree."""

UTILIZATION = Scale("%", 0.01)
"""For a share whose interval decides how many digits it has."""

CHANGE = Scale("%", 0.01, zero=1.0, signed=True, alone=2)
"""For a ratio, shown as how much it is above or below 1."""

RATIO = Scale("", least=2)
"""For how many times one value is another; near 1 one decimal would hide on which side it is."""

PERPLEXITY = Scale("", digits=4)
BITS_PER_BYTE = Scale("bits/byte", digits=4)
DIVERGENCE = Scale("nat", digits=3)

_SCALES = {
    "perplexity": PERPLEXITY,
    "bits_per_byte": BITS_PER_BYTE,
    "kl_divergence": DIVERGENCE,
    "kl_divergence_p99": DIVERGENCE,
    "mbu": UTILIZATION,
}
"""Of metrics whose unit alone does not tell how to show them."""


def scale_for(unit: str, values: Iterable[float | None]) -> Scale:
    """The one unit in which a whole column reads well.

    Args:
        unit: the unit that the values are stored in.
        values: the values of the column, in that unit.
    """
    ladder = _LADDERS.get(unit)
    if ladder is None:
        return Scale(_(_SPELLED.get(unit, unit)))
    sizes = [abs(value) for value in values if value]
    if not sizes:
        size, name = ladder[0]
        return Scale(name, size)
    # The geometric mean: one slow variant in the column does not turn the others into 0.01.
    # A hair more: a column of 1 GiB is not to become 1024 MiB by the rounding of a logarithm.
    typical = math.exp(sum(math.log(size) for size in sizes) / len(sizes)) * (1 + 1e-9)
    for size, name in ladder:
        if typical >= size:
            return Scale(name, size)
    size, name = ladder[-1]
    return Scale(name, size)


def scale_of(key: str, unit: str, values: Iterable[float | None]) -> Scale:
    """The scale of a metric: as `scale_for`, except where it has one of its own."""
    return _SCALES.get(key) or scale_for(unit, values)


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


def _ceiling(value: float) -> int:
    """The decimals with which a number that is not 0 has the most digits worth showing."""
    return max(0, _MOST_DIGITS - 1 - math.floor(math.log10(abs(value))))


def number(value: float, decimals: int) -> str:
    """A number with so many decimals; long ones in groups of three, tiny ones as ``1.2e-7``."""
    if decimals > _MOST_DECIMALS:
        return f"{value:.2g}".replace("e-0", "e-")
    # What it is rounded to decides, so that 9999.99 is written as 10 000 is.
    grouped = abs(round(value, decimals)) >= _GROUP_FROM
    text = f"{value:,.{decimals}f}" if grouped else f"{value:.{decimals}f}"
    return text.replace(",", NARROW_SPACE)


@dataclass(frozen=True, slots=True)
class Shown:
    """A median and its interval as text, without the unit.

    Attributes:
        value: the median, or a dash.
        interval: ``[low, high]``, or empty where there is none or, as written, it has no width.
    """

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".rstrip()


def shown(summary: Summary | None, scale: Scale) -> Shown:
    """A summary in the given unit."""
    if summary is None or summary.median is None:
        return Shown(NOT_MEASURED)
    median = scale.of(summary.median)
    if summary.ci_low is None or summary.ci_high is None or summary.ci_low == summary.ci_high:
        return Shown(scale.write(median, scale.decimals(median)))
    low, high = scale.of(summary.ci_low), scale.of(summary.ci_high)
    decimals = scale.decimals(median, low, high)
    first, last = scale.write(low, decimals), scale.write(high, decimals)
    if first == last:
        # As exact as it is written, or more so: an interval of two equal numbers says nothing.
        decimals = decimals if scale.alone is None else scale.decimals(median)
        return Shown(scale.write(median, decimals))
    return Shown(scale.write(median, decimals), f"[{first}, {last}]")


def quantity(value: float | None, unit: str) -> str:
    """One value with the unit that fits it, such as ``92.1 MiB``."""
    if value is None:
        return NOT_MEASURED
    scale = scale_for(unit, [value])
    scaled = value / scale.size
    decimals = 0 if unit == "1" and scaled == int(scaled) else decimals_for(scaled)
    return number(scaled, decimals) + scale.suffix


def counted(one: str, many: str, count: float) -> str:
    """So many of something, such as ``1 window`` or ``2 windows``; long numbers in groups.

    Args:
        one: the English message for 1, a literal; see `edgebench.reports.languages.plural`.
        many: that for any other count.
        count: how many.
    """
    return plural(one, many, count, count=quantity(count, "1"))


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
