"""The three sentences that a report opens with."""

from __future__ import annotations

import re

from sample_quality import made, steady
from sample_run import _crashed

from edgebench.reports.data import build_report_data
from edgebench.reports.languages import language
from edgebench.reports.opening import opening
from edgebench.reports.sentences import plain


def said(data):
    return [plain(each) for each in opening(data)]


def test_the_first_sentence_says_what_was_measured(by_hand):
    """Model, variants, workload, machine, day and amount, as the run recorded them."""
    first, _, _ = said(
        by_hand({"A": {"decode_rate": [50.0] * 6}, "B": {"decode_rate": [40.0] * 6}})
    )
    for needle in (
        "SmolLM2-135M-Instruct",
        "2 variants",
        "on w,",
        "AMD EPYC 9B14",
        "14 January 2025",
        "12 measured repetitions",
    ):
        assert needle in first


def test_a_lead_is_told_with_its_size(by_hand):
    """60 against 40 tokens/s in every block is 1.50 times the next, and the intervals are apart."""
    _, won, _ = said(
        by_hand(
            {
                "A": {"decode_rate": [60.0, 60.3, 59.7, 60.0, 60.6]},
                "B": {"decode_rate": [40.0, 40.2, 39.8, 40.0, 40.4]},
            }
        )
    )
    assert "A decodes fastest on w (60.0 tokens/s, 1.50 times the next)" in won
    assert "apart from all others" in won


def test_less_is_better_of_times(by_hand):
    """The one that waits shortest leads, and the next takes twice as long."""
    _, won, _ = said(by_hand({"A": {"ttft_s": [0.2] * 5}, "B": {"ttft_s": [0.4] * 5}}))
    assert "A gives the first token soonest on w (200 ms, where the next takes 2.00 times" in won


def test_what_can_not_be_told_apart_does_not_win(by_hand):
    """Overlapping intervals name both, and nobody as the fastest."""
    values = {
        "A": {"decode_rate": [50.0, 52.0, 54.0, 51.0, 53.0]},
        "B": {"decode_rate": [51.0, 53.0, 52.0, 50.0, 54.0]},
    }
    _, won, _ = said(by_hand(values))
    assert "can't be told apart in decode rate" in won
    assert "fastest" not in won
    assert "apart from all others" not in won


def test_a_single_repetition_is_only_a_hint(by_hand):
    """One value each has no interval: the lead is no finding."""
    _, won, _ = said(by_hand({"A": {"decode_rate": [60.0]}, "B": {"decode_rate": [40.0]}}))
    assert "a hint only" in won
    assert "apart from all others" not in won


def test_one_variant_alone_wins_nothing(by_hand):
    """There is nobody to be better than."""
    _, won, _ = said(by_hand({"A": {"decode_rate": [60.0] * 5}}))
    assert won.startswith("One variant alone was measured, so nothing won; it has a decode rate of")


def test_nothing_measured_is_said(by_hand):
    """A run without a value has no winner, and says that nothing was measured."""
    first, won, _ = said(by_hand({"A": {"decode_rate": [None] * 5}, "B": {"decode_rate": []}}))
    assert won == "Nothing won: no speed and no memory was measured."
    assert said(by_hand({"A": {"decode_rate": []}}))[0].endswith("nothing was measured.")
    assert "5 measured repetitions" in first


def test_texts_that_were_rated_are_counted_apart():
    """A rating is no repetition; without speed the second sentence points to the quality."""
    data = build_report_data(made({"A": steady(0.01), "B": steady(0.02)}, speed=False))
    first, won, _ = said(data)
    assert first.endswith("2 ratings of a text.")
    assert "see Quality" in won


def test_failures_and_flags_are_named(by_hand):
    """Who failed, who was noisy and that there was no power, in the last sentence."""
    values = {
        "A": {"decode_rate": [50.0, 90.0, 20.0, 70.0, 40.0]},
        "B": {"decode_rate": [40.0] * 5},
        "C": {"decode_rate": []},
    }
    *_, trust = said(by_hand(values, trials=[_crashed("C", "w")]))
    assert trust.startswith("Not to be trusted, or missing: C, which failed in part or whole")
    assert re.search(r"A \([^)]*noisy", trust)
    assert "B (" not in trust
    assert trust.endswith("power, which was not measured.")


def test_a_quick_look_and_a_broken_run_are_not_trusted(by_hand):
    """What limits the whole report comes before any variant."""
    *_, trust = said(by_hand({"A": {"decode_rate": [50.0]}}, quick=True, status="interrupted"))
    assert trust.index("all figures, for this was a quick look") < trust.index("did not finish")


def test_nothing_to_say_against_is_said_too(by_hand):
    """Steady values with power have no flag, and the sentence says just that."""
    values = {"decode_rate": [50.0, 50.1, 50.2, 50.0, 50.1], "mean_power_w": [9.0] * 5}
    *_, trust = said(by_hand({"A": values}, units={"mean_power_w": "W"}))
    assert trust == (
        "Nothing failed and no value is flagged; what was not measured has its reason."
    )


def test_many_names_are_counted(by_hand):
    """Of twelve variants that can't be told apart two are named."""
    values = {f"V{at}": {"decode_rate": [50.0, 51.0, 52.0, 51.5, 50.5]} for at in range(12)}
    _, won, _ = said(by_hand(values))
    assert won.startswith("V0, V1 and 10 more can't be told apart")


def test_chinese_says_the_same(by_hand):
    """The figures and names are there; the words around them are Chinese."""
    values = {"A": {"decode_rate": [60.0] * 5}, "B": {"decode_rate": [40.0] * 5}}
    with language("zh"):
        first, won, trust = said(by_hand(values))
    assert "2025年1月14日" in first
    assert "A 的生成速度最快" in won
    assert "1.50 倍" in won
    for sentence in (first, won, trust):
        assert sentence.endswith("。")
        assert not re.search(r"[a-z]+ [a-z]+ [a-z]+", sentence)
