"""What reports conclude from rated texts: differences, the short answer, and the words for both."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from sample_quality import EXACT, made, quality_sample, rate, steady, text_workload
from sample_run import sha256

from edgebench.harness.results.measured import Failure
from edgebench.harness.results.model import Artifact
from edgebench.harness.results.quality import WindowRecord
from edgebench.harness.results.trial import Trial
from edgebench.reports.data import build_report_data, load_report_data
from edgebench.reports.differences import differences, fewest_windows
from edgebench.reports.quality import NO_RATINGS, quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quality_text import protocol_text, same_text_note, short_protocol_text
from edgebench.reports.quantization import NOT_TOLD, quantization_table
from edgebench.reports.sentences import plain
from edgebench.reports.terminal import formats_table, quality_table, quality_text

UNEVEN = [
    WindowRecord(tokens=10, bytes=40, log_likelihood=-10.0 * nat)
    for nat in (1.0, 4.0, 2.0, 3.0, 1.5, 3.5, 2.5, 2.2)
]


def view_of(windows, reference=EXACT, **more):
    (view,) = quality_views(build_report_data(made(windows, reference, **more)))
    return view


def losing(*losses):
    """Windows of `EXACT` that lose so many nat a token each."""
    return [rate([each], loss)[0] for each, loss in zip(EXACT, losses, strict=False)]


def sized(run, sizes, formats=None):
    """The run with artifacts of these sizes in bytes, and formats."""
    variants = [
        each.model_copy(
            update={
                "quantization": (formats or {}).get(each.id, "source"),
                "artifact": Artifact(
                    name=each.id, sha256=sha256(each.id), bytes=sizes[each.id], made_by="hand"
                ),
            }
        )
        for each in run.record.variants
    ]
    return replace(run, record=run.record.model_copy(update={"variants": variants}))


def answer_of(run):
    return plain(quality_answer(build_report_data(run), "text"))


@pytest.mark.parametrize(
    ("comparisons", "windows"), [(1, 6), (2, 7), (9, 9), (12, 9), (13, 10), (25, 10), (26, 11)]
)
def test_the_fewest_windows_that_can_tell_apart(comparisons, windows):
    """By hand: 12 * 2 / 2**9 is 0.047, 13 * 2 / 2**9 is 0.051; 25 and 26 alike at 2**10."""
    assert fewest_windows(comparisons) == windows


def test_windows_that_could_never_tell_apart_are_not_a_finding():
    """Five variants, far from each other on six windows: an interval each, and no verdict."""
    windows = {name: losing(*[0.1 * place] * 6) for place, name in enumerate("abcde")}
    view = view_of(windows, EXACT[:6])
    reason = "4 comparisons need at least 8 windows, there are 6"
    assert {row.verdict for row in view.differences.rows} == {"untested"}
    assert {row.p for row in view.differences.rows} == {"–"}
    assert {row.words for row in view.differences.rows} == {f"not tested: {reason}"}
    assert view.differences.how == f"Not tested: {reason}."
    assert view.differences.marked == frozenset()
    assert [plain(each) for each in view.differences.short] == [
        f"Differences not tested: {reason}."
    ]
    assert not any(value.best for row in view.table.rows for value in row.values)


def test_one_comparison_is_written_as_one():
    """Six windows are enough for two variants, five are not."""
    pairs = {"a": losing(*[0.0] * 6), "b": losing(0.1, 0.2, 0.1, 0.2, 0.1, 0.2)}
    view = view_of(pairs, EXACT[:6])
    (row,) = view.differences.rows
    assert (row.p, row.verdict) == ("0.031", "better")
    assert "adjusted" not in view.differences.how
    few = {name: each[:5] for name, each in pairs.items()}
    (row,) = view_of(few, EXACT[:5]).differences.rows
    assert row.words == "not tested: 1 comparison needs at least 6 windows, there are 5"


def test_enough_windows_tell_five_apart():
    """On eight windows that all point one way, p is 2 / 2**8 times four comparisons."""
    windows = {name: steady(0.1 * place) for place, name in enumerate("abcde")}
    view = view_of(windows)
    assert {row.p for row in view.differences.rows} == {"0.031"}
    assert view.differences.marked == {"a"}
    assert [plain(each) for each in view.differences.short] == [
        "Each perplexity differs from the next higher one."
    ]


def test_the_mark_is_by_the_best_and_not_by_a_chain_of_neighbours():
    """`b` can't be told apart from either, yet `c` is worse than `a` in every window."""
    windows = {
        "a": losing(*[0.0] * 8),
        "b": losing(*[0.02, -0.01] * 4),
        "c": losing(*[0.01] * 8),
    }
    found = view_of(windows).differences
    assert [(row.first, row.second, row.verdict) for row in found.rows] == [
        ("a", "b", "alike"),
        ("b", "c", "alike"),
    ]
    assert found.marked == {"a", "b"}


