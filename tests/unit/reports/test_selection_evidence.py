"""What the measurements say for and against each framework, and where a tree says otherwise."""

from __future__ import annotations

import pytest
from choice_run import ENERGY, MEMORY, RATE, TTFT, choice_data, choice_run, crashed, steady
from sample_quality import made
from sample_quality import steady as windows_of

from edgebench.harness.results.sameness import Sameness
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.data import build_report_data
from edgebench.reports.selection.disagreement import disagreements
from edgebench.reports.selection.evidence import evidence
from edgebench.reports.selection.measured import measured_answer
from edgebench.reports.selection.view import Step, Walk
from edgebench.reports.selection.warned import warnings
from edgebench.reports.sentences import plain

RISING = [10.0, 20, 30, 40, 50, 60]
TWICE = [20.0, 40, 60, 80, 100, 120]
CARE = "are to be read with care"


def found_for(data, framework, asked=None, recommended=()):
    every = evidence(data, Requirements(**(asked or {})), recommended)
    return next(each for each in every if each.framework == framework)


def findings_of(found):
    """All but that its figures are noisy, which has a test of its own."""
    every = [(each.kind, plain(each.sentence)) for each in found.findings]
    return [each for each in every if CARE not in each[1]]


def walk_to(runner, *, steps=(), name="advice"):
    made_steps = tuple(Step(key, f"{key}?", answer, answer, "scenario") for key, answer in steps)
    return Walk(name, 1, "Title", "document", made_steps, None, runner, "", "", "")


def differ(data, walk, asked=None):
    requirements = Requirements(**(asked or {}))
    measured = measured_answer(data, requirements)
    shown = evidence(data, requirements, [walk.recommendation])
    return [plain(each) for each in disagreements(data, [walk], measured, shown)]


def test_a_value_is_compared_with_the_best_of_the_others_in_pairs():
    """Half the rate in every block is a ratio of 0.5, beyond doubt, whatever the drift between."""
    data = choice_data({"mnn": {RATE: TWICE}, "mlc": {RATE: RISING}})
    assert findings_of(found_for(data, "MLC LLM")) == [
        ("contradicts", "It decodes 35 tokens/s [15, 55] (w): 0.500 times the rate of mnn.")
    ]
    ((kind, said),) = findings_of(found_for(data, "MNN"))
    assert kind == "supports"
    assert said.startswith("It decodes fastest, 70 tokens/s")
    assert said.endswith("(w): 2.00 times the rate of mlc, the best of other frameworks.")


@pytest.mark.parametrize("goal", [TTFT, MEMORY, ENERGY])
def test_less_is_better_where_it_is(goal):
    """Of time, memory and energy the smaller value supports, and the larger one contradicts."""
    data = choice_data({"mnn": {goal: RISING}, "mlc": {goal: TWICE}})
    assert [kind for kind, _ in findings_of(found_for(data, "MNN"))] == ["supports"]
    assert [kind for kind, _ in findings_of(found_for(data, "MLC LLM"))] == ["contradicts"]


def test_what_can_not_be_told_apart_supports_both():
    """Two frameworks that lead in turn are both as good as the best, and it is said so."""
    data = choice_data(
        {"mnn": {RATE: [10.0, 12, 10, 12, 10, 12]}, "mlc": {RATE: [12.0, 10, 12, 10, 12, 10]}}
    )
    for name in ("MNN", "MLC LLM"):
        ((kind, said),) = findings_of(found_for(data, name))
        assert kind == "supports"
        assert "can't be told apart" in said


def test_few_blocks_are_no_evidence():
    """Without an interval a value speaks neither for nor against, and is called a hint."""
    data = choice_data({"mnn": {RATE: [10.0, 10]}, "mlc": {RATE: [5.0, 5]}})
    for name in ("MNN", "MLC LLM"):
        kinds = findings_of(found_for(data, name))
        assert kinds[0][0] == "note"
        assert "A hint only" in kinds[0][1]


def test_one_framework_alone_has_nothing_to_be_compared_with():
    """A single framework's values are told, but they are no evidence for it."""
    ((kind, said),) = findings_of(found_for(choice_data({"mnn": {RATE: RISING}}), "MNN"))
    assert kind == "note"
    assert said.endswith("No other framework was measured.")


