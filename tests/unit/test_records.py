"""What a run's record keeps of its runners, and what tells one run from another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sample_run import handmade

from edgebench.harness.prepared import Prepared, PreparedVariant
from edgebench.harness.records import prepared_record
from edgebench.harness.results.trial import Trial
from edgebench.harness.resuming import identity
from edgebench.harness.scenario.expand import ExpandedVariant
from edgebench.harness.wire import Probe
from edgebench.runners.base import Capabilities, Description

if TYPE_CHECKING:
    from edgebench.harness.results.model import RunRecord

ABLE = Capabilities(
    token_ids_in=True,
    token_ids_out=True,
    token_timestamps=True,
    ignores_end_of_text=True,
    threads=True,
)
LOAD = {
    "kind": "load", "workload": None, "block": 0, "repetition": 0, "phase": "measured",
    "status": "ok", "started_at": "", "duration_s": 1.0, "engine": "loaded", "engine_version": "7",
}  # fmt: skip


def recorded(**versions: str) -> RunRecord:
    """A record of one variant for each interpreter, with the version that its probe told."""
    record, _ = handmade({python: {"decode_rate": [1.0]} for python in versions})
    items = [
        PreparedVariant(
            ExpandedVariant(python, "r", "source", {}, python=python),
            python,
            Probe(Description("engine", version, ABLE)),
        )
        for python, version in versions.items()
    ]
    return prepared_record(record, Prepared(tuple(items), (), {}))


def test_each_version_of_a_runner_is_kept() -> None:
    """In interpreters of their own there may be two; one that both have stands once."""
    assert {
        name: each["engine_version"] for name, each in recorded(a="1", b="2").runners.items()
    } == {
        "r": "1",
        "r (b)": "2",
    }
    assert list(recorded(a="1", b="1").runners) == ["r"]


def test_a_run_is_another_one_where_any_interpreters_framework_changed() -> None:
    """Though the loads of its first part say what was loaded then."""
    trials = [Trial.model_validate({**LOAD, "variant": each}) for each in "ab"]
    before = identity(recorded(a="1", b="2"), trials)
    assert before == identity(recorded(a="1", b="2"), trials)
    assert before != identity(recorded(a="1", b="3"), trials)
    assert before != identity(recorded(a="3", b="2"), trials)
