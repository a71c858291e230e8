"""A gate and a comparison as Markdown, as a forge renders it."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import gate_sample as made
import pytest
from markdown_it import MarkdownIt

from edgebench.reports.comparing.blocks import Block, fitted, table
from edgebench.reports.comparing.github import MOST_SUMMARY_BYTES, gate_summary
from edgebench.reports.comparing.markdown import (
    comparison_markdown,
    gate_markdown,
    gate_text,
    marker,
)


class Page(HTMLParser):
    """What a reader sees: tables as texts of their cells, and all tags and links that there are."""

    def __init__(self, markdown: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self.in_code = self.in_cell = False
        self.outside_code = ""
        rules = ["table", "strikethrough"]
        self.feed(MarkdownIt("commonmark", {"html": True}).enable(rules).render(markdown))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][-1].append("")
        elif tag == "code":
            self.in_code = True
        self.in_cell = tag in {"td", "th"} or (self.in_cell and tag in {"code", "strong"})

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in {"td", "th"}
        if tag == "code":
            self.in_code = False

    def handle_data(self, data: str) -> None:
        self.text += data
        if not self.in_code:
            self.outside_code += data
        if self.in_cell:
            self.tables[-1][-1][-1] += data


def test_the_first_line_is_the_marker_of_the_scenario() -> None:
    """A poster finds the comment of the last time, whatever came of it; other gates have others."""
    failed, passed = made.every_status(), made.gate()
    assert gate_markdown(failed).split("\n")[0] == "<!-- edgebench-gate: smollm2-135m -->"
    assert marker(failed) == marker(passed)
    assert marker(failed, key="arm") == "<!-- edgebench-gate: smollm2-135m/arm -->"


@pytest.mark.parametrize("name", ["a -->b", "a--b", "a\nb", "<!--", "日本", "a b", "a-b", "\ud800"])
def test_a_marker_stays_a_comment_whatever_the_scenario_is_called(name: str) -> None:
    """A name that would end the comment is replaced, and stays apart from others by its hash."""
    sides = {"candidate": made.side("candidate", scenario_name=name)}
    line = marker(made.gate(**sides))
    assert re.fullmatch(r"<!-- edgebench-gate: [A-Za-z0-9._/]+(-[A-Za-z0-9._/]+)* -->|"
                        r"<!-- edgebench-gate: -?[0-9a-f]{8} -->", line)  # fmt: skip
    others = {marker(made.gate(candidate=made.side("c", scenario_name=each)))
              for each in ("a b", "a-b", "a--b", "a -->b")}  # fmt: skip
    assert len(others) == 4


def test_a_failed_gate_begins_with_what_is_broken() -> None:
    """Headline, then each broken limit with its figures; then warnings, undecided, allowed."""
    page = Page(gate_markdown(made.every_status()))
    assert "edgebench gate failed: smollm2-135m" in page.text
    assert page.text.index("4 limits are broken") < page.text.index("baseline")
    broken, warned, undecided, allowed, everything = page.tables
    assert broken[0] == [
        "cell", "metric", "baseline", "candidate", "change, 95 % interval", "limit", "verdict"
    ]  # fmt: skip
    assert broken[1] == [
        "llama.cpp Q4_0 / chat", "decode", "100.0 tokens/s", "90.0 tokens/s", "-10 % [-11, -9]",
        "at most 5 % worse", "worse",
    ]  # fmt: skip
    assert broken[2][5:] == ["at least 95 tokens/s", "below"]
    assert [each[0] for each in broken[3:]] == ["mnn int4 / chat", "mnn int8 / chat"]
    assert broken[3][6] == "the cell is gone"
    assert [each[1] for each in warned[1:]] == ["peak mem"]
    assert undecided[1][2] == "-6 % [-15, +3]"
    assert undecided[1][5] == "34"
    assert allowed[1][3:] == ["2027-01-31", "the new tokenizer is slower"]
    assert len(everything) == 7
    assert everything[-1][-1] == "same"


def test_what_differs_and_who_was_measured_is_said() -> None:
    """Versions, options, cells that came and went, machine, commits, how it was decided."""
    text = Page(gate_markdown(made.every_status())).text
    for said in (
        "llama.cpp's version: b6510 → b6511",
        "threads: 2 → 1",
        "mnn int8 block_size=32 / chat",
        "AMD EPYC 9B14, 2 CPUs, x86_64",
        "commit 0123456789 on main",
        "Decided by gate.yaml.",
        "certain at 99 %",
        "no cell matches the pattern `mlc*`",
        "GGML_ASSERT(buffer) failed",
    ):
        assert said in text


def test_notes_of_both_sides_and_of_the_comparison_are_shown() -> None:
    """A line that could not be read, a run at another time: in the gate and in the comparison."""
    gate = made.gate([made.check()], baseline=replace(made.side("b"), notes=("1 line was lost",)))
    gate = replace(gate, comparison=replace(gate.comparison, notes=("made at different times",)))
    for text in (gate_markdown(gate), comparison_markdown(gate.comparison)):
        assert "- 1 line was lost.\n- made at different times.\n" in text


def test_a_gate_that_passed_is_short() -> None:
    """No table of broken limits, no list of what there is not."""
    gate = made.gate([made.check(made.row(candidate=99.9, verdict="same"), "pass")])
    page = Page(gate_markdown(gate))
    assert "edgebench gate passed" in page.text
    assert len(page.tables) == 1
    assert page.tags.count("details") == 1
    assert "Only warned of" not in page.text


def test_nothing_to_compare_is_a_page_too() -> None:
    """A gate without limits and a comparison without rows have no empty table."""
    assert "details" not in Page(gate_markdown(made.gate())).tags
    assert "There is nothing to compare." in comparison_markdown(made.comparison())


@pytest.mark.parametrize("write", [gate_markdown, gate_summary])
def test_names_from_outside_do_nothing(write: object) -> None:
    """No link, no image, no element of theirs, no mention, no reference, no cell too many."""
    page = Page(write(made.odd()))  # type: ignore[operator]
    known = {"h3", "p", "strong", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code"}
    assert set(page.tags) <= known | {"details", "summary"}
    assert {key for key, _ in page.attributes} <= {"style"}
    for rows in page.tables:
        assert len({len(cells) for cells in rows}) == 1
    assert not re.search(r"@\w|#\d|://", page.outside_code)
    assert "<img src=x onerror=alert(1)>" in page.text
    assert "\x1b" not in page.text


def test_a_name_is_code_where_code_can_hold_it() -> None:
    """In code nothing acts, and the name can be copied."""
    named = made.pair("@octocat #1 http://x.example", "chat")
    page = Page(gate_markdown(made.gate([made.check(made.row(named))])))
    assert "@octocat #1 http://x.example / chat" in page.text
    assert "@octocat" not in page.outside_code


def test_across_machines_is_labelled_at_the_top() -> None:
    """Figures of two machines are never shown without saying so."""
    gate = made.gate([made.check()], across_machines="measured on two machines")
    text = gate_markdown(gate)
    assert text.index("Across machines:") < text.index("| cell")
    assert "Across machines:" in comparison_markdown(gate.comparison)


def test_a_comment_stays_within_what_github_takes() -> None:
    """The last rows are left out, said how many; broken limits are kept before the whole table."""
    gate = made.large()
    text = gate_markdown(gate)
    assert len(text) < 65_536
    assert len(text.encode()) < 65_536
    left_out = re.findall(r"… (\d+) more are left out here", text)
    assert len(left_out) == 3
    page = Page(text)
    assert len(page.tables[0]) - 1 + int(left_out[0]) == 600
    assert int(left_out[-1]) == 600
    assert page.tags.count("details") == 2
    assert text.rstrip().endswith("with each other.")


def test_a_summary_may_be_longer_than_a_comment() -> None:
    """The job's summary has no marker and all rows, under one mebibyte."""
    text = gate_summary(made.large())
    assert not text.startswith("<!--")
    assert "left out" not in text
    assert len(gate_text(made.large(), 100_000).encode()) <= 100_000
    assert MOST_SUMMARY_BYTES < 2**20


