"""Verdicts: better, worse, the same, can't tell, not compared; and why."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import pytest
from sample_quality import text_workload
from sample_run import derived, llama_variant
from side_sample import interleaved, run, side, variants_side

from edgebench.harness.compare.compare import compare
from edgebench.harness.compare.matching import match
from edgebench.harness.compare.model import Answer, Samples
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.compare.verdicts import unsettled, verdict_of
from edgebench.harness.compare.wanted import DEFAULT_METRICS, by_patterns
from edgebench.harness.metrics.definitions import METRICS
from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.quality import WindowRecord
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Compared, Comparison, Side

Values = dict[str, dict[str, list[float | None]]]

STEADY = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.0]


def _all(name: str, key: str) -> bool:
    return True


def _pair(baseline: Values, candidate: Values, **given: object) -> Comparison:
    """Of two runs that were made at different times."""
    units = given.pop("units", {})
    mine = side("a", baseline, units=units)
    theirs = side("b", candidate, units=units)
    return compare(match(mine, theirs), **{"wanted": _all, **given})  # type: ignore[arg-type]


def _blocks(baseline: Values, candidate: Values, **given: object) -> Comparison:
    """Of two runs that were made in the same blocks."""
    mine = side("a", baseline, interleaved=interleaved("s", "baseline", "b"))
    theirs = side("b", candidate, interleaved=interleaved("s", "candidate", "a"))
    return compare(match(mine, theirs), **{"wanted": _all, **given})  # type: ignore[arg-type]


def _one(found: Comparison) -> Compared:
    (row,) = found.rows
    return row


def _rates(values: Sequence[float | None]) -> Values:
    return {"v": {"decode_rate": list(values)}}


def test_a_slowdown_is_worse_by_its_share() -> None:
    """10 % fewer tokens a second in every block: a ratio of 0.9, a worsening of 0.1."""
    row = _one(_blocks(_rates(STEADY), _rates([0.9 * each for each in STEADY])))
    assert (row.verdict, row.why) == ("worse", "")
    assert row.answer.paired
    assert row.answer.ratio == pytest.approx(0.9)
    assert row.worsening == pytest.approx(0.1)
    assert (row.baseline, row.candidate) == pytest.approx((100.0, 90.0))
    assert (row.unit, row.better) == ("token/s", "higher")


def test_a_time_that_grew_is_worse_and_one_that_fell_better() -> None:
    """The direction is the metric's: 25 % longer is 0.25 worse; 20 % shorter 0.2 better."""
    times = {"v": {"ttft_s": [0.01 * each for each in STEADY]}}
    longer = {"v": {"ttft_s": [0.0125 * each for each in STEADY]}}
    row = _one(_blocks(times, longer))
    assert (row.verdict, row.worsening) == ("worse", pytest.approx(0.25))
    row = _one(_blocks(longer, times))
    assert (row.verdict, row.worsening) == ("better", pytest.approx(-0.2))


def test_runs_of_different_times_are_compared_with_a_noise_floor() -> None:
    """The same values are told apart by a large change only, and a note says what tells more."""
    found = _pair(_rates(STEADY), _rates([0.8 * each for each in STEADY]))
    assert _one(found).verdict == "worse"
    assert not _one(found).answer.paired
    (note,) = found.notes
    assert "a difference of up to 1 % counts as noise" in note
    assert "--against" in note


def test_what_is_certainly_within_the_margin_is_the_same() -> None:
    """However certain a change of 1 % is, where 2 % count as none it is none."""
    slower = _rates([0.99 * each for each in STEADY])
    assert _one(_blocks(_rates(STEADY), slower)).verdict == "same"
    row = _one(_blocks(_rates(STEADY), slower, margin=0.005))
    assert (row.verdict, row.worsening) == ("worse", pytest.approx(0.01))


