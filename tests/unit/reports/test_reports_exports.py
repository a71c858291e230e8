"""A report as CSV, JSON and LaTeX, and which files are written where."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt

from edgebench.harness.errors import OutputError, ResultError, UsageError
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Trial
from edgebench.reports.combine import combine
from edgebench.reports.data import build_report_data
from edgebench.reports.export_csv import COLUMNS, render_csv, safe
from edgebench.reports.export_json import render_json
from edgebench.reports.export_latex import MOST_LINES, latex, latex_table, render_latex
from edgebench.reports.format import Scale
from edgebench.reports.languages import language
from edgebench.reports.markdown import render_text
from edgebench.reports.markdown_text import table_blocks
from edgebench.reports.table_model import Column, Row, Table, TableTexts, Value
from edgebench.reports.write import FORMATS, checked_formats, file_name, write_reports

EVIL = "=cmd|' /C calc'!A0\n\\input{/etc/passwd} 50% & _x^2 ~ #1 {$y$} \"q\" <b>*a*</b> `c` |"


@pytest.fixture(scope="module")
def two(sample_run):
    """Two runs of one day's apart, whose figures are known by heart."""
    runs = []
    for number, rates in enumerate(([10.0, 30.0, 20.0], [5.0, 7.0, 6.0]), 1):
        record, trials = sample_run.handmade(
            {"A": {"decode_rate": rates, "ttft_s": [0.25, None, None]}},
            id=f"run-{number}",
            created_at=f"2025-01-0{number}T10:15:00Z",
        )
        runs.append(build_report_data(Run(Path(f"/runs/{number}"), record, tuple(trials))))
    return combine(runs)


@pytest.fixture
def failed(sample_run):
    """A run whose only variant failed, under a name that tries to break out."""
    record, _ = sample_run.handmade({EVIL: {"decode_rate": [1.0]}}, scenario_name=EVIL)
    trial = Trial(
        kind="generate",
        variant=EVIL,
        workload="w",
        block=0,
        repetition=0,
        phase="measured",
        status="failed",
        started_at="2025-01-14T10:16:00Z",
        duration_s=1.0,
        failure=Failure(kind="crash", message=f"{EVIL} \ud800"),
    )
    return build_report_data(Run(Path("made-up"), record, (trial,)))


def frame(data):
    return pd.read_csv(io.StringIO(render_csv(data)), keep_default_na=False, na_values=[""])


def test_csv_read_by_pandas_holds_the_medians(two):
    """20 is the median of 10, 30 and 20, and 6 that of 5, 7 and 6; each run's rows name it."""
    table = frame(two)
    assert tuple(table.columns) == COLUMNS
    rates = table[table["metric"] == "decode_rate"].set_index("variant")
    assert rates["median"].to_dict() == {"A @ 2025-01-01": 20.0, "A @ 2025-01-02": 6.0}
    assert rates["min"].to_list() == [10.0, 5.0]
    assert rates["max"].to_list() == [30.0, 7.0]
    assert rates["n"].to_list() == [3, 3]
    assert rates["run"].to_list() == ["run-1", "run-2"]
    assert set(rates["machine"]) == {"AMD EPYC 9B14"}
    assert set(rates["unit"]) == {"token/s"}
    assert set(rates["source"]) == {"observed"}
    assert rates["flags"].str.contains("few_repetitions").all()


def test_csv_has_every_metric_of_every_cell_once(data):
    """As many rows as the cells have metrics, counting those of the files; none is left out."""
    table = frame(data)
    wanted = {
        (variant, workload, key)
        for (workload, variant), cell in data.cells.items()
        for key in {*cell.metrics, *(data.by_variant[variant] if cell.metrics else ())}
    }
    found = table.dropna(subset=["metric"])
    keys = list(zip(found["variant"], found["workload"], found["metric"], strict=True))
    assert wanted <= set(keys)
    assert len(keys) == len(set(keys))


def test_csv_of_a_failure_says_why(failed):
    """A cell without any figure is a row whose reason is the failure's message."""
    rows = list(csv.DictReader(io.StringIO(render_csv(failed))))
    (row,) = [each for each in rows if not each["metric"]]
    assert row["status"] == "failed"
    assert row["reason"].startswith("'=cmd")
    assert row["median"] == ""


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1"])
def test_no_text_of_a_csv_is_a_formula(text):
    """What a spreadsheet would run begins with an apostrophe, also behind white space."""
    assert safe(text).startswith("'")


