"""Which sensor is the processor's, and what it says."""

from __future__ import annotations

import pytest

from edgebench.devices.thermal import find_sensors, maximum, read_hottest_celsius


def zones(tree, *entries: tuple[str, str]) -> None:
    for number, (kind, temp) in enumerate(entries):
        folder = f"class/thermal/thermal_zone{number}"
        tree.sys({f"{folder}/type": f"{kind}\n", f"{folder}/temp": f"{temp}\n"})


def test_package_sensor_is_preferred_to_the_boards(intel_desktop):
    """The zone of the package counts, not the one somewhere in the case."""
    sensors = find_sensors(intel_desktop.sysfs)

    assert [sensor.name for sensor in sensors] == ["x86_pkg_temp"]
    assert read_hottest_celsius(sensors) == 45.0


def test_die_is_preferred_to_the_fan_controls_value(amd_server):
    """Tdie of each socket is read, and the hotter socket counts."""
    sensors = find_sensors(amd_server.sysfs)

    assert [sensor.name for sensor in sensors] == ["k10temp Tdie", "k10temp Tdie"]
    assert read_hottest_celsius(sensors) == 65.0


def test_board_has_a_zone(raspberry_pi):
    """A single-board computer's zone is in thousandths of a degree."""
    assert read_hottest_celsius(find_sensors(raspberry_pi.sysfs)) == 82.28


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cpu_thermal", True),
        ("soc-thermal", True),
        ("cpu0-0-top-usr", True),
        ("bigcore0-thermal", True),
        ("CPU-therm", True),
        ("iwlwifi_1", False),
        ("battery", False),
        ("acpitz", False),
        ("pch_skylake", False),
        ("INT3400 Thermal", False),
    ],
)
def test_only_processors_zones_count(tree, kind, expected):
    """Wi-Fi chips, batteries and the case are not the processor."""
    zones(tree, (kind, "40000"))

    assert bool(find_sensors(tree.sysfs)) is expected


@pytest.mark.parametrize("value", ["0", "-273200", "255000", "", "N/A"])
def test_sensor_that_says_nothing_true_is_no_sensor(tree, value):
    """Values of sensors that are off or broken are no temperature."""
    zones(tree, ("cpu-thermal", value))

    assert find_sensors(tree.sysfs) == ()


def test_coretemp_counts_packages_only(tree):
    """Of coretemp the package's sensor is taken, not a core's."""
    chip = "class/hwmon/hwmon3"
    tree.sys(
        {
            f"{chip}/name": "coretemp\n",
            f"{chip}/temp1_input": "50000\n",
            f"{chip}/temp1_label": "Package id 0\n",
            f"{chip}/temp2_input": "70000\n",
            f"{chip}/temp2_label": "Core 0\n",
        }
    )

    sensors = find_sensors(tree.sysfs)

    assert [(sensor.name, sensor.read_celsius()) for sensor in sensors] == [
        ("coretemp Package id 0", 50.0)
    ]


def test_maximum_needs_a_sensor_and_a_sample(raspberry_pi):
    """Without sensor or sample there is a reason, and with them the highest value."""
    sensors = find_sensors(raspberry_pi.sysfs)

    assert maximum((), ()).reason == "the machine shows no CPU temperature"
    assert maximum(sensors, ()).reason == "the temperature sensor did not answer"
    assert maximum(sensors, (50.0, 61.5, 40.0)).value == 61.5
    assert maximum(sensors, (50.0,)).method == "cpu-thermal"
