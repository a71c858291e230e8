"""What stands around the figures of a run that rates texts: banners, method, time."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from sample_quality import by_windows, rate
from sample_run import handmade

from edgebench.harness.results.model import Accounting
from edgebench.harness.results.quality import WindowRecord
from edgebench.harness.results.run import Run
from edgebench.reports.data import build_report_data
from edgebench.reports.facts import banners
from edgebench.reports.method import method, where_the_time_went

EXACT = [WindowRecord(tokens=10, bytes=40, log_likelihood=-10 * math.log(8))] * 8
STEADY = [50.0, 50.1, 49.9, 50.0, 50.1, 49.9, 50.0, 50.1, 49.9, 50.0]
SPENT = Accounting(
    wall_s=100.0,
    prepare_s=10.0,
    start_s=1.0,
    load_s=2.0,
    warmup_s=3.0,
    measured_s=40.0,
    cooldown_s=0.0,
    quality_s=37.0,
    overhead_s=7.0,
)


def data_of(rates=STEADY, *, planned=8, **changes):
    """A run of two variants: a text of so many windows, eight rated, and speed if `rates`."""
    record, trials = handmade({name: {"decode_rate": rates or STEADY} for name in ("a", "b")})
    windows = {"a": rate(EXACT, 0.1), "b": rate(EXACT, 0.2)}
    text, rated = by_windows(windows, EXACT, name="text", quality={"windows_planned": planned})
    timed = record.workloads if rates else []
    record = record.model_copy(update={"workloads": [*timed, text], **changes})
    return build_report_data(Run(Path("made-up"), record, (*(trials if rates else ()), *rated)))


def test_a_text_that_was_cut_is_said_to_be():
    """No row is marked, so no word of rows; how many windows, of what."""
    (banner,) = banners(data_of(planned=20, stopped_by_budget=True))
    assert banner.title == "The time budget was not enough for all of the text."
    assert "8 of 20 windows of text were rated; see below its table." in banner.text
    assert "cut by budget" not in banner.text


def test_rows_that_were_cut_are_said_to_be():
    """Two repetitions are too few; the text was rated as a whole, and so is not named."""
    (banner,) = banners(data_of([50.0, 51.0], stopped_by_budget=True))
    assert banner.title == "The time budget ended this run."
    assert "Rows marked 'cut by budget' are less certain." in banner.text
    assert "windows" not in banner.text


def test_rows_and_a_text_that_were_cut_are_both_named():
    """One banner for both."""
    (banner,) = banners(data_of([50.0, 51.0], planned=20, stopped_by_budget=True))
    assert "Rows marked 'cut by budget' are less certain." in banner.text
    assert "8 of 20 windows of text were rated; see below its table." in banner.text


def test_a_run_that_only_rates_texts_has_no_method_of_timing():
    """Nothing was repeated, warmed up or interleaved; with speed beside it, all of that was."""
    only = dict(method(data_of(rates=None).record))
    assert set(only) == {"Quality", "Not measured", "Time limit"}
    assert not any("block" in text for text in only.values())
    both = dict(method(data_of().record))
    assert {"Quality", "Warm-up", "Repetitions", "Order"} <= set(both)


@pytest.mark.parametrize("rates", [STEADY, None])
def test_the_time_of_rating_is_told(rates):
    """37 s of it, with speed beside it and without."""
    spent = dict(where_the_time_went(data_of(rates, accounting=SPENT).record))
    assert spent["Rating texts"] == "37.0 s"


def test_a_run_without_texts_spent_nothing_on_them(by_hand):
    """No row of zeros."""
    record = by_hand({"a": {"decode_rate": STEADY}}).record
    spent = dict(where_the_time_went(record.model_copy(update={"accounting": SPENT})))
    assert "Measuring" in spent
    assert "Rating texts" not in spent
