"""What a reader can do with a table: filter it, hide columns, copy it, ask what is behind it."""

from __future__ import annotations

import csv
import io
import re

import pytest
from markdown_it import MarkdownIt

pytestmark = pytest.mark.browser


def formats(page):
    """The table of formats, with its toolbar."""
    return page.locator("#quantization .table").first


def copied(page, form, block):
    """What a copy button puts on the clipboard of a browser that grants the right."""
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    block.get_by_role("button", name=re.compile(f" {form}$")).click()
    block.locator(".status", has_text=form).wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def test_a_filter_keeps_the_rows_that_hold_all_words(opened, quality_report):
    """Two of the fourteen formats are MNN's integers, and the count is announced."""
    page, seen = opened(quality_report)
    block = formats(page)
    block.get_by_role("searchbox").fill("mnn int")
    rows = block.locator("tbody tr:visible")
    assert [text.split("\n")[0] for text in rows.locator("th").all_inner_texts()] == [
        "mnn: int8",
        "mnn: int4",
    ]
    assert block.get_by_role("status").inner_text() == "2 of 14 rows"
    block.get_by_role("searchbox").fill("")
    assert rows.count() == 14
    assert seen["errors"] == []


def test_a_filtered_table_sorts_and_stays_filtered(opened, quality_report):
    """Sorting moves hidden rows along, and does not show them again."""
    page, _ = opened(quality_report)
    block = formats(page)
    block.get_by_role("searchbox").fill("llama.cpp")
    block.get_by_role("button", name="bits/weight").click()
    values = block.locator("tbody tr:visible td:nth-child(3) .value").all_inner_texts()
    numbers = [float(each) for each in values]
    assert len(numbers) == 5
    assert numbers == sorted(numbers)


def test_short_tables_have_no_filter(opened, report):
    """Five rows are found by looking; a table of one row needs no toolbar at all."""
    page, _ = opened(report)
    block = page.locator("#comparison .table").first
    assert block.get_by_role("searchbox").count() == 0
    assert block.get_by_role("button", name=re.compile("^Copy ")).count() == 3


def test_a_column_can_be_hidden_and_comes_back(opened, quality_report):
    """By keyboard too: the menu opens on Enter, its boxes toggle, Escape closes it."""
    page, _ = opened(quality_report)
    block = formats(page)
    menu = block.locator(".columns")
    menu.locator("summary").focus()
    page.keyboard.press("Enter")
    box = menu.get_by_role("checkbox", name="Bits per weight")
    box.focus()
    page.keyboard.press("Space")
    head = block.locator("thead th", has_text="bits/weight")
    assert head.is_hidden()
    assert block.locator("tbody tr").first.locator("td").nth(1).is_hidden()
    box.focus()
    page.keyboard.press("Space")
    assert head.is_visible()
    page.keyboard.press("Escape")
    assert menu.evaluate("each => each.open") is False
    assert page.evaluate("document.activeElement.textContent") == "Columns"


def test_a_hidden_column_is_hidden_on_a_phone_too(opened, quality_report):
    """Cards lose the line, and no empty one is left."""
    page, _ = opened(quality_report, width=380)
    block = formats(page)
    block.locator("summary", has_text="Columns").click()
    block.get_by_role("checkbox", name="Bits per weight").uncheck()
    assert block.locator("tbody tr").first.locator("td").nth(1).is_hidden()


def test_markdown_copies_what_is_shown(opened, quality_report):
    """Rows that were filtered out and hidden columns are left out; a renderer sees a table."""
    page, _ = opened(quality_report)
    block = formats(page)
    block.get_by_role("searchbox").fill("mnn")
    block.locator("summary", has_text="Columns").click()
    block.get_by_role("checkbox", name="Peak memory").uncheck()
    rendered = MarkdownIt("commonmark").enable("table").render(copied(page, "Markdown", block))
    rows = re.findall(r"<tr>(.*?)</tr>", rendered, re.DOTALL)
    assert len(rows) == 4
    assert "Peak memory" not in rows[0]
    assert "Bits per weight" in rows[0]
    assert "mnn: fp16" in rows[1]
    assert re.search(r"15\.3\d \[14\.1\d, 16\.6\d\]", rows[1])
    assert {row.count("</t") for row in rows} == {9}


