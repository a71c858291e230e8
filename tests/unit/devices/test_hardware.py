"""What the kernel tells of hardware: cores by kind, instruction sets, limits of power, disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgebench.devices.hardware import (
    CoreKind,
    Disk,
    PowerCaps,
    disk_of,
    instruction_sets,
    kind_of_machine,
    kinds_of_cores,
    nvidia_gpus,
    power_caps,
)

NOT_ANDROID = Path("/nowhere/build.prop")

# The order of CPUs and the feature list are as a phone with a Snapdragon 8 Gen 3 has them.
PHONE = "\n\n".join(
    f"processor\t: {cpu}\nBogoMIPS\t: 38.40\nFeatures\t: fp asimd asimdhp asimddp {more}\n"
    f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {part}"
    for cpu, (part, more) in enumerate(
        [("0xd80", "i8mm bf16")] * 2 + [("0xd81", "i8mm bf16")] * 5 + [("0xd82", "i8mm bf16 sve2")]
    )
)


@pytest.fixture
def phone(tree):
    """Eight cores of three kinds, of which one is clocked in two ways."""
    tree.proc({"cpuinfo": PHONE})
    clocks = [2_265_600] * 2 + [2_956_800] * 2 + [3_148_800] * 3 + [3_302_400]
    tree.sys({"devices/system/cpu/online": "0-7\n"})
    for cpu, khz in enumerate(clocks):
        folder = f"devices/system/cpu/cpu{cpu}"
        tree.sys(
            {
                f"{folder}/cpufreq/cpuinfo_max_freq": f"{khz}\n",
                f"{folder}/topology/core_id": f"{cpu}\n",
                f"{folder}/topology/physical_package_id": "0\n",
            }
        )
    return tree


def test_cores_are_told_apart_by_part_and_clock(phone):
    """Arm's numbers of parts have names; the fastest kind comes first."""
    assert kinds_of_cores(phone.procfs, phone.sysfs) == [
        CoreKind("Cortex-X4", 1, 3_302_400_000),
        CoreKind("Cortex-A720", 3, 3_148_800_000),
        CoreKind("Cortex-A720", 2, 2_956_800_000),
        CoreKind("Cortex-A520", 2, 2_265_600_000),
    ]


def test_instruction_sets_are_those_that_every_cpu_has(phone):
    """One kind of core has SVE2 and the others lack it: a thread may land on any."""
    assert instruction_sets(phone.procfs) == ["asimd", "asimdhp", "asimddp", "i8mm", "bf16"]


def test_cpus_of_one_core_count_once(intel_desktop):
    """Eight CPUs, two on each core, are four cores; without cpuinfo_max_freq no clock is known."""
    (cores,) = kinds_of_cores(intel_desktop.procfs, intel_desktop.sysfs)
    assert cores == CoreKind("Intel(R) Core(TM) i7-7700 CPU", 4, None)
    assert instruction_sets(intel_desktop.procfs) == ["avx2"]


def test_an_unknown_part_keeps_its_numbers(tree):
    """A core that nobody has named yet is not called by another's name."""
    tree.proc({"cpuinfo": "processor\t: 0\nCPU implementer\t: 0x51\nCPU part\t: 0x001\n"})
    (cores,) = kinds_of_cores(tree.procfs, tree.sysfs)
    assert cores == CoreKind("implementer 0x51 part 0x1", 1, None)


def test_a_bare_tree_tells_little_and_breaks_nothing(tree):
    """Where files are missing the answer is nothing, not an error."""
    assert instruction_sets(tree.procfs) == []
    assert power_caps(tree.sysfs) == PowerCaps(None, None)
    assert nvidia_gpus(tree.procfs) == []
    assert disk_of(tree.procfs, tree.procfs, tree.sysfs) is None
    assert all(each.name is None for each in kinds_of_cores(tree.procfs, tree.sysfs))


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({"class/dmi/id/chassis_type": "3\n"}, "desktop"),
        ({"class/dmi/id/chassis_type": "10\n"}, "laptop"),
        ({"class/dmi/id/chassis_type": "23\n"}, "server"),
        ({"firmware/devicetree/base/model": "Raspberry Pi 5 Model B Rev 1.0\0"}, "board"),
        ({}, "desktop"),
    ],
)
def test_the_kind_of_machine_is_the_firmwares_word(tree, files, kind):
    """Chassis types of SMBIOS, or a device tree; a desktop where nothing says otherwise."""
    tree.proc({"cpuinfo": "processor\t: 0\nflags\t\t: fpu avx2\n"})
    tree.sys(files)
    assert kind_of_machine(tree.procfs, tree.sysfs, NOT_ANDROID) == kind


