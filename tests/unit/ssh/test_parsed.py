"""What an agent sends, read back."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace

import pytest

from edgebench.devices.bandwidth import Bandwidth
from edgebench.devices.machine import describe_machine
from edgebench.devices.monitor import Monitor
from edgebench.devices.reading import Reading
from edgebench.devices.window import EnergyPoint, EnergyTrace, Level, Window
from edgebench.harness.board import MeterFacts
from edgebench.harness.errors import RunnerProtocolError
from edgebench.harness.ssh import parsed
from edgebench.harness.ssh.watch import RemoteWatch, nothing_seen


def travelled(value: object) -> object:
    """As JSON, there and back."""
    return json.loads(json.dumps(value, allow_nan=False))


@pytest.fixture
def seen() -> Window:
    """A real window of this process, with an energy meter and heat added to it."""
    with Monitor(os.getpid()) as monitor:
        monitor.begin()
        window = monitor.end()
    points = (EnergyPoint(1, 0.5), EnergyPoint(2, 1.25))
    traces = (
        EnergyTrace("rapl:package", "observed", points),
        EnergyTrace("estimate:tdp", "estimated", (), "it can't be read"),
    )
    return replace(window, energy=traces, energy_reason=None, temperatures=(Level(3, 55.5),))


def test_a_window_comes_as_it_was(seen: Window) -> None:
    """Every field, the nested ones too."""
    assert parsed.window(travelled(asdict(seen))) == seen


def test_a_machine_comes_as_it_was() -> None:
    """Every field."""
    machine = describe_machine()
    assert parsed.machine(travelled(asdict(machine))) == machine


def test_small_things_come_as_they_were() -> None:
    """Readings, meters, sentences, bandwidth."""
    readings = (Reading(1.5, method="x"), Reading.missing("broken"))
    assert parsed.readings(travelled([asdict(each) for each in readings])) == readings
    assert parsed.reading(travelled(asdict(readings[1]))) == readings[1]
    facts = (MeterFacts("rapl:package", "observed"),)
    assert parsed.meter_facts(travelled([asdict(each) for each in facts])) == facts
    assert parsed.texts(["a", "b"]) == ("a", "b")
    bandwidth = Bandwidth(4, 1 << 30, None, "memchr", (1e9, 2e9))
    assert parsed.bandwidth(travelled(asdict(bandwidth))) == bandwidth


@pytest.mark.parametrize("sent", [None, {}, [], {"begin_ns": "soon"}, 3])
def test_what_is_no_window_is_refused(sent: object) -> None:
    """A board of another version, or a broken one, is named as such."""
    with pytest.raises(RunnerProtocolError, match="the board's window is malformed"):
        parsed.window(sent)


def test_a_window_of_a_lost_board_has_reasons_and_no_numbers() -> None:
    """Nothing is made up: each reading is missing with the same reason."""
    window = nothing_seen("the link broke")
    readings = [value for value in asdict(window).values() if isinstance(value, dict)]
    assert len(readings) == 13
    assert {each["reason"] for each in readings} == {"the link broke"}
    assert {each["value"] for each in readings} == {None}
    assert window.energy_reason == "the link broke"


def test_a_watch_does_not_raise_where_the_board_is_gone() -> None:
    """The runner's answer is missing as well, and that is the failure which is told."""
    from edgebench.devices.power import PowerSettings
    from edgebench.harness.errors import BoardLinkError

    asked: list[str] = []

    def ask(method: str, params: dict[str, object], /) -> object:
        asked.append(method)
        if len(asked) > 1:
            msg = "the cable is out"
            raise BoardLinkError(msg)
        return {}

    with RemoteWatch(ask, 7, PowerSettings()) as watch:
        watch.begin()
        assert "cable" in (watch.end().peak_rss.reason or "")
        assert "cable" in (watch.current_rss().reason or "")
    # Tried once more when it began, and not again before the next window.
    assert asked == ["board.watch", "board.begin", "board.watch"]
