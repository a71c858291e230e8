"""The answer of the measurements alone: limits, the front, the weights, and how sure it is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from choice_run import ENERGY, MEMORY, RATE, TTFT, choice_data, choice_run, steady
from sample_quality import made
from sample_quality import steady as windows_of

from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.data import build_report_data
from edgebench.reports.selection.limits import checks
from edgebench.reports.selection.measured import measured_answer
from edgebench.reports.sentences import plain

A = steady(**{RATE: 100.0, MEMORY: 400.0})
B = steady(**{RATE: 50.0, MEMORY: 100.0})
C = steady(**{RATE: 25.0, MEMORY: 200.0})


def answer(variants, asked=None, **given):
    return measured_answer(choice_data(variants, **given), Requirements(**(asked or {})))


def said(found):
    return " ".join(plain(each) for each in found.sentences)


def out(found):
    return [(each.variant, each.state, *each.reasons) for each in found.excluded]


def cells_of(found, variant):
    row = next(each for each in found.table.rows if each.variant == variant)
    return {
        column.key: value for column, value in zip(found.table.columns, row.values, strict=True)
    }


def state_of(data, variant, asked, workloads=("w",)):
    record = next(each for each in data.record.variants if each.id == variant)
    return [each.state for each in checks(data, record, Requirements(**asked), workloads)]


def test_score_is_the_geometric_mean_relative_to_the_best():
    """The score is the weighted geometric mean of values relative to the best of those left.

    By hand: a has rates 1 and 100/400, so the root of 0.25; b 1/2 and 1, the root of 0.5; c 1/4 and
    1/2, the root of 1/8, and b beats it in both.
    """
    found = answer({"a": A, "b": B, "c": C})
    scores = {each: cells_of(found, each)["score"].sort for each in "abc"}
    assert scores == pytest.approx({"a": 0.5, "b": 0.5**0.5, "c": 0.125**0.5})
    assert (found.recommendation, found.variant, found.certainty) == ("b", "b", "sure")
    assert found.front == ("b", "a")
    assert cells_of(found, "c")["front"].text == "b"
    assert found.weights == pytest.approx({RATE: 0.5, MEMORY: 0.5})
    assert not found.weights_given


def test_weights_decide_among_the_front():
    """With thrice the weight on speed the faster one wins: 0.25 ** 0.25 against 0.5 ** 0.75."""
    found = answer({"a": A, "b": B, "c": C}, {"weights": {RATE: 3, MEMORY: 1}})
    assert found.variant == "a"
    assert cells_of(found, "a")["score"].sort == pytest.approx(0.25**0.25)
    assert cells_of(found, "b")["score"].sort == pytest.approx(0.5**0.75)
    assert found.weights_given
    assert "Weighed as asked: decode rate 75 %, peak memory 25 %." in said(found)


def test_a_dominated_variant_is_not_recommended_whatever_the_weights():
    """What another variant beats in memory, and equals in rate, does not win by a hair of rate."""
    a = {RATE: [100.0, 101, 102, 103, 104, 105], MEMORY: [400.0] * 6}
    b = {RATE: [99.9, 100.9, 101.9, 102.9, 103.9, 104.9], MEMORY: [100.0] * 6}
    found = answer({"a": a, "b": b}, {"weights": {RATE: 1}})
    assert found.front == ("b",)
    assert found.variant == "b"


def test_several_workloads_count_by_their_geometric_mean():
    """Rates of 10 and 40 stand as 20, and a single rate as itself."""
    both = {"x": steady(**{RATE: 10.0}), "y": steady(**{RATE: 40.0})}
    even = {"x": steady(**{RATE: 19.0}), "y": steady(**{RATE: 19.0})}
    found = answer({"a": both, "b": even})
    assert cells_of(found, "a")[RATE].sort == pytest.approx(20.0)
    assert cells_of(found, "b")[RATE].sort == pytest.approx(19.0)
    assert cells_of(found, "a")[RATE].where is None
    assert found.variant == "a"


def test_a_limit_must_hold_on_every_workload():
    """A variant that is fast enough on the mean, but not on one workload, is out."""
    both = {"x": steady(**{RATE: 10.0}), "y": steady(**{RATE: 400.0})}
    even = {"x": steady(**{RATE: 19.0}), "y": steady(**{RATE: 19.0})}
    found = answer({"a": both, "b": even}, {"min_decode_rate": 15})
    assert found.variant == "b"
    assert out(found) == [
        ("a", "fails", "It decodes 10.0 tokens/s on x, below the need of 15.0 tokens/s.")
    ]


@pytest.mark.parametrize(
    ("rates", "state"),
    [
        ([50.0, 51, 52, 53, 54, 55], "meets"),
        ([30.0, 31, 32, 33, 34, 35], "fails"),
        ([30.0, 41, 42, 43, 44, 45], "meets_by_median"),
        ([30.0, 31, 38, 39, 50, 60], "fails_by_median"),
        ([50.0, 51], "meets_by_median"),
        ([30.0, 31], "fails_by_median"),
        ([None] * 6, "unknown"),
    ],
)
def test_a_limit_is_met_beyond_doubt_only_with_the_whole_interval(rates, state):
    """What the interval straddles, or what has none, is told from what is beyond doubt."""
    data = choice_data({"a": {RATE: rates}})
    assert state_of(data, "a", {"min_decode_rate": 40}) == [state]


def test_the_memory_of_the_machine_is_a_limit_unless_another_one_is_given():
    """A peak above the machine's memory is out; a limit of the user's stands in its place."""
    machine = choice_run({"a": A}).record.machine.model_copy(update={"memory_bytes": 300})
    found = answer({"a": A, "b": B}, machine=machine)
    assert out(found) == [
        ("a", "fails", "Peak memory is 400 B on w, above the machine's memory of 300 B.")
    ]
    assert not found.limits_given
    assert answer({"a": A, "b": B}, {"max_memory_bytes": 500}, machine=machine).excluded == ()


def test_what_is_not_measured_stands_behind_what_is_known_to_meet_a_limit():
    """A variant whose time to first token is unknown is no winner over one that meets the limit."""
    unknown = {RATE: [100.0] * 6, TTFT: [None] * 6}
    known = steady(**{RATE: 50.0, TTFT: 0.4})
    found = answer({"a": unknown, "b": known}, {"max_ttft_s": 0.5})
    assert found.variant == "b"
    ((variant, state, why),) = out(found)
    assert (variant, state) == ("a", "unknown")
    limit = "Whether the first token comes within the limit of 500 ms is not known"
    assert why == f"{limit}: no such sensor."
    assert "Set aside" in said(found)
    assert cells_of(found, "a")["limits"].text == "not known"


def test_where_no_variant_is_known_to_meet_the_limits_nothing_is_recommended():
    """What is merely not known is no recommendation; a reader is told which ones that are."""
    unknown = {RATE: [100.0] * 6, TTFT: [None] * 6}
    slower = {RATE: [90.0] * 6, TTFT: [None] * 6}
    slow = steady(**{RATE: 90.0, TTFT: 0.9})
    found = answer({"a": unknown, "b": slower, "c": slow}, {"max_ttft_s": 0.5})
    assert (found.recommendation, found.variant, found.certainty) == ("", "", "none")
    assert [each[:2] for each in out(found)] == [
        ("a", "unknown"),
        ("b", "unknown"),
        ("c", "fails"),
    ]
    assert "Of these it is merely not known: a and b." in said(found)


def test_others_that_fail_are_told_from_others_of_which_it_is_not_known():
    """The only one left is so since the others fail, or since nobody measured whether they do."""
    fast = steady(**{RATE: 90.0, TTFT: 0.1})
    slow = steady(**{RATE: 90.0, TTFT: 0.9})
    unknown = {RATE: [100.0] * 6, TTFT: [None] * 6}
    limit = {"max_ttft_s": 0.5}
    assert "only one left: all others are out." in said(answer({"a": fast, "b": slow}, limit))
    assert "of all others that is not known." in said(answer({"a": fast, "b": unknown}, limit))
    three = answer({"a": fast, "b": unknown, "c": slow}, limit)
    assert "some others are out, and of some that is not known." in said(three)


def test_what_failed_is_out_with_its_reason():
    """A crash is a reason not to recommend a variant, and is told as it was recorded."""
    found = answer({"a": A, "b": B}, failed={"b": "Out of memory."})
    assert found.variant == "a"
    assert found.certainty == "alone"
    assert out(found) == [("b", "failed", "It failed on w: Out of memory.")]
    row = next(each for each in found.table.rows if each.variant == "b")
    assert row.failed
    assert row.remarks == ("failed", "few repetitions")


def test_all_failed_recommends_nothing():
    """Where nothing ran there is no recommendation and no table, but a reason for each."""
    found = answer({"a": A, "b": B}, failed={"a": "No.", "b": "No."})
    assert (found.recommendation, found.variant, found.certainty) == ("", "", "none")
    assert found.table is None
    assert [each[:2] for each in out(found)] == [("a", "failed"), ("b", "failed")]
    assert found.weights == {}
    assert said(found) == "Every variant failed, so there is nothing to choose from."


def test_nothing_measured_recommends_nothing():
    """Values that all are missing lead to no recommendation, and to no error."""
    nothing = {RATE: [None] * 6, MEMORY: [None] * 6}
    found = answer({"a": nothing, "b": nothing})
    assert (found.recommendation, found.table) == ("", None)


@pytest.mark.parametrize("variants", [{"a": A}, {"a": {RATE: [5.0]}}])
def test_a_single_variant_is_alone(variants):
    """One variant, with many blocks or one, is the only one left, and not called the best."""
    found = answer(variants)
    assert (found.variant, found.certainty) == ("a", "alone")
    assert not cells_of(found, "a")["score"].best


def test_pairing_tells_apart_what_drift_hides():
    """Where all blocks drift alike, 2 % less in each leaves no doubt, though intervals overlap."""
    drift = [50.0, 60, 70, 80, 90, 100]
    found = answer({"a": {RATE: drift}, "b": {RATE: [0.98 * each for each in drift]}})
    assert found.front == ("a", "b")
    assert (found.variant, found.certainty) == ("a", "sure")
    assert cells_of(found, "a")["wins"].sort == 1.0
    assert cells_of(found, "b")["wins"].sort == 0.0


def test_a_tie_names_all_that_can_not_be_told_apart():
    """Two variants that lead in turn are a tie; both are marked, and the other one is named."""
    found = answer(
        {
            "a": {RATE: [10.0, 12, 10, 12, 10, 12.1]},
            "b": {RATE: [12.0, 10, 12, 10, 12, 10]},
            "c": {RATE: [5.0, 6, 5, 6, 5, 6]},
        }
    )
    assert found.certainty == "tie"
    assert [cells_of(found, each)["score"].best for each in "abc"] == [True, True, False]
    assert "can't be told apart from b." in said(found)


def test_equal_variants_share_their_wins():
    """Two variants with the very same values win half of the resamples each."""
    found = answer({"a": A, "b": A})
    assert found.certainty == "tie"
    assert {cells_of(found, each)["wins"].sort for each in "ab"} == {0.5}


def test_few_blocks_are_a_hint_only():
    """With fewer than five blocks the best one is named, but not how sure that is."""
    found = answer({"a": {RATE: [10.0, 10, 10]}, "b": {RATE: [5.0, 5, 5]}})
    assert (found.variant, found.certainty) == ("a", "unsure")
    assert cells_of(found, "a")["wins"].sort is None
    assert "a hint only" in said(found)


def test_goals_that_not_all_have_are_left_out_and_named():
    """Energy that one variant lacks is not weighed; which one and why is said."""
    a = {**A, ENERGY: [1.0] * 6}
    b = {**B, ENERGY: [None] * 6}
    found = answer({"a": a, "b": b})
    assert set(found.weights) == {RATE, MEMORY}
    assert "Left out is energy per token, which not all of them have; b: no such sensor." in said(
        found
    )


def test_what_is_weighed_and_missing_stands_behind():
    """With a weight on energy, a variant without it is set aside and not scored as if it had it."""
    a = {**A, ENERGY: [1.0] * 6}
    b = {**B, ENERGY: [None] * 6}
    found = answer({"a": a, "b": b}, {"weights": {ENERGY: 1}})
    assert found.variant == "a"
    why = "Its energy per token, which is weighed, was not measured: no such sensor."
    assert out(found) == [("b", "unknown", why)]


def test_weights_of_what_nobody_measured_are_said_and_fall_back():
    """A weight on energy alone, which nothing measured, leaves all other goals alike."""
    found = answer({"a": A, "b": B}, {"weights": {ENERGY: 1}})
    assert (found.variant, found.weights_given) == ("b", False)
    assert found.weights == pytest.approx({RATE: 0.5, MEMORY: 0.5})
    assert said(found).count("energy per token") == 1
    assert "Nothing of what should be weighed was measured (energy per token), so that" in said(
        found
    )


@pytest.mark.parametrize("variants", [{"a": A, "b": B}, {"a": A}])
def test_a_weight_that_is_ignored_is_said_once(variants):
    """Of two goals that should be weighed one was not measured: also where only one is left."""
    found = answer(variants, {"weights": {ENERGY: 1, RATE: 1}})
    assert said(found).count("energy per token") == 1
    assert "The weight that was asked for is ignored, since it was not measured: energy" in said(
        found
    )


def test_a_zero_is_not_compared():
    """A value of 0, of which no ratio can be made, counts as not measured."""
    a = {**A, ENERGY: [0.0] * 6}
    b = {**B, ENERGY: [1.0] * 6}
    found = answer({"a": a, "b": b})
    assert ENERGY not in found.weights
    assert cells_of(found, "a")[ENERGY].sort is None
    assert "0, which can't be compared" in cells_of(found, "a")[ENERGY].reason


def test_the_testing_runner_is_no_candidate_beside_a_framework():
    """The fake runner never wins against a real one."""
    found = answer({"a": A, "b": B}, runners={"b": "fake"})
    assert found.variant == "a"
    assert out(found) == [("b", "fails", "It makes its figures up and is no framework.")]


def test_the_testing_runner_alone_recommends_nothing():
    """Made-up figures are compared, but they are no ground for a recommendation."""
    found = answer({"a": A, "b": B}, runners={"a": "fake", "b": "fake"})
    assert (found.recommendation, found.framework, found.variant) == ("", "", "")
    assert found.certainty == "none"
    assert [each.variant for each in found.candidates] == ["b", "a"]
    assert said(found).endswith("which makes its figures up: nothing is recommended.")


def test_a_capability_that_a_document_denies_excludes_with_its_words():
    """What edgebench can't measure is judged by the documents, and marked as their words."""
    asked = {"enterprise_support": True}
    found = answer({"llama.cpp": A, "mnn": B}, asked)
    assert found.variant == "mnn"
    ((variant, state, why),) = out(found)
    assert (variant, state) == ("llama.cpp", "fails")
    assert found.by_documents
    assert "the document" in why
    assert "a personal open-source project" in why


