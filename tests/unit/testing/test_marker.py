"""What a test may be marked with, and what it is told where that is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.harness.errors import UsageError
from edgebench.testing.marker import Asked, changed, read_marks


def mark(**arguments: object) -> pytest.Mark:
    return pytest.mark.edgebench(**arguments).mark


def test_what_is_not_said_has_defaults() -> None:
    """A scenario is enough: every cell of it, as the scenario says."""
    assert read_marks([mark(scenario="s.yaml")]) == Asked(scenario="s.yaml")


def test_the_nearest_marker_wins_argument_by_argument() -> None:
    """A module names the scenario, a class the workload, a test the variant."""
    nearest_first = [
        mark(variant="a*"),
        mark(variant="b*", workload="chat"),
        mark(scenario=Path("s.yaml"), workload="long", repetitions=3),
    ]
    assert read_marks(nearest_first) == Asked(
        scenario="s.yaml", variant="a*", workload="chat", repetitions=3
    )


def test_what_differs_is_written_as_on_the_command_line() -> None:
    """Truth values as YAML writes them, keys in an order that does not depend on the test."""
    asked = read_marks([mark(scenario="s", against={"threads": 2, "memory_map": False})])
    assert asked.against == (("memory_map", "false"), ("threads", "2"))


def test_a_change_replaces_only_what_it_names() -> None:
    """run(repetitions=…) leaves the rest of the marker as it is."""
    asked = Asked(scenario="s", variant="a")
    assert changed(asked, {"repetitions": 9}) == Asked(scenario="s", variant="a", repetitions=9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "does not know which scenario"),
        ({"scenario": "s", "varaint": "x"}, "did you mean 'variant'?"),
        ({"scenario": "s", "colour": 1}, "allowed: against, baseline, confidence"),
        ({"scenario": 7}, "scenario=…) must be a scenario's file or name, not 7 (a whole number)"),
        ({"scenario": ""}, "must be a scenario's file or name, not '' (text)"),
        ({"scenario": None}, "must be a scenario's file or name, not nothing"),
        ({"scenario": b"s"}, "must be a scenario's file or name, not bytes"),
        ({"scenario": "s", "variant": ["a"]}, "variant=…) must be a pattern"),
        ({"scenario": "s", "workload": ""}, "workload=…) must be a pattern"),
        ({"scenario": "s", "repetitions": 0}, "must be a whole number of at least 1"),
        ({"scenario": "s", "repetitions": True}, "not true (true or false)"),
        ({"scenario": "s", "repetitions": 2.5}, "not 2.5 (a number)"),
        ({"scenario": "s", "time_budget_s": 0}, "must be a number of seconds above 0"),
        ({"scenario": "s", "time_budget_s": float("inf")}, "a number of seconds above 0"),
        ({"scenario": "s", "time_budget_s": float("nan")}, "a number of seconds above 0"),
        ({"scenario": "s", "against": {}}, "must be what differs"),
        ({"scenario": "s", "against": {"threads": None}}, "must be what differs"),
        ({"scenario": "s", "against": "threads=2"}, "must be what differs"),
        ({"scenario": "s", "baseline": 3}, "baseline=…) must be a path"),
        ({"scenario": "s", "worse_by": [1]}, "must be a share such as 0.05 or '5%', not a list"),
        ({"scenario": "s", "confidence": True}, "must be a share"),
    ],
)
def test_a_wrong_argument_is_named_with_what_it_may_be(
    arguments: dict[str, object], words: str
) -> None:
    """The message says which argument, what was given and what is allowed."""
    with pytest.raises(UsageError) as caught:
        read_marks([mark(**arguments)])
    assert words in str(caught.value)


def test_an_argument_without_a_name_is_refused() -> None:
    """The message shows how the marker is written."""
    with pytest.raises(UsageError, match=r"takes arguments by name, not 's\.yaml'"):
        read_marks([pytest.mark.edgebench("s.yaml").mark])
