"""What a scenario says of its user's needs: answers, limits, weights."""

from __future__ import annotations

import jsonschema
import pytest

from edgebench.harness.errors import ScenarioError
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.scenario.requirements import Requirements
from edgebench.harness.scenario.schema import scenario_schema

START = """\
schema_version: 1
name: needs
model: {name: tiny, source: "path:tiny.gguf"}
variants:
  - {runner: engine}
workloads:
  - {name: chat, prompt: Hello, generate_tokens: 2}
requirements:
"""


def needs(*lines: str) -> Requirements:
    text = START + "".join(f"  {line}\n" for line in lines)
    found = parse_scenario(text, filename="f").requirements
    assert found is not None
    return found


def problem(*lines: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        needs(*lines)
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "value"),
    [("yes", True), ("no", False), ("Yes", True), ("true", True), ("false", False)],
)
def test_questions_are_answered_as_people_write_it(written: str, value: bool) -> None:
    """YAML 1.2 reads yes as text; here it is an answer."""
    assert needs(f"vision: {written}").vision is value


def test_what_is_not_given_is_not_asked_for() -> None:
    """A scenario without requirements has none, and one answer leaves the others open."""
    assert parse_scenario(START[: START.index("requirements")], filename="f").requirements is None
    assert needs("target: phone") == Requirements(target="phone")


@pytest.mark.parametrize(
    ("written", "size"),
    [("1073741824", 2**30), ("4GiB", 4 * 2**30), ("4 GB", 4 * 10**9), ("1.5MiB", 1_572_864)],
)
def test_memory_is_given_in_bytes_or_as_a_size(written: str, size: int) -> None:
    """Gi is of 1024, G is of 1000."""
    assert needs(f"max_memory_bytes: {written}").max_memory_bytes == size


def test_answers_to_questions_of_ones_own_are_kept() -> None:
    """Yes and no become what they mean, a name stays a name."""
    own = needs("answers: {license: no, region: cn}")
    assert own.answers == {"license": False, "region": "cn"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("vision: maybe", "f:9:11: requirements.vision: must be yes or no, got 'maybe' (text)"),
        ("vison: yes", "f:9:3: requirements.vison: unknown key; did you mean 'vision'?"),
        (
            "target: tv",
            (
                "f:9:11: requirements.target: must be 'pc', 'browser', 'phone' or 'board', "
                "got 'tv' (text)"
            ),
        ),
        (
            "max_memory_bytes: lots",
            (
                "f:9:21: requirements.max_memory_bytes: must be a number of bytes, or "
                "a size such as "
                "4GiB, got 'lots' (text)"
            ),
        ),
        (
            "max_memory_bytes: 0",
            "f:9:21: requirements.max_memory_bytes: must be more than 0, got 0",
        ),
        ("max_ttft_s: -1", "f:9:15: requirements.max_ttft_s: must be more than 0, got -1"),
        (
            "weights: {decode_rate: 0, quality: 0.0}",
            (
                "f:9:12: requirements.weights: all are 0, so that nothing counts; give "
                "one a weight, "
                "or leave them out"
            ),
        ),
        (
            "weights: {decode_rate: -1}",
            "f:9:26: requirements.weights.decode_rate: must be at least 0, got -1",
        ),
        (
            "answers: {a b: c}",
            (
                "f:9:13: requirements.answers.'a b': must be letters, digits, '.', '_' and '-', a "
                "letter or digit first, got 'a b'"
            ),
        ),
        (
            "answers: {a: 3}",
            ("f:9:16: requirements.answers.a: must be yes, no or a name, got 3 (a whole number)"),
        ),
        (
            "answers: {a: ' b'}",
            (
                "f:9:16: requirements.answers.a: must be one line of text without control "
                "characters, and without spaces at its ends, got ' b'"
            ),
        ),
        (
            "max_memory_bytes: 9999999GiB99",
            (
                "f:9:21: requirements.max_memory_bytes: must be a number of bytes, or a size such "
                "as 4GiB, got '9999999GiB99' (text)"
            ),
        ),
        (
            f"max_memory_bytes: {'9' * 400}TiB",
            (
                "f:9:21: requirements.max_memory_bytes: more than any memory, got "
                f"'{'9' * 47}…' (text)"
            ),
        ),
        (
            "answers: {vision: yes}",
            "f:9:13: requirements.answers.vision: write it one level higher, as vision itself",
        ),
    ],
)
def test_what_is_wrong_has_its_place(line: str, said: str) -> None:
    """One line for one problem, which says what is allowed."""
    assert problem(line) == said


@pytest.mark.parametrize("written", ["pc", "PC", "Pc"])
def test_a_target_is_read_in_capitals_too(written: str) -> None:
    """People write PC."""
    assert needs(f"target: {written}").target == "pc"


def test_images_without_more_than_text_are_a_contradiction() -> None:
    """It is told at the line of multimodal, beside what else is wrong."""
    said = problem("vision: yes", "multimodal: no", "max_ttft_s: soon").splitlines()
    assert [line[: line.index(" ")] for line in said] == ["f:10:15:", "f:11:15:"]
    assert "with vision: yes this is yes" in said[0]


def test_a_goal_that_nobody_can_weigh_names_those_that_can_be() -> None:
    """A misspelled goal is refused with all that there are."""
    said = problem("weights: {speed: 1}")
    assert said.startswith("f:9:13: requirements.weights.speed: must be 'decode_rate', 'ttft_s'")


def test_the_schema_takes_what_the_loader_takes() -> None:
    """Editors allow yes, true and sizes, and no other text."""
    schema = scenario_schema()
    check = jsonschema.Draft202012Validator(
        {**schema["$defs"]["Requirements"], "$defs": schema["$defs"]}  # type: ignore[index]
    )
    good = {"vision": "yes", "multimodal": True, "max_memory_bytes": "4GiB", "answers": {"a": "b"}}
    assert check.is_valid(good)
    assert not check.is_valid({"vision": "maybe"})
    assert not check.is_valid({"max_memory_bytes": "lots"})
