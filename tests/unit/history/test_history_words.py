"""What is said of a series: numbers, places, and who is not to blame."""

from __future__ import annotations

import json

import numpy as np
import pytest
from history_sample import change, sha, write_run

from edgebench.harness.history.changes import find
from edgebench.harness.history.index import Index
from edgebench.harness.history.model import Selection
from edgebench.reports.history_terminal import one_series, overview, sparkline
from edgebench.reports.history_words import sentences
from edgebench.reports.languages import language


@pytest.fixture
def told(tmp_path):
    """Makes a history of these rates and gives the series with its findings."""

    def make(rates, edit=None, metric="decode_rate", **changes):
        for number, rate in enumerate(rates):
            folder = write_run(tmp_path, number, rate, **changes)
            if edit is not None:
                record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
                edit(number, record)
                change(folder, **record)
        with Index(tmp_path) as index:
            index.update()
            (series,) = index.series(Selection(metrics=(metric,)))
        return series, find([point.median for point in series.points])

    return make


STEP = [100.0] * 12 + [90.0] * 8


def test_a_step_names_its_size_its_day_and_its_commits(told):
    """From the last commit before to the first one after."""
    (text,) = sentences(*told(STEP))
    assert "−10.0 %" in text
    assert "from 100 tokens/s to 90.0 tokens/s, since the run of 2025-01-26; worse." in text
    assert f"after commit {sha(11)[:10]}, and by commit {sha(12)[:10]}" in text


def test_less_time_is_better(told):
    """The same step upwards in the rate, seen in the time to the first token."""
    (text,) = sentences(*told(STEP[::-1], metric="ttft_s"))
    assert "Time to first token of a on w: −10.0 %" in text
    assert "; better." in text


def test_without_commits_the_days_are_named(told):
    """No repository is no reason to say nothing."""
    (text,) = sentences(*told(STEP, commit=False))
    assert "between the runs of 2025-01-25 and 2025-01-26" in text


def test_one_commit_on_both_sides_is_not_to_blame(told):
    """A machine that changed below the same commit is told from a change of the code."""

    def same(_number, record):
        record["commit"]["sha"] = "d" * 40

    (text,) = sentences(*told(STEP, same))
    assert "Both sides are of commit dddddddddd: what changed is not in the code." in text


def test_what_else_differs_is_named(told):
    """An engine and an option in effect that changed with the step."""

    def upgraded(number, record):
        new = number >= 12
        record["variants"][0] |= {
            "engine": "x",
            "engine_version": "2" if new else "1",
            "effective_options": {"mmap": not new, "threads": 2},
        }

    (text,) = sentences(*told(STEP, upgraded))
    assert "x 1 → x 2; −mmap=True; +mmap=False." in text


def test_a_drift_says_how_much_it_adds_up_to(told):
    """The total and the span, and that no step stands out."""
    rates = 100 * np.linspace(1, 0.9, 30) * np.exp(np.random.default_rng(2).normal(0, 0.005, 30))
    (text,) = sentences(*told([float(each) for each in rates]))
    assert "little by little" in text
    assert "over 30 runs" in text
    assert "No single step of it stands out." in text


def test_chinese_says_the_same(told):
    """The report's sentences are in its language."""
    with language("zh"):
        (text,) = sentences(*told(STEP))
    assert "−10.0 %" in text
    assert "变差" in text


def test_the_terminal_fits_into_80_columns_and_does_what_no_name_says(told):
    """Names from a file are shown, and do nothing."""
    name = "\x1b[31mevil\n" + "x" * 60
    found = told(STEP, variant=name)
    lines = [*overview([found]), *one_series(*found)]
    assert max(map(len, lines)) <= 80 + 8  # a name alone may be longer than a line
    assert not any("\x1b" in line or "\n" in line for line in lines)


def test_a_trend_is_drawn_in_few_characters():
    """Low to high is low to high, and what hardly varies is flat."""
    assert sparkline([1, 2, 3, 4, 5, 6, 7, 8]) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.0, 0.0]) == "▄▄"
    assert len(set(sparkline([100.0, 100.1, 99.9]))) <= 2
    assert len(sparkline(list(range(1, 400)))) == 16


def test_few_runs_say_first_that_nothing_can_be_said(tmp_path):
    """Before the list; and a series of one run is no line in it, but counted."""
    for number in range(3):
        write_run(tmp_path, number, 100.0)
    other = write_run(tmp_path, 3, 100.0)
    record = json.loads((other / "run.json").read_text(encoding="utf-8"))
    change(other, variants=[record["variants"][0] | {"options": {"threads": 8}}])
    lines = list(overview(found_in(tmp_path)))
    assert lines[1] == "Nothing can be said of changes yet: fewer than 10 runs in a series."
    assert sum("/ w" in line for line in lines) == 1
    assert sum(line.endswith("3 runs") for line in lines) == 3  # the title, too
    assert lines[-1] == "2 series of one run are not listed."
    assert not any("1 runs" in line for line in lines)


def test_series_of_one_name_have_headings_of_their_own(tmp_path):
    """What differs stands in the heading, and in the sentence of a change."""
    for number, rate in enumerate(STEP):
        write_run(tmp_path, number, rate)
    for number in range(2):
        folder = write_run(tmp_path, 30 + number, 50.0)
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        change(folder, variants=[record["variants"][0] | {"options": {"threads": 8}}])
    lines = list(overview(found_in(tmp_path)))
    assert [line for line in lines if "/ w" in line] == [
        "  a / w (no threads)",
        "  a / w (threads=8)",
    ]
    assert "Decode rate of a (no threads) on w: −10.0 %" in " ".join(lines)


def found_in(results):
    """All series of a folder, with what was found in them."""
    with Index(results) as index:
        index.update()
        series = index.series(Selection())
    return [(each, find([point.median for point in each.points])) for each in series]
