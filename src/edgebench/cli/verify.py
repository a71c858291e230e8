"""``edgebench verify``: does every variant compute the same model?"""

from __future__ import annotations

import json
import tempfile
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.progress import make_observer
from edgebench.cli.run_options import runners_option, workloads_option
from edgebench.harness.errors import ExitStatus, UsageError

if TYPE_CHECKING:
    from edgebench.harness.observer import Observer
    from edgebench.harness.records import Settings
    from edgebench.harness.results.model import RunRecord
    from edgebench.harness.scenario.expand import ExpandedVariant
    from edgebench.harness.scenario.model import Scenario

RESULT_FILE = "verify.json"

EPILOG = """\
SCENARIO is a path, or the name of a built-in scenario. Exit status: 0 every variant in high
precision agrees with the reference; 2 the scenario or the command line is wrong; 3 a variant
differs, or could not be verified; 4 nothing could be verified; 130 interrupted.
"""


@click.command(epilog=EPILOG)
@click.argument("scenario")
@runners_option
@workloads_option
@click.option(
    "--high-precision",
    is_flag=True,
    help="Add for each framework its most exact artifact (F32, fp32), which is judged.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help=f"Folder to keep {RESULT_FILE} and the frameworks' logs in.",
)
def verify(
    scenario: str,
    runners: tuple[str, ...],
    workloads: tuple[str, ...],
    high_precision: bool,  # noqa: FBT001 - click's own way
    as_json: bool,  # noqa: FBT001
    out: Path | None,
) -> int:
    """Compare every variant of SCENARIO with the reference, on its prompts.

    The reference is the source model itself, run in float32 by numpy. Compared are the token ids
    of the prompts, the greedy text, and the likelihoods over the prompts. Variants in high
    precision must agree; quantised ones are shown.
    """
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.harness.overrides import Overrides, apply_overrides  # noqa: PLC0415
    from edgebench.harness.records import Settings  # noqa: PLC0415
    from edgebench.harness.scenario.config import load_config  # noqa: PLC0415
    from edgebench.harness.scenario.expand import expand  # noqa: PLC0415
    from edgebench.harness.scenario.find import find_scenario  # noqa: PLC0415
    from edgebench.harness.scenario.loader import load_scenario  # noqa: PLC0415
    from edgebench.harness.store.sources import synthetic_source  # noqa: PLC0415
    from edgebench.harness.verify import high_precision_variants  # noqa: PLC0415
    from edgebench.runners.registry import runner_classes  # noqa: PLC0415

    config = load_config()
    pythons = {name: item.python for name, item in config.runners.items() if item.python}
    path = find_scenario(scenario)
    classes = runner_classes()
    loaded = load_scenario(path, runners=classes, configured=pythons)
    resolved = apply_overrides(loaded, Overrides(runners=runners, workloads=workloads))
    if synthetic_source(resolved.model.source) is not None:
        msg = (
            f"the scenario {resolved.name!r} has synthetic weights: random numbers, of which two "
            "frameworks may well say different things, so there is nothing to verify"
        )
        raise UsageError(msg, remedy="Verify with a real model as `source:` below `model:`.")
    variants = expand(resolved)
    if high_precision:
        made = {name: kind.QUANTIZATIONS for name, kind in classes.items()}
        variants += high_precision_variants(variants, made)
    kept: AbstractContextManager[str | Path] = (
        tempfile.TemporaryDirectory() if out is None else nullcontext(out)
    )
    with kept as folder, make_observer(quiet=as_json) as observer:
        settings = Settings(
            folder=Path(folder), base=path.parent, scenario_path=path.resolve(), pythons=pythons
        )
        record = _verified(resolved, variants, settings, observer)
    return _show(record, out, as_json=as_json)


def _verified(
    scenario: Scenario, variants: list[ExpandedVariant], settings: Settings, observer: Observer
) -> RunRecord:
    from edgebench.harness.board import LocalBoard  # noqa: PLC0415
    from edgebench.harness.device_profiles.scenario import profile_of  # noqa: PLC0415
    from edgebench.harness.fit import Room  # noqa: PLC0415
    from edgebench.harness.prepare import Preparation  # noqa: PLC0415
    from edgebench.harness.records import first_record, prepared_record  # noqa: PLC0415
    from edgebench.harness.results.writer import LOGS_FOLDER  # noqa: PLC0415
    from edgebench.harness.store.sources import parse_source  # noqa: PLC0415
    from edgebench.harness.store.store import ModelStore  # noqa: PLC0415
    from edgebench.harness.verify import Verification, verified_record  # noqa: PLC0415
    from edgebench.harness.workshop import Workshop  # noqa: PLC0415

    logs = settings.folder / LOGS_FOLDER
    board = LocalBoard()
    machine = board.machine()
    device = scenario.device
    # It runs here, whatever other device the scenario is for.
    here = device.ssh is None and device.adb is None
    profile = profile_of(device, settings.base) if here else None
    room = Room(profile, machine.memory_bytes)
    workshop = Workshop(ModelStore(), logs, observer, settings.pythons, room)
    source = parse_source(scenario.model.source, base=settings.base)
    prepared = Preparation(workshop, board).run(scenario, variants, source)
    verification = Verification(settings.folder, observer, scenario.measure.timeout_s)
    first = first_record(scenario, variants, settings, machine)
    record = prepared_record(first, prepared)
    return verified_record(record, verification.run(prepared))


def _show(record: RunRecord, out: Path | None, *, as_json: bool) -> int:
    from rich.console import Console  # noqa: PLC0415

    from edgebench.harness.results.writer import write_atomically  # noqa: PLC0415
    from edgebench.reports.labels import with_labels  # noqa: PLC0415
    from edgebench.reports.sameness import sameness_view  # noqa: PLC0415
    from edgebench.reports.terminal import sameness_table, sameness_text  # noqa: PLC0415

    status = _status(record)
    shown = {
        **record.model_dump(
            mode="json",
            include={
                "schema_version", "scenario_name", "edgebench_version", "created_at", "machine",
                "reference", "variants", "workloads",
            },
        ),
        "exit_status": int(status),
    }  # fmt: skip
    text = json.dumps(shown, indent=2)
    if out is not None:
        write_atomically(out / RESULT_FILE, text.encode() + b"\n")
    if as_json:
        click.echo(text)
        return status
    view = sameness_view(with_labels(record.variants), record.reference)
    assert view is not None  # verifying says something of every variant
    Console().print(sameness_table(view))
    Console(highlight=False).print(sameness_text(view))
    if status == ExitStatus.NOTHING_RAN:
        click.echo("edgebench: nothing could be verified", err=True)
    if out is not None:
        click.echo(f"result   {out / RESULT_FILE}")
    return status


def _status(record: RunRecord) -> ExitStatus:
    verdicts = {variant.sameness.verdict for variant in record.variants if variant.sameness}
    if verdicts <= {"failed"}:
        return ExitStatus.NOTHING_RAN
    return ExitStatus.SOME_CELLS_FAILED if verdicts & {"differs", "failed"} else ExitStatus.DONE
