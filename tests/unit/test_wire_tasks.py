"""What a runner says of a task, believed only where it can be true."""

from __future__ import annotations

import pytest

from edgebench.harness import wire
from edgebench.harness.errors import InvalidResultError, RunnerProtocolError
from edgebench.harness.metrics.timing import task_metrics
from edgebench.runners.base import TaskDescription, TaskResult, to_wire

GOOD = {"text": "naïve", "submitted_ns": 1_000_000_000, "finished_ns": 3_500_000_000}


def test_a_result_gives_its_latency_and_its_length() -> None:
    """2.5 s by the runner's own stamps, and five characters, however many bytes they take."""
    metrics = task_metrics(wire.task_result(GOOD))
    latency, length = metrics["task_latency_s"], metrics["task_output_characters"]
    assert (latency.value, latency.unit, latency.source) == (2.5, "s", "observed")
    assert (length.value, length.unit) == (5, "character")
    assert set(metrics) == {"task_latency_s", "task_output_characters"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"finished_ns": 999_999_999}, "time stamps go back"),
        ({"text": ""}, "empty text"),
        ({"text": " \n"}, "empty text"),
    ],
)
def test_what_can_not_be_true_is_no_result(change: dict[str, object], says: str) -> None:
    """No latency is computed from an answer in which nothing was made, or time goes back."""
    with pytest.raises(InvalidResultError, match=says):
        wire.task_result(GOOD | change)


@pytest.mark.parametrize("change", [{"text": None}, {"finished_ns": "soon"}])
def test_what_is_no_result_is_malformed(change: dict[str, object]) -> None:
    """Wrong types break the protocol."""
    with pytest.raises(RunnerProtocolError, match="result of a task is malformed"):
        wire.task_result(GOOD | change)


def test_a_task_is_not_loaded_before_it_begins() -> None:
    """A load time below 0 is refused."""
    with pytest.raises(InvalidResultError, match="ended before it began"):
        wire.loaded_task({"started_ns": 2, "ready_ns": 1, "effective_options": {}})


def test_a_description_comes_over_as_it_was() -> None:
    """Engine, version and what is embedded reach the host unchanged."""
    described = TaskDescription("Summarizer", "1.2", {"embedded engine": "Engine 3"})
    assert wire.task_description(to_wire(described)) == described


def test_a_result_goes_over_the_wire() -> None:
    """What the runner makes is what the host reads."""
    made = TaskResult("text", 1, 2)
    assert wire.task_result(to_wire(made)) == made
