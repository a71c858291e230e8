"""``edgebench run``: a scenario in, a report out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.interleaved import (
    finish_pair,
    resumed_pair,
    resumed_scenario,
    run_pair,
    sides_against,
    stop_on_terminate,
    tell_how_to_go_on,
    tell_what_is_left,
)
from edgebench.cli.progress import make_observer
from edgebench.cli.report_options import format_option, lang_option, predict_option
from edgebench.cli.run_options import (
    out_option,
    runners_option,
    time_budget_option,
    workloads_option,
)
from edgebench.harness.errors import EdgebenchError, ExitStatus, UsageError
from edgebench.harness.execute import execute, new_run_folder
from edgebench.harness.interleaving import planned_pair
from edgebench.harness.overrides import Overrides, apply_overrides
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run, refuse_strays
from edgebench.harness.scenario.config import load_config
from edgebench.harness.scenario.find import find_scenario
from edgebench.harness.scenario.loader import load_scenario
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from edgebench.harness.interleaving import PlannedPair
    from edgebench.harness.predict.device import DeviceFacts
    from edgebench.harness.results.run import Run

EPILOG = """\
SCENARIO is a path, or the name of a built-in scenario. Exit status: 0 done; 2 the scenario or the
command line is wrong; 3 finished, but some cells failed; 4 nothing could be run; 5 both sides of
--against ran and can't be compared; 130 interrupted.
"""


@click.command(epilog=EPILOG)
@click.argument("scenario", required=False)
@out_option
@runners_option
@workloads_option
@click.option(
    "--repetitions", type=click.IntRange(min=1), help="Exactly so many, in place of the scenario's."
)
@time_budget_option
@click.option(
    "--against",
    multiple=True,
    metavar="KEY=VALUE",
    help="Run a baseline in the same blocks, with this in place of the scenario's: python=PATH, "
    "python.RUNNER=PATH, model=SOURCE, quantization=NAME, OPTION=VALUE; or another scenario's "
    "file. May be repeated. At least 10 repetitions, unless --repetitions says otherwise.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="One warm-up, two repetitions, shorter lengths: does everything work?",
)
@click.option(
    "--synthetic-weights",
    is_flag=True,
    help="Random weights in the shape of the scenario's model, without a download: for speed, "
    "memory and power. See docs/synthetic.md.",
)
@click.option(
    "--ssh",
    metavar="HOST",
    help="On that board: USER@HOST, or a name in ~/.ssh/config. See docs/devices.md.",
)
@click.option(
    "--python",
    metavar="PATH",
    help="On a board over SSH: the Python 3.11 or newer there that has the frameworks.",
)
@click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="RUN_DIR",
    help="Go on with an interrupted run.",
)
@format_option
@lang_option
@predict_option
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def run(
    scenario: str | None,
    out: Path,
    runners: tuple[str, ...],
    workloads: tuple[str, ...],
    repetitions: int | None,
    time_budget: float | None,
    against: tuple[str, ...],
    quick: bool,  # noqa: FBT001 - click's own way
    synthetic_weights: bool,  # noqa: FBT001
    ssh: str | None,
    python: str | None,
    resume: Path | None,
    formats: tuple[str, ...],
    lang: str,
    predict: tuple[DeviceFacts, ...],
    as_json: bool,  # noqa: FBT001
) -> int:
    """Run SCENARIO: prepare the models, measure, write the report."""
    config = load_config()
    pythons = {name: item.python for name, item in config.runners.items() if item.python}
    overrides = Overrides(
        runners, workloads, repetitions, time_budget, quick, synthetic_weights, ssh, python
    )
    resumed: Run | None = None
    pair: PlannedPair | None = None
    if resume is not None:
        if scenario is not None or against or overrides != Overrides():
            msg = "--resume goes on with the run as it was begun"
            raise UsageError(msg, remedy="Leave out SCENARIO and the options that change it.")
        resumed = read_run(resume)
        refuse_strays(resumed)
        resolved, path = resumed_scenario(resumed)
        folder, quick = resume, resumed.record.quick
        if resumed.record.interleaved is not None:
            pair = resumed_pair(resumed, pythons)
    else:
        if scenario is None:
            msg = "name a SCENARIO, or a run to go on with by --resume"
            raise UsageError(msg, remedy="`edgebench run smollm2-135m` runs a built-in one.")
        path = find_scenario(scenario)
        loaded = load_scenario(path, runners=runner_classes(), configured=pythons)
        resolved = apply_overrides(loaded, overrides)
        folder = new_run_folder(out, resolved.name)
    settings = Settings(
        folder=folder,
        base=path.parent if path else Path(),
        scenario_path=path.resolve() if path else None,
        quick=quick,
        pythons=pythons,
        command=resumed.record.command if resumed else ["edgebench", *sys.argv[1:]],
    )
    if against:
        sides, baseline_path = sides_against(resolved, against, overrides, pythons, settings.base)
        pair = planned_pair(sides, settings, baseline_path)
    if pair is not None and predict:
        msg = "--predict is of a run alone, and this one is interleaved with its baseline"
        raise UsageError(
            msg, remedy="`edgebench report RUN_DIR --predict NAME` does it afterwards."
        )
    stop_on_terminate()
    if pair is not None:
        return _run_pair(pair, formats, lang, as_json=as_json)
    try:
        with make_observer(quiet=as_json) as observer:
            execute(resolved, settings, observer, resumed=resumed)
    except KeyboardInterrupt:
        _finish(folder, formats, lang, predict, as_json=as_json)
        click.echo(
            "edgebench: interrupted; what was finished is kept. Go on with:\n"
            f"  edgebench run --resume {folder}",
            err=True,
        )
        return ExitStatus.INTERRUPTED
    except EdgebenchError:
        tell_what_is_left(folder)
        raise
    return _finish(folder, formats, lang, predict, as_json=as_json)


def _run_pair(pair: PlannedPair, formats: tuple[str, ...], lang: str, *, as_json: bool) -> int:
    try:
        with make_observer(quiet=as_json) as observer:
            run_pair(pair, observer)
    except KeyboardInterrupt:
        finish_pair(pair, formats, lang, as_json=as_json)
        tell_how_to_go_on(pair)
        return ExitStatus.INTERRUPTED
    return finish_pair(pair, formats, lang, as_json=as_json)


def _finish(
    folder: Path,
    formats: tuple[str, ...],
    lang: str,
    predict: tuple[DeviceFacts, ...],
    *,
    as_json: bool,
) -> int:
    """Write the reports, show the table, and say how it went."""
    # Late: plots and tables need libraries that nothing before this does.
    from edgebench.cli.output import show_run  # noqa: PLC0415
    from edgebench.reports.write import write_reports  # noqa: PLC0415

    finished = read_run(folder)
    written = write_reports(folder, formats=formats, language=lang, predict=predict)
    return show_run(finished, dict(zip(formats, written, strict=True)), as_json=as_json)
