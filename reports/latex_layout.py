"""How wide a table is in LaTeX, and how it is made to fit a page at a size that can be read.

Widths are in halves of an em: a digit or a letter takes one, some less or more, a Chinese character
two. Nothing is measured: the page is that of the class article at 10 pt, and a paper with wider
lines has room to spare.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_WIDE = "WF"
_NARROW = " .,:;|!'`()[]{}/ijlft-\N{NARROW NO-BREAK SPACE}"
_BROAD = "mw@%–—…×+=<>≤≥★☆→~"
_PIECES = re.compile(r"\s+")
_LONGEST_PIECE = 20.0
_NARROWEST = 12.0
_WIDEST = 46.0
_WHITE = 0.8
"""Of what else is between columns: rounding, and letters that are wider than most."""


@dataclass(frozen=True, slots=True)
class Page:
    """A size of type on a page, upright or on its side.

    Attributes:
        font: the command that sets it.
        space_pt: on each side of a column.
        half_em_pt: half an em of that size.
        width_pt: of a line.
        on_its_side: whether the page is turned.
    """

    font: str
    space_pt: float
    half_em_pt: float
    width_pt: float
    on_its_side: bool = False

    @property
    def between(self) -> float:
        """What one more column takes besides its text."""
        return 2 * self.space_pt / self.half_em_pt + _WHITE

    @property
    def room(self) -> float:
        """What fits on a line."""
        return self.width_pt / self.half_em_pt


PAGES = (
    Page(r"\small", 3.0, 4.6, 345.0),
    Page(r"\footnotesize", 2.0, 4.1, 345.0),
    Page(r"\small", 3.0, 4.6, 550.0, on_its_side=True),
    Page(r"\footnotesize", 2.0, 4.1, 550.0, on_its_side=True),
)
"""What is tried, in this order; nothing is set smaller than the last."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column with its texts.

    Attributes:
        head: its heading.
        side: where its values stand; ``p`` for texts that break into lines.
        cells: the LaTeX of each row.
        texts: what it shows of each row, without a second line in small type.
        natural: the width of its longest text in one line.
        least: the least width that it can have, which for all but texts is the same.
    """

    head: str
    side: Literal["l", "r", "p"]
    cells: tuple[str, ...]
    texts: tuple[str, ...]
    natural: float
    least: float


@dataclass(frozen=True, slots=True)
class Sheet:
    """Columns that stand side by side on one page.

    Attributes:
        page: of which kind.
        fields: the first one names the rows.
        widths: of each.
    """

    page: Page
    fields: tuple[Field, ...]
    widths: tuple[float, ...]


def width(text: str) -> float:
    """How wide a text is in one line."""
    return sum(map(_width, text))


def _width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in _WIDE:
        return 2.0
    if letter in _NARROW:
        return 0.6
    return 1.6 if letter in _BROAD or letter.isupper() else 1.0


def pieces(text: str) -> Iterator[str]:
    """A text, broken where a line may end: at white space and around Chinese characters."""
    for word in _PIECES.split(text.strip()):
        run = ""
        for each in word:
            if unicodedata.east_asian_width(each) in _WIDE:
                if run:
                    yield run
                yield each
                run = ""
            else:
                run += each
        if run:
            yield run


def lines(text: str, most: float) -> list[str]:
    """A text as lines that are no wider than `most`, but for a piece that is wider by itself."""
    found: list[str] = []
    for word in _PIECES.split(text.strip()):
        if found and width(found[-1]) + 1 + width(word) <= most:
            found[-1] += f" {word}"
            continue
        line = ""
        for piece in pieces(word):
            if line and width(line) + width(piece) > most:
                found.append(line)
                line = ""
            line += piece
        found.append(line)
    return found


def longest_piece(text: str) -> float:
    """The width below which a text can't be broken; of very long pieces, what is cut off."""
    return min(max(map(width, pieces(text)), default=0.0), _LONGEST_PIECE)


def chunks(word: str) -> list[str]:
    """A word; one that no column should be as wide as, in parts."""
    most = int(_LONGEST_PIECE)
    return [word[place : place + most] for place in range(0, len(word), most)] or [""]


def text_field(head: str, texts: Sequence[str], cells: Sequence[str]) -> Field:
    """A column of texts, which stay in one line where they are short, and break where not."""
    natural = max(map(width, texts), default=0.0)
    if natural > _NARROWEST:
        return paragraphs_field(head, texts, cells)
    wide = max(natural, *map(longest_piece, (head, *texts)))
    return Field(head, "l", tuple(cells), tuple(texts), wide, wide)


def paragraphs_field(head: str, texts: Sequence[str], cells: Sequence[str]) -> Field:
    """A column of texts that may break into lines."""
    natural = max(map(width, texts), default=0.0)
    least = max(_NARROWEST, *(longest_piece(each) for each in (head, *texts)))
    wide = min(max(natural, least), _WIDEST)
    return Field(head, "p", tuple(cells), tuple(texts), wide, least)


def height(sheet: Sheet) -> int:
    """How many lines the rows take, with the head."""
    rows = len(sheet.fields[0].cells)
    return max(len(lines(each.head, wide)) for each, wide in _columns(sheet)) + sum(
        max(_high(each, row, wide) for each, wide in _columns(sheet)) for row in range(rows)
    )


def _columns(sheet: Sheet) -> list[tuple[Field, float]]:
    return list(zip(sheet.fields, sheet.widths, strict=True))


def _high(field: Field, row: int, wide: float) -> int:
    second = r"\scriptsize" in field.cells[row]
    return (len(lines(field.texts[row], wide)) if field.side == "p" else 1) + second


def sheets(fields: Sequence[Field]) -> tuple[Sheet, ...]:
    """The columns on as few pages as hold them, the first column on each."""
    for page in PAGES:
        if _needed(fields, page) <= page.room:
            return (_sheet(fields, page),)
    first, *others = fields
    page = PAGES[-1]
    groups: list[list[Field]] = [[first]]
    for each in others:
        if len(groups[-1]) > 1 and _needed([*groups[-1], each], page) > page.room:
            groups.append([first])
        groups[-1].append(each)
    return tuple(_sheet(group, page) for group in groups)


def _needed(fields: Sequence[Field], page: Page) -> float:
    return sum(each.least + page.between for each in fields)


def _sheet(fields: Sequence[Field], page: Page) -> Sheet:
    """The columns with the room that is left given to those that could use it, evenly."""
    widths = [each.least for each in fields]
    left = page.room - _needed(fields, page)
    while left > 1:
        wanting = [n for n, each in enumerate(fields) if each.natural - widths[n] > 1 / 2]
        if not wanting:
            break
        share = left / len(wanting)
        for place in wanting:
            more = min(share, fields[place].natural - widths[place])
            widths[place] += more
            left -= more
    # Rounded up where nothing is broken, for what is as wide as its column still fits.
    rounded = [
        math.floor(wide) if each.side == "p" and wide < each.natural else math.ceil(wide)
        for each, wide in zip(fields, widths, strict=True)
    ]
    return Sheet(page, tuple(fields), tuple(map(float, rounded)))
