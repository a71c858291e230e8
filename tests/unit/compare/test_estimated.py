"""Estimates in comparisons: never against measurements, and named as what they are."""

from __future__ import annotations

import datetime as dt
import json
import re

import pytest
from side_sample import run

from edgebench.harness.compare.compare import compare
from edgebench.harness.compare.matching import match
from edgebench.harness.compare.merging import merged
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.gate.evaluate import evaluate
from edgebench.harness.gate.policy_file import parse_policy
from edgebench.harness.results.run import Run
from edgebench.reports.comparing.as_json import comparison_json
from edgebench.reports.comparing.gate_terminal import gate_text
from edgebench.reports.comparing.github import gate_annotations
from edgebench.reports.comparing.gitlab import gate_metrics
from edgebench.reports.comparing.junit import gate_junit
from edgebench.reports.comparing.markdown import comparison_markdown, gate_markdown
from edgebench.reports.comparing.terminal import comparison_text

KEY = "energy_per_token_j"
POLICY = "schema_version: 1\nlimits:\n  energy_per_token_j: {worse_by: 5%, at_most: 1}\n"


def energies(name: str, scale: float, *, estimated: bool) -> Run:
    values: list[float | None] = [scale * each for each in (2.0, 2.01, 1.99, 2.0, 2.005, 1.995)]
    made = run(name, {"v": {KEY: values}}, units={KEY: "J/token"})
    if not estimated:
        return made
    trials = tuple(
        each.model_copy(
            update={"metrics": {KEY: each.metrics[KEY].model_copy(update={"source": "estimated"})}}
        )
        for each in made.trials
    )
    return Run(made.path, made.record, trials)


def sides(*, baseline: bool, candidate: bool):
    return match(
        side_of_run(energies("a", 1.0, estimated=baseline)),
        side_of_run(energies("b", 2.0, estimated=candidate)),
    )


@pytest.mark.parametrize(("baseline", "candidate"), [(True, False), (False, True)])
def test_estimate_is_not_compared_with_a_measurement(baseline, candidate) -> None:
    """Twice the energy of another kind of number is no worsening."""
    (row,) = compare(sides(baseline=baseline, candidate=candidate)).rows
    assert (row.verdict, row.answer.ratio) == ("not_compared", None)
    said = ["measured", "estimated"]
    assert row.why == f"the baseline's is {said[baseline]}, the candidate's {said[candidate]}"


def test_runs_of_both_kinds_are_not_put_together() -> None:
    """Of one side with a run of each kind, there is no median."""
    both = [
        side_of_run(energies("a", 1.0, estimated=True)),
        side_of_run(energies("b", 1.0, estimated=False)),
    ]
    (cell,) = merged(both, "both").cells.values()
    assert cell.metrics[KEY].values == ()
    assert cell.metrics[KEY].reason == "it is estimated in some of its runs and measured in others"


def test_comparison_of_estimates_says_so_in_each_form() -> None:
    """Text, Markdown and JSON name what is compared as estimated."""
    found = compare(sides(baseline=True, candidate=True))
    (row,) = found.rows
    assert row.verdict == "worse"
    for text in (comparison_text(found), comparison_markdown(found)):
        lines = [line for line in text.splitlines() if "J/token" in line]
        assert lines
        assert all("estimated" in line for line in lines)
    (told,) = comparison_json(found)["rows"]
    assert told["estimated"] is True


def test_measured_comparison_does_not_say_so() -> None:
    """The word stands where it belongs only."""
    found = compare(sides(baseline=False, candidate=False))
    assert "estimated" not in comparison_text(found)
    (told,) = comparison_json(found)["rows"]
    assert told["estimated"] is False


def test_gate_on_estimates_says_so_in_each_form() -> None:
    """A merge request that is stopped by an estimate reads that it was one."""
    policy = parse_policy(POLICY, filename="gate.yaml")
    gate = evaluate(sides(baseline=True, candidate=True), policy, today=dt.date(2026, 1, 1))
    assert {check.status for check in gate.checks} == {"fail"}
    for text in (
        gate_text(gate),
        gate_markdown(gate),
        gate_annotations(gate),
        gate_junit(gate),
        gate_metrics(gate),
        json.dumps([check.message for check in gate.checks]),
    ):
        assert re.search(r"(Energy per token|J/token).{0,40}\(?estimated", text), text


def test_gate_on_estimates_says_so_where_only_names_are_read() -> None:
    """A test's name, an annotation's title, a metric's labels and a table's column say it too."""
    policy = parse_policy(POLICY, filename="gate.yaml")
    gate = evaluate(sides(baseline=True, candidate=True), policy, today=dt.date(2026, 1, 1))
    kinds = {check.kind: check for check in gate.checks}
    assert kinds.keys() == {"worse_by", "at_most"}
    assert all(check.estimated for check in gate.checks)
    names = re.findall(r'testcase [^>]*name="([^"]*)"', gate_junit(gate))
    assert sorted(names) == [
        "energy_per_token_j (estimated): at most 1 J/token",
        "energy_per_token_j (estimated): at most 5 % worse",
    ]
    titles = re.findall(r"::error title=(.*?)::", gate_annotations(gate))
    assert titles == ["v / w%3A Energy per token (estimated)"] * 2
    (metric,) = (
        line for line in gate_metrics(gate).splitlines() if line.startswith("edgebench_energy")
    )
    assert metric.startswith(
        'edgebench_energy_per_token_j{variant="v",workload="w",source="estimated"} '
    )
    rows = [line for line in gate_markdown(gate).splitlines() if line.startswith("| `v / w`")]
    assert rows
    assert all("J/token (estimated)" in line.split("|")[2] for line in rows)


def test_gate_on_measurements_has_plain_names() -> None:
    """The word stands where it belongs only."""
    policy = parse_policy(POLICY, filename="gate.yaml")
    gate = evaluate(sides(baseline=False, candidate=False), policy, today=dt.date(2026, 1, 1))
    for text in (gate_junit(gate), gate_annotations(gate), gate_metrics(gate), gate_markdown(gate)):
        assert "estimated" not in text