def test_a_limit_of_quality_holds_against_the_reference():
    """With at most 2 % more perplexity, a loss of 0.01 nat (1 %) stays, 0.1 nat (10.5 %) not."""
    windows = {"a": windows_of(0.01), "b": windows_of(0.1)}
    data = build_report_data(made(windows))
    found = measured_answer(data, Requirements(max_quality_loss=0.02))
    assert found.variant == "a"
    ((variant, state, why),) = out(found)
    assert (variant, state) == ("b", "fails")
    assert not found.by_documents
    assert "+10.5" in why
    cell = cells_of(found, "a")["perplexity_ratio"]
    assert cell.sort == pytest.approx(2.718281828459045**0.01)


def test_quality_weighs_by_perplexity():
    """Of two that are as fast, the one with the lower perplexity scores 1, the other its ratio."""
    data = build_report_data(made({"a": windows_of(0.0), "b": windows_of(0.2)}))
    found = measured_answer(data, Requirements(weights={"quality": 1}))
    assert (found.variant, found.certainty) == ("a", "sure")
    assert cells_of(found, "b")["front"].text == "a"
    assert cells_of(found, "b")["score"].sort == pytest.approx(2.718281828459045**-0.2)


def test_variants_of_two_runs_are_not_paired():
    """Equal drift in two runs is chance: what pairing would tell apart stays a tie, and is said."""
    drift = [50.0, 60, 70, 80, 90, 100]
    run = choice_run({"a": {RATE: drift}, "b": {RATE: [0.98 * each for each in drift]}})
    moved = tuple(
        each.model_copy(update={"block": each.block + 6}) if each.variant == "b" else each
        for each in run.trials
    )
    data = build_report_data(replace(run, trials=moved))
    (part,) = data.parts
    data = replace(data, parts=(replace(part, variants=("a",)), replace(part, variants=("b",))))
    found = measured_answer(data, Requirements())
    assert found.certainty == "tie"
    assert "The variants are of several runs" in said(found)


