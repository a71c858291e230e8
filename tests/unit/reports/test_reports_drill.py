"""The data behind a page's figures, and the alignment of its numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_quality import EXACT, made, rate
from sample_run import _crashed, sample

from edgebench.harness.results.measured import Measured
from edgebench.harness.results.trial import Trial
from edgebench.reports import samples
from edgebench.reports.cell_padding import padding
from edgebench.reports.data import build_report_data
from edgebench.reports.drill import Places, drill_json
from edgebench.reports.format import Scale
from edgebench.reports.quality import quality_views
from edgebench.reports.table_model import Column, Row, Table, TableTexts, Value, Where

MEDIAN, INTERVAL, LEAST, MOST, VARIATION, N, SOURCE, REASON, UNIT, SAMPLES, OF = range(11)


def figure(found, key, cell="0.0"):
    """A metric's figures of a cell, with the texts that it names by number in their place."""
    at = [each for each, _ in found["metrics"]].index(key)
    values = found["cells"][cell]["m"][str(at)]
    return [
        found["texts"][value] if place in {SOURCE, REASON, UNIT} else value
        for place, value in enumerate(values)
    ]


def test_each_repetition_is_there_in_the_unit_that_is_shown(by_hand):
    """Five times of a cell are five samples, in milliseconds as the median is."""
    data = by_hand({"A": {"ttft_s": [0.1001, 0.1004, 0.1002, 0.1003, 0.1005]}})
    found = json.loads(drill_json(data))
    times = figure(found, "ttft_s")
    assert times[SAMPLES] == [100.1, 100.4, 100.2, 100.3, 100.5]
    assert times[UNIT] == "ms"
    assert times[MEDIAN] == "100.3"
    assert times[N] == 5
    assert found["cells"]["0.0"]["b"] == [[0, 1, 2, 3, 4], [], []]
    assert found["texts"][found["cells"]["0.0"]["n"]] == "5 measured repetitions"


def test_one_repetition_is_no_repetitions(by_hand):
    """What is counted is in the singular where there is one."""
    found = json.loads(drill_json(by_hand({"A": {"decode_rate": [50.0]}})))
    assert found["texts"][found["cells"]["0.0"]["n"]] == "1 measured repetition"


def test_loads_of_the_model_stand_behind_every_cell_of_their_variant(data):
    """Eight loads serve both workloads; their times are those of the trials, block by block."""
    found = json.loads(drill_json(data))
    variant = data.variant_ids[0]
    loads = [each for each in data.run.trials if each.kind == "load" and each.variant == variant]
    assert len(loads) == 8
    for cell in ("0.0", "1.0"):
        times = figure(found, "load_s", cell)
        assert times[UNIT] == "ms"
        assert times[N] == 8
        assert times[SAMPLES] == pytest.approx(
            [1000 * each.metrics["load_s"].value for each in loads], rel=1e-5
        )
        assert times[OF] == 1
        assert found["cells"][cell]["b"][1] == list(range(8))
        assert len(found["cells"][cell]["b"][0]) == 16
        assert figure(found, "decode_rate", cell)[OF] == 0


def test_loads_of_tasks_are_not_those_of_prompts(by_hand):
    """A task runs in processes of its own, whose loads say nothing about the others."""

    def load(kind, seconds):
        values = {"load_s": Measured(value=seconds, unit="s", source="observed")}
        return Trial(
            kind=kind,
            variant="A",
            workload=None,
            block=0,
            repetition=0,
            phase="measured",
            status="ok",
            started_at="2025-01-14T10:15:10Z",
            duration_s=1.0,
            metrics=values,
        )

    trials = [load("load", 2.0), load("task_load", 9.0)]
    found = json.loads(drill_json(by_hand({"A": {"decode_rate": [50.0] * 5}}, trials=trials)))
    assert figure(found, "load_s")[SAMPLES] == 2


