"""From a matplotlib figure to an SVG that belongs in a page.

The page may hold many of them, is read in light and in dark, by screen readers too, and allows
no style of an element's own. So ids are made unique, colours become the page's CSS variables,
style attributes become plain attributes, and a title and a description are put in.
"""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import matplotlib as mpl

from edgebench.reports.text import clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_LONG_DECIMAL = re.compile(r"(\d+\.\d\d)\d+")
_REFERENCE = re.compile(r"#([\w.-]+)")
_FONT_SIZE = re.compile(r"([\d.]+)px")
_TO_ATTRIBUTE = frozenset(
    {
        "fill",
        "fill-opacity",
        "font-weight",
        "opacity",
        "stroke",
        "stroke-dasharray",
        "stroke-dashoffset",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-opacity",
        "stroke-width",
        "text-anchor",
    }
)

INK = "#010203"
MUTED = "#020304"
GRID = "#030405"
SURFACE = "#040506"
SERIES = tuple(f"#0a0b{number:02x}" for number in range(1, 9))
"""Colours to draw with; each stands for a variable of the page's style sheet."""

_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    SURFACE: "var(--surface)",
    **{colour: f"var(--s{number})" for number, colour in enumerate(SERIES, start=1)},
}

DRAWING: dict[str, object] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 10.0,
    "text.color": INK,
    "axes.linewidth": 0.8,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "lines.solid_capstyle": "butt",
    # Dashes are given in pixels, so that a legend can show the same.
    "lines.scale_dashes": False,
}
"""Settings under which figures are drawn and rendered: ``with matplotlib.rc_context(DRAWING)``."""


def to_svg(figure: Figure, *, name: str, title: str, description: str) -> str:
    """Render a figure as inline SVG.

    Args:
        figure: drawn with the colours of this module, at 72 dots per inch.
        name: unique in the page, of letters, digits and hyphens.
        title: what the figure shows.
        description: what it says, for those who can't see it.

    Returns:
        An ``<svg>`` element that scales to the width it is given.
    """
    buffer = io.StringIO()
    with mpl.rc_context({**DRAWING, "svg.hashsalt": name}), warnings.catch_warnings():
        # The page's own fonts show the text; that matplotlib's lack a character is no matter.
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    root = ET.fromstring(buffer.getvalue())  # noqa: S314 - written by matplotlib just now
    _drop(root)
    for element in root.iter():
        _plain_attributes(element)
    _unique_ids(root, name)
    _describe(root, name, title, description)
    return _written(root)


def _drop(root: ET.Element) -> None:
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"}:
                parent.remove(child)


def _plain_attributes(element: ET.Element) -> None:
    for declaration in element.attrib.pop("style", "").split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name in _TO_ATTRIBUTE:
            element.set(name, value)
        elif name in {"font", "font-size"}:
            size = _FONT_SIZE.search(value)
            if size:
                element.set("font-size", size[1])
    for name in ("fill", "stroke"):
        colour = element.get(name)
        if colour in _VARIABLES:
            element.set(name, _VARIABLES[colour])
    reference = element.attrib.pop(_XLINK, None)
    if reference is not None:
        element.set("href", reference)


def _unique_ids(root: ET.Element, name: str) -> None:
    used = {
        found
        for element in root.iter()
        for key in ("href", "clip-path")
        for found in _REFERENCE.findall(element.get(key, ""))
    }
    for element in root.iter():
        own = element.get("id")
        if own in used:
            element.set("id", f"{name}-{own}")
        elif own is not None:
            del element.attrib["id"]
        for key in ("href", "clip-path"):
            value = element.get(key)
            if value is not None:
                element.set(key, _REFERENCE.sub(rf"#{name}-\1", value))


def _describe(root: ET.Element, name: str, title: str, description: str) -> None:
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ET.Element(f"{{{_SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = clean(text)
        root.insert(place, element)


def _written(root: ET.Element) -> str:
    for element in root.iter():
        element.tag = element.tag.removeprefix(f"{{{_SVG}}}")
        for key, value in element.attrib.items():
            # Places only: what a reader sees or hears keeps its digits.
            element.set(key, _LONG_DECIMAL.sub(r"\1", value))
    root.set("xmlns", _SVG)
    return ET.tostring(root, encoding="unicode")
