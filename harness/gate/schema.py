"""The JSON Schema of a policy, for editors."""

from __future__ import annotations

from edgebench.harness.gate.policy import Cells, Policy
from edgebench.harness.scenario.schema import DIALECT, PlainSchema


def policy_schema() -> dict[str, object]:
    """The schema of a policy's file, in JSON Schema 2020-12."""
    schema = Policy.model_json_schema(schema_generator=PlainSchema)
    definitions = schema["$defs"]

    # What is written shorter than the model has it.
    definitions["Cells"]["properties"]["match"] = {
        "description": Cells.model_fields["match"].description,
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/Match"}],
    }
    off = {"enum": ["off", False]}
    for group in (schema, definitions["Cells"]):
        limits = group["properties"]["limits"]
        limits.pop("patternProperties")
        limits["minProperties"] = 1
        limits["additionalProperties"] = {"anyOf": [{"$ref": "#/$defs/Limit"}, off]}
    return {"$schema": DIALECT, **schema, "title": "edgebench gate policy"}
