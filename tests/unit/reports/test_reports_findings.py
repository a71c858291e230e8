"""What a report concludes from the values: best, ties, sweeps, options, failures, warnings."""

from __future__ import annotations

import pytest

from edgebench.harness.results.measured import Failure
from edgebench.harness.results.model import VariantRecord
from edgebench.harness.results.trial import Trial
from edgebench.reports import facts
from edgebench.reports.answer import answers
from edgebench.reports.data import (
    build_report_data,
    paired_ratio,
    ratio_summary,
    ratios_within_blocks,
)
from edgebench.reports.options import options
from edgebench.reports.sentences import plain
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows

FIVE = 5
"""An interval needs five blocks."""


def rates(*values):
    return {"decode_rate": list(values)}


def same(value):
    return [value] * FIVE


def column(table, key):
    at = next(place for place, each in enumerate(table.columns) if each.key == key)
    return {row.variant: row.values[at] for row in table.rows}


def test_the_fastest_is_named_with_its_ratio_to_the_next(by_hand):
    """50 against 40 tokens/s: the next decodes at 0.80 times the rate."""
    data = by_hand({"A": rates(*same(50.0)), "B": rates(*same(40.0)), "C": rates(*same(30.0))})
    leader = answers(data)[0].leaders[0]
    assert leader.variants == ("A",)
    assert leader.certainty == "sure"
    assert plain(leader.sentence) == (
        "A decodes fastest: 50.0 tokens/s; B, the next, decodes at 0.80 times that rate."
    )


def test_ratios_are_taken_within_blocks(by_hand):
    """Drift that hits both alike is no difference: the ratio is 0.5 in each block."""
    data = by_hand(
        {
            "A": rates(100.0, 80.0, 110.0, 120.0, 130.0),
            "B": rates(50.0, 40.0, 55.0, 60.0, 65.0),
        }
    )
    assert paired_ratio(data.run.trials, "w", "decode_rate", "B", "A") == 0.5
    assert paired_ratio(data.run.trials, "w", "ttft_s", "B", "A") is None


def test_overlapping_intervals_are_not_told_apart(by_hand):
    """Two variants whose values mingle share the first place, in the answer and in the table."""
    data = by_hand(
        {
            "A": rates(48.0, 49.0, 50.0, 51.0, 52.0),
            "B": rates(48.5, 49.5, 50.5, 51.5, 52.5),
            "C": rates(*same(20.0)),
        }
    )
    leader = answers(data)[0].leaders[0]
    assert leader.certainty == "tie"
    assert leader.variants == ("B", "A")
    assert "this run can't tell them apart" in plain(leader.sentence)
    marked = column(comparison_rows(data)[0], "decode_rate")
    assert [variant for variant, value in marked.items() if value.best] == ["A", "B"]


def test_lower_is_better_for_times(by_hand):
    """The shortest time to first token and the least memory win."""
    data = by_hand(
        {
            "A": {"ttft_s": same(0.2), "peak_rss_bytes": same(300.0 * 2**20)},
            "B": {"ttft_s": same(0.1), "peak_rss_bytes": same(600.0 * 2**20)},
        }
    )
    _, first_token, memory = answers(data)[0].leaders
    assert first_token.variants == ("B",)
    assert "A, the next, takes 2.00 times as long" in plain(first_token.sentence)
    assert memory.variants == ("A",)
    assert "B, the next, needs 2.00 times as much" in plain(memory.sentence)


def test_without_intervals_nothing_is_marked_best(by_hand):
    """Two blocks give no interval: the answer is a hint, the table marks nobody."""
    data = by_hand({"A": rates(50.0, 51.0), "B": rates(40.0, 41.0)})
    leader = answers(data)[0].leaders[0]
    assert leader.certainty == "unsure"
    assert "a hint only" in plain(leader.sentence)
    values = column(comparison_rows(data)[0], "decode_rate")
    assert not any(value.best for value in values.values())
    assert values["A"].reason == "an interval needs 5 blocks, there are 2"


def test_where_all_are_alike_nobody_is_marked(by_hand):
    """A mark on every value would say nothing."""
    data = by_hand({"A": rates(*same(50.0)), "B": rates(*same(50.0))})
    values = column(comparison_rows(data)[0], "decode_rate")
    assert not any(value.best for value in values.values())