def test_csv_copies_numbers(opened, quality_report):
    """An interval is two columns; what was not measured is empty; thousands have no gaps."""
    page, _ = opened(quality_report)
    text = copied(page, "CSV", formats(page))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 14
    (row,) = (each for each in rows if each["Format"].startswith("mnn: int4"))
    assert 14 < float(row["Perplexity, low"]) < float(row["Perplexity"])
    assert float(row["Perplexity"]) < float(row["Perplexity, high"])
    (fp32,) = (each for each in rows if each["Format"].startswith("mediapipe: fp32"))
    assert [fp32[key] for key in fp32 if key.startswith("Weights read per token")] == [""]


def test_csv_has_names_that_can_be_joined(opened, report):
    """Engine and remarks have columns of their own; a dash is empty, and its reason is told."""
    page, _ = opened(report)
    text = copied(page, "CSV", page.locator("#comparison .table").nth(1))
    rows = {row["Variant"]: row for row in csv.DictReader(io.StringIO(text))}
    assert set(rows) == {
        *("llama.cpp source threads=2", "llama.cpp F16 threads=2", "llama.cpp Q8_0 threads=2"),
        *("llama.cpp Q8_0 threads=1", "llama.cpp Q4_0 threads=2"),
    }
    failed = rows["llama.cpp F16 threads=2"]
    assert failed["Decode rate (tokens/s)"] == ""
    assert failed["Remarks"].startswith("failed")
    assert failed["Notes"].startswith("Decode rate, Time to first token, ")
    assert failed["Notes"].count("failed: ") == 1
    assert "The runner's process ended" in failed["Notes"]
    assert rows["llama.cpp Q4_0 threads=2"]["Notes"] == ""


def test_a_documents_words_are_no_part_of_a_number(opened, report):
    """In CSV the value is bare, and what it is stands in the notes."""
    page, _ = opened(report)
    text = copied(page, "CSV", page.locator("#frameworks .table").first)
    rows = list(csv.DictReader(io.StringIO(text)))
    quoted = [row for row in rows if "published" in row["Remarks"]]
    assert quoted
    assert not [
        each for row in rows for key, each in row.items() if key != "Remarks" and "publ" in each
    ]
    assert {row["Quantisation support"] for row in quoted} <= {"excellent", "good", ""}
    assert all("Quantisation support: judgement" in row["Notes"] for row in quoted)


@pytest.mark.parametrize(
    ("form", "mark"), [("Markdown", "– (1)"), ("LaTeX", "--\\textsuperscript{1}")]
)
def test_a_copy_keeps_why_something_is_missing(opened, report, form, mark):
    """The footnote stands at the dash and below the table, with what else must be known."""
    page, _ = opened(report)
    text = copied(page, form, page.locator("#comparison .table").nth(1))
    assert mark in text
    table, below = text.split("The runner's process ended", 1)
    assert mark in table
    assert "Sources: " in below
    assert "few repetitions: fewer than the 5" in below
    if form == "LaTeX":
        assert "\\end{tabular}" in table


def test_a_filter_does_not_find_what_nobody_sees(opened, quality_report):
    """Digits that only align and words for screen readers are no text of a row."""
    page, _ = opened(quality_report)
    block = page.locator("#comparison .table").first
    assert block.locator(".hidden", has_text="(best)").count() > 0
    block.get_by_role("searchbox").fill("(best)")
    assert block.get_by_role("status").inner_text() == "0 of 14 rows"
    shown = block.locator("tbody tr").count()
    assert shown == 0


def test_latex_copies_a_table(opened, quality_report):
    """Specials are escaped, braces are paired, and each row has the cells of the head."""
    page, _ = opened(quality_report)
    text = copied(page, "LaTeX", formats(page))
    assert text.count("{") == text.count("}")
    assert "\\toprule" in text
    assert "dynamic\\_wi4\\_afp32" in text
    assert not re.search(
        r"(?<!\\)[#_%$](?!\\)", text.replace("% \\usepackage", "").replace("$", "")
    )
    lines = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len(lines) == 15
    assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {9}