def test_noise_can_not_be_told() -> None:
    """It says which change would have been noticed, and how many repetitions settle 2 %."""
    noisy = [100.0, 80.0, 120.0, 95.0, 110.0, 85.0, 101.0, 99.0]
    row = _one(_blocks(_rates(noisy), _rates(noisy[3:] + noisy[:3])))
    assert row.verdict == "cant_tell"
    assert row.answer.noticeable is not None
    assert row.repetitions is not None
    assert row.repetitions > len(noisy)
    assert row.why.startswith("a change of ")
    assert row.why.endswith(" repetitions on each side would settle 2 %")


def test_repetitions_are_told_as_people_ask_for_them() -> None:
    """Two of a block are two: twice as many as blocks."""
    noisy = [100.0, 80.0, 120.0, 95.0, 110.0, 85.0, 101.0, 99.0]
    single = _one(_blocks(_rates(noisy), _rates(noisy[3:] + noisy[:3])))

    def doubled(name: str, which: str, values: list[float]) -> Side:
        made = run(name, _rates(values), interleaved=interleaved("s", which, "x"))
        trials = tuple(each for trial in made.trials for each in (trial, trial))
        return side_of_run(Run(made.path, made.record, trials))

    sides = doubled("a", "baseline", noisy), doubled("b", "candidate", noisy[3:] + noisy[:3])
    twice = _one(compare(match(*sides)))
    assert single.repetitions is not None
    assert twice.repetitions == 2 * single.repetitions
    assert twice.answer.n == single.answer.n


def test_one_repetition_says_nothing_about_certainty() -> None:
    """There is a ratio, no interval and no verdict."""
    row = _one(_pair(_rates([100.0]), _rates([50.0])))
    assert (row.verdict, row.answer.ratio) == ("cant_tell", pytest.approx(0.5))
    assert row.why == "one repetition says nothing about certainty"
    assert row.answer.low is None
    assert row.repetitions is None


def test_constant_samples_have_a_verdict() -> None:
    """Equal ones are the same, others are told apart; nothing is divided by their spread."""
    flat = [100.0] * 8
    assert _one(_blocks(_rates(flat), _rates(flat))).verdict == "same"
    row = _one(_blocks(_rates(flat), _rates([90.0] * 8)))
    assert (row.verdict, row.answer.ratio) == ("worse", pytest.approx(0.9))


def test_all_zeros_are_the_same() -> None:
    """Nothing on both sides is no change."""
    zeros: Values = {"v": {"peak_shared_bytes": [0.0] * 6}}
    row = _one(_pair(zeros, zeros, units={"peak_shared_bytes": "byte"}))
    assert (row.verdict, row.worsening) == ("same", 0.0)
    assert (row.baseline, row.candidate) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("baseline", "candidate", "why"),
    [
        ([0.0] * 6, STEADY[:6], "the baseline is 0, so no ratio can be made"),
        (
            STEADY[:3],
            [1.0, -1.0, 2.0],
            "the candidate has a value of 0 or below, so no ratio can be made",
        ),
        (
            STEADY[:2],
            [1.7e308, 1.7e308],
            "the candidate has a value that nothing can have, so no ratio can be made",
        ),
        ([None] * 3, STEADY[:3], "the baseline has none: no such sensor"),
        (STEADY[:3], [None] * 3, "the candidate has none: no such sensor"),
    ],
)
def test_what_no_ratio_can_be_made_of_is_not_compared(
    baseline: list[float | None], candidate: list[float | None], why: str
) -> None:
    """With its reason; the values there are still stand there."""
    row = _one(_pair(_rates(baseline), _rates(candidate)))
    assert (row.verdict, row.why) == ("not_compared", why)
    assert row.answer.ratio is None
    assert row.worsening is None


def test_a_rate_that_fell_to_nothing_is_all_of_it_worse() -> None:
    """100 % worse, without a ratio; of a time that is 0 nothing can be said."""
    row = _one(_blocks(_rates(STEADY), _rates([0.0] * 10)))
    assert (row.verdict, row.worsening, row.answer.ratio) == ("worse", 1.0, None)
    assert row.why == "every value of the candidate is 0, and the baseline's are not"
    assert (row.baseline, row.candidate) == (100.0, 0.0)
    times: Values = {"v": {"ttft_s": list(STEADY)}}
    row = _one(_blocks(times, {"v": {"ttft_s": [0.0] * 10}}))
    assert (row.verdict, row.worsening) == ("not_compared", None)


