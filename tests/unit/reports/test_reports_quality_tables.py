"""What the tables of quality and of formats hold, and what is said once below them instead."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console
from sample_quality import EXACT, by_windows, made, steady
from sample_run import handmade, sha256

from edgebench.harness.results.cell import Summary
from edgebench.harness.results.model import Artifact
from edgebench.reports.data import build_report_data
from edgebench.reports.format import CHANGE, shown
from edgebench.reports.html import render_html
from edgebench.reports.markdown import render_markdown
from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quality_text import protocol_text, short_protocol_text
from edgebench.reports.quantization import quantization_table
from edgebench.reports.sentences import plain
from edgebench.reports.terminal import formats_table, quality_table, quality_text

WEIGHTS = 1000
NO_TOP1 = {"top1": None, "kl_divergence": None}


def formats(run, given):
    """The run with these formats, each (quantisation, bits per weight)."""
    variants = [
        each.model_copy(
            update={
                "quantization": given[each.id][0],
                "artifact": Artifact(
                    name=each.id,
                    sha256=sha256(each.id),
                    bytes=round(given[each.id][1] * WEIGHTS / 8),
                    parameters=WEIGHTS,
                    made_by="hand",
                ),
            }
        )
        for each in run.record.variants
    ]
    return replace(run, record=run.record.model_copy(update={"variants": variants}))


def with_engine(run, *versions):
    """The run with these versions of one engine, in the order of the variants."""
    variants = [
        each.model_copy(update={"engine": "Machine", "engine_version": version})
        for each, version in zip(run.record.variants, versions, strict=True)
    ]
    return replace(run, record=run.record.model_copy(update={"variants": variants}))


def screen(*parts):
    stream = io.StringIO()
    console = Console(file=stream, width=80)
    for each in parts:
        console.print(each)
    return stream.getvalue()


def answer_of(run):
    return plain(quality_answer(build_report_data(run), "text"))


def table_of(run):
    return quantization_table(build_report_data(run))


def keys(table):
    return [column.key for column in table.columns]


def without_tops(windows):
    return [each.model_copy(update=NO_TOP1) for each in windows]


@pytest.mark.parametrize("swapped", [False, True])
def test_a_value_stands_below_its_own_head_where_texts_differ_in_metrics(swapped):
    """One text has bits per byte and no top-1, the other top-1 and no bits per byte."""
    metrics = [["perplexity", "bits_per_byte"], ["perplexity", "top1_agreement"]]
    first, second = reversed(metrics) if swapped else metrics
    run = made({"a": steady(0.5), "b": steady(0.0)}, quality={"metrics": first})
    windows = {"a": steady(0.5), "b": steady(0.0)}
    other, trials = by_windows(windows, EXACT, name="other", quality={"metrics": second})
    record = run.record.model_copy(update={"workloads": [*run.record.workloads, other]})
    data = build_report_data(replace(run, record=record, trials=(*run.trials, *trials)))
    lines = screen(quality_table(data)).splitlines()
    # round(10 * exp(-1.2 * sqrt(0.5))) of 10 tokens; (log2(8) + 0.5 / ln 2) * 10 tokens / 40 bytes.
    tops, bits = "40.0", f"{(3 + 0.5 / math.log(2)) / 4:.4f}"[:5]
    heads = next(line for line in lines if "byte" in line and "top-1" in line)
    for value, head in ((tops, "top-1"), (bits, "byte")):
        (line,) = [line for line in lines if value in line]
        assert line.index(value) + len(value) == pytest.approx(heads.index(head) + len(head), abs=1)
        assert line.startswith("a")


def test_who_has_no_interval_is_not_recommended():
    """Five windows: the smallest one loses nothing of its perplexity, by chance."""
    run = made({"a": steady(0.0)[:5], "b": steady(-0.05)[:5]}, EXACT[:5], quality={"windows": 5})
    run = formats(run, {"a": ("F16", 16), "b": ("q2", 2)})
    says = "5 of 5 windows: too few to name a format or to tell variants apart."
    assert answer_of(run) == says
    data = build_report_data(run)
    text = " ".join(screen(quality_table(data), quality_text(data)).split())
    assert text.count("too few") == 1
    assert "not tested" not in text.lower()


def test_the_upper_end_of_the_interval_decides():
    """In the middle 0.5 % above, and no further than 1.3 or so: not surely within 1 %."""
    run = made({"a": steady(0.0), "b": steady(0.005, spread=0.012)})
    run = formats(run, {"a": ("F16", 16), "b": ("q4", 4)})
    high = build_report_data(run).summary("text", "b", "perplexity_ratio").ci_high
    assert high > 1.01
    assert answer_of(run).startswith("a is the smallest")
    run = made({"b": steady(0.005, spread=0.012), "c": steady(0.4)})
    run = formats(run, {"b": ("q4", 4), "c": ("q2", 2)})
    assert answer_of(run).startswith(
        "No variant has a perplexity surely within 1 % of the reference's. Closest: b, +0.5"
    )


def test_other_figures_stand_beside_the_perplexity():
    """By hand: 0.004 nat a token lost, round(10 * exp(-1.2 * sqrt(0.004))) = 9 of 10 tokens."""
    run = formats(made({"a": steady(0.0), "b": steady(0.004)}), {"a": ("F16", 16), "b": ("q4", 4)})
    assert answer_of(run) == (
        "b is the smallest (500 B) whose perplexity is at most 1 % above the reference's: "
        "+0.40 %; top-1 90.0 %, KL 0.00400 nat."
    )


SOURCES = {"own": ("source", 5), "made": ("int4", 6), "big": ("F16", 16)}


def test_a_source_is_no_answer_by_itself():
    """What the reference was read from is close to it in any case."""
    windows = {"own": steady(0.001), "made": steady(0.002), "big": steady(0.0)}
    assert answer_of(formats(made(windows), SOURCES)) == (
        "At most 1 % above the reference's perplexity: the source itself (Q4_1, 625 B); of what "
        "was made from it, made is the smallest (750 B): +0.20 %; top-1 90.0 %, KL 0.00200 nat."
    )
    smaller = {**SOURCES, "made": ("int4", 4)}
    assert answer_of(formats(made(windows), smaller)).startswith("made is the smallest (500 B)")


def test_where_only_the_source_is_close():
    """It is told, after the closest of what was made from it."""
    windows = {"own": steady(0.001), "made": steady(0.2), "big": steady(0.1)}
    says = answer_of(formats(made(windows), SOURCES))
    assert says.startswith(
        "No variant made from the source has a perplexity within 1 % of the reference's. "
        "Closest: big, +10.52 %"
    )
    assert says.endswith(" Only the source itself (Q4_1, 625 B) has.")


@pytest.mark.parametrize(
    ("bits", "base"),
    [
        ({"a": ("source", 16.1), "b": ("q8", 8.5)}, "source"),
        ({"a": ("q8", 8.5), "b": ("source", 32.2)}, "source"),
        ({"a": ("source", 32.2), "b": ("f16", 16.1)}, "f16"),
        ({"a": ("source", 5.9), "b": ("f16", 16.1)}, "f16"),
    ],
)
def test_a_source_in_sixteen_or_thirty_two_bits_is_the_base(bits, base):
    """Its name does not tell, the size of its weights does."""
    run = formats(made({"a": steady(0.01), "b": steady(0.02)}), bits)
    notes = table_of(run).notes
    assert any(each.startswith("The base is ") and each.endswith(f": {base}.") for each in notes)


def test_without_anything_whole_the_largest_is_the_base_and_said_to_be():
    """No reference, nothing in 16 or 32 bits: by hand exp(0.2 - 0.1) of the one in 8 bits."""
    bits = {"a": ("q4", 4.5), "b": ("q8", 8.5)}
    run = made({"a": steady(0.2), "b": steady(0.1)}, None, quality={"metrics": ["perplexity"]})
    found = table_of(formats(run, bits))
    assert any("the one with the most bits per weight" in note for note in found.notes)
    row = dict(zip(keys(found.table), found.table.rows[1].values, strict=True))
    assert row["perplexity_change"].text == "+10.52"
    with_reference = table_of(formats(made({"a": steady(0.2), "b": steady(0.1)}), bits))
    assert "relative_speed" not in keys(with_reference.table)


def test_formats_stand_by_size_and_tell_agreement_and_memory():
    """The largest first, in whatever order they ran."""
    windows = {"s": steady(0.2), "l": steady(0.0), "m": steady(0.1)}
    run = formats(made(windows), {"s": ("q4", 4), "l": ("f16", 16), "m": ("q8", 8)})
    memory = {"s": 1e9, "l": 3e9, "m": 2e9}
    rated = {
        name: {"decode_rate": [10.0] * 5, "peak_rss_bytes": [memory[name]] * 5} for name in memory
    }
    _, trials = handmade(rated)
    run = replace(run, trials=(*trials, *(each for each in run.trials if each.kind == "quality")))
    found = table_of(run)
    assert [row.variant.rsplit(" ", 1)[1] for row in found.table.rows] == ["f16", "q8", "q4"]
    assert keys(found.table)[4:8] == [
        "kl_divergence",
        "top1_agreement",
        "relative_speed",
        "peak_rss_bytes",
    ]
    small = dict(zip(keys(found.table), found.table.rows[2].values, strict=True))
    assert small["kl_divergence"].text == "0.200"
    assert small["peak_rss_bytes"].sort == 1e9
    page = render_html(run).partition('<section id="quantization"')[2].partition("</section>")[0]
    text = render_markdown(run).partition("## Quantisation")[2].partition("\n## ")[0]
    for section in (page, text):
        assert 0 < section.index("f16") < section.index("q8") < section.index("q4")
    shown_there = screen(formats_table(found))
    assert shown_there.index(": f16") < shown_there.index(": q8") < shown_there.index(": q4")
    assert max(map(len, shown_there.splitlines())) <= 80


def test_nobody_has_a_column_of_dashes():
    """No speed where nothing was generated, no agreement where nobody tells it; no notes either."""
    windows = {"a": without_tops(steady(0.1)), "b": without_tops(steady(0.0))}
    run = formats(made(windows, speed=False), {"a": ("q4", 4), "b": ("f16", 16)})
    data = build_report_data(run)
    (view,) = quality_views(data)
    assert keys(view.table) == ["perplexity", "perplexity_ratio", "bits_per_byte"]
    assert view.table.footnotes == ()
    found = quantization_table(data)
    assert keys(found.table) == [
        "model_bytes",
        "bits_per_weight",
        "perplexity",
        "perplexity_change",
    ]
    assert found.table.footnotes == ()
    text = screen(quality_table(data), formats_table(found))
    assert "–" not in text
    for word in ("speed", "bandwidth", "top-1"):
        assert word not in text
        assert word not in " ".join(found.notes)


def test_where_nothing_was_rated_one_column_says_why():
    """All failed: the perplexity's dash keeps its reason."""
    (view,) = quality_views(build_report_data(made({"a": None, "b": None})))
    assert keys(view.table) == ["perplexity"]
    assert len(view.table.footnotes) == 1


