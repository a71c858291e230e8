"""A gate as CI systems read it: JUnit's XML, GitHub's annotations, GitLab's metrics."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ET
from dataclasses import replace

import gate_sample as made

from edgebench.reports.comparing.github import gate_annotations
from edgebench.reports.comparing.gitlab import gate_metrics
from edgebench.reports.comparing.junit import gate_junit

# What the schema that Jenkins' xUnit plugin publishes allows, as far as we write it.
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {
        "name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp", "hostname",
        "id", "package", "file", "log", "url",
    },
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"name", "time", "classname", "group"},
    "failure": {"type", "message"},
    "skipped": {"type", "message"},
    "system-out": set(),
}  # fmt: skip
CHILDREN = {
    "testsuites": {"testsuite"},
    "testsuite": {"properties", "testcase"},
    "properties": {"property"},
    "testcase": {"failure", "skipped", "system-out"},
}


def annotations(text: str) -> list[tuple[str, dict[str, str], str]]:
    """As GitHub's runner reads its log: a command a line, decoded in one pass."""
    codes = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}
    found = []
    for line in text.splitlines():
        command, properties, data = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line).groups()  # type: ignore[union-attr]
        pairs = (each.partition("=") for each in properties.split(","))
        decoded = {
            key: re.sub("%(0D|0A|3A|2C|25)", lambda at: codes[at.group()], value)
            for key, _, value in pairs
        }
        message = re.sub("%(0D|0A|25)", lambda at: codes[at.group()], data)
        found.append((command, decoded, message))
    return found


def metrics(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """OpenMetrics text: a family's comments before its samples, no sample twice, EOF at the end."""
    assert text.endswith("# EOF\n")
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    family, seen = "", set()
    for line in text.removesuffix("# EOF\n").splitlines():
        if line.startswith("# TYPE "):
            family, kind = line.removeprefix("# TYPE ").split(" ")
            assert kind == "gauge"
            assert family not in seen
            seen.add(family)
        elif line.startswith("# HELP "):
            assert line.removeprefix("# HELP ").startswith(f"{family} ")
        else:
            pattern = r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\} (\S+)'
            name, labels, value = re.fullmatch(pattern, line).groups()  # type: ignore[union-attr]
            assert name == family
            pairs = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)
            key = (name, tuple((each, re.sub(r"\\(.)", r"\1", text)) for each, text in pairs))
            assert key not in found
            found[key] = float(value)
    return found


def suite_of(text: str) -> ET.Element:
    root = ET.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag], element.tag
        assert {each.tag for each in element} <= CHILDREN.get(element.tag, set()), element.tag
    suite = root[0]
    cases = suite.findall("testcase")
    for each in (root, suite):
        assert int(each.attrib["tests"]) == len(cases)
        assert int(each.attrib["failures"]) == len(suite.findall("testcase/failure"))
    assert int(suite.attrib["skipped"]) == len(suite.findall("testcase/skipped"))
    return suite