def test_a_single_rate_of_0_is_a_very_small_one() -> None:
    """As a thousandth of the smallest there is: the others decide, and no repetition is lost."""
    once = [*(0.9 * each for each in STEADY[:9]), 0.0]
    row = _one(_blocks(_rates(STEADY), _rates(once)))
    thousandth = [*once[:9], min(once[:9]) / 1000]
    same = _one(_blocks(_rates(STEADY), _rates(thousandth)))
    assert row.answer == same.answer
    assert row.answer.n == 10
    row = _one(_blocks({"v": {"ttft_s": list(STEADY)}}, {"v": {"ttft_s": list(once)}}))
    assert row.why == "the candidate has a value of 0 or below, so no ratio can be made"


def test_a_load_is_asked_and_told_once() -> None:
    """It is its variant's, of however many workloads; two loads that differ are two."""

    def loaded(name: str, which: str, factor: float) -> Side:
        times = [factor * each for each in STEADY]
        made = side(name, _rates(STEADY), interleaved=interleaved("s", which, "x"))
        (cell,) = made.cells.values()
        load = Samples(tuple(times), cell.metrics["decode_rate"].blocks, "s", "observed")
        cells = [
            replace(
                cell,
                workload=cell.workload.model_copy(update={"name": workload}),
                metrics={"load_s": load, "decode_rate": cell.metrics["decode_rate"]},
            )
            for workload in ("one", "two", "three")
        ]
        return replace(made, cells={each.key: each for each in cells})

    matched = match(loaded("a", "baseline", 1.0), loaded("b", "candidate", 1.2))
    found = [(row.pair.candidate.workload.name, row.metric) for row in compare(matched).rows]
    assert found == [
        ("one", "load_s"), ("one", "decode_rate"), ("two", "decode_rate"), ("three", "decode_rate")
    ]  # fmt: skip
    # Of those that are wanted, the first.
    (row,) = compare(matched, wanted=by_patterns(["* / t*"], ["load_s"])).rows
    assert (row.pair.candidate.workload.name, row.verdict) == ("two", "worse")


def test_a_metric_that_one_side_does_not_speak_of_is_a_row() -> None:
    """As an older edgebench may not have measured it."""
    both: Values = {"v": {"decode_rate": list(STEADY), "ttft_s": list(STEADY)}}
    found = {row.metric: row for row in _pair(_rates(STEADY), both).rows}
    assert found["ttft_s"].why == "the baseline does not speak of it"
    assert found["ttft_s"].candidate == pytest.approx(100.0)
    assert found["decode_rate"].verdict == "same"


def test_units_that_differ_are_not_compared() -> None:
    """Both are named."""
    mine = side("a", {"v": {"ttft_s": [1.0, 1.1]}})
    theirs = side("b", {"v": {"ttft_s": [1.0, 1.1]}}, units={"ttft_s": "ms"})
    row = _one(compare(match(mine, theirs)))
    assert (row.verdict, row.why) == (
        "not_compared",
        "the baseline's is in s, the candidate's in ms",
    )


def test_what_neither_side_has_is_left_out() -> None:
    """A sensor that is nowhere is no row."""
    nothing: Values = {"v": {"decode_rate": list(STEADY), "ttft_s": [None] * 10}}
    assert [row.metric for row in _pair(nothing, nothing).rows] == ["decode_rate"]


def _failed(name: str) -> Side:
    made = run(name, _rates(STEADY))
    failure = Failure(kind="crash", message="The process ended.\nlog")
    trials = tuple(
        each.model_copy(update={"status": "failed", "metrics": {}, "failure": failure})
        for each in made.trials
    )
    return side_of_run(Run(made.path, made.record, trials))


