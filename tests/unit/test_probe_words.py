"""What `edgebench probe bandwidth` says below its table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edgebench.cli.probe import _said
from edgebench.devices.bandwidth import Bandwidth
from edgebench.harness.bandwidth import bandwidth_record

if TYPE_CHECKING:
    from edgebench.harness.results.device import BandwidthRecord


def record(threads: int, *, disturbed: bool) -> BandwidthRecord:
    found = Bandwidth(threads, 1 << 28, None, "lines-1", (1e9,) * 5, disturbed=disturbed)
    return bandwidth_record(found, "f", now=datetime(2025, 1, 1, tzinfo=UTC))


def test_what_is_kept_and_what_is_not_is_told_apart() -> None:
    """Each row is named in one of the two sentences, where both are there."""
    said = _said([record(1, disturbed=False), record(4, disturbed=True)], 4)
    assert "Kept for runs on this machine, for a week: what was read with 1 thread." in said
    (disturbed,) = [each for each in said if each.startswith("Disturbed")]
    assert disturbed.startswith("Disturbed, with 4 threads: ")
    assert "not kept" in disturbed


def test_one_of_both_needs_no_names() -> None:
    """All were kept, or none was."""
    calm = _said([record(1, disturbed=False), record(4, disturbed=False)], 4)
    assert calm[-1] == "Kept for runs on this machine, for a week."
    busy = _said([record(1, disturbed=True), record(4, disturbed=True)], 4)
    assert not any(each.startswith("Kept") for each in busy)
    assert any(each.startswith("Disturbed, with 1 thread and 4 threads: ") for each in busy)