def test_perplexity_is_compared_over_pairs_of_windows():
    """0.1 nat a token more in every window is 10.5 % more perplexity, beyond doubt."""
    run = made({"a": windows_of(0.0), "b": windows_of(0.1)})
    runners = [each.model_copy(update={"runner": each.id}) for each in run.record.variants]
    record = run.record.model_copy(update={"variants": runners})
    data = build_report_data(type(run)(run.path, record, run.trials))
    kinds = findings_of(found_for(data, "b"))
    against = [(kind, said) for kind, said in kinds if "perplexity" in said.lower()]
    assert against == [
        (
            "contradicts",
            "Its perplexity is +10.52 % against the reference (text): +10.52 % against a.",
        )
    ]


def test_the_variant_that_meets_the_limits_stands_for_its_framework():
    """The fastest variant needs too much memory, so the next one is the framework's evidence."""
    data = choice_data(
        {
            "large": steady(**{RATE: 90.0, MEMORY: 900.0}),
            "small": steady(**{RATE: 60.0, MEMORY: 300.0}),
        },
        runners={"large": "mnn", "small": "mnn"},
    )
    found = found_for(data, "MNN", {"max_memory_bytes": 500, "weights": {RATE: 1}})
    assert (found.variant, found.meets_limits) == ("small", True)


def test_a_limit_that_fails_is_told_first():
    """Where no variant of a framework meets a limit, that is the first thing said of it."""
    data = choice_data({"mnn": steady(**{RATE: 30.0}), "mlc": steady(**{RATE: 60.0})})
    found = found_for(data, "MNN", {"min_decode_rate": 40})
    assert found.meets_limits is False
    assert findings_of(found)[0] == (
        "fails",
        "It decodes 30.0 tokens/s on w, below the need of 40.0 tokens/s.",
    )


def test_a_capability_is_quoted_and_marked_so():
    """What a document denies is lacking by its words; what none speaks of is not known."""
    data = choice_data({"llama.cpp": {RATE: RISING}, "mlc": {RATE: RISING}})
    asked = {"enterprise_support": True}
    lacking = [
        each for each in found_for(data, "llama.cpp", asked).findings if each.kind == "lacks"
    ]
    assert [each.quoted for each in lacking] == [True]
    silent = found_for(data, "llama.cpp", {"target": "browser"})
    assert ("unknown", "Needed is running in a browser; no document says whether it is there.") in (
        findings_of(silent)
    )
    assert silent.meets_limits is None


def test_what_was_recommended_and_not_run_is_there_with_the_reason():
    """A framework that a tree recommends has its place in the evidence, also without a value."""
    data = choice_data({"mnn": {RATE: RISING}})
    first, second = evidence(data, Requirements(), ["mediapipe"])
    assert (first.runner, first.ran, first.variant) == ("mediapipe", False, "")
    assert findings_of(first) == [
        (
            "unknown",
            "MediaPipe (LiteRT-LM) was not part of this run: nothing of it was measured.",
        )
    ]
    assert second.runner == "mnn"


def test_what_failed_has_its_failure_as_evidence():
    """A framework that crashed throughout did not run, and why is told."""
    data = choice_data({"mnn": {RATE: RISING}, "mlc": {RATE: RISING}}, failed={"mlc": "No GPU."})
    found = found_for(data, "MLC LLM")
    assert (found.ran, found.state, found.meets_limits) == (False, "failed", None)
    assert findings_of(found) == [("failed", "mlc failed: No GPU.")]


def test_flags_are_named():
    """Values that varied too much are told to be read with care; steady ones are not."""
    data = choice_data({"mnn": {RATE: RISING}, "mlc": steady(**{RATE: 20.0})})
    said = {
        each.framework: [
            plain(one.sentence) for one in each.findings if CARE in plain(one.sentence)
        ]
        for each in evidence(data, Requirements(), [])
    }
    assert said == {
        "MNN": ["Its figures on w are to be read with care: noisy."],
        "MLC LLM": [],
    }


def test_the_testing_runner_has_no_evidence_beside_frameworks():
    """Figures that are made up are no evidence for or against anything."""
    data = choice_data({"mnn": {RATE: RISING}, "x": {RATE: TWICE}}, runners={"x": "fake"})
    assert [each.runner for each in evidence(data, Requirements(), [])] == ["mnn"]


def test_warnings_tell_what_did_not_run():
    """A recommended framework that failed, or was not there, is warned of by name."""
    data = choice_data({"mnn": {RATE: RISING}, "mlc": {RATE: RISING}}, failed={"mlc": "No GPU."})
    assert [plain(each) for each in warnings(data, ["mlc", "mediapipe", "mnn"])] == [
        "MLC LLM failed to run here: No GPU.",
        "MediaPipe (LiteRT-LM) was not part of this run: nothing of it was measured.",
    ]


