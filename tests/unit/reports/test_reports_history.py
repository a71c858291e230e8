"""A report's history: the runs before it, joined only where they compare."""

from __future__ import annotations

import pytest
from history_sample import change, write_run, write_runs
from markupsafe import escape

from edgebench.reports.data import load_report_data
from edgebench.reports.history import history_view
from edgebench.reports.html import render_page
from edgebench.reports.languages import language
from edgebench.reports.markdown import render_text

STEP = [100.0] * 12 + [90.0] * 8


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """The last of twenty runs, after a step."""
    return load_report_data(write_runs(tmp_path_factory.mktemp("step"), STEP))


def test_a_run_with_earlier_ones_has_a_history(stepped):
    """Plots of decode rate and TTFT, a sentence for each step, the figures behind."""
    view = history_view(stepped)
    assert [plot.title for plot in view.plots] == [
        "w: decode rate over runs",
        "w: time to first token over runs",
    ]
    assert len(view.sentences) == 2
    assert "This run and 19 runs before it" in view.intro
    assert [len(table.rows) for table in view.tables] == [20, 20]
    assert view.tables[0].rows[0].values[0].text.startswith("90.0")


def test_the_page_and_the_markdown_have_the_section(stepped):
    """With a heading, an entry in the navigation, and a description of each picture."""
    page = render_page(stepped)
    assert '<section id="history"' in page
    assert '<a href="#history">' in page
    assert 'id="history-0-decode-rate-desc"' in page
    assert "−10.0 %" in page
    text = render_text(stepped)
    assert "## History" in text
    assert "−10.0 %" in text


def test_chinese_has_it_too(stepped):
    """In words of its own."""
    with language("zh"):
        assert "## 历史" in render_text(stepped)


def test_fewer_than_three_runs_have_none(tmp_path):
    """Two runs are a comparison, and no history."""
    data = load_report_data(write_runs(tmp_path, [1.0, 2.0]))
    assert history_view(data) is None
    assert "## History" not in render_text(data)
    assert 'id="history"' not in render_page(data)


def test_runs_that_do_not_compare_are_no_history(tmp_path):
    """Another machine, another scenario, quick looks and damaged records are left out."""
    last = write_runs(tmp_path, [1.0, 2.0])
    other = write_run(tmp_path, 0, 5.0)
    record = {"machine": load_report_data(last).record.machine.model_dump()}
    change(other, machine=record["machine"] | {"fingerprint": "other"})
    write_run(tmp_path, 5, 5.0, quick=True)
    (write_run(tmp_path, 6, 5.0) / "run.json").write_text("{", encoding="utf-8")
    assert history_view(load_report_data(last)) is None


def test_a_quick_look_has_none(tmp_path):
    """It is no measurement that a trend could end with."""
    write_runs(tmp_path, [1.0, 1.0, 1.0])
    quick = write_run(tmp_path, 3, 1.0, quick=True, trials=True)
    assert history_view(load_report_data(quick)) is None


def test_later_runs_are_not_in_an_earlier_runs_report(tmp_path):
    """A report that is written again says what it said."""
    for number in range(6):
        write_run(tmp_path, number, 1.0, trials=True)
    view = history_view(load_report_data(tmp_path / "made-up" / "run-003"))
    assert "This run and 3 runs before it" in view.intro


def test_few_runs_say_that_nothing_can_be_said(tmp_path):
    """Three runs are drawn, and no change is told."""
    view = history_view(load_report_data(write_runs(tmp_path, [1.0, 1.2, 0.9])))
    assert view.sentences == ("Of fewer than 10 runs, no change can be told from noise.",)


def test_hostile_names_do_nothing(tmp_path):
    """A branch, a commit or a variant from a file is text."""
    name = '"><script>x()</script>'
    folder = write_runs(tmp_path, STEP, variant=name)
    page = render_page(load_report_data(folder))
    assert name not in page
    assert str(escape(name)) in page
