"""A gate that was refused, in every form."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import gate_sample
import pytest

from edgebench.reports.comparing.markdown import gate_markdown
from edgebench.reports.comparing.refused import (
    Refused,
    refused_annotation,
    refused_json,
    refused_junit,
    refused_markdown,
)

PLAIN = Refused("There is no baseline.\n  a: b", "Save one.", "smollm2-135m", "gate.yaml")


def test_it_takes_the_place_of_an_earlier_comment() -> None:
    """The marker is the one that gates of the same scenario have."""
    before = gate_markdown(gate_sample.every_status()).partition("\n")[0]
    assert refused_markdown(PLAIN).partition("\n")[0] == before
    assert refused_markdown(Refused("m", "", "", "p")).startswith(
        "<!-- edgebench-gate: unknown -->"
    )


def test_every_form_says_what_happened_and_what_to_do() -> None:
    """All lines of both."""
    for text in (refused_markdown(PLAIN), refused_junit(PLAIN), refused_annotation(PLAIN)):
        for said in ("There is no baseline.", "a: b", "Save one."):
            assert said in text
    shown = json.loads(json.dumps(refused_json(PLAIN), allow_nan=False))
    assert (shown["outcome"], shown["passed"], shown["remedy"]) == (
        "not_compared", False, "Save one.",
    )  # fmt: skip
    assert shown["schema_version"] == 1


def test_junit_has_one_test_with_an_error() -> None:
    """Counts agree with what is there."""
    (suite,) = ET.fromstring(refused_junit(PLAIN))
    assert {key: suite.attrib[key] for key in ("tests", "errors", "failures", "skipped")} == {
        "tests": "1", "errors": "1", "failures": "0", "skipped": "0",
    }  # fmt: skip


@pytest.mark.parametrize("name", [gate_sample.ODD, "a --> b", "]]>"])
def test_names_from_outside_do_nothing(name: str) -> None:
    """A message holds paths, which hold anything."""
    odd = Refused(f"{name}\n::error::x", name, name, name)
    text = refused_markdown(odd)
    assert "<img" not in text
    assert "@octocat" not in text
    assert text.partition("\n")[0].count("-->") == 1
    ET.fromstring(refused_junit(odd))
    assert "\x1b" not in refused_junit(odd)
    assert refused_annotation(odd).count("\n") == 1
