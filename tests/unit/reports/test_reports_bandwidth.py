"""What reports make of a measured bandwidth: a roof, shares of it, and a cell that is broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from sample_run import handmade, sha256

from edgebench.harness.results.device import BandwidthRecord
from edgebench.harness.results.model import Artifact
from edgebench.harness.results.run import Run
from edgebench.reports import plots, roofline_plot
from edgebench.reports.data import build_report_data
from edgebench.reports.facts import bandwidth_facts
from edgebench.reports.languages import language
from edgebench.reports.roofline import rooflines
from edgebench.reports.table import comparison_rows, flag_meaning, flag_text

READ = 500_000
RATES = {"v": {"decode_rate": [10.0] * 5, "prefill_rate": [60.0] * 5, "mbu": [0.5] * 5}}


def run_of(*memories: BandwidthRecord):
    """A million parameters of half a byte each: 10 tokens/s read 5 MB/s."""
    record, trials = handmade(RATES, units={"mbu": "1"})
    file = Artifact(
        name="f", sha256=sha256("f"), bytes=1, parameters=1_000_000,
        weight_bytes_per_token=READ, made_by="hand",
    )  # fmt: skip
    variants = [each.model_copy(update={"artifact": file}) for each in record.variants]
    record = record.model_copy(update={"variants": variants, "bandwidth": list(memories)})
    return build_report_data(Run(Path("made-up"), record, tuple(trials)))


def memory(rate: float, threads: int = 2, **changes) -> BandwidthRecord:
    fields = {
        "bytes_per_s": rate, "samples": [rate], "threads": threads, "array_bytes": 1,
        "reader": "x", "measured_at": "", "fingerprint": "f", **changes,
    }  # fmt: skip
    return BandwidthRecord.model_validate(fields)


def test_the_measured_memory_is_the_roof():
    """20 MB/s were read at the most; 10 tokens/s take a quarter, and the picture says so."""
    data = run_of(memory(10e6, 1), memory(20e6, 2))
    (found,) = rooflines(data)
    assert (found.slope, found.byte_rate) == (20e6, 30e6 / 4)
    decode = next(each for each in found.points if each.phase == "decode")
    assert found.memory_share(decode) == pytest.approx(0.25)
    # 60 tokens/s of the prompt are 120 MFLOP/s, the roof of the arithmetic as far as it is known.
    assert found.ridge == pytest.approx(120e6 / 20e6)
    plot = plots.roofline_plot(data, name="r")
    assert "0.0200 GB/s" in plot.svg
    assert "≥ 0.0200" not in plot.svg
    assert [text for text, _style, _more in plot.legend] == ["1: v, 25 % of the memory's roof"]
    assert "memory measured: 0.0200 GB/s with 2 threads" in plot.remark
    assert "solid line" in plots.how_to_read(data)


def test_a_disturbed_reading_is_no_roof():
    """It is told among the machine's facts as such; the picture keeps what was reached."""
    data = run_of(memory(20e6, disturbed=True))
    (found,) = rooflines(data)
    assert found.memory is None
    assert found.slope == found.byte_rate
    assert "no limits of the machine" in plots.how_to_read(data)
    ((_name, said),) = bandwidth_facts(data.record)
    assert said == "0.0 GB/s with 2 threads, disturbed by other processes, so that it is more"


def test_mbu_is_a_column_in_percent():
    """Half of the bandwidth is 50 %; nobody is best at it, as the rate is compared already."""
    (table,) = comparison_rows(run_of(memory(20e6)))
    at = [each.key for each in table.columns].index("mbu")
    assert (table.columns[at].scale.unit, table.rows[0].values[at].text) == ("%", "50.0")
    assert not table.rows[0].values[at].best


def test_a_broken_cell_is_called_so_in_both_languages():
    """With what it means, and the one case in which it may be right."""
    protocol = run_of().record.protocol
    assert flag_text("above_bandwidth") == "broken: above the memory's bandwidth"
    assert "unless the weights stay in a cache" in flag_meaning("above_bandwidth", protocol)
    with language("zh"):
        assert flag_text("above_bandwidth").startswith("无效")
        assert "内存" in flag_meaning("above_bandwidth", protocol)
        assert "内存上限的 25 %" in plots.roofline_plot(run_of(memory(20e6)), name="r").legend[0][0]


@pytest.mark.parametrize("rate", [5e6, 9e6, 20e6, 500e6])
def test_the_roofs_figures_stand_inside_of_the_picture(rate, monkeypatch):
    """However near the left edge the slope would be: neither is on the figures of the axis."""
    seen = []
    drawn = roofline_plot._labels

    def watched(axes, found):
        for (right, up), said, place in drawn(axes, found):
            edge = axes.transData.transform((axes.get_xlim()[0], 1))[0]
            # A letter is never wider than 0.65 of its height.
            seen.append(right - len(said) * 0.6 * 9.5 * axes.figure.dpi / 72 - edge)
            yield (right, up), said, place

    monkeypatch.setattr(roofline_plot, "_labels", watched)
    assert plots.roofline_plot(run_of(memory(rate)), name="r")
    assert len(seen) >= 2
    assert all(each > 0 for each in seen[-2:])


def test_the_fastest_repetition_is_drawn():
    """A generation above the median can be right; above the fastest reading it can't."""
    (found,) = rooflines(run_of(memory(20e6, samples=[19e6, 20e6, 25e6])))
    assert found.slope == 25e6
