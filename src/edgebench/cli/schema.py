"""``edgebench schema``: the JSON Schemas of the files."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument(
    "what",
    type=click.Choice(["scenario", "run", "trial", "baseline", "policy", "device"]),
    default="scenario",
)
def schema(what: str) -> None:
    """Print the JSON Schema of a scenario, a run's files, a baseline, a policy or a device profile.

    In an editor with YAML support, name the printed file in the first line of a scenario:

        # yaml-language-server: $schema=scenario.schema.json
    """
    # Imported late: `edgebench --help` needs no models.
    from edgebench.harness.compare.baseline_format import baseline_schema  # noqa: PLC0415
    from edgebench.harness.device_profiles.schema import device_schema  # noqa: PLC0415
    from edgebench.harness.gate.schema import policy_schema  # noqa: PLC0415
    from edgebench.harness.results.schema import run_schema, trial_schema  # noqa: PLC0415
    from edgebench.harness.scenario.schema import scenario_schema  # noqa: PLC0415

    make = {
        "scenario": scenario_schema,
        "run": run_schema,
        "trial": trial_schema,
        "baseline": baseline_schema,
        "policy": policy_schema,
        "device": device_schema,
    }[what]
    click.echo(json.dumps(make(), indent=2))
