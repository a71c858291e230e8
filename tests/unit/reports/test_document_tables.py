"""The documents' tables made of a run: our figures beside theirs, and what differs between them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from choice_run import choice_data
from sample_quality import quality_sample
from sample_run import handmade, sha256

from edgebench.harness.metrics.statistics import median
from edgebench.harness.prepared import Prepared, PreparedVariant
from edgebench.harness.records import prepared_record
from edgebench.harness.results.cell import Cell
from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.model import Artifact, WorkloadRecord
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Trial
from edgebench.harness.scenario.expand import ExpandedVariant
from edgebench.harness.wire import Probe
from edgebench.reports.data import Part, build_report_data
from edgebench.reports.documents import document_notes
from edgebench.reports.features_table import features_tables
from edgebench.reports.format import NOT_MEASURED
from edgebench.reports.frameworks_table import frameworks_table, widths
from edgebench.reports.languages import language
from edgebench.reports.platforms_table import platforms_table
from edgebench.reports.sections import table_sections
from edgebench.reports.selection.select import selection_of
from edgebench.reports.sentences import plain
from edgebench.runners.base import Capabilities, Description
from edgebench.runners.mnn import MnnRunner


def run_of(values, *, kinds=None, trials=(), frameworks=None, record=None, workloads=(), **changes):
    """A run whose variants are of the runner that their name begins with.

    Args:
        values: by variant and metric, one value a block; of workload ``w``.
        kinds: by variant, fields of its record.
        trials: more of them.
        frameworks: by variant, whose figures they are.
        record: fields of the run's record.
        workloads: more of them.
    """
    made, own = handmade(values, **changes)
    variants = [
        each.model_copy(
            update={
                "runner": each.id.split()[0],
                "framework": (frameworks or {}).get(each.id),
                **(kinds or {}).get(each.id, {}),
            }
        )
        for each in made.variants
    ]
    update = {"variants": variants, "workloads": [*made.workloads, *workloads], **(record or {})}
    return build_report_data(Run(Path("made-up"), made.model_copy(update=update), (*own, *trials)))


def trial(variant, workload, block, **metrics):
    """One more measured generation."""
    units = {"decode_rate": "token/s", "ttft_s": "s", "peak_rss_bytes": "byte"}
    return Trial(
        kind="generate", variant=variant, workload=workload, block=block, repetition=0,
        phase="measured", status="ok", started_at="", duration_s=1.0,
        metrics={
            key: Measured(value=value, unit=units[key], source="observed")
            for key, value in metrics.items()
        },
    )  # fmt: skip


def crash(variant):
    """A generation that ended with its process."""
    failure = Failure(kind="crash", message="The runner's process ended.", signal="SIGSEGV")
    return Trial(
        kind="generate", variant=variant, workload="w", block=0, repetition=0, phase="warmup",
        status="failed", started_at="", duration_s=1.0, failure=failure,
    )  # fmt: skip


def cells(table, name, *, published=False):
    """The values of a row by column."""
    row = next(each for each in table.rows if each.variant == name and each.published == published)
    return {column.key: value for column, value in zip(table.columns, row.values, strict=True)}, row


SPEED = {
    "llama.cpp q4": {"decode_rate": [50.0] * 5, "ttft_s": [0.2] * 5, "peak_rss_bytes": [4e8] * 5},
    "llama.cpp q8": {"decode_rate": [40.0] * 5, "ttft_s": [0.1] * 5, "peak_rss_bytes": [8e8] * 5},
    "mnn q4": {
        "decode_rate": [45.0] * 5,
        "ttft_s": [0.30, 0.31, 0.29, 0.32, 0.30],
        "peak_rss_bytes": [5e8] * 5,
    },
}


def test_a_frameworks_row_is_its_fastest_variant():
    """By decode rate; the smaller format wins here, though its first token comes later."""
    table = frameworks_table(run_of(SPEED))
    values, row = cells(table, "llama.cpp")
    assert row.engine.startswith("llama.cpp q4")
    assert (values["decode_rate"].text, values["ttft_s"].sort) == ("50.0", 0.2)
    assert (row.repetitions, row.published, row.colour) == (5, False, "s1")


def test_time_to_first_token_is_related_within_blocks():
    """0.30, 0.31, 0.29, 0.32, 0.30 of 0.2: the median ratio is 1.5, with an interval around it."""
    values, _row = cells(frameworks_table(run_of(SPEED)), "MNN")
    related = values["ttft_relative"]
    assert related.sort == pytest.approx(1.5)
    assert related.n == 5
    assert 1.44 < related.low < 1.5 < related.high < 1.61
    base, _row = cells(frameworks_table(run_of(SPEED)), "llama.cpp")
    assert (base["ttft_relative"].sort, base["ttft_relative"].low) == (1.0, None)


def test_without_llama_cpp_there_is_nothing_to_relate_to():
    """The cell is a dash with that reason, and so it is where llama.cpp failed."""
    only = {"mnn q4": SPEED["mnn q4"]}
    values, _row = cells(frameworks_table(run_of(only)), "MNN")
    assert values["ttft_relative"].text == NOT_MEASURED
    assert "no part of this run" in values["ttft_relative"].reason
    failed = run_of({**only, "llama.cpp q4": {"decode_rate": []}}, trials=[crash("llama.cpp q4")])
    values, _row = cells(frameworks_table(failed), "MNN")
    assert "has no values" in values["ttft_relative"].reason


def test_decode_rates_are_a_range_over_the_workloads():
    """From the lowest to the highest median; it sorts by their geometric mean."""
    longer = WorkloadRecord(name="long", description="", prompt_tokens=64, generate_tokens=3)
    more = [
        trial("mnn q4", "long", block, decode_rate=20.0, ttft_s=2.0, peak_rss_bytes=6e8)
        for block in range(5)
    ]
    data = run_of({"mnn q4": SPEED["mnn q4"]}, trials=more, workloads=[longer])
    values, _row = cells(frameworks_table(data), "MNN")
    assert values["decode_rate"].text == "20.0–45.0"
    assert values["decode_rate"].sort == pytest.approx(math.sqrt(20 * 45))
    # The longest prompt decides on the time, the highest peak on the memory.
    assert values["ttft_s"].where.workload == "long"
    assert values["peak_rss_bytes"].sort == 6e8


def test_a_framework_that_failed_has_a_row_with_its_reason():
    """No values, and the failure in place of each; its runner still offers what it offers."""
    data = run_of({**SPEED, "mlc q4": {"decode_rate": []}}, trials=[crash("mlc q4")])
    values, row = cells(frameworks_table(data), "MLC LLM")
    assert row.failed
    assert "failed" in row.remarks
    assert values["decode_rate"].reason == "failed: The runner's process ended."
    features = features_tables(data)[1]
    rate = next(each for each in features.rows if each.variant == "Inference on the CPU"
                and not each.published)  # fmt: skip
    at = [each.key for each in features.columns].index("mlc")
    assert "process ended" in rate.values[at].reason


def test_another_engine_is_never_shown_under_the_frameworks_name():
    """What TVM ran for the runner mlc stands under its own name, and the report says so."""
    own = {"mlc q0": {"decode_rate": [9.0] * 5, "ttft_s": [1.0] * 5}}
    data = run_of({**SPEED, **own}, frameworks={"mlc q0": "TVM, built by edgebench"})
    table = frameworks_table(data)
    assert "TVM, built by edgebench" in [each.variant for each in table.rows]
    assert "MLC LLM" not in [each.variant for each in table.rows]
    assert any("not those of MLC LLM" in each for each in table.notes)
    columns = {each.key: at for at, each in enumerate(features_tables(data)[1].columns)}
    assert {"mlc", "TVM, built by edgebench"} <= set(columns)
    said = next(each for each in features_tables(data)[1].rows if each.published)
    assert said.values[columns["TVM, built by edgebench"]].text == NOT_MEASURED


def test_the_fake_runner_is_shown_as_no_framework_and_never_rated():
    """It has a row that says so; stars are for frameworks, however fast it makes itself up."""
    fast = {"fake copy": {"decode_rate": [900.0] * 5, "ttft_s": [0.1] * 5}}
    data = run_of({**SPEED, **fast})
    _values, row = cells(frameworks_table(data), "fake")
    assert row.remarks[0] == "no framework"
    table = features_tables(data)[1]
    at = {each.key: place for place, each in enumerate(table.columns)}
    rate = next(each for each in table.rows if each.variant == "Inference on the CPU"
                and not each.published)  # fmt: skip
    assert rate.values[at["fake"]].stars is None
    # 45 of 50 is 0.9, which is five stars still.
    assert (rate.values[at["llama.cpp"]].stars, rate.values[at["mnn"]].stars) == (5, 5)
    assert platforms_table(data).rows[0].engine.startswith("llama.cpp")


def test_what_a_runner_offers_is_told_by_the_run():
    """Number and widths of its formats; a run that does not record them says so."""
    offered = {"mnn": {"quantizations": ["fp32", "fp16", "int8", "int4"]}}
    values, _row = cells(frameworks_table(run_of(SPEED, record={"runners": offered})), "MNN")
    assert values["quantizations"].text == "4 formats: 4, 8, 16, 32 bits"
    assert values["quantizations"].origin == "offered"
    values, _row = cells(frameworks_table(run_of(SPEED)), "MNN")
    assert "does not record" in values["quantizations"].reason
    names = ("IQ4_NL", "Q2_K", "BF16", "q0f16", "q4f32_1", "int8_weight_only", "copy")
    assert widths(names) == (2, 4, 8, 16)


def test_a_run_records_what_its_runners_offer():
    """Of a runner that this interpreter has; one that only another one has is recorded without."""
    able = Capabilities(
        token_ids_in=True,
        token_ids_out=True,
        token_timestamps=True,
        ignores_end_of_text=True,
        threads=True,
    )
    record, _trials = handmade({"mnn": {"decode_rate": [1.0]}, "elsewhere": {"decode_rate": [1.0]}})
    items = [
        PreparedVariant(
            ExpandedVariant(name, name, "source", {}), None, Probe(Description(name, "1", able))
        )
        for name in ("mnn", "elsewhere")
    ]
    runners = prepared_record(record, Prepared(tuple(items), (), {})).runners
    assert runners["mnn"]["quantizations"] == list(MnnRunner.QUANTIZATIONS)
    assert "quantizations" not in runners["elsewhere"]


def test_published_rows_stand_beside_ours_and_say_whose_they_are():
    """As printed, without n or interval, each value with its document."""
    table = frameworks_table(run_of(SPEED))
    values, row = cells(table, "MNN", published=True)
    assert [values[each].text for each in ("ttft_relative", "decode_rate", "peak_rss_bytes")] == [
        "1.1x",
        "22-28",
        "4.3GB",
    ]
    assert values["ttft_s"].text == NOT_MEASURED
    assert {each.document for each in row.values if each.text != NOT_MEASURED} == {"chapter"}
    assert values["quantizations"].origin == "judgement"
    assert row.remarks == ("published: tutorial, ch. 18",)
    assert (row.repetitions, values["decode_rate"].n, values["decode_rate"].interval) == (
        0,
        None,
        "",
    )


def test_platforms_show_our_device_and_judge_the_published_ones():
    """Ours first, with the bandwidth that its rate takes; a published share above 100 % is told."""
    artifact = Artifact(
        name="m.gguf", sha256=sha256("m"), bytes=10**9, made_by="hand",
        weight_bytes_per_token=800_000_000,
    )  # fmt: skip
    data = run_of(SPEED, kinds={"llama.cpp q4": {"artifact": artifact}})
    table = platforms_table(data)
    values, row = cells(table, "AMD EPYC 9B14")
    assert row is table.rows[0]
    # 50 tokens/s x 0.8 GB.
    assert values["implied_bandwidth"].sort == pytest.approx(40e9)
    assert values["implied_bandwidth"].text == "40.0"
    assert "was not measured" in values["bandwidth_share"].reason
    values, row = cells(table, "i9-13900K", published=True)
    assert values["bandwidth_share"].text == "147"
    assert "above the peak" in row.remarks
    assert "can't be" in values["bandwidth_share"].reason
    values, row = cells(table, "M3 Max", published=True)
    assert (values["bandwidth_share"].text, row.remarks) == ("36", ("published: tutorial, ch. 18",))
    # 3.751 / 0.8.
    assert any("4.7 times as much" in each for each in table.notes)
    assert len([each for each in table.rows if each.published]) == 6


def test_power_that_was_not_measured_keeps_its_reason():
    """In the power's own cell and in that of tokens/s/W, which needs it."""
    blocks = [None] * 5
    values = {"mnn q4": {**SPEED["mnn q4"], "mean_power_w": blocks}}
    data = run_of(values, units={"mean_power_w": "W"})
    found, _row = cells(platforms_table(data), "AMD EPYC 9B14")
    assert found["mean_power_w"].reason == "no such sensor"
    assert found["rate_per_watt"].reason == "no such sensor"


