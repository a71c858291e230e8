"""Energy meters of powercap, on recorded trees."""

from __future__ import annotations

import shutil
import tempfile
from itertools import count
from pathlib import Path

import pytest

from edgebench.devices.counter_log import CounterLog
from edgebench.devices.energy import energy_between
from edgebench.devices.power import find_meters, look_for_meters
from edgebench.devices.rapl import RaplMeter, Zone


def set_uj(tree, folder: str, value: int | str) -> None:
    tree.sys({f"class/powercap/{folder}/energy_uj": f"{value}\n"})


def test_desktop_has_a_meter_for_each_domain(intel_desktop, spinning):
    """The package comes first, then the platform, and the package's parts and the memory."""
    search = find_meters(
        intel_desktop.sysfs, procfs=intel_desktop.procfs, clock=spinning(intel_desktop)
    )

    assert [meter.name for meter in search.meters] == [
        "rapl:package",
        "rapl:psys",
        "rapl:core",
        "rapl:uncore",
        "rapl:dram",
    ]
    assert {meter.source for meter in search.meters} == {"observed"}
    assert search.refusals == ()


def test_package_is_counted_once(intel_desktop, spinning):
    """Cores, uncore, psys and the second way to the package add nothing to the package."""
    package, *_, memory = find_meters(
        intel_desktop.sysfs, procfs=intel_desktop.procfs, clock=spinning(intel_desktop)
    ).meters
    set_uj(intel_desktop, "intel-rapl:0", 5_000_000)
    package.read_j()
    memory.read_j()
    before = package.read_j(), memory.read_j()
    for folder in ("intel-rapl:0:0", "intel-rapl:0:1", "intel-rapl:1", "intel-rapl-mmio:0"):
        set_uj(intel_desktop, folder, 100_000_000)

    set_uj(intel_desktop, "intel-rapl:0", 7_500_000)

    assert package.read_j() - before[0] == pytest.approx(2.5)
    assert memory.read_j() == pytest.approx(before[1], abs=1e-4)  # the clock moves it a little


def test_mmio_is_used_where_it_is_the_only_way(tree, write_zone, spinning):
    """A package that only the memory-mapped interface shows has a meter all the same."""
    write_zone(tree, "intel-rapl-mmio:0", "package-0", 1)

    meters = find_meters(tree.sysfs, procfs=tree.procfs, clock=spinning(tree)).meters

    assert [meter.name for meter in meters] == ["rapl:package"]


def test_packages_are_summed(amd_server, spinning):
    """A machine with two sockets has one meter, which counts both.

    What AMD's driver calls the cores is one core of them, so it is no meter.
    """
    (meter,) = find_meters(
        amd_server.sysfs, procfs=amd_server.procfs, clock=spinning(amd_server)
    ).meters
    set_uj(amd_server, "intel-rapl:0", 11_000_000)
    set_uj(amd_server, "intel-rapl:1", 30_000_000)
    before_j = meter.read_j()

    set_uj(amd_server, "intel-rapl:0", 14_000_000)
    set_uj(amd_server, "intel-rapl:1", 30_500_000)

    assert meter.read_j() - before_j == pytest.approx(3.5)


def test_counter_that_starts_again_is_followed(tree, write_zone):
    """Past its range the counter starts at 0, and the sum goes on: 850 + 150 microjoules."""
    write_zone(tree, "intel-rapl:0", "package-0", 262_143_328_000)
    folder = tree.sysfs / "class/powercap/intel-rapl:0"
    meter = RaplMeter("rapl:package", [Zone("package-0", folder, 262_143_328_850)])
    assert meter.read_j() == 0.0

    set_uj(tree, "intel-rapl:0", 150)

    assert meter.read_j() == 0.001


def test_each_package_starts_again_on_its_own(tree, write_zone):
    """One socket's turn is not added to the other: 400 + 600 and 2000 microjoules."""
    write_zone(tree, "intel-rapl:0", "package-0", 9_600)
    write_zone(tree, "intel-rapl:1", "package-1", 1_000)
    powercap = tree.sysfs / "class/powercap"
    zones = [Zone(f"package-{n}", powercap / f"intel-rapl:{n}", 10_000) for n in range(2)]
    meter = RaplMeter("rapl:package", zones)

    set_uj(tree, "intel-rapl:0", 600)
    set_uj(tree, "intel-rapl:1", 3_000)

    assert meter.read_j() == 0.003


