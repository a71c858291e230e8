"""The machine's description and its fingerprint."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from dataclasses import asdict, fields

import psutil
import pytest

from edgebench.devices.machine import Machine, describe_machine
from edgebench.devices.virtualization import describe_virtualization, in_virtual_machine
from edgebench.harness.results.model import MachineRecord


def describe(tree) -> Machine:
    return describe_machine(tree.procfs, tree.sysfs)


def test_desktop(intel_desktop):
    """All that the kernel's files say is in the description."""
    machine = describe(intel_desktop)

    assert machine.cpu_model == "Intel(R) Core(TM) i7-7700 CPU"
    assert (machine.logical_cpus, machine.physical_cpus) == (8, 4)
    assert machine.affinity == tuple(range(8))
    assert machine.memory_bytes == 32_768_000 * 1024
    assert machine.kernel == "6.8.0-45-generic"
    assert (machine.governor, machine.turbo) == ("powersave", True)
    assert machine.virtualization is None
    assert machine.boot_id == "11111111-2222-3333-4444-555555555555"
    assert machine.load_average == (0.1, 0.2, 0.3)
    assert machine.architecture == platform.machine()


def test_server_with_two_sockets(amd_server):
    """Cores of two sockets with the same numbers are different cores."""
    machine = describe(amd_server)

    assert (machine.logical_cpus, machine.physical_cpus) == (4, 4)
    assert (machine.governor, machine.turbo) == ("performance", False)


def test_board(raspberry_pi):
    """A board without a processor's name is named itself."""
    machine = describe(raspberry_pi)

    assert machine.cpu_model == "Raspberry Pi 4 Model B Rev 1.4"
    assert machine.affinity == (2, 3)
    assert (machine.governor, machine.turbo) == ("ondemand", None)


def test_arm_server_without_names(raspberry_pi):
    """The last resort is the numbers of the processor's design."""
    text = (raspberry_pi.procfs / "cpuinfo").read_text()
    raspberry_pi.proc({"cpuinfo": text.partition("Revision")[0]})
    (raspberry_pi.sysfs / "firmware/devicetree/base/model").unlink()

    assert describe(raspberry_pi).cpu_model == "ARM implementer 0x41 part 0xd08"


def test_virtual_machine(virtual_machine):
    """A virtual machine without firmware tables is known by its hypervisor's clock."""
    machine = describe(virtual_machine)

    assert machine.virtualization == "KVM, Docker"
    assert (machine.governor, machine.turbo, machine.boot_id) == (None, None, None)


def test_mixed_governors_are_both_named(intel_desktop):
    """CPUs with different governors are not summed up by the first."""
    path = "devices/system/cpu/cpu5/cpufreq/scaling_governor"
    intel_desktop.sys({path: "performance\n"})

    assert describe(intel_desktop).governor == "performance, powersave"


def test_fingerprint_stays(intel_desktop, write_meminfo):
    """Load, a restart and a few MiB less of memory make no other machine."""
    before = describe(intel_desktop).fingerprint
    intel_desktop.proc(
        {
            "loadavg": "7.00 5.00 3.00 9/500 1",
            "sys/kernel/random/boot_id": "99999999-2222-3333-4444-555555555555\n",
            "meminfo": write_meminfo(32_760_000, 1_000_000),
        }
    )

    assert describe(intel_desktop).fingerprint == before
    assert len(before) == 16
    assert int(before, 16) >= 0


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree.proc({"sys/kernel/osrelease": "6.9.0\n"}),
        lambda tree: tree.proc({"self/status": "Name:\tx\nCpus_allowed_list:\t0-3\n"}),
        lambda tree: tree.proc({"meminfo": "MemTotal:       16384000 kB\n"}),
        lambda tree: tree.sys({"devices/system/cpu/online": "0-6\n"}),
        lambda tree: [
            tree.sys({f"devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "performance\n"})
            for n in range(8)
        ],
        lambda tree: tree.proc({"self/root/.dockerenv": ""}),
    ],
    ids=["kernel", "affinity", "memory", "CPUs", "governor", "container"],
)
def test_fingerprint_changes_with_what_changes_speed(intel_desktop, change):
    """What makes results incomparable makes another fingerprint."""
    before = describe(intel_desktop).fingerprint

    change(intel_desktop)

    assert describe(intel_desktop).fingerprint != before


@pytest.mark.parametrize(
    ("vendor", "product", "flags", "expected"),
    [
        ("QEMU", "Standard PC (Q35 + ICH9, 2009)", "hypervisor", "QEMU"),
        ("VMware, Inc.", "VMware Virtual Platform", "hypervisor", "VMware"),
        ("Amazon EC2", "c5.large", "hypervisor", "Amazon EC2"),
        ("Amazon EC2", "c5.metal", "", None),
        ("Microsoft Corporation", "Virtual Machine", "hypervisor", "Hyper-V"),
        ("Microsoft Corporation", "Surface Pro", "", None),
        ("Someone", "Something", "hypervisor", "unknown hypervisor"),
        ("LENOVO", "ThinkPad", "", None),
    ],
)
def test_hypervisors(tree, vendor, product, flags, expected):
    """The processor's flag decides, and the firmware's tables give the name."""
    tree.proc({"cpuinfo": f"processor\t: 0\nflags\t\t: fpu {flags} avx2\n"})
    tree.sys({"class/dmi/id/sys_vendor": vendor, "class/dmi/id/product_name": product})

    assert describe_virtualization(tree.procfs, tree.sysfs) == expected
    assert in_virtual_machine(tree.procfs, tree.sysfs) is (expected is not None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0::/docker/0123abcd", "Docker"),
        ("0::/kubepods.slice/pod1", "Kubernetes"),
        ("0::/machine.slice/libpod-12.scope", "Podman"),
        ("0::/user.slice", None),
    ],
)
def test_containers(intel_desktop, line, expected):
    """A container is known by its control group where it leaves no other mark."""
    intel_desktop.proc({"self/cgroup": f"{line}\n"})

    assert describe(intel_desktop).virtualization == expected


def test_this_machine():
    """The real description agrees with what Python and psutil say."""
    machine = describe_machine()

    assert set(machine.affinity) == os.sched_getaffinity(0)
    assert machine.logical_cpus == psutil.cpu_count()
    assert machine.memory_bytes == psutil.virtual_memory().total
    assert machine.kernel == platform.release()
    assert machine.cpu_microarchitecture


def test_without_procfs(tmp_path):
    """On other systems psutil and Python's platform module stand in."""
    machine = describe_machine(tmp_path / "proc", tmp_path / "sys")

    assert machine.memory_bytes == psutil.virtual_memory().total
    assert machine.logical_cpus == os.cpu_count()
    assert machine.physical_cpus is None
    assert machine.cpu_model


def test_description_fits_the_result_file(intel_desktop):
    """What is described here is what run.json keeps, field by field."""
    assert [field.name for field in fields(Machine)] == list(MachineRecord.model_fields)

    record = MachineRecord.model_validate(asdict(describe(intel_desktop)))

    assert record.affinity == list(range(8))


def test_nothing_heavy_is_imported():
    """Neither psutil nor archspec is loaded before it is needed, and nothing above devices ever."""
    code = (
        "import edgebench.devices.monitor, edgebench.devices.doctor, sys;"
        "print([m for m in sys.modules if m.split('.')[0] in ('psutil', 'archspec', 'pydantic')"
        " or m.startswith(('edgebench.harness', 'edgebench.runners', 'edgebench.reports'))])"
    )

    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert shown == "[]\n"