def test_stars_are_against_the_fastest_framework():
    """20 of 50 tokens/s is 0.4, two stars; alone there is nothing to be rated against."""
    data = run_of({**SPEED, "mnn q4": {"decode_rate": [20.0] * 5}})
    table = features_tables(data)[1]
    at = {each.key: place for place, each in enumerate(table.columns)}
    rows = {(each.variant, each.published): each for each in table.rows}
    ours = rows["Inference on the CPU", False].values
    assert (ours[at["llama.cpp"]].stars, ours[at["mnn"]].stars) == (5, 2)
    assert ours[at["mnn"]].text == "2/5 (0.40 of the best; 20.0 tokens/s)"
    assert ours[at["mlc"]].reason == "not part of this run"
    theirs = rows["Inference on the CPU", True].values
    assert (theirs[at["mnn"]].stars, theirs[at["mnn"]].origin) == (5, "judgement")
    gpu = rows["Inference on the GPU", False].values[at["mnn"]]
    assert "ran on the GPU" in gpu.reason
    alone = features_tables(run_of({"mnn q4": SPEED["mnn q4"]}))[1]
    rate = next(each for each in alone.rows if each.variant == "Inference on the CPU"
                and not each.published)  # fmt: skip
    assert "no other framework" in rate.values[at["mnn"]].reason