def test_names_as_long_as_books_do_not_fill_the_page() -> None:
    """Names, messages and notes are cut, so that the fixed parts of a page stay small."""
    long = "x" * 100_000
    pair = made.pair(long, long)
    gate = made.gate([made.check(made.row(pair), message=long, detail=long)], headline=long)
    assert len(gate_markdown(replace(gate, policy=long)).encode()) < 60_000


def test_a_comparison_says_what_cant_be_told() -> None:
    """Counts first, then the table, then what would settle what is open."""
    page = Page(comparison_markdown(made.every_status().comparison))
    assert "3 worse, 1 same, 1 can't tell, 1 not compared." in page.text
    assert len(page.tables) == 1
    assert page.tables[0][5][-1] == "not compared: no meter is readable"
    assert "llama.cpp Q8_0 / long, decode: a change of 11 % would have been noticed" in page.text


def test_rows_are_left_out_from_the_end() -> None:
    """By hand: of two tables the first keeps its rows, and the second says what it lost."""
    first, second = table(["a"], [["1"], ["2"]], numbers=[0]), table(["b"], [["3"]], numbers=[])
    blocks = [first, Block("end"), second]
    whole = "| a |\n| ---: |\n| 1 |\n| 2 |\n\nend\n\n| b |\n| --- |\n| 3 |\n"
    assert fitted(blocks, 10_000) == whole
    texts = [fitted(blocks, size) for size in range(10_000)]
    assert all(len(text.encode()) <= size for size, text in enumerate(texts) if "| 1 |" in text)
    cut = next(text for text in texts if "| 2 |" in text and "| 3 |" not in text)
    said = "… 1 more is left out here, where a text may be only so long."
    assert cut.endswith(f"| 2 |\n\nend\n\n| b |\n| --- |\n\n{said}\n")


def test_the_sample_has_every_status() -> None:
    """What the tests of outputs look at is complete."""
    statuses = {each.status for each in made.every_status().checks}
    assert statuses == {"fail", "warn", "allowed", "undecided", "pass"}


def test_a_broken_limit_is_worse_whatever_its_row_is_called() -> None:
    """A row may be the same by one margin, and break a limit of another."""
    for verdict in ("same", "cant_tell"):
        text = gate_markdown(made.gate([made.check(made.row(verdict=verdict))]))
        (line,) = [
            each for each in text.partition("<details>")[0].splitlines() if "at most 5 %" in each
        ]
        assert line.endswith("| worse |")


def test_what_fails_for_being_undecided_has_a_heading_of_its_own() -> None:
    """Nobody reads an improvement as broken."""
    check = made.check(made.row(candidate=110.0, verdict="better"), "fail", undecided=True)
    text = gate_markdown(made.gate([check]))
    assert "**The samples can't decide, which fails here:**" in text
    assert "| verdict |" not in text.partition("<details>")[0]


def test_a_gate_that_could_not_decide_says_what_it_takes() -> None:
    """Neither passed nor failed, and the way out right below."""
    gate = replace(made.gate(headline="Too few"), outcome="undecided", remedy="Make 10 of them")
    lines = gate_markdown(gate).splitlines()
    assert lines[1].startswith("### edgebench gate could not decide: ")
    assert lines[3:6] == ["**Too few.**", "", "Make 10 of them."]
