"""Quality in reports: tables, differences and protocols, apart from everything about speed."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from rich.console import Console
from sample_quality import EXACT, made, quality_sample, rate, steady, text_workload

from edgebench.harness.results.measured import Failure
from edgebench.harness.results.quality import WindowRecord
from edgebench.reports.answer import answers
from edgebench.reports.data import build_report_data
from edgebench.reports.details import details
from edgebench.reports.differences import holm
from edgebench.reports.format import CHANGE, PERPLEXITY, SHARE, number
from edgebench.reports.html import render_html, render_page
from edgebench.reports.markdown import render_markdown, render_text
from edgebench.reports.method import definitions, method
from edgebench.reports.quality import quality_views
from edgebench.reports.quality_answer import quality_answer
from edgebench.reports.quantization import quantization_table
from edgebench.reports.sentences import plain
from edgebench.reports.sweeps import sweeps
from edgebench.reports.table import comparison_rows
from edgebench.reports.terminal import formats_table, quality_table, quality_text

FAILURE = Failure(kind="unsupported", message="It gives no likelihoods.")


def data_of(*args, **kwargs):
    return build_report_data(made(*args, **kwargs))


def texts(view, variant):
    row = next(row for row in view.table.rows if row.variant == variant)
    return {
        column.key: value.text for column, value in zip(view.table.columns, row.values, strict=True)
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    sample = quality_sample(unrated={"mediapipe fp32 threads=2": FAILURE})
    return sample.write(tmp_path_factory.mktemp("quality"))


@pytest.fixture(scope="module")
def whole(folder):
    """Fourteen variants of four frameworks; one of them could not be rated."""
    from edgebench.reports.data import load_report_data

    return load_report_data(folder)


def test_figures_are_those_of_the_windows():
    """A variant that loses ln 1.25 nat a token has 1.25 times the perplexity."""
    (view,) = quality_views(data_of({"a": steady(math.log(1.25)), "b": steady(0.0)}))
    found = texts(view, "a")
    assert found["perplexity"] == "10.00"
    assert found["perplexity_ratio"].startswith("+25")
    assert found["bits_per_byte"] == "0.8305"  # log2(10) * 10 tokens / 40 bytes
    assert found["kl_divergence"] == "0.223"
    # Ten tokens a window, of which round(10 * exp(-1.2 * sqrt(0.2231))) = 6 are the reference's.
    assert found["top1_agreement"] == "60.0"


def test_quality_stands_in_nothing_about_speed(whole):
    """Neither the comparison, the short answer nor the sweeps know of a text that is rated."""
    assert whole.workload_names == ("chat",)
    assert whole.quality_names == ("prose", "code")
    assert [table.workload for table in comparison_rows(whole)] == ["chat"]
    assert [answer.workload for answer in answers(whole)] == ["chat"]
    assert {sweep.workload for sweep in sweeps(whole)} <= {"chat"}
    keys = {column.key for table in comparison_rows(whole) for column in table.columns}
    assert not keys & {"perplexity", "kl_divergence", "scoring_rate"}


def test_each_text_has_a_table_of_its_own(whole):
    """Perplexities of two texts or protocols never share a column."""
    assert [view.workload for view in quality_views(whole)] == ["prose", "code"]
    assert all(len(view.table.rows) == 14 for view in quality_views(whole))


def test_a_variant_that_could_not_be_rated_has_dashes_and_a_reason(whole):
    """The row stays, and a note says why; the failure is listed too."""
    view = quality_views(whole)[0]
    row = next(row for row in view.table.rows if row.variant == "mediapipe fp32 threads=2")
    assert {value.text for value in row.values} == {"–"}
    assert {value.footnote for value in row.values} == {1}
    assert view.table.footnotes == ("failed: It gives no likelihoods.",)
    (failure,) = whole.failures
    assert failure.where == ("prose", "code")


def test_only_what_was_asked_for_has_a_column():
    """A scenario that wants perplexity alone gets no columns of dashes."""
    quality = {"metrics": ["perplexity"]}
    data = data_of({"a": steady(0.1), "b": steady(0.0)}, None, quality=quality)
    (view,) = quality_views(data)
    assert [column.key for column in view.table.columns] == ["perplexity"]


@pytest.mark.parametrize("render", [render_html, render_markdown])
def test_a_run_that_asks_for_no_perplexity_is_not_judged_by_it(render):
    """Top-1 agreement alone makes a table, and neither differences nor trade-offs."""
    quality = {"metrics": ["top1_agreement"]}
    run = made({"a": steady(0.1), "b": steady(0.0)}, quality=quality)
    (view,) = quality_views(build_report_data(run))
    assert [column.key for column in view.table.columns] == ["top1_agreement"]
    assert view.differences is None
    assert quality_answer(build_report_data(run), "text") == ()
    text = render(run)
    assert "reference's perplexity" not in text
    assert "Quality against cost" not in text


def test_a_reference_that_was_wanted_and_is_missing_is_a_reason():
    """What needs the reference has no column, and the protocol says why there is none."""
    quality = {"no_reference": "the text is too long"}
    (view,) = quality_views(data_of({"a": steady(0.1), "b": steady(0.0)}, None, quality=quality))
    assert "perplexity_ratio" not in texts(view, "a")
    assert view.table.footnotes == ()
    assert "There is no reference: the text is too long." in view.protocol


def test_the_best_is_marked_where_pairs_tell_it_apart():
    """Though the intervals of the perplexities overlap nearly whole."""
    uneven = [
        WindowRecord(tokens=10, bytes=40, log_likelihood=-10.0 * nat)
        for nat in (1.0, 4.0, 2.0, 3.0, 1.5, 3.5, 2.5, 2.2)
    ]
    data = data_of({"a": rate(uneven, 0.02), "b": rate(uneven, 0.01)}, uneven)
    (view,) = quality_views(data)
    a, b = (data.summary("text", name, "perplexity") for name in ("a", "b"))
    assert a.ci_low < b.median < a.median < b.ci_high
    # All eight pairs point one way: p is 2 / 2**8.
    assert view.differences.marked == {"b"}
    (row,) = view.differences.rows
    assert (row.first, row.second, row.verdict) == ("b", "a", "better")
    assert row.p == "0.0078"
    assert row.change.startswith("+1.0")
    marked = [row.variant for row in view.table.rows if row.values[0].best]
    assert marked == ["b"]


def test_what_pairs_do_not_tell_apart_shares_the_mark():
    """Two that are as good as one another are both the best; the third is not."""
    data = data_of({"a": steady(0.0101, spread=0.01), "b": steady(0.01), "c": steady(0.5)})
    (view,) = quality_views(data)
    assert view.differences.marked == {"a", "b"}
    assert [row.verdict for row in view.differences.rows] == ["alike", "better"]
    assert [plain(each) for each in view.differences.short] == ["b and a can't be told apart."]


def test_where_all_are_alike_nothing_is_marked():
    """Two equal variants lead nothing, and p is 1."""
    (view,) = quality_views(data_of({"a": steady(0.1), "b": steady(0.1)}))
    assert view.differences.marked == frozenset()
    (row,) = view.differences.rows
    assert (row.p, row.verdict, row.change) == ("1", "alike", "0.00 %")


def test_too_few_windows_mark_nothing_and_say_so():
    """Four windows give no interval and no test, and the report says that in words."""
    few = {"a": steady(0.1)[:4], "b": steady(0.0)[:4]}
    (view,) = quality_views(data_of(few, EXACT[:4]))
    assert view.differences.marked == frozenset()
    (row,) = view.differences.rows
    assert (row.p, row.interval, row.verdict) == ("–", "", "untested")
    assert "there are 4" in row.words
    assert "there are 4" in view.differences.how


def test_p_is_adjusted_as_holm_does():
    """By hand: 3 * 0.01, then 2 * 0.02, then the largest, never falling, at most 1."""
    values = {("a", "b"): 0.02, ("b", "c"): 0.9, ("a", "c"): 0.01}
    assert holm(values) == pytest.approx({("a", "c"): 0.03, ("a", "b"): 0.04, ("b", "c"): 0.9})
    falling = holm({("a", "b"): 0.03, ("b", "c"): 0.04, ("a", "c"): 0.04})
    assert falling == pytest.approx({("a", "b"): 0.09, ("b", "c"): 0.09, ("a", "c"): 0.09})
    assert holm({("a", "b"): 0.6, ("b", "c"): 0.7}) == {("a", "b"): 1.0, ("b", "c"): 1.0}


def test_other_windows_than_the_others_are_no_comparison():
    """Who rated fewer windows has no value, a reason, and stands in no difference."""
    data = data_of({"a": steady(0.1)[:5], "b": steady(0.0), "c": steady(0.2)})
    (view,) = quality_views(data)
    assert texts(view, "a")["perplexity"] == "–"
    assert any("other windows" in note for note in view.table.footnotes)
    assert [(row.first, row.second) for row in view.differences.rows] == [("b", "c")]


def test_windows_beyond_those_of_all_do_not_count():
    """One that was rated further is compared on what all rated."""
    longer = [*steady(0.1), *rate(EXACT, 5.0)]
    data = data_of({"a": longer, "b": steady(0.0)}, [*EXACT, *EXACT], quality={"windows": 8})
    (view,) = quality_views(data)
    # exp(0.1) is 1.105: the eight windows that lose 5 nat are left out.
    assert view.differences.rows[0].change.startswith("+10.5")
    assert texts(view, "a")["perplexity"] == "8.841"


def test_the_protocol_is_told_in_full(whole):
    """Text, hash, windows, start token, extent, reference and coverage."""
    prose, code = (" ".join(view.protocol) for view in quality_views(whole))
    record = whole.record.workloads[0].quality
    assert f"sha256 {record.text_sha256[:12]} " in prose
    assert "written for edgebench, CC0-1.0" in prose
    assert "windows of 512 tokens, each 256 beyond the one before" in prose
    assert "The start token 1 stands before each window" in prose
    assert "30 of 30 windows were scored. They hold 7680 scored tokens" in prose
    assert f"perplexity {record.reference.perplexity:.2f}" in prose
    assert "hold 99.2 % of the probability" in prose
    assert "12 of 32 windows were scored: the time budget cut the rest" in code


def test_one_text_by_two_protocols_is_said_not_to_compare():
    """Both tables name the other workload."""
    other = text_workload("text", 8, seed=1).model_copy(update={"name": "chunks"})
    changed = other.quality.model_copy(update={"protocol": "llama-perplexity", "stride": 512})
    other = other.model_copy(update={"quality": changed})
    views = quality_views(data_of({"a": steady(0.1), "b": steady(0.0)}, extra=[other]))
    assert any("chunks rates the same text by another protocol" in s for s in views[0].protocol)
    assert any("text rates the same text by another protocol" in s for s in views[1].protocol)
    assert any("takes each window's first place" in s for s in views[1].protocol)


@pytest.mark.parametrize(
    ("losses", "says"),
    [
        ({"big": 0.001, "small": 0.005}, "small is the smallest (10.0 B) whose perplexity"),
        ({"big": 0.001, "small": 0.05}, "big is the smallest (20.0 B) whose perplexity"),
        ({"big": 0.04, "small": 0.05}, "No variant has a perplexity within 1 % of"),
    ],
)
def test_the_short_answer_is_the_smallest_that_is_close(losses, says):
    """Within 1 % of the reference's perplexity; else it says which is the closest."""
    data = data_of({name: steady(loss) for name, loss in losses.items()})
    sizes = {"big": 20, "small": 10}
    data = replace(data, by_variant={name: _sized(sizes[name]) for name in losses})
    sentence = plain(quality_answer(data, "text"))
    assert sentence.startswith(says)
    if "No variant" in says:
        assert "Closest: big, +4.08 %" in sentence


