"""The history of a run in its report, in a real browser."""

from __future__ import annotations

import pytest
from history_sample import write_runs

from edgebench.reports.data import load_report_data
from edgebench.reports.html import render_page

pytestmark = pytest.mark.browser

STEP = [100.0] * 12 + [90.0] * 8


@pytest.fixture(scope="module")
def history_report(tmp_path_factory):
    """The report of the last of twenty runs, eight after a step of a tenth."""
    folder = write_runs(tmp_path_factory.mktemp("history"), STEP)
    file = folder / "report.html"
    file.write_text(render_page(load_report_data(folder)), encoding="utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [380, 1200])
def test_the_history_opens_quietly_and_fits(opened, history_report, width, scheme):
    """No message, nothing asked for, and no scrolling sideways, with its tables open too."""
    page, seen = opened(history_report, width=width, scheme=scheme)
    for details in page.locator("details").all():
        details.evaluate("element => element.open = true")
    assert page.locator("#history").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    allowed = [history_report.as_uri(), "data:,"]
    assert seen == {"errors": [], "requests": allowed[: len(seen["requests"])]}


def test_each_plot_has_words_and_figures_behind_it(opened, history_report):
    """Whoever sees no picture has its description, and the runs in a table."""
    page, _ = opened(history_report)
    plots = page.locator("#history svg[role=img]")
    tables = page.locator("#history table")
    assert (plots.count(), tables.count()) == (2, 2)
    for plot in plots.all():
        name = plot.get_attribute("aria-labelledby").split()
        said = [page.locator(f"[id='{each}']").text_content() for each in name]
        assert all(said)
        assert "20 runs" in " ".join(said)
    for details in page.locator("#history details").all():
        details.evaluate("element => element.open = true")
    rows = tables.first.locator("tbody tr")
    assert rows.count() == len(STEP)
    # The newest comes first; it is from after the step, the last from before.
    assert "90.0" in rows.first.inner_text()
    assert "100" in rows.last.inner_text()


def test_the_navigation_leads_to_it(opened, history_report):
    """A click in the contents brings the section into sight, with its step in words."""
    page, _ = opened(history_report)
    page.locator("a[href='#history']").first.click()
    box = page.locator("#history h2").bounding_box()
    assert 0 <= box["y"] < 800
    assert "−10.0 %" in page.locator("#history").inner_text()
