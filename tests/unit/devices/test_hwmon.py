"""The power sensors of boards, on recorded trees."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from recorded_meters import Living, recorded_sysfs

from edgebench.devices.hwmon import find_hwmon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.devices.power import PowerMeter


def sensors(tree) -> list[Path]:
    """The files that change on a machine that works."""
    return [
        path
        for pattern in ("curr?_input", "in_power?_input", "power?_input", "power?_average")
        for path in tree.sysfs.rglob(pattern)
    ]


def first_watts(meter: PowerMeter, clock: Living) -> float:
    """Watts from the counter's own extrapolation: by the thread's first reading alone."""
    start, begin_ns = meter.read_j(), clock.now_ns
    found = (meter.read_j() - start) / ((clock.now_ns - begin_ns) / 1e9)
    meter.close()
    return found


@pytest.fixture
def still_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauges' thread makes its first round and no other: the clock is the test's."""
    monkeypatch.setattr("edgebench.devices.poller.Poller._run", lambda _self: None)


def test_module_input_is_the_total_of_a_jetson(tree, still_threads) -> None:
    """VDD_IN comes first, its parts are meters of their own, and nothing is counted twice."""
    tree.sys(recorded_sysfs("orin_nano"))
    clock = Living(*sensors(tree))

    meters, refusals = find_hwmon(tree.sysfs, clock)

    assert [meter.name for meter in meters] == [
        "hwmon:VDD_IN",
        "hwmon:VDD_CPU_GPU_CV",
        "hwmon:VDD_SOC",
    ]
    assert refusals == []
    watts = [first_watts(meter, clock) for meter in meters]
    # tegrastats showed 5263, 717 and 1794 mW; one step of the current is 5 mW.
    assert watts == pytest.approx([5.263, 0.717, 1.794], abs=0.011)


def test_agx_total_is_what_feeds_the_module_side_by_side(tree, still_threads) -> None:
    """The memory's rail comes from VIN_SYS_5V0, so it is no part of the sum; NC is no rail."""
    tree.sys(recorded_sysfs("agx_orin"))
    clock = Living(*sensors(tree))

    meters, _ = find_hwmon(tree.sysfs, clock)

    assert [meter.name for meter in meters] == [
        "hwmon:board",
        "hwmon:VDD_GPU_SOC",
        "hwmon:VDD_CPU_CV",
        "hwmon:VIN_SYS_5V0",
        "hwmon:VDDQ_VDD2_1V8AO",
    ]
    assert first_watts(meters[0], clock) == pytest.approx(3.150 + 14.312 + 4.968, abs=0.02)


def test_driver_of_old_jetsons_is_known(tree, still_threads) -> None:
    """JetPack 4 shows milliwatts under iio:device."""
    tree.sys(recorded_sysfs("nano"))
    clock = Living(*sensors(tree))

    meters, _ = find_hwmon(tree.sysfs, clock)

    assert [meter.name for meter in meters] == [
        "hwmon:POM_5V_IN",
        "hwmon:POM_5V_GPU",
        "hwmon:POM_5V_CPU",
    ]
    assert first_watts(meters[0], clock) == pytest.approx(2.5, abs=0.002)


def test_switched_off_channel_is_no_meter(tree) -> None:
    """A channel that is not enabled answers with errors, and is left out without a word."""
    files = recorded_sysfs("orin_nano")
    files["bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon1/in3_enable"] = "0\n"
    tree.sys(files)

    meters, refusals = find_hwmon(tree.sysfs, Living(*sensors(tree)))

    assert [meter.name for meter in meters] == ["hwmon:VDD_IN", "hwmon:VDD_CPU_GPU_CV"]
    assert refusals == []


def test_sensor_that_stands_still_is_refused(tree) -> None:
    """What initialises and then says the same for ever measures nothing."""
    tree.sys(recorded_sysfs("orin_nano"))
    parts = [path for path in sensors(tree) if path.name != "curr1_input"]

    meters, refusals = find_hwmon(tree.sysfs, Living(*parts))

    assert [meter.name for meter in meters] == ["hwmon:VDD_CPU_GPU_CV", "hwmon:VDD_SOC"]
    assert [str(each) for each in refusals] == [
        "hwmon:VDD_IN: it said the same for 0.5 s, so it measures nothing"
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it can't be read (not a number)"),
        ("-2000\n", "it says -10 W, and no machine draws less than nothing"),
        ("9000000\n", "it says 45000 W, which can't be"),
    ],
)
def test_sensor_that_says_what_cannot_be_is_refused(tree, text: str, why: str) -> None:
    """No number, a negative power and megawatts have their reasons."""
    tree.sys(recorded_sysfs("orin_nano"))
    folder = "bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon1"
    tree.sys({f"{folder}/curr1_input": text})
    clock = Living(tree.sysfs / folder / "curr2_input", tree.sysfs / folder / "curr3_input")

    _, refusals = find_hwmon(tree.sysfs, clock)

    assert [str(each) for each in refusals] == [f"hwmon:VDD_IN: {why}"]


def test_sensor_that_vanishes_says_so(tree, still_threads) -> None:
    """A driver that is unloaded in the middle of a run is an error of that meter's reading."""
    tree.sys(recorded_sysfs("nano"))
    clock = Living(*sensors(tree))
    meter = find_hwmon(tree.sysfs, clock)[0][0]
    shutil.rmtree(tree.sysfs / "bus")
    clock.forget()

    with pytest.raises(OSError, match=r"^No such file or directory$"):
        meter.read_j()
    meter.close()


