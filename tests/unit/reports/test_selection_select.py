"""What a choice says at its head, and where its requirements come from."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from sample_run import handmade

from edgebench.harness.errors import ResultError, UsageError
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Trial
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.data import ReportData, build_report_data
from edgebench.reports.languages import language
from edgebench.reports.selection.answers import parse_answers, with_answers
from edgebench.reports.selection.as_json import selection_as_json
from edgebench.reports.selection.select import requirements_of, select, selection_of
from edgebench.reports.selection.terminal import selection_text
from edgebench.reports.selection.tree import load_trees
from edgebench.reports.selection.view import Finding
from edgebench.reports.sentences import plain

SPEEDS = [0.99, 1.0, 1.01, 0.995, 1.005, 1.0, 0.99, 1.01]
RUNNERS = {
    "fake": "fake",
    "llama": "llama.cpp",
    "llama-slow": "llama.cpp",
    "mnn": "mnn",
    "mediapipe": "mediapipe",
    "tvm": "mlc",
}
PLAIN = Requirements(fixed_model=False, multimodal=False, enterprise_support=False)


def run_of(
    rates: dict[str, float],
    *,
    failed: str | None = None,
    half: str | None = None,
    **scenario: object,
) -> ReportData:
    """One workload; each variant decodes at its rate within 1 %, in eight blocks.

    Args:
        rates: by variant.
        failed: the variant that failed.
        half: the variant that failed on a second workload, which all others came through.
        scenario: keys of the scenario.
    """
    values = {
        name: {"decode_rate": [rate * each for each in SPEEDS]} for name, rate in rates.items()
    }
    record, trials = handmade(values)
    variants = [
        each.model_copy(
            update={
                "runner": RUNNERS[each.id],
                "framework": "TVM, built by edgebench" if each.id == "tvm" else None,
            }
        )
        for each in record.variants
    ]
    if failed is not None:
        trials = [each for each in trials if each.variant != failed]
        trials.append(crash(failed))
    if half is not None:
        workloads = [*record.workloads, record.workloads[0].model_copy(update={"name": "v"})]
        record = record.model_copy(update={"workloads": workloads})
        more = [each.model_copy(update={"workload": "v"}) for each in trials]
        trials += [each for each in more if each.variant != half]
        trials.append(crash(half).model_copy(update={"workload": "v"}))
    scenario = {**record.scenario, **scenario}
    record = record.model_copy(update={"variants": variants, "scenario": scenario})
    return build_report_data(Run(Path("made-up"), record, tuple(trials)))


def crash(variant: str) -> Trial:
    return Trial(
        kind="generate",
        variant=variant,
        workload="w",
        block=0,
        repetition=0,
        phase="measured",
        status="failed",
        started_at="2025-01-14T10:17:00Z",
        duration_s=1.0,
        failure=Failure(kind="crash", message="The process ended with SIGABRT"),
    )


def headline(data: ReportData | None, requirements: Requirements) -> str:
    return plain(select(data, requirements).headline)


def test_trees_alone_are_the_documents_judgement() -> None:
    """Without measurements it says whose judgement it is, and gives no evidence."""
    found = select(None, PLAIN)
    assert plain(found.headline) == (
        "The decision tree edge-frameworks leads to llama.cpp. No measurements were given, so that "
        "this is its document's judgement alone."
    )
    assert (found.evidence, found.measured, found.disagreements) == ((), None, ())


def test_tree_and_measurements_may_agree() -> None:
    """Twice the rate beyond doubt, where the tree leads too."""
    assert headline(run_of({"llama": 20.0, "mnn": 10.0}), PLAIN) == (
        "Take llama.cpp: the decision tree edge-frameworks leads there, and the measurements agree."
    )


def test_the_measurements_may_favour_another() -> None:
    """The headline names both, and a sentence says why they differ."""
    found = select(run_of({"llama": 10.0, "mnn": 20.0}), PLAIN)
    assert plain(found.headline) == (
        "The decision tree edge-frameworks leads to llama.cpp, but the measurements favour MNN "
        "(mnn)."
    )
    assert len(found.disagreements) == 1


def test_equal_rates_leave_doubt() -> None:
    """The same values can't be told apart, and nobody is said to win."""
    said = headline(run_of({"llama": 10.0, "mnn": 10.0}), PLAIN)
    assert "can't tell it apart" in said or "not beyond doubt" in said


