"""``edgebench noise``: a scenario against itself, and what a gate on this machine could notice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.run_options import (
    out_option,
    runners_option,
    time_budget_option,
    workloads_option,
)

if TYPE_CHECKING:
    from edgebench.harness.noise.model import NoiseReport

SCHEMA_VERSION = 1
"""Of ``noise.json``; 1 is the first."""

REPETITIONS = 20

EPILOG = """\
SCENARIO is a path, or the name of a built-in scenario. It is run twice, in the same blocks and in
random order, so it takes twice as long. What is found is written beside the two runs. Exit status:
0 done; 2 the scenario or the command line is wrong; 3 some cells failed; 4 nothing could be run; 5
there is nothing to compare; 130 interrupted.
"""


@click.command(epilog=EPILOG)
@click.argument("scenario", required=False)
@out_option
@runners_option
@workloads_option
@click.option(
    "--repetitions",
    type=click.IntRange(min=2),
    help=f"So many on each side.  [default: {REPETITIONS}]",
)
@time_budget_option
@click.option(
    "--of",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="RUN_DIR",
    help="Run nothing: tell the noise of such a run again, named by either of its folders.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def noise(
    scenario: str | None,
    out: Path,
    runners: tuple[str, ...],
    workloads: tuple[str, ...],
    repetitions: int | None,
    time_budget: float | None,
    of: Path | None,
    *,
    as_json: bool,
) -> int:
    """Run SCENARIO against itself: how noisy is it here, and what could a gate notice?"""
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.cli.interleaved import (  # noqa: PLC0415
        run_pair,
        stop_on_terminate,
        tell_how_to_go_on,
    )
    from edgebench.cli.progress import make_observer  # noqa: PLC0415
    from edgebench.harness.against import Sides  # noqa: PLC0415
    from edgebench.harness.errors import ExitStatus, UsageError  # noqa: PLC0415
    from edgebench.harness.execute import new_run_folder  # noqa: PLC0415
    from edgebench.harness.interleaving import planned_pair  # noqa: PLC0415
    from edgebench.harness.overrides import Overrides, apply_overrides  # noqa: PLC0415
    from edgebench.harness.records import Settings  # noqa: PLC0415
    from edgebench.harness.scenario.config import load_config  # noqa: PLC0415
    from edgebench.harness.scenario.find import find_scenario  # noqa: PLC0415
    from edgebench.harness.scenario.loader import load_scenario  # noqa: PLC0415
    from edgebench.runners.registry import runner_classes  # noqa: PLC0415

    if of is not None:
        if scenario is not None or runners or workloads or repetitions or time_budget:
            msg = "--of tells of a run as it was made"
            raise UsageError(msg, remedy="Leave out SCENARIO and the options that change it.")
        return _finish(_against_itself(of), as_json=as_json)
    if scenario is None:
        msg = "name a SCENARIO, or by --of a run that was made before"
        raise UsageError(msg, remedy="`edgebench noise smollm2-135m` runs a built-in one.")
    configured = load_config().runners.items()
    pythons = {name: item.python for name, item in configured if item.python}
    path = find_scenario(scenario)
    loaded = load_scenario(path, runners=runner_classes(), configured=pythons)
    overrides = Overrides(runners, workloads, repetitions or REPETITIONS, time_budget)
    resolved = apply_overrides(loaded, overrides)
    settings = Settings(
        folder=new_run_folder(out, resolved.name),  # each side has its own beside it
        base=path.parent,
        scenario_path=path.resolve(),
        pythons=pythons,
        command=["edgebench", *sys.argv[1:]],
    )
    pair = planned_pair(Sides(resolved, resolved, ""), settings)
    stop_on_terminate()
    try:
        with make_observer(quiet=as_json) as observer:
            run_pair(pair, observer)
    except KeyboardInterrupt:
        tell_how_to_go_on(pair)
        return ExitStatus.INTERRUPTED
    return _finish(pair.folders, as_json=as_json)


def _against_itself(folder: Path) -> tuple[Path, Path]:
    """Both sides of a run of something against itself.

    Raises:
        BaselineError: it has no other side.
        UsageError: its sides were meant to differ.
    """
    from edgebench.harness.compare.partner import interleaved_pair  # noqa: PLC0415
    from edgebench.harness.errors import UsageError  # noqa: PLC0415
    from edgebench.harness.results.run import read_record  # noqa: PLC0415
    from edgebench.harness.scenario.problems import one_line  # noqa: PLC0415

    folders = interleaved_pair(folder)
    for each in folders:
        found = read_record(each).interleaved
        if found is not None and found.difference:
            msg = f"--of {one_line(str(folder))}: its sides differ ({one_line(found.difference)})"
            raise UsageError(msg, remedy="To compare them, use `edgebench compare`.")
    return folders


def _finish(folders: tuple[Path, Path], *, as_json: bool) -> int:
    from edgebench.cli.output import tell_failures  # noqa: PLC0415
    from edgebench.harness.compare.matching import match  # noqa: PLC0415
    from edgebench.harness.compare.sides import read_side  # noqa: PLC0415
    from edgebench.harness.errors import ExitStatus  # noqa: PLC0415
    from edgebench.harness.noise.report import noise_of  # noqa: PLC0415
    from edgebench.harness.results.run import read_run  # noqa: PLC0415
    from edgebench.harness.results.writer import write_atomically  # noqa: PLC0415
    from edgebench.reports.comparing.noise_terminal import noise_text  # noqa: PLC0415

    records = [read_run(folder).record for folder in folders]
    for side, record in zip(("baseline", "candidate"), records, strict=True):
        tell_failures(record.cells, side)
    cells = [cell for record in records for cell in record.cells]
    if not any(cell.n for cell in cells):
        click.echo("edgebench: nothing could be run", err=True)
        return ExitStatus.NOTHING_RAN
    baseline, candidate = (read_side([folder]) for folder in folders)
    report = noise_of(match(baseline, candidate))
    text = json.dumps(noise_json(report, folders), indent=2, allow_nan=False) + "\n"
    first = folders[0]
    file = first.with_name(f"{first.name.removesuffix('-baseline')}-noise.json")
    write_atomically(file, text.encode())
    if as_json:
        click.echo(text, nl=False)
    else:
        click.echo(f"{noise_text(report)}\n")
        click.echo(f"results    {folders[0]}\n           {folders[1]}")
        click.echo(f"noise      {file}")
    whole = all(cell.status == "ok" for cell in cells)
    return ExitStatus.DONE if whole else ExitStatus.SOME_CELLS_FAILED


def noise_json(report: NoiseReport, folders: tuple[Path, Path]) -> dict[str, object]:
    """What was found, for scripts; every figure is finite or null."""
    from dataclasses import asdict  # noqa: PLC0415

    found = report.suggestion
    return {
        "schema_version": SCHEMA_VERSION,
        "baseline": str(folders[0]),
        "candidate": str(folders[1]),
        "machine": report.comparison.matched.candidate.machine.fingerprint,
        "confidence": report.comparison.confidence,
        "alarmed": bool(report.alarms),
        "noise": [asdict(row) for row in report.rows],
        "drifts": [asdict(each) for each in report.drifts],
        "alarms": [{"cell": row.cell, "metric": row.metric} for row in report.alarms],
        "suggestion": None
        if found is None
        else {**asdict(found), "policy": found.policy(report.comparison.confidence)},
    }
