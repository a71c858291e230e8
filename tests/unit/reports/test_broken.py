"""A cell above the memory's bandwidth can't be right: it is shown, and stands for nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from choice_run import choice_data, steady

from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.answer import answers
from edgebench.reports.frameworks_table import frameworks_table
from edgebench.reports.languages import language
from edgebench.reports.opening import opening
from edgebench.reports.platforms_table import platforms_table
from edgebench.reports.selection.measured import measured_answer
from edgebench.reports.sentences import plain
from edgebench.reports.table import comparison_of

RATES = {"llama.cpp": 90.0, "mnn": 40.0, "mlc": 30.0}
"""The fastest is the broken one."""

LEFT_OUT = "left out: broken, above the memory's bandwidth"


def data_of(*broken):
    variants = {name: steady(decode_rate=rate, ttft_s=4 / rate) for name, rate in RATES.items()}
    data = choice_data(variants)
    cells = {
        (workload, variant): cell.model_copy(update={"flags": [*cell.flags, "above_bandwidth"]})
        if variant in broken
        else cell
        for (workload, variant), cell in data.cells.items()
    }
    return replace(data, cells=cells)


def test_it_is_not_the_best_of_a_table():
    """The second fastest is marked."""
    table = comparison_of(data_of("llama.cpp"), "w", ("decode_rate", "ttft_s"))
    marked = {row.variant for row in table.rows if any(each.best for each in row.values)}
    assert marked == {"mnn"}
    assert table.rows[0].values[0].text == "90.0"


def test_it_wins_no_sentence():
    """The second fastest is ahead of the third, and the broken one is told."""
    data = data_of("llama.cpp")
    _first, won, _trust = map(plain, opening(data))
    assert "mnn decodes fastest" in won
    assert f"llama.cpp is {LEFT_OUT}" in won
    leaders = [each.variants[0] for each in answers(data)[0].leaders if each.variants]
    assert set(leaders) == {"mnn"}


def test_where_all_are_broken_nothing_wins():
    """And no other reason is given for it."""
    data = data_of(*RATES)
    _first, won, _trust = map(plain, opening(data))
    assert won.startswith("Nothing won: ")
    assert LEFT_OUT in won
    assert LEFT_OUT in plain(answers(data)[0].leaders[0].sentence)


def test_it_stands_for_no_framework_and_no_machine():
    """The framework's row says why; the machine's row is the second fastest's."""
    data = data_of("llama.cpp")
    rows = {row.engine.split(" ")[0]: row for row in frameworks_table(data).rows}
    assert "broken: above the memory's bandwidth" in rows["llama.cpp"].remarks
    assert all(each.sort is None for each in rows["llama.cpp"].values[:4])
    own = platforms_table(data).rows[0]
    assert "MNN" in own.engine


def test_it_is_not_chosen():
    """Nor does it have a score, or dominate: it is excluded, with the reason."""
    measured = measured_answer(data_of("llama.cpp"), Requirements())
    assert measured.variant == "mnn"
    (out,) = measured.excluded
    assert (out.variant, out.state) == ("llama.cpp", "broken")
    assert LEFT_OUT in out.reasons[0]
    assert {each.variant for each in measured.candidates} == {"mnn", "mlc"}


@pytest.mark.parametrize("name", ["en", "zh"])
def test_it_is_told_in_each_language(name):
    """The row of the framework has a reason in either."""
    with language(name):
        notes = frameworks_table(data_of("llama.cpp")).footnotes
        assert any(("broken" if name == "en" else "无效") in each for each in notes)
