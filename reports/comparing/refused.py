"""A gate that was refused, in every form that a gate has. English only."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.reports.comparing.as_json import tagged
from edgebench.reports.comparing.github import annotation
from edgebench.reports.comparing.markdown import marker_of
from edgebench.reports.comparing.markdown_words import sentence, within
from edgebench.reports.text import clean, one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

NO_METRICS: Final = "# EOF\n"
"""OpenMetrics of nothing."""

_UNKNOWN: Final = "unknown"


@dataclass(frozen=True, slots=True)
class Refused:
    """Why nothing was compared.

    Attributes:
        message, remedy: of the error; may have several lines.
        scenario: the candidate's; empty where it can't be told.
        policy: as in a gate.
    """

    message: str
    remedy: str
    scenario: str
    policy: str

    def lines(self) -> Iterator[str]:
        """All that is to be said."""
        for text in (self.message, self.remedy):
            yield from (line.strip() for line in text.splitlines() if line.strip())


def refused_markdown(refused: Refused) -> str:
    """A comment that takes the place of what an earlier gate of the scenario said."""
    return f"{marker_of(refused.scenario or _UNKNOWN)}\n{refused_text(refused)}"


def refused_text(refused: Refused) -> str:
    """The same without the marker."""
    head = f"### edgebench gate could not compare: {within(refused.scenario or _UNKNOWN)}"
    return "\n\n".join((head, *map(sentence, refused.lines()))) + "\n"


def refused_junit(refused: Refused) -> str:
    """One test with an error."""
    counts = {"tests": "1", "failures": "0", "errors": "1"}
    suites = ET.Element("testsuites", {"name": "edgebench gate", **counts})
    name = one_line(refused.scenario or _UNKNOWN)
    suite = ET.SubElement(suites, "testsuite", {"name": name, **counts, "skipped": "0"})
    test = ET.SubElement(suite, "testcase", {"classname": "gate", "name": "can compare"})
    first, *_ = refused.lines()
    error = ET.SubElement(test, "error", {"message": one_line(first), "type": "not_compared"})
    error.text = clean("\n".join(refused.lines()))
    ET.indent(suites)
    written: str = ET.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{written}\n'


def refused_json(refused: Refused) -> dict[str, object]:
    """What a program needs: that nothing was compared, why, and what to do."""
    return tagged(
        {
            "kind": "gate",
            "outcome": "not_compared",
            "passed": False,
            "policy": refused.policy,
            "message": refused.message,
            "remedy": refused.remedy,
        }
    )


def refused_annotation(refused: Refused) -> str:
    """An error for GitHub to show."""
    return annotation("error", "edgebench gate could not compare", "\n".join(refused.lines()))