def test_a_gpus_rates_are_not_taken_for_a_cpus():
    """A variant whose options say GPU has stars in that row only."""
    kinds = {"mnn q4": {"options": {"backend": "opencl"}}}
    table = features_tables(run_of(SPEED, kinds=kinds))[1]
    at = {each.key: place for place, each in enumerate(table.columns)}
    rows = {each.variant: each for each in table.rows if not each.published}
    assert "ran on the CPU" in rows["Inference on the CPU"].values[at["mnn"]].reason
    assert "no other framework" in rows["Inference on the GPU"].values[at["mnn"]].reason


def test_features_hold_what_was_observed_beside_what_was_said():
    """The format of the file, how it came to be, how many trials succeeded."""
    artifact = Artifact(name="m-q4.gguf", sha256=sha256("m"), bytes=1, made_by="as published")
    data = run_of(
        {**SPEED, "mnn q4": {"decode_rate": []}},
        kinds={"llama.cpp q4": {"artifact": artifact}},
        trials=[crash("mnn q4")],
    )
    chapter, article = features_tables(data)
    at = [each.key for each in article.columns].index("llama.cpp")
    ours = {each.variant: each.values[at].text for each in article.rows if not each.published}
    assert ours["Model format"] == ".gguf file"
    assert ours["Difficulty of getting started"] == "the published model as it is"
    assert ours["Industrial maturity"] == "10 of 10 trials succeeded"
    mnn = [each.key for each in article.columns].index("mnn")
    ours = {each.variant: each.values[mnn].text for each in article.rows if not each.published}
    assert ours["Industrial maturity"] == "0 of 1 trials succeeded"
    quoted = [each for table in (chapter, article) for each in table.rows if each.published]
    assert len(quoted) == 5 + 7
    kinds = {each.variant: each.remarks[0].split(":")[0] for each in quoted}
    assert kinds["Model format"] == "published"
    assert kinds["Multimodal"] == "judgement"