def test_five_hundred_variants_get_an_answer():
    """A large sweep is answered; its table has the hundred best and tells of the rest."""
    variants = {f"v{place}": {RATE: [float(place + 1)] * 5} for place in range(500)}
    found = answer(variants, runners=dict.fromkeys(variants, "mnn"))
    assert (found.recommendation, found.variant, found.certainty) == ("mnn", "v499", "sure")
    assert len(found.candidates) == 500
    best = [f"v{place}" for place in range(499, 399, -1)]
    assert [each.variant for each in found.table.rows] == best
    assert "400 more variants are left out here" in found.table.notes[0]


def test_two_hundred_variants_have_a_row_each():
    """Up to two hundred variants nothing is left out of the table."""
    variants = {f"v{place}": {RATE: [float(place + 1)] * 5} for place in range(200)}
    found = answer(variants, runners=dict.fromkeys(variants, "mnn"))
    assert len(found.table.rows) == 200
    assert "left out" not in " ".join(found.table.notes)


def test_one_repetition_dominates_nothing():
    """Without intervals ten times the rate is no proof: a hint, by the medians alone."""
    found = answer({"a": {RATE: [100.0], MEMORY: [1.0]}, "b": {RATE: [10.0], MEMORY: [10.0]}})
    assert (found.variant, found.certainty) == ("a", "unsure")
    assert set(found.front) == {"a", "b"}
    assert cells_of(found, "b")["front"].text == "none"
    assert "no variant is beyond doubt behind another one" in said(found)
    assert "by the medians alone" in said(found)


