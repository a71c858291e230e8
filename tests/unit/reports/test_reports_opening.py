"""The three sentences that a report opens with."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from choice_run import choice_data
from sample_quality import made, quality_sample, steady
from sample_run import _crashed

from edgebench.harness.results.run import Run
from edgebench.reports.answer import answers
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
    assert won == (
        "On w, A decodes fastest (60.0 tokens/s; 1.50 times the next), with a 95 % interval apart "
        "from all others'."
    )


def test_less_is_better_of_times(by_hand):
    """The one that waits shortest leads, and the next takes twice as long."""
    _, won, _ = said(by_hand({"A": {"ttft_s": [0.2] * 5}, "B": {"ttft_s": [0.4] * 5}}))
    assert "A gives the first token soonest (200 ms; the next takes 2.00 times as long)" in won


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
    assert trust == (
        "Not to be trusted, or missing: C, which failed on w; noisy (A on w); "
        "power, which was not measured."
    )


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
    assert won.startswith("On w, V0, V1 and 10 more can't be told apart")


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


@pytest.fixture(scope="module")
def rated():
    """Four frameworks on `chat`, and two rated texts, of which `code` was cut."""
    sample = quality_sample(timeline_samples=3)
    return build_report_data(Run(Path("made-up"), sample.record(), tuple(sample.trials())))


def test_what_a_winner_loses_in_quality_is_told(rated):
    """The one with the least memory has the worst perplexity, and the sentence says so."""
    _, won, _ = said(rated)
    ratio = rated.summary("prose", "mlc q3f16_1 threads=2", "perplexity_ratio")
    assert 1.35 < ratio.median < 1.5
    assert "mlc q3f16_1 threads=2 needs the least memory" in won
    assert f"{100 * (ratio.median - 1):+.0f} % [" in won
    assert won.index("against the reference, perplexity on prose is") < won.index("+")
    assert won.endswith("with mlc q3f16_1 threads=2.")


def test_a_loss_is_against_the_base_where_there_is_no_reference():
    """B's text is exp(-0.05) times as likely a token as that of A in 16 bits: +5.13 %."""
    run = made({"A": steady(0.0), "B": steady(0.05)}, None)
    formats = zip(run.record.variants, ("f16", "q4_0"), strict=True)
    variants = [each.model_copy(update={"quantization": name}) for each, name in formats]
    run = replace(run, record=run.record.model_copy(update={"variants": variants}))
    _, won, _ = said(build_report_data(run))
    assert won.endswith("against A, perplexity on text is +5.13 % with B.")


def test_flags_are_told_with_who_has_them_and_where(rated):
    """Each flag once: all were cut on the text `code`, two did not warm up on `chat`."""
    *_, trust = said(rated)
    assert "cut by budget (all variants on code)" in trust
    unstable = "llama.cpp f16 threads=2 and mlc q3f16_1 threads=2 on chat"
    assert f"unstable warm-up ({unstable})" in trust
    assert trust.count("cut by budget") == 1


def test_figures_of_the_opening_are_those_of_the_tiles(rated):
    """Both write as many digits as the interval allows."""
    _, won, _ = said(rated)
    for leader in answers(rated)[0].leaders:
        assert f"({leader.value} {leader.unit};" in won


def test_each_workload_has_its_own_figure():
    """Two workloads are no range: 100 ms on one and 300 ms on the other."""
    times = {
        "A": {"short": [0.1] * 6, "long": [0.3] * 6},
        "B": {"short": [0.2] * 6, "long": [0.9] * 6},
    }
    data = choice_data(
        {
            name: {each: {"ttft_s": values} for each, values in own.items()}
            for name, own in times.items()
        }
    )
    _, won, _ = said(data)
    assert "100 ms on short, 300 ms on long; the next takes 2.00 and 3.00 times as long" in won
    with language("zh"):
        assert "short 为 100 ms、long 为 300 ms" in said(data)[1]


def test_of_many_workloads_the_lowest_and_the_highest_are_named():
    """Five figures are too many for a sentence; the two that stand for them say where they are."""
    rates = {"w0": 10.0, "w1": 50.0, "w2": 20.0, "w3": 30.0, "w4": 40.0}
    data = choice_data(
        {
            name: {each: {"decode_rate": [rate * factor] * 6} for each, rate in rates.items()}
            for name, factor in (("A", 2.0), ("B", 1.0))
        }
    )
    _, won, _ = said(data)
    assert "from 20.0 tokens/s on w0 to 100 tokens/s on w1, of 5 workloads" in won
    assert won.startswith("On all workloads, A decodes fastest")


def test_what_failed_is_told_once_and_with_its_workload(by_hand):
    """A cell that failed has no flags beside, and a run of nothing but failures is short."""
    crashes = [_crashed(name, "w") for name in ("A", "B")]
    *_, trust = said(by_hand({"A": {"decode_rate": []}, "B": {"decode_rate": []}}, trials=crashes))
    assert trust == "There is nothing to trust: every variant failed, see Failures."
    some = {"A": {"decode_rate": []}, "B": {"decode_rate": [40.0] * 5}}
    *_, trust = said(by_hand(some, trials=crashes[:1]))
    assert "A, which failed on w;" in trust
    assert "few repetitions" not in trust


def test_winners_that_differ_by_workload_are_not_all_listed():
    """With another winner on each of four workloads two are told, and that there are more."""
    rates = {
        name: {f"w{at}": {"decode_rate": [60.0 if at == own else 40.0] * 6} for at in range(4)}
        for own, name in enumerate("ABCD")
    }
    _, won, _ = said(choice_data(rates))
    assert "on w0, a decodes fastest" in won.lower()
    assert "on w1, B decodes fastest" in won
    assert "on w2" not in won
    assert won.count("95 % interval") == 1
    assert won.endswith("on other workloads it ends otherwise, see In short.")


def test_chinese_words_are_not_parted_by_blanks(rated):
    """A blank stands between Chinese and a name, and not between Chinese and Chinese."""
    with language("zh"):
        for sentence in said(rated):
            assert not re.search("[\u4e00-\u9fff] +[\u4e00-\u9fff]", sentence)
            assert not re.search("[。，；：）] ", sentence)


def test_where_nearly_all_is_tied_names_give_way_to_counts():
    """Three ties or more are told metric by metric: how many can't be told apart, and where."""
    slow, fast = [40.0, 44.0, 41.0, 43.0, 42.0, 42.5], [41.0, 45.0, 42.0, 44.0, 43.0, 43.5]
    noisy = {
        "A": {"decode_rate": fast, "ttft_s": [each / 100 for each in slow]},
        "B": {"decode_rate": slow, "ttft_s": [each / 100 for each in fast]},
    }
    apart = {"C": {"decode_rate": [5.0] * 6, "ttft_s": [9.0] * 6}}
    data = choice_data(
        {
            "A": {"one": noisy["A"], "two": noisy["A"]},
            "B": {"one": noisy["B"], "two": apart["C"]},
            "C": {"one": apart["C"], "two": noisy["B"]},
        }
    )
    _, won, _ = said(data)
    assert won == (
        "Nobody leads in decode rate (2 variants can't be told apart on one, at about 43 "
        "tokens/s; 2 variants can't be told apart on two, at about 43 tokens/s) and time to "
        "first token (2 variants can't be told apart on one, at about 422 ms; 2 variants can't "
        "be told apart on two, at about 422 ms)."
    )
