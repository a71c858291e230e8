"""A gate as JUnit's XML, which nearly every CI shows as tests. English only."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

from edgebench import __version__
from edgebench.harness.gate.wording import percent
from edgebench.reports.comparing import words
from edgebench.reports.text import clean, one_line

if TYPE_CHECKING:
    from edgebench.harness.gate.model import Check, Gate

_CONFIRMS = {"pass": "", "warn": "warning: ", "allowed": "allowed: "}


def gate_junit(gate: Gate) -> str:
    """A gate as one test suite, named as its scenario; each limit on each cell is a test.

    A broken limit is a failure; one that the samples can't decide is skipped, with the reason; a
    warning or an allowance passes and says so in its output. A gate that could decide nothing has
    an error besides, as a test of its own. Elements and attributes are the ones
    that Jenkins, GitLab and Azure read; none has a duration, for a limit takes no time.
    """
    matched = gate.comparison.matched
    newest = matched.candidate.runs[-1]
    could_not = gate.outcome == "undecided"
    counts = {
        "tests": len(gate.checks) + could_not,
        "failures": sum(each.status == "fail" for each in gate.checks),
        "errors": int(could_not),
        "skipped": sum(each.status == "undecided" for each in gate.checks),
    }
    numbers = {key: str(count) for key, count in counts.items()}
    # The schema that Jenkins' plugin checks with has no `skipped` here.
    summed = {key: text for key, text in numbers.items() if key != "skipped"}
    suites = ET.Element("testsuites", {"name": "edgebench gate", **summed})
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": one_line(newest.scenario_name),
            **numbers,
            # To the second and without a zone, as the published schemas have it.
            "timestamp": one_line(newest.created_at)[:19],
        },
    )
    properties = ET.SubElement(suite, "properties")
    for key, value in (
        ("edgebench", __version__),
        ("headline", gate.headline),
        ("policy", gate.policy),
        ("confidence", percent(gate.comparison.confidence)),
        ("baseline", words.side(matched.baseline)),
        ("candidate", words.side(matched.candidate)),
        ("machine", words.machine(matched.candidate.machine)),
        ("across_machines", matched.across_machines),
    ):
        if value:
            ET.SubElement(properties, "property", {"name": key, "value": one_line(value)})
    if could_not:
        whole = ET.SubElement(suite, "testcase", {"classname": "gate", "name": "can decide"})
        message = one_line(f"{gate.headline}. {gate.remedy}.")
        ET.SubElement(whole, "error", {"message": message, "type": "undecided"})
    for check in gate.checks:
        _test(suite, check)
    ET.indent(suites)
    written: str = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'


def _test(suite: ET.Element, check: Check) -> None:
    test = ET.SubElement(
        suite, "testcase", {"classname": one_line(check.cell), "name": _name(check)}
    )
    message = one_line(check.message)
    if check.status == "fail":
        kind = "undecided" if check.undecided else check.kind
        failure = ET.SubElement(test, "failure", {"message": message, "type": kind})
        failure.text = _whole(check)
    elif check.status == "undecided":
        settled = words.settled_by(check.compared)
        detail = one_line(f"{settled} would settle it" if settled else check.detail)
        ET.SubElement(
            test, "skipped", {"message": f"undecided: {message}{'. ' if detail else ''}{detail}"}
        )
    else:
        ET.SubElement(test, "system-out").text = _CONFIRMS[check.status] + _whole(check)


def _name(check: Check) -> str:
    """What is asked of the cell, such as ``decode_rate: at most 5 % worse``."""
    asked = words.limit(check)
    estimated = words.ESTIMATED if check.estimated else ""
    return one_line(f"{check.metric}{estimated}: {asked}" if check.metric else asked)


def _whole(check: Check) -> str:
    settled = words.settled_by(check.compared) if check.undecided else ""
    lines = [check.message, check.detail, f"{settled} would settle it" if settled else ""]
    if check.compared is not None and check.compared.answer.ratio is not None:
        baseline, candidate = words.figures(check.compared)
        changed = words.change_and_interval(check.compared.answer)
        lines.append(f"baseline {baseline}, candidate {candidate}, change {changed}")
    if check.allowance is not None:
        until = check.allowance.until.isoformat()
        lines.append(f"allowance until {until}: {check.allowance.reason}")
    return clean("\n".join(line for line in lines if line))
