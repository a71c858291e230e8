"""The words that all outputs of a comparison and a gate share."""

from __future__ import annotations

from dataclasses import replace

import gate_sample as made
import pytest

from edgebench.harness.compare.model import Answer
from edgebench.harness.gate.wording import about, percent
from edgebench.harness.results.model import CommitRecord
from edgebench.reports.comparing import words


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.05, "5 %"), (0.025, "2.5 %"), (0.99, "99 %"), (0.9999, "99.99 %"), (0.07, "7 %")],
)
def test_a_share_that_somebody_wrote_keeps_its_digits(share: float, text: str) -> None:
    """A confidence of 99.99 % is not shown as 100 %, nor 7 % as 7.000000000000001 %."""
    assert percent(share) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0613, "6.1 %"),
        (0.1234, "12 %"),
        (0.00995, "1 %"),
        (0.0999, "10 %"),
        (1.5, "150 %"),
        (0.0, "0 %"),
        (1e-7, "under 0.01 %"),
    ],
)
def test_a_share_that_was_measured_has_two_digits(share: float, text: str) -> None:
    """More than two digits of a change that could be noticed would claim too much."""
    assert about(share) == text


def test_two_figures_share_a_unit_and_show_that_they_differ() -> None:
    """Values that differ are not written alike, and both are in the unit that fits them."""
    assert words.figures(made.row(made.pair(), "ttft_s", 0.98, 1.02)) == ("980 ms", "1020 ms")
    close = made.row(made.pair(), "decode_rate", 92.14, 92.16)
    assert words.figures(close) == ("92.14 tokens/s", "92.16 tokens/s")
    bytes_ = made.row(made.pair(), "model_bytes", 100 * 2.0**20, 100.004 * 2.0**20)
    assert words.figures(bytes_) == ("100.000 MiB", "100.004 MiB")


def test_a_figure_that_is_missing_is_a_dash() -> None:
    """What was not measured is neither 0 nor None."""
    one = made.row(made.pair(), "ttft_s", None, 1.0, "not_compared")
    assert words.figures(one) == ("–", "1.00 s")
    none = made.row(made.pair(), "ttft_s", None, None, "not_compared")
    assert words.figures(none) == ("–", "–")
    assert words.change_and_interval(none.answer) == "–"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(0.95, 0.944, 0.956), "-5.0 % [-5.6, -4.4]"),
        (Answer(1.0, 1.0, 1.0), "0 % [0, 0]"),
        (Answer(1.3, 0.8, 2.2), "+30 % [-20, +120]"),
        (Answer(0.95), "-5.00 %"),
        (Answer(None, reason="the baseline is 0"), "–"),
    ],
)
def test_a_change_is_of_the_baseline_with_its_interval(answer: Answer, text: str) -> None:
    """Ratios are shown as percent above or below the baseline, with their sign."""
    assert words.change_and_interval(answer) == text


def test_a_limit_is_said_as_it_was_written() -> None:
    """At most, at least, a share or a bound in the unit that fits it."""
    check = made.check(limit=0.025)
    assert words.limit(check) == "at most 2.5 % worse"
    memory = replace(check, kind="at_most", metric="peak_rss_bytes", limit=2.0**30, unit="byte")
    assert words.limit(memory) == "at most 1 GiB"
    rate = replace(check, kind="at_least", metric="decode_rate", limit=10.0, unit="token/s")
    assert words.limit(rate) == "at least 10 tokens/s"
    assert words.limit(replace(check, kind="failed", limit=None)) == "has a result"
    assert words.limit(replace(check, kind="vanished", limit=None)) == "is there"


def test_a_commit_says_its_branch_and_changes() -> None:
    """Ten digits name a commit; that files were changed is said."""
    assert words.commit(None) == ""
    assert words.commit(CommitRecord(sha="a" * 40)) == "a" * 10
    dirty = CommitRecord(sha="a" * 40, branch="main", dirty=True)
    assert words.commit(dirty) == "aaaaaaaaaa on main, with uncommitted changes"


def test_names_reach_no_terminal_as_they_are() -> None:
    """Escape sequences and line ends in labels, options and machines do nothing."""
    odd = made.odd().comparison.matched
    texts = [
        words.side(odd.baseline),
        *words.differing(odd.pairs[0].differing),
        words.machine(made.machine(cpu_model="\x1b[31mCPU\n\x07")),
        words.metric_name("\x1b[31mx\n"),
    ]
    assert not [each for each in texts if any(ord(letter) < 32 for letter in each)]


def test_how_it_was_decided_names_pairs_where_there_are_some() -> None:
    """Of runs that were made at different times a note says what that means, once."""
    together = words.decided(made.gate([made.check()]))
    assert together.endswith("repetitions of the same block were compared with each other.")
    assert "certain at 99 %" in together
    apart = words.decided(made.gate([made.check()], interleaved=False))
    assert apart.endswith("over all cells and metrics together.")