def test_many_turns_keep_each_microjoule(tree, write_zone):
    """Whole numbers are summed, so that a year of turns loses nothing to rounding.

    A thousand years between two looks are time enough for each of these steps.
    """
    write_zone(tree, "intel-rapl:0", "package-0", 0)
    zone = Zone("package-0", tree.sysfs / "class/powercap/intel-rapl:0", 2**63)
    age_ns = 1000 * 365 * 86_400 * 1_000_000_000
    meter = RaplMeter("rapl:package", [zone], clock=count(0, age_ns).__next__)

    for value in (2**63 - 1, 2**62, 2**62 + 1):
        set_uj(tree, "intel-rapl:0", value)
        total_j = meter.read_j()

    # 2**63 - 1, then 2**62 + 1 to the turn and beyond, then 1.
    assert total_j == (2**63 - 1 + (2**63 + 2**62 - (2**63 - 1)) + 1) / 1e6


@pytest.mark.parametrize("begins_at", [0, 200_000_000_000], ids=["at nothing", "far ahead"])
def test_counter_that_begins_anew_is_no_turn(tree, write_zone, begins_at: int):
    """15 W, and at 5 s the driver is loaded again: 212 kJ at once are no turn of the counter.

    What touches that moment is null with the reason; 15 W x 3 s before and after it are 45 J.
    """
    second, now_ns = 1_000_000_000, 0
    write_zone(tree, "intel-rapl:0", "package-0", 50_000_000_000)
    zone = Zone("package-0", tree.sysfs / "class/powercap/intel-rapl:0", 262_143_328_850)
    meter = RaplMeter("rapl:package", [zone], clock=lambda: now_ns)
    log = CounterLog(meter, lambda: now_ns)
    value = 50_000_000_000
    for step in range(201):
        now_ns = step * second // 20
        value = begins_at if step == 100 else value + 15 * 1_000_000 // 20
        set_uj(tree, "intel-rapl:0", value)
        log.read()
    seen = log.trace()

    assert energy_between(seen, 4 * second, 6 * second).reason == (
        "rapl:package could not be read for a while: the counter of package-0 began anew"
    )
    for start in (1, 6):
        found = energy_between(seen, start * second, (start + 3) * second)
        assert found.value == pytest.approx(45.0)


def test_meter_closes_its_files(tree, write_zone):
    """Files that a meter keeps open are closed with it."""
    write_zone(tree, "intel-rapl:0", "package-0", 1)
    zone = Zone("package-0", tree.sysfs / "class/powercap/intel-rapl:0", 10_000)
    before = len(list(Path("/proc/self/fd").iterdir()))

    meter = RaplMeter("rapl:package", [zone])
    opened = len(list(Path("/proc/self/fd").iterdir()))
    del meter

    assert opened == before + 1
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_counter_that_turns_to_nonsense_is_an_error(tree, write_zone):
    """A meter whose counter stops being a number says so instead of inventing joules."""
    write_zone(tree, "intel-rapl:0", "package-0", 1)
    zone = Zone("package-0", tree.sysfs / "class/powercap/intel-rapl:0", 10_000)
    meter = RaplMeter("rapl:package", [zone])

    set_uj(tree, "intel-rapl:0", "")

    with pytest.raises(OSError, match="not a number"):
        meter.read_j()


def test_frozen_counter_is_refused(amd_server, spinning):
    """One stuck socket makes the sum worthless, so the meter is refused and the socket named."""
    clock = spinning(amd_server, stuck=("intel-rapl:1",))

    search = find_meters(amd_server.sysfs, procfs=amd_server.procfs, clock=clock)

    assert search.meters == ()
    assert search.refusals == (
        "rapl:package: intel-rapl:1/energy_uj never changes, so it measures nothing",
    )