def test_a_recommended_framework_that_failed_is_not_recommended_silently() -> None:
    """The failure stands in the headline, before what the measurements favour."""
    needs = Requirements(fixed_model=False, vision=True)
    data = run_of({"llama": 10.0, "mediapipe": 9.0}, failed="mediapipe")
    assert headline(data, needs).startswith(
        "The decision tree edge-frameworks leads to MediaPipe (LiteRT-LM), but MediaPipe "
        "(LiteRT-LM) failed to run here: The process ended with SIGABRT. "
    )


def test_a_recommended_framework_that_was_not_measured_is_told() -> None:
    """That it is not part of the run is in the headline."""
    needs = Requirements(fixed_model=False, vision=True)
    assert headline(run_of({"llama": 10.0, "mnn": 9.0}), needs).startswith(
        "The decision tree edge-frameworks leads to MediaPipe (LiteRT-LM), which was not measured "
        "here. "
    )


def test_another_engine_in_a_frameworks_place_is_named() -> None:
    """What edgebench built with TVM is no figure of MLC's."""
    said = headline(run_of({"llama": 10.0, "tvm": 20.0}), Requirements(target="browser"))
    assert "leads to MLC LLM" in said
    assert (
        "What was measured for it here is TVM, built by edgebench, whose figures are not those of "
        "MLC LLM."
    ) in said
    assert "Take" not in said


def test_a_recommended_framework_that_breaks_a_limit_is_told() -> None:
    """10 tokens/s are not 15."""
    needs = PLAIN.model_copy(update={"min_decode_rate": 15.0})
    said = headline(run_of({"llama": 10.0, "mnn": 20.0}), needs)
    assert said.startswith(
        "The decision tree edge-frameworks leads to llama.cpp, but no variant of it that was "
        "measured meets the limits. "
    )
    assert "MNN" in said


def test_one_framework_alone_is_not_said_to_be_favoured() -> None:
    """Nothing was compared with it: neither agreement nor the only one that meets the needs."""
    data = run_of({"llama": 10.0})
    assert headline(data, PLAIN) == (
        "The decision tree edge-frameworks leads to llama.cpp. Only llama.cpp (llama) was measured."
    )
    assert headline(data, Requirements()).endswith("”. Only llama.cpp (llama) was measured.")


def test_of_one_framework_the_best_variant_is_named() -> None:
    """Twice the rate of the other variant, and no other framework."""
    said = headline(run_of({"llama": 20.0, "llama-slow": 10.0}), PLAIN)
    assert said.endswith("Only llama.cpp was measured; of its variants llama comes first.")


def test_a_tie_between_variants_of_one_framework_leaves_the_framework_certain() -> None:
    """Both variants are twice as fast as the other framework, and as fast as each other."""
    data = run_of({"llama": 20.0, "llama-slow": 20.0, "mnn": 10.0})
    assert headline(data, PLAIN) == (
        "Take llama.cpp: the decision tree edge-frameworks leads there, and the measurements "
        "agree; which of its variants comes first is not certain."
    )
    assert "The measurements favour llama.cpp; which of its variants" in headline(
        data, Requirements()
    )


def test_what_failed_is_why_one_framework_is_left() -> None:
    """The failed one is named, unless the headline has said so of the tree's own choice."""
    data = run_of({"llama": 20.0, "mnn": 10.0}, failed="mnn")
    assert headline(data, PLAIN).endswith("MNN failed, so that only llama.cpp (llama) is left.")
    data = run_of({"llama": 20.0, "mnn": 10.0}, failed="llama")
    assert headline(data, PLAIN).endswith(
        "but llama.cpp failed to run here: The process ended with SIGABRT. Only MNN (mnn) is left."
    )


