"""Workloads that rate a text: what they need, and what does not go with them."""

from __future__ import annotations

import jsonschema
import pytest
from pydantic import ValidationError

from edgebench.harness.errors import ScenarioError
from edgebench.harness.overrides import Overrides, apply_overrides
from edgebench.harness.scenario.loader import parse_scenario
from edgebench.harness.scenario.model import Quality, Workload
from edgebench.harness.scenario.schema import scenario_schema

VALID = """\
schema_version: 1
name: quality
model: {name: tiny, source: "path:tiny.gguf"}
variants:
  - {runner: engine}
workloads:
  - name: prose
    quality: {text: builtin:prose}
"""


def changed(**keys: object) -> str:
    """The valid file with more keys in its group."""
    more = "".join(f", {key}: {value}" for key, value in keys.items())
    return VALID.replace("builtin:prose}", f"builtin:prose{more}}}")


def problems(text: str) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, filename="f")
    return str(caught.value).splitlines()


def test_a_text_is_all_that_must_be_named() -> None:
    """The rest has defaults: half a window stands before what is scored."""
    (workload,) = parse_scenario(VALID, filename="f").workloads
    quality = workload.quality
    assert quality is not None
    assert (quality.window, quality.stride_tokens, quality.first_scored) == (512, 256, 256)
    assert (quality.protocol, quality.bos, quality.max_tokens) == ("sliding", "model", 4096)
    assert "kl_divergence" in quality.metrics
    assert workload.generate_tokens is None


def test_a_window_of_another_size_keeps_its_halves() -> None:
    """Stride and first scored position follow the window."""
    quality = Quality(text="builtin:prose", window=100)
    assert (quality.stride_tokens, quality.first_scored) == (50, 50)


def test_the_native_protocol_has_its_own_places() -> None:
    """Windows side by side, scored from the token after the first half on."""
    quality = Quality(text="builtin:prose", protocol="llama-perplexity")
    assert (quality.stride_tokens, quality.first_scored) == (512, 257)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            {"stride": 300},
            (
                "quality.stride: a stride of 300 leaves tokens unscored: with windows of 512 "
                "scored from position 256 on, stride is at most 256"
            ),
        ),
        (
            {"score_from": 300},
            (
                "quality.score_from: a stride of 256 leaves tokens unscored: with windows of 512 "
                "scored from position 300 on, stride is at most 212"
            ),
        ),
        (
            {"score_from": 0, "stride": 512},
            (
                "quality.stride: a stride of 512 leaves tokens unscored: with windows of 512 "
                "scored from position 1 on, stride is at most 511"
            ),
        ),
        (
            {"score_from": 512},
            "quality.score_from: must be below window (512), or no token is scored, got 512",
        ),
        ({"stride": 0}, "quality.stride: must be at least 1, got 0"),
        ({"window": 3}, "quality.window: must be at least 4, got 3"),
        ({"max_tokens": 0}, "quality.max_tokens: must be at least 1, got 0"),
        (
            {"bos": "sometimes"},
            "quality.bos: must be 'model', 'always' or 'never', got 'sometimes' (text)",
        ),
        (
            {"metrics": "[perplexity, perplexity]"},
            "quality.metrics[1]: perplexity stands here twice",
        ),
        ({"metrics": "[]"}, "quality.metrics: must hold at least one item, got none"),
        (
            {"protocol": "llama-perplexity", "bos": "never"},
            "quality.bos: llama-perplexity has a rule of its own; leave this out",
        ),
        (
            {"protocol": "llama-perplexity", "max_tokens": 200},
            (
                "quality.max_tokens: must be at least 255: llama-perplexity scores that many "
                "tokens of each window of 512 and no part of a window, got 200"
            ),
        ),
        ({"max_token": 9}, "quality.max_token: unknown key; did you mean 'max_tokens'?"),
    ],
)
def test_what_does_not_go_together_is_said_in_one_line(
    keys: dict[str, object], expected: str
) -> None:
    """The place is the key's own."""
    (line,) = problems(changed(**keys))
    place, _, message = line.partition(" workloads[0].")
    assert message == expected or message.startswith(expected)
    assert place.startswith("f:8:")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("task", "text-summarizer", "a workload is either a task or rates a text"),
        ("prompt", "Hello", "the text is named in quality"),
        ("prompt_tokens", "9", "the text is named in quality"),
        ("generate_tokens", "9", "nothing is generated where a text is rated"),
        ("chat_template", "true", "a text is rated as it is"),
        ("depth", "4", "each window begins with an empty KV cache"),
    ],
)
def test_keys_of_other_workloads_are_refused(key: str, value: str, why: str) -> None:
    """One line says what to leave out."""
    text = VALID.replace("name: prose\n", f"name: prose\n    {key}: {value}\n")
    assert problems(text) == [f"f:8:5: workloads[0].{key}: {why}; leave this out beside quality"]


def test_a_workload_of_nothing_is_told_all_three_ways() -> None:
    """The third is a text to rate."""
    text = VALID.replace("    quality: {text: builtin:prose}\n", "")
    assert "or a text to rate as quality" in problems(text)[0]


def test_the_model_refuses_the_same_when_made_by_program() -> None:
    """Whoever makes scenarios without a file is told as well."""
    with pytest.raises(ValidationError, match="stride is at most 256"):
        Quality(text="builtin:prose", stride=257)
    with pytest.raises(ValidationError, match="leave this out beside quality"):
        Workload(name="a", quality=Quality(text="builtin:prose"), prompt="b")


@pytest.mark.parametrize("more", [{"generate_tokens": 4}, {"prompt": "b"}, {"quality": None}])
def test_the_schema_tells_the_kinds_of_workloads_apart(more: dict[str, object]) -> None:
    """Editors complain of what the loader refuses."""
    scenario = {
        "schema_version": 1,
        "name": "a",
        "model": {"name": "m", "source": "path:m"},
        "variants": [{"runner": "engine"}],
        "workloads": [{"name": "q", "quality": {"text": "builtin:code", "window": 64}}],
    }
    validator = jsonschema.Draft202012Validator(scenario_schema())
    assert not list(validator.iter_errors(scenario))
    scenario["workloads"][0].update(more)  # type: ignore[index]
    assert list(validator.iter_errors(scenario))


@pytest.mark.parametrize(("window", "asked", "made"), [(512, 4096, 256), (64, 20, 20)])
def test_a_quick_look_rates_less(window: int, asked: int, made: int) -> None:
    """One window, and no more than was asked for."""
    scenario = parse_scenario(changed(window=window, max_tokens=asked), filename="f")
    quick = apply_overrides(scenario, Overrides(quick=True))
    quality = quick.workloads[0].quality
    assert quality is not None
    assert quality.max_tokens == made