def test_broken_memory_counter_does_not_cost_the_package(intel_desktop, spinning):
    """Each meter is judged alone."""
    clock = spinning(intel_desktop, stuck=("intel-rapl:0:2",))

    search = find_meters(intel_desktop.sysfs, procfs=intel_desktop.procfs, clock=clock)

    assert "rapl:package" in [meter.name for meter in search.meters]
    assert search.refusals[0].startswith("rapl:dram: intel-rapl:0:2/energy_uj never changes")


def test_unreadable_number_is_refused(tree, write_zone, spinning):
    """A counter that holds no number is refused, and the reason told."""
    write_zone(tree, "intel-rapl:0", "package-0", 1)
    tree.sys({"class/powercap/intel-rapl:0/energy_uj": "<unknown>\n"})

    (refusal,) = find_meters(
        tree.sysfs, procfs=tree.procfs, clock=count(0, 10**6).__next__
    ).refusals

    assert refusal == "rapl:package: intel-rapl:0/energy_uj can't be read (not a number)"


@pytest.fixture
def root_only_sysfs():
    # Not below tmp_path, whose parents nobody else may enter.
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    zone = folder / "class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    (zone / "energy_uj").write_text("1\n")
    (zone / "energy_uj").chmod(0)
    yield folder
    shutil.rmtree(folder)


def test_counter_for_root_only_names_the_rule_that_opens_it(root_only_sysfs, not_root):
    """Without permission there is no meter and no estimate, but the command that fixes it."""
    meters, (refusal,) = look_for_meters(
        root_only_sysfs / "absent", root_only_sysfs, count(0, 10**6).__next__
    )

    assert meters == ()
    assert refusal.finding == "rapl:package: only root may read intel-rapl:0/energy_uj"
    assert refusal.remedy is not None
    assert 'SUBSYSTEM=="powercap"' in refusal.remedy
    assert "sudo udevadm trigger" in refusal.remedy
    assert str(refusal).endswith(refusal.remedy)


def test_virtual_machine_says_so(virtual_machine):
    """Where a hypervisor hides the counters, the refusal says that this is one."""
    search = find_meters(virtual_machine.sysfs, procfs=virtual_machine.procfs)

    assert search.meters == ()
    (refusal,) = search.refusals
    assert "virtual machines hide it, and this is one (KVM, Docker)" in refusal


def test_board_without_counters_says_so(raspberry_pi):
    """A processor that has no such counter is no case for a driver."""
    (refusal,) = find_meters(raspberry_pi.sysfs, procfs=raspberry_pi.procfs).refusals

    assert refusal.endswith("has no energy counter: this processor has none")


def test_pc_without_driver_names_the_module(intel_desktop):
    """An Intel or AMD machine without powercap gets the command that loads its driver."""
    shutil.rmtree(intel_desktop.sysfs / "class/powercap")

    (refusal,) = find_meters(intel_desktop.sysfs, procfs=intel_desktop.procfs).refusals

    assert refusal.endswith("sudo modprobe intel_rapl_msr")


def test_meter_knows_how_often_its_counter_changes(tree, write_zone):
    """A counter that changes at every third look, of 1 ms each, has a resolution of 3 ms."""
    write_zone(tree, "intel-rapl:0", "package-0", 0)
    looks = count(1)

    def clock() -> int:
        look = next(looks)
        set_uj(tree, "intel-rapl:0", look // 3)
        return look * 1_000_000

    (meter,) = find_meters(tree.sysfs, procfs=tree.procfs, clock=clock).meters

    assert meter.resolution_s == pytest.approx(0.003)


def test_closed_meter_is_not_read(tree, write_zone):
    """A closed meter gives its files back and says so, instead of reading another file."""
    write_zone(tree, "intel-rapl:0", "package-0", 1)
    zone = Zone("package-0", tree.sysfs / "class/powercap/intel-rapl:0", 10_000)
    before = len(list(Path("/proc/self/fd").iterdir()))
    meter = RaplMeter("rapl:package", [zone])

    meter.close()
    meter.close()

    assert len(list(Path("/proc/self/fd").iterdir())) == before
    with pytest.raises(OSError, match="it was closed"):
        meter.read_j()