def test_a_virtual_machine_is_known(virtual_machine):
    """A hypervisor stands above whatever else the firmware says."""
    assert kind_of_machine(virtual_machine.procfs, virtual_machine.sysfs, NOT_ANDROID) == "vm"


def test_android_is_a_phone(raspberry_pi, tmp_path):
    """Android's file of properties is on every phone, and on no other board."""
    properties = tmp_path / "build.prop"
    properties.touch()
    assert kind_of_machine(raspberry_pi.procfs, raspberry_pi.sysfs, properties) == "phone"
    assert kind_of_machine(raspberry_pi.procfs, raspberry_pi.sysfs, NOT_ANDROID) == "board"


def test_limits_of_power_are_summed_over_packages(intel_desktop):
    """Two packages with 125 W and 253 W are 250 W and 506 W; parts of a package add nothing."""
    for zone in ("intel-rapl:0", "intel-rapl:1"):
        intel_desktop.sys(
            {
                f"class/powercap/{zone}/name": "package-0\n",
                f"class/powercap/{zone}/constraint_0_name": "long_term\n",
                f"class/powercap/{zone}/constraint_0_power_limit_uw": "125000000\n",
                f"class/powercap/{zone}/constraint_1_name": "short_term\n",
                f"class/powercap/{zone}/constraint_1_power_limit_uw": "253000000\n",
            }
        )
    assert power_caps(intel_desktop.sysfs) == PowerCaps(250.0, 506.0)


def test_a_package_without_a_limit_leaves_the_sum_unknown(intel_desktop):
    """Half of a machine's limit is not the machine's limit."""
    intel_desktop.sys(
        {
            "class/powercap/intel-rapl:1/name": "package-1\n",
            "class/powercap/intel-rapl:0/constraint_0_name": "long_term\n",
            "class/powercap/intel-rapl:0/constraint_0_power_limit_uw": "125000000\n",
        }
    )
    assert power_caps(intel_desktop.sysfs) == PowerCaps(None, None)


@pytest.mark.parametrize(
    ("disk", "partition", "files", "kind"),
    [
        ("nvme0n1", "nvme0n1p2", {"queue/rotational": "0\n"}, "NVMe disk"),
        ("mmcblk0", "mmcblk0p2", {"device/type": "SD\n"}, "SD card"),
        ("mmcblk1", "mmcblk1p1", {"device/type": "MMC\n"}, "eMMC"),
        ("vda", None, {}, "virtual disk"),
        ("sda", "sda1", {"queue/rotational": "1\n"}, "hard disk"),
        ("sdb", "sdb1", {"queue/rotational": "0\n"}, "solid-state disk"),
    ],
)
def test_the_disk_below_a_folder(tree, disk, partition, files, kind):
    """The deepest mount that holds the folder names the device; a partition is on its disk."""
    home = tree.procfs.parent / "home with space"
    home.mkdir()
    point = str(home).replace(" ", "\\040")
    tree.proc(
        {
            "self/mountinfo": (
                "1 0 0:5 / / rw - tmpfs none rw\n"
                f"2 1 8:2 / {point} rw,relatime shared:1 - ext4 /dev/x rw\n"
                f"3 1 0:9 / {point}/other rw - tmpfs none rw\n"
            )
        }
    )
    block = f"devices/pci/block/{disk}"
    tree.sys({f"{block}/queue/logical_block_size": "512\n"})
    tree.sys({f"{block}/{name}": text for name, text in files.items()})
    place = f"{block}/{partition}" if partition else block
    tree.sys({f"{place}/dev": "8:2\n"})
    (tree.sysfs / "dev/block").mkdir(parents=True)
    (tree.sysfs / "dev/block/8:2").symlink_to(tree.sysfs / place)
    assert disk_of(home, tree.procfs, tree.sysfs) == Disk(disk, kind)


def test_nvidias_driver_names_its_gpus(tree):
    """The line Model of each GPU's file."""
    tree.proc(
        {
            "driver/nvidia/gpus/0000:01:00.0/information": (
                "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ:   \t\t 140\n"
            )
        }
    )
    assert nvidia_gpus(tree.procfs) == ["NVIDIA GeForce RTX 4090"]
