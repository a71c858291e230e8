"""Devices that are not at hand in the table of platforms: by hand, and apart from all else."""

from __future__ import annotations

from dataclasses import replace

import pytest
from choice_run import choice_data, steady

from edgebench.harness.predict.device import DeviceFacts, Known
from edgebench.harness.predict.estimate import Estimate
from edgebench.harness.results.cell import Summary
from edgebench.reports.format import Scale
from edgebench.reports.frameworks_table import frameworks_table
from edgebench.reports.languages import language
from edgebench.reports.opening import opening
from edgebench.reports.platforms_table import platforms_table, predictions
from edgebench.reports.predicted import _value
from edgebench.reports.published.cells import Footnotes
from edgebench.reports.sections import table_sections
from edgebench.reports.selection.select import selection_of
from edgebench.reports.sentences import plain

GIB = 2**30
READ = 100e6
RATES = {"llama.cpp": 50.0, "mnn": 40.0}

PHONE = DeviceFacts(
    key="phone",
    name="A phone",
    kind="phone",
    processor="cpu",
    bandwidth=Known(50e9, "its data sheet"),
    ram=Known(8.0 * GIB, "its data sheet"),
    fp32=Known(None, "no clocks"),
    int8=Known(None, "no clocks"),
    tdp_w=Known(None, "not published"),
    sustained_w=Known(5.0, "its data sheet"),
)


def run_with(*devices, read=READ, mbu=None, peak=None, cached=None, threads=2, flags=()):
    """The sample run with predicted devices, and these figures in all of its cells."""
    variants = {name: steady(decode_rate=rate, ttft_s=0.1) for name, rate in RATES.items()}
    data = choice_data(variants)
    extra = {}
    if mbu is not None:
        extra["mbu"] = summary(mbu[1], "1", low=mbu[0], high=mbu[2])
    if cached is not None:
        extra["kv_bytes_per_token"] = summary(cached, "byte")
    if peak is not None:
        extra["peak_rss_bytes"] = summary(peak, "byte")
    cells = {
        place: cell.model_copy(
            update={"metrics": {**cell.metrics, **extra}, "flags": [*cell.flags, *flags]}
        )
        for place, cell in data.cells.items()
    }
    told = [
        each.model_copy(update={"effective_options": {"threads": threads}})
        for each in data.record.variants
    ]
    record = data.record.model_copy(update={"variants": told})
    data = replace(data, run=replace(data.run, record=record))
    by_variant = {
        name: {**found, "weight_bytes_per_token": summary(read, "byte")} if read else found
        for name, found in data.by_variant.items()
    }
    return replace(data, cells=cells, by_variant=by_variant, predicted=devices)


def summary(median, unit, *, low=None, high=None):
    return Summary(median=median, ci_low=low, ci_high=high, n=5, unit=unit, source="derived")


def row_of(data):
    """The predicted row, by column."""
    table = platforms_table(data)
    (row,) = [each for each in table.rows if each.predicted]
    columns = [each.key for each in table.columns]
    return dict(zip(columns, row.values, strict=True)), row, table


def test_a_predicted_rate_is_a_range_of_the_bandwidth():
    """50 GB/s at 0.1 GB a token are 500 tokens/s at most; 35 to 80 % of them are expected."""
    cells, row, _table = row_of(run_with(PHONE))
    rate = cells["decode_rate"]
    assert (rate.low, rate.high) == (pytest.approx(175), pytest.approx(400))
    # Two digits: no range this wide has more to say.
    assert rate.text == "180–400"
    assert (rate.origin, rate.chip, rate.interval, rate.n) == ("predicted", "predicted", "", None)
    assert cells["rate_per_watt"].low == pytest.approx(35)
    assert cells["mean_power_w"].sort == 5
    assert cells["implied_bandwidth"].high == pytest.approx(40e9)
    assert row.remarks == ("predicted",)
    assert not any(each.best for each in row.values)


def test_a_runs_own_utilisation_calibrates_it():
    """50 to 60 % of a measured bandwidth, of which a theoretical one is 60 to 90 % here."""
    cells, _row, table = row_of(run_with(PHONE, mbu=(0.5, 0.55, 0.6)))
    rate = cells["decode_rate"]
    assert rate.low == pytest.approx(500 * 0.5 * 0.6)
    assert rate.high == pytest.approx(500 * 0.6 * 0.9)
    assert "Predicted from this run" in table.footnotes[rate.footnote - 1]


def test_keys_and_values_are_read_too():
    """Where the run tells how many bytes of them a token reads: here as many as of weights."""
    cells, _row, _table = row_of(run_with(PHONE, cached=READ))
    assert cells["decode_rate"].high == pytest.approx(200)
    assert cells["weight_bytes_per_token"].sort == READ


def test_a_broken_utilisation_calibrates_nothing():
    """What is above the measured bandwidth can't be right, here or elsewhere."""
    data = run_with(PHONE, mbu=(1.1, 1.2, 1.3), flags=["above_bandwidth"])
    table = platforms_table(data)
    assert not [each for each in table.rows if each.predicted]
    assert not predictions(data)
    assert table.rows[0].remarks == ("broken: above the memory's bandwidth",)
    assert "left out: broken, above the memory's bandwidth" in table.footnotes


@pytest.mark.parametrize("flag", ["noisy", "contended", "unstable_warmup"])
def test_an_unsteady_cell_calibrates_nothing(flag):
    """The general range is taken, 35 to 80 % of 500 tokens/s, and the footnote says why."""
    found, _row, table = row_of(run_with(PHONE, mbu=(0.5, 0.55, 0.6), flags=[flag]))
    assert found["decode_rate"].low == pytest.approx(175)
    assert "is not used" in table.footnotes[found["decode_rate"].footnote - 1]


