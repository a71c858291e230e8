"""Files of decision trees: what is shipped, what is refused, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.harness.errors import TreeError
from edgebench.reports.languages import language
from edgebench.reports.selection.tree import load_tree, load_trees, parse_tree

GOOD = """\
schema_version: 1
name: mine
version: 3
title: My own
start: license
questions:
  license:
    text: Must it be free?
    answers:
      yes: {to: size}
      no: {to: b}
  size:
    text: Is it small?
    answers:
      yes: {to: a}
      no: {to: b}
recommendations:
  a: {runner: llama.cpp}
  b: {runner: mnn}
"""
SEEDS = Path(__file__).parents[3].parent / "shared" / "seeds"


def problems(old: str, new: str) -> list[str]:
    assert old in GOOD
    with pytest.raises(TreeError) as caught:
        parse_tree(GOOD.replace(old, new, 1), filename="f")
    return str(caught.value).splitlines()


def test_a_tree_of_ones_own_needs_no_chinese_and_no_document() -> None:
    """A plain text is English, and stands in for the language that is missing."""
    tree = parse_tree(GOOD, filename="f")
    assert (tree.name, tree.version, tree.source) == ("mine", 3, None)
    assert tree.runners == ("llama.cpp", "mnn")
    with language("zh"):
        assert tree.title.words == "My own"


def test_the_shipped_trees_ask_what_the_documents_ask() -> None:
    """Two trees with these keys; the first is the one with the questions."""
    first, second = load_trees()
    assert first.name == "edge-frameworks"
    assert set(first.keys) == {"fixed_model", "multimodal", "vision", "enterprise_support"}
    assert second.keys == {"target": frozenset({"pc", "browser", "phone", "board"})}
    assert set(second.fits) == {"llama.cpp", "mlc", "mnn"}


def test_every_text_of_the_shipped_trees_is_in_both_languages() -> None:
    """A Chinese reader finds no English in them."""
    for tree in load_trees():
        assert tree.source is not None
        texts = [tree.title, tree.source.document]
        texts += [each.text for each in tree.questions.values()]
        texts += [each.because for each in tree.recommendations.values() if each.because]
        texts += [each for fits in tree.fits.values() for each in fits]
        texts += [
            answer.text
            for question in tree.questions.values()
            for answer in question.answers.values()
            if answer.text
        ]
        assert all(each.zh for each in texts)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (
            "no: {to: b}\nrec",
            "no: {to: license}\nrec",
            [
                (
                    "f:16:16: questions.size.answers.no.to: goes in a circle (license -> size -> "
                    "license); every way must end"
                )
            ],
        ),
        (
            "no: {to: b}\nrec",
            "no: {to: c}\nrec",
            ["f:16:16: questions.size.answers.no.to: there is no question or recommendation 'c'"],
        ),
        (
            "yes: {to: size}",
            "yes: {to: sise}",
            [
                (
                    "f:10:17: questions.license.answers.yes.to: there is no question or "
                    "recommendation "
                    "'sise'; did you mean 'size'?"
                )
            ],
        ),
        (
            "yes: {to: size}",
            "yes: {to: a}",
            ["f:12:3: questions.size: no answer leads here; remove it, or lead to it"],
        ),
        (
            "  b: {runner: mnn}",
            "  b: {runner: mnn}\n  c: {runner: mlc}",
            ["f:20:3: recommendations.c: no answer leads here; remove it, or lead to it"],
        ),
        (
            "text: Is it small?",
            "text: Is it small?\n    key: license",
            [
                (
                    "f:12:3: questions.size: 'license' is asked on the way here already; "
                    "its answer is "
                    "known"
                )
            ],
        ),
        (
            "      no: {to: b}\n  size",
            "  size",
            ["f:10:7: questions.license.answers: a question needs at least two answers, got 1"],
        ),
        (
            "runner: mnn",
            "runner: mnnn",
            ["f:19:15: recommendations.b.runner: no runner is named 'mnnn'; did you mean 'mnn'?"],
        ),
        (
            "start: license",
            "start: a",
            ["f:5:8: start: must be a question, and is a recommendation: nothing would be asked"],
        ),
        (
            "runner: mnn",
            "runner: MNN",
            ["f:19:15: recommendations.b.runner: must be a runner's name in lower case: 'mnn'"],
        ),
        (
            "runner: mnn",
            'runner: ""',
            [
                (
                    "f:19:15: recommendations.b.runner: must be letters, digits, '.', '_' "
                    "and '-', a "
                    "letter or digit first, got ''"
                )
            ],
        ),
        (
            "  b: {runner: mnn}",
            "  b: {runner: mnn}\n  size: {runner: mlc}",
            [
                (
                    "f:20:3: recommendations.size: a question has this name already; give "
                    "one of them "
                    "another"
                )
            ],
        ),
        ("version: 3", "versoin: 3", ["f:3:1: versoin: unknown key; did you mean 'version'?"]),
        (
            "  a: {runner",
            "  a: {runer",
            [("f:18:7: recommendations.a.runer: unknown key; did you mean 'runner'?")],
        ),
        (
            "schema_version: 1",
            "schema_version: 2",
            [
                (
                    "f:1:17: schema_version: written for a newer edgebench, format 2; this "
                    "one reads up "
                    "to format 1: upgrade edgebench"
                )
            ],
        ),
    ],
)
def test_each_fault_is_told_with_its_place(old: str, new: str, said: list[str]) -> None:
    """One change to a valid tree gives one line, in plain words."""
    assert problems(old, new) == said


def test_all_faults_are_told_at_once() -> None:
    """A wrong type and a way to nowhere are two lines of one message, in the file's order."""
    text = GOOD.replace("version: 3", "version: new").replace("{to: a}", "{to: x}")
    with pytest.raises(TreeError) as caught:
        parse_tree(text, filename="f")
    places = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert places == ["version", "questions.size.answers.yes.to", "recommendations.a"]