def test_a_browser_without_a_clipboard_can_copy(opened, quality_report):
    """A page from a file may lack the right to write; the old way needs none."""
    page, seen = opened(quality_report)
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.evaluate(
        "document.addEventListener('copy', () => { window.copied = document.activeElement.value; })"
    )
    block = formats(page)
    block.get_by_role("button", name=re.compile(" CSV$")).click()
    assert block.get_by_role("status").inner_text() == "Copied 14 rows as CSV."
    assert page.evaluate("window.copied").startswith("Format,")
    assert page.evaluate("document.activeElement.textContent") == "CSV"
    assert seen["errors"] == []


def test_a_copied_name_is_no_formula(opened, quality_report):
    """A spreadsheet is given a text, where a name begins like a formula; numbers stay numbers."""
    page, _ = opened(quality_report)
    page.evaluate(
        "document.querySelector('#quantization tbody .who').textContent = '=HYPERLINK(1)'"
    )
    text = copied(page, "CSV", formats(page))
    assert "\n'=HYPERLINK(1)" in text
    assert "'-0.03" not in text
    assert ",-0.0" in text


def test_a_name_opens_what_is_behind_it(opened, report):
    """All metrics of the variant on that workload, and each repetition of the first column's."""
    page, seen = opened(report)
    table = page.locator("#comparison table").first
    table.get_by_role("link", name="llama.cpp Q8_0 threads=2").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading", level=2).inner_text() == "llama.cpp Q8_0 threads=2"
    assert dialog.get_by_role("heading", name="Samples: Decode rate").is_visible()
    assert dialog.locator(".strip .dot").count() == 16
    dialog.locator("summary", has_text="Samples by block").click()
    assert dialog.locator(".samples tbody tr").count() == 8
    first = dialog.locator(".samples tbody td").first.inner_text().split()
    assert len(first) == 2
    assert all(60 < float(each) < 80 for each in first)
    assert seen["errors"] == []


def test_a_load_time_has_its_samples(opened, report):
    """Eight loads, in the order of the run, though no repetition loads the model."""
    page, _ = opened(report)
    page.locator("#comparison table").first.locator("tbody .drill").nth(2).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Load time", exact=True).click()
    assert dialog.get_by_role("heading", name="Loads of the model: Load time").is_visible()
    assert dialog.locator(".strip .dot").count() == 8


def test_a_perplexity_has_its_windows(opened, quality_report):
    """Thirty windows, ten to a row, in the unit of the table."""
    page, seen = opened(quality_report)
    row = page.locator("#quality table").first.locator("tbody tr").nth(3)
    row.locator("td[data-at$='top1_agreement'] .value").click()
    dialog = page.get_by_role("dialog")
    assert "30 windows" in dialog.locator(".drill-body").inner_text()
    heading = dialog.get_by_role("heading", name="Windows of the text: Top-1 agreement")
    assert heading.inner_text().endswith("%")
    assert dialog.locator(".strip .dot").count() == 30
    dialog.locator("summary", has_text="Values by window").click()
    assert dialog.locator(".samples tbody th").all_inner_texts() == ["1–10", "11–20", "21–30"]
    assert seen["errors"] == []


def test_without_script_a_name_leads_to_the_plain_tables(opened, report):
    """The link goes to the section that holds every figure as a table."""
    page, _ = opened(report, javascript=False)
    page.locator("#comparison table").first.locator("tbody .drill").first.click()
    assert page.url.endswith("#figures")
    page.locator("#figures summary").first.click()
    assert page.locator("#figures table").first.is_visible()