def test_windows_stand_behind_the_figures_of_a_text():
    """Each window has its own value, in the unit of the table, whose figures are the same."""
    losses = [0.0, 0.1, 0.0, 0.1, 0.0, 0.1, 0.0, 0.1]
    windows = [rate([each], loss)[0] for each, loss in zip(EXACT, losses, strict=True)]
    data = build_report_data(made({"A": windows, "B": EXACT}))
    found = json.loads(drill_json(data))
    cell = found["cells"]["1.0"]
    assert found["texts"][cell["n"]] == "8 windows"
    assert cell["b"] == [[], [], [0] * 8]
    perplexity = figure(found, "perplexity", "1.0")
    # 8 * exp(0.1) = 8.84137
    assert perplexity[SAMPLES] == pytest.approx([8, 8.84137] * 4)
    assert perplexity[OF] == 2
    assert perplexity[N] == 8
    change = figure(found, "perplexity_ratio", "1.0")
    # exp(0.05) = 1.05127 over all, exp(0.1) = 1.10517 in every second window
    assert change[UNIT] == "%"
    assert change[MEDIAN] == "+5"
    assert change[SAMPLES] == pytest.approx([0, 10.5171] * 4, abs=1e-4)
    # exp(-1.2 * sqrt(0.1)) = 0.684, of 10 tokens 7; so 17 of 20 over all
    agreement = figure(found, "top1_agreement", "1.0")
    assert agreement[UNIT] == "%"
    assert agreement[MEDIAN] == "85.0"
    assert agreement[SAMPLES] == [100, 70] * 4
    table = {each.key: at for at, each in enumerate(quality_views(data)[0].table.columns)}
    (row,) = (each for each in quality_views(data)[0].table.rows if each.variant == "A")
    for key in ("perplexity", "perplexity_ratio", "top1_agreement", "kl_divergence"):
        assert figure(found, key, "1.0")[MEDIAN] == row.values[table[key]].text


def test_too_many_windows_are_not_written_into_the_page(monkeypatch):
    """Their number is told all the same."""
    monkeypatch.setattr(samples, "MOST_WINDOWS", 7)
    found = json.loads(drill_json(build_report_data(made({"A": EXACT, "B": EXACT}))))
    assert figure(found, "perplexity", "1.0")[SAMPLES] is None
    assert found["texts"][found["cells"]["1.0"]["n"]] == "8 windows"


def test_equal_samples_are_told_once(by_hand):
    """What never changes is one number, however often it was repeated."""
    found = json.loads(drill_json(by_hand({"A": {"decode_rate": [50.0] * 5}})))
    assert figure(found, "decode_rate")[SAMPLES] == 50


def test_what_was_not_measured_has_its_reason_and_no_samples(by_hand):
    """A null is no zero, and says why."""
    found = json.loads(drill_json(by_hand({"A": {"ttft_s": [None] * 5}})))
    times = figure(found, "ttft_s")
    assert times[MEDIAN] == "–"
    assert times[SAMPLES] is None
    assert times[REASON] == "no such sensor"


def test_a_gap_among_the_samples_stays_a_gap(by_hand):
    """A repetition without a value keeps its place, so that blocks still fit."""
    data = by_hand({"A": {"decode_rate": [50.0, None, 52.0, 51.0, 53.0]}})
    assert figure(json.loads(drill_json(data)), "decode_rate")[SAMPLES] == [50, None, 52, 51, 53]


def test_a_failure_is_found_from_its_cell(by_hand):
    """The cell names what failed, with the end of the log and where the log lies."""
    data = by_hand(
        {"A": {"decode_rate": [50.0] * 5}, "B": {"decode_rate": []}}, trials=[_crashed("B", "w")]
    )
    found = json.loads(drill_json(data))
    assert found["cells"]["0.0"]["x"] == []
    (at,) = found["cells"]["0.1"]["x"]
    assert found["failures"][at]["log"] == "logs/llama.cpp-F16-threads-2.log"
    assert found["failures"][at]["tail"].endswith("GGML_ASSERT(buffer) failed")


