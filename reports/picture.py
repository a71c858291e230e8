"""What all of the page's pictures share: their frame, and how a variant looks in each of them.

They are drawn with matplotlib's figures directly, without pyplot and its global state.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgebench.harness.metrics.definitions import metric
from edgebench.reports import svg
from edgebench.reports.colours import framework_colours, framework_key
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import _
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from matplotlib.axes import Axes

    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import ReportData

WIDTH = 350
"""Of every picture, in pixels: about as wide as a phone."""

FONT_SIZE = 10.0
LONGEST_LABEL = 44
"""Characters of a label, where each is about half as wide as it is high."""

DASHES = ("", "6 3", "2 2", "8 2 2 2", "12 3", "8 2 2 2 2 2")
"""Of the lines of one framework's variants, which all have its colour."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""Of the frameworks' points, by the place of their colour, for who can't tell colours apart."""

_LEAST_TO_TELL_APART = 2
_CAPITAL, _SMALL, _WIDE = 0.72, 0.56, 1.0
"""Widths of characters where the height is 1; those of the page's font are not known here."""

_BROAD = frozenset("WMm@%")
"""As wide as a Chinese one."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture.

    Attributes:
        title: a heading.
        svg: the picture.
        unit: the unit of what is drawn, where the picture has no axis that says it.
        legend: (name, class of its colour, dashes or empty) of each line or part.
        remark: what a reader needs to read it.
    """

    title: str
    svg: str
    unit: str = ""
    legend: tuple[tuple[str, str, str], ...] = ()
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """How a variant is drawn, the same in every picture.

    Attributes:
        style: the style sheet's class of its framework's colour, ``s1`` to ``s8``.
        dashes: of its line, as in SVG; empty for none.
        marker: of its points, as matplotlib names it.
    """

    style: str
    dashes: str
    marker: str

    @property
    def colour(self) -> str:
        """To draw with; see `edgebench.reports.svg`."""
        return svg.SERIES[int(self.style.removeprefix("s")) - 1]

    @property
    def line(self) -> str | tuple[int, tuple[float, ...]]:
        """The dashes, as matplotlib names them."""
        return (0, tuple(map(float, self.dashes.split()))) if self.dashes else "-"


def looks(variants: Iterable[VariantRecord]) -> dict[str, Look]:
    """How each variant of a run looks: colour and marker of its framework, dashes of its own."""
    styles = framework_colours(variants)
    seen: Counter[str] = Counter()
    found = {}
    for variant, style in styles.items():
        place = int(style.removeprefix("s")) - 1
        found[variant] = Look(style, DASHES[seen[style] % len(DASHES)], MARKERS[place])
        seen[style] += 1
    return found


def best_first(data: ReportData, workload: str, key: str) -> list[str]:
    """The variants with a value of a metric, from the best on; of equals as in the run."""
    summaries = data.summaries(workload, key)
    sign = 1 if _lower_is_better(key) else -1
    return sorted(summaries, key=lambda each: sign * (summaries[each].median or 0.0))


def some_of_each(data: ReportData, ranked: Sequence[str], most: int) -> list[str]:
    """At most so many variants, in turns the first of each framework, in the order of the run.

    Args:
        data: the report's data.
        ranked: variants to choose from, the foremost first.
        most: how many.
    """
    frameworks = {each.id: framework_key(each) for each in data.record.variants}
    turn: Counter[str] = Counter()
    turns = {}
    for variant in ranked:
        turns[variant] = turn[frameworks[variant]]
        turn[frameworks[variant]] += 1
    chosen = set(sorted(ranked, key=lambda each: turns[each])[:most])
    return [each for each in data.variant_ids if each in chosen]


def frameworks_legend(
    variants: Iterable[VariantRecord], drawn: Collection[str]
) -> tuple[tuple[str, str, str], ...]:
    """The colours of the frameworks that are drawn, in the order of the run.

    Args:
        variants: all of the run.
        drawn: the ids of those that are drawn.

    Returns:
        Nothing for one framework alone, whose colour tells nothing.
    """
    known = list(variants)
    styles = framework_colours(known)
    found = {framework_key(each): styles[each.id] for each in known if each.id in drawn}
    if len(found) < _LEAST_TO_TELL_APART:
        return ()
    return tuple((one_line(framework_name(key)), style, "") for key, style in found.items())


def short(label: str, room: float = LONGEST_LABEL) -> str:
    """A label cut in its middle: its begin names the framework, its end what tells it apart.

    Args:
        label: a name from outside.
        room: how many characters of usual width fit.
    """
    line = one_line(label)
    if text_width(line) <= room:
        return line
    room -= text_width("…")
    begin = _fitting(line, room * 2 / 3)
    end = _fitting(line[::-1], room - text_width(line[:begin]))
    return f"{line[:begin].rstrip()}…{line[len(line) - end :]}"


def text_width(text: str) -> float:
    """How many characters of usual width a text is as wide as."""
    return sum(map(_width, text)) / _SMALL


def _width(character: str) -> float:
    if character in _BROAD:
        return _WIDE
    if character.isascii():
        return _CAPITAL if character.isupper() or character == "w" else _SMALL
    if unicodedata.combining(character):
        return 0.0
    return _WIDE if unicodedata.east_asian_width(character) in "WF" else _CAPITAL


def _fitting(text: str, room: float) -> int:
    taken, count = 0.0, 0
    for character in text:
        taken += text_width(character)
        if taken > room + 1e-9:
            break
        count += 1
    return count


def chart(*, height: int) -> tuple[Figure, Axes]:
    """An empty picture of so many pixels with two axes, as all of the page's are."""
    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    left, right, top, bottom = 40, 8, 24, 32
    axes = figure.add_axes(
        (
            left / WIDTH,
            bottom / height,
            (WIDTH - left - right) / WIDTH,
            (height - top - bottom) / height,
        )
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(length=0, pad=5)
    axes.grid(visible=True, axis="y")
    axes.set_axisbelow(True)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_locator(MaxNLocator(6))
    return figure, axes


def with_unit(name: str, unit: str) -> str:
    """A metric's name with its unit, such as ``decode rate, tokens/s``."""
    return _("{metric}, {unit}", metric=name, unit=unit) if unit else name


def axis_names(axes: Axes, *, x: str, y: str) -> None:
    """Write the names of the axes beside them."""
    axes.set_xlabel(x, labelpad=3)
    # Above the axis and level: a turned label is hard to read and takes width on a phone.
    axes.set_title(y, loc="left", x=-0.125, pad=9, fontsize=FONT_SIZE, color=svg.MUTED)


def _lower_is_better(key: str) -> bool:
    return metric(key).better == "lower"
