"""Reports of frameworks' own tools: they say what happened, and whose the figures are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rich.console import Console
from sample_run import handmade

from edgebench.harness.results.device import DeviceRecord
from edgebench.harness.results.run import Run
from edgebench.reports.combine import combine
from edgebench.reports.data import build_report_data
from edgebench.reports.markdown import render_text
from edgebench.reports.method import definitions, method
from edgebench.reports.opening_trust import not_trusted
from edgebench.reports.sentences import plain
from edgebench.reports.table import comparison_rows
from edgebench.reports.terminal import comparison_table

if TYPE_CHECKING:
    from edgebench.harness.results.trial import Trial

PHONE = DeviceRecord(reach="adb", address="R5CT90ABCDE")
RATES = [10.0, 10.1, 9.9, 10.0, 10.1, 9.9]
PEAKS = [1e9] * 6


def told(trial: Trial) -> Trial:
    """The same with a rate that a tool told."""
    rate = trial.metrics["decode_rate"].model_copy(update={"source": "engine"})
    return trial.model_copy(update={"metrics": {**trial.metrics, "decode_rate": rate}})


def run(*, phone: bool, name: str = "a") -> Run:
    values = {name: {"decode_rate": RATES, "peak_rss_bytes": PEAKS}}
    record, trials = handmade(values, id=f"of-{name}", **({"device": PHONE} if phone else {}))
    made = [told(each) if phone and "decode_rate" in each.metrics else each for each in trials]
    return Run(Path(f"made-up-{name}"), record, tuple(made))


def test_the_method_is_that_of_the_tools() -> None:
    """No same token ids, no time stamps of ours, no warm-up until two agree."""
    phone = dict(method(run(phone=True).record))
    text = " ".join(phone.values())
    assert "makes up a prompt of exactly the stated length" in phone["Prompts"]
    assert "They time themselves" in phone["Processes"]
    assert "whether or not they differ" in phone["Warm-up"]
    for false in ("the same token ids", "Time stamps are taken", "until two in a row"):
        assert false not in text
    own = " ".join(dict(method(run(phone=False).record)).values())
    assert "the same token ids" in own
    assert "time themselves" not in own


def test_definitions_are_those_of_who_measured() -> None:
    """A tool's rate is defined as the tool counts it, and its memory as the kernel told it."""
    found = {each.key: each for each in definitions(build_report_data(run(phone=True)))}
    assert found["decode_rate"].sources == ("engine",)
    assert "the tokens that it was asked for" in found["decode_rate"].definition
    assert "ru_maxrss" in found["peak_rss_bytes"].definition
    own = {each.key: each for each in definitions(build_report_data(run(phone=False)))}
    assert "tokens really produced" in own["decode_rate"].definition
    assert "VmHWM" in own["peak_rss_bytes"].definition


@pytest.mark.parametrize("first", [True, False])
def test_a_report_of_both_says_both(first: bool) -> None:
    """Whichever run stands in front."""
    one, other = run(phone=first, name="a"), run(phone=not first, name="b")
    data = combine([build_report_data(one), build_report_data(other)])
    texts = dict(method(data.record, [part.record for part in data.parts]))
    assert "the same token ids" in texts["Prompts"]
    assert "They time themselves" in texts["On Android devices"]
    found = {each.key: each for each in definitions(data)}
    assert "tokens really produced" in found["decode_rate"].definition
    assert "the tokens that it was asked for" in found["decode_rate"].definition


def test_figures_of_tools_are_marked() -> None:
    """In the table of the terminal, of Markdown, and in what the opening does not trust."""
    data = build_report_data(run(phone=True))
    (table,) = comparison_rows(data)
    chips = {column.key: table.rows[0].values[at].chip for at, column in enumerate(table.columns)}
    assert (chips["decode_rate"], chips["peak_rss_bytes"]) == ("engine", "")
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(comparison_table(data))
    assert "10.00 engine" in capture.get()
    assert "engine: the framework's own tool told it" in capture.get()
    assert "the speed of a, which edgebench did not time" in plain(not_trusted(data))
    assert "engine" in next(
        line for line in render_text(data).splitlines() if line.startswith("| `a` |")
    )
    assert "Edgebench did not time" in render_text(data)
    own = build_report_data(run(phone=False))
    assert "did not time" not in render_text(own)
    assert "did not time" not in plain(not_trusted(own))
