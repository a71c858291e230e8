"""The way through a tree: who is recommended, by whose answers, and where it stays open."""

from __future__ import annotations

import itertools

import pytest

from edgebench.harness.errors import UsageError
from edgebench.harness.scenario.requirements import Requirements
from edgebench.reports.languages import language
from edgebench.reports.selection.tree import load_trees, parse_tree
from edgebench.reports.selection.walk import (
    COMMAND_LINE,
    IMPLIED,
    SCENARIO,
    Given,
    answers_of,
    put_over,
    walk,
    with_implied,
)

KEYS = ("fixed_model", "multimodal", "vision", "enterprise_support")


def said(**answers: str) -> dict[str, Given]:
    return {key: Given(value, COMMAND_LINE) for key, value in answers.items()}


def by_the_document(fixed: str, multimodal: str, vision: str, enterprise: str) -> str:
    """The tree as it stands in the document, read off by hand."""
    if fixed == "yes":
        return "llama.cpp"
    if multimodal == "yes":
        return "mediapipe" if vision == "yes" else "mnn"
    return "mnn" if enterprise == "yes" else "llama.cpp"


@pytest.mark.parametrize("answers", [*itertools.product(("yes", "no"), repeat=4)])
def test_every_combination_ends_where_the_document_says(answers: tuple[str, ...]) -> None:
    """All sixteen answers to the four questions."""
    found = walk(load_trees()[0], said(**dict(zip(KEYS, answers, strict=True))), name="t")
    assert found.recommendation == by_the_document(*answers)
    assert found.open is None


@pytest.mark.parametrize(
    ("target", "runner"),
    [("pc", "llama.cpp"), ("browser", "mlc"), ("phone", "mnn"), ("board", "llama.cpp")],
)
def test_every_target_has_its_framework(target: str, runner: str) -> None:
    """As the second document advises, with what it says that the framework fits."""
    found = walk(load_trees()[1], said(target=target), name="t")
    assert found.recommendation == runner
    assert found.because
    assert found.fits


def test_a_walk_asks_only_what_its_way_needs() -> None:
    """With utmost speed the other questions don't come up."""
    found = walk(load_trees()[0], said(fixed_model="yes", vision="no"), name="t")
    assert [(step.key, step.answer, step.answer_text) for step in found.steps] == [
        ("fixed_model", "yes", "yes")
    ]


def test_an_open_walk_names_the_question_and_its_choices() -> None:
    """It recommends nothing, and says what it would need to know."""
    found = walk(load_trees()[0], said(fixed_model="no"), name="t")
    assert found.recommendation == ""
    assert found.open is not None
    assert found.open.key == "multimodal"
    assert found.open.choices == (("yes", "yes"), ("no", "no"))


def test_images_are_more_than_text() -> None:
    """Who needs vision need not say multimodal too, and the step says where it is from."""
    answers = with_implied(said(fixed_model="no", vision="yes"))
    found = walk(load_trees()[0], answers, name="t")
    assert found.recommendation == "mediapipe"
    assert [step.given_by for step in found.steps] == [COMMAND_LINE, IMPLIED, COMMAND_LINE]
    assert "multimodal" not in with_implied(said(vision="no"))


def test_answers_are_read_off_the_requirements() -> None:
    """Yes, no and names, those to questions of one's own among them; limits are no answers."""
    needs = Requirements(vision=False, target="pc", answers={"free": True}, max_ttft_s=1)
    assert answers_of(needs) == {
        "vision": Given("no", SCENARIO),
        "target": Given("pc", SCENARIO),
        "free": Given("yes", SCENARIO),
    }


def test_an_answer_that_a_question_has_not_is_refused() -> None:
    """The message names the tree, the answer and what is allowed."""
    with pytest.raises(UsageError, match=r"target: the decision tree deployment-targets has no "):
        walk(load_trees()[1], said(target="fridge"), name="t")


def test_two_questions_on_different_ways_may_have_one_key() -> None:
    """One answer then serves both."""
    tree = parse_tree(
        """\
schema_version: 1
name: shared
version: 1
title: Shared
start: big
questions:
  big: {text: Big?, answers: {yes: {to: free-big}, no: {to: free-small}}}
  free-big: {text: Free?, key: free, answers: {yes: {to: a}, no: {to: b}}}
  free-small: {text: Free?, key: free, answers: {yes: {to: b}, no: {to: a}}}
recommendations: {a: {runner: a}, b: {runner: b}}
""",
        filename="f",
    )
    assert walk(tree, said(big="yes", free="yes"), name="t").recommendation == "a"
    assert walk(tree, said(big="no", free="yes"), name="t").recommendation == "b"


def test_a_walk_is_told_in_the_language_of_the_report() -> None:
    """The document's own words, in Chinese."""
    with language("zh"):
        found = walk(load_trees()[0], said(fixed_model="yes"), name="t")
    assert found.steps[0].question == "需要极致性能且模型固定？"
    assert found.steps[0].answer_text == "是"


@pytest.mark.parametrize("answer", ["us", "US", "Us"])
def test_an_answer_is_taken_in_capitals_too(answer: str) -> None:
    """The step names the answer as the tree writes it."""
    text = (
        "schema_version: 1\nname: mine\nversion: 1\ntitle: Mine\nstart: who\n"
        "questions: {who: {text: Who?, answers: {us: {to: a}, 'True': {to: b}}}}\n"
        "recommendations: {a: {runner: mlc}, b: {runner: mnn}}\n"
    )
    tree = parse_tree(text, filename="f")
    assert [each.answer for each in walk(tree, said(who=answer), name="t").steps] == ["us"]
    assert walk(tree, said(who="yes"), name="t").recommendation == "mnn"


def test_an_answer_above_takes_away_what_it_contradicts_below() -> None:
    """Vision asked for above the scenario's no to more than text: the second follows anew."""
    below = answers_of(Requirements(multimodal=False, enterprise_support=True))
    found = with_implied(put_over(said(vision="yes"), below))
    assert found["multimodal"] == Given("yes", IMPLIED)
    assert found["enterprise_support"] == Given("yes", SCENARIO)
    assert put_over(said(vision="no"), below)["multimodal"] == Given("no", SCENARIO)