def test_where_all_failed_nothing_is_recommended() -> None:
    """The one variant that there is crashed."""
    said = headline(run_of({"llama": 20.0}, failed="llama"), Requirements())
    assert said.endswith("Every variant failed, so there is nothing to choose from.")


def test_a_failure_on_one_workload_is_not_nothing_measured() -> None:
    """It ran on the other one: the workload and the reason are told."""
    said = headline(run_of({"llama": 20.0, "mnn": 10.0}, half="llama"), PLAIN)
    assert said.startswith(
        "The decision tree edge-frameworks leads to llama.cpp, but llama.cpp failed here on v: The "
        "process ended with SIGABRT. "
    )
    with language("zh"):
        said = headline(run_of({"llama": 20.0, "mnn": 10.0}, half="llama"), PLAIN)
    assert said.endswith("SIGABRT”。只剩 MNN（mnn）。")


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"llama": 20.0, "mnn": 10.0}, "Of all that were measured only llama.cpp (llama) meets"),
        ({"llama": 10.0, "mnn": 10.0}, "No variant that was measured meets the needs."),
    ],
)
def test_limits_that_rule_out_are_the_reason(rates: dict[str, float], said: str) -> None:
    """15 tokens/s are asked for."""
    assert said in headline(run_of(rates), Requirements(min_decode_rate=15.0))


def test_a_weight_that_nothing_could_be_given_is_told() -> None:
    """Energy was not measured, so that the order is by something else than asked."""
    needs = PLAIN.model_copy(update={"weights": {"energy_per_token_j": 1.0}})
    assert "Not weighed, though asked for: energy per token." in headline(
        run_of({"llama": 20.0, "mnn": 10.0}), needs
    )


def test_the_testing_runner_alone_recommends_nothing() -> None:
    """It is no framework, however fast it says it is."""
    said = headline(run_of({"fake": 20.0}), Requirements())
    assert said.endswith("Only the testing runner was measured, which is no framework.")


def test_trees_that_lead_apart_are_both_named() -> None:
    """The first one decides, the other is told after it."""
    needs = PLAIN.model_copy(update={"target": "phone"})
    said = headline(run_of({"llama": 20.0, "mnn": 10.0}), needs)
    assert said.startswith("Take llama.cpp: ")
    assert said.endswith("The decision tree deployment-targets leads to MNN.")


def test_an_open_tree_leaves_the_measurements() -> None:
    """Without an answer the question is named, and what was measured is told all the same."""
    found = select(run_of({"llama": 10.0, "mnn": 20.0}), Requirements())
    said = plain(found.headline)
    assert "is open at its question “Utmost speed needed, and the model fixed?”." in said
    assert said.endswith("The measurements favour MNN (mnn).")
    assert not any(each.recommendation for each in found.walks)


def test_needs_are_those_of_the_runs_scenario() -> None:
    """As they were written there, yes and no among them; an older run has none."""
    data = run_of({"llama": 20.0, "mnn": 10.0}, requirements={"fixed_model": "yes"})
    assert requirements_of(data) == Requirements(fixed_model=True)
    assert selection_of(data).walks[0].recommendation == "llama.cpp"
    assert requirements_of(run_of({"llama": 20.0})) == Requirements()


def test_needs_that_can_not_be_read_name_the_run_and_the_place() -> None:
    """A record that was edited by hand gives a sentence, and what to do."""
    data = run_of({"llama": 20.0}, requirements={"vision": "perhaps"})
    with pytest.raises(ResultError, match=r"made-up: .*vision: must be yes or no") as caught:
        requirements_of(data)
    assert caught.value.remedy


