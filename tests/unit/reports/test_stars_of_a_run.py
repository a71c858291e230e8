"""Stars of a run's own rates: by the ratio within blocks, and how sure their number is."""

from __future__ import annotations

import pytest
from choice_run import RATE, choice_data

from edgebench.harness.results.cell import Summary
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.features_table import features_tables
from edgebench.reports.selection.evidence import evidence
from edgebench.reports.stars import doubt_text

RISING = [50.0, 60, 70, 80, 90, 100]


def stars_of(data, framework):
    """The value of the CPU's rate, of the first table that has that row."""
    for table in features_tables(data):
        at = [each.key for each in table.columns].index(framework)
        for row in table.rows:
            if not row.published and row.values[at].stars is not None:
                return row.values[at], table
    raise AssertionError(framework)


def test_stars_and_evidence_tell_the_same_ratio():
    """The share of the best rate is that of the evidence: of pairs, not of medians.

    By hand: the ratios within blocks are 0.8, 0.8, 0.8, 0.8, 0.5 and 0.4, of which the median is
    0.8; the medians of all blocks are 46.5 and 75, which would be 0.62, a star less.
    """
    own = [40.0, 48, 56, 64, 45, 40]
    data = choice_data({"mnn": {RATE: RISING}, "llama.cpp": {RATE: own}})
    value, _table = stars_of(data, "llama.cpp")
    found = next(
        each for each in evidence(data, Requirements(), []) if each.framework == "llama.cpp"
    )
    assert found.findings[0].figures.ratio == pytest.approx(0.8)
    assert "0.80 of the best" in value.text
    assert value.stars == 4


def test_a_number_of_stars_that_is_not_sure_has_a_note():
    """Where the interval of the share crosses a line between stars, a footnote says which."""
    best = [100.0] * 6
    own = [70.0, 71, 74, 78, 79, 80]
    data = choice_data({"mnn": {RATE: best}, "llama.cpp": {RATE: own}})
    value, table = stars_of(data, "llama.cpp")
    assert value.stars == 4
    assert table.footnotes[value.footnote - 1].endswith("reaches from 3 to 4 stars")
    assert stars_of(data, "mnn")[0].footnote is None


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.76, 0.89, ""), (0.7, 0.8, "from 3 to 4 stars"), (0.2, 0.95, "from 1 to 5 stars")],
)
def test_doubt_is_told_where_the_ends_have_other_stars(low, high, said):
    """Both ends of the interval are rated by the same rule."""
    share = Summary(median=0.8, ci_low=low, ci_high=high, n=1, unit="1", source="derived")
    text = doubt_text(share)
    assert text.endswith(said)
    assert bool(text) == bool(said)


def test_without_an_interval_there_is_no_doubt_to_tell():
    """A single repetition has a share, and nothing that says how sure it is."""
    assert doubt_text(Summary(median=0.8, n=1, unit="1", source="derived")) == ""
