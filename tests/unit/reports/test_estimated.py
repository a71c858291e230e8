"""An estimate says that it is one, wherever one of its values stands."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from sample_run import handmade

from edgebench.harness.results.run import Run
from edgebench.harness.results.summary import summarize
from edgebench.reports.data import build_report_data
from edgebench.reports.export_csv import render_csv
from edgebench.reports.export_json import render_json
from edgebench.reports.export_latex import render_latex
from edgebench.reports.html import render_page
from edgebench.reports.languages import language
from edgebench.reports.markdown import render_text

UNITS = {"energy_per_token_j": "J/token", "mean_power_w": "W", "rate_per_watt": "token/s/W"}
# Figures that no other metric of these runs has.
VALUES = {
    "a": {"energy_per_token_j": 7.753, "mean_power_w": 61.37, "rate_per_watt": 0.4713},
    "b": {"energy_per_token_j": 3.319, "mean_power_w": 29.61, "rate_per_watt": 0.9237},
}
SHOWN = re.compile(r"(?<![\d.])(7\.75|61\.4|0\.47|3\.32|29\.6|0\.92)\d?(?![\d.])")


@pytest.fixture
def data():
    rates = {"a": 30.0, "b": 27.0}
    values = {
        name: {
            "decode_rate": [rates[name] + 0.01 * n for n in range(6)],
            **{key: [each] * 6 for key, each in own.items()},
        }
        for name, own in VALUES.items()
    }
    record, trials = handmade(values, units=UNITS)
    trials = [
        each.model_copy(
            update={
                "metrics": {
                    key: value.model_copy(update={"source": "estimated"}) if key in UNITS else value
                    for key, value in each.metrics.items()
                }
            }
        )
        for each in trials
    ]
    record = record.model_copy(update={"cells": summarize(record, trials)})
    return build_report_data(Run(Path("run"), record, tuple(trials)))


def rows_of_page(text: str) -> list[str]:
    """What a page shows, a row of a table or a paragraph at a time."""
    body = re.sub(r"(?s)<(script|style|svg).*?</\1>", "", text)
    parts = re.split(r"</(?:tr|p|li|h\d|dd|dt|figcaption)>", body)
    return [" ".join(re.sub(r"<[^>]*>", " ", part).split()) for part in parts]


@pytest.mark.parametrize(("tag", "said"), [("en", "estimated"), ("zh", "估计")])
@pytest.mark.parametrize("form", ["markdown", "latex", "page"])
def test_each_row_and_sentence_with_such_a_value_says_so(data, form, tag, said) -> None:
    """In text, LaTeX and the page, a value of an estimate never stands without the word."""
    with language(tag):
        lines = {
            "markdown": lambda: render_text(data).splitlines(),
            "latex": lambda: render_latex(data).splitlines(),
            "page": lambda: rows_of_page(render_page(data)),
        }[form]()
    found = [line for line in lines if SHOWN.search(line)]
    assert len(found) >= 4
    assert [line for line in found if said not in line] == []


def test_exports_have_the_source_of_each_value(data) -> None:
    """A program that reads them sees it beside the value."""
    rows = list(csv.DictReader(io.StringIO(render_csv(data))))
    sources = {row["metric"]: row["source"] for row in rows if row["metric"] in UNITS}
    assert sources == dict.fromkeys(UNITS, "estimated")
    cells = json.loads(render_json(data))["cells"]
    assert {cell["metrics"][key]["source"] for cell in cells for key in UNITS} == {"estimated"}


def test_one_estimate_among_measurements_makes_an_estimate(data) -> None:
    """A median over both kinds is no measurement."""
    record, trials = handmade({"a": {"mean_power_w": [10.0, 11.0, 12.0]}}, units=UNITS)
    last = trials[-1].metrics["mean_power_w"].model_copy(update={"source": "estimated"})
    trials[-1] = trials[-1].model_copy(update={"metrics": {"mean_power_w": last}})
    (cell,) = summarize(record, trials)
    assert cell.metrics["mean_power_w"].source == "estimated"