@pytest.fixture
def forbidden_sysfs() -> Iterator[Path]:
    """A sensor that only root may read, in a folder that every user may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    chip = folder / "class/hwmon/hwmon0"
    chip.mkdir(parents=True)
    (chip / "name").write_text("zenergy\n")
    (chip / "energy1_input").write_text("1\n")
    (chip / "energy1_input").chmod(0)
    yield folder
    shutil.rmtree(folder)


def test_forbidden_sensor_has_a_remedy(forbidden_sysfs: Path, not_root) -> None:
    """Permission denied names the file and the command that opens it."""
    meters, refusals = find_hwmon(forbidden_sysfs, Living())

    counter = forbidden_sysfs / "class/hwmon/hwmon0/energy1_input"
    assert meters == []
    assert [(each.finding, each.remedy) for each in refusals] == [
        (
            f"hwmon:zenergy:energy1: this user may not read {counter}",
            f"sudo chmod a+r {counter}",
        )
    ]


def test_energy_of_sockets_is_one_counter(tree) -> None:
    """AMD's counters of two sockets add up; those of cores are within them."""
    tree.sys(
        {
            "class/hwmon/hwmon2/name": "amd_energy\n",
            "class/hwmon/hwmon2/energy1_label": "Ecore000\n",
            "class/hwmon/hwmon2/energy1_input": "1\n",
            "class/hwmon/hwmon2/energy7_label": "Esocket0\n",
            "class/hwmon/hwmon2/energy7_input": "5000000\n",
            "class/hwmon/hwmon2/energy8_label": "Esocket1\n",
            "class/hwmon/hwmon2/energy8_input": "7000000\n",
        }
    )
    counter = tree.sysfs / "class/hwmon/hwmon2/energy7_input"
    meters, refusals = find_hwmon(tree.sysfs, Living(counter))

    assert [meter.name for meter in meters] == ["hwmon:amd_energy:sockets"]
    assert refusals == []
    counter.write_text("5000000\n")
    meter = find_hwmon(tree.sysfs, Living(counter))[0][0]
    start = meter.read_j()
    counter.write_text("5500000\n")
    (counter.parent / "energy8_input").write_text("8000000\n")
    assert meter.read_j() - start == pytest.approx(1.5, abs=1e-5)


def test_counter_that_goes_back_is_an_error(tree) -> None:
    """A driver that was loaded anew starts from nothing, and that is no negative energy.

    It is counted on from there: 2 J more are 2 J.
    """
    files = {"name": "xgene\n", "energy1_input": "5000000\n"}
    tree.sys({f"class/hwmon/hwmon0/{name}": text for name, text in files.items()})
    counter = tree.sysfs / "class/hwmon/hwmon0/energy1_input"
    meter = find_hwmon(tree.sysfs, Living(counter))[0][0]
    counter.write_text("10\n")

    with pytest.raises(OSError, match="the counter energy1_input began anew"):
        meter.read_j()
    before = meter.read_j()
    counter.write_text("2000010\n")
    assert meter.read_j() - before == pytest.approx(2.0, abs=1e-5)


def test_whole_machine_comes_before_its_parts(tree) -> None:
    """The total of Apple's controller is first; graphics cards and batteries are left to others."""
    tree.sys(
        {
            "class/hwmon/hwmon0/name": "macsmc_hwmon\n",
            "class/hwmon/hwmon0/power1_label": "3.8 V Rail Power\n",
            "class/hwmon/hwmon0/power1_input": "4000000\n",
            "class/hwmon/hwmon0/power2_label": "Total System Power\n",
            "class/hwmon/hwmon0/power2_input": "9000000\n",
            "class/hwmon/hwmon1/name": "amdgpu\n",
            "class/hwmon/hwmon1/power1_average": "30000000\n",
            "class/hwmon/hwmon2/name": "BAT0\n",
            "class/hwmon/hwmon2/power1_input": "7000000\n",
        }
    )

    meters, _ = find_hwmon(tree.sysfs, Living(*sensors(tree)))

    assert [meter.name for meter in meters] == [
        "hwmon:macsmc_hwmon:Total System Power",
        "hwmon:macsmc_hwmon:3.8 V Rail Power",
    ]


def test_machine_without_sensors_has_nothing_to_say(tree) -> None:
    """No meter and no complaint."""
    assert find_hwmon(tree.sysfs, Living()) == ([], [])


def test_twins_are_told_apart(tree, still_threads) -> None:
    """Two chips of one name are two meters, as nobody says what each measures; none are summed."""
    tree.sys(
        {
            f"class/hwmon/hwmon{number}/{file}": text
            for number in (2, 10)
            for file, text in {
                "name": "twin\n",
                "power1_input": "4000000\n",
                "energy1_input": "5000000\n",
            }.items()
        }
        | {
            "class/hwmon/hwmon3/name": "labels\n",
            "class/hwmon/hwmon3/power1_label": "rail\n",
            "class/hwmon/hwmon3/power1_input": "4000000\n",
            "class/hwmon/hwmon3/power2_label": "rail\n",
            "class/hwmon/hwmon3/power2_input": "4000000\n",
        }
    )
    files = sorted((tree.sysfs / "class/hwmon").glob("*/*_input"))

    meters, refusals = find_hwmon(tree.sysfs, Living(*files))

    assert refusals == []
    assert [meter.name for meter in meters] == [
        "hwmon:twin:power1",
        "hwmon:labels:rail",
        "hwmon:labels:rail-2",
        "hwmon:twin-2:power1",
        "hwmon:twin:energy1",
        "hwmon:twin-2:energy1",
    ]
