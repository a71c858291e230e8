"""Texts from outside do nothing but show themselves."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from edgebench.reports.text import (
    clean,
    markdown,
    markdown_block,
    markdown_code,
    one_line,
    tail,
)

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "a | b || c",
    "a \\| b \\",
    "`code` ``more``",
    "**bold** _it_ __b__ ~~gone~~ *x*",
    "snake_case_name and Q4_K_M",
    "[link](https://example.org) ![image](x)",
    "<https://example.org>",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "2) item",
    "> quote",
    "---",
    "===",
    "&amp; &lt; &#124;",
    "line\nbreak\r\nand\ttab",
    "$x$ ::: note",
    "    indented",
    "",
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x00b\x08c\x7f", "a␀b␈c[U+007F]"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("evil\u202egnp.exe", "evil[U+202E]gnp.exe"),
        ("\u2066x\u2069\u200f", "[U+2066]x[U+2069][U+200F]"),
        ("\x9b31m", "[U+009B]31m"),
        ("half \ud800 pair", "half \ufffd pair"),
        ("not \uffff a character", "not \ufffd a character"),
        ("two\u2028lines", "two lines"),
        ("中文, עברית, é, 👩‍💻", "中文, עברית, é, 👩‍💻"),
    ],
)
def test_clean_shows_and_does_nothing(text, shown):
    """Escapes go, controls and turns become visible, ordinary text of any script stays."""
    assert clean(text) == shown


@given(st.text(st.characters()))
def test_clean_leaves_nothing_to_interpret(text):
    """No text keeps an escape, a control or a character that turns the direction."""
    shown = clean(text)
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown
    )
    assert clean(shown) == shown
    shown.encode()


def test_tail_keeps_the_end():
    """Of a long log the last lines are shown, and of a long line its end."""
    assert tail("\n".join(map(str, range(100))), lines=3) == "97\n98\n99"
    assert tail("x" * 50 + "end", characters=5) == "xxend"


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("escape", [markdown, markdown_code])
@pytest.mark.parametrize(
    "frame", ["| head | two |\n| --- | --- |\n| {} | x |", "- {}", "# {}", "{}"]
)
def test_markdown_shows_the_text_itself(text, escape, frame):
    """Another project's Markdown renderer shows exactly the text, in a table and elsewhere."""
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    escaped = escape(text)
    rendered = renderer.render(frame.format(escaped))
    shown = html.unescape(re.sub("<[^>]*>", "", rendered))
    expected = f"head two {text} x" if "|" in frame else text
    assert shown.split() == one_line(expected).split()
    tags = set(re.findall(r"<(\w+)", rendered))
    assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "ul", "li", "h1", "p", "code"}


@given(st.text(st.characters()))
def test_markdown_never_makes_an_element(text):
    """No text makes the Markdown renderer write an element of its own."""
    renderer = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for escaped in (markdown(text), markdown_code(text)):
        rendered = renderer.render(f"| a |\n| --- |\n| x {escaped} |\n")
        assert set(re.findall(r"<(\w+)", rendered)) <= {
            *("table", "thead", "tbody", "tr", "th", "td", "code")
        }


def test_a_block_can_not_be_closed_from_inside():
    """A log that holds a fence stays in its block."""
    block = markdown_block("before\n```\n<script>\n````\nafter")
    rendered = MarkdownIt("commonmark", {"html": True}).render(block)
    assert rendered.count("<pre>") == 1
    assert "<script>" not in rendered
    assert rendered.rstrip().endswith("</code></pre>")