def test_machines_are_not_mixed():
    """A framework on each machine has a row of its own, related to that machine's llama.cpp."""
    data = run_of(SPEED)
    machine = data.record.machine
    other = data.record.model_copy(update={"machine": machine.model_copy(
        update={"cpu_model": "Another"})})  # fmt: skip
    data = replace(
        data,
        parts=(
            Part(data.record, Path("a"), ("llama.cpp q4", "llama.cpp q8"), "one"),
            Part(other, Path("b"), ("mnn q4",), "two"),
        ),
    )
    values, _row = cells(frameworks_table(data), "MNN · two")
    assert "no part of this run" in values["ttft_relative"].reason
    rows = [each.variant for each in platforms_table(data).rows if not each.published]
    assert rows == ["one", "two"]
    table = features_tables(data)[1]
    rate = next(each for each in table.rows if each.variant == "Inference on the CPU"
                and not each.published)  # fmt: skip
    at = [each.key for each in table.columns].index("mnn")
    assert "another machine" in rate.values[at].reason


@pytest.fixture(scope="module")
def formats():
    """A run of four frameworks that rates a text."""
    made = quality_sample(timeline_samples=3)
    return build_report_data(Run(Path("made-up"), made.record(), tuple(made.trials())))


def test_every_counterpart_of_a_published_figure_is_set_beside_it(formats):
    """Ours over theirs, on which side of our interval theirs is, and what differs."""
    found = {each.key: each for each in document_notes(formats).tables}
    values, _row = cells(found["documents-frameworks"], "MNN: Decode rate")
    rate = formats.summary("chat", "mnn int4 threads=2", "decode_rate").median
    assert values["ratio"].text == f"{rate / 28:.2f}–{rate / 22:.2f}"
    assert values["agreement"].text == "published is below it"
    assert "quantisation: not stated, here int4" in values["differs"].text
    # What differs in every row stands below the table, once.
    shared = "model: Llama-2 7B, here SmolLM2-135M-Instruct"
    assert shared not in values["differs"].text
    assert any(shared in each for each in found["documents-frameworks"].notes)
    values, _row = cells(found["documents-frameworks"], "llama.cpp: Peak memory on chat")
    assert "quantisation: Q4, here q4_0" in values["differs"].text
    values, _row = cells(found["documents-frameworks"], "MNN: Decode rate")
    # 22 x 3.751 and 28 x 3.751.
    assert "83 to 105 GB/s" in values["differs"].text
    values, _row = cells(found["documents-formats"], "Q4_0: speed, against FP16")
    assert values["published"].text == "3.2x"
    # 5.59 / 5.47 - 1.
    values, _row = cells(found["documents-formats"], "Q4_0: perplexity, against FP16")
    assert values["published"].text == "+2.19 %"
    values, _row = cells(found["documents-formats"], "Q8_0: size, of that of FP16")
    assert values["own"].sort == pytest.approx(144 / 271)