def test_numbers_of_a_csv_are_numbers(by_hand):
    """A negative figure is no formula."""
    data = by_hand({"A": {"x": [-3.5] * 5}}, units={"x": "1"})
    (row,) = [
        each for each in csv.DictReader(io.StringIO(render_csv(data))) if each["metric"] == "x"
    ]
    assert row["median"] == "-3.5"


def test_json_holds_tables_cells_runs_and_the_choice(two):
    """Every value of a table has its figure, its interval, its count, its source, its reason."""
    found = json.loads(render_json(two))
    assert found["schema_version"] == 1
    assert [each["id"] for each in found["runs"]] == ["run-1", "run-2"]
    assert [each["variants"] for each in found["runs"]] == [["A @ 2025-01-01"], ["A @ 2025-01-02"]]
    assert len(found["machines"]) == 1
    assert len(found["opening"]) == 3
    assert found["banners"][0]["title"] == "This report combines 2 runs of one machine."
    (table,) = [each for each in found["tables"] if each["section"] == "comparison"]
    place = [each["key"] for each in table["columns"]].index("decode_rate")
    value = table["rows"][0]["values"][place]
    assert (value["value"], value["unit"], value["n"]) == (20.0, "token/s", 3)
    assert value["source"] == "observed"
    assert value["origin"] == "measured"
    assert value["cell"] == {"workload": "w", "variant": "A @ 2025-01-01", "metric": "decode_rate"}
    place = [each["key"] for each in table["columns"]].index("prefill_rate")
    missing = table["rows"][0]["values"][place]
    assert missing["value"] is None
    assert missing["reason"]
    cells = {each["variant"]: each for each in found["cells"]}
    assert cells["A @ 2025-01-02"]["metrics"]["decode_rate"]["median"] == 6.0
    assert "recommendation" in found["selection"]


def test_json_never_holds_what_is_no_json(failed, by_hand):
    """Neither NaN nor infinity nor half a character, whatever the figures and the texts."""
    data = by_hand({"A": {"decode_rate": [1.0] * 5}})
    summary = data.cells["w", "A"].metrics["decode_rate"]
    object.__setattr__(summary, "cv", float("inf"))

    def refuse(name):
        raise AssertionError(name)

    found = json.loads(render_json(data), parse_constant=refuse)
    assert found["cells"][0]["metrics"]["decode_rate"]["cv"] is None
    json.loads(render_json(failed).encode(), parse_constant=refuse)


def balanced(text):
    """Whether every brace and every environment closes; an escaped brace is none."""
    open_ones = []
    for command, name, brace in re.findall(
        r"\\(begin|end)\{(\w+)\}|\\.|([{}])", re.sub(r"(?<!\\)%[^\n]*", "", text)
    ):
        if command == "begin":
            open_ones.append(name)
        elif command == "end":
            assert open_ones.pop() == name
        elif brace == "{":
            open_ones.append(brace)
        elif brace == "}":
            assert open_ones.pop() == "{"
    return not open_ones


def unescaped(text):
    """Characters that would mean something to LaTeX."""
    bare = re.sub(
        r"\\(?:[{}$&%#_]|text\w+\{\}|symbol\{34\}|ensuremath\{[^}]*\}|ldots\{\})", "", text
    )
    return set(bare) & set("\\{}$&%#_^~")


def test_latex_of_the_sample_is_whole(data):
    """Every table has a caption and a label of its own; rows are as long as heads."""
    text = render_latex(data)
    assert balanced(text)
    labels = re.findall(r"\\label\{(tab:[\w-]+)\}", text)
    assert len(labels) == len(set(labels)) == text.count(r"\caption{")
    bodies = re.findall(
        r"\\begin\{(?:tabular|longtable)\}\{[^\n]*\}\n(.*?)\\end\{(?:tabular\}\}|longtable)",
        text,
        re.DOTALL,
    )
    assert bodies
    for body in bodies:
        inner = re.sub(r"\\begin\{tabular\}\[[tb]\].*?\\end\{tabular\}", "", body)
        lines = [
            each for each in inner.splitlines() if each.endswith(r"\\") and "caption" not in each
        ]
        assert len({len(re.findall(r"(?<!\\)&", line)) for line in lines}) == 1