def test_a_cell_that_failed_is_not_compared_with_the_reason() -> None:
    """The first line of what it said; a cell that failed on both sides has no row."""
    row = _one(compare(match(side("a", _rates(STEADY)), _failed("b"))))
    assert (row.verdict, row.why) == ("not_compared", "the candidate failed: The process ended")
    row = _one(compare(match(_failed("a"), side("b", _rates(STEADY)))))
    assert row.why == "the baseline failed: The process ended"
    assert compare(match(_failed("a"), _failed("b"))).rows == ()


def test_a_fact_needs_no_statistics() -> None:
    """One byte more is worse, equal is the same, and neither waits for repetitions."""

    def sized(name: str, size: int) -> Side:
        return variants_side(name, llama_variant("source", {}, f"{size}", size, id="v"))

    def row(mine: int, theirs: int) -> Compared:
        found = compare(
            match(sized("a", mine), sized("b", theirs)), wanted=by_patterns((), ["model_*"])
        )
        return _one(found)

    # The files' names differ, so no hash of one name says that the models do.
    assert row(1000, 1000).verdict == "same"
    assert (row(1000, 1001).verdict, row(1000, 1001).worsening) == ("worse", pytest.approx(0.001))
    assert row(1001, 1000).verdict == "better"
    assert row(1000, 1001).repetitions is None


def test_rows_are_by_pair_in_the_order_of_the_metrics() -> None:
    """As reports list them."""
    values: Values = {
        each: {"peak_rss_bytes": [1.0, 2.0], "decode_rate": [1.0, 2.0], "ttft_s": [1.0, 2.0]}
        for each in ("one", "other")
    }
    found = [(row.pair.name, row.metric) for row in _pair(values, values).rows]
    keys = ["ttft_s", "decode_rate", "peak_rss_bytes"]
    assert found == [(f"{each} / w", key) for each in ("one", "other") for key in keys]


def test_by_default_only_what_people_choose_by_is_asked_about() -> None:
    """Each has a direction; no copy of the engine's own clock is among them."""
    values: Values = {
        "v": {each: [1.0, 1.1] for each in ("decode_rate", "tpot_s", "engine_ttft_s")}
    }
    units = {"tpot_s": "s", "engine_ttft_s": "s"}
    sides = side("a", values, units=units), side("b", values, units=units)
    assert [row.metric for row in compare(match(*sides)).rows] == ["decode_rate"]
    asked = compare(match(*sides), wanted=by_patterns((), ["tpot_s", "engine_*"]))
    assert [row.metric for row in asked.rows] == ["tpot_s", "engine_ttft_s"]
    known = [METRICS[key] for key in DEFAULT_METRICS if key in METRICS]
    assert len(known) >= 10
    assert all(each.better is not None for each in known)


def test_patterns_pick_cells_by_the_candidates_name() -> None:
    """As `VARIANT / WORKLOAD`; case counts."""
    wanted = by_patterns(["llama* / chat"], [])
    assert wanted("llama.cpp Q8 / chat", "decode_rate")
    assert not wanted("llama.cpp Q8 / pp512", "decode_rate")
    assert not wanted("Llama / chat", "decode_rate")
    assert not wanted("llama.cpp Q8 / chat", "tpot_s")


def test_a_metric_without_a_direction_is_never_a_row() -> None:
    """Neither way would be worse."""
    values: Values = {"v": {"cpu_clock_hz": [1e9, 2e9], "decode_rate": [1.0, 1.1]}}
    found = _pair(values, values, units={"cpu_clock_hz": "Hz"})
    assert [row.metric for row in found.rows] == ["decode_rate"]