def test_what_is_relative_to_another_base_is_no_counterpart():
    """Where the table of formats relates to MLC's 16 bits, its ratios are left out."""
    made = quality_sample(timeline_samples=3, blocks=2)
    made.variants = dict(reversed(made.variants.items()))
    data = build_report_data(Run(Path("made-up"), made.record(), tuple(made.trials())))
    found = {each.key: each for each in document_notes(data).tables}
    figures = [each.variant for each in found["documents-formats"].rows]
    assert "Q8_0: size, of that of FP16" in figures
    assert not [each for each in figures if "speed" in each or "perplexity" in each]


def test_what_can_not_be_in_a_document_is_told(formats):
    """How many devices' rates, and which formats' speed-ups, in sentences."""
    notes = [plain(each) for each in document_notes(formats).notes]
    assert any("3 of the 6 published rates of platforms" in each for each in notes)
    # Platforms shows which, with the numbers; they are not told a second time.
    assert not any("i9-13900K" in each for each in notes)
    assert any("146.5 %" in each for each in platforms_table(formats).footnotes)
    assert any("Q8_0" in each and "99.7 %" in each for each in notes)


def test_the_tables_are_there_without_any_values():
    """Where all failed, each table still holds the documents' rows and every reason."""
    data = run_of({"mnn q4": {"decode_rate": []}}, trials=[crash("mnn q4")])
    tables = (frameworks_table(data), platforms_table(data), *features_tables(data))
    for table in tables:
        assert [each for each in table.rows if each.published]
        for row in table.rows:
            assert len(row.values) == len(table.columns)
            for value in row.values:
                assert value.text != NOT_MEASURED or value.reason == table.footnotes[
                    value.footnote - 1
                ]  # fmt: skip
    assert [each.key for each in document_notes(data).tables] == ["documents-formats-quoted"]