def test_no_text_is_latex(failed):
    """Whatever a name or a message holds is shown, and does nothing."""
    assert not unescaped(latex(EVIL))
    text = render_latex(failed)
    assert balanced(text)
    assert r"\input" not in text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a_b", r"a\_b"),
        # Known to every encoding of fonts.
        ('"', r"\symbol{34}"),
        ("50 %", r"50 \%"),
        ("--flag", r"-{}-flag"),
        ("-3.2", r"\ensuremath{-}3.2"),
        ("1–2", "1--2"),
        ("\\", r"\textbackslash{}"),
        ("12\N{NARROW NO-BREAK SPACE}000", r"12\,000"),
    ],
)
def test_latex_shows_the_text_itself(text, written):
    """Specials are escaped, and dashes are the dashes that they were."""
    assert latex(text) == written


def table(rows=1, **changes):
    """A table of one column of figures."""
    value = Value(
        "12", "[11, 13]", 12.0, best=True, chip="engine", stars=4, footnote=1, reason="why"
    )
    return Table(
        key="t-0",
        workload="title",
        columns=(Column("x", "Ex", "x", Scale("ms"), "lower"),),
        rows=tuple(
            Row(f"row_{number}", "", number, 3, ("noisy",), failed=False, values=(value,))
            for number in range(rows)
        ),
        footnotes=("why_not",),
        remarks=(("noisy", "it varied"),),
        texts=TableTexts(),
        **changes,
    )


def test_every_form_says_what_a_value_is():
    """Median, interval, source, stars, note and remark stand in Markdown and in LaTeX."""
    (shown, below, notes) = table_blocks(table(), names={"row_0"})
    assert (
        shown.splitlines()[2] == r"| `row_0` | ★★★★☆ **12** \[11, 13\] *engine* (1) | 3 | noisy |"
    )
    assert "noisy: it varied." in below
    assert notes == "1. why_not"
    text = latex_table(table(), "Section")
    assert r"\textbf{12}\textsuperscript{1}" in text
    assert r"\scriptsize [11, 13] engine" in text
    assert r"\textsuperscript{1} why\_not" in text
    assert r"\caption{Section: title (median, with its 95 \% interval)}" in text