def test_candidates_hold_the_numbers():
    """Each that is left has its score with its interval, its wins, who beats it, and its values."""
    found = answer({"a": A, "b": B, "c": C}, frameworks={"a": "A, built by others"})
    first, second, third = found.candidates
    assert (first.score, first.wins) == (pytest.approx(0.5**0.5), 1.0)
    assert (first.score_low, first.score_high) == (pytest.approx(0.5**0.5),) * 2
    assert (first.dominated_by, first.on_front) == ("", True)
    assert (first.variant, third.variant) == ("b", "c")
    assert (second.framework, second.runner) == ("A, built by others", "a")
    assert (third.dominated_by, third.on_front, third.wins) == ("b", False, 0.0)
    assert first.values[RATE] == (50.0, 50.0, 50.0, "token/s")
    assert first.values[ENERGY][:3] == (None, None, None)


def test_scores_of_a_column_have_one_precision():
    """Whatever its interval, each score has three decimals."""
    noisy = {RATE: [80.0, 90, 100, 110, 120, 130], MEMORY: [400.0] * 6}
    found = answer({"a": noisy, "b": B, "c": C})
    for each in "abc":
        cell = cells_of(found, each)["score"]
        numbers = f"{cell.text} {cell.interval}".replace("[", "").replace("]", "").split()
        assert all(len(one.rstrip(",").split(".")[1]) == 3 for one in numbers)