def test_warnings_tell_whose_figures_they_are():
    """What its runner drove in place of a framework is never taken for it."""
    data = choice_data(
        {"x": {RATE: RISING}}, runners={"x": "mlc"}, frameworks={"x": "TVM, built by edgebench"}
    )
    (warned,) = [plain(each) for each in warnings(data, ["mlc"])]
    assert warned == (
        "What ran here in place of MLC LLM is TVM, built by edgebench: its figures are not those "
        "of MLC LLM."
    )
    (found,) = evidence(data, Requirements(), ["mlc"])
    assert (found.framework, found.runner) == ("TVM, built by edgebench", "mlc")


def test_warnings_tell_of_quick_and_unfinished_runs_and_of_made_up_figures():
    """A quick look, an interrupted run, and one of the testing runner alone are warned of."""
    data = choice_data(
        {"x": {RATE: RISING}}, runners={"x": "fake"}, quick=True, status="interrupted"
    )
    said = " ".join(plain(each) for each in warnings(data, []))
    assert "makes its figures up" in said
    assert "quick look" in said
    assert "interrupted" in said


def test_warnings_tell_of_a_variant_that_computes_another_model():
    """A recommended framework whose variant differs from the reference is warned of."""
    run = choice_run({"mnn": {RATE: RISING}})
    (variant,) = run.record.variants
    differs = variant.model_copy(update={"sameness": Sameness(verdict="differs", findings=["x"])})
    record = run.record.model_copy(update={"variants": [differs]})
    data = build_report_data(type(run)(run.path, record, run.trials))
    assert ["differs from the reference" in plain(each) for each in warnings(data, ["mnn"])] == [
        True
    ]


def test_where_both_agree_nothing_is_said():
    """A tree that leads where the measurements lead is no disagreement."""
    data = choice_data({"mnn": {RATE: TWICE}, "mlc": {RATE: RISING}})
    assert differ(data, walk_to("mnn")) == []


def test_a_lower_score_is_told_with_its_ratio_and_what_counts():
    """By how much the tree's choice is behind, and in which goal, stands in the sentence."""
    data = choice_data({"mnn": {RATE: TWICE}, "mlc": {RATE: RISING}})
    (said,) = differ(data, walk_to("mlc", steps=[("target", "browser")]))
    assert said == (
        "The tree advice leads to MLC LLM, the measurements to MNN (mnn). The score of mlc is "
        "0.500 times that of mnn, which is beyond doubt. What counts: decode rate 0.500 times as "
        "high. What the tree decides by, edgebench does not measure: “target?”."
    )


def test_a_tie_is_no_real_disagreement():
    """Where the two can't be told apart, the sentence says that they need not differ."""
    data = choice_data(
        {"mnn": {RATE: [10.0, 12, 10, 12, 10, 12.1]}, "mlc": {RATE: [12.0, 10, 12, 10, 12, 10]}}
    )
    (said,) = differ(data, walk_to("mlc"))
    assert "no real disagreement" in said


def test_few_blocks_make_no_sure_disagreement():
    """Without intervals the difference is told, but as a hint."""
    data = choice_data({"mnn": {RATE: [20.0, 20]}, "mlc": {RATE: [10.0, 10]}})
    (said,) = differ(data, walk_to("mlc"))
    assert "0.500 times that of mnn: a hint only" in said


@pytest.mark.parametrize(
    ("given", "asked", "why"),
    [
        ({"failed": {"mlc": "No GPU."}}, {}, "mlc failed: No GPU"),
        ({}, {"min_decode_rate": 40}, "It decodes 30.0 tokens/s on w, below the need of 40.0"),
        ({}, {"enterprise_support": True}, "more of a research project"),
    ],
)
def test_what_rules_the_trees_choice_out_is_the_reason(given, asked, why):
    """A failure, a limit or a capability that is denied is the reason for another answer."""
    data = choice_data({"mnn": steady(**{RATE: 60.0}), "mlc": steady(**{RATE: 30.0})}, **given)
    (said,) = differ(data, walk_to("mlc"), asked)
    assert said.startswith("The tree advice leads to MLC LLM, the measurements to MNN (mnn).")
    assert why in said
    assert "score" not in said


def test_a_choice_that_was_not_measured_is_told_as_that():
    """A tree that leads to what was not part of the run can't be contradicted by it."""
    (said,) = differ(choice_data({"mnn": {RATE: RISING}}), walk_to("mediapipe"))
    assert "was not part of this run" in said