@pytest.mark.parametrize(
    "log", ["/etc/passwd", "javascript:alert(1)", "https://a/b", "a\\b", "../../x"]
)
def test_a_log_elsewhere_is_no_link(by_hand, log):
    """Only a path that stays below the run's folder is offered as a link; any other is named."""
    crash = _crashed("B", "w")
    crash = crash.model_copy(update={"failure": crash.failure.model_copy(update={"log": log})})
    found = json.loads(drill_json(by_hand({"B": {"decode_rate": []}}, trials=[crash])))
    assert found["failures"][0]["href"] == ""
    assert found["failures"][0]["log"] == log


def test_a_log_is_linked_from_where_the_report_lies(by_hand):
    """From another folder the way leads through the run's; what a link can't hold is escaped."""
    crash = _crashed("B", "w")
    failure = crash.failure.model_copy(update={"log": "logs/50% #1.log"})
    crash = crash.model_copy(update={"failure": failure})
    data = by_hand({"B": {"decode_rate": []}}, trials=[crash])
    links = {
        place: json.loads(drill_json(data, folder=place and Path(place)))["failures"][0]["href"]
        for place in (None, "made-up", "reports/of-it", ".")
    }
    assert links[None] == links["made-up"] == "logs/50%25%20%231.log"
    assert links["reports/of-it"] == "../../made-up/logs/50%25%20%231.log"
    assert links["."] == "made-up/logs/50%25%20%231.log"


def test_no_text_ends_the_script(by_hand):
    """Markup in a name is still the name, and no < stands in the JSON."""
    name = "</script><!--<script>\u2028"
    text = drill_json(by_hand({name: {"decode_rate": [50.0] * 5}}))
    assert "<" not in text
    assert "\u2028" not in text
    assert json.loads(text)["variants"][0]["name"].startswith("</script><!--<script>")


def test_a_large_run_stays_small():
    """Four frameworks, four workloads and twenty repetitions need less than 300 kB here."""
    made = sample(crash=None, blocks=10)
    workloads = [
        each.model_copy(update={"name": f"{each.name}-{at}"})
        for at in range(2)
        for each in made.workloads
    ]
    made.workloads = workloads
    from edgebench.harness.results.run import Run
    from edgebench.reports.data import build_report_data

    data = build_report_data(Run("made-up", made.record(), tuple(made.trials())))
    assert len(data.cells) == 20
    assert len(drill_json(data)) < 300_000


def test_places_are_only_of_the_runs_own_cells(by_hand):
    """A quoted row has no samples behind it, and so no address."""
    places = Places(by_hand({"A": {"decode_rate": [50.0] * 5}, "B": {"decode_rate": [40.0] * 5}}))
    assert places.at(Where("w", "B", "decode_rate")) == "0.1.decode_rate"
    assert places.at(Where("w", "nobody", "decode_rate")) == ""
    assert places.at(Where("elsewhere", "A", "decode_rate")) == ""
    assert places.at(None) == ""


def column_of(*texts, words=False):
    rows = tuple(Row(text, "", at, 1, (), False, (Value(text),)) for at, text in enumerate(texts))
    column = Column("k", "K", "k", Scale(""), None, words=words)
    return Table("t", "t", (column,), rows, (), (), TableTexts("", "", "", ""))


@pytest.mark.parametrize(
    ("texts", "pads"),
    [
        (("54.2", "101", "7.25"), ("0", ".00", "")),
        (("12\u202f000", "+1.5"), (".0", "")),
        (("–", "1.5", "1.2e+09", "1.0x", "20-25"), ("", "", "", "", "")),
        (("1", "22"), ("", "")),
    ],
)
def test_numbers_of_a_column_end_alike(texts, pads):
    """With the digits that it lacks behind it, each number has the most decimals of its column."""
    assert tuple(each for (each,) in padding(column_of(*texts))) == pads


def test_words_are_not_padded():
    """A column of words has no decimal point."""
    assert padding(column_of("1.25", "3", words=True)) == (("",), ("",))
