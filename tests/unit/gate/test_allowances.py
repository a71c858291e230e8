"""Worsenings that are known and borne for a while."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from gate_sides import around, both, cell, matched

from edgebench.harness.gate.evaluate import evaluate
from edgebench.harness.gate.policy import Policy

if TYPE_CHECKING:
    from edgebench.harness.gate.model import Check, Gate

TODAY = dt.date(2026, 6, 1)
LATER, PAST = "2026-06-01", "2026-05-31"


def gate(*allow: dict[str, Any], at_least: float | None = None, **sides: Any) -> Gate:
    """A decode rate that fell by a tenth, with a limit of 2 %."""
    pair = both(decode_rate=(around(100), around(90, turned=5)))
    limit = {"worse_by": "2%"} | ({} if at_least is None else {"at_least": at_least})
    policy = Policy.model_validate(
        {
            "schema_version": 1,
            "limits": {"decode_rate": limit},
            "allow": [{"cell": "*", "until": LATER, "reason": "r"} | each for each in allow],
        }
    )
    return evaluate(matched(pair, **sides), policy, today=TODAY)


def only(found: Gate) -> Check:
    (check,) = found.checks
    return check


def test_an_allowance_covers_a_worsening_up_to_its_own_limit() -> None:
    """A tenth is covered by 12 % and not by 8 %, until the end of its last day."""
    found = gate({"worse_by": "12%", "metric": "decode*"})
    assert (only(found).status, found.passed, found.unused) == ("allowed", True, ())
    allowance = only(found).allowance
    assert allowance is not None
    assert (allowance.until, allowance.reason) == (TODAY, "r")
    found = gate({"worse_by": "8%"})
    assert (only(found).status, only(found).allowance) == ("fail", None)
    (unused,) = found.unused
    assert "does not reach, up to 8 %, to what is broken there" in unused


def test_an_expired_allowance_covers_nothing_and_says_when_it_expired() -> None:
    """The day after, the gate fails, and tells what was allowed until when."""
    found = gate({"worse_by": "12%", "until": PAST})
    check = only(found)
    assert (check.status, found.passed) == ("fail", False)
    assert check.detail.startswith("was allowed until 2026-05-31 (r); ")
    assert check.allowance is not None
    assert found.unused == ("allow[0] (*, *; r) expired on 2026-05-31",)


def test_one_that_holds_stands_above_one_that_expired() -> None:
    """Whichever is written first."""
    assert only(gate({"until": PAST}, {})).status == "allowed"
    assert only(gate({}, {"until": PAST})).status == "allowed"


@pytest.mark.parametrize("where", [{"cell": "llama*"}, {"metric": "ttft_s"}])
def test_an_allowance_is_of_its_cells_and_metrics(where: dict[str, str]) -> None:
    """One of another cell or metric covers nothing."""
    assert only(gate(where)).status == "fail"


def test_one_without_a_size_covers_bounds_and_failing_cells_too() -> None:
    """Any worsening, a floor, a cell that vanished; one with a size speaks of worsenings only."""
    gone = (cell("mnn int8 / chat"),)
    found = gate({}, at_least=95, vanished=gone)
    assert [check.status for check in found.checks] == ["allowed"] * 3
    found = gate({"worse_by": "50%"}, at_least=95, vanished=gone)
    assert sorted((check.kind, check.status) for check in found.checks) == [
        ("at_least", "fail"),
        ("vanished", "fail"),
        ("worse_by", "allowed"),
    ]
    found = gate({"metric": "decode_rate"}, vanished=gone)
    assert {check.kind: check.status for check in found.checks} == {
        "vanished": "fail",
        "worse_by": "allowed",
    }


def test_an_allowance_that_is_not_needed_is_told() -> None:
    """What fits no cell, and what is not broken any more, may go."""
    found = gate({"cell": "zz*"}, {"metric": "ttft_s"}, {})
    assert found.unused == (
        "allow[0] (zz*, *; r) fits no cell",
        "allow[1] (*, ttft_s; r) covers nothing that is broken, and may go",
    )


def test_an_allowance_does_not_touch_what_is_kept() -> None:
    """A limit that is kept stays kept."""
    same = both(decode_rate=([100.0] * 9, [100.0] * 9))
    policy = Policy.model_validate(
        {
            "schema_version": 1,
            "limits": {"decode_rate": {"worse_by": "2%"}},
            "allow": [{"cell": "*", "until": LATER, "reason": "r"}],
        }
    )
    check = only(evaluate(matched(same), policy, today=TODAY))
    assert (check.status, check.allowance) == ("pass", None)
