"""Tables of hundreds of rows: the first are elements, the rest become some when they are needed."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from edgebench.harness.results.run import Run
from edgebench.reports.data import build_report_data
from edgebench.reports.html import render_page

pytestmark = pytest.mark.browser

ROWS = 300


@pytest.fixture(scope="module")
def long_report(sample_run, tmp_path_factory):
    """Variant 7 * n modulo 300 decodes at n + 1 tokens/s; one name holds markup."""
    names = {at: f"V{at}" for at in range(ROWS)}
    names[250] = 'V250 <b>"&amp;"</b>'
    values = {name: {"decode_rate": [(43 * at) % ROWS + 1.0]} for at, name in names.items()}
    record, trials = sample_run.handmade(values)
    file = tmp_path_factory.mktemp("long") / "report.html"
    page = render_page(build_report_data(Run(Path("made-up"), record, tuple(trials))))
    file.write_text(page, encoding="utf-8")
    return file


def comparison(page):
    return page.locator("#comparison .table").first


def test_the_first_rows_are_shown_and_the_others_are_offered(opened, long_report):
    """50 of 300 rows, and a button that shows all."""
    page, seen = opened(long_report)
    block = comparison(page)
    assert block.locator("tbody tr").count() == 50
    assert "The first 50 of 300 rows are shown." in block.locator(".tools").text_content()
    block.get_by_role("button", name="Show all").click()
    assert block.locator("tbody tr").count() == ROWS
    assert seen["errors"] == []


def test_sorting_takes_in_the_rows_that_are_not_shown(opened, long_report):
    """The fastest of all comes first, and then the slowest, wherever they were."""
    page, _ = opened(long_report)
    block = comparison(page)
    button = block.locator("thead").get_by_role("button", name="decode")
    for expected in ([300.0, 299.0, 298.0], [1.0, 2.0, 3.0]):
        button.click()
        shown = block.locator("tbody tr td:nth-child(2) .value")
        first = shown.evaluate_all("all => all.slice(0, 3).map(each => each.firstChild.data)")
        assert [float(each) for each in first] == expected
        assert shown.count() == 50


def test_a_filter_finds_a_row_that_is_not_shown(opened, long_report):
    """By a name with markup, which is shown as text; its samples open as any other's."""
    page, seen = opened(long_report)
    block = comparison(page)
    block.get_by_role("searchbox").fill('<b>"&amp;"')
    assert block.get_by_role("status").inner_text() == "1 of 300 rows"
    block.get_by_role("link", name='V250 <b>"&amp;"</b>').click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading", level=2).inner_text() == 'V250 <b>"&amp;"</b>'
    page.keyboard.press("Escape")
    block.locator("tbody td[data-at$='decode_rate']").first.click()
    assert dialog.get_by_role("heading", name="Decode rate").is_visible()
    assert seen["errors"] == []


def test_a_copy_has_all_rows(opened, long_report):
    """What is copied is the table, not the part of it that has elements."""
    page, _ = opened(long_report)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block = comparison(page)
    block.locator(".copies button", has_text="CSV").click()
    block.locator(".status", has_text="300 rows").wait_for()
    rows = list(csv.reader(io.StringIO(page.evaluate("navigator.clipboard.readText()"))))
    assert len(rows) == ROWS + 1
    assert {float(row[1]) for row in rows[1:]} == {float(at + 1) for at in range(ROWS)}


def test_rows_that_come_later_are_like_the_first(opened, long_report):
    """Roles and labels are there, and a column that was hidden before stays hidden."""
    page, _ = opened(long_report, width=380)
    block = comparison(page)
    block.locator("summary", has_text="Columns").click()
    block.get_by_role("checkbox", name="Prefill rate").uncheck()
    block.get_by_role("button", name="Show all").click()
    last = block.locator("tbody tr").last
    attributes = "all => all.map(each => [each.role, each.dataset.label, each.hidden])"
    first = block.locator("tbody tr").first
    assert last.locator("td").evaluate_all(attributes) == first.locator("td").evaluate_all(
        attributes
    )
    assert last.get_attribute("role") == "row"
    assert sum(last.locator("td").evaluate_all("all => all.map(each => each.hidden)")) == 1


def test_on_paper_every_row_is_there(opened, long_report):
    """Printing shows all rows, and the screen is afterwards as it was."""
    page, seen = opened(long_report)
    rows = comparison(page).locator("tbody tr")
    folded = page.locator("details.print:not([open])")
    before = folded.count()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert rows.count() == ROWS
    assert folded.count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert rows.count() == 50
    assert folded.count() == before > 0
    page.emulate_media(media="print")
    assert comparison(page).locator(".cut").count() == 0
    assert seen["errors"] == []


def test_paper_says_which_rows_it_lacks(opened, long_report):
    """A table that was filtered prints what is shown, and how many rows that is."""
    page, _ = opened(long_report)
    block = comparison(page)
    block.get_by_role("searchbox").fill("V29")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    # V29 and V290 to V299
    assert block.locator(".cut").inner_text() == "11 of 300 rows"
    assert block.locator("tbody tr").count() == 11
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert block.locator(".cut").count() == 0


def test_without_script_every_row_is_there(opened, long_report):
    """The rest stands as a second table below the first."""
    page, _ = opened(long_report, javascript=False)
    assert comparison(page).locator("tbody tr").count() == ROWS
