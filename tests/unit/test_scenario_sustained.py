"""Sustained work in a scenario: what goes with it, and that there is time for it."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from edgebench.harness.errors import ScenarioError, UsageError
from edgebench.harness.overrides import Overrides, apply_overrides, check_time
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.scenario.model import Scenario

VALID = """\
schema_version: 1
name: heat
model: {name: tiny, source: "path:tiny.gguf"}
variants:
  - {runner: engine, threads: [1, 2]}
workloads:
  - {name: long, prompt_tokens: 9, generate_tokens: 9, sustained: 2m}
  - {name: chat, prompt_tokens: 9, generate_tokens: 9}
measure: {time_budget_s: 600, cooldown: {within_celsius: 5, at_most_s: 60}}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, filename="f")
    return str(caught.value).splitlines()


def test_a_length_of_time_is_written_as_people_write_it() -> None:
    """`2m` is 120 s, and cooling down has its own limits."""
    scenario = parse_scenario(VALID, filename="f")
    assert [each.sustained for each in scenario.workloads] == [120.0, None]
    assert scenario.measure.cooldown is not None
    assert scenario.measure.cooldown.within_celsius == 5


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("9s", "must last at least 10 s, got 9 s"),
        ("10ms", "must last at least 10 s, got 0.01 s"),
        ("0", "must be a time such as 90s, 10m or 1h, got 0"),
        ("ten", "must be a time such as 90s, 10m or 1h"),
        ("true", "must be a time such as 90s, 10m or 1h, got true"),
        ("25h", "must last at most 24 h, got 25 h"),
    ],
)
def test_other_lengths_are_refused(wrong: str, told: str) -> None:
    """Too short to show heat, longer than a day, or no time at all."""
    (problem,) = problems(VALID.replace("sustained: 2m", f"sustained: {wrong}"))
    assert problem.startswith("f:7:")
    assert "workloads[0].sustained" in problem
    assert told in problem


def test_a_task_or_a_rated_text_is_not_sustained() -> None:
    """Each has its reason."""
    task = "{name: long, task: text-summarizer, prompt: A text., sustained: 2m}"
    old = "{name: long, prompt_tokens: 9, generate_tokens: 9, sustained: 2m}"
    (problem,) = problems(VALID.replace(old, task))
    assert "a task is run whole, once a repetition; leave this out beside task" in problem
    rated = "{name: long, quality: {text: builtin:prose}, sustained: 2m}"
    found = "\n".join(problems(VALID.replace(old, rated)))
    assert "a text is rated once, and no time is measured" in found


def test_it_has_a_prompt_and_a_length_like_any_other() -> None:
    """Nothing is generated of nothing."""
    found = problems(VALID.replace("prompt_tokens: 9, generate_tokens: 9, sus", "sus"))
    assert any("give a prompt" in each for each in found)
    assert any("how many tokens to generate" in each for each in found)


def test_a_time_budget_that_it_does_not_fit_into_is_refused() -> None:
    """2 variants of 2 min are 240 s, and the chat needs some time too: 240 are not enough."""
    assert parse_scenario(VALID.replace("600", "241"), filename="f")
    (problem,) = problems(VALID.replace("600", "240"))
    column = VALID.splitlines()[6].index("2m") + 1
    assert problem == (
        f"f:7:{column}: workloads[0].sustained: the sustained work of 2 variants takes 240 s, and "
        "measure.time_budget_s, for the whole run, is 240; raise it above 240"
    )


def test_alone_it_may_take_all_the_time() -> None:
    """10 min of work in a budget of 10 min, the default."""
    text = VALID.replace("2m", "5m").replace("time_budget_s: 600, ", "")
    alone = "\n".join(line for line in text.splitlines() if "chat" not in line)
    assert parse_scenario(alone, filename="f").measure.time_budget_s == 600
    (problem,) = problems(text)
    assert "takes 600 s" in problem


def test_the_model_itself_refuses_it_too() -> None:
    """What is read back from a result was checked as well."""
    scenario = parse_scenario(VALID, filename="f").model_dump(mode="json")
    scenario["measure"]["time_budget_s"] = 100
    with pytest.raises(ValidationError, match="takes 240 s"):
        Scenario.model_validate(scenario)


def test_a_quick_look_is_a_few_seconds_of_it() -> None:
    """And what it makes is a scenario that can be read back."""
    quick = apply_overrides(parse_scenario(VALID, filename="f"), Overrides(quick=True))
    assert quick.workloads[0].sustained == 10.0
    assert Scenario.model_validate(quick.model_dump(mode="json"))


def test_a_time_budget_of_the_command_line_is_held_to_it_as_well() -> None:
    """The error says how much is needed."""
    scenario = parse_scenario(VALID, filename="f")
    with pytest.raises(UsageError, match="takes 240 s, and the time budget is 60 s") as caught:
        apply_overrides(scenario, Overrides(time_budget_s=60))
    assert "more than 240, in seconds" in str(caught.value.remedy)
    assert apply_overrides(scenario, Overrides(time_budget_s=60, workloads=["chat"]))


def test_both_sides_of_an_interleaved_run_need_their_time() -> None:
    """Twice 240 s in 400 s."""
    scenario = parse_scenario(VALID.replace("600", "400"), filename="f")
    with pytest.raises(UsageError, match="of both sides takes 480 s"):
        check_time(scenario, sides=2)
