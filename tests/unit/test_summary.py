"""From trials to cells: statuses, flags and medians, with values set by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from edgebench.harness.results.measured import Failure, Measured
from edgebench.harness.results.model import (
    MachineRecord,
    ProtocolRecord,
    RunRecord,
    VariantRecord,
    WorkloadRecord,
)
from edgebench.harness.results.summary import is_settled, summarize
from edgebench.harness.results.trial import Trial

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.results.cell import Cell

PROTOCOL = ProtocolRecord(
    warmup_min=1,
    warmup_max=3,
    warmup_stable_within=0.05,
    min_repetitions=5,
    max_repetitions=8,
    ci_half_width=0.02,
    max_cv=0.05,
    per_block=1,
    interleave=True,
    cooldown_s=0,
    time_budget_s=60,
    timeout_s=10,
    cold_load=False,
)
HASH = "0" * 64


def record(**changes: object) -> RunRecord:
    fields: dict[str, Any] = {
        "id": "x",
        "scenario_name": "x",
        "edgebench_version": "0",
        "created_at": "",
        "status": "finished",
        "seed": 1,
        "scenario": {},
        "scenario_sha256": HASH,
        "protocol": PROTOCOL,
        "machine": MachineRecord(
            fingerprint="f",
            cpu_model="c",
            logical_cpus=1,
            affinity=[0],
            memory_bytes=1,
            kernel="k",
            system="s",
            architecture="a",
            python="p",
        ),
        "variants": [VariantRecord(id="v", runner="r", quantization="source")],
        "workloads": [WorkloadRecord(name="w", description="", generate_tokens=2)],
    }
    return RunRecord(**{**fields, **changes})


def trial(
    block: int, rate: float | None, *, phase: str = "measured", workload: str | None = "w"
) -> Trial:
    metrics = {}
    if rate is not None:
        metrics = {"decode_rate": Measured(value=rate, unit="token/s", source="derived")}
    return Trial.model_validate(
        {
            "kind": "generate" if workload else "load",
            "variant": "v",
            "workload": workload,
            "block": block,
            "repetition": 0,
            "phase": phase,
            "status": "ok",
            "started_at": "",
            "duration_s": 1.0,
            "metrics": metrics,
        }
    )


def failed(block: int = 0, workload: str | None = "w") -> Trial:
    failure = Failure(kind="crash", message="it died")
    return trial(block, None, workload=workload).model_copy(
        update={"status": "failed", "failure": failure}
    )


def only(trials: Sequence[Trial], **changes: object) -> Cell:
    (cell,) = summarize(record(**changes), trials)
    return cell


def test_median_interval_and_variation_come_from_measured_trials_only() -> None:
    """Warm-ups and their outliers are kept out: the median of 1..5 is 3, CV is 0.527."""
    trials = [trial(0, 1000.0, phase="warmup"), *(trial(b, b + 1.0) for b in range(5))]
    rate = only(trials).metrics["decode_rate"]
    assert (rate.median, rate.min, rate.max, rate.n) == (3.0, 1.0, 5.0, 5)
    assert rate.cv == pytest.approx(2.5**0.5 / 3)
    assert rate.ci_low is not None
    assert rate.ci_high is not None


def test_a_steady_cell_has_no_flag() -> None:
    """Enough equal repetitions after an agreeing warm-up need no warning."""
    trials = [trial(b, 50.0, phase=p) for b in range(5) for p in ("warmup", "warmup", "measured")]
    cell = only(trials)
    assert (cell.status, cell.n, cell.n_warmup, cell.flags) == ("ok", 5, 10, [])


@pytest.mark.parametrize(
    ("rates", "changes", "flags"),
    [
        ([50, 60, 50, 40, 50], {}, ["noisy"]),
        ([50, 50, 50], {}, ["few_repetitions"]),
        ([50, 50, 50], {"stopped_by_budget": True}, ["few_repetitions", "cut_by_budget"]),
        ([50] * 5, {"stopped_by_budget": True}, []),
        ([50, 60] * 3, {"stopped_by_budget": True}, ["noisy", "cut_by_budget"]),
        ([50] * 5, {"quick": True}, ["quick"]),
    ],
)
def test_flags_say_what_to_mind(
    rates: list[float], changes: dict[str, object], flags: list[str]
) -> None:
    """Variation above 5 %, fewer than 5 repetitions, and a budget that cut an unsettled cell."""
    assert only([trial(b, rate) for b, rate in enumerate(rates)], **changes).flags == flags


def test_a_warm_up_that_never_settled_is_flagged() -> None:
    """If the last two warm-ups of a block differ by more than 5 %, the cell says so."""
    warm = [trial(0, rate, phase="warmup") for rate in (50.0, 60.0, 70.0)]
    assert "unstable_warmup" in only([*warm, *(trial(b, 70.0) for b in range(5))]).flags


@pytest.mark.parametrize(
    ("trials", "status"),
    [
        ([], "not_run"),
        ([trial(0, 5.0, phase="warmup")], "not_run"),
        ([failed()], "failed"),
        ([failed(workload=None)], "failed"),
        ([trial(0, 5.0), failed(1)], "partial"),
        ([trial(0, 5.0)], "ok"),
    ],
)
def test_a_cell_is_never_missing(trials: list[Trial], status: str) -> None:
    """Whatever happened or did not, each variant and workload has its row."""
    cell = only(trials)
    assert cell.status == status
    assert (cell.failure is not None) is (status in ("failed", "partial"))


def test_loads_count_for_every_workload_of_their_variant() -> None:
    """Load time belongs to the variant and is shown with each of its cells."""
    load = trial(0, None, workload=None).model_copy(
        update={"metrics": {"load_s": Measured(value=0.5, unit="s", source="observed")}}
    )
    assert only([load, trial(0, 5.0)]).metrics["load_s"].median == 0.5


def test_a_metric_that_was_never_measured_keeps_its_reason() -> None:
    """Null in all trials is null in the cell, with the first reason."""
    null = {"decode_energy_j": Measured.missing("J", "no meter")}
    trials = [trial(b, 5.0).model_copy(update={"metrics": null}) for b in range(5)]
    energy = only(trials).metrics["decode_energy_j"]
    assert (energy.median, energy.n, energy.reason) == (None, 0, "no meter")


def test_repetitions_end_at_the_cap_however_noisy() -> None:
    """Eight of at most eight repetitions are enough, whatever they say."""
    noisy = [trial(b, rate) for b, rate in enumerate([1.0, 9.0] * 4)]
    assert is_settled(noisy, PROTOCOL)
    assert not is_settled(noisy[:-1], PROTOCOL)
    assert not is_settled([trial(b, 5.0) for b in range(4)], PROTOCOL)


def used(block: int, own_s: float, others: float | None) -> Trial:
    """A repetition of one second."""
    metrics = {
        "cpu_time_s": Measured(value=own_s, unit="s", source="observed"),
        "others_cpus": Measured(value=others, unit="1", source="observed")
        if others is not None
        else Measured.missing("1", "too short"),
    }
    made = trial(block, 50.0)
    return made.model_copy(update={"metrics": made.metrics | metrics})


@pytest.mark.parametrize(
    ("own_s", "others", "contended"),
    [
        (1.8, 0.2, True),  # both CPUs are taken, and a fifth of one by somebody else
        (2.0, 0.0, False),  # ours has both
        (1.0, 0.5, False),  # one thread, and room for the neighbour beside it
        (1.99, 0.01, False),  # the harness itself
        (1.8, None, False),  # nobody knows
    ],
)
def test_contended_is_said_where_others_took_cpus_that_were_wanted(
    own_s: float, others: float | None, contended: bool
) -> None:
    """With two CPUs to use, of however many."""
    for cpus in (2, 64):
        machine = record().machine.model_copy(update={"logical_cpus": cpus, "affinity": [0, 1]})
        cell = only([used(block, own_s, others) for block in range(5)], machine=machine)
        assert ("contended" in cell.flags) is contended


def test_contended_is_not_said_while_cpus_stand_idle() -> None:
    """Of 64, 60 are ours and one somebody else's: nobody had to give way."""
    machine = record().machine.model_copy(update={"logical_cpus": 64, "affinity": list(range(64))})
    assert "contended" not in only([used(b, 60.0, 1.0) for b in range(5)], machine=machine).flags
    assert "contended" in only([used(b, 62.0, 1.95) for b in range(5)], machine=machine).flags


def test_one_disturbed_repetition_of_five_does_not_mark_a_cell() -> None:
    """The median does not move for it."""
    machine = record().machine.model_copy(update={"logical_cpus": 2, "affinity": [0, 1]})
    trials = [used(0, 1.5, 0.5), *(used(block, 2.0, 0.0) for block in range(1, 5))]
    assert "contended" not in only(trials, machine=machine).flags