def test_the_claim_of_utmost_speed_is_checked():
    """A tree that takes a framework for speed is told where another one decodes faster here."""
    data = choice_data({"mnn": {RATE: TWICE}, "llama.cpp": {RATE: RISING}})
    *_, said = differ(data, walk_to("llama.cpp", steps=[("fixed_model", "yes")]))
    assert said == (
        "The tree advice takes llama.cpp for the utmost speed, but its fastest here, llama.cpp, "
        "decodes at 0.500 times the rate of mnn."
    )
    assert differ(data, walk_to("mnn", steps=[("fixed_model", "yes")])) == []


def test_without_any_measurement_the_tree_stands_alone():
    """Where all failed, the measurements recommend nothing, and that is the sentence."""
    data = choice_data({"mnn": {RATE: RISING}}, failed={"mnn": "No."})
    (said,) = differ(data, walk_to("mnn"))
    assert said.startswith("The tree advice leads to MNN, but the measurements recommend nothing.")
    assert "mnn failed: No" in said


def test_an_open_walk_says_nothing():
    """A tree without a recommendation neither agrees nor disagrees."""
    assert differ(choice_data({"mnn": {RATE: RISING}}), walk_to("")) == []


def test_a_superlative_is_of_all_variants():
    """Between two of one framework that are faster than the other one, only one is the fastest."""
    data = choice_data(
        {
            "slow": steady(**{RATE: 60.0, MEMORY: 100.0}),
            "fast": steady(**{RATE: 90.0, MEMORY: 900.0}),
            "mlc": steady(**{RATE: 30.0, MEMORY: 500.0}),
        },
        runners={"slow": "mnn", "fast": "mnn"},
    )
    found = found_for(data, "MNN", {"weights": {RATE: 1, MEMORY: 3}})
    assert found.variant == "slow"
    assert findings_of(found)[:2] == [
        (
            "supports",
            (
                "It decodes 60.0 tokens/s (w), faster than any variant of other frameworks: 2.00 "
                "times the rate of mlc, the best of these."
            ),
        ),
        (
            "supports",
            (
                "It needs the least memory, 100 B (w): 0.200 times as much as mlc, the best of "
                "other frameworks."
            ),
        ),
    ]


def test_a_superlative_says_of_which_it_is_the_best():
    """A faster variant that needs too much memory narrows the claim, and is no evidence against."""
    data = choice_data(
        {
            "mnn": steady(**{RATE: 60.0, MEMORY: 100.0}),
            "large": steady(**{RATE: 90.0, MEMORY: 900.0}),
            "small": steady(**{RATE: 30.0, MEMORY: 100.0}),
        },
        runners={"large": "mlc", "small": "mlc"},
    )
    found = found_for(data, "MNN", {"max_memory_bytes": 500})
    assert findings_of(found)[0] == (
        "supports",
        (
            "It decodes fastest of those that meet the limits, 60.0 tokens/s (w): 2.00 times the "
            "rate of small, the best of other frameworks."
        ),
    )


def test_a_framework_is_held_against_the_best_variant_of_another_one():
    """A rival's variant that does not stand for its framework is a rival all the same."""
    data = choice_data(
        {
            "mnn": steady(**{TTFT: 0.2, RATE: 50.0}),
            "quick": steady(**{TTFT: 0.15, RATE: 10.0}),
            "strong": steady(**{TTFT: 0.4, RATE: 90.0}),
        },
        runners={"quick": "mlc", "strong": "mlc"},
    )
    found = found_for(data, "MNN")
    said = [each for each in findings_of(found) if "first token" in each[1]]
    assert said == [
        (
            "contradicts",
            "Its first token comes after 200 ms (w): 1.33 times as long as quick takes.",
        )
    ]


def test_score_within_the_framework_chooses_who_stands_for_it():
    """That another framework dominates the best of a framework does not make a worse one of it."""
    data = choice_data(
        {
            "mnn": steady(**{RATE: 90.0, MEMORY: 300.0}),
            "good": steady(**{RATE: 80.0, MEMORY: 310.0}),
            "odd": steady(**{RATE: 1.0, MEMORY: 299.0}),
        },
        runners={"good": "mlc", "odd": "mlc"},
    )
    assert found_for(data, "MLC LLM").variant == "good"


def test_another_variant_than_that_of_the_frameworks_table_is_told():
    """Where memory decides, the evidence is of another variant than the fastest, and says so."""
    data = choice_data(
        {
            "large": steady(**{RATE: 90.0, MEMORY: 900.0}),
            "small": steady(**{RATE: 60.0, MEMORY: 300.0}),
        },
        runners={"large": "mnn", "small": "mnn"},
    )
    found = found_for(data, "MNN", {"max_memory_bytes": 500})
    assert findings_of(found)[-1] == (
        "note",
        (
            "All this is of small, which the measurements put first. The table of frameworks shows "
            "large, the framework's fastest in decoding."
        ),
    )
    assert "table of frameworks" not in str(
        findings_of(found_for(data, "MNN", {"weights": {RATE: 1}}))
    )