def test_table_and_mark_agree_about_the_second_best():
    """By hand: 8 of 256 turnings are as far from 0, p 0.031; twice that is no difference.

    Holm alone would leave it as it is, since the other comparison has a smaller p.
    """
    near = (1, 1, 1, 1, 1, 1, -0.3, -0.5)
    windows = {
        "a": losing(*[0.0] * 8),
        "b": losing(*[0.01 * each for each in near]),
        "c": losing(*[0.5] * 8),
    }
    found = view_of(windows).differences
    assert [(row.p, row.verdict) for row in found.rows] == [("0.062", "alike"), ("0.016", "better")]
    assert found.marked == {"a", "b"}


def test_an_interval_that_is_written_as_one_number_is_not_shown():
    """Of equal ends there is none in any table, whether they differ far behind the point or not."""
    same = {"a": losing(*[0.0] * 8), "b": losing(*[0.1] * 7, 0.1 + 1e-9)}
    view = view_of(same)
    assert view.differences.rows[0].interval == ""
    row = next(row for row in view.table.rows if row.variant == "b")
    assert {value.interval for value in row.values} == {""}


def test_ratios_beyond_numbers_are_a_dash_with_a_reason():
    """exp(800) is no float: no change, no interval, no verdict, and no failure of the report."""
    far = [each.model_copy(update={"log_likelihood": -8000.0}) for each in EXACT[:1]]
    found = differences({"a": tuple(EXACT), "b": (*far, *EXACT[1:])}, {"a": 8.0, "b": 1e300})
    (row,) = found.rows
    assert found.marked == frozenset()
    assert (row.change, row.interval, row.p, row.verdict) == ("–", "", "–", "untested")
    assert "no number holds" in row.words


def test_a_run_that_stopped_says_what_an_interval_lacks():
    """Its trials have ratios, the record has no reference yet; the windows are enough."""
    run = sized(
        made({"a": steady(0.001), "b": steady(0.002)}, quality={"reference": None}),
        {"a": 20, "b": 10},
    )
    assert answer_of(run) == f"No format is named: {NO_RATINGS}."
    (view,) = quality_views(build_report_data(run))
    assert f"No intervals (PPL vs ref.): {NO_RATINGS}." in view.table.no_intervals
    assert "no interval is computed for it" not in " ".join(view.table.no_intervals)


def test_the_answer_leaves_out_who_rated_other_windows():
    """The smallest one rated five of eight windows, and its figures stand in no table."""
    windows = {"a": steady(0.001)[:5], "b": steady(0.002), "c": steady(0.003)}
    run = sized(made(windows), {"a": 1, "b": 20, "c": 10})
    assert answer_of(run).startswith("c is the smallest (10.0 B)")


UNFINISHED = "to be scored by every variant; the run did not end"
ALONE = {"metrics": ["perplexity", "bits_per_byte"]}