def test_all_verdicts_together_are_as_certain_as_asked() -> None:
    """Beside many other cells the same samples of one cell say less, and no other ratio."""
    slower = [each * (0.97 if place % 3 else 1.0) for place, each in enumerate(STEADY)]
    alone = _one(_blocks(_rates(STEADY), _rates(slower)))
    others = {
        f"v{place}": {"decode_rate": STEADY[place:] + STEADY[:place]} for place in range(1, 9)
    }
    turned = {
        name: {"decode_rate": each["decode_rate"][1:] + each["decode_rate"][:1]}
        for name, each in others.items()
    }
    among = _blocks({**_rates(STEADY), **others}, {**_rates(slower), **turned})
    (row,) = (each for each in among.rows if each.pair.name == "v / w")
    assert alone.answer.p_worse is not None
    assert row.answer.p_worse is not None
    assert row.answer.p_worse >= alone.answer.p_worse
    assert row.answer.ratio == alone.answer.ratio


def test_swapped_sides_say_the_opposite() -> None:
    """One over the ratio; better for worse; the interval turned round."""
    slower = [each * (0.9 + 0.001 * place) for place, each in enumerate(STEADY)]
    there = _one(_blocks(_rates(STEADY), _rates(slower))).answer
    back = _one(_blocks(_rates(slower), _rates(STEADY))).answer
    assert there.ratio is not None
    assert there.low is not None
    assert back.ratio == pytest.approx(1 / there.ratio)
    assert back.high == pytest.approx(1 / there.low)
    assert (back.p_better, back.p_worse) == pytest.approx((there.p_worse, there.p_better))


# Quality


def _bits(logs: Sequence[float]) -> float:
    return -sum(logs) / math.log(2) / (40 * len(logs))


def _rated(name: str, logs: dict[str, list[float]], **changes: object) -> Side:
    """A side of variants that rated a text: of each window its log-likelihood, of 10 tokens."""
    text = text_workload("prose", len(next(iter(logs.values()))), seed=1)
    assert text.quality is not None
    windows = len(next(iter(logs.values())))
    text = text.model_copy(
        update={
            "quality": text.quality.model_copy(
                update={"windows": windows, "windows_planned": windows, "reference": None}
            )
        }
    )
    made = run(name, {each: {"decode_rate": [1.0]} for each in logs}, **changes)
    record = made.record.model_copy(update={"workloads": [text]})
    trials = tuple(
        Trial(
            kind="quality",
            variant=each,
            workload="prose",
            block=0,
            repetition=0,
            phase="measured",
            status="ok",
            started_at="2025-01-14T10:16:00Z",
            duration_s=1.0,
            metrics={
                "perplexity": derived(math.exp(-sum(values) / (10 * len(values))), "1"),
                "bits_per_byte": derived(
                    -sum(values) / math.log(2) / (40 * len(values)), "bit/byte"
                ),
                "kl_divergence": derived(0.1, "nat"),
                "top1_agreement": Measured.missing("1", "no reference", "derived"),
            },
            windows=[WindowRecord(tokens=10, bytes=40, log_likelihood=value) for value in values],
        )
        for each, values in logs.items()
    )
    return side_of_run(Run(made.path, record, trials))


LOGS = [-20.0, -22.0, -19.0, -25.0, -21.0, -23.0, -18.0, -24.0, -20.5, -22.5]


def _enumerated(by: Sequence[float]) -> float:
    """P of a sum at least as large, were each difference as likely to be its negative."""
    seen = sum(by)
    sums = [
        sum(sign * each for sign, each in zip(signs, by, strict=True))
        for signs in product((1, -1), repeat=len(by))
    ]
    return sum(each >= seen - 1e-9 for each in sums) / len(sums)


def test_perplexity_is_tested_window_by_window() -> None:
    """The ratio is that of the perplexities; p is by enumeration of all signs, one-sided."""
    worse = [each - 0.3 - 0.05 * place for place, each in enumerate(LOGS)]
    found = compare(match(_rated("a", {"v": LOGS}), _rated("b", {"v": worse})))
    row = _one(found)
    assert row.metric == "perplexity"
    assert (row.verdict, row.answer.paired, row.answer.n) == ("worse", True, 10)
    by = [mine - theirs for mine, theirs in zip(LOGS, worse, strict=True)]
    assert row.answer.ratio == pytest.approx(math.exp(sum(by) / 100))
    assert row.answer.p_worse == pytest.approx(_enumerated(by))
    assert row.answer.p_better == 1.0
    assert row.candidate == pytest.approx(math.exp(-sum(worse) / 100))
    assert found.notes == ()