def test_each_limit_is_a_test() -> None:
    """A broken limit fails, an undecided one is skipped with its reason, the others pass."""
    suite = suite_of(gate_junit(made.every_status()))
    assert suite.attrib["name"] == "smollm2-135m"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    cases = suite.findall("testcase")
    first = cases[0]
    assert first.attrib == {
        "classname": "llama.cpp Q4_0 / chat",
        "name": "decode_rate: at most 5 % worse",
    }
    failure = first.find("failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("the decode rate fell by 10 %")
    assert "baseline 100.0 tokens/s, candidate 90.0 tokens/s" in (failure.text or "")
    said = [each.attrib["message"] for each in suite.findall("testcase/skipped")]
    assert "34 repetitions on each side would settle it" in said[0]
    outputs = [each.text or "" for each in suite.findall("testcase/system-out")]
    assert [each.split(":")[0] for each in outputs[:2]] == ["warning", "allowed"]
    assert "until 2027-01-31: the new tokenizer is slower" in outputs[1]
    assert len({(each.attrib["classname"], each.attrib["name"]) for each in cases}) == len(cases)


def test_xml_holds_whatever_names_hold() -> None:
    """Characters that no XML may have are made visible; markup stays text."""
    bad = "\x00\x08\x1b[31m\ud800\ufffe\uffff</testcase>&\x0b\x85"
    pair = made.pair(bad, bad)
    gate = made.gate([made.check(made.row(pair), message=bad, detail=f"a\n{bad}\tb")])
    suite = suite_of(gate_junit(gate))
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "</testcase>&" in failure.attrib["message"]
    assert "a\n" in (failure.text or "")
    suite_of(gate_junit(made.odd()))


def test_a_gate_without_limits_is_an_empty_suite() -> None:
    """A suite of no tests, not an error."""
    assert suite_of(gate_junit(made.gate())).attrib["tests"] == "0"


def test_annotations_say_what_is_broken_and_what_is_not_known() -> None:
    """Errors for broken limits, warnings for warnings, notices for undecided and allowed."""
    found = annotations(gate_annotations(made.every_status()))
    assert [each[0] for each in found] == ["error"] * 4 + ["warning"] + ["notice"] * 4
    assert found[0][1] == {"title": "llama.cpp Q4_0 / chat: Decode rate"}
    assert found[0][2].splitlines() == [
        "the decode rate fell by 10 %, and at most 5 % is allowed",
        "A change of 2.1 % would have been noticed",
    ]
    assert found[2][1] == {"title": "mnn int4 / chat"}
    assert found[5][2].endswith("allowance until 2027-01-31: the new tokenizer is slower")


def test_a_gate_that_keeps_all_limits_annotates_nothing() -> None:
    """Silent on noise: nobody is told of what is as it was."""
    assert gate_annotations(made.gate([made.check(status="pass")])) == ""


def test_no_name_can_be_a_command() -> None:
    """Line ends, colons, commas and percent signs come out as they went in, in one annotation."""
    odd = "a%0A::error::b, c: d\r\n::stop-commands::x\u2028::warning::y"
    gate = made.gate([made.check(made.row(made.pair(odd, "w")), message=odd)])
    text = gate_annotations(gate)
    assert len(text.splitlines()) == 1
    ((level, properties, message),) = annotations(text)
    assert level == "error"
    assert properties == {
        "title": "a%0A::error::b, c: d ::stop-commands::x ::warning::y / w: Decode rate"
    }
    assert message.splitlines()[:2] == ["a%0A::error::b, c: d", "::stop-commands::x ::warning::y"]
    assert len(annotations(gate_annotations(made.odd()))) == 5


def test_the_tenth_annotation_counts_the_rest() -> None:
    """GitHub shows ten of a kind, so that the tenth has to say how many there are."""
    ten = annotations(gate_annotations(made.large(10)))
    assert len(ten) == 10
    assert "more of this kind" not in ten[-1][2]
    many = annotations(gate_annotations(made.large(31)))
    assert len(many) == 10
    assert many[-1][2].startswith("22 more of this kind")


def test_metrics_are_the_candidates_figures() -> None:
    """In stored units, by variant and workload; what was not measured is left out."""
    found = metrics(gate_metrics(made.every_status()))
    q4 = (("variant", "llama.cpp Q4_0"), ("workload", "chat"))
    assert found["edgebench_decode_rate", q4] == 90
    assert found["edgebench_peak_rss_bytes", q4] == 230_700_000
    assert found["edgebench_gate_limits", (("status", "broken"),)] == 4
    assert not [name for name, _ in found if "energy" in name]


def test_metrics_of_odd_names_can_be_read() -> None:
    """Quotes, backslashes and line ends are escaped; GitLab's own way of reading gets a value."""
    odd = 'a "b" \\ c\n# d \'e\' {f="g"}, $h `i`'
    key = 'odd"key\n'
    rows = [made.row(made.pair(odd, "w")), made.row(made.pair(odd, "w"), key)]
    text = gate_metrics(made.gate(map(made.check, rows)))
    labels = (("variant", odd.replace("\n", " ").replace("#", "\uff03")), ("workload", "w"))
    found = metrics(text)
    assert found["edgebench_decode_rate", labels] == 90
    assert found["edgebench_odd_key_", labels] == 90
    # GitLab cuts a line at a number sign and splits it as a shell does; a quote left open there
    # would make it refuse the whole file.
    for line in text.splitlines():
        words = shlex.split(line.partition("#")[0])
        assert not words or (len(words) == 2 and float(words[1]) >= 0)


def test_two_cells_of_one_name_are_one_metric() -> None:
    """OpenMetrics has no sample twice."""
    gate = made.gate([made.check(made.row(made.pair())), made.check(made.row(made.pair()))])
    assert len(metrics(gate_metrics(gate))) == 1 + 5 + 3


def test_made_up_weights_are_named_beside_the_figures() -> None:
    """In the title of an annotation, and in what a family of metrics says of itself."""
    gate = made.gate([made.check(made.row(made.pair()))])
    assert "synthetic" not in gate_annotations(gate) + gate_metrics(gate)
    comparison = gate.comparison
    source = "synthetic:smollm2-135m@Q4_0"
    matched = replace(
        comparison.matched,
        baseline=replace(comparison.matched.baseline, model_source=source),
        candidate=replace(comparison.matched.candidate, model_source=source),
    )
    gate = replace(gate, comparison=replace(comparison, matched=matched))
    ((_level, facts, _message),) = annotations(gate_annotations(gate))
    assert facts["title"].endswith(" (synthetic weights)")
    said = [line for line in gate_metrics(gate).splitlines() if line.startswith("# HELP")]
    assert [line.endswith(", synthetic weights") for line in said] == [True, False, False]