def test_without_a_reference_the_base_is_what_smaller_ones_are_compared_with():
    """Nobody asked for what needs a reference: no column of it and no sentence about it."""
    windows = {"whole": steady(0.0), "half": steady(0.004, spread=0.001), "bad": steady(0.5)}
    run = made(windows, None, quality=ALONE)
    run = sized(run, {"whole": 20, "half": 10, "bad": 5}, {"whole": "F16"})
    says = answer_of(run)
    assert says.startswith("half is the smallest (10.0 B) whose perplexity is at most 1 % above")
    assert "above that of whole (20.0 B): +0.4" in says
    (view,) = quality_views(build_report_data(run))
    assert [column.key for column in view.table.columns] == ["perplexity", "bits_per_byte"]
    assert not any("reference" in sentence for sentence in (*view.protocol, view.short))
    far = sized(run, {"whole": 20, "half": 30, "bad": 5}, {"whole": "F16"})
    assert answer_of(far).startswith(
        "No smaller variant has a perplexity within 1 % of that of whole (20.0 B). Closest: bad, "
        "+64"
    )


def test_without_anything_to_compare_with_there_is_no_answer():
    """Neither a reference nor a variant in 16 or 32 bits; or none that is smaller."""
    run = made({"a": steady(0.0), "b": steady(0.1)}, None, quality=ALONE)
    assert answer_of(sized(run, {"a": 20, "b": 10})) == ""
    assert answer_of(sized(run, {"a": 20, "b": 20}, {"a": "f16"})) == ""
    found = quantization_table(
        build_report_data(sized(run, {"a": 20, "b": 10}, {"a": "q8", "b": "q4"}))
    )
    assert "perplexity_change" not in {column.key for column in found.table.columns}
    assert not any("reference" in note for note in found.notes)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"a": 9, "b": 9, "c": 9}, "The perplexity closest to the reference's: b, +0.1"),
        ({"a": 9, "b": 9, "c": 20}, "b is the best of the 2 smallest (9.00 B) whose perplexity"),
    ],
)
def test_none_is_the_smallest_among_equals(sizes, says):
    """A sweep of options has one artifact."""
    windows = {"a": steady(0.005), "b": steady(0.001), "c": steady(0.002)}
    assert answer_of(sized(made(windows), sizes)).startswith(says)


def test_one_variant_is_compared_with_the_reference_alone():
    """It is no smallest of anything."""
    run = sized(made({"a": steady(0.1)}), {"a": 9})
    # By hand: exp(0.1) is 1.1052, and round(10 * exp(-1.2 * sqrt(0.1))) of 10 tokens are 7.
    assert answer_of(run) == (
        "Perplexity against the reference's: a, +10.52 %; top-1 70.0 %, KL 0.100 nat."
    )
    run = sized(made({"a": steady(0.0)}), {"a": 9})
    assert answer_of(run).startswith("Perplexity against the reference's: a, 0.00 %; top-1 100 %")


def test_a_failed_variant_has_its_failure_as_the_reason_everywhere():
    """Not that its runner tells nothing: it never loaded."""
    run = made({"whole": steady(0.0), "dead": None, "mute": steady(0.1), "told": steady(0.2)})
    run = sized(
        run,
        {"whole": 20, "dead": 10, "mute": 10, "told": 9},
        {"whole": "f16", "dead": "q8", "mute": "q4", "told": "q3"},
    )
    failure = Failure(kind="crash", message="It broke.")
    kept = [each for each in run.trials if each.variant != "dead"]
    common = {"variant": "dead", "block": 0, "repetition": 0, "phase": "measured"}
    broken = [
        Trial.model_validate(
            {
                **common,
                "kind": kind,
                "workload": workload,
                "status": "failed",
                "started_at": "2025-01-14T10:16:00Z",
                "duration_s": 1.0,
                "failure": failure,
            }
        )
        for kind, workload in (("quality", "text"), ("generate", "w"))
    ]
    read = {"weight_bytes_per_token": 5}
    artifacts = {
        each.id: each.artifact.model_copy(update=read if each.id in ("whole", "told") else {})
        for each in run.record.variants
        if each.id != "dead"
    }
    variants = [
        each.model_copy(update={"artifact": artifacts.get(each.id)}) for each in run.record.variants
    ]
    run = replace(
        run,
        record=run.record.model_copy(update={"variants": variants}),
        trials=(*kept, *broken),
    )
    found = quantization_table(build_report_data(run))
    _, mute, _, dead = found.table.rows
    assert {value.reason for value in dead.values} == {"failed: It broke."}
    assert mute.values[-1].reason == NOT_TOLD


