"""A tree drawn, and written for Mermaid: the way is lit, no text is taken for code."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from edgebench.reports.languages import language
from edgebench.reports.selection.layout import wrapped
from edgebench.reports.selection.tree import load_trees, parse_tree
from edgebench.reports.selection.walk import Given, walk

EVIL = '<script>alert("x")</script> `code` [a](b) {c} | end; %% "q" #35; & 。'


def drawn(svg: str) -> list[ET.Element]:
    """Both drawings, parsed."""
    return list(ET.fromstring(f"<both>{svg}</both>"))


def tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def said(**answers: str) -> dict[str, Given]:
    return {key: Given(value, "scenario") for key, value in answers.items()}


def evil_tree(question: str = EVIL, answer: str = EVIL) -> str:
    def quoted(text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    return f"""\
schema_version: 1
name: evil
version: 1
title: {quoted(question)}
start: q
questions:
  q:
    text: {quoted(question)}
    answers:
      a: {{to: x, text: {quoted(answer)}}}
      b: {{to: y}}
recommendations: {{x: {{runner: mnn}}, y: {{runner: {"z" * 80}}}}}
"""


def test_what_is_lit_is_the_way_and_nothing_else() -> None:
    """As many thick lines as answers, as many thick boxes as questions asked and the end."""
    walked = walk(
        load_trees()[0], said(fixed_model="no", multimodal="no", enterprise_support="yes"), name="t"
    )
    for svg in drawn(walked.svg):
        lit = [each for each in svg if each.get("stroke") == "var(--accent)"]
        assert [tag(each) for each in lit].count("path") == 3
        assert [tag(each) for each in lit].count("rect") == 4
        bold = [each.text for each in svg if each.get("font-weight")]
        assert "MNN" in bold
        assert "llama.cpp" not in bold


def test_an_open_walk_lights_the_question_it_waits_for() -> None:
    """The start alone where nothing was answered."""
    for svg in drawn(walk(load_trees()[0], {}, name="t").svg):
        lit = [tag(each) for each in svg if each.get("stroke") == "var(--accent)"]
        assert lit == ["rect"]


def test_a_drawing_says_its_way_in_words() -> None:
    """A screen reader hears the title, each question with its answer, and the end."""
    walked = walk(load_trees()[0], said(fixed_model="no", multimodal="yes", vision="no"), name="t")
    for svg in drawn(walked.svg):
        title, description = svg[0], svg[1]
        assert svg.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert description.text == (
            "Utmost speed needed, and the model fixed? no. Multimodal support needed? yes. "
            "Vision needed? no. Recommended: MNN."
        )


def test_ids_are_unique_and_styles_are_attributes() -> None:
    """Two trees may stand in a page that allows no style of an element's own."""
    both = "".join(
        walk(tree, {}, name=f"tree-{place}").svg for place, tree in enumerate(load_trees())
    )
    ids = re.findall(r' id="([^"]+)"', both)
    assert len(ids) == len(set(ids)) == 8
    assert "style=" not in both
    assert "<style" not in both


@pytest.mark.parametrize("tag_", ["en", "zh"])
@pytest.mark.parametrize("number", [0, 1])
def test_boxes_keep_inside_and_apart(number: int, tag_: str) -> None:
    """No box overlaps another or leaves the drawing, in either language."""
    with language(tag_):
        walked = walk(load_trees()[number], said(target="pc"), name="t")
    for svg in drawn(walked.svg):
        _, _, width, height = map(float, (svg.get("viewBox") or "").split())
        boxes = [
            tuple(float(each.get(key) or 0) for key in ("x", "y", "width", "height"))
            for each in svg
            if tag(each) == "rect"
        ]
        for place, (x, y, across, down) in enumerate(boxes):
            assert x >= 0
            assert y >= 0
            assert x + across <= width
            assert y + down <= height
            for x2, y2, across2, down2 in boxes[:place]:
                apart = x2 >= x + across or x >= x2 + across2 or y2 >= y + down or y >= y2 + down2
                assert apart


def test_markup_in_a_tree_is_shown_and_not_obeyed() -> None:
    """Texts with tags, quotes and brackets are drawn as they are written."""
    walked = walk(parse_tree(evil_tree(), filename="f"), said(q="a"), name="t")
    assert "<script" not in walked.svg
    wide, narrow = drawn(walked.svg)
    for svg in (wide, narrow):
        shown = "".join(each.text or "" for each in svg if tag(each) == "text")
        assert "<script>alert" in shown.replace(" ", "")


def test_long_words_are_broken_and_nothing_is_lost() -> None:
    """200 characters without a space go on in the next line; a text's letters all stay."""
    text = "x" * 200
    lines = wrapped(text, 150)
    assert len(lines) > 5
    assert "".join(lines) == text
    assert wrapped("one two three", 1000) == ("one two three",)
    assert wrapped("", 10) == ("",)


def test_chinese_is_broken_between_any_two_letters_but_not_before_a_stop() -> None:
    """A line does not begin with a question mark."""
    lines = wrapped("需要极致性能且模型固定？", 13 * 11)
    assert "".join(lines) == "需要极致性能且模型固定？"
    assert len(lines) == 2
    assert not lines[1].startswith("？")


def test_mermaid_draws_the_way_thick() -> None:
    """Thick arrows for the answers given, the class for what was passed, thin ones for the rest."""
    text = walk(load_trees()[0], said(fixed_model="yes"), name="t").mermaid
    assert text.startswith("flowchart TD\n")
    assert text.count("==>") == 1
    assert text.count("-->") == 7
    assert '    n0 ==>|"yes"| n4' in text
    assert text.splitlines()[-1] == "    class n0,n4 taken"
    assert "linkStyle 0 " in text


def test_mermaid_labels_hold_no_syntax() -> None:
    """What Mermaid could take for syntax or markup becomes the number of its character."""
    text = walk(parse_tree(evil_tree(), filename="f"), said(q="a"), name="t").mermaid
    for label in re.findall(r'"([^"\n]*)"', text):
        bare = re.sub(r"#\d+;", "", label)
        assert not set(bare) & set("#;`<>&$*_~{}[]|\\^=@"), label
    assert "#60;script#62;" in text


def test_mermaid_leaves_chinese_punctuation_readable() -> None:
    """Its source can be read where nobody draws it; only what could be a picture's name is not."""
    text = walk(
        parse_tree(evil_tree(question="要GPU吗？（是，否）fa:x"), filename="f"), {}, name="t"
    )
    assert '"要GPU吗？（是，否）fa#58;x"' in text.mermaid


@pytest.mark.parametrize(("written", "label"), [("1. one", "1#46; one"), ("- one", "#45; one")])
def test_mermaid_does_not_see_a_list(written: str, label: str) -> None:
    """Mermaid refuses labels that begin as a list in Markdown does."""
    tree = parse_tree(evil_tree(question=written), filename="f")
    assert f'"{label}"' in walk(tree, {}, name="t").mermaid
