"""A comparison and a gate as JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import gate_sample as made

from edgebench.reports.comparing.as_json import comparison_json, gate_json


def read(value: dict[str, object]) -> Any:
    return json.loads(json.dumps(value, allow_nan=False))


def test_a_gate_says_what_came_of_each_limit() -> None:
    """A program reads the outcome, the counts and every limit, worst first, with its figures."""
    found = read(gate_json(made.every_status()))
    assert found["schema_version"] == 1
    assert found["kind"] == "gate"
    assert found["passed"] is False
    assert found["counts"] == {"fail": 4, "warn": 1, "allowed": 1, "undecided": 2, "pass": 1}
    first = found["checks"][0]
    assert first["cell"] == "llama.cpp Q4_0 / chat"
    assert (first["metric"], first["kind"], first["status"]) == ("decode_rate", "worse_by", "fail")
    assert first["limit"] == 0.05
    assert math.isclose(first["value"], 0.1)
    assert first["result"]["ratio"] == 0.9
    assert first["result"]["unit"] == "token/s"
    allowed = next(each for each in found["checks"] if each["status"] == "allowed")
    assert allowed["allowance"]["until"] == "2027-01-31"
    gone = next(each for each in found["checks"] if each["kind"] == "vanished")
    assert (gone["gone"]["variant"], gone["gone"]["workload"]) == ("mnn int4", "chat")


def test_a_comparison_has_both_sides_and_what_differs() -> None:
    """Runs, machine, commit, options that differ, cells that are gone or new."""
    found = read(comparison_json(made.every_status().comparison))
    assert found["kind"] == "comparison"
    assert found["baseline"]["machine"]["cpu_model"] == "AMD EPYC 9B14"
    assert found["candidate"]["runs"][0]["commit"]["branch"] == "main"
    assert [each["cell"] for each in found["cells"]] == [
        "llama.cpp Q4_0 / chat",
        "llama.cpp Q8_0 / long",
    ]
    assert found["cells"][1]["differing"][0]["what"] == "threads"
    assert [each["variant"] for each in found["added"]] == ["mnn int8 block_size=32"]
    assert len(found["rows"]) == 6


def test_what_is_no_number_is_null() -> None:
    """Neither NaN nor Infinity, which no JSON holds, and nothing missing that stands for 0."""
    broken = made.row(metric="ttft_s", low=math.nan, high=math.inf, spread=None)
    found = read(gate_json(made.gate([made.check(broken, value=-math.inf)])))
    assert found["checks"][0]["value"] is None
    assert found["comparison"]["rows"][0]["ratio_low"] is None
    assert found["comparison"]["rows"][0]["ratio_high"] is None
    missing = made.row(metric="ttft_s", baseline=None, candidate=1.0, verdict="not_compared")
    row = read(comparison_json(made.comparison([missing])))["rows"][0]
    assert row["baseline"] is None
    assert row["ratio"] is None


def test_half_of_a_surrogate_pair_is_written() -> None:
    """A framework's log may hold what is no UTF-8; the file can be written nevertheless."""
    gate = made.gate([made.check(message="a\ud800b")])
    assert read(gate_json(gate))["checks"][0]["message"] == "a?b"
    json.dumps(gate_json(gate), ensure_ascii=False).encode()