def test_several_texts_share_the_chance_of_a_false_alarm() -> None:
    """Holm: the smallest p times as many as there are."""
    chances = [0.3, -0.1, 0.2, 0.25, -0.05, 0.1, 0.15, 0.3, 0.2, 0.1]
    other = [each - chance for each, chance in zip(LOGS, chances, strict=True)]
    slight = [each - (0.2 if place % 2 else -0.19) for place, each in enumerate(LOGS)]
    sides = (
        _rated("a", {"v": LOGS, "u": LOGS}),
        _rated("b", {"v": other, "u": slight}),
    )
    found = {row.pair.name: row.answer for row in compare(match(*sides)).rows}
    first, second = _enumerated(chances), _enumerated([0.2 if p % 2 else -0.19 for p in range(10)])
    assert first < second
    assert found["v / prose"].p_worse == pytest.approx(2 * first)
    assert found["u / prose"].p_worse == pytest.approx(max(2 * first, second))


def test_equal_windows_are_the_same_however_few() -> None:
    """The same weights on the same code rate a text to the bit alike."""
    row = _one(compare(match(_rated("a", {"v": LOGS[:2]}), _rated("b", {"v": LOGS[:2]}))))
    assert (row.verdict, row.worsening) == ("same", 0.0)


def test_too_few_windows_tell_nothing() -> None:
    """And say how many an interval needs."""
    worse = [each - 1 for each in LOGS[:3]]
    row = _one(compare(match(_rated("a", {"v": LOGS[:3]}), _rated("b", {"v": worse}))))
    assert row.verdict == "cant_tell"
    assert row.why == "an interval needs 6 windows, there are 3; a longer text tells more"
    assert row.repetitions is None


def test_the_margin_of_quality_is_its_own() -> None:
    """1 % of a perplexity is a loss, though it is nothing of a rate."""
    worse = [each - 0.1 - 0.001 * place for place, each in enumerate(LOGS)]
    row = _one(compare(match(_rated("a", {"v": LOGS}), _rated("b", {"v": worse}))))
    assert row.worsening == pytest.approx(0.0105, rel=0.02)
    assert row.verdict == "worse"


def test_other_windows_are_not_compared() -> None:
    """As where one run was stopped before it had rated all of them."""
    mine = _rated("a", {"v": LOGS})
    theirs = _rated("b", {"v": LOGS})
    ((key, cell),) = theirs.cells.items()
    short = type(cell)(
        **{name: getattr(cell, name) for name in ("variant", "workload", "status", "metrics")},
        windows=cell.windows[:4],
    )
    sides = (
        mine,
        type(theirs)(
            **{
                name: getattr(theirs, name)
                for name in ("label", "runs", "model_name", "model_source", "hashes")
            },
            cells={key: short},
        ),
    )
    row = _one(compare(match(*sides)))
    assert (row.verdict, row.why) == ("not_compared", "the two did not rate the same windows")


def test_figures_without_a_test_are_shown_and_not_compared() -> None:
    """Bits per byte have the test of the perplexity; the divergence has none."""
    worse = [each - 0.3 for each in LOGS]
    sides = _rated("a", {"v": LOGS}), _rated("b", {"v": worse})
    found = {row.metric: row for row in compare(match(*sides), wanted=_all).rows}
    assert set(found) == {"perplexity", "bits_per_byte", "kl_divergence"}
    bits, perplexity = found["bits_per_byte"], found["perplexity"]
    assert bits.answer.ratio == pytest.approx(sum(worse) / sum(LOGS))
    assert bits.answer.p_worse == perplexity.answer.p_worse
    assert found["kl_divergence"].verdict == "not_compared"
    assert found["kl_divergence"].candidate == pytest.approx(0.1)


