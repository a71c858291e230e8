"""The report for everyone: axe-core's rules, dark, print, phone and Chinese."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.browser

GRAVE = {"serious", "critical"}


def faults(page):
    """What axe-core finds that is serious or worse, with where it is."""
    found = Axe().run(page).response["violations"]
    return [
        (each["id"], [node["target"] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in GRAVE
    ]


@pytest.mark.parametrize(
    ("kind", "width", "scheme"),
    [
        ("quality_report", 1400, "light"),
        ("quality_report", 1200, "dark"),
        ("report", 380, "light"),
        ("report", 380, "dark"),
        ("chinese_report", 1400, "light"),
        ("hostile_report", 1200, "light"),
    ],
)
def test_axe_finds_no_serious_fault(opened, request, kind, width, scheme):
    """Contrast, names, roles, structure: nothing serious on the whole page."""
    page, seen = opened(request.getfixturevalue(kind), width=width, scheme=scheme)
    assert faults(page) == []
    assert seen["errors"] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault_in_what_opens(opened, report, scheme):
    """The dialog with a failure, then the menu of columns and all that was folded."""
    page, _ = opened(report, scheme=scheme)
    page.locator("#comparison table").nth(1).locator("tr.failed .drill").click()
    page.locator("dialog summary").first.evaluate_all("each => each.forEach(one => one.click())")
    assert faults(page) == []
    page.keyboard.press("Escape")
    for folded in page.locator("details").all():
        folded.evaluate("element => element.open = true")
    assert faults(page) == []


def test_axe_can_find_a_fault(opened, report):
    """The rules do run on the page: a picture without a name is found."""
    page, _ = opened(report)
    page.evaluate("document.querySelector('#pictures svg').replaceWith(new Image())")
    assert "image-alt" in [rule for rule, _ in faults(page)]


def test_print_shows_the_tables_and_no_tools(opened, quality_report):
    """On paper: light colours, whole tables, no buttons, no navigation."""
    page, _ = opened(quality_report, scheme="dark")
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator(".tools").first.is_hidden()
    assert page.locator("#comparison table").first.is_visible()
    assert page.locator("#recommendation svg").first.is_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    # A4 without its margins, in CSS pixels.
    page.set_viewport_size({"width": 718, "height": 1000})
    table = page.locator("#comparison .scroll").first
    assert table.evaluate("each => each.scrollWidth <= each.clientWidth + 1")


def test_the_sections_are_listed_and_the_place_is_marked(opened, quality_report):
    """Every section has a link, and a wide screen shows where the reader is."""
    page, _ = opened(quality_report, width=1400)
    ids = page.locator("main > section").evaluate_all("all => all.map(each => each.id)")
    links = page.locator("nav a").evaluate_all("all => all.map(each => each.hash.slice(1))")
    assert links == ids
    page.locator("nav a[href='#quality']").click()
    # By a locator: the page's own rules forbid a script that waits in it.
    page.locator("nav a[aria-current][href='#quality']").wait_for()
    assert page.locator("nav [aria-current]").count() == 1
    assert page.locator("nav").bounding_box()["y"] >= 0


def test_the_tree_is_drawn_for_the_screen(opened, report):
    """A phone gets the tree that runs down, a wide screen the one that runs to the right."""
    for width, shown, other in ((380, "narrow", "wide"), (1400, "wide", "narrow")):
        page, _ = opened(report, width=width)
        tree = page.locator("#recommendation .tree").first
        assert tree.locator(f".tree-{shown}").is_visible()
        assert tree.locator(f".tree-{other}").is_hidden()


def test_the_chinese_page_works_like_the_english_one(opened, chinese_report):
    """Filter, sort and dialog speak Chinese, and the page asks for nothing."""
    page, seen = opened(chinese_report, width=1400)
    block = page.locator("#quantization .table").first
    block.get_by_role("searchbox").fill("mnn")
    assert re.fullmatch(r"3 行，共 14 行", block.get_by_role("status").inner_text())
    block.locator("tbody tr:visible .drill").first.click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("button", name="关闭").is_visible()
    assert "样本" in dialog.locator(".drill-samples h3").inner_text()
    assert seen["errors"] == []
    assert {url.split(":")[0] for url in seen["requests"]} <= {"file", "data"}