def _sized(size):
    from edgebench.harness.results.cell import Summary

    return {"model_bytes": Summary(median=size, n=1, unit="byte", source="observed")}


def test_without_a_reference_the_short_answer_says_so():
    """It makes no claim about closeness."""
    data = data_of({"a": steady(0.1)}, None, quality={"no_reference": "the text is too long."})
    text = plain(quality_answer(data, "text"))
    assert text == "No perplexity could be compared with a reference: the text is too long."


@pytest.mark.parametrize("render", [render_page, render_text])
def test_every_report_shows_quality_apart(whole, render):
    """HTML and Markdown have the sections, after the comparison and before the pictures."""
    text = render(whole)
    for heading in ("Quality", "Quantisation", "Quality against cost"):
        assert f"## {heading}\n" in text or f">{heading}</h2>" in text
    prose = whole.summary("prose", "llama.cpp q4_0 threads=2", "perplexity").median
    assert f"{prose:.2f}" in text
    assert "can&#39;t be told apart" in text or "can't be told apart" in text


def test_the_page_is_whole_and_its_names_unique(whole):
    """Elements close, ids are unique, references lead somewhere."""

    class Ids(HTMLParser):
        def __init__(self):
            super().__init__()
            self.ids, self.targets = [], set()

        def handle_starttag(self, tag, attrs):
            attrs = dict(attrs)
            self.ids += [attrs["id"]] if "id" in attrs else []
            for name in ("aria-labelledby", "aria-describedby"):
                self.targets |= set(attrs.get(name, "").split())
            if attrs.get("href", "").startswith("#"):
                self.targets.add(attrs["href"][1:])

    page = Ids()
    page.feed(render_page(whole))
    assert len(page.ids) == len(set(page.ids))
    assert page.targets <= set(page.ids)