def test_a_value_opens_its_own_samples(opened, report):
    """A click on a cell chooses its metric; another is one click away."""
    page, _ = opened(report)
    row = page.locator("#comparison table").first.locator("tbody tr").nth(2)
    row.locator("td[data-at$='ttft_s'] .value").click()
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_role("heading", name="Samples: Time to first token").is_visible()
    dialog.get_by_role("button", name="Peak memory", exact=True).click()
    assert dialog.get_by_role("heading", name="Samples: Peak memory").is_visible()
    assert dialog.locator("[aria-pressed=true]").inner_text() == "Peak memory"


def test_what_was_not_measured_says_why_in_the_dialog(opened, report):
    """No samples, but the reason, in full."""
    page, _ = opened(report)
    page.locator("#comparison table").first.locator("tbody .drill").nth(1).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Energy per token").click()
    assert "no samples" in dialog.locator(".drill-samples h3").inner_text()
    assert "is not readable" in dialog.locator(".drill-samples .why").inner_text()


def test_the_keyboard_opens_and_closes_the_dialog(opened, report):
    """Enter opens, Tab stays inside, Escape closes, and the focus is back on the name."""
    page, _ = opened(report)
    name = page.locator("#comparison table").first.get_by_role(
        "link", name="llama.cpp Q4_0 threads=2"
    )
    name.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    assert dialog.is_visible()
    for _ in range(3):
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('dialog') !== null")
    page.keyboard.press("Escape")
    assert dialog.is_hidden()
    assert page.evaluate("document.activeElement.textContent") == "llama.cpp Q4_0 threads=2"


def test_the_dialog_can_change_the_workload(opened, report):
    """The same variant on the other prompt, without going back to the table."""
    page, _ = opened(report)
    page.locator("#comparison table").first.locator("tbody .drill").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox").select_option("pp512-tg128")
    assert dialog.get_by_role("heading", name="All metrics on pp512-tg128").is_visible()
    assert page.evaluate("document.activeElement.tagName") == "SELECT"


def test_a_failure_shows_its_log(opened, report):
    """What failed, the end of the log, and a link to the log that lies beside the report."""
    page, _ = opened(report)
    table = page.locator("#comparison table").nth(1)
    table.get_by_role("link", name="llama.cpp F16 threads=2").click()
    dialog = page.get_by_role("dialog")
    assert "crashed" in dialog.locator(".failure strong").inner_text()
    assert "GGML_ASSERT(buffer) failed" in dialog.locator("pre").inner_text()
    link = dialog.get_by_role("link")
    assert link.get_attribute("href") == "logs/llama.cpp-F16-threads-2.log"
    assert dialog.locator(".pick").count() > 0


def test_marking_text_opens_nothing(opened, report):
    """A reader who drags over a figure wants to copy it."""
    page, _ = opened(report)
    cell = page.locator("#comparison tbody td[data-at] .value").first
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 1, box["y"] + box["height"] / 2, steps=5)
    page.mouse.up()
    assert page.evaluate("getSelection().toString().length") > 0
    assert page.locator("dialog[open]").count() == 0


def test_hostile_names_stay_names_in_the_dialog(opened, hostile_report):
    """Markup in a name, a log or an option is shown as text."""
    page, seen = opened(hostile_report)
    table = page.locator("#comparison table").nth(1)
    table.locator("tbody tr.failed .drill").first.click()
    dialog = page.get_by_role("dialog")
    assert "onerror=pwned()" in dialog.get_by_role("heading", level=2).inner_text()
    assert dialog.locator("img, script").count() == 0
    assert seen["errors"] == []


def test_decimal_points_stand_in_one_line(opened, quality_report):
    """In the browser's own font: the points of a column are at the same place."""
    page, _ = opened(quality_report)
    places = formats(page).evaluate("""
        block => [...block.querySelectorAll('tbody td:nth-child(2) .value')].map(value => {
          const text = value.firstChild, at = text.data.indexOf('.');
          const range = document.createRange();
          range.setStart(text, at < 0 ? text.data.trimEnd().length - 1 : at - 1);
          range.setEnd(text, at < 0 ? text.data.trimEnd().length : at);
          return range.getBoundingClientRect().right;
        })""")
    assert len(places) == 14
    assert max(places) - min(places) < 0.5