@pytest.mark.parametrize(
    ("machine", "target", "state"),
    [
        ({"architecture": "x86_64"}, "pc", "meets"),
        ({"architecture": "arm64", "system": "macOS 15.1"}, "pc", "meets"),
        ({"architecture": "aarch64", "system": "Debian GNU/Linux 12"}, "pc", "unknown"),
        ({"architecture": "aarch64", "cpu_model": "Raspberry Pi 5 Model B"}, "board", "meets"),
        ({"architecture": "aarch64", "cpu_model": "Cortex-A76"}, "board", "unknown"),
        ({"architecture": "x86_64"}, "browser", "unknown"),
    ],
)
def test_where_it_ran_it_runs(machine, target, state):
    """A framework runs on a PC, or a board, where it just ran on one: no document has to say so."""
    changed = choice_run({"a": A}).record.machine.model_copy(update=machine)
    data = choice_data({"a": A}, machine=changed)
    assert state_of(data, "a", {"target": target}) == [state]
    record = data.record.variants[0]
    (found,) = checks(data, record, Requirements(target=target), ("w",))
    assert found.quoted == (state == "unknown")


def test_what_failed_did_not_run_on_its_machine():
    """A crash on a PC is no proof that a framework runs on PCs."""
    data = choice_data({"a": A, "b": B}, failed={"b": "No."})
    assert state_of(data, "b", {"target": "pc"}) == ["unknown"]


