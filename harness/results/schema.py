"""The JSON Schemas of the result files."""

from __future__ import annotations

from edgebench.harness.results.model import RunRecord
from edgebench.harness.results.trial import Trial
from edgebench.harness.scenario.schema import DIALECT, PlainSchema


def run_schema() -> dict[str, object]:
    """The schema of ``run.json``, in JSON Schema 2020-12."""
    return _schema(RunRecord, "edgebench run")


def trial_schema() -> dict[str, object]:
    """The schema of a line of ``trials.jsonl``, in JSON Schema 2020-12."""
    return _schema(Trial, "edgebench trial")


def _schema(record: type[RunRecord | Trial], title: str) -> dict[str, object]:
    schema = record.model_json_schema(schema_generator=PlainSchema)
    return {"$schema": DIALECT, **schema, "title": title}
