"""The HTML report in a real browser."""

from __future__ import annotations

from itertools import combinations

import pytest

pytestmark = pytest.mark.browser


def first_column(page):
    rows = page.locator("#comparison table").first.locator("tbody th")
    return [text.split(" threads")[0] for text in rows.all_inner_texts()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1200])
def test_opens_quietly_and_alone(opened, report, width, scheme):
    """The page has no error and asks for nothing but itself."""
    _, seen = opened(report, width=width, scheme=scheme)
    assert seen == {"errors": [], "requests": [report.as_uri(), "data:,"][: len(seen["requests"])]}


def test_the_page_can_reach_nothing(opened, report):
    """Even a script that got in could not call out: the browser enforces the policy."""
    page, _ = opened(report)
    outcome = page.evaluate(
        "fetch('http://127.0.0.1:9/').then(() => 'reached', (error) => error.message)"
    )
    assert outcome == "Failed to fetch"
    violation = page.evaluate("""
        new Promise((resolve) => {
          document.addEventListener('securitypolicyviolation',
                                    (event) => resolve(event.effectiveDirective));
          const script = document.createElement('script');
          script.textContent = 'window.ran = true';
          document.body.append(script);
        })""")
    assert violation == "script-src-elem"
    assert page.evaluate("window.ran") is None