def test_markdown_tables_are_tables(whole):
    """No cell breaks its row, whatever stands in it."""
    html = MarkdownIt().enable("table").render(render_text(whole))
    for table in re.findall(r"<table>.*?</table>", html, re.DOTALL):
        rows = [len(re.findall(r"<t[hd]", row)) for row in table.split("<tr>")[1:]]
        assert len(set(rows)) == 1


def test_hostile_names_do_nothing():
    """Markup in the names of texts, tokenizers and variants is shown as text."""
    evil = '"><img src=x onerror=alert(1)>|`\x1b[31m'
    quality = {"text": evil, "text_origin": evil, "tokenizer": evil}
    run = made({f"a{evil}": steady(0.1), f"b{evil}": steady(0.0)}, quality=quality)
    assert "<img" not in render_html(run)
    markdown = render_markdown(run)
    assert "<img" not in MarkdownIt().enable("table").render(markdown)
    assert "\x1b" not in markdown


def test_the_terminal_shows_quality_in_eighty_columns(whole):
    """No line is longer, no figure is cut off; what can't be told apart is said."""
    screen = io.StringIO()
    console = Console(file=screen, width=80)
    console.print(quality_table(whole))
    console.print(quality_text(whole))
    console.print(formats_table(quantization_table(whole)))
    shown = screen.getvalue()
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    assert "can't be told apart" in " ".join(shown.split())
    assert "12 of 32 windows" in " ".join(shown.split())
    for name in ("dynamic_wi8_afp32", "bandwidth", "q3f16_1"):
        assert name in shown


