"""Where the boxes, lines and words of a drawn decision tree go. Lengths are in CSS pixels."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from edgebench.reports.selection.unfolded import Item

SIZE: Final = 13
"""Of the letters."""

_LINE: Final = SIZE * 1.3
_PAD: Final = 9
_EDGE: Final = 2
_DOT_ROOM: Final = 26
"""Before an end's name, for the dot in its framework's colour."""

NARROW: Final = 340
WIDE: Final = 900
_MOST_COLUMNS: Final = 5
"""More would leave each box of the wide drawing too little room."""


@dataclass(frozen=True, slots=True)
class Box:
    """A question or an end, with the lines of its text."""

    x: float
    y: float
    width: float
    height: float
    text: tuple[str, ...]
    runner: str
    lit: bool

    @property
    def end(self) -> bool:
        """Whether it is a recommendation."""
        return bool(self.runner)

    @property
    def text_x(self) -> float:
        """Where its text begins."""
        return self.x + (_DOT_ROOM if self.end else _PAD)

    @property
    def text_y(self) -> float:
        """The base of the text's first line."""
        return self.y + _PAD + SIZE * 0.95


@dataclass(frozen=True, slots=True)
class Line:
    """The way from a question to what an answer leads to, with the answer beside it."""

    points: tuple[tuple[float, float], ...]
    label: tuple[str, ...]
    label_x: float
    label_y: float
    lit: bool


@dataclass(slots=True)
class Layout:
    """A drawing's size and what is in it."""

    width: float
    height: float = 0
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)


def lay_out_down(root: Item, width: float = NARROW) -> Layout:
    """From the top down, each answer indented below its question."""
    layout = Layout(width)
    # A deep tree is indented less, so that its last box still holds some words.
    indent = min(20.0, width / 2 / max(root.levels - 1, 1))
    bottom = _down(root, layout, _EDGE, _EDGE, indent)
    layout.height = bottom + _EDGE
    return layout


def _down(item: Item, layout: Layout, x: float, y: float, indent: float) -> float:
    box = _box(item, x, y, layout.width - x - _EDGE)
    layout.boxes.append(box)
    bottom, from_x = y + box.height, x + indent / 2
    for below in item.below:
        label_x = from_x + 6
        label = wrapped(below.answer, layout.width - label_x - _EDGE, bold=below.lit)
        top = bottom + 6 + len(label) * _LINE + 4
        child_bottom = _down(below, layout, x + indent, top, indent)
        middle = top + _LINE / 2 + _PAD
        points = ((from_x, y + box.height), (from_x, middle), (x + indent, middle))
        layout.lines.append(Line(points, label, label_x, bottom + 6 + SIZE, below.lit))
        bottom = child_bottom
    return bottom


def lay_out_right(root: Item, width: float = WIDE) -> Layout:
    """From left to right, a column for each question; downwards where those are too many."""
    columns = root.levels
    if columns > _MOST_COLUMNS:
        return lay_out_down(root, width * 2 / 3)
    gaps = max(columns - 1, 1)
    longest = max(_text_width(each, bold=True) for each in _answers(root))
    least = max(120.0, width / columns / 2)
    gap = min(max(longest + 34, 64), (width - columns * least) / gaps)
    across = min(250, (width - 2 * _EDGE - gap * (columns - 1)) / columns)
    # Always as wide, so that letters of all trees in a page are of one size.
    layout = Layout(width)
    layout.height = _right(root, layout, _EDGE, _EDGE, across, gap)[1] + _EDGE
    return layout


def _right(
    item: Item, layout: Layout, x: float, y: float, across: float, gap: float
) -> tuple[Box, float]:
    """Place an item and all to the right of it; its box and where the next may begin."""
    height = _box(item, x, y, across).height
    bottom = y
    placed: list[tuple[Item, Box]] = []
    for below in item.below:
        label = wrapped(below.answer, gap - 30, bold=below.lit)
        # The answer stands on its line, so half of its room is above the middle of the box.
        room = max(0.0, len(label) * _LINE + 8 - _box(below, x, y, across).height / 2)
        top = bottom + room + (14 if placed else 0)
        box, bottom = _right(below, layout, x + across + gap, top, across, gap)
        placed.append((below, box))
    middle = y + height / 2
    if placed:
        first, last = placed[0][1], placed[-1][1]
        middle = max(middle, (_middle(first) + _middle(last)) / 2)
    own = _box(item, x, middle - height / 2, across)
    layout.boxes.append(own)
    for below, box in placed:
        label = wrapped(below.answer, gap - 30, bold=below.lit)
        turn = x + across + 16
        points = (
            (x + across, middle),
            (turn, middle),
            (turn, _middle(box)),
            (box.x, _middle(box)),
        )
        label_y = _middle(box) - 6 - (len(label) - 1) * _LINE
        layout.lines.append(Line(points, label, turn + 7, label_y, below.lit))
    return own, max(bottom, own.y + own.height)


def wrapped(text: str, width: float, *, bold: bool = False) -> tuple[str, ...]:
    """A text in lines of at most that width, broken between words, or in a word too long."""
    lines: list[str] = []
    line = ""
    for piece in _pieces(text):
        if line and _text_width((line + piece).rstrip(), bold=bold) > width:
            lines.append(line.rstrip())
            line = ""
        rest = piece
        while _text_width(rest.rstrip(), bold=bold) > width and len(rest) > 1:
            cut = len(rest) - 1
            while cut > 1 and _text_width(rest[:cut], bold=bold) > width:
                cut -= 1
            lines.append(rest[:cut])
            rest = rest[cut:]
        line += rest
    return (*lines, line.rstrip()) if line.strip() or not lines else tuple(lines)


def _pieces(text: str) -> list[str]:
    """Where a line may end: after a space, and around wide characters, but not before a stop."""
    found: list[str] = []
    for character in text:
        joins = found and (
            character in " ，。、；：？！）》,.;:?!)"
            or not (_wide(character) or _wide(found[-1][-1]))
        )
        if found and joins and not (found[-1].endswith(" ") and character != " "):
            found[-1] += character
        else:
            found.append(character)
    return found


def _box(item: Item, x: float, y: float, width: float) -> Box:
    room = width - _PAD - (_DOT_ROOM if item.runner else _PAD)
    text = wrapped(item.text, room, bold=item.lit)
    height = len(text) * _LINE + 2 * _PAD - (_LINE - SIZE)
    return Box(x, y, width, height, text, item.runner, item.lit)


def _middle(box: Box) -> float:
    return box.y + box.height / 2


def _answers(item: Item) -> list[str]:
    return [item.answer, *(answer for each in item.below for answer in _answers(each))]


def _text_width(text: str, *, bold: bool) -> float:
    """About how wide a text is; fonts differ, so rather too wide."""
    ems = sum(1.0 if _wide(each) else _NARROW_EM.get(each, 0.6) for each in text)
    return ems * SIZE * (1.22 if bold else 1.0)


_NARROW_EM: Final = dict.fromkeys(" ijlftIr.,:;'|!()[]", 0.32) | dict.fromkeys("mwMW@%—", 0.96)


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in {"W", "F"}
