"""Two runs in the same blocks, as commands make them: their folders, their end, going on."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.harness.against import changed, is_change, other_scenario
from edgebench.harness.compare.partner import interleaved_pair
from edgebench.harness.errors import (
    EdgebenchError,
    ExitStatus,
    NotComparableError,
    ResultError,
    UsageError,
)
from edgebench.harness.execute import Planned, execute_interleaved
from edgebench.harness.interleaving import PlannedPair, with_blocks
from edgebench.harness.overrides import apply_overrides
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run, refuse_strays
from edgebench.harness.scenario.find import find_scenario
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.scenario.model import Scenario
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

    from edgebench.harness.against import Sides
    from edgebench.harness.compare.model import Comparison
    from edgebench.harness.observer import Observer
    from edgebench.harness.overrides import Overrides
    from edgebench.harness.results.run import Run

# Before ------------------------------------------------------------------------------------------


def sides_against(
    scenario: Scenario,
    given: Sequence[str],
    overrides: Overrides,
    pythons: Mapping[str, str],
    base: Path,
) -> tuple[Sides, Path | None]:
    """Both scenarios of ``--against``, and the baseline's file where it has one of its own.

    Args:
        scenario: the candidate's.
        given: what `--against` was given.
        overrides: what else the command line changes, in both.
        pythons: interpreters by runner from the user's configuration.
        base: the folder of the candidate's scenario.

    Raises:
        UsageError: what was given fits nothing here.
    """
    chosen = overrides.repetitions is not None or overrides.quick
    enough = scenario if chosen else with_blocks(scenario)
    runners, path = runner_classes(), None
    if all(map(is_change, given)):
        sides = changed(enough, given, runners=runners, pythons=pythons, base=base)
    elif len(given) > 1:
        msg = "--against takes either one file or several of KEY=VALUE"
        raise UsageError(msg, remedy="Write the changes into the file.")
    else:
        path = find_scenario(given[0])
        loaded = load_scenario(path, runners=runners, configured=pythons)
        other = apply_overrides(loaded, overrides)
        bases = (base, path.parent)
        sides = other_scenario(
            enough, other, given[0], runners=runners, pythons=pythons, bases=bases
        )
    _tell_raised(scenario, enough)
    return sides, path


def _tell_raised(written: Scenario, raised: Scenario) -> None:
    """That more is measured than the scenario says, where that is so."""
    before, after = written.measure.repetitions, raised.measure.repetitions
    if before != after:
        click.echo(
            f"edgebench: at least {after.min} repetitions on each side, not the scenario's "
            f"{before.min}:\n"
            "  fewer are seldom certain. --repetitions sets their number.",
            err=True,
        )


def resumed_pair(run: Run, pythons: Mapping[str, str]) -> PlannedPair:
    """Both sides of an interrupted run, by one of them.

    Raises:
        BaselineError: the other one is not there.
        ResultError: it is not of the same run, or can't be read.
    """
    baseline, candidate = interleaved_pair(run.path)
    both = [run if path == run.path else read_run(path) for path in (baseline, candidate)]
    sides = [each.record.interleaved for each in both]
    if len({each and each.session for each in sides}) > 1:
        msg = f"{baseline} and {candidate} are not the two sides of one run"
        raise ResultError(msg, remedy="Was a folder renamed, or copied over it? Start a new run.")
    for each in both:
        refuse_strays(each)
    first, second = (_resumed(each, pythons) for each in both)
    return PlannedPair(first, second)


def resumed_scenario(run: Run) -> tuple[Scenario, Path | None]:
    """The scenario that a run was begun with, and its file.

    Raises:
        ResultError: it can't be read.
    """
    record = run.record
    try:
        scenario = Scenario.model_validate_json(json.dumps(record.scenario))
    except ValueError as error:
        msg = f"the scenario in {run.path} can't be read: {error}"
        raise ResultError(msg, remedy="Start a new run.") from error
    return scenario, Path(record.scenario_path) if record.scenario_path else None


def _resumed(run: Run, pythons: Mapping[str, str]) -> Planned:
    scenario, path = resumed_scenario(run)
    settings = Settings(
        folder=run.path,
        base=path.parent if path else Path(),
        scenario_path=path,
        quick=run.record.quick,
        pythons=pythons,
        command=run.record.command,
        interleaved=run.record.interleaved,
    )
    return Planned(scenario, settings, run)


# While -------------------------------------------------------------------------------------------


def stop_on_terminate() -> None:
    """Have what ends a job do what Ctrl-C does: keep what was finished."""
    signal.signal(signal.SIGTERM, _interrupt)
    # A terminal that was closed; what is started with nohup goes on.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _interrupt)


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    raise KeyboardInterrupt


def run_pair(pair: PlannedPair, observer: Observer) -> None:
    """Run both; where that stops early, say where what there is stands.

    Raises:
        EdgebenchError: as it came.
    """
    try:
        execute_interleaved(pair.baseline, pair.candidate, observer)
    except EdgebenchError:
        tell_what_is_left(*pair.folders)
        raise


def tell_what_is_left(*folders: Path) -> None:
    """After a failure: where what was finished stands, if anything was begun."""
    made = [str(each) for each in folders if each.is_dir()]
    if made:
        click.echo(f"edgebench: stopped; what there is stands in {' and in '.join(made)}", err=True)


# After -------------------------------------------------------------------------------------------


def tell_how_to_go_on(pair: PlannedPair) -> None:
    """After an interruption."""
    named = shlex.quote(str(pair.folders[1]))
    lines = [
        "edgebench: interrupted; what was finished is kept. Go on with both sides:",
        f"  edgebench run --resume {named}",
    ]
    if is_against_itself(pair):
        lines += ["and then see how noisy it was:", f"  edgebench noise --of {named}"]
    click.echo("\n".join(lines), err=True)


def is_against_itself(pair: PlannedPair) -> bool:
    """Whether it is a run of `edgebench noise`, whose sides do not differ."""
    interleaved = pair.candidate.settings.interleaved
    return interleaved is not None and not interleaved.difference


def finish_pair(
    pair: PlannedPair, formats: tuple[str, ...], lang: str, *, as_json: bool
) -> ExitStatus:
    """Write the reports of both, show how they compare, and say how it went."""
    # Late: tables need libraries that nothing before this does.
    from edgebench.cli.output import exit_status, run_json, tell_failures  # noqa: PLC0415
    from edgebench.harness.results.summary import summarize  # noqa: PLC0415
    from edgebench.reports.data import build_report_data  # noqa: PLC0415
    from edgebench.reports.write import write_reports  # noqa: PLC0415

    shown: dict[str, object] = {}
    statuses, reports = [], []
    for side, folder in zip(("baseline", "candidate"), pair.folders, strict=True):
        run = read_run(folder)
        written = dict(
            zip(formats, write_reports(folder, formats=formats, language=lang), strict=True)
        )
        cells = summarize(run.record, run.trials)
        status = exit_status(cells, build_report_data(run))
        shown[side] = run_json(run, cells, written, status)
        statuses.append(status)
        reports.append(written)
        if not as_json:
            tell_failures(cells, side)
            if status == ExitStatus.NOTHING_RAN:
                click.echo(f"edgebench: {side}: nothing could be run", err=True)
    comparison, refusal = _compared(pair.folders)
    status = _worst(statuses, refusal)
    if as_json:
        _print_json(pair, shown, comparison, refusal, status)
    else:
        # Why sides of which little was measured can't be compared is plain.
        _print(pair, reports, comparison, "" if status == ExitStatus.INTERRUPTED else refusal)
    return status


def _compared(folders: tuple[Path, Path]) -> tuple[Comparison | None, str]:
    """The comparison; or none, and why."""
    from edgebench.harness.compare.compare import compare  # noqa: PLC0415
    from edgebench.harness.compare.matching import match  # noqa: PLC0415
    from edgebench.harness.compare.sides import read_side  # noqa: PLC0415

    try:
        baseline, candidate = (read_side([folder]) for folder in folders)
        return compare(match(baseline, candidate)), ""
    except (NotComparableError, ResultError) as error:
        return None, error.message


def _worst(statuses: Sequence[ExitStatus], refusal: str) -> ExitStatus:
    if ExitStatus.INTERRUPTED in statuses:
        return ExitStatus.INTERRUPTED
    if all(status == ExitStatus.NOTHING_RAN for status in statuses):
        return ExitStatus.NOTHING_RAN
    if any(status != ExitStatus.DONE for status in statuses):
        return ExitStatus.SOME_CELLS_FAILED
    return ExitStatus.NOT_COMPARABLE if refusal else ExitStatus.DONE


def _print_json(
    pair: PlannedPair,
    shown: dict[str, object],
    comparison: Comparison | None,
    refusal: str,
    status: ExitStatus,
) -> None:
    from edgebench.reports.comparing.as_json import comparison_json  # noqa: PLC0415

    interleaved = pair.candidate.settings.interleaved
    assert interleaved is not None
    whole = {
        "session": interleaved.session,
        "difference": interleaved.difference,
        "exit_status": int(status),
        **shown,
        "comparison": comparison_json(comparison) if comparison else None,
        "not_compared": refusal or None,
    }
    click.echo(json.dumps(whole, indent=2, allow_nan=False))


def _print(
    pair: PlannedPair,
    reports: Sequence[Mapping[str, Path]],
    comparison: Comparison | None,
    refusal: str,
) -> None:
    from edgebench.reports.comparing.terminal import comparison_text  # noqa: PLC0415

    folders = pair.folders
    if comparison is not None:
        click.echo(f"{comparison_text(comparison)}\n")
    else:
        for line in refusal.splitlines():
            click.echo(f"edgebench: not compared: {line}", err=True)
    for side, folder, written in zip(("baseline", "candidate"), folders, reports, strict=True):
        # The page first: it is what people open.
        for form in sorted(written, key=lambda each: each != "html"):
            click.echo(f"report     {written[form]}")
        click.echo(f"{side:<11}{folder}")
    if comparison is not None:
        named = shlex.quote(str(folders[1]))
        click.echo(f"compare    edgebench compare {named}")
        click.echo(f"gate       edgebench gate --candidate {named}")
        if is_against_itself(pair):
            click.echo(f"noise      edgebench noise --of {named}")