def test_what_ran_on_some_workloads_only_has_its_values_there():
    """A crash on one workload takes nothing from what was measured on another one."""
    run = choice_run(
        {
            "mnn": {"a": {RATE: RISING}, "b": {RATE: RISING}},
            "mlc": {"a": {RATE: RISING}, "b": {RATE: RISING}},
        }
    )
    kept = [each for each in run.trials if (each.variant, each.workload) != ("mnn", "b")]
    trials = (*kept, crashed("mnn", "b", "Out of memory."))
    data = build_report_data(type(run)(run.path, run.record, trials))
    found = found_for(data, "MNN")
    assert (found.ran, found.state, found.variant) == (True, "partly", "mnn")
    assert findings_of(found) == [
        ("failed", "It failed on b: Out of memory."),
        ("note", "It decodes 35 tokens/s [15, 55] (a)."),
    ]
    assert found_for(data, "MLC LLM").state == "measured"
    assert [plain(each) for each in warnings(data, ["mnn"])] == ["mnn failed on b: Out of memory."]


def test_limits_are_met_only_where_some_were_given():
    """Without a limit nothing is met; with one that holds, it is."""
    data = choice_data({"mnn": steady(**{RATE: 60.0})})
    assert found_for(data, "MNN").meets_limits is None
    assert found_for(data, "MNN", {"min_decode_rate": 40}).meets_limits is True


def test_findings_hold_their_numbers():
    """A value, its interval, what it is compared with, and the ratio stand beside the sentence."""
    data = choice_data({"mnn": {RATE: TWICE}, "mlc": {RATE: RISING}})
    figures = found_for(data, "MLC LLM").findings[0].figures
    assert (figures.goal, figures.workload, figures.unit) == (RATE, "w", "token/s")
    assert (figures.value, figures.low, figures.high) == (35.0, 15.0, 55.0)
    assert (figures.other, figures.ratio) == ("mnn", pytest.approx(0.5))
    assert (figures.ratio_low, figures.ratio_high) == (pytest.approx(0.5), pytest.approx(0.5))


@pytest.mark.parametrize(
    ("target", "warned"),
    [("phone", "not of a phone"), ("browser", "not of a browser"), ("pc", ""), (None, "")],
)
def test_figures_of_another_kind_of_machine_are_warned_of(target, warned):
    """What is to run on a phone was measured on a PC: its figures will be others there."""
    data = choice_data({"mnn": {RATE: RISING}})
    said = [plain(each) for each in warnings(data, ["mnn"], Requirements(target=target))]
    assert [warned in each for each in said] == ([True] if warned else [])


def test_two_trees_that_lead_to_the_same_are_one_paragraph():
    """What is to be said of both is said once, with both their names."""
    data = choice_data({"mnn": {RATE: TWICE}, "mlc": {RATE: RISING}})
    walks = [
        walk_to("mlc", name="one", steps=[("target", "browser"), ("fixed_model", "yes")]),
        walk_to("mlc", name="other", steps=[("target", "browser"), ("fixed_model", "yes")]),
    ]
    measured = measured_answer(data, Requirements())
    shown = evidence(data, Requirements(), ["mlc"])
    first, second = [plain(each) for each in disagreements(data, walks, measured, shown)]
    assert first.startswith("The trees one and other lead to MLC LLM, the measurements to MNN")
    assert first.endswith("What the trees decide by, edgebench does not measure: “target?”.")
    assert second.startswith("The trees one and other take MLC LLM for the utmost speed")


def test_made_up_figures_disagree_with_nothing():
    """Where only the testing runner ran, a tree has nothing to be held against."""
    data = choice_data({"x": {RATE: RISING}}, runners={"x": "fake"})
    assert differ(data, walk_to("mnn")) == []


def test_what_is_not_known_of_the_trees_choice_is_the_reason():
    """It is set aside, not ruled out, and why is a sentence of its own."""
    data = choice_data({"mnn": {RATE: TWICE}, "llama.cpp": {RATE: RISING}}, runners={"mnn": "mlc"})
    (said,) = differ(data, walk_to("llama.cpp"), {"target": "browser"})
    assert said == (
        "The tree advice leads to llama.cpp, the measurements to MLC LLM (mnn). llama.cpp stands "
        "behind those of which all is known. Needed is running in a browser; no document says "
        "whether it is there."
    )