def test_one_variant_is_not_called_the_fastest(by_hand):
    """There is nothing to be faster than."""
    data = by_hand({"A": rates(*same(50.0))})
    leader = answers(data)[0].leaders[0]
    assert leader.certainty == "alone"
    assert plain(leader.sentence) == "Decode rate: 50.0 tokens/s."


def test_what_nobody_measured_is_said_with_its_reason(by_hand):
    """A metric without a single value is answered by why there is none."""
    data = by_hand({"A": {"decode_rate": same(None), "ttft_s": same(0.1)}})
    leader = answers(data)[0].leaders[0]
    assert leader.certainty == "unknown"
    assert plain(leader.sentence) == "No decode rate was measured: no such sensor."


def test_a_null_is_a_dash_with_a_footnote(by_hand):
    """The reason is in the value and in the list below the table, once."""
    data = by_hand(
        {
            "A": {"decode_rate": same(50.0), "ttft_s": same(None)},
            "B": {"decode_rate": same(40.0), "ttft_s": same(None)},
        }
    )
    table = comparison_rows(data)[0]
    values = column(table, "ttft_s")
    assert values["A"].text == "–"
    assert values["A"].sort is None
    assert table.footnotes[values["A"].footnote - 1] == "no such sensor"
    assert values["A"].footnote == values["B"].footnote


def test_columns_that_mix_sources_name_them(by_hand):
    """A framework's own figure beside our own clock's is marked at each value."""
    data = by_hand({"A": rates(*same(50.0)), "B": rates(*same(40.0))})
    trials = [
        trial.model_copy(
            update={
                "metrics": {
                    key: each.model_copy(update={"source": "engine"})
                    for key, each in trial.metrics.items()
                }
            }
        )
        if trial.variant == "B"
        else trial
        for trial in data.run.trials
    ]
    mixed = build_report_data(type(data.run)(data.run.path, data.record, tuple(trials)))
    values = column(comparison_rows(mixed)[0], "decode_rate")
    assert values["A"].chip == "observed"
    assert values["B"].chip == "engine"
    plain_values = column(comparison_rows(data)[0], "decode_rate")
    assert {value.chip for value in plain_values.values()} == {""}


def test_flags_are_words_with_a_meaning(by_hand):
    """Fewer repetitions than asked in a quick run are said at the row and explained below."""
    data = by_hand({"A": rates(50.0, 51.0), "B": rates(40.0, 41.0)}, quick=True)
    table = comparison_rows(data)[0]
    assert table.rows[0].remarks == ("few repetitions", "quick look")
    assert [name for name, _ in table.remarks] == ["few repetitions", "quick look"]
    assert "fewer than the 5 repetitions" in table.remarks[0][1]


def test_a_sweep_names_its_best_value(by_hand):
    """Variants that differ in one option only are compared on it."""
    data = by_hand(
        {"t1": rates(*same(30.0)), "t2": rates(*same(50.0)), "t4": rates(*same(40.0))},
        options={
            "t1": {"threads": 1, "mmap": True},
            "t2": {"threads": 2, "mmap": True},
            "t4": {"threads": 4, "mmap": True},
        },
    )
    (sweep,) = sweeps(data)
    assert (sweep.option, sweep.base) == ("threads", "made-up source mmap=true")
    assert [point.value for point in sweep.points if point.best] == ["2"]
    assert plain(sweep.verdict) == "Best by decode rate: threads = 2."


def test_a_sweep_says_when_intervals_overlap(by_hand):
    """A best value that can't be told apart from another one is no recommendation."""
    data = by_hand(
        {
            "t2": rates(48.0, 49.0, 50.0, 51.0, 52.0),
            "t4": rates(48.5, 49.5, 50.5, 51.5, 52.5),
        },
        options={"t2": {"threads": 2}, "t4": {"threads": 4}},
    )
    (sweep,) = sweeps(data)
    assert "overlaps with that of 2" in plain(sweep.verdict)
    assert all(point.best for point in sweep.points)


