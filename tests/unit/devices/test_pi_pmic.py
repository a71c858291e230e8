"""The power chip of a Raspberry Pi 5, by a program that prints what real boards printed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from recorded_meters import FOLDER, recorded

from edgebench.devices.pi_pmic import INTERVAL_S, find_pi_pmic, rail_watts
from edgebench.devices.power import find_meters

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODEL = "firmware/devicetree/base/compatible"
PI_5 = "raspberrypi,5-model-b\0brcm,bcm2712\0"
PI_4 = "raspberrypi,4-model-b\0brcm,bcm2711\0"
# Volts x amperes of each recorded line, added up with a pocket calculator's precision:
# 0.177 + 0.155 + 0.309 + 0.023 + 0 + 0.209 + 0.264 + 0.670 + 0.002 + 0.001 + 0.005 + 0.084
IDLE_W = 1.899
# 0 + 0.207 + 0.290 + 0.009 + 0 + 0.194 + 0.263 + 9.761 + 0.001 + 0.001 + 0.005 + 0.069
BUSY_W = 10.800


class Clock:
    """Some seconds in a few looks, so that no test waits."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += 50_000_000
        return self.now_ns


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program in the place of vcgencmd."""

    def write(script: str) -> str:
        path = tmp_path / "vcgencmd"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return str(path)

    return write


@pytest.fixture
def still_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauges' thread makes its first round and no other: the clock is the test's."""
    monkeypatch.setattr("edgebench.devices.poller.Poller._run", lambda _self: None)


def alternating(folder: Path) -> str:
    """A board that works and rests by turns, asked by ``pmic_read_adc`` only."""
    return f"""
[ "$*" = pmic_read_adc ] || exit 9
if mkdir {folder}/busy 2>/dev/null; then cat {FOLDER}/vcgencmd-busy.txt
else rmdir {folder}/busy; cat {FOLDER}/vcgencmd-idle.txt; fi"""


@pytest.mark.parametrize(("name", "watts"), [("idle", IDLE_W), ("busy", BUSY_W)])
def test_power_is_the_sum_of_all_rails(name: str, watts: float) -> None:
    """Voltage x current of each; the input and the clock's battery have no current."""
    assert rail_watts(recorded(f"vcgencmd-{name}.txt")) == pytest.approx(watts, abs=0.001)


def test_rails_are_paired_by_name_and_not_by_number() -> None:
    """Currents and voltages are counted through, so that their numbers never match."""
    text = "B_V volt(0)=2.0V\nA_A current(0)=3.0A\nB_A current(1)=0.5A\nA_V volt(7)=5.0V\n"
    assert rail_watts(text) == pytest.approx(3.0 * 5.0 + 0.5 * 2.0)


def test_current_without_its_voltage_is_no_power() -> None:
    """A sum without that rail would be too small, so there is none."""
    lines = recorded("vcgencmd-busy.txt").splitlines()
    text = "\n".join(line for line in lines if "VDD_CORE_V" not in line)
    with pytest.raises(OSError, match="a current of VDD_CORE but no voltage"):
        rail_watts(text)


@pytest.mark.parametrize("text", ["", 'error=1 error_msg="Command not registered"'])
def test_answer_without_rails_is_told(text: str) -> None:
    """Firmware of other boards does not know the command."""
    with pytest.raises(OSError, match="tells no currents") as caught:
        rail_watts(text)
    assert (text or "it prints nothing") in str(caught.value)


def test_board_has_one_meter(tree, program, tmp_path, still_threads) -> None:
    """It proves itself by changing, and counts joules from the first reading on."""
    tree.sys({MODEL: PI_5})
    clock = Clock()

    meters, refusals = find_pi_pmic(tree.sysfs, clock, program=program(alternating(tmp_path)))

    assert refusals == []
    (meter,) = meters
    assert (meter.name, meter.source) == ("pi_pmic", "observed")
    assert meter.resolution_s >= INTERVAL_S
    start_j, begin_ns = meter.read_j(), clock.now_ns
    watts = (meter.read_j() - start_j) / ((clock.now_ns - begin_ns) / 1e9)
    meter.close()
    assert min(abs(watts - IDLE_W), abs(watts - BUSY_W)) < 0.01


