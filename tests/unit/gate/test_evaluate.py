"""Limits held against samples: broken, kept, or not to be decided."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from gate_sides import around, both, cell, lacking, matched, samples, windows

from edgebench.harness.compare.model import Pair
from edgebench.harness.gate.evaluate import evaluate
from edgebench.harness.gate.policy import Policy, default_policy
from edgebench.harness.results.model import Failure, WorkloadRecord

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Matched
    from edgebench.harness.gate.model import Check, Gate

TODAY = dt.date(2026, 6, 1)
CELL = "mnn int4 / chat"


def policy(limits: dict[str, Any] | None = None, **keys: Any) -> Policy:
    asked = limits or {"decode_rate": {"worse_by": "2%"}}
    return Policy.model_validate({"schema_version": 1, "limits": asked, **keys})


def gate(sides: Matched | Pair, limits: dict[str, Any] | None = None, **keys: Any) -> Gate:
    of = matched(sides) if isinstance(sides, Pair) else sides
    return evaluate(of, policy(limits, **keys), today=TODAY)


def only(found: Gate) -> Check:
    (check,) = found.checks
    return check


def slower(by: float, *, count: int = 12, noise: float = 1.0, apart: bool = False) -> Pair:
    """A decode rate that falls by `by`, with a noise that the two sides do not share."""
    mine = around(100, count=count, noise=noise)
    theirs = around(100 * (1 - by), count=count, noise=noise, turned=5)
    return both(decode_rate=(mine, theirs), apart=apart)


def test_a_certain_worsening_beyond_the_limit_breaks_it() -> None:
    """Twelve pairs that all fell have a chance of 1 in 4096, and 5 % is more than 2 %."""
    found = gate(slower(0.05))
    check = only(found)
    assert (check.status, found.passed) == ("fail", False)
    assert check.value == pytest.approx(0.05, abs=0.003)
    assert check.limit == 0.02
    assert check.compared is not None
    assert check.compared.answer.p_worse == pytest.approx(1 / 4096)
    assert "5 % worse" in check.message
    assert "the limit is 2 %" in check.message


def test_a_certain_worsening_below_the_limit_is_kept() -> None:
    """1 % is certain here, and allowed: effect and certainty decide together."""
    check = only(gate(slower(0.01, noise=0.1)))
    assert check.compared is not None
    assert (check.compared.answer.p_worse or 1) <= 0.01
    assert check.status == "pass"


def test_no_change_passes_where_a_change_would_have_been_noticed() -> None:
    """Equal sides with little noise keep the limit."""
    check = only(gate(slower(0.0, noise=0.5)))
    assert check.status == "pass"
    assert check.compared is not None
    assert (check.compared.answer.noticeable or 1) <= 0.02


def test_a_gain_never_breaks_a_limit() -> None:
    """Faster by half is no regression, of a rate and of a time."""
    faster = both(decode_rate=(around(100), around(150)), ttft_s=(around(0.2), around(0.1)))
    limits = {"decode_rate": {"worse_by": "0%"}, "ttft_s": {"worse_by": "0%"}}
    assert {check.status for check in gate(faster, limits).checks} == {"pass"}


def test_a_worsening_that_may_be_noise_is_undecided_and_says_what_would_settle_it() -> None:
    """Values that vary by 20 % can't decide about 2 %; the gate does not fail, and tells."""
    found = gate(slower(0.03, noise=20))
    check = only(found)
    assert (check.status, found.passed) == ("undecided", True)
    assert "not certain at 99 %" in check.message
    assert check.compared is not None
    assert (check.compared.repetitions or 0) > 12


def test_a_pass_that_could_have_noticed_nothing_is_none() -> None:
    """No estimate of a worsening, but an interval that reaches beyond the limit: undecided."""
    mine = around(100, noise=20)
    check = only(gate(both(decode_rate=(mine, around(101, noise=20, turned=5)))))
    assert check.status == "undecided"
    assert "would surely have been noticed" in check.message


