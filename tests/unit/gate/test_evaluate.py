"""Limits held against samples: broken, kept, or not to be decided."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from gate_sides import around, both, cell, lacking, matched, samples, windows
from scipy import stats

from edgebench.harness.compare.model import Pair
from edgebench.harness.gate.cells import chance_of_more
from edgebench.harness.gate.evaluate import evaluate
from edgebench.harness.gate.policy import Policy, default_policy
from edgebench.harness.results.measured import Failure
from edgebench.harness.results.model import WorkloadRecord

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


def test_units_that_differ_fail_with_their_names() -> None:
    """Seconds are not compared with milliseconds: what was gated is so no more."""
    pair = both(ttft_s=([1.0] * 8, [1.0] * 8))
    other = replace(samples([1000.0] * 8, "ttft_s"), unit="ms")
    pair = replace(pair, candidate=replace(pair.candidate, metrics={"ttft_s": other}))
    check = only(gate(pair, {"ttft_s": {"worse_by": "5%"}}))
    assert check.status == "fail"
    assert "in s, the candidate's in ms" in check.message
    bound = only(gate(pair, {"ttft_s": {"at_most": "2s"}}))
    assert (bound.status, bound.kind) == ("fail", "at_most")
    assert "in s, the candidate's in ms" in bound.message
    new = gate(matched(added=(pair.candidate,)), {"ttft_s": {"at_most": "2s"}})
    assert (only(new).status, only(new).message) == (
        "undecided", "Time to first token is in ms, and the bound in s",
    )  # fmt: skip


def test_a_limit_that_only_says_how_certain_is_told() -> None:
    """It asks nothing, and a gate of nothing passes: whoever wrote it meant something."""
    limits = {"decode_rate": {"confidence": "99.9%"}, "ttft_s": {"worse_by": "2%"}}
    pair = both(decode_rate=(around(100), around(100)), ttft_s=(around(1), around(1)))
    assert gate(pair, limits).unused == (
        "limits.decode_rate: nothing is asked: it has no worse_by, at_most or at_least",
    )
    cells = [{"match": "*", "limits": {"ttft_s": {"severity": "warn"}}}]
    assert gate(pair, {"ttft_s": {"worse_by": "2%"}}, cells=cells).unused == ()


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
    assert found.headline == (
        "The limit could not be decided; so few repetitions could have noticed nothing"
    )


@pytest.mark.parametrize(
    ("count", "apart", "outcome", "least"),
    [
        (1, False, "undecided", "7 interleaved repetitions"),
        (6, False, "undecided", "7 interleaved repetitions"),
        (7, False, "passed", ""),
        (1, True, "undecided", "5 repetitions on each side"),
        (4, True, "undecided", "5 repetitions on each side"),
        (5, True, "passed", ""),
    ],
)
def test_a_gate_that_could_have_failed_nothing_is_no_pass(
    count: int, apart: bool, outcome: str, least: str
) -> None:
    """At 99 %, 2^7 = 128 signs or (10 choose 5) = 252 orders are the first to reach 1 in 100."""
    found = gate(slower(0, count=count, noise=0.1, apart=apart))
    assert found.outcome == outcome
    assert found.passed == (outcome == "passed")
    assert least in found.remedy
    if least:
        assert "--repetitions 10" in found.remedy
        said = "was 1 repetition" if count == 1 else f"were {count} repetitions"
        assert said in found.remedy


def test_one_that_could_be_decided_is_enough() -> None:
    """Facts and texts apart, one limit that could have failed makes a pass one."""
    few, many = slower(0, count=1), slower(0, noise=0.1)
    assert gate(
        matched(few, replace(many, candidate=cell("b / x", metrics=many.candidate.metrics)))
    ).passed
    size = both(model_bytes=([1.0], [1.0]), decode_rate=([1.0], [1.0]))
    limits = {"model_bytes": {"worse_by": "1%"}, "decode_rate": {"worse_by": "1%"}}
    assert gate(size, limits).outcome == "undecided"
    assert gate(both(model_bytes=([1.0], [1.0])), {"model_bytes": {"worse_by": "1%"}}).passed


def test_values_that_never_vary_are_no_reason_to_be_undecided() -> None:
    """A clock that is made up: any change of it would stand out, of 10 repetitions, not of 3."""
    assert gate(both(decode_rate=([100.0] * 10, [100.0] * 10))).passed
    assert gate(both(decode_rate=([100.0] * 3, [100.0] * 3))).outcome == "undecided"


def test_a_broken_limit_fails_though_the_others_could_not_be_decided() -> None:
    """Worse comes before unknown, and so does a policy that fails what is unknown."""
    lost = replace(
        slower(0, count=1), candidate=cell(metrics={"decode_rate": lacking("decode_rate")})
    )
    assert gate(lost).outcome == "failed"
    assert gate(slower(0, count=1), undecided="fail").outcome == "failed"


def test_the_headline_names_the_bluntest_comparison() -> None:
    """The best and the worst that would have been noticed, and where."""
    pair = both(
        decode_rate=(around(100, noise=0.1), around(100, noise=0.1, turned=5)),
        ttft_s=(around(1, noise=9), around(1, noise=9, turned=5)),
    )
    limits = {"decode_rate": {"worse_by": "2%"}, "ttft_s": {"worse_by": "50%"}}
    said = gate(pair, limits).headline
    assert said.endswith(f"% at worst (Time to first token of {CELL})")
    assert "would have been noticed at best" in said
    assert "inf" not in said


@pytest.mark.parametrize(
    ("severity", "said"),
    [("warn", "The limit is broken, which is only warned of; "), ("fail", "1 of 1 limit is")],
)
def test_a_single_limit_that_is_warned_of_is_not_called_kept(severity: str, said: str) -> None:
    """The first line says what the list below it says."""
    found = gate(slower(0.05), {"decode_rate": {"worse_by": "2%", "severity": severity}})
    assert found.headline.startswith(said)


def test_what_the_policy_fails_for_being_undecided_is_told_from_what_is_broken() -> None:
    """An improvement that might be none is not called broken."""
    found = gate(slower(-0.03, noise=20), undecided="fail")
    check = only(found)
    assert (check.status, check.undecided) == ("fail", True)
    assert found.headline.startswith("The limit could not be decided, which fails here")


def test_rows_say_what_limits_say() -> None:
    """A broken limit of 0 within the margin of another is worse in every table."""
    pair = slower(0.005, noise=0.05)
    limits = {"decode_rate": {"worse_by": "0%"}}
    found = gate(matched(pair, both("b / x", ttft_s=(around(1), around(1)))), limits | {
        "ttft_s": {"worse_by": "30%"},
    })  # fmt: skip
    assert [check.status for check in found.checks] == ["fail", "pass"]
    verdicts = {row.metric: row.verdict for row in found.comparison.rows}
    assert verdicts["decode_rate"] == "worse"


@pytest.mark.parametrize(
    ("before", "now", "status", "said"),
    [
        ((9, 1), (2, 8), "fail", "fails more often now, 8 of 10 attempts, 1 of 10 before"),
        ((9, 1), (9, 1), "pass", "fails in part, as in the baseline"),
        ((19, 1), (17, 3), "pass", "fails in part, as in the baseline"),
        ((9, 1), (4, 2), "fail", "which leaves 4 repetitions, too few to compare"),
        ((5, 5), (9, 1), "pass", "fails in part, as in the baseline"),
        ((0, 0), (2, 8), "pass", "fails in part, as in the baseline"),
    ],
)
def test_a_cell_that_fails_more_often_is_a_failure(
    before: tuple[int, int], now: tuple[int, int], status: str, said: str
) -> None:
    """Crashes beyond chance, or so many that too little is left to compare, are no pass."""
    pair = slower(0, noise=0.1)
    pair = replace(
        pair,
        baseline=replace(pair.baseline, status="partial", n=before[0], n_failed=before[1]),
        candidate=replace(
            pair.candidate, status="partial", failure=CRASH, n=now[0], n_failed=now[1]
        ),
    )
    (check,) = [each for each in gate(pair).checks if each.kind == "failed"]
    assert check.status == status
    assert said in check.message


@pytest.mark.parametrize("table", [(1, 10, 8, 10), (0, 5, 5, 5), (3, 20, 4, 7), (0, 10, 0, 10)])
def test_more_failures_are_judged_by_fishers_exact_test(table: tuple[int, int, int, int]) -> None:
    """As scipy computes it."""
    before, tried, now, tried_now = table
    rows = [[now, tried_now - now], [before, tried - before]]
    expected = stats.fisher_exact(rows, alternative="greater").pvalue
    assert chance_of_more(*table) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("broken", "status", "said"),
    [
        ({"candidate"}, "fail", "no value that counts any more"),
        ({"baseline"}, "undecided", "broken"),
        ({"baseline", "candidate"}, "undecided", "broken"),
    ],
)
def test_a_broken_cell_never_passes(broken: set[str], status: str, said: str) -> None:
    """What takes more than the memory's bandwidth can't be right: it is compared with nothing."""
    pair = both(decode_rate=(around(50), around(80)))
    cells = {
        name: replace(each, flags=("above_bandwidth",)).counted() if name in broken else each
        for name, each in (("baseline", pair.baseline), ("candidate", pair.candidate))
    }
    found = gate(Pair(cells["baseline"], cells["candidate"]))
    check = only(found)
    assert check.status == status
    assert said in check.message
    assert {row.verdict for row in found.comparison.rows} <= {"not_compared"}