def test_a_long_table_breaks_across_pages():
    """One that fits no page is no float."""
    # A row takes two lines, for its interval.
    assert r"\begin{longtable}" in latex_table(table(MOST_LINES // 2 + 1), "S")
    assert r"\begin{longtable}" not in latex_table(table(MOST_LINES // 2 - 4), "S")


def wide(columns, rows=2, text="123.4"):
    """A table of many columns whose values differ from row to row."""
    return Table(
        key="wide",
        workload="title",
        columns=tuple(
            Column(f"c{number}", f"C{number}", f"head{number}", Scale("ms"), "lower")
            for number in range(columns)
        ),
        rows=tuple(
            Row(f"row {row}", "engine 1", row, 3, (), failed=False,
                values=tuple(Value(f"{text}{row}", "[100, 150]") for _ in range(columns)))
            for row in range(rows)
        ),
        footnotes=(),
        remarks=(),
        texts=TableTexts(),
    )  # fmt: skip


def test_a_wide_table_is_turned_and_then_split_but_never_set_too_small():
    """Each part has the names of the rows, a caption and a label of its own; no column is lost."""
    assert r"\begin{landscape}" not in latex_table(wide(4), "S")
    turned = latex_table(wide(11), "S")
    assert turned.count(r"\begin{landscape}") == 1
    split = latex_table(wide(40), "S")
    parts = split.count(r"\begin{landscape}")
    assert parts > 1
    assert balanced(split)
    assert split.count("row 0") == parts
    assert re.findall(r"\\label\{(.*?)\}", split) == [
        "tab:wide",
        *(f"tab:wide-{number}" for number in range(2, parts + 1)),
    ]
    assert f"(1/{parts})" in split
    # Once at the head of the first page, and once at that of those that follow.
    assert [split.count(f"head{number},") for number in range(40)] == [2] * 40
    for text in (turned, split):
        sizes = set(re.findall(r"\\(tiny|scriptsize|footnotesize|small)\\setlength", text))
        assert sizes <= {"small", "footnotesize"}


def test_what_all_rows_say_is_a_note_and_no_column():
    """Also the number of repetitions, the engine, and a dash with its reason, once."""
    made = wide(3)
    same = Value("–", footnote=1, reason="no meter")
    rows = tuple(replace(row, values=(*row.values[:1], same, *row.values[2:])) for row in made.rows)
    text = latex_table(replace(made, rows=rows, footnotes=("no meter",)), "S")
    assert r"The same in all rows: engine 1; head1, ms: -- (no meter); n: 3." in text
    assert text.count("no meter") == 1
    assert text.count("engine 1") == 1
    assert "head1, ms" not in text.partition(r"\bottomrule")[0]
    # One row alone has nothing to share.
    assert "The same" not in latex_table(wide(3, rows=1), "S")


def test_footnotes_are_counted_anew_where_some_are_no_longer_called():
    """The number in a cell is that below the table."""
    made = wide(2)
    one, two = Value("–", footnote=1, reason="first"), Value("–", footnote=2, reason="second")
    rows = (
        replace(made.rows[0], values=(one, two)),
        replace(made.rows[1], values=(one, Value("7"))),
    )
    text = latex_table(replace(made, rows=rows, footnotes=("first", "second")), "S")
    assert r"--\textsuperscript{1}" in text
    assert r"\textsuperscript{1} second" in text
    assert r"\textsuperscript{2}" not in text


def test_a_name_that_has_no_end_does_not_run_into_the_next_column():
    """It may break anywhere, without a hyphen that is not its own."""
    made = wide(2)
    rows = (replace(made.rows[0], variant="x" * 90), *made.rows[1:])
    text = latex_table(replace(made, rows=rows), "S")
    assert max(map(len, re.findall("x+", text))) <= 20
    assert text.count("x") - text.count("x]") >= 90


def test_markdown_of_several_runs_is_whole(two):
    """Runs are listed, each can be made again, and every row is as long as its head."""
    text = render_text(two)
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    assert "|" not in re.sub(r"<code.*?</code>|<pre>.*?</pre>", "", rendered, flags=re.DOTALL)
    assert "## Runs" in text
    assert text.index("This report combines 2 runs") < text.index("## ")
    assert text.count("```mermaid\nflowchart") >= 1


def test_a_name_in_markdown_is_text(failed):
    """Names and messages from outside make no element and no image."""
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(render_text(failed))
    assert "<b>" not in rendered
    assert "<em>a</em>" not in rendered


def test_every_format_is_written_where_asked(run_folder, tmp_path):
    """All forms but the page, which other tests write, in one folder; the name has the language."""
    out = tmp_path / "new" / "out"
    formats = [each for each in FORMATS if each != "html"]
    paths = write_reports(run_folder, out=out, formats=formats, language="zh")
    assert [each.name for each in paths] == [
        "report.zh.md",
        "report.zh.csv",
        "report.zh.json",
        "report.zh.tex",
    ]
    assert sorted(paths) == sorted(out.iterdir())
    assert json.loads(paths[2].read_text(encoding="utf-8"))["language"] == "zh"


def test_both_languages_lie_side_by_side():
    """A report in English has no tag in its name."""
    assert file_name("html") == "report.html"
    assert file_name("html", "zh") == "report.zh.html"
    assert file_name("latex") == "report.tex"


def test_an_unknown_format_lists_the_known_ones(run_folder):
    """Nothing is written, and the message says what there is."""
    with pytest.raises(UsageError, match="'pdf'") as caught:
        write_reports(run_folder, formats=("md", "pdf"))
    assert "md, html, csv, json, latex" in str(caught.value)
    with pytest.raises(UsageError):
        checked_formats(())
    assert checked_formats(("md", "md")) == ("md",)


def test_what_can_not_be_read_writes_nothing(run_folder, tmp_path):
    """A folder that holds no run leaves no report of the other."""
    with pytest.raises(ResultError):
        write_reports(run_folder, tmp_path / "none", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_can_not_be_made_is_named(run_folder, tmp_path):
    """The message names it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="file"):
        write_reports(run_folder, out=tmp_path / "file", formats=("csv",))


def test_csv_is_the_same_in_every_language(data):
    """What scripts read does not depend on who reads the report."""
    english = render_csv(data)
    with language("zh"):
        assert render_csv(data) == english
