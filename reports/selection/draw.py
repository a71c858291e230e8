"""A decision tree drawn as SVG, with the way through it lit.

As the plots, it belongs in a page that is read in light and in dark and allows no style of an
element's own: colours are the page's CSS variables, in attributes. Two drawings are made. The wide
one runs from left to right, the narrow one down, each answer below its question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from edgebench.reports.colours import KNOWN
from edgebench.reports.framework_choice import framework_name
from edgebench.reports.languages import _
from edgebench.reports.selection.layout import SIZE, lay_out_down, lay_out_right
from edgebench.reports.selection.tree_model import answer_words
from edgebench.reports.selection.unfolded import unfolded
from edgebench.reports.text import clean

if TYPE_CHECKING:
    from edgebench.reports.selection.layout import Box, Layout, Line
    from edgebench.reports.selection.tree_model import Tree
    from edgebench.reports.selection.walk import Way

_LIT: Final = {"stroke": "var(--accent)", "stroke-width": "3"}
_UNLIT: Final = {"stroke": "var(--muted)", "stroke-width": "1"}
_DOT: Final = 5


def draw(tree: Tree, way: Way, *, name: str) -> str:
    """The tree as two ``<svg>`` elements, of the classes ``tree-wide`` and ``tree-narrow``.

    Args:
        tree: the tree.
        way: what is lit in it: thicker, bold, and in the accent colour.
        name: unique in the page, of letters, digits and hyphens; all ids begin so.
    """
    root = unfolded(tree, way)
    title, description = tree.title.words, _described(tree, way)
    layouts = {"wide": lay_out_right(root), "narrow": lay_out_down(root)}
    return "".join(
        _svg(layout, f"{name}-{key}", f"tree-{key}", title, description)
        for key, layout in layouts.items()
    )


def _described(tree: Tree, way: Way) -> str:
    """The way in words, for those who can't see it."""
    parts = [
        _(
            "{question} {answer}.",
            question=tree.questions[name].text.words,
            answer=answer_words(tree.questions[name], key),
        )
        for name, key in way.taken
    ]
    if way.ended:
        runner = tree.recommendations[way.at].runner
        parts.append(_("Recommended: {framework}.", framework=framework_name(runner)))
    else:
        parts.append(_("Not answered: {question}", question=tree.questions[way.at].text.words))
    return " ".join(parts)


def _svg(layout: Layout, name: str, css_class: str, title: str, description: str) -> str:
    root = ET.Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": css_class,
            "viewBox": f"0 0 {_number(layout.width)} {_number(layout.height)}",
            "role": "img",
            "aria-labelledby": f"{name}-title {name}-desc",
            "font-size": str(SIZE),
        },
    )
    for tag, text in (("title", title), ("desc", description)):
        element = ET.SubElement(root, tag, {"id": f"{name}-{tag}"})
        element.text = clean(text)
    # What is lit comes last, over the rest.
    for line in sorted(layout.lines, key=lambda each: each.lit):
        _draw_line(root, line)
    for box in layout.boxes:
        _draw_box(root, box)
    return ET.tostring(root, encoding="unicode")


def _draw_line(root: ET.Element, line: Line) -> None:
    points = " L".join(f"{_number(x)},{_number(y)}" for x, y in line.points)
    look = _LIT if line.lit else _UNLIT
    ET.SubElement(root, "path", {"d": f"M{points}", "fill": "none", **look})
    _draw_text(root, line.label, line.label_x, line.label_y, lit=line.lit, muted=not line.lit)


def _draw_box(root: ET.Element, box: Box) -> None:
    shape = {
        "x": _number(box.x),
        "y": _number(box.y),
        "width": _number(box.width),
        "height": _number(box.height),
        "rx": _number(box.height / 2 if box.end and len(box.text) == 1 else 6),
        "fill": "var(--surface)",
    }
    ET.SubElement(root, "rect", {**shape, **(_LIT if box.lit else _UNLIT)})
    if box.end:
        dot = {"cx": _number(box.x + 14), "cy": _number(box.y + box.height / 2), "r": str(_DOT)}
        place = KNOWN.get(box.runner)
        ET.SubElement(
            root, "circle", {**dot, "fill": f"var(--s{place})" if place else "var(--bar)"}
        )
    _draw_text(root, box.text, box.text_x, box.text_y, lit=box.lit, muted=False)


def _draw_text(
    root: ET.Element, lines: tuple[str, ...], x: float, y: float, *, lit: bool, muted: bool
) -> None:
    look = {"fill": "var(--muted)" if muted else "var(--ink)"}
    if lit:
        look["font-weight"] = "600"
    for place, line in enumerate(lines):
        at = {"x": _number(x), "y": _number(y + place * SIZE * 1.3)}
        ET.SubElement(root, "text", {**at, **look}).text = line


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
