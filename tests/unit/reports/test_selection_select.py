"""What a choice says at its head, and where its requirements come from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console
from sample_run import handmade

from edgebench.harness.errors import ResultError, UsageError
from edgebench.harness.results.model import Failure, Trial
from edgebench.harness.results.run import Run
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.data import ReportData, build_report_data
from edgebench.reports.selection.answers import parse_answers, with_answers
from edgebench.reports.selection.as_json import selection_as_json
from edgebench.reports.selection.select import requirements_of, select, selection_of
from edgebench.reports.selection.terminal import selection_text
from edgebench.reports.selection.tree import load_trees
from edgebench.reports.sentences import plain

SPEEDS = [0.99, 1.0, 1.01, 0.995, 1.005, 1.0, 0.99, 1.01]
RUNNERS = {"llama": "llama.cpp", "mnn": "mnn", "mediapipe": "mediapipe", "tvm": "mlc"}
PLAIN = Requirements(fixed_model=False, multimodal=False, enterprise_support=False)


def run_of(rates: dict[str, float], *, failed: str | None = None, **scenario: object) -> ReportData:
    """One workload; each variant decodes at its rate within 1 %, in eight blocks."""
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
    assert said.endswith(
        "What was measured for it here is TVM, built by edgebench, whose figures are not those of "
        "MLC LLM."
    )


def test_a_recommended_framework_that_breaks_a_limit_is_told() -> None:
    """10 tokens/s are not 15."""
    needs = PLAIN.model_copy(update={"min_decode_rate": 15.0})
    said = headline(run_of({"llama": 10.0, "mnn": 20.0}), needs)
    assert said.startswith(
        "The decision tree edge-frameworks leads to llama.cpp, but no variant of it that was "
        "measured meets the limits. "
    )
    assert "MNN" in said


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
        (
            "multimodal=no",
            (
                "--answer multimodal: images are more than text: with vision: yes this is yes, or "
                "leave it out"
            ),
        ),
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
