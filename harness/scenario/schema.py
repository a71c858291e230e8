"""The JSON Schema of what people write, for editors and for whoever makes scenarios by program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic.json_schema import GenerateJsonSchema

from edgebench.harness.scenario.model import Scenario
from edgebench.harness.scenario.values import OPTION_NAME

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_SCALARS: list[JsonSchemaValue] = [
    {"type": "boolean"},
    {"type": "number"},
    {"type": "string", "minLength": 1},
]


class PlainSchema(GenerateJsonSchema):
    """Schemas without a title for each field, which would only repeat its name."""

    def field_title_should_be_set(self, schema: CoreSchema) -> bool:  # noqa: ARG002 - as overridden
        """Never."""
        return False


def scenario_schema() -> dict[str, object]:
    """The schema of a scenario's file, in JSON Schema 2020-12."""
    schema = Scenario.model_json_schema(schema_generator=PlainSchema)
    definitions = schema["$defs"]

    # In a file, a runner's options stand beside it, each a scalar or a sweep.
    variant = definitions["Variant"]
    del variant["properties"]["options"]
    variant["propertyNames"] = {"pattern": OPTION_NAME}
    variant["additionalProperties"] = {
        "description": "An option of the runner; a list of values is a sweep.",
        "anyOf": [*_SCALARS, _list_of({"anyOf": _SCALARS})],
    }
    text = {"type": "string", "minLength": 1}
    variant["properties"]["quantization"] |= {"anyOf": [text, _list_of(text)]}

    text = {"prompt": {"type": "string"}}
    length = {"prompt_tokens": {"type": "integer"}}
    nothing = {"type": "null"}
    generated = {"generate_tokens": {"type": "integer"}, "task": nothing, "quality": nothing}
    not_generated = {
        "prompt_tokens": nothing,
        "generate_tokens": nothing,
        "chat_template": {"const": False},
        "text": {"const": "natural"},
        "depth": {"const": 0},
    }
    whole_task = {"task": {"type": "string"}, "quality": nothing, **not_generated}
    rated = {"quality": {"type": "object"}, "prompt": nothing, "task": nothing, **not_generated}
    definitions["Workload"]["oneOf"] = [
        {"required": ["prompt", "generate_tokens"], "properties": text | generated},
        {"required": ["prompt_tokens", "generate_tokens"], "properties": length | generated},
        {"required": ["task", "prompt"], "properties": text | whole_task},
        {"required": ["quality"], "properties": rated},
    ]
    return {"$schema": DIALECT, "title": "edgebench scenario", **_without_title(schema)}


def _list_of(items: JsonSchemaValue) -> JsonSchemaValue:
    return {"type": "array", "minItems": 1, "uniqueItems": True, "items": items}


def _without_title(schema: JsonSchemaValue) -> JsonSchemaValue:
    return {key: value for key, value in schema.items() if key != "title"}
