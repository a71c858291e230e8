"""``edgebench gate``: compare with a baseline, and fail where a limit is broken."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.files import write_text
from edgebench.harness.errors import (
    BaselineError,
    EdgebenchError,
    ExitStatus,
    NotComparableError,
    ResultError,
    UsageError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from edgebench.harness.compare.model import Side
    from edgebench.harness.gate.model import Gate
    from edgebench.harness.gate.policy import Policy

EPILOG = """\
Exit status: 0 no limit is broken; 1 a limit is broken; 2 the command line, the policy or the
candidate is wrong; 5 the baseline is missing or does not compare, or there were too few repetitions
to decide anything. Files are written in each case but 2.
"""

_FILE = click.Path(dir_okay=False, path_type=Path)
_STDOUT = Path("-")


@click.command(epilog=EPILOG)
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="What is compared with: a run's folder, a saved baseline, or a folder of saved baselines, "
    "of which that of the candidate's machine is taken. May be repeated. Left out, it is the run "
    "that the candidate was interleaved with.",
)
@click.option(
    "--candidate",
    "candidates",
    multiple=True,
    required=True,
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="What is judged: a run's folder. May be repeated.",
)
@click.option(
    "--policy",
    "policy_file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The limits (docs/gate.md); without it those of decode rate, time to first token, task "
    "latency, peak memory, model size and perplexity.",
)
@click.option(
    "--across-machines", is_flag=True, help="Compare results of different machines, labelled so."
)
@click.option(
    "--json",
    "json_file",
    metavar="FILE|-",
    type=_FILE,
    help="Write it as JSON. A - in place of one of these files prints it, and nothing else.",
)
@click.option(
    "--markdown", metavar="FILE|-", type=_FILE, help="Write it for a pull request's comment."
)
@click.option("--junit", metavar="FILE|-", type=_FILE, help="Write it as JUnit XML.")
@click.option(
    "--gitlab-metrics", metavar="FILE|-", type=_FILE, help="Write the medians for GitLab."
)
@click.option(
    "--github/--no-github",
    default=None,
    help="Print annotations, and add to the step's summary; on where GITHUB_ACTIONS is true.",
)
@click.argument("others", nargs=-1, metavar="", type=click.Path(path_type=Path))
def gate(
    baselines: tuple[Path, ...],
    candidates: tuple[Path, ...],
    policy_file: Path | None,
    json_file: Path | None,
    markdown: Path | None,
    junit: Path | None,
    gitlab_metrics: Path | None,
    github: bool | None,  # noqa: FBT001 - click's own way
    others: tuple[Path, ...],
    *,
    across_machines: bool,
) -> int:
    """Compare a candidate with a baseline, and fail where it is worse than a policy allows.

    A limit is broken where the worsening is at least as large as the limit, and certain.
    """
    if others:
        msg = f"--baseline and --candidate take one path each, and {others[0]} stands behind them."
        remedy = "Where a pattern such as results/* means several, repeat the option for each path."
        raise UsageError(msg, remedy=remedy)
    asked = {"json": json_file, "markdown": markdown, "junit": junit, "gitlab": gitlab_metrics}
    files = {kind: path for kind, path in asked.items() if path is not None}
    _refuse_unwritable(files)
    policy, name = _policy(policy_file)
    on_github = os.environ.get("GITHUB_ACTIONS") == "true" if github is None else github
    try:
        outcome = _outcome(baselines, candidates, policy, name, across_machines=across_machines)
    except NotComparableError as error:
        # What an earlier gate wrote must not stand there as if it still held.
        _tell(_refused(error, candidates, policy=name), files, on_github=on_github)
        raise
    _tell(_told(outcome), files, on_github=on_github)
    if outcome.outcome == "undecided":
        return ExitStatus.NOT_COMPARABLE
    return ExitStatus.DONE if outcome.passed else ExitStatus.REGRESSION


@dataclass(frozen=True)
class _Told:
    """An outcome in every form: how to make its text, its files and what GitHub shows."""

    text: Callable[[], str]
    forms: Mapping[str, Callable[[], str]]
    annotations: Callable[[], str]
    summary: Callable[[], str]


def _told(outcome: Gate) -> _Told:
    from edgebench.reports.comparing.as_json import gate_json  # noqa: PLC0415
    from edgebench.reports.comparing.gate_terminal import gate_text  # noqa: PLC0415
    from edgebench.reports.comparing.github import (  # noqa: PLC0415
        gate_annotations,
        gate_summary,
    )
    from edgebench.reports.comparing.gitlab import gate_metrics  # noqa: PLC0415
    from edgebench.reports.comparing.junit import gate_junit  # noqa: PLC0415
    from edgebench.reports.comparing.markdown import gate_markdown  # noqa: PLC0415

    return _Told(
        text=lambda: gate_text(outcome),
        forms={
            "json": lambda: _json(gate_json(outcome)),
            "markdown": lambda: gate_markdown(outcome),
            "junit": lambda: gate_junit(outcome),
            "gitlab": lambda: gate_metrics(outcome),
        },
        annotations=lambda: gate_annotations(outcome),
        summary=lambda: gate_summary(outcome),
    )


def _refused(error: NotComparableError, candidates: Sequence[Path], *, policy: str) -> _Told:
    from edgebench.reports.comparing import refused  # noqa: PLC0415

    it = refused.Refused(error.message, error.remedy or "", _scenario(candidates), policy)
    return _Told(
        text=str,
        forms={
            "json": lambda: _json(refused.refused_json(it)),
            "markdown": lambda: refused.refused_markdown(it),
            "junit": lambda: refused.refused_junit(it),
            "gitlab": lambda: refused.NO_METRICS,
        },
        annotations=lambda: refused.refused_annotation(it),
        summary=lambda: refused.refused_text(it),
    )


def _scenario(candidates: Sequence[Path]) -> str:
    """The name of the candidates' scenario; empty where it can't be told."""
    from edgebench.harness.compare.sides import read_side  # noqa: PLC0415

    for each in candidates:
        try:
            return read_side([each]).runs[-1].scenario_name
        except EdgebenchError:
            continue
    return ""


def _refuse_unwritable(files: Mapping[str, Path]) -> None:
    """Tell at once of a folder that is not there: it is a typing error more often than not."""
    printed = [
        "--gitlab-metrics" if kind == "gitlab" else f"--{kind}"
        for kind, path in files.items()
        if path == _STDOUT
    ]
    if len(printed) > 1:
        msg = f"Only one of {' and '.join(printed)} can be printed by -."
        raise UsageError(msg, remedy="Name files for the others.")
    for path in files.values():
        if path != _STDOUT and not path.parent.is_dir():
            msg = f"{path} can't be written: {path.parent} is no folder."
            raise UsageError(msg, remedy="Make the folder, or name a file in one that is there.")


def _policy(path: Path | None) -> tuple[Policy, str]:
    # Imported late: `edgebench --help` needs none of it.
    from edgebench.harness.gate.evaluate import DEFAULT_NAME  # noqa: PLC0415
    from edgebench.harness.gate.policy import default_policy  # noqa: PLC0415
    from edgebench.harness.gate.policy_file import load_policy  # noqa: PLC0415

    return (default_policy(), DEFAULT_NAME) if path is None else (load_policy(path), str(path))


def _outcome(
    baselines: Sequence[Path],
    candidates: Sequence[Path],
    policy: Policy,
    policy_name: str,
    *,
    across_machines: bool,
) -> Gate:
    from datetime import UTC, datetime  # noqa: PLC0415

    from edgebench.harness.compare.matching import match  # noqa: PLC0415
    from edgebench.harness.gate.evaluate import evaluate  # noqa: PLC0415

    baseline, candidate = _sides(baselines, candidates, across_machines=across_machines)
    matched = match(baseline, candidate, across_machines=across_machines)
    today = datetime.now(UTC).date()
    return evaluate(matched, policy, today=today, policy_name=policy_name)


def _sides(
    baselines: Sequence[Path], candidates: Sequence[Path], *, across_machines: bool
) -> tuple[Side, Side]:
    from edgebench.harness.compare.sides import read_baseline_side, read_side  # noqa: PLC0415

    candidate = read_side(candidates)
    found = baselines or _partners(candidates)
    baseline = read_baseline_side(
        found, fingerprint=candidate.machine.fingerprint, across_machines=across_machines
    )
    return baseline, candidate


def _partners(candidates: Sequence[Path]) -> list[Path]:
    """The runs that candidates were interleaved with."""
    from edgebench.harness.compare.partner import partner_of  # noqa: PLC0415

    try:
        return [partner_of(each) for each in candidates]
    except (BaselineError, ResultError) as error:
        msg = f"There is no baseline to compare with: {error.message}"
        remedy = "Name one with --baseline: a run's folder, or what `edgebench baseline save` wrote"
        raise BaselineError(msg, remedy=f"{remedy}.") from error


def _tell(told: _Told, files: Mapping[str, Path], *, on_github: bool) -> None:
    """Write the files, then print: whoever reads may have gone before it is all read.

    Raises:
        UsageError: a file can't be written; the others are, and the outcome is printed.
    """
    failed: UsageError | None = None
    printed: str | None = None
    for kind, path in files.items():
        text = told.forms[kind]()
        if path == _STDOUT:
            printed = text
            continue
        try:
            write_text(path, text)
        except UsageError as error:
            failed = failed or error
    if on_github:
        _append_summary(told)
    text = told.text() if printed is None else printed
    if text:
        click.echo(text.rstrip("\n"))
    if on_github and (annotations := told.annotations()):
        click.echo(annotations.rstrip("\n"), err=printed is not None)
    if failed is not None:
        raise failed


def _json(fields: Mapping[str, object]) -> str:
    return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False)


def _append_summary(told: _Told) -> None:
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(told.summary().rstrip("\n") + "\n")
    except OSError as error:
        # The outcome must not depend on it.
        click.echo(f"edgebench: {summary} can't be written ({error.strerror})", err=True)