def test_quality_and_speed_share_the_chance_of_a_false_alarm() -> None:
    """Two families: p of either is twice what it is alone."""
    slower = [each * 0.97 for each in STEADY]
    worse = [each - 0.3 - 0.05 * place for place, each in enumerate(LOGS)]
    alone = _one(_blocks(_rates(STEADY), _rates(slower))).answer
    sides = []
    for name, which, rates, logs in (
        ("a", "baseline", STEADY, LOGS),
        ("b", "candidate", slower, worse),
    ):
        told = interleaved("s", which, "x")
        speed = run(name, _rates(rates), interleaved=told)
        text = _rated(name, {"v": logs}, interleaved=told)
        both = side_of_run(speed)
        cells = {**both.cells, **text.cells}
        sides.append(
            type(both)(both.label, both.runs, both.model_name, both.model_source, {}, cells)
        )
    found = {row.metric: row.answer for row in compare(match(*sides)).rows}
    assert alone.p_worse is not None
    assert found["decode_rate"].p_worse == pytest.approx(2 * alone.p_worse)
    by = [mine - theirs for mine, theirs in zip(LOGS, worse, strict=True)]
    assert found["perplexity"].p_worse == pytest.approx(2 * _enumerated(by))


# Words


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(0.9, 0.85, 0.95, p_worse=0.024, p_better=1.0), "worse"),
        (Answer(0.9, 0.85, 0.95, p_worse=0.026, p_better=1.0), "cant_tell"),
        (Answer(1.1, 1.05, 1.15, p_worse=1.0, p_better=0.025), "better"),
        (Answer(1.0, 0.981, 1.019, p_worse=0.01, p_better=1.0), "same"),
        (Answer(1.0, 0.97, 1.019, p_worse=1.0, p_better=1.0), "cant_tell"),
        (Answer(1.5), "cant_tell"),
        (Answer(None, reason="none"), "not_compared"),
    ],
)
def test_verdicts(answer: Answer, verdict: str) -> None:
    """The interval within the margin first, then what is certain."""
    assert verdict_of(answer, confidence=0.95, margin=0.02) == verdict


def test_a_gate_gives_one_direction_all_of_the_chance() -> None:
    """5 % for what is worse; else 2.5 % for each direction."""
    answer = Answer(0.9, 0.85, 0.95, p_worse=0.04, p_better=1.0)
    assert verdict_of(answer, confidence=0.95, margin=0.02, one_sided=True) == "worse"
    assert verdict_of(answer, confidence=0.95, margin=0.02) == "cant_tell"


def test_what_would_settle_it_is_told() -> None:
    """As far as it is known."""
    known = Answer(1.0, n=8, noticeable=0.061)
    assert unsettled(known, margin=0.02, repetitions=34) == (
        "a change of 6.1 % would have been noticed; 34 repetitions on each side would settle 2 %"
    )
    assert unsettled(known, margin=0.02, repetitions=None) == (
        "a change of 6.1 % would have been noticed"
    )
    assert unsettled(known, margin=0.02, repetitions=5000) == (
        "a change of 6.1 % would have been noticed; more than 1000 repetitions on each side would "
        "settle 2 %"
    )
    few = Answer(1.0, n=3, no_interval="3 pairs are too few for an interval")
    assert unsettled(few, margin=0.02, repetitions=9) == (
        "3 pairs are too few for an interval; 9 repetitions on each side would settle 2 %"
    )


def test_a_side_says_what_a_reader_must_know() -> None:
    """Which side it is stands before it; the same weights by name only are told too."""
    given = {"scenario": {"model": {"name": "m", "source": "path:m.gguf"}}}
    mine = side("a", _rates(STEADY), status="interrupted", **given)
    theirs = side("b", _rates(STEADY), **given)
    notes = compare(match(mine, theirs)).notes
    assert notes[0] == (
        "baseline: The run is not finished (interrupted): it counts as far as it went."
    )
    assert notes[1] == "Nothing but the same `path:` says that both are of the same weights."
