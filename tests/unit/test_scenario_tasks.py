"""Workloads that are whole tasks: what they need, and what does not go with them."""

from __future__ import annotations

import jsonschema
import pytest
from pydantic import ValidationError

from edgebench.harness.errors import ScenarioError
from edgebench.harness.overrides import Overrides, apply_overrides
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.scenario.model import Workload
from edgebench.harness.scenario.schema import scenario_schema

VALID = """\
schema_version: 1
name: tasks
model: {name: tiny, source: "path:tiny.litertlm"}
variants:
  - {runner: engine}
workloads:
  - {name: summary, task: text-summarizer, prompt: A long text.}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, filename="f")
    return str(caught.value).splitlines()


def test_a_task_needs_a_name_and_a_text_and_nothing_else() -> None:
    """No number of tokens is asked for: a task ends by itself."""
    (workload,) = parse_scenario(VALID, filename="f").workloads
    assert (workload.task, workload.prompt) == ("text-summarizer", "A long text.")
    assert workload.generate_tokens is None


BESIDE = "leave this out beside task"


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("prompt_tokens", "9", "a task works on the text of prompt"),
        ("generate_tokens", "9", "a task ends by itself"),
        ("chat_template", "true", "a task puts the text in the model's chat template itself"),
        ("text", "synthetic", "a task works on the text of prompt"),
        ("depth", "4", "a task begins with an empty KV cache"),
    ],
)
def test_what_does_not_go_with_a_task_has_its_place_and_its_reason(
    key: str, value: str, why: str
) -> None:
    """One key too many in a valid file gives one line that says what to do."""
    text = VALID.replace("prompt: A", f"{key}: {value}, prompt: A")
    assert problems(text) == [f"f:7:44: workloads[0].{key}: {why}; {BESIDE}"]


def test_a_task_without_a_text_is_refused() -> None:
    """There is nothing to work on."""
    text = VALID.replace(", prompt: A long text.", "")
    assert problems(text) == ["f:7:5: workloads[0]: a task works on a text; give it as prompt"]


def test_a_misspelled_task_is_told_from_those_that_there_are() -> None:
    """The message names what is possible."""
    text = VALID.replace("text-summarizer", "text-summariser")
    expected = "must be 'text-summarizer', got 'text-summariser' (text)"
    assert problems(text) == [f"f:7:27: workloads[0].task: {expected}"]


def test_a_workload_without_a_task_needs_its_number_of_tokens() -> None:
    """What a task can do without is missing elsewhere."""
    text = VALID.replace("task: text-summarizer, ", "")
    missing = "this key is missing: how many tokens to generate, exactly"
    assert problems(text) == [f"f:7:5: workloads[0].generate_tokens: {missing}"]


@pytest.mark.parametrize("more", [{"generate_tokens": 4}, {"depth": 1}, {"prompt": None}])
def test_the_model_keeps_the_rules_of_tasks_without_the_loader(more: dict[str, object]) -> None:
    """A workload that is made by a program is checked as one from a file."""
    with pytest.raises(ValidationError, match="task"):
        Workload.model_validate({"name": "w", "task": "text-summarizer", "prompt": "x"} | more)


@pytest.mark.parametrize(
    ("workload", "valid"),
    [
        ({"task": "text-summarizer", "prompt": "x"}, True),
        ({"prompt": "x", "generate_tokens": 4}, True),
        ({"prompt_tokens": 3, "generate_tokens": 4}, True),
        ({"prompt": "x"}, False),
        ({"task": "text-summarizer"}, False),
        ({"task": "text-summarizer", "prompt": "x", "generate_tokens": 4}, False),
        ({"task": "text-summarizer", "prompt": "x", "depth": 4}, False),
        ({"task": "text-summarizer", "prompt_tokens": 4}, False),
        ({"task": "another", "prompt": "x"}, False),
    ],
)
def test_the_schema_knows_tasks_as_the_loader_does(
    workload: dict[str, object], *, valid: bool
) -> None:
    """An editor that uses the schema marks what the loader refuses."""
    scenario = {
        "schema_version": 1,
        "name": "s",
        "model": {"name": "m", "source": "path:m"},
        "variants": [{"runner": "r"}],
        "workloads": [{"name": "w", **workload}],
    }
    assert jsonschema.Draft202012Validator(scenario_schema()).is_valid(scenario) is valid


def test_a_quick_run_leaves_the_text_of_a_task_alone() -> None:
    """Half a text would be another task; only the repetitions are fewer."""
    scenario = parse_scenario(VALID, filename="f")
    quick = apply_overrides(scenario, Overrides(quick=True))
    assert quick.workloads == scenario.workloads
    assert quick.measure.repetitions.max == 2