@pytest.mark.parametrize("width", [320, 380, 800, 1200])
@pytest.mark.parametrize("kind", ["report", "hostile_report", "quality_report"])
def test_nothing_is_wider_than_the_screen(opened, request, kind, width):
    """A phone shows the page without scrolling sideways, whatever the names are."""
    page, _ = opened(request.getfixturevalue(kind), width=width)
    for details in page.locator("details").all():
        details.evaluate("element => element.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_click_sorts_and_a_second_click_turns(opened, report):
    """The best comes first, then last; the head says which way."""
    page, _ = opened(report)
    head = page.locator("#comparison table").first.locator("thead th").nth(2)  # TTFT
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    order = first_column(page)
    assert order[0] == "llama.cpp Q4_0"
    assert order[-1] == "llama.cpp Q8_0"
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert first_column(page) == order[::-1]


def test_the_keyboard_sorts(opened, report):
    """A head can be reached with Tab and sorts on Enter and on the space bar."""
    page, _ = opened(report)
    heads = page.locator("#comparison table").first.locator("thead th")
    page.locator("#comparison .sorter").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert heads.nth(1).get_attribute("aria-sort") == "descending"  # fastest decode first
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert heads.nth(2).get_attribute("aria-sort") == "ascending"
    assert heads.nth(1).get_attribute("aria-sort") is None
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_what_was_not_measured_sorts_last_both_ways(opened, report):
    """A variant that failed is never the first of a sorted column."""
    page, _ = opened(report)
    table = page.locator("#comparison table").nth(1)
    button = table.locator("thead button").nth(1)
    for _ in range(2):
        button.click()
        last = table.locator("tbody tr").last.locator("th").inner_text()
        assert last.startswith("llama.cpp F16")


def test_a_phone_can_sort_too(opened, report):
    """Where rows are cards, the heads stay as buttons."""
    page, _ = opened(report, width=380)
    button = page.locator("#comparison table").first.get_by_role("button", name="TTFT")
    assert button.is_visible()
    button.click()
    assert first_column(page)[0] == "llama.cpp Q4_0"


def test_without_script_it_is_a_plain_table(opened, report):
    """All rows are there in the order of the run, and no button that does nothing."""
    page, seen = opened(report, javascript=False)
    assert first_column(page)[0] == "llama.cpp source"
    assert page.locator("main button, main input").count() == 0
    assert seen["errors"] == []


def test_cards_are_still_a_table_for_a_screen_reader(opened, report):
    """Laying rows out as cards does not take the roles away."""
    page, _ = opened(report, width=380)
    tree = page.locator("#comparison table").first.aria_snapshot()
    assert "columnheader" in tree
    assert "rowheader" in tree


def test_the_first_tab_skips_to_the_report(opened, report):
    """A keyboard user need not walk through the links above."""
    page, _ = opened(report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_dark_is_dark(opened, report):
    """The page follows the system's colour scheme."""
    colours = {
        scheme: opened(report, scheme=scheme)[0].evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in ("light", "dark")
    }
    assert colours == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}


def test_pictures_have_the_pages_colours(opened, report):
    """A bar of llama.cpp has the colour that its mark in the table has, in both schemes."""
    seen = set()
    for scheme in ("light", "dark"):
        page, _ = opened(report, scheme=scheme)
        fills = page.evaluate(
            "[...document.querySelectorAll('#pictures path')].map(p => getComputedStyle(p).fill)"
        )
        mark = page.locator("#comparison .mark.s1").first
        colour = mark.evaluate("each => getComputedStyle(each).backgroundColor")
        assert colour in fills
        seen.add(colour)
    assert len(seen) == 2


@pytest.mark.parametrize("width", [320, 1200])
def test_no_text_of_a_plot_of_quality_covers_another(opened, quality_report, width):
    """In the browser's own font too: numbers and ticks are apart, at the width of a phone too."""
    page, seen = opened(quality_report, width=width)
    assert seen["errors"] == []
    plots = page.locator("#fronts figure > svg")
    assert plots.count() == 2
    for plot in plots.all():
        boxes = plot.evaluate(
            "svg => [...svg.querySelectorAll('text')].map(each => {"
            " const box = each.getBBox(), at = each.getCTM();"
            " const corner = new DOMPoint(box.x, box.y).matrixTransform(at);"
            " return [each.textContent, corner.x, corner.y,"
            "         box.width * at.a, box.height * at.d]; })"
        )
        assert len(boxes) > 14
        assert min(x for _, x, *_ in boxes) >= 0
        # A line's box is higher than its digits.
        shrunk = [(text, x, y + h * 0.2, x + w, y + h * 0.8) for text, x, y, w, h in boxes]
        for (one, *a), (other, *b) in combinations(shrunk, 2):
            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
            assert apart, (one, other)


@pytest.mark.parametrize("width", [320, 380])
@pytest.mark.parametrize("section", ["quality", "quantization"])
def test_cards_of_quality_show_all_of_their_texts(opened, quality_report, section, width):
    """On a phone no table scrolls sideways, and no label is longer than its card is wide."""
    page, _ = opened(quality_report, width=width)
    tables = page.locator(f"#{section} .scroll")
    assert tables.count() > 0
    for table in tables.all():
        assert table.evaluate("each => each.scrollWidth <= each.clientWidth")
    cells = page.locator(f"#{section} tbody td").evaluate_all(
        "cells => cells.map(each => [each.dataset.label, each.clientWidth,"
        " parseFloat(getComputedStyle(each, '::before').width)])"
    )
    assert len(cells) > 14
    assert [label for label, room, taken in cells if not label or not 0 < taken <= room] == []


def test_the_table_of_quality_sorts(opened, quality_report):
    """A click on PPL brings the best perplexity up, and a variant's name leads its row."""
    page, _ = opened(quality_report)
    table = page.locator("#quality table").first
    table.get_by_role("button", name="PPL", exact=True).click()
    values = [
        float(text.split()[0])
        for text in table.locator("tbody td:nth-child(2) .value").all_inner_texts()
    ]
    assert len(values) == 14
    assert values == sorted(values)


def test_hostile_names_execute_nothing(opened, hostile_report):
    """Markup in names, prompts, notes and logs makes no element, no request and no error."""
    page, seen = opened(hostile_report)
    assert seen["errors"] == []
    assert {url.split(":")[0] for url in seen["requests"]} <= {"file", "data"}
    assert len([url for url in seen["requests"] if url.startswith("file:")]) == 1
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 3
    assert "onerror=pwned()" in page.locator("h1").inner_text()
    page.locator("#comparison .sorter").nth(1).click()
    assert seen["errors"] == []
