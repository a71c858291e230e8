"""``edgebench predict`` and ``--predict``: what is printed, what is refused, what reports show."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from sample_run import sample

from edgebench.harness.errors import ExitStatus

if TYPE_CHECKING:
    from pathlib import Path

PI = ("predict", "--model", "llama2-7b", "--device", "raspberry-pi-5")


def test_a_prediction_says_whether_it_fits_how_fast_and_why() -> None:
    """The memory wall, bounds beside what is expected, and every assumption; in 80 columns."""
    done = edgebench(*PI, "--quantization", "Q4_0")
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert done.stdout.startswith("Predicted, not measured.\n")
    for words in ("weights               3.56 GiB", "KV cache              1.00 GiB", "fits, "):
        assert words in done.stdout
    assert "Assumptions" in done.stdout
    assert "17.1 GB/s" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_several_devices_and_formats_are_a_table() -> None:
    """A row each; what does not fit is said, and by how much."""
    done = edgebench(
        *PI, "--device", "m2-pro", "--quantization", "Q4_0", "--quantization", "mnn:int4",
        "--quantization", "F16",
    )  # fmt: skip
    assert done.returncode == ExitStatus.DONE, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    fits = {(row[0], row[1]): row[3] for row in rows if row[:1] in (["raspberry-pi-5"], ["m2-pro"])}
    assert fits["raspberry-pi-5", "Q4_0"] == fits["m2-pro", "mnn:int4"] == "yes"
    assert fits["raspberry-pi-5", "F16"] == "no"
    assert "GiB too little memory" in done.stdout
    assert not [line for line in done.stdout.splitlines() if line != line.rstrip()]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_scripts_get_everything_as_json() -> None:
    """Numbers in plain units, each marked as predicted; null with its reason."""
    done = edgebench(*PI, "--json")
    assert done.returncode == ExitStatus.DONE, done.stderr
    document = json.loads(done.stdout)
    assert document["source"] == "predicted"
    (found,) = document["predictions"]
    assert found["quantization"] == "Q4_0"
    assert found["memory"]["kv_cache"] == 2**30
    assert found["memory"]["needed"] + found["memory"]["spare"] == found["memory"]["available"]
    assert 0 < found["decode_rate"]["low"] < found["decode_rate"]["high"]
    assert found["decode_rate"]["source"] == "predicted"
    for each in (found["energy_per_token"], found["sustained_decode_rate"]):
        assert (each["low"] is None) == bool(each["reason"])


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All forms of a report with two devices that are not at hand."""
    folder = sample(blocks=1).write(tmp_path_factory.mktemp("run") / "sample")
    data = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for variant in data["variants"]:
        if variant.get("artifact"):
            variant["artifact"]["weight_bytes_per_token"] = 100_000_000
    (folder / "run.json").write_text(json.dumps(data), encoding="utf-8")
    done = edgebench(
        "report", folder, "--predict", "raspberry-pi-5", "--predict", "vm", "--format",
        "md,html,csv,json,latex",
    )  # fmt: skip
    assert done.returncode == ExitStatus.DONE, done.stderr
    return folder


def test_a_report_marks_predicted_rows_in_every_form(reports: Path) -> None:
    """17.1 GB/s at 0.1 GB a token are 171 tokens/s at most, of which 35 to 80 % are expected."""
    markdown = (reports / "report.md").read_text(encoding="utf-8")
    (row,) = [line for line in markdown.splitlines() if line.startswith("| *Raspberry Pi 5 (CPU)*")]
    assert "60–140 *predicted*" in row
    assert row.endswith("| predicted |")
    html = (reports / "report.html").read_text(encoding="utf-8")
    assert '<tr role="row" class=" published predicted">' in html
    assert "60–140" in (reports / "report.html").read_text(encoding="utf-8")
    assert "predicted" in (reports / "report.tex").read_text(encoding="utf-8")


def test_a_reports_data_keep_predictions_apart(reports: Path) -> None:
    """JSON gives a range and no value; a CSV's predicted row has no median to be averaged."""
    document = json.loads((reports / "report.json").read_text(encoding="utf-8"))
    (table,) = [each for each in document["tables"] if each["key"] == "platforms"]
    keys = [each["key"] for each in table["columns"]]
    (row,) = [each for each in table["rows"] if each["name"] == "Raspberry Pi 5 (CPU)"]
    assert row["predicted"] is True
    rate = row["values"][keys.index("decode_rate")]
    assert rate["value"] is None
    assert rate["low"] == pytest.approx(171 * 0.35, rel=0.01)
    assert rate["origin"] == "predicted"
    assert not any("predicted" in each["variant"] for each in document["cells"])
    rows = list(csv.DictReader(io.StringIO((reports / "report.csv").read_text(encoding="utf-8"))))
    (found,) = [
        each
        for each in rows
        if each["machine"] == "Raspberry Pi 5 (CPU)" and each["metric"] == "decode_rate"
    ]
    assert (found["status"], found["source"], found["median"]) == ("predicted", "predicted", "")
    assert float(found["max"]) == pytest.approx(171 * 0.8, rel=0.01)


def test_predictions_change_nothing_else_of_a_report(reports: Path, tmp_path: Path) -> None:
    """The answer, the choice and all cells are those of the report without them."""
    without = edgebench("report", reports, "--format", "json", "--out", tmp_path)
    assert without.returncode == ExitStatus.DONE, without.stderr
    plain, predicted = (
        json.loads((folder / "report.json").read_text(encoding="utf-8"))
        for folder in (tmp_path, reports)
    )
    for key in ("opening", "selection", "cells", "banners"):
        assert plain[key] == predicted[key]


def test_a_report_refuses_an_unknown_device_before_it_reads_anything(tmp_path: Path) -> None:
    """A misspelt device is a usage error."""
    done = edgebench("report", tmp_path, "--predict", "raspbery-pi-5")
    assert done.returncode == ExitStatus.USAGE
    assert "raspberry-pi-5" in done.stderr


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_a_narrow_terminal_cuts_no_name_and_no_number(columns: str) -> None:
    """Where a table has no room, each prediction is a paragraph."""
    done = edgebench(
        *PI, "--device", "jetson-orin-nano-super", "--device", "raspberry-pi-5:16GiB",
        "--quantization", "mnn:int8", COLUMNS=columns,
    )  # fmt: skip
    assert done.returncode == ExitStatus.DONE, done.stderr
    words = done.stdout.split()
    for whole in ("jetson-orin-nano-super", "raspberry-pi-5:16GiB", "mnn:int8"):
        assert whole in words
    assert max(map(len, done.stdout.splitlines())) <= int(columns)


def test_once_hot_is_told_where_it_is_less() -> None:
    """A TDP of 15 W that may be drawn all the time takes nothing away."""
    hot = "decode once hot"
    done = edgebench("predict", "--model", "llama2-7b", "--device", "jetson-orin-nano")
    assert hot not in done.stdout
    assert "Once hot" not in done.stdout
    assert hot not in edgebench(*PI).stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "", "--device", "vm"], "no model is named"),
        (["--model", "llama2-7b", "--device", "vm:2gib"], "Did you mean vm:2GiB?"),
        (
            ["--model", "llama2-7b", "--device", "raspberry-pi-5", "--reserved", "20GiB"],
            "more than the 8.00 GiB of raspberry-pi-5",
        ),
    ],
)
def test_what_can_not_be_meant_is_refused(arguments: list[str], said: str) -> None:
    """A sentence that says what may be meant, and the status of a wrong command line."""
    done = edgebench("predict", *arguments)
    assert done.returncode == ExitStatus.USAGE
    assert said in done.stderr
