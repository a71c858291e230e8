"""The JSON Schema of a device profile, for editors."""

from __future__ import annotations

from edgebench.harness.device_profiles.model import DeviceProfile
from edgebench.harness.scenario.schema import DIALECT, PlainSchema


def device_schema() -> dict[str, object]:
    """The schema of a profile's file, in JSON Schema 2020-12."""
    schema = DeviceProfile.model_json_schema(schema_generator=PlainSchema)
    return {"$schema": DIALECT, **schema, "title": "edgebench device profile"}