@pytest.mark.parametrize(
    ("ratio", "ends", "text"),
    [
        (1.0000329, None, "0.00"),
        (1 - 1.7e-8, None, "0.00"),
        (0.9953, None, "-0.47"),
        (1.6308, None, "+63.08"),
        (13.5, None, "+1250"),
        (1.0042, (1.0031, 1.0054), "+0.4 [+0.3, +0.5]"),
        (1.0000042, (1.0000031, 1.0000054), "+0.0004 [+0.0003, +0.0005]"),
        (1 - 1.7e-8, (1 - 1.9e-8, 1 - 1.5e-8), "0.00"),
    ],
)
def test_a_change_has_no_digits_that_mean_nothing(ratio, ends, text):
    """Two decimals without an interval; with one, as many as that carries."""
    low, high = ends or (None, None)
    summary = Summary(median=ratio, ci_low=low, ci_high=high, n=8, unit="1", source="derived")
    assert str(shown(summary, CHANGE)) == text


def test_what_all_rows_say_is_said_once_below():
    """The engine of both, and no interval anywhere; different versions stay in their rows."""
    windows = {"a": steady(0.1)[:3], "b": steady(0.0)[:3]}
    run = with_engine(made(windows, EXACT[:3]), "7", "7")
    data = build_report_data(run)
    (view,) = quality_views(data)
    assert view.table.everywhere == ("Machine 7",)
    assert screen(quality_table(data)).count("Machine 7") == 1
    part = render_markdown(run).split("## Quality")[1].split("## Options")[0]
    assert part.count("Machine 7") == 1
    assert part.count("an interval needs 6 windows") == 1
    (view,) = quality_views(build_report_data(with_engine(run, "7", "8")))
    assert view.table.everywhere == ()
    assert [row.engine for row in view.table.rows] == ["Machine 7", "Machine 8"]