def test_variants_that_differ_in_two_options_are_no_sweep(by_hand):
    """Which of the two options did it could not be said."""
    data = by_hand(
        {"A": rates(*same(30.0)), "B": rates(*same(50.0))},
        options={"A": {"threads": 1, "mmap": True}, "B": {"threads": 2, "mmap": False}},
    )
    assert sweeps(data) == ()


def test_two_swept_options_make_a_sweep_for_each_other_value(by_hand):
    """Two options of two values are four sweeps of two variants."""
    data = by_hand(
        {f"{threads}{mmap}": rates(*same(30.0 + threads)) for threads in (1, 2) for mmap in "yn"},
        options={
            f"{threads}{mmap}": {"threads": threads, "mmap": mmap == "y"}
            for threads in (1, 2)
            for mmap in "yn"
        },
    )
    assert sorted(sweep.option for sweep in sweeps(data)) == ["mmap", "mmap", "threads", "threads"]


def test_options_that_differ_are_told_from_those_that_do_not(data):
    """The sample varies quantisation and threads; all else is shared."""
    compared = options(data)
    assert compared.differing == ("quantization", "threads")
    assert ("llama.cpp Q8_0 threads=1", ("Q8_0", "1")) in compared.rows
    assert ("memory_map", "true") in compared.shared
    assert compared.overruled == ()


def test_an_option_that_was_overruled_is_named(by_hand):
    """Four threads asked, two used, is not a matter of small print."""
    made = by_hand({"A": rates(*same(50.0))}, options={"A": {"threads": 4}})
    variant = made.record.variants[0].model_copy(update={"effective_options": {"threads": 2}})
    record = made.record.model_copy(update={"variants": [variant]})
    data = build_report_data(type(made.run)(made.run.path, record, made.run.trials))
    assert options(data).overruled == (("A", "threads", "4", "2"),)


def test_what_shaped_the_artifact_stands_among_the_options(by_hand):
    """A framework says what it uses of loading; what was converted with stands beside it."""
    data = by_hand(
        {"A": {"decode_rate": [1.0, 1.0]}, "B": {"decode_rate": [1.0, 1.0]}},
        options={"A": {"cache_length": 768}, "B": {"cache_length": 4096}},
    )
    variants = [
        each.model_copy(update={"effective_options": {"threads": 2}})
        for each in data.record.variants
    ]
    record = data.record.model_copy(update={"variants": variants})
    made = type(data.run)(data.run.path, record, data.run.trials)
    compared = options(build_report_data(made))
    assert compared.differing == ("cache_length",)
    assert compared.rows == (("A", ("768",)), ("B", ("4096",)))
    assert ("threads", "2") in compared.shared


def test_failures_are_gathered_with_the_end_of_their_log(data):
    """The sample's crash is one failure with its signal, its place and its clean log."""
    (failure,) = data.failures
    assert failure.variant == "llama.cpp F16 threads=2"
    assert failure.where == ("pp512-tg128",)
    assert failure.what == "crashed with SIGABRT"
    assert failure.log_tail.endswith("GGML_ASSERT(buffer) failed")
    assert "\x1b" not in failure.log_tail


def test_equal_failures_are_one_and_loads_count(by_hand):
    """A load that fails in three blocks is one failure that happened three times."""
    failed = [
        Trial(
            kind="load",
            variant="A",
            workload=None,
            block=block,
            repetition=0,
            phase="measured",
            status="failed",
            started_at="2025-01-14T10:16:00Z",
            duration_s=1.0,
            failure=Failure(kind="timeout", message="No answer in 120 s.", log_tail=f"try {block}"),
        )
        for block in range(3)
    ]
    data = by_hand(
        {"A": rates(), "B": rates(*same(40.0))} | {"A": {"decode_rate": []}}, trials=failed
    )
    (failure,) = data.failures
    assert failure.count == 3
    assert failure.where[0] == "loading the model"
    assert failure.what == "did not answer in time"
    assert failure.log_tail == "try 2"
    row = comparison_rows(data)[0].rows[0]
    assert row.failed
    assert row.values[0].reason == "failed: No answer in 120 s."


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"quick": True}, "A quick look, not a measurement."),
        ({"status": "interrupted"}, "This run was interrupted."),
        ({"status": "running"}, "This run has not finished"),
        ({"stopped_by_budget": True}, "The time budget ended this run."),
    ],
)
def test_what_limits_the_whole_report_comes_first(by_hand, changes, title):
    """A quick, unfinished or cut run says so before any figure."""
    (banner,) = facts.banners(by_hand({"A": rates(50.0)}, **changes))
    assert banner.title.startswith(title)