def test_the_tables_speak_chinese(formats):
    """Heads, chips and quotes alike; the verbatim words of the documents stand there."""
    with language("zh"):
        table = frameworks_table(formats)
        values, row = cells(table, "MNN", published=True)
        assert values["quantizations"].text == "优秀"
        assert row.remarks[0].startswith("文献值")
        assert row.remarks[0].endswith("教程第 18 章")
        assert features_tables(formats)[0].rows[0].variant == "模型格式"
        assert "不可能" in platforms_table(formats).footnotes[-6]


def test_a_median_is_over_blocks_that_hold_both():
    """A block in which llama.cpp has no value is left out of the ratio."""
    times = [0.30, 0.31, 0.29, 0.32, 0.30]
    values = {
        "llama.cpp q4": {"decode_rate": [50.0] * 5, "ttft_s": [0.2, 0.2, 0.2, None, 0.2]},
        "mnn q4": {"decode_rate": [45.0] * 5, "ttft_s": times},
    }
    found, _row = cells(frameworks_table(run_of(values)), "MNN")
    kept = [each / 0.2 for place, each in enumerate(times) if place != 3]
    assert found["ttft_relative"].sort == pytest.approx(median(kept))
    assert found["ttft_relative"].n == 4
    assert "blocks" in found["ttft_relative"].reason


def test_cells_are_of_the_workloads_that_were_run():
    """A workload without any cell of a framework is told as missing, not as a failure."""
    data = run_of({"mnn q4": {"decode_rate": [45.0] * 5}})
    values, _row = cells(frameworks_table(data), "MNN")
    assert values["ttft_s"].reason == "not measured"
    assert isinstance(data.cell("w", "mnn q4"), Cell)


def test_a_published_range_is_set_against_our_range():
    """Two workloads make one row: 20 to 40 tokens/s against the published 22-28 of MNN."""
    own = {"slow": [20.0] * 6, "fast": [40.0] * 6}
    data = choice_data(
        {"mnn q4": {each: {"decode_rate": values} for each, values in own.items()}},
        runners={"mnn q4": "mnn"},
    )
    table = {each.key: each for each in document_notes(data).tables}["documents-frameworks"]
    assert [each.variant for each in table.rows if "Decode rate" in each.variant] == [
        "MNN: Decode rate"
    ]
    values, _row = cells(table, "MNN: Decode rate")
    assert values["own"].text == "20.0–40.0 tokens/s"
    # 20 / 28 and 40 / 22.
    assert values["ratio"].text == "0.71–1.82"
    assert values["agreement"].text == "they overlap"
    assert "slow, fast" in values["differs"].text


def test_every_footnote_belongs_to_a_cell(formats):
    """A reason that no cell refers to is no footnote, in any table."""
    for section in table_sections(formats, selection_of(formats)):
        for table in section.tables:
            used = {value.footnote for row in table.rows for value in row.values}
            assert set(range(1, len(table.footnotes) + 1)) <= used, table.key
