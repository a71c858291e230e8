"""The finished forms of a report: HTML, Markdown and the terminal's table."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from edgebench.harness.errors import OutputError
from edgebench.harness.results.run import read_run
from edgebench.reports import page_sections
from edgebench.reports.html import render_html, render_page
from edgebench.reports.languages import language
from edgebench.reports.markdown import render_markdown, render_text
from edgebench.reports.terminal import comparison_table
from edgebench.reports.write import write_reports

VOID = {"meta", "link", "br", "img", "input", "hr"}
EVIL = '"><img src=x onerror=alert(1)><script>alert(2)</script>|`\x1b[31m\u202e$\\frac{'


class Page(HTMLParser):
    """Elements of a page, with what stands inside the style, the script and the data for it."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.raw = {}
        self.reading = ""
        self.open = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag in {"style", "script"}:
            self.reading = dict(attrs).get("id", tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in {"style", "script"}:
            self.raw[self.reading] = self.raw.get(self.reading, "") + data

    def of(self, *tags):
        return [attrs for tag, attrs in self.elements if tag in tags]


@pytest.fixture(scope="module")
def text(data):
    return render_page(data)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture
def hostile(sample_run, by_hand):
    """A run in which every text from outside tries to break out."""
    values = {
        f"A{EVIL}": {"decode_rate": [50.0, 51.0, 52.0, 53.0, 54.0], "ttft_s": [None] * 5},
        f"B{EVIL}": {"decode_rate": [40.0, 41.0, 42.0, 43.0, 44.0], "ttft_s": [0.1] * 5},
    }
    data = by_hand(
        values,
        options={f"A{EVIL}": {EVIL: EVIL}, f"B{EVIL}": {EVIL: "other"}},
        scenario_name=EVIL,
        command=["edgebench", EVIL],
        notes=[EVIL],
        scenario={"description": EVIL, "model": {"name": EVIL, "source": EVIL}},
        runners={EVIL: {"build": EVIL}},
    )
    crash = sample_run._crashed(f"A{EVIL}", "w")
    failure = crash.failure.model_copy(update={"message": EVIL, "log_tail": EVIL, "log": EVIL})
    workload = data.record.workloads[0].model_copy(
        update={"description": EVIL, "prompt_text": f"{EVIL}\n</pre></details>"}
    )
    machine = data.record.machine.model_copy(update={"cpu_model": EVIL, "system": EVIL})
    record = data.record.model_copy(update={"workloads": [workload], "machine": machine})
    trials = (*data.run.trials, crash.model_copy(update={"failure": failure}))
    return type(data.run)(data.run.path, record, trials)


def test_elements_are_closed(page):
    """Every element that is opened is closed, in order."""
    assert page.open == []


def test_nothing_is_loaded_from_anywhere(text, page):
    """The page names no other address, and its policy forbids all of them."""
    assert {attrs["href"] for attrs in page.of("link")} == {"data:,"}
    assert not page.of("img", "iframe", "object", "embed", "form", "base")
    assert set(re.findall(r"https?://[^\s\"'<]*", text)) <= {"http://www.w3.org/2000/svg"}
    places = {attrs["href"] for attrs in page.of("a", "use") if attrs["href"][0] != "#"}
    assert places == {"logs/llama.cpp-F16-threads-2.log"}
    assert "url(" not in page.raw["style"]
    assert "@import" not in page.raw["style"]


def test_the_policy_allows_exactly_our_style_and_script(page):
    """The hashes in the policy are those of what stands in the page."""
    (policy,) = (m["content"] for m in page.of("meta") if m.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(page.raw[tag].encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_no_element_has_a_style_or_a_handler_of_its_own(page):
    """Inline styles and handlers would need a weaker policy."""
    for tag, attrs in page.elements:
        assert "style" not in attrs, tag
        assert not [name for name in attrs if name.startswith("on")], tag


def test_headings_descend_one_level_at_a_time(page):
    """A screen reader's list of headings has no holes."""
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_ids_are_unique_and_references_have_targets(page):
    """Several pictures share the page without sharing names."""
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.elements:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(attrs.get(name, "").split()) <= set(ids)
        for name in ("href", "clip-path"):
            for target in re.findall(r"#([\w.-]+)", attrs.get(name, "")):
                assert target in ids


def test_tables_and_pictures_speak(page):
    """Heads have a scope, tables a caption, pictures a title and a description."""
    assert all(attrs.get("scope") in {"col", "row"} for attrs in page.of("th"))
    assert len(page.of("caption")) == len(page.of("table"))
    pictures = [attrs for attrs in page.of("svg") if attrs.get("role") == "img"]
    assert len(page.of("title")) == len(pictures) + 1
    assert len(page.of("desc")) == len(pictures)
    assert page.of("html")[0]["lang"] == "en"


def test_pictures_follow_the_pages_colours(text):
    """No picture keeps a colour of its own, so that light and dark both work."""
    pictures = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    drawn = [ET.fromstring(each) for each in pictures if 'role="img"' in each]
    colours = {
        element.get(name)
        for root in drawn
        for element in root.iter()
        for name in ("fill", "stroke")
    }
    assert {colour for colour in colours if colour and colour.startswith("#")} == set()
    assert "var(--ink)" in colours
    assert "var(--s1)" in colours


def test_every_colour_is_defined(text, page):
    """Each variable that a picture or the style names has a value in light, dark and print."""
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    roots = re.findall(r":root \{(.*?)\}", page.raw["style"], re.DOTALL)
    assert len(roots) == 3
    for root in roots:
        assert used <= set(re.findall(r"(--[\w-]+):", root))


@pytest.mark.parametrize("scheme", [0, 1, 2])
@pytest.mark.parametrize(
    ("front", "back"),
    [
        *((name, back) for name in ("ink", "muted", "accent") for back in ("surface", "raised")),
        ("warn", "warn-tint"),
        ("bad", "bad-tint"),
        ("good", "good-tint"),
        ("good", "raised"),
        ("warn", "raised"),
        ("bad", "surface"),
        ("accent", "tint"),
    ],
)
def test_text_has_enough_contrast(page, scheme, front, back):
    """WCAG 2 asks for a contrast of 4.5 between text and ground."""
    root = re.findall(r":root \{(.*?)\}", page.raw["style"], re.DOTALL)[scheme]
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", root))
    lights = sorted((luminance(colours[front]), luminance(colours[back])))
    assert (lights[1] + 0.05) / (lights[0] + 0.05) >= 4.5


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_address_of_a_figure_leads_to_its_data(page):
    """A cell that can be asked names a cell of the run; measured metrics are among its data."""
    found = json.loads(page.raw["figures-behind"])
    addresses = [attrs["data-at"] for attrs in page.of("td") if "data-at" in attrs]
    cells = {tuple(each.split(".", 2)[:2]) for each in addresses}
    assert {".".join(each) for each in cells} == set(found["cells"])
    at = [key for key, _ in found["metrics"]].index("decode_rate")
    assert str(at) in found["cells"]["0.0"]["m"]
    assert "0.0.decode_rate" in addresses


def test_the_page_is_in_the_language_that_is_asked_for(data):
    """Heads, notes, the script's words and the language of the document change together."""
    with language("zh"):
        page = Page(render_page(data))
    assert page.of("html")[0]["lang"] == "zh"
    assert page.open == []
    assert json.loads(page.raw["messages"])["copy"] == "复制"


def test_pictures_come_before_the_tables_of_variants(page):
    """Look first, read second: what won, the recommendation, the frameworks, then the pictures."""
    order = [attrs["id"] for attrs in page.of("section")]
    assert order[:5] == ["short", "recommendation", "frameworks", "pictures", "comparison"]


def test_a_report_elsewhere_says_where_its_run_is(sample_run, tmp_path):
    """Links to logs and the names of files lead from the report's folder to the run's."""
    folder = sample_run.sample(blocks=1).write(tmp_path / "runs" / "one")
    (path,) = write_reports(folder, out=tmp_path / "out", formats=("html",))
    text = path.read_text(encoding="utf-8")
    assert 'href="../runs/one/logs/llama.cpp-F16-threads-2.log"' in text
    assert "In <code>../runs/one</code>: <code>run.json</code>" in text
    assert "Beside this file" not in text
    (own,) = write_reports(folder, formats=("html",))
    beside = own.read_text(encoding="utf-8")
    assert "Beside this file: <code>run.json</code>" in beside
    assert 'href="logs/llama.cpp-F16-threads-2.log"' in beside


def test_no_limit_is_met_where_none_was_given(by_hand):
    """Praise for meeting limits stands only where the scenario has some."""
    values = {"A": {"decode_rate": [50.0] * 5}}
    assert "meets all limits" not in render_page(by_hand(values))
    asked = {"requirements": {"min_decode_rate": 20}}
    assert "meets all limits" in render_page(by_hand(values, scenario=asked))


def test_what_a_document_says_has_one_colour(page, text):
    """The legend below a table has the chip that its rows have."""
    chips = {
        (said, kind)
        for kind, said in re.findall(r'<span class="chip([^"]*)">([^<]*)</span>', text)
        if said.startswith("published")
    }
    assert chips
    assert {kind for _, kind in chips} == {" plain"}


def test_punctuation_is_that_of_the_language(data):
    """A unit behind a label, a log in brackets and joined reasons have Chinese marks."""
    with language("zh"):
        page = Page(render_page(data))
    labels = {attrs["data-label"] for attrs in page.of("td") if "data-label" in attrs}
    assert not [each for each in labels if ", " in each]
    assert any("，" in each for each in labels)
    messages = json.loads(page.raw["messages"])
    assert (messages["semicolon"], messages["colon"]) == ("；", "：")
    assert messages["in_brackets"] == "（{text}）"


def test_too_many_figures_are_not_written_out(by_hand, monkeypatch):
    """Where the plain tables of all figures would be too long, the page says where they are."""
    data = by_hand({name: {"decode_rate": [50.0] * 5} for name in "AB"})
    assert 'class="dense"' in render_page(data)
    monkeypatch.setattr(page_sections, "MOST_FIGURES", 1)
    text = render_page(data)
    assert "2 figures are too many for a page" in text
    assert 'class="dense"' not in text


def test_the_same_run_gives_the_same_page(data, text):
    """A rebuilt report differs only where the run differs."""
    assert render_page(data) == text


def test_reading_whole_or_reduced_gives_the_same_page(run_folder, text):
    """The lean way to read a large run loses nothing that is shown."""
    assert render_html(read_run(run_folder)) == text


def test_all_that_a_reader_needs_is_there(text):
    """Answer, table, failure, machine, method, hashes and the way to run it again."""
    for needle in (
        "can't tell them apart",
        "crashed with SIGABRT",
        "GGML_ASSERT(buffer) failed",
        "AMD EPYC 9B14",
        "percentile bootstrap over blocks",
        "Best by decode rate",
        hashlib.sha256(b"scenario").hexdigest(),
        "edgebench run smollm2-135m --out &#39;my results&#39;",
        "Why is the sky blue?",
    ):
        assert needle in text or needle.replace("'", "&#39;") in text


def test_hostile_texts_stay_text_in_html(hostile):
    """Names, prompts, logs and options that hold markup are shown, not obeyed."""
    text = render_html(hostile)
    page = Page(text)
    assert page.open == []
    assert not page.of("img")
    assert [each.get("id") for each in page.of("script")] == ["messages", "figures-behind", None]
    assert "alert" not in page.raw["script"]
    assert json.loads(page.raw["figures-behind"])["variants"][0]["name"].startswith('A"><img src=x')
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert "[U+202E]" in text


def test_hostile_texts_stay_text_in_markdown(hostile):
    """The same in Markdown, as another project's renderer understands it."""
    text = render_markdown(hostile)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert not set(re.findall(r"<(script|img|a)\b", rendered))
    assert "\x1b" not in text
    assert "\u202e" not in text
    rows = re.findall(r"<tr>.*?</tr>", rendered, re.DOTALL)
    variants = [row for row in rows if "50" in row or "42" in row]
    assert variants


def test_markdown_tables_are_whole(data):
    """Every row of every table has as many cells as its head, as a renderer sees it."""
    text = render_text(data)
    rendered = MarkdownIt("commonmark").enable("table").render(text)
    tables = re.findall(r"<table>.*?</table>", rendered, re.DOTALL)
    assert len(tables) == len(re.findall(r"^\|(?: ?:?-+:? ?\|)+$", text, re.MULTILINE))
    assert len(tables) >= 7  # two comparisons, two sweeps, options, definitions, files
    assert "|" not in re.sub(r"<code>.*?</code>|<pre>.*?</pre>", "", rendered, flags=re.DOTALL)


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_table_fits(data, width):
    """At 80 columns nothing is cut off and no line is too long."""
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(comparison_table(data))
    console.file.close()
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in "".join(lines)
    assert any("[" in line and "]" in line for line in lines)


def test_the_terminal_is_not_driven_by_names(hostile):
    """Escapes and console markup in names are shown as text."""
    from edgebench.reports.data import build_report_data

    console = Console(width=200, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(comparison_table(build_report_data(hostile)))
    assert "\x1b[31m" not in captured.get()
    assert "\u202e" not in captured.get()


def test_a_run_without_trials_has_a_page(by_hand):
    """A run that was killed at once is reported as such."""
    data = by_hand({"A": {"decode_rate": []}}, status="running")
    page = Page(render_page(data))
    assert page.open == []
    assert "has not finished" in render_page(data)
    assert "has not finished" in render_text(data)


def test_a_quick_run_says_so_before_anything_else(by_hand):
    """Nobody takes a look for a measurement."""
    data = by_hand({"A": {"decode_rate": [50.0]}}, quick=True)
    text = render_page(data)
    assert text.index("A quick look, not a measurement.") < text.index('id="short"')
    markdown = render_text(data)
    assert markdown.index("A quick look, not a measurement.") < markdown.index("## In short")


def test_names_without_a_glyph_can_be_drawn(by_hand):
    """A name in a script that the drawing library's font lacks is no warning and no failure."""
    data = by_hand({"模型 एक 🚀": {"decode_rate": [50.0] * 5}, "B": {"decode_rate": [40.0] * 5}})
    assert "模型 एक 🚀" in render_page(data)


def test_reports_are_written_beside_the_run(sample_run, tmp_path):
    """Both files are made, and nothing else is left in the folder."""
    folder = sample_run.sample(blocks=1).write(tmp_path / "run")
    markdown, html = write_reports(folder)
    assert markdown == folder / "report.md"
    assert html == folder / "report.html"
    assert sorted(each.name for each in folder.iterdir()) == [
        *("report.html", "report.md", "run.json", "trials.jsonl")
    ]


def test_a_report_that_can_not_be_written_leaves_no_half(sample_run, tmp_path):
    """A failure names the file, and the temporary one is gone."""
    folder = sample_run.sample(blocks=1).write(tmp_path / "run")
    (folder / "report.html").mkdir()
    with pytest.raises(OutputError, match=r"can't be written to .*report\.html"):
        write_reports(folder)
    assert not [each for each in folder.iterdir() if each.name.startswith(".")]


def test_the_command_line_does_not_pay_for_drawing():
    """Importing what the command line imports loads neither matplotlib nor pandas."""
    program = (
        "import edgebench.reports.write, edgebench.reports.terminal, sys;"
        "print([m for m in ('matplotlib', 'pandas', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout.strip() == b"[]"