@pytest.mark.parametrize(
    ("undecided", "severity", "status", "passed"),
    [
        ("pass", "fail", "undecided", True),
        ("warn", "fail", "warn", True),
        ("fail", "fail", "fail", False),
        ("fail", "warn", "warn", True),
    ],
)
def test_the_policy_says_what_becomes_of_undecided_limits(
    undecided: str, severity: str, status: str, passed: bool
) -> None:
    """They pass, warn or fail; a limit that only warns never fails."""
    limits = {"decode_rate": {"worse_by": "2%", "severity": severity}}
    found = gate(slower(0.03, noise=20), limits, undecided=undecided)
    assert (only(found).status, found.passed) == (status, passed)


def test_one_repetition_decides_nothing() -> None:
    """Half as fast, measured once: undecided, with the reason."""
    check = only(gate(slower(0.5, count=1)))
    assert check.status == "undecided"
    assert "one repetition" in check.detail


def test_constant_samples_decide() -> None:
    """A fake clock: the same values pass, all 10 % worse fail, without a division by zero."""
    same = both(decode_rate=([100.0] * 10, [100.0] * 10))
    assert only(gate(same)).status == "pass"
    worse = both(decode_rate=([100.0] * 10, [90.0] * 10))
    assert only(gate(worse)).status == "fail"


def test_a_limit_with_its_own_confidence_is_decided_by_it() -> None:
    """Eight pairs reach 1 in 256: enough for 99 %, and not for 99.9 %."""
    pair = slower(0.1, count=8)
    assert only(gate(pair)).status == "fail"
    check = only(gate(pair, {"decode_rate": {"worse_by": "2%", "confidence": "99.9%"}}))
    assert (check.status, check.confidence) == ("undecided", 0.999)
    assert "not certain at 99.9 %" in check.message


def test_runs_at_different_times_need_more_than_the_noise_floor() -> None:
    """A limit within the noise floor can't be decided, and the message says so."""
    pair = slower(0.008, noise=0.1, apart=True)
    check = only(gate(pair, {"decode_rate": {"worse_by": "0.5%"}}))
    assert check.status == "undecided"
    assert "noise floor, 1 %" in check.message
    assert only(gate(slower(0.1, noise=0.5, apart=True))).status == "fail"


@pytest.mark.parametrize(
    ("size", "status"), [(1_009_999.0, "pass"), (1_010_000.0, "fail"), (990_000.0, "pass")]
)
def test_a_size_is_known_and_needs_no_certainty(size: float, status: str) -> None:
    """1 % of a file's size is 1 % with one look at it."""
    pair = both(model_bytes=([1_000_000.0], [size]))
    assert only(gate(pair, {"model_bytes": {"worse_by": "1%"}})).status == status


def test_quality_has_its_paired_test() -> None:
    """A text that is less likely in each of twelve windows is worse; equal windows are not."""
    workload = WorkloadRecord(name="text", description="d", generate_tokens=None, text="t")
    logs = [-3.0 + 0.1 * (place % 5) for place in range(12)]

    def rated(drop: float) -> Pair:
        pair = both("mnn int4 / text", workload=workload, perplexity=([20.0], [20.0]))
        return replace(
            pair,
            baseline=replace(pair.baseline, windows=windows(logs)),
            candidate=replace(
                pair.candidate,
                windows=windows([each - drop * (1 + place % 3) for place, each in enumerate(logs)]),
            ),
        )

    limits = {"perplexity": {"worse_by": "1%"}}
    assert only(gate(rated(0.02), limits)).status == "fail"
    assert only(gate(rated(0.0), limits)).status == "pass"
    assert only(gate(rated(0.001), limits)).status == "pass"


