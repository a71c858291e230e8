"""Which cell is compared with which, what is named, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sample_quality import text_workload
from sample_run import handmade, sha256
from side_sample import interleaved, run, side, variant, variants_side

from edgebench.harness.compare.matching import match
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.errors import ExitStatus, NotComparableError
from edgebench.harness.results.model import Artifact
from edgebench.harness.results.run import Run

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Differing, Matched, Side

RATES = {"a": {"decode_rate": [10.0, 11.0, 12.0]}}


def _matched(found: Matched) -> list[tuple[str, str]]:
    return [(each.baseline.variant.id, each.candidate.variant.id) for each in found.pairs]


def _said(differing: tuple[Differing, ...]) -> list[tuple[str, str, str, str]]:
    return [(each.what, each.baseline, each.candidate, each.kind) for each in differing]


def _model(**given: str) -> dict[str, object]:
    return {"scenario": {"model": {"name": "m", **given}}}


def test_equal_variants_match_and_nothing_differs() -> None:
    """Two runs of one scenario."""
    found = match(side("a", RATES), side("b", RATES))
    assert _matched(found) == [("a", "a")]
    assert (found.vanished, found.added, found.differing) == ((), (), ())
    assert found.pairs[0].differing == ()
    assert not found.interleaved
    assert found.across_machines == ""


def test_a_renamed_variant_matches_by_what_was_run() -> None:
    """Its runner, its quantisation and its options tell, whatever it is called."""
    old = variants_side("a", variant("old", options={"threads": 2}), variant("x"))
    new = variants_side("b", variant("x"), variant("new", options={"threads": 2.0}))
    assert _matched(match(old, new)) == [("x", "x"), ("old", "new")]


def test_options_come_before_names() -> None:
    """Two names that were exchanged do not exchange the figures."""
    two, three = {"threads": 2}, {"threads": 3}
    old = variants_side("a", variant("one", options=two), variant("other", options=three))
    new = variants_side("b", variant("one", options=three), variant("other", options=two))
    assert _matched(match(old, new)) == [("other", "one"), ("one", "other")]


def test_one_is_not_true() -> None:
    """The option 1 and the option true are two options."""
    old = variants_side("a", variant("v", options={"mmap": 1}))
    new = variants_side("b", variant("v", options={"mmap": True}))
    found = match(old, new)
    assert _said(found.differing) == [("mmap", "1", "true", "option")]


def test_the_same_name_matches_with_other_options_which_are_named() -> None:
    """A variant that its scenario names keeps its history."""
    old = variants_side("a", variant("fast", options={"threads": 2, "batch": 8}), variant("x"))
    new = variants_side("b", variant("fast", options={"threads": 4}), variant("x"))
    found = match(old, new)
    assert _matched(found) == [("fast", "fast"), ("x", "x")]
    assert _said(found.pairs[0].differing) == [
        ("threads", "2", "4", "option"),
        ("batch", "8", "–", "option"),
    ]
    assert found.pairs[1].differing == ()


def test_the_only_one_left_of_a_runner_and_quantisation_matches() -> None:
    """Its name is made of its options, so that it changes with them."""
    old = variants_side("a", variant("r threads=2", options={"threads": 2}))
    new = variants_side("b", variant("r threads=4", options={"threads": 4}))
    found = match(old, new)
    assert _matched(found) == [("r threads=2", "r threads=4")]
    assert _said(found.differing) == [("threads", "2", "4", "option")]


def test_two_that_would_share_a_partner_stay_apart() -> None:
    """An option that differs is never averaged away: neither is what the other was."""
    old = variants_side("a", variant("r threads=1", options={"threads": 1}), variant("x", "other"))
    new = variants_side(
        "b",
        *(variant(f"r threads={each}", options={"threads": each}) for each in (2, 4)),
        variant("x", "other"),
    )
    found = match(old, new)
    assert _matched(found) == [("x", "x")]
    assert [cell.variant.id for cell in found.vanished] == ["r threads=1"]
    assert [cell.variant.id for cell in found.added] == ["r threads=2", "r threads=4"]


def test_another_quantisation_is_another_thing() -> None:
    """It does not take the place of what vanished."""
    old = variants_side("a", variant("q8", quantization="Q8_0"), variant("x", "other"))
    new = variants_side("b", variant("q4", quantization="Q4_0"), variant("x", "other"))
    found = match(old, new)
    assert [cell.variant.id for cell in found.vanished] == ["q8"]
    assert [cell.variant.id for cell in found.added] == ["q4"]


def test_a_workload_that_vanished_is_told() -> None:
    """Its variant is still there."""
    made = run("a", RATES)
    (workload,) = made.record.workloads
    other = workload.model_copy(update={"name": "more"})
    record = made.record.model_copy(update={"workloads": [workload, other]})
    found = match(side_of_run(Run(made.path, record, made.trials)), side("b", RATES))
    assert [cell.key for cell in found.vanished] == [("a", "more")]
    assert _matched(found) == [("a", "a")]


def _interleaved(
    mine: list[object], theirs: list[object], difference: str = "quantization=Q4_0"
) -> Matched:
    baseline = variants_side(
        "a",
        *mine,
        interleaved=interleaved("s", "baseline", "b", difference),  # type: ignore[arg-type]
    )
    candidate = variants_side(
        "b",
        *theirs,
        interleaved=interleaved("s", "candidate", "a", difference),  # type: ignore[arg-type]
    )
    return match(baseline, candidate)


def test_interleaved_variants_match_by_their_place() -> None:
    """The two sides are one scenario with something put in place of its own."""
    found = _interleaved(
        [variant("a Q4_0", quantization="Q4_0"), variant("b Q4_0", "b", quantization="Q4_0")],
        [variant("a Q8_0", quantization="Q8_0"), variant("b Q8_0", "b", quantization="Q8_0")],
    )
    assert _matched(found) == [("a Q4_0", "a Q8_0"), ("b Q4_0", "b Q8_0")]
    assert found.interleaved
    assert _said(found.differing) == [("quantization", "Q4_0", "Q8_0", "option")]
    blocks = [
        each.metrics["decode_rate"].blocks
        for each in (found.pairs[0].baseline, found.pairs[0].candidate)
    ]
    assert blocks[0] == blocks[1]


def test_options_in_effect_count_and_not_those_asked_for() -> None:
    """What one side asks for and the other has by default is no difference."""
    old = variants_side(
        "a", variant("v", options={"threads": 2}, effective_options={"threads": 2, "batch": 512})
    )
    new = variants_side("b", variant("v", effective_options={"threads": 2, "batch": 256}))
    assert _said(match(old, new).differing) == [("batch", "512", "256", "option")]


def test_versions_and_artifacts_that_differ_are_named() -> None:
    """The engine, its version, the interpreter, the file, edgebench itself and its Python."""

    def made(name: str, version: str, **changes: object) -> object:
        artifact = Artifact(name="m.bin", sha256=sha256(version), bytes=1, made_by="a converter")
        return variants_side(
            name,
            variant(
                "v", engine="E", engine_version=version, python=f"/{name}/python", artifact=artifact
            ),
            **changes,
        )

    machine = handmade(RATES)[0].machine.model_dump()
    old = made("a", "1.0")
    new = made("b", "1.1", edgebench_version="0.2.0", machine=machine | {"python": "3.12.1"})
    found = match(old, new)  # type: ignore[arg-type]
    assert _said(found.differing) == [
        ("edgebench's version", "0.1.0", "0.2.0", "version"),
        ("edgebench's Python", "3.11.2", "3.12.1", "version"),
        ("E's version", "1.0", "1.1", "version"),
        ("the interpreter", "/a/python", "/b/python", "version"),
        (
            "the artifact",
            f"m.bin, sha256 {sha256('1.0')[:12]}",
            f"m.bin, sha256 {sha256('1.1')[:12]}",
            "artifact",
        ),
    ]


def test_whose_figures_they_are_is_named() -> None:
    """A framework that stands in for another is another one."""
    old = variants_side("a", variant("mlc", engine="MLC LLM", engine_version="1"))
    new = variants_side("b", variant("mlc", engine="TVM", engine_version="1", framework="TVM"))
    assert _said(match(old, new).differing) == [
        ("the engine", "MLC LLM", "TVM", "version"),
        ("whose figures these are", "–", "TVM", "version"),
    ]


def _refused(baseline: object, candidate: object, **given: bool) -> str:
    with pytest.raises(NotComparableError) as caught:
        match(baseline, candidate, **given)  # type: ignore[arg-type]
    assert caught.value.exit_status == ExitStatus.NOT_COMPARABLE
    assert caught.value.remedy
    return caught.value.message


def test_a_run_does_not_compare_with_itself() -> None:
    """Every figure would be equal, which says nothing."""
    assert "the same run is on both sides" in _refused(side("a", RATES), side("a", RATES))


def test_another_machine_is_refused_and_named() -> None:
    """With what differs, on both sides."""
    machine = handmade(RATES)[0].machine.model_dump()
    other = machine | {"fingerprint": "f" * 16, "cpu_model": "Cortex-A76", "governor": "powersave"}
    message = _refused(side("a", RATES), side("b", RATES, machine=other))
    assert "  a: CPU AMD EPYC 9B14, governor –" in message
    assert "  b: CPU Cortex-A76, governor powersave" in message


def test_across_machines_everything_is_labelled() -> None:
    """The label names both; what they differ in is told beside it."""
    machine = handmade(RATES)[0].machine.model_dump()
    other = machine | {"fingerprint": "f" * 16, "kernel": "6.9"}
    found = match(side("a", RATES), side("b", RATES, machine=other), across_machines=True)
    mine = machine["fingerprint"][:8]
    assert found.across_machines == (
        f"across machines: AMD EPYC 9B14 ({mine}) → AMD EPYC 9B14 (ffffffff)"
    )
    assert _said(found.differing) == [("kernel", "6.8.0-45-generic", "6.9", "machine")]


def test_a_machine_that_only_its_fingerprint_tells_apart_is_named_by_it() -> None:
    """There must be something to read."""
    machine = handmade(RATES)[0].machine.model_dump()
    message = _refused(
        side("a", RATES), side("b", RATES, machine=machine | {"fingerprint": "f" * 16})
    )
    assert f"  b: the fingerprint {'f' * 16}" in message


def test_another_model_is_refused_by_its_hash_or_its_source() -> None:
    """Hashes of the same thing decide; sources do only without any."""
    one, two = "1" * 64, "2" * 64
    message = _refused(
        side("a", RATES, **_model(source="path:m", sha256=one)),
        side("b", RATES, **_model(source="path:m", sha256=two)),
    )
    assert "different models" in message
    assert f"  b: m (path:m), sha256 {two[:12]} of the source" in message
    _refused(
        side("a", RATES, **_model(source="path:m")), side("b", RATES, **_model(source="path:n"))
    )
    found = match(
        side("a", RATES, **_model(source="path:m", sha256=one)),
        side("b", RATES, **_model(source="hf:m", sha256=one)),
    )
    assert len(found.pairs) == 1


def test_another_model_file_on_purpose_is_named() -> None:
    """Two that were interleaved to differ in it are compared."""
    given = [_model(source="path:m", sha256=each * 64) for each in "12"]
    difference = "model=path:old"
    old = side("a", RATES, **given[0], interleaved=interleaved("s", "baseline", "b", difference))
    new = side("b", RATES, **given[1], interleaved=interleaved("s", "candidate", "a", difference))
    (found,) = match(old, new).differing
    assert (found.what, found.kind) == ("the model", "artifact")
    assert found.baseline.endswith("sha256 111111111111 of the source")


def test_a_workload_of_one_name_that_is_another_one_is_refused() -> None:
    """By what differs, with both values."""
    other = run("b", RATES)
    for field, value, said in (
        ("generate_tokens", 99, "the number of tokens to generate"),
        ("prompt_tokens", 5, "the length of the prompt"),
        ("prompt_sha256", "1" * 64, "the prompt's tokens"),
        ("depth", 512, "the depth of the cache"),
        ("task", "text-summarizer", "what it asks"),
    ):
        workload = other.record.workloads[0].model_copy(update={field: value})
        record = other.record.model_copy(update={"workloads": [workload]})
        mine = run("a", RATES)
        known = mine.record.workloads[0].model_copy(
            update={"prompt_sha256": "0" * 64} if field == "prompt_sha256" else {}
        )
        own = mine.record.model_copy(update={"workloads": [known]})
        message = _refused(
            side_of_run(Run(mine.path, own, mine.trials)),
            side_of_run(Run(other.path, record, other.trials)),
        )
        assert f"the workload 'w' is another one in each: the two differ in {said}" in message


def test_another_protocol_of_rating_is_refused() -> None:
    """Perplexities of other windows don't compare."""
    mine, other = run("a", RATES), run("b", RATES)
    text = text_workload("prose", 8, seed=1)
    assert text.quality is not None
    wider = text.model_copy(update={"quality": text.quality.model_copy(update={"stride": 128})})
    sides = [
        side_of_run(Run(each.path, each.record.model_copy(update={"workloads": [workload]}), ()))
        for each, workload in ((mine, text), (other, wider))
    ]
    assert "the stride of the windows" in _refused(*sides)


