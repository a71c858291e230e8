"""How another machine was reached, beside its figures."""

from __future__ import annotations

import pytest
from sample_run import sample

from edgebench.harness.results.device import DeviceRecord
from edgebench.reports.facts import device_facts


@pytest.mark.parametrize(
    ("device", "facts"),
    [
        (None, ()),
        (DeviceRecord(reach="local"), ()),
        (
            DeviceRecord(reach="ssh", address="pi@board", profile_name="Raspberry Pi 5"),
            (("Reached", "over SSH, pi@board"), ("Device profile", "Raspberry Pi 5")),
        ),
        (DeviceRecord(reach="adb", address="R5\x1b[2J"), (("Reached", "over adb, R5"),)),
    ],
)
def test_a_device_says_how_it_was_reached(
    device: DeviceRecord | None, facts: tuple[tuple[str, str], ...]
) -> None:
    """An old run and one on this machine say nothing; what an address holds moves no cursor."""
    assert device_facts(sample().record().model_copy(update={"device": device})) == facts