def test_a_warning_fails_nothing() -> None:
    """severity: warn tells and passes."""
    found = gate(slower(0.05), {"decode_rate": {"worse_by": "2%", "severity": "warn"}})
    assert (only(found).status, found.passed) == ("warn", True)


def test_later_entries_win_key_by_key() -> None:
    """A cell's own limit keeps what it does not name; off forgets; patterns fit metrics."""
    pair = both(decode_rate=(around(100), around(94, turned=3)), ttft_s=(around(1), around(1)))
    limits = {"decode_rate": {"worse_by": "2%", "at_least": 50}, "ttft*": {"worse_by": "3%"}}
    cells = [
        {"match": "mnn* / *", "limits": {"decode_rate": {"worse_by": "15%"}}},
        {"match": {"workload": "chat"}, "limits": {"ttft_s": "off"}},
        {"match": {"runner": "llama.cpp"}, "limits": {"decode_rate": "off"}},
    ]
    found = gate(pair, limits, cells=cells)
    assert {(each.kind, each.limit, each.status) for each in found.checks} == {
        ("worse_by", 0.15, "pass"),
        ("at_least", 50.0, "pass"),
    }
    assert found.unused == ("cells[2] (runner: llama.cpp) fits no cell",)


def test_what_is_not_limited_is_not_asked() -> None:
    """Metrics without a limit neither blunt the others nor appear."""
    pair = both(decode_rate=(around(100), around(100)), load_s=(around(1), around(9)))
    found = gate(pair)
    assert [row.metric for row in found.comparison.rows] == ["decode_rate"]
    assert found.passed


def test_a_limit_that_meets_nothing_is_told() -> None:
    """A metric that no cell has is named, except of the default policy, where it is no mistake."""
    limits = {"decode_rate": {"worse_by": "2%"}, "prefill_rate": {"worse_by": "2%"}}
    assert gate(slower(0), limits).unused == ("limits.prefill_rate: no cell has that metric",)
    assert evaluate(matched(slower(0)), default_policy(), today=TODAY).unused == ()


def test_a_metric_that_is_gone_fails_and_a_new_one_is_undecided() -> None:
    """What the baseline has and the candidate has not is a failure, with the reason."""
    pair = both(energy_per_token_j=([1.0] * 8, [1.0] * 8))
    gone = replace(pair.candidate, metrics={"energy_per_token_j": lacking("energy_per_token_j")})
    limits = {"energy_per_token_j": {"worse_by": "5%"}}
    check = only(gate(replace(pair, candidate=gone), limits))
    assert check.status == "fail"
    assert check.message == "Energy per token is not measured any more: no sensor is readable"
    new = replace(pair.baseline, metrics={"energy_per_token_j": lacking("energy_per_token_j")})
    check = only(gate(replace(pair, baseline=new), limits))
    assert check.status == "undecided"
    assert "no sensor is readable" in check.message
    neither = replace(pair, baseline=new, candidate=gone)
    assert gate(neither, limits).checks == ()
    warned = gate(replace(pair, candidate=gone), limits, failures="warn")
    assert (only(warned).status, warned.passed) == ("warn", True)


def test_zero_in_the_baseline_is_undecided_with_its_reason() -> None:
    """No ratio can be made of 0; nothing is divided by it. Zero on both sides is the same."""
    limits = {"major_faults": {"worse_by": "5%"}}
    check = only(gate(both(major_faults=([0.0] * 8, [5.0] * 8)), limits))
    assert check.status == "undecided"
    assert "the baseline is 0" in check.message
    assert only(gate(both(major_faults=([0.0] * 8, [0.0] * 8)), limits)).status == "pass"