@pytest.mark.parametrize(
    ("old", "new", "others"),
    [
        ("version: 3", "version: new", 1),
        ("no: {to: b}\n  lost", "no: {to: license}\n  lost", 1),
        ("yes: {to: size}", "yes: {to: sise}", 1),
        ("yes: {to: size}", "yes: size", 1),
        ("yes: {to: size}", "yes: {too: size}", 1),
        ("start: license", "start: licence", 1),
    ],
)
def test_what_nothing_leads_to_is_told_beside_other_faults(old: str, new: str, others: int) -> None:
    """A lost question and a lost end; what a misspelled name was meant to lead to is not lost."""
    lost = "  lost:\n    text: Why?\n    answers: {yes: {to: a}, no: {to: b}}\n"
    text = GOOD.replace("recommendations:\n", f"{lost}recommendations:\n  gone: {{runner: mlc}}\n")
    assert old in text
    with pytest.raises(TreeError) as caught:
        parse_tree(text.replace(old, new, 1), filename="f")
    lines = str(caught.value).splitlines()
    found = [line.split(": ")[1] for line in lines if "no answer leads here" in line]
    assert found == ["questions.lost", "recommendations.gone"]
    assert len(lines) == 2 + others, lines


def test_a_start_that_is_no_question_leaves_open_which_one_comes_first() -> None:
    """No question is called lost then, but an end to which no answer leads is."""
    text = GOOD.replace("start: license", "start: nowhere") + "  c: {runner: mlc}\n"
    with pytest.raises(TreeError) as caught:
        parse_tree(text, filename="f")
    places = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert places == ["start", "recommendations.c"]


@pytest.mark.parametrize(
    "text",
    [
        '{"schema_version": 3, "id": "x", "status": "finished", "variants": []}',
        "schema_version: 1\nname: n\nmodel: {name: m}\nvariants: []\nworkloads: []\n",
    ],
)
def test_a_file_of_another_kind_is_told_in_one_line(text: str) -> None:
    """A run or a scenario in a tree's place is no list of what a tree would have to hold."""
    with pytest.raises(TreeError) as caught:
        parse_tree(text, filename="f")
    assert str(caught.value) == (
        "f:1:1: tree: this is no decision tree: it has none of start, questions, recommendations"
    )