def test_answers_stand_above_the_scenario() -> None:
    """Numbers, sizes and weights are read as such; what was there else stays."""
    written = ["vision=no", "max_memory_bytes=4GiB", "min_decode_rate=20", "weights.quality=2"]
    scenario = Requirements(fixed_model=False, vision=True, weights={"decode_rate": 1})
    assert with_answers(scenario, parse_answers(written, load_trees())) == Requirements(
        fixed_model=False,
        vision=False,
        max_memory_bytes=4 * 2**30,
        min_decode_rate=20,
        weights={"decode_rate": 1, "quality": 2},
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("vison=yes", "--answer vison=yes: nothing asks for this key; did you mean 'vision'?"),
        ("vision", "--answer vision: must be KEY=VALUE, such as vision=yes"),
        ("vision=", "--answer vision=: must be KEY=VALUE, such as vision=yes"),
        ("vision=maybe", "--answer vision: must be yes or no, got 'maybe' (text)"),
        ("max_ttft_s=soon", "--answer max_ttft_s: must be a number, got 'soon' (text)"),
        ("max_ttft_s=inf", "--answer max_ttft_s: must be a finite number, got inf"),
        (
            "weights.decode_rate=0",
            (
                "--answer weights: all are 0, so that nothing counts; give one a weight, or leave "
                "them out"
            ),
        ),
    ],
)
def test_an_answer_that_is_wrong_is_told(answer: str, said: str) -> None:
    """In one line that names it."""
    with pytest.raises(UsageError) as caught:
        with_answers(Requirements(vision=True), parse_answers([answer], load_trees()))
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("scenario", "answer", "needs"),
    [
        ({"multimodal": False}, "vision=yes", {"vision": True}),
        ({"multimodal": False}, "vision=Yes", {"vision": True}),
        ({"vision": True}, "multimodal=no", {"multimodal": False}),
        ({"multimodal": False}, "vision=no", {"multimodal": False, "vision": False}),
        ({"vision": True}, "multimodal=yes", {"multimodal": True, "vision": True}),
    ],
)
def test_an_answer_takes_with_it_what_it_excludes(
    scenario: dict[str, bool], answer: str, needs: dict[str, bool]
) -> None:
    """Images are more than text: the scenario's other answer goes, if it contradicts, else not."""
    found = with_answers(
        Requirements.model_validate(scenario), parse_answers([answer], load_trees())
    )
    assert found.model_dump(exclude_defaults=True) == needs


def test_two_answers_that_contradict_each_other_are_told_with_who_gave_them() -> None:
    """Neither stands above the other, so that it is for the user to say."""
    with pytest.raises(UsageError) as caught:
        with_answers(Requirements(), {"vision": "yes", "multimodal": "no"}, asked=["multimodal"])
    assert str(caught.value) == (
        "vision=yes (command line) and multimodal=no (terminal) contradict each other: images are "
        "more than text; drop one"
    )


def test_answers_are_the_same_in_capitals() -> None:
    """A target as people write it."""
    answers = parse_answers(["target=PC", "fixed_model=NO"], load_trees())
    assert with_answers(Requirements(), answers) == Requirements(target="pc", fixed_model=False)


def test_json_holds_everything_under_its_documented_keys() -> None:
    """Plain values that a machine reads; the recommendation is the runner's name."""
    data = run_of({"llama": 10.0, "mnn": 20.0})
    shown = json.loads(json.dumps(selection_as_json(select(data, PLAIN), PLAIN, {}, data)))
    assert list(shown) == [
        "schema_version", "recommendation", "headline", "answers", "requirements", "trees",
        "measured", "evidence", "disagreements", "warnings", "runs",
    ]  # fmt: skip
    assert shown["recommendation"] == "llama.cpp"
    assert shown["answers"] == {"fixed_model": "no", "multimodal": "no", "enterprise_support": "no"}
    assert shown["measured"]["recommendation"] == "mnn"
    assert [each["runner"] for each in shown["evidence"]] == ["llama.cpp", "mnn"]
    assert shown["trees"][0]["path"][0]["answer"] == "no"