def record_of(**changes):
    return text_workload("text", 8, seed=1).quality.model_copy(update=changes)


def test_another_part_of_a_text_is_no_other_protocol():
    """Where only the extent differs."""
    whole = text_workload("text", 8, seed=1)
    part = {"windows": 4, "scored_tokens": 1024}
    assert same_text_note(record_of(**part), whole) == (
        "text scores another part of the same text: its perplexities do not compare with these."
    )
    assert "by another protocol" in same_text_note(record_of(**part, stride=128), whole)
    assert same_text_note(record_of(), whole) == ""


@pytest.mark.parametrize(
    ("changes", "finished", "says"),
    [
        ({"windows": 0}, True, "Of 8 windows, none was scored by any variant."),
        ({"windows": 0}, False, "Planned: 8 windows; none is complete so far."),
        (
            {"windows": 4, "scored_tokens": 9, "scored_bytes": None},
            False,
            f"4 of 8 windows were {UNFINISHED}. They hold 9 scored tokens.",
        ),
        (
            {"windows": 1, "windows_planned": 1, "scored_tokens": 1, "scored_bytes": 1},
            True,
            "1 of 1 window was scored. It holds 1 scored token, 1 byte.",
        ),
    ],
)
def test_the_extent_in_words(changes, finished, says):
    """Who scored nothing is not blamed on the budget, and one is one."""
    assert protocol_text(record_of(**changes), finished=finished)[2] == says


def test_one_window_in_short():
    """No plural of one."""
    record = record_of(windows=1, windows_planned=1, window=4)
    assert "1 of 1 window of 4 tokens" in short_protocol_text(record)


def test_only_what_was_asked_for_is_told_of_the_reference():
    """Top-1 agreement alone has no KL divergence and no perplexity."""
    words = " ".join(protocol_text(record_of(metrics=["top1_agreement"]), finished=True))
    assert "The reference is SmolLM2-135M-Instruct.Q4_1.gguf" in words
    assert "KL" not in words
    assert "perplexity" not in words
    assert "KL" in " ".join(protocol_text(record_of(metrics=["kl_divergence"]), finished=True))


def test_a_reference_beyond_numbers_is_told_in_words():
    """Its perplexity is null."""
    reference = record_of().reference.model_copy(update={"perplexity": None})
    record = record_of(reference=reference)
    assert "a perplexity that no number holds" in " ".join(protocol_text(record, finished=True))
    assert "perplexity of the reference" not in short_protocol_text(record)


def test_the_terminal_lists_only_footnotes_that_it_refers_to(tmp_path):
    """Five windows: no value has an interval, and only the failed one a dash."""
    windows = {"a": steady(0.1)[:5], "b": steady(0.0)[:5], "c": None}
    data = build_report_data(made(windows, EXACT[:5]))
    (view,) = quality_views(data)
    assert any("an interval needs" in note for note in view.table.no_intervals)
    shown = _screen(quality_table(data), quality_text(data))
    assert "an interval needs" not in shown
    assert shown.count("(1)") >= 2
    assert "(2)" not in shown


def test_the_numbers_of_footnotes_in_the_terminal_have_no_gaps(tmp_path):
    """What is listed below the formats is what their cells refer to, from 1 on."""
    failure = Failure(kind="unsupported", message="It gives no likelihoods.")
    sample = quality_sample(unrated={"mediapipe fp32 threads=2": failure}, blocks=2)
    data = load_report_data(sample.write(tmp_path))
    shown = _screen(formats_table(quantization_table(data)))
    cells, notes = shown.split("Base: ")
    for number in (1, 2, 3):
        assert (f"({number})" in cells) == (f"({number})" in notes)
    assert "(1)" in notes


def _screen(*shown):
    screen = io.StringIO()
    console = Console(file=screen, width=80)
    for each in shown:
        console.print(each)
    return screen.getvalue()
