"""``edgebench gate``: compare with a baseline, and fail where a limit is broken."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edgebench.cli.files import write_text
from edgebench.harness.errors import BaselineError, ExitStatus, ResultError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.compare.model import Side
    from edgebench.harness.gate.model import Gate
    from edgebench.harness.gate.policy import Policy

EPILOG = """\
Exit status: 0 every limit is kept, or undecided; 1 a limit is broken; 2 the command line, the
policy or the candidate is wrong; 5 the baseline is missing or does not compare.
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
@click.option("--json", "json_file", metavar="FILE|-", type=_FILE, help="Write it as JSON.")
@click.option(
    "--markdown", metavar="FILE", type=_FILE, help="Write it for a pull request's comment."
)
@click.option("--junit", metavar="FILE", type=_FILE, help="Write it as JUnit XML.")
@click.option("--gitlab-metrics", metavar="FILE", type=_FILE, help="Write the medians for GitLab.")
@click.option(
    "--github/--no-github",
    default=None,
    help="Print annotations, and add to the step's summary; on where GITHUB_ACTIONS is true.",
)
def gate(
    baselines: tuple[Path, ...],
    candidates: tuple[Path, ...],
    policy_file: Path | None,
    json_file: Path | None,
    markdown: Path | None,
    junit: Path | None,
    gitlab_metrics: Path | None,
    github: bool | None,  # noqa: FBT001 - click's own way
    *,
    across_machines: bool,
) -> int:
    """Compare a candidate with a baseline, and fail where it is worse than a policy allows.

    A limit is broken where the worsening is at least as large as the limit, and certain.
    """
    policy, name = _policy(policy_file)
    outcome = _outcome(baselines, candidates, policy, name, across_machines=across_machines)
    _print(outcome, as_json=json_file == _STDOUT)
    if github if github is not None else os.environ.get("GITHUB_ACTIONS") == "true":
        _tell_github(outcome, on_stderr=json_file == _STDOUT)
    _write_all(outcome, json_file, markdown, junit, gitlab_metrics)
    return ExitStatus.DONE if outcome.passed else ExitStatus.REGRESSION


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


def _print(outcome: Gate, *, as_json: bool) -> None:
    if as_json:
        click.echo(_json(outcome))
        return
    from edgebench.reports.comparing.gate_terminal import gate_text  # noqa: PLC0415

    click.echo(gate_text(outcome))


def _json(outcome: Gate) -> str:
    from edgebench.reports.comparing.as_json import gate_json  # noqa: PLC0415

    return json.dumps(gate_json(outcome), indent=2, ensure_ascii=False, allow_nan=False)


def _tell_github(outcome: Gate, *, on_stderr: bool) -> None:
    from edgebench.reports.comparing.github import (  # noqa: PLC0415
        gate_annotations,
        gate_summary,
    )

    annotations = gate_annotations(outcome)
    if annotations:
        click.echo(annotations.rstrip("\n"), err=on_stderr)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(gate_summary(outcome).rstrip("\n") + "\n")
        except OSError as error:
            # The outcome must not depend on it.
            click.echo(f"edgebench: {summary} can't be written ({error.strerror})", err=True)


def _write_all(
    outcome: Gate,
    json_file: Path | None,
    markdown: Path | None,
    junit: Path | None,
    gitlab_metrics: Path | None,
) -> None:
    """The files, which are written whether or not the gate fails."""
    from edgebench.reports.comparing.gitlab import gate_metrics  # noqa: PLC0415
    from edgebench.reports.comparing.junit import gate_junit  # noqa: PLC0415
    from edgebench.reports.comparing.markdown import gate_markdown  # noqa: PLC0415

    if json_file is not None and json_file != _STDOUT:
        write_text(json_file, _json(outcome))
    if markdown is not None:
        write_text(markdown, gate_markdown(outcome))
    if junit is not None:
        write_text(junit, gate_junit(outcome))
    if gitlab_metrics is not None:
        write_text(gitlab_metrics, gate_metrics(outcome))
