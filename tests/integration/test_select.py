"""``edgebench select`` as a person meets it: with and without runs, answers and a terminal."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.harness.errors import ExitStatus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario

PLAIN = ("--answer", "fixed_model=no", "--answer", "multimodal=no", "--answer")


def test_trees_alone_recommend_without_any_run() -> None:
    """Status 0, the way with its answers, and whose judgement it is; within 80 columns."""
    done = edgebench("select", *PLAIN, "enterprise_support=yes")
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "Enterprise support needed?                → yes (command line)" in done.stdout
    assert "⇒ MNN" in done.stdout
    assert "its document's judgement alone" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_question_left_open_exits_2_and_says_how_to_answer() -> None:
    """Without a terminal nobody is asked: the message names the question and its answers."""
    done = edgebench("select", "--answer", "fixed_model=no")
    assert done.returncode == ExitStatus.USAGE
    assert "edge-frameworks asks: Multimodal support needed?" in done.stderr
    assert "--answer multimodal=yes or --answer multimodal=no" in done.stderr
    assert "--answer target=browser" in done.stderr


def test_json_stays_json_where_a_question_is_open() -> None:
    """Null on standard output, the message on standard error, status 2."""
    done = edgebench("select", "--json")
    assert done.returncode == ExitStatus.USAGE
    shown = json.loads(done.stdout)
    assert shown["recommendation"] is None
    assert [each["open"]["key"] for each in shown["trees"]] == ["fixed_model", "target"]
    assert "--answer fixed_model=yes" in done.stderr


def test_a_runs_scenario_answers_and_the_command_line_stands_above_it(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """The recorded needs lead to one framework, an answer to another; the fake runner to none."""
    scenario = make_scenario()
    with scenario.open("a", encoding="utf-8") as file:
        file.write("requirements: {fixed_model: no, multimodal: yes, vision: yes}\n")
    ran = edgebench("run", scenario, "--out", tmp_path / "out")
    assert ran.returncode == ExitStatus.DONE, ran.stderr
    (folder,) = (tmp_path / "out" / "fake").iterdir()

    done = edgebench("select", folder, "--json")
    assert done.returncode == ExitStatus.DONE, done.stderr
    # The run said so at its end, within 80 columns.
    _, _, said = ran.stdout.partition("\nchoose   ")
    assert " ".join(said.split()) == json.loads(done.stdout)["headline"]
    assert max(len(f"         {line.strip()}") for line in said.splitlines()) <= 80
    shown = json.loads(done.stdout)
    assert shown["recommendation"] == "mediapipe"
    assert "was not measured here" in shown["headline"]
    assert "no framework" in shown["headline"]
    assert [each["path"] for each in shown["runs"]] == [str(folder)]

    other = edgebench("select", folder, "--json", "--answer", "vision=no")
    assert json.loads(other.stdout)["recommendation"] == "mnn"


def test_an_answer_takes_the_place_of_what_the_scenario_says_against_it(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Images, of a run whose scenario says that only text goes in; two on one line are an error."""
    scenario = make_scenario()
    with scenario.open("a", encoding="utf-8") as file:
        file.write("requirements: {fixed_model: no, multimodal: no}\n")
    ran = edgebench("run", scenario, "--out", tmp_path / "out")
    assert ran.returncode == ExitStatus.DONE, ran.stderr
    (folder,) = (tmp_path / "out" / "fake").iterdir()

    done = edgebench("select", folder, "--json", "--answer", "vision=yes")
    assert done.returncode == ExitStatus.DONE, done.stderr
    shown = json.loads(done.stdout)
    assert shown["recommendation"] == "mediapipe"
    assert shown["answers"] == {"fixed_model": "no", "vision": "yes", "multimodal": "yes"}

    both = edgebench("select", folder, "--answer", "vision=yes", "--answer", "multimodal=no")
    assert both.returncode == ExitStatus.USAGE
    assert "vision=yes (command line) and multimodal=no (command line) contradict" in both.stderr

    other = edgebench("select", "--tree", folder / "run.json")
    assert other.returncode == ExitStatus.USAGE
    assert len(other.stderr.strip().splitlines()) == 1
    assert "this is no decision tree" in other.stderr


def test_a_tree_of_ones_own_is_walked_instead(tmp_path: Path) -> None:
    """Its question is answered by its own key, and those of others are not asked."""
    tree = tmp_path / "mine.yaml"
    tree.write_text(
        "schema_version: 1\nname: mine\nversion: 1\ntitle: Mine\nstart: big\n"
        "questions: {big: {text: Is it big?, answers: {yes: {to: a}, no: {to: b}}}}\n"
        "recommendations: {a: {runner: mlc}, b: {runner: mnn}}\n",
        encoding="utf-8",
    )
    done = edgebench("select", "--tree", tree, "--answer", "big=yes", "--json")
    assert done.returncode == ExitStatus.DONE, done.stderr
    shown = json.loads(done.stdout)
    assert (shown["recommendation"], len(shown["trees"])) == ("mlc", 1)


def test_a_broken_tree_is_told_with_its_lines(tmp_path: Path) -> None:
    """Status 2, a line for each problem that an editor can jump to."""
    tree = tmp_path / "bad.yaml"
    tree.write_text("schema_version: 1\nname: bad\nversion: 0\ntitle: Bad\n", encoding="utf-8")
    done = edgebench("select", "--tree", tree)
    assert done.returncode == ExitStatus.USAGE
    assert f"{tree}:3:10: version: must be at least 1, got 0" in done.stderr.splitlines()
    assert "questions: this key is missing" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--tree", "edge-framework"], "did you mean edge-frameworks?"),
        (["--tree", "edge-frameworks", "--tree", "edge-frameworks"], "two of the decision trees"),
        (["--answer", "visoin=yes"], "did you mean 'vision'?"),
        (["/no/such/run"], "/no/such/run"),
        (["--lang", "fr"], "--lang"),
    ],
)
def test_a_wrong_command_line_exits_2(arguments: list[str], words: str) -> None:
    """A sentence with what is allowed, and no traceback."""
    done = edgebench("select", *arguments)
    assert done.returncode == ExitStatus.USAGE
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_is_asked_only_what_the_way_needs() -> None:
    """Three answers, one a letter, lead to the first tree's end; no more is asked, none is open."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "edgebench", "select"],
        stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb"},
    ) as asking:  # fmt: skip
        os.close(theirs)
        os.write(ours, b"n\nYes\nperhaps\nno\n")
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # how Linux tells that the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    text = shown.decode()
    assert asking.returncode == ExitStatus.DONE, text
    assert text.count("Utmost speed needed, and the model fixed? (yes, no):") == 1
    assert text.count("Vision needed? (yes, no):") == 2
    assert "Enterprise" not in text
    assert "(terminal)" in text
    assert "⇒ MNN" in text


def test_chinese_readers_are_asked_and_told_in_chinese() -> None:
    """Questions, answers and reasons as the documents write them."""
    done = edgebench("select", "--lang", "zh", "--answer", "fixed_model=yes")
    assert "需要极致性能且模型固定？ → 是" in done.stdout
    assert "llama.cpp以其极简设计和极致性能优化成为开源社区的首选" in done.stdout