def test_without_a_test_there_is_no_table_of_differences():
    """One sentence says why; where one was made, the better one has its name in the verdict."""
    few = made({"a": steady(0.1)[:3], "b": steady(0.0)[:3]}, EXACT[:3])
    many = made({"a": steady(0.1), "b": steady(0.0)})
    for render in (render_html, render_markdown):
        assert "ext is higher by" not in render(few)
        assert render(few).count("1 comparison needs at least 6 windows") == 1
        assert "ext is higher by" in render(many)
        assert "b is better" in render(many)


def test_the_caption_of_the_formats_has_two_lines_at_most():
    """In the terminal; the long form stands in the other reports."""
    run = formats(made({"a": steady(0.1), "b": steady(0.0)}), {"a": ("int4", 4), "b": ("F16", 16)})
    found = table_of(run)
    caption = screen(formats_table(found)).split("Base: ")[1].strip().splitlines()
    assert len(caption) <= 2
    assert found.short.endswith("PPL on text, speed on w.")
    assert "much narrower" in render_markdown(run)


def record_of(**changes):
    workload, _ = by_windows({}, EXACT)
    return workload.quality.model_copy(update=changes)


def test_tokens_and_start_in_words():
    """Who made the ids, and that no start token is added by the one that adds none."""
    own = record_of(bos_id=None, tokenizer="the model's own files")
    (sentence,) = [each for each in protocol_text(own, finished=True) if "Protocol" in each]
    assert sentence.endswith(
        " No start token, as the model's tokenizer adds none; tokenized by the model's own "
        "tokenizer."
    )
    asked = record_of(bos_id=None, bos="never", tokenizer="mnn")
    (sentence,) = [each for each in protocol_text(asked, finished=True) if "Protocol" in each]
    assert sentence.endswith(" No start token, as the scenario asks; tokenized by mnn.")


def test_a_file_has_its_name_beside_the_variable():
    """The scenario names the variable; the record tells the file."""
    record = record_of(text="path:${TEXT}", text_origin="wiki.test.raw")
    assert short_protocol_text(record).startswith("path:${TEXT} (wiki.test.raw), sha256 ")
    assert protocol_text(record, finished=True)[0].startswith(
        "The text is path:${TEXT} (wiki.test.raw): "
    )
    bare = record_of(text="path:${TEXT}", text_origin="")
    assert short_protocol_text(bare).startswith("path:${TEXT}, sha256 ")