def test_a_quick_look_is_refused_beside_a_measurement() -> None:
    """Two quick ones are compared, and say what they are."""
    message = _refused(side("a", RATES), side("b", RATES, quick=True))
    assert "  a: in full" in message
    assert "  b: quick" in message
    assert match(side("a", RATES, quick=True), side("b", RATES, quick=True)).pairs


def test_made_up_figures_are_refused_beside_real_ones() -> None:
    """The runner of tests is no framework."""
    message = _refused(
        variants_side("a", variant("v", "fake")), variants_side("b", variant("v", "llama.cpp"))
    )
    assert "'fake' makes its figures up" in message


def test_nothing_in_common_is_refused() -> None:
    """Both are named with what they have."""
    message = _refused(
        variants_side("a", variant("v", "one")), variants_side("b", variant("u", "two"))
    )
    assert "  a: v / w" in message
    assert "  b: u / w" in message


def test_names_from_files_do_not_break_a_message() -> None:
    """A control character is shown, not sent to the terminal."""
    message = _refused(
        variants_side("a", variant("v\x1b[31m\n!", "one")), variants_side("b", variant("u", "two"))
    )
    assert "\x1b" not in message
    assert len(message.splitlines()) == 3


def test_figures_of_a_tool_are_named_where_the_others_are_ours() -> None:
    """A tool may count otherwise; what both sides have from the same source is no difference."""

    def by_tool(name: str) -> Side:
        made = run(name, RATES)
        trials = [
            trial.model_copy(
                update={
                    "metrics": {
                        key: value.model_copy(update={"source": "engine"})
                        for key, value in trial.metrics.items()
                    }
                }
            )
            for trial in made.trials
        ]
        return side_of_run(Run(made.path, made.record, tuple(trials)))

    found = match(side("a", RATES), by_tool("b"))
    assert _said(found.differing) == [
        ("who measured decode rate", "edgebench", "the framework's own tool", "version")
    ]
    assert match(by_tool("a"), by_tool("b")).differing == ()