def test_a_run_that_only_rates_has_no_empty_sections():
    """No comparison, no pictures, and a short answer that is about quality."""
    run = made({"a": steady(0.1), "b": steady(0.0)}, speed=False)
    page, markdown = render_html(run), render_markdown(run)
    assert "Comparison</h2>" not in page
    assert "## Comparison" not in markdown
    assert "whole task" not in page
    assert "8.841" in page
    assert "8.841" in markdown


def test_a_run_without_quality_says_nothing_of_it(by_hand):
    """No section, no definition, no sentence of the method."""
    data = by_hand({"a": {"decode_rate": [1.0] * 5}})
    page, text = render_page(data), render_text(data)
    for name in ("quality", "quantization", "fronts"):
        assert f'<section id="{name}"' not in page
    for title in ("## Quality", "## Quantisation"):
        assert title not in text
    assert "perplexity" not in {each.key for each in definitions(data)}
    assert "Quality" not in dict(method(data.record))


def test_method_and_details_cover_quality(whole):
    """Definitions of what the tables show stand with those compared; every figure is listed."""
    assert "Quality" in dict(method(whole.record))
    compared = {each.key for each in definitions(whole) if each.compared}
    assert {"perplexity", "kl_divergence_p99", "weight_bytes_per_token"} <= compared
    (row,) = [
        row
        for row in details(whole, "prose")
        if row.metric == "Perplexity" and row.variant == "llama.cpp f16 threads=2"
    ]
    assert row.repetitions == 30


def test_scales_for_quality():
    """A change has its sign, a share is in percent, a perplexity has four digits."""
    assert CHANGE.write(CHANGE.of(1.0123), 2) == "+1.23"
    assert CHANGE.write(CHANGE.of(0.9), 0) == "-10"
    assert CHANGE.write(-0.0001, 2) == "0.00"
    assert SHARE.of(0.975) == pytest.approx(97.5)
    assert [PERPLEXITY.decimals(each) for each in (5.47, 15.3, 1234.5)] == [3, 2, 0]
    assert number(1.23e-7, 9) == "1.2e-7"
    assert PERPLEXITY.write(1.2345e120, 0) == "1.23e+120"
