"""The published JSON Schemas."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from edgebench.harness.compare.baseline_format import baseline_schema
from edgebench.harness.device_profiles.schema import device_schema
from edgebench.harness.gate.schema import policy_schema
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.schema import run_schema, trial_schema
from edgebench.harness.results.trial import Trial
from edgebench.harness.scenario.find import builtin_scenarios, find_scenario
from edgebench.harness.scenario.schema import scenario_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMAS = Path(__file__).parents[2] / "schemas"
MAKERS = {
    "scenario": scenario_schema,
    "run": run_schema,
    "trial": trial_schema,
    "baseline": baseline_schema,
    "policy": policy_schema,
    "device": device_schema,
}


def shipped(name: str) -> Any:
    return YAML(typ="safe", pure=True).load(find_scenario(name))


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(scenario_schema())


@pytest.mark.parametrize("name", MAKERS)
def test_a_committed_schema_is_not_stale(name: str) -> None:
    """Each schema in the repository is what the models say now."""
    committed = (SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8")
    assert committed == json.dumps(MAKERS[name](), indent=2) + "\n", (
        f"run: edgebench schema {name} > schemas/{name}.schema.json"
    )


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_schema_is_one_of_its_dialect(make: Callable[[], dict[str, object]]) -> None:
    """Each schema is valid JSON Schema 2020-12."""
    schema = make()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", builtin_scenarios())
def test_the_shipped_scenarios_are_valid(name: str) -> None:
    """What edgebench ships is what the schema allows."""
    validator().validate(shipped(name))


def test_every_field_is_described() -> None:
    """An editor has a sentence to show for each key of a scenario."""

    def fields(node: object, path: str = "") -> Iterator[tuple[str, dict[str, object]]]:
        if isinstance(node, dict):
            for key, value in node.get("properties", {}).items():
                yield f"{path}.{key}", value
            for key, value in node.items():
                yield from fields(value, f"{path}.{key}")

    schema = scenario_schema()
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    found = {path: field for path, field in fields(schema) if "oneOf" not in path}
    assert len(found) > 30
    for path, field in found.items():
        target = definitions.get(str(field.get("$ref", "")).rpartition("/")[2], {})
        assert field.get("description") or target.get("description"), path


@pytest.mark.parametrize(
    ("change", "valid"),
    [
        (lambda tree: tree["variants"][0].update(threads=[1, 2]), True),
        (lambda tree: tree["variants"][0].update(quantization=["source", "F16"]), True),
        (lambda tree: tree["variants"][0].update(flash_attention="on", mmap=False), True),
        (lambda tree: tree.pop("measure"), True),
        (lambda tree: tree.update(verify=True), True),
        (lambda tree: tree.update(verify="high_precision"), True),
        (lambda tree: tree.update(verify="yes"), False),
        (lambda tree: tree.update(verify=1), False),
        (lambda tree: tree["variants"][0].update(options={"threads": 1}), False),
        (lambda tree: tree["variants"][0].update(threads=None), False),
        (lambda tree: tree["variants"][0].update(threads=[]), False),
        (lambda tree: tree["variants"][0].update(quantization=8), False),
        (lambda tree: tree["variants"][0].pop("runner"), False),
        (lambda tree: tree["workloads"][0].update(prompt_tokens=3), False),
        (lambda tree: tree["workloads"][0].pop("prompt"), False),
        (lambda tree: tree["workloads"][0].update(generate_tokens=1), False),
        (lambda tree: tree.update(extra=1), False),
        (lambda tree: tree.update(schema_version=2), False),
        (lambda tree: tree.update(variants=[]), False),
        (lambda tree: tree["model"].update(sha256="abc"), False),
    ],
)
def test_the_schema_agrees_with_the_loader(
    tmp_path: Path, change: Callable[[Any], object], valid: bool
) -> None:
    """A change that the loader refuses is refused by the schema, and the other way round."""
    from edgebench.harness.errors import ScenarioError
    from edgebench.harness.scenario.loader import parse_scenario

    tree = copy.deepcopy(shipped("smollm2-135m"))
    change(tree)
    assert validator().is_valid(tree) is valid
    # JSON is YAML.
    text = json.dumps(tree)
    if valid:
        parse_scenario(text, filename="f")
    else:
        with pytest.raises(ScenarioError):
            parse_scenario(text, filename="f")


def test_a_trial_that_is_written_is_valid() -> None:
    """A trial as the model writes it is what its schema allows, unknown fields included."""
    trial = Trial(
        kind="generate",
        variant="v",
        workload="w",
        block=0,
        repetition=0,
        phase="measured",
        status="ok",
        started_at="2025-01-01T00:00:00Z",
        duration_s=1.0,
        metrics={
            "ttft_s": Measured(value=0.5, unit="s", source="observed"),
            "mbu": Measured.missing("1", "bandwidth was not measured"),
        },
    )
    written = json.loads(trial.model_dump_json())
    schema = jsonschema.Draft202012Validator(trial_schema())
    schema.validate(written)
    schema.validate({**written, "a_later_field": 1})
    assert not schema.is_valid({**written, "phase": "other"})