def test_chip_that_says_the_same_all_the_time_is_not_trusted(tree, program) -> None:
    """A converter that never changes by a last digit measures nothing."""
    tree.sys({MODEL: PI_5})
    same = program(f"cat {FOLDER}/vcgencmd-busy.txt")

    meters, (refusal,) = find_pi_pmic(tree.sysfs, Clock(), program=same)

    assert meters == []
    assert str(refusal) == "pi_pmic: it said the same for 2 s, so it measures nothing"


@pytest.mark.parametrize("model", [None, PI_4, "vendor,board\0brcm,bcm27123\0"])
def test_nothing_is_said_on_other_machines(tree, program, model: str | None) -> None:
    """Neither of a missing program nor of one that is there."""
    if model is not None:
        tree.sys({MODEL: model})
    there = program("exit 1")
    assert find_pi_pmic(tree.sysfs, Clock(), program=there) == ([], [])
    assert find_pi_pmic(tree.sysfs, Clock()) == ([], [])


def test_missing_program_is_told_with_its_package(tree, monkeypatch, tmp_path) -> None:
    """On the board that could be measured, the user learns what to install."""
    tree.sys({MODEL: PI_5})
    monkeypatch.setenv("PATH", str(tmp_path))

    meters, (refusal,) = find_pi_pmic(tree.sysfs, Clock())

    assert meters == []
    assert refusal.finding == "pi_pmic: vcgencmd is not installed"
    assert refusal.remedy == "sudo apt install raspi-utils"


def refuse(device: Path) -> str:
    """What vcgencmd prints, on its standard output, where it can't open the device."""
    return f"""
echo "Can't open device file: {device}"
echo "Try creating a device file with: sudo mknod {device} c 100 0"
exit 255"""


@pytest.mark.parametrize(
    ("group", "remedy"),
    [(2, "sudo usermod -aG bin $USER, then log in again"), (0, "sudo chmod a+r {device}")],
)
def test_device_of_others_is_told_with_the_way_in(
    tree, program, tmp_path, monkeypatch, group: int, remedy: str
) -> None:
    """Its group lets one in; where it is root's, the permission has to change."""
    tree.sys({MODEL: PI_5})
    device = tmp_path / "vcio"
    device.touch()
    owned = os.stat_result((0o660, 0, 0, 1, 0, group, 0, 0, 0, 0))
    real = os.stat

    def stat(path, *args, **options):
        return owned if path == str(device) else real(path, *args, **options)

    monkeypatch.setattr(os, "stat", stat)

    meters, (refusal,) = find_pi_pmic(tree.sysfs, Clock(), program=program(refuse(device)))

    assert meters == []
    assert refusal.finding == f"pi_pmic: this user may not read {device}"
    assert refusal.remedy == remedy.format(device=device)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo 'vc_gencmd_read_response returned -1'; exit 255", "failed with status 255: vc_gen"),
        ("exit 1", "failed with status 1: it says nothing"),
        ("echo 'error=1 error_msg=\"Command not registered\"'", "tells no currents: error=1"),
        ("exec sleep 5", "did not answer within 0 s"),
        ('echo "Can\'t open device file: /dev/none"; exit 255', "no /dev/none"),
    ],
)
def test_program_that_fails_is_quoted(tree, program, monkeypatch, script: str, why: str) -> None:
    """What it said stands in the sentence, and nothing is measured."""
    tree.sys({MODEL: PI_5})
    if "sleep" in script:
        monkeypatch.setattr("edgebench.devices.pi_pmic.COMMAND_S", 0.2)

    meters, refusals = find_pi_pmic(tree.sysfs, Clock(), program=program(script))

    assert meters == []
    assert [str(each).startswith("pi_pmic: it can't be read (") for each in refusals] == [True]
    assert why in str(refusals[0])


def test_it_stands_for_the_board(tree, program, tmp_path, monkeypatch, still_threads) -> None:
    """The search finds it where programs are, and asks no other machine for it."""
    tree.sys({MODEL: PI_5})
    program(alternating(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    found = find_meters(tree.sysfs, procfs=tree.procfs, clock=Clock())
    for meter in found.meters:
        meter.close()

    assert [meter.name for meter in found.meters][:1] == ["pi_pmic"]