def test_damaged_lines_are_said(by_hand):
    """A report of what a killed run left says that something is missing."""
    (banner,) = facts.banners(by_hand({"A": rates(50.0)}, damaged_lines=1))
    assert banner.title == "1 line of trials.jsonl could not be read."


def test_sources_that_were_quantised_before_are_said(data):
    """The note of a lossy source is shown once, with the variants that it concerns."""
    notes = facts.source_notes(data)
    (lossy,) = (note for note in notes if "made from Q4_1 weights" in note)
    assert lossy.startswith("llama.cpp Q8_0 threads=1, llama.cpp Q8_0 threads=2, ")


def test_a_run_without_trials_can_be_reported(by_hand):
    """A run that was killed at once has cells that were not run, and no picture to fail on."""
    data = by_hand({"A": {"decode_rate": []}, "B": {"decode_rate": []}}, status="running")
    table = comparison_rows(data)[0]
    assert [row.remarks[0] for row in table.rows] == ["not run", "not run"]
    assert answers(data)[0].leaders[0].certainty == "unknown"
    assert "0 of 2 cells have results" in facts.banners(data)[0].text


def test_the_models_size_needs_no_trial(sample_run, by_hand):
    """Bytes and bits per weight come from the file: 8 x 98,000,000 / 134,515,008 = 5.83."""
    made = by_hand({"A": rates(*same(50.0))})
    variant = sample_run.llama_variant("source", {}, "m.gguf", 98_000_000)
    renamed = VariantRecord.model_validate(variant.model_dump() | {"id": "A"})
    record = made.record.model_copy(update={"variants": [renamed]})
    data = build_report_data(type(made.run)(made.run.path, record, made.run.trials))
    assert data.summary("w", "A", "model_bytes").median == 98_000_000
    assert round(data.summary("w", "A", "bits_per_weight").median, 2) == 5.83
    assert facts.files(data)[0].bits_per_weight == "5.83"


def test_the_machine_warns_of_what_spoils_a_measurement(sample_run):
    """A virtual machine, a saving governor and a busy machine are each named."""
    machine = sample_run.sample().record().machine
    busy = machine.model_copy(update={"governor": "powersave", "load_average": [1.7, 1.0, 0.5]})
    assert [text.split()[0:3] for text in facts.machine_warnings(busy)] == [
        ["It", "runs", "inside"],
        ["The", "clock", "governor"],
        ["The", "machine", "was"],
    ]
    quiet = machine.model_copy(update={"virtualization": None, "governor": "performance"})
    assert facts.machine_warnings(quiet) == ()


def test_the_command_can_be_pasted(data):
    """Arguments with spaces are quoted."""
    assert facts.command(data) == "edgebench run smollm2-135m --out 'my results'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2025-01-04T10:15:00Z", "4 January 2025, 10:15 UTC"),
        ("2025-01-04T10:15:00+02:00", "4 January 2025, 08:15 UTC"),
        ("yesterday", "yesterday"),
    ],
)
def test_moments_are_shown_in_utc(text, shown):
    """A time is written for people, and left alone where it is none."""
    assert facts.moment(text) == shown


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_a_ratio_the_other_way_round_is_one_over_it(by_hand, blocks):
    """However many blocks there are, and however they differ; so are the ends of its interval."""
    one = [1.0, 10.0, 3.0, 8.0, 2.0, 5.0][:blocks]
    other = [2.0, 1.0, 4.0, 1.0, 3.0, 4.0][:blocks]
    trials = by_hand({"a": {"decode_rate": one}, "b": {"decode_rate": other}}).run.trials
    there, back = (
        ratio_summary(ratios_within_blocks(trials, "w", "decode_rate", *pair))
        for pair in (("a", "b"), ("b", "a"))
    )
    assert there.median * back.median == pytest.approx(1)
    if blocks >= 5:
        assert there.ci_low * back.ci_high == pytest.approx(1)
        assert there.ci_high * back.ci_low == pytest.approx(1)