def keys_of(value: object) -> set[str]:
    """All keys of the objects inside of what JSON holds, but names of goals and of questions."""
    if isinstance(value, list):
        return set().union(*map(keys_of, value))
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, held in value.items():
        found.add(key)
        if key in ("answers", "requirements", "weights"):
            continue
        inner = held.values() if key == "values" else [held]
        found |= set().union(*map(keys_of, inner))
    return found


def test_json_has_the_numbers_that_the_sentences_tell() -> None:
    """Half the rate in every pair, limits with their values, and why each variant is out."""
    needs = PLAIN.model_copy(update={"min_decode_rate": 15.0})
    data = run_of({"llama": 10.0, "mnn": 20.0})
    shown = json.loads(json.dumps(selection_as_json(select(data, needs), needs, {}, data)))
    (out,) = shown["measured"]["excluded"]
    assert (out["variant"], out["state"], len(out["reasons"])) == ("llama", "fails", 1)
    (candidate,) = shown["measured"]["candidates"]
    assert (candidate["variant"], candidate["values"]["decode_rate"]["value"]) == ("mnn", 20.0)
    figures = [each["figures"] for each in shown["evidence"][0]["findings"] if each["figures"]]
    assert any((each["value"], each["unit"]) == (10.0, "token/s") for each in figures)
    assert any((each["other"], each["ratio"]) == ("mnn", 0.5) for each in figures)


def test_every_key_of_the_json_is_documented() -> None:
    """docs/selection.md names each of them, and its example holds none that is not there."""
    needs = PLAIN.model_copy(update={"min_decode_rate": 15.0, "target": "pc"})
    data = run_of({"llama": 10.0, "mnn": 20.0})
    made = keys_of(selection_as_json(select(data, needs), needs, {}, data))
    text = (Path(__file__).parents[3] / "docs" / "selection.md").read_text(encoding="utf-8")
    (example,) = [each.partition("```")[0] for each in text.split("```json\n")[1:]]
    assert keys_of(json.loads(example)) <= made
    table = text.partition("## `--json`")[2]
    assert sorted(each for each in made if f"`{each}`" not in table) == []


def test_the_terminal_marks_every_kind_of_finding() -> None:
    """A failure and a mere note have marks of their own, and a partial framework says so."""
    found = select(run_of({"llama": 10.0, "mnn": 20.0}), PLAIN)
    kinds = ("supports", "contradicts", "fails", "failed", "lacks", "unknown", "note")
    findings = tuple(Finding(kind, (f"of kind {kind}",)) for kind in kinds)
    own = replace(found.evidence[0], findings=findings, state="partly")
    console = Console(width=80, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(selection_text(replace(found, evidence=(own,))))
    said = capture.get()
    for line in (
        "✓ of kind supports", "– of kind contradicts", "✗ fails: of kind fails",
        "✗ failed: of kind failed", "✗ lacks: of kind lacks", "? unknown: of kind unknown",
        "· of kind note", "measured in part",
    ):  # fmt: skip
        assert line in said


@pytest.mark.parametrize(
    ("by_documents", "title"),
    [
        (False, "From the measurements alone"),
        (True, "From the measurements, and what documents say of abilities"),
    ],
)
def test_the_measured_answer_is_titled_by_what_it_rests_on(by_documents: bool, title: str) -> None:
    """Where a document ruled somebody out it is no answer of the measurements alone."""
    found = select(run_of({"llama": 10.0, "mnn": 20.0}), PLAIN)
    assert found.measured is not None
    found = replace(found, measured=replace(found.measured, by_documents=by_documents))
    console = Console(width=80, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(selection_text(found))
    assert title in capture.get().splitlines()


def test_the_terminal_shows_the_path_and_fits_80_columns() -> None:
    """A line for each question, and nothing cut off."""
    console = Console(width=80, record=True, file=None, force_terminal=False)
    with console.capture() as capture:
        console.print(selection_text(select(run_of({"llama": 10.0, "mnn": 20.0}), PLAIN)))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("Utmost speed needed, and the model fixed? → no" in line for line in lines)
    assert any("⇒ MNN" in line for line in lines)
    assert not any("…" in line for line in lines)