def test_a_text_of_another_kind_is_told_as_a_text() -> None:
    """People write a title, and not the group of languages that it is kept as."""
    assert problems("title: My own", "title: 3") == [
        (
            "f:4:8: title: must be text, or one text under en and another under zh, got 3 "
            "(a whole number)"
        )
    ]


@pytest.mark.parametrize("text", ["", "- a", "just text", "a: [", "a: 1\na: 2\n", "questions: 3"])
def test_what_is_no_tree_at_all_is_refused_with_a_place(text: str) -> None:
    """No text makes it fail in another way."""
    with pytest.raises(TreeError, match=r"^f:\d+:\d+: "):
        parse_tree(text, filename="f")


def test_more_ways_than_can_be_shown_are_refused() -> None:
    """Eight yes-or-no questions in a row that lead to one another in two ways are 256 ways."""
    count = 8
    lines = ["schema_version: 1", "name: wide", "version: 1", "title: Wide", "start: q0"]
    lines.append("questions:")
    for number in range(count):
        to = f"q{number + 1}" if number < count - 1 else "end"
        lines.append(
            f"  q{number}: {{text: Why?, answers: {{yes: {{to: {to}}}, no: {{to: {to}}}}}}}"
        )
    lines += ["recommendations:", "  end: {runner: mnn}"]
    with pytest.raises(TreeError, match="256 ways through; at most 200 can be shown"):
        parse_tree("\n".join(lines), filename="f")


def test_a_tree_is_loaded_by_name_or_from_a_file(tmp_path: Path) -> None:
    """A name that edgebench has wins; anything that looks like a file is read."""
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD, encoding="utf-8")
    assert load_tree(file).name == "mine"
    assert load_tree("edge-frameworks") is load_trees()[0]


def test_an_unknown_name_is_refused_with_those_there_are(tmp_path: Path) -> None:
    """The message names the trees, and the one that was probably meant."""
    with pytest.raises(TreeError, match="did you mean edge-frameworks"):
        load_tree("edge-framework")
    with pytest.raises(TreeError, match="there is no such file"):
        load_tree(tmp_path / "none.yaml")


@pytest.mark.parametrize("file", ["000_3266d98df2a3a225.txt", "001_b1c3d94090e79005.txt"])
@pytest.mark.skipif(not SEEDS.is_dir(), reason="the documents are not here")
def test_quotes_are_the_documents_own_words(file: str) -> None:
    """Every quote and every Chinese reason stands in the document as it is."""
    words = "".join((SEEDS / file).read_text(encoding="utf-8").split())
    tree = load_trees()[0 if file.startswith("000") else 1]
    assert tree.source is not None
    quotes = tree.source.quote.splitlines()
    quotes += [each.because.zh or "" for each in tree.recommendations.values() if each.because]
    quotes += [each.zh or "" for fits in tree.fits.values() for each in fits]
    for quote in quotes:
        assert quote
        assert "".join(quote.split()) in words, quote


def test_the_tree_in_the_documentation_is_valid() -> None:
    """What a user copies from docs/selection.md loads, and its texts are where they belong."""
    text = (Path(__file__).parents[3] / "docs" / "selection.md").read_text(encoding="utf-8")
    blocks = [each.partition("```")[0] for each in text.split("```yaml\n")[1:]]
    (block,) = [each for each in blocks if each.startswith("schema_version")]
    tree = parse_tree(block, filename="docs/selection.md")
    assert tree.key("support") == "on_call"
    assert tree.source is not None


def test_a_runner_that_is_installed_elsewhere_may_be_named() -> None:
    """Only what is nearly a known name is taken for a mistake."""
    tree = parse_tree(GOOD.replace("runner: mnn", "runner: exllama"), filename="f")
    assert tree.recommendations["b"].runner == "exllama"