def test_a_stand_in_has_not_the_abilities_of_what_it_stands_for():
    """What a document says of a framework is not said of what its runner drove in its place."""
    asked = {"target": "browser"}
    known = choice_data({"mlc": A})
    assert state_of(known, "mlc", asked) == ["meets"]
    other = choice_data({"mlc": A}, frameworks={"mlc": "TVM, built by edgebench"})
    (found,) = checks(other, other.record.variants[0], Requirements(**asked), ("w",))
    assert found.state == "unknown"
    assert plain(found.sentence) == (
        "Needed is running in a browser; what a document says of MLC LLM is not of TVM, built by "
        "edgebench."
    )


def test_a_score_of_an_estimate_is_an_estimate():
    """What is made of an estimated energy is estimated: in the table, its sources and in words."""
    run = choice_run(
        {"a": steady(**{RATE: 100.0, ENERGY: 4.0}), "b": steady(**{RATE: 50.0, ENERGY: 1.0})}
    )
    trials = tuple(
        each.model_copy(
            update={
                "metrics": {
                    key: value.model_copy(update={"source": "estimated"})
                    if key == ENERGY
                    else value
                    for key, value in each.metrics.items()
                }
            }
        )
        for each in run.trials
    )
    data = build_report_data(replace(run, trials=trials))
    found = measured_answer(data, Requirements())

    score = cells_of(found, "b")["score"]
    assert (score.source, score.chip) == ("estimated", "estimated")
    sources = {each.key: each.sources for each in found.table.columns}
    assert sources["score"] == sources["wins"] == ("estimated",)
    assert {each.score_source for each in found.candidates} == {"estimated"}
    assert ", estimated, in " in said(found)


def test_a_score_of_measurements_is_derived():
    """Without any estimate no score is called one."""
    found = answer({"a": A, "b": B, "c": C})
    score = cells_of(found, "a")["score"]
    assert (score.source, score.chip) == ("derived", "")
    assert "estimated" not in said(found)