def test_units_that_differ_are_undecided_with_their_names() -> None:
    """Seconds are not compared with milliseconds."""
    pair = both(ttft_s=([1.0] * 8, [1.0] * 8))
    other = replace(samples([1000.0] * 8, "ttft_s"), unit="ms")
    pair = replace(pair, candidate=replace(pair.candidate, metrics={"ttft_s": other}))
    check = only(gate(pair, {"ttft_s": {"worse_by": "5%"}}))
    assert check.status == "undecided"
    assert "in s, the candidate's in ms" in check.message
    bound = only(gate(pair, {"ttft_s": {"at_most": "2s"}}))
    assert (bound.status, bound.message) == (
        "undecided", "Time to first token is in ms, and the bound in s",
    )  # fmt: skip


CRASH = Failure(kind="crash", message="The runner's process ended.\nmore", log_tail="last words")


@pytest.mark.parametrize(
    ("before", "now", "status", "said"),
    [
        ("ok", "failed", "fail", "fails now: The runner's process ended"),
        ("ok", "partial", "fail", "fails in part now: The runner's process ended"),
        ("ok", "not_run", "fail", "was not run now"),
        ("partial", "failed", "fail", "fails now: The runner's process ended"),
        ("failed", "failed", "pass", "fails, as in the baseline: The runner's process ended"),
        ("partial", "partial", "pass", "fails in part, as in the baseline"),
        ("not_run", "failed", "pass", "has no result: The runner's process ended; nor had"),
        ("failed", "ok", "pass", "has a result; the baseline failed"),
        ("failed", "partial", "pass", "fails in part: The runner's process ended; the baseline"),
    ],
)
def test_a_cell_that_fails_now_is_a_failure(before: str, now: str, status: str, said: str) -> None:
    """It is, unless the baseline had no result either."""
    pair = both()
    failure = None if now in {"ok", "not_run"} else CRASH
    pair = replace(
        pair,
        baseline=replace(pair.baseline, status=before),
        candidate=replace(pair.candidate, status=now, failure=failure),
    )
    check = only(gate(pair))
    assert (check.kind, check.status) == ("failed", status)
    assert check.message.startswith(said)
    assert check.detail == ("last words" if status == "fail" and failure else "")


def test_a_cell_that_works_has_no_check_of_its_own() -> None:
    """Nothing is said of what goes without saying."""
    assert gate(both()).checks == ()
    assert gate(both()).headline == "Nothing was asked: no limit fits any cell"


def test_a_cell_that_vanished_is_a_failure() -> None:
    """Leaving a cell out does not pass the gate; one that had no result may go."""
    sides = matched(vanished=(cell("mnn int8 / chat"), cell("mnn fp16 / chat", "failed")))
    statuses = {check.cell: (check.kind, check.status) for check in gate(sides).checks}
    assert statuses == {
        "mnn int8 / chat": ("vanished", "fail"),
        "mnn fp16 / chat": ("vanished", "pass"),
    }
    warned = gate(sides, failures="warn")
    assert [check.status for check in warned.checks] == ["warn", "pass"]


def test_a_new_cell_is_only_held_against_bounds() -> None:
    """There is nothing to compare with, but a ceiling is a ceiling."""
    new = cell("mnn int8 / chat", metrics={"ttft_s": samples([3.0] * 8, "ttft_s")})
    limits = {"ttft_s": {"worse_by": "1%", "at_most": "2s"}}
    check = only(gate(matched(added=(new,)), limits))
    assert (check.kind, check.status, check.cell) == ("at_most", "fail", "mnn int8 / chat")


def test_the_worst_comes_first() -> None:
    """Checks are ordered by what came of them, then by cell."""
    found = gate(matched(slower(0), both("b / x", decode_rate=(around(100), around(90)))))
    assert [(check.cell, check.status) for check in found.checks] == [
        ("b / x", "fail"),
        (CELL, "pass"),
    ]
    assert found.headline.startswith("1 of 2 limits is broken; a worsening of ")


def test_the_headline_says_that_little_could_be_noticed() -> None:
    """A gate of single repetitions does not call itself green without saying what it is worth."""
    found = gate(slower(0, count=1))
    assert found.headline.startswith("No limit is broken, and none of 1 could be decided")