def test_one_thread_says_nothing_of_a_machine():
    """The sample's machine has one core with two threads: a cell of all of them calibrates."""
    data = run_with(PHONE, mbu=(0.5, 0.55, 0.6), threads=1)
    machine = data.record.machine.model_copy(update={"physical_cpus": 2})
    part = replace(data.parts[0], record=data.record.model_copy(update={"machine": machine}))
    found, _row, table = row_of(replace(data, parts=(part,)))
    assert found["decode_rate"].low == pytest.approx(175)
    assert "not of all cores" in table.footnotes[found["decode_rate"].footnote - 1]


def test_a_measured_bandwidth_takes_the_share_as_it_is():
    """50 to 60 % of a measured bandwidth are 50 to 60 % of another one that was measured."""
    measured = replace(PHONE, bandwidth=Known(50e9, "measured there", measured=True))
    found, _row, table = row_of(run_with(measured, mbu=(0.5, 0.55, 0.6)))
    assert found["decode_rate"].low == pytest.approx(250)
    assert found["decode_rate"].high == pytest.approx(300)
    said = table.footnotes[found["decode_rate"].footnote - 1]
    assert "measured and not a theoretical peak" in said


def test_weights_alone_may_be_too_large():
    """A token reads 6 GB here, whose peak of memory nobody told; a phone leaves 4.8 GiB."""
    cells, row, _table = row_of(run_with(PHONE, read=6e9))
    assert row.remarks == ("predicted", "does not fit")
    assert cells["decode_rate"].sort is None


def test_devices_of_one_name_are_told_apart_and_say_what_computes():
    """Two sizes of a board share a name; their keys do not."""
    boards = [replace(PHONE, key=f"board:{size}GiB") for size in (4, 8)]
    table = platforms_table(run_with(*boards))
    names = [each.variant for each in table.rows if each.predicted]
    assert names == ["A phone (board:4GiB, CPU)", "A phone (board:8GiB, CPU)"]


def test_a_low_end_does_not_look_like_nothing():
    """0.35 to 0.8 tokens/s of 1 at most: two digits of each."""
    cells, _row, _table = row_of(run_with(replace(PHONE, bandwidth=Known(0.03e9, "made up"))))
    assert cells["decode_rate"].text.startswith("0.1")
    slow = _value(Estimate.of("token/s", 0.034, 31.0), Scale("token/s"), Footnotes(), None)
    assert slow.text == "0.034–31"
    fast = _value(Estimate.of("token/s", 99.6, 1234.0), Scale("token/s"), Footnotes(), None)
    assert fast.text.replace(",", "").replace(" ", "") == "100–1200"


def test_work_per_watt_is_of_the_rate_that_the_power_leaves():
    """5 W of a TDP of 10 W leave half of 175 tokens/s, which are 17.5 a watt."""
    hot = replace(PHONE, tdp_w=Known(10.0, "its data sheet"))
    cells, _row, _table = row_of(run_with(hot))
    assert cells["decode_rate"].low == pytest.approx(175)
    assert cells["rate_per_watt"].low == pytest.approx(17.5)


def test_a_report_says_how_many_published_rates_lie_in_its_range():
    """Not that CPUs reach it: one of those at hand does not."""
    cells, _row, table = row_of(run_with(PHONE))
    said = table.footnotes[cells["decode_rate"].footnote - 1]
    assert "of which 13 of 14 reach 35" in said


def test_what_does_not_fit_has_no_rate():
    """A phone of 8 GiB leaves 4.8 to others' apps, and the variant took 6 here."""
    cells, row, table = row_of(run_with(PHONE, peak=6.0 * GIB))
    assert row.remarks == ("predicted", "does not fit")
    assert cells["decode_rate"].sort is None
    assert "memory" in cells["decode_rate"].reason
    assert "does not fit" in dict(table.remarks)
    assert row_of(run_with(PHONE, peak=4.0 * GIB))[0]["decode_rate"].sort is not None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (run_with(PHONE, read=None), "does not tell"),
        (run_with(replace(PHONE, bandwidth=Known(None, "secret"))), "secret"),
    ],
)
def test_what_is_not_known_is_missing_with_its_reason(data, reason):
    """No figure is guessed."""
    cells, _row, _table = row_of(data)
    assert cells["decode_rate"].sort is None
    assert reason in cells["decode_rate"].reason


def test_predictions_are_no_part_of_any_answer():
    """A device a thousand times as fast changes nothing but the table of platforms."""
    without = run_with()
    fast = replace(PHONE, bandwidth=Known(1e15, "made up"))
    data = run_with(fast, PHONE)
    assert [plain(each) for each in opening(data)] == [plain(each) for each in opening(without)]
    assert frameworks_table(data) == frameworks_table(without)
    assert selection_of(data) == selection_of(without)
    assert data.record == without.record
    changed = [
        section.key
        for section, other in zip(
            table_sections(data, None), table_sections(without, None), strict=True
        )
        if section != other
    ]
    assert changed == ["platforms"]
    own = [each for each in platforms_table(data).rows if not each.predicted]
    assert [each.variant for each in own] == [
        each.variant for each in platforms_table(without).rows
    ]
    assert len(predictions(data)) == 2


def test_chinese_marks_it_too():
    """The remark, its meaning and the footnote."""
    with language("zh"):
        cells, row, table = row_of(run_with(PHONE))
        assert row.remarks == ("预测",)
        assert cells["decode_rate"].chip == "预测"
        assert cells["platform"].text == "手机"
        assert dict(table.remarks)["预测"].startswith("根据设备档案")
