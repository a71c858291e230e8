"""The drawn decision trees in a real browser, whose letters are as wide as they are."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from edgebench.reports.languages import language
from edgebench.reports.selection.tree import load_trees, parse_tree
from edgebench.reports.selection.walk import Given, walk

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from edgebench.reports.selection.tree import Tree

pytestmark = pytest.mark.browser

STYLE = """
body { font-family: system-ui, sans-serif; }
.tree-wide { width: 900px; }
.tree-narrow { width: 340px; }
"""
LONG = ("W" * 200, "需要" * 90, '<b>"bold"</b> & `code` ' * 8)

MISPLACED = """
() => {
  const found = [];
  for (const svg of document.querySelectorAll("svg")) {
    const { width, height } = svg.viewBox.baseVal;
    const boxes = [...svg.querySelectorAll("rect")].map((rect) => rect.getBBox());
    for (const text of svg.querySelectorAll("text")) {
      const at = text.getBBox();
      const inside = (box) => at.x >= box.x && at.x < box.x + box.width
        && at.y + at.height / 2 > box.y && at.y + at.height / 2 < box.y + box.height;
      const box = boxes.find(inside) ?? { x: 0, width };
      if (at.x + at.width > box.x + box.width || at.y < -2 || at.y + at.height > height + 2) {
        found.push(text.textContent);
      }
    }
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Page:
    """An empty page; closed with its browser."""
    return browser.new_page(viewport={"width": 1000, "height": 800})


def said(**answers: str) -> dict[str, Given]:
    return {key: Given(value, "scenario") for key, value in answers.items()}


@pytest.mark.parametrize("tag", ["en", "zh"])
def test_every_text_stays_inside_of_its_box(page: Page, tag: str) -> None:
    """Bold or not, in both languages and at both widths, with 200 letters in a row too."""
    ways = [
        said(fixed_model="no", multimodal="yes", vision="yes", target="pc"),
        said(fixed_model="no", multimodal="no", enterprise_support="yes", target="board"),
        {},
    ]
    number = itertools.count()
    with language(tag):
        drawings = [
            walk(tree, way, name=f"t{next(number)}").svg for tree in load_trees() for way in ways
        ]
        drawings += [walk(long(text), said(q="a"), name=f"t{next(number)}").svg for text in LONG]
    page.set_content(f"<style>{STYLE}</style>{''.join(drawings)}")
    assert page.locator("svg").count() == 18
    assert page.evaluate(MISPLACED) == []


def long(text: str) -> Tree:
    """A tree with that text as its question and as an answer."""
    quoted = "'" + text.strip().replace("'", "''") + "'"
    answers = f"{{a: {{to: x, text: {quoted}}}, b: {{to: y}}}}"
    return parse_tree(
        f"schema_version: 1\nname: long\nversion: 1\ntitle: Long\nstart: q\n"
        f"questions: {{q: {{text: {quoted}, answers: {answers}}}}}\n"
        f"recommendations: {{x: {{runner: mnn}}, y: {{runner: {'z' * 80}}}}}\n",
        filename="f",
    )
