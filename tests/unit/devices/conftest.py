"""Recorded trees of procfs and sysfs, and real processes that do what they are told."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

CPUINFO_ENTRY = """\
processor\t: {cpu}
vendor_id\t: {vendor}
model name\t: {model}
cpu MHz\t\t: {mhz}
flags\t\t: fpu vme avx2 {flags}

"""

STATUS = """\
Name:\tbash
Pid:\t{pid}
VmHWM:\t    {hwm} kB
VmRSS:\t    {rss} kB
RssAnon:\t     {anon} kB
RssFile:\t    {file} kB
RssShmem:\t       {shmem} kB
Cpus_allowed_list:\t{cpus}
voluntary_ctxt_switches:\t{voluntary}
nonvoluntary_ctxt_switches:\t{involuntary}
"""

MEMINFO = """\
MemTotal:       {total} kB
MemFree:        1000 kB
MemAvailable:   {available} kB
SwapTotal:      {swap_total} kB
SwapFree:       {swap_free} kB
HugePages_Total:       0
"""


@dataclass(frozen=True)
class Tree:
    """One machine's procfs and sysfs."""

    procfs: Path
    sysfs: Path

    def proc(self, files: dict[str, str]) -> None:
        write_files(self.procfs, files)

    def sys(self, files: dict[str, str]) -> None:
        write_files(self.sysfs, files)


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def cpuinfo(count: int, *, vendor: str, model: str, flags: str = "", mhz: float = 2600.0) -> str:
    return "".join(
        CPUINFO_ENTRY.format(cpu=cpu, vendor=vendor, model=model, flags=flags, mhz=mhz)
        for cpu in range(count)
    )


def status(pid: int = 1, *, cpus: str = "0", **fields: int) -> str:
    defaults = {"hwm": 0, "rss": 0, "anon": 0, "file": 0, "shmem": 0}
    counts = {"voluntary": 0, "involuntary": 0}
    return STATUS.format(pid=pid, cpus=cpus, **{**defaults, **counts, **fields})


def stat(pid: int, name: str = "bash", **fields: int) -> str:
    """One line of /proc/PID/stat with the given fields."""
    values = {"minflt": 0, "cminflt": 0, "majflt": 0, "cmajflt": 0}
    values |= {"utime": 0, "stime": 0, "cutime": 0, "cstime": 0, "ppid": 1} | fields
    return (
        f"{pid} ({name}) S {values['ppid']} {pid} {pid} 0 -1 4194304 "
        f"{values['minflt']} {values['cminflt']} {values['majflt']} {values['cmajflt']} "
        f"{values['utime']} {values['stime']} {values['cutime']} {values['cstime']} "
        "20 0 1 0 67120 3133440 410 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0"
    )


def meminfo(total: int, available: int, swap_total: int = 0, swap_free: int = 0) -> str:
    return MEMINFO.format(
        total=total, available=available, swap_total=swap_total, swap_free=swap_free
    )


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """An empty machine."""
    made = Tree(tmp_path / "proc", tmp_path / "sys")
    made.procfs.mkdir()
    made.sysfs.mkdir()
    return made


@pytest.fixture
def intel_desktop(tree: Tree) -> Tree:
    """Four cores with two CPUs each, RAPL, intel_pstate, powersave, turbo on."""
    tree.proc(
        {
            "cpuinfo": cpuinfo(8, vendor="GenuineIntel", model="Intel(R) Core(TM) i7-7700 CPU"),
            "stat": "cpu  1000 0 1000 70000 0 0 0 0 0 0\ncpu0 1 0 1 1 0 0 0 0 0 0\n",
            "meminfo": meminfo(32_768_000, 30_000_000),
            "loadavg": "0.10 0.20 0.30 1/500 4242",
            "self/status": status(cpus="0-7"),
            "self/cgroup": "0::/user.slice/session.scope\n",
            "sys/kernel/osrelease": "6.8.0-45-generic\n",
            "sys/kernel/random/boot_id": "11111111-2222-3333-4444-555555555555\n",
        }
    )
    cpu = "devices/system/cpu"
    tree.sys({f"{cpu}/online": "0-7\n", f"{cpu}/smt/active": "1\n"})
    tree.sys({f"{cpu}/intel_pstate/no_turbo": "0\n"})
    for number in range(8):
        tree.sys(
            {
                f"{cpu}/cpu{number}/topology/core_id": f"{number % 4}\n",
                f"{cpu}/cpu{number}/topology/physical_package_id": "0\n",
                f"{cpu}/cpu{number}/cpufreq/scaling_governor": "powersave\n",
                f"{cpu}/cpu{number}/cpufreq/scaling_cur_freq": f"{3_000_000 + number * 1000}\n",
                f"{cpu}/cpu{number}/thermal_throttle/core_throttle_count": "0\n",
                f"{cpu}/cpu{number}/thermal_throttle/package_throttle_count": "0\n",
            }
        )
    tree.sys(
        {
            "class/thermal/thermal_zone0/type": "acpitz\n",
            "class/thermal/thermal_zone0/temp": "27800\n",
            "class/thermal/thermal_zone1/type": "x86_pkg_temp\n",
            "class/thermal/thermal_zone1/temp": "45000\n",
            "class/dmi/id/sys_vendor": "Dell Inc.\n",
            "class/dmi/id/product_name": "OptiPlex 7050\n",
            "kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        }
    )
    rapl = "class/powercap"
    tree.sys({f"{rapl}/intel-rapl/enabled": "1\n"})
    add_zone(tree, "intel-rapl:0", "package-0", 1_000_000)
    add_zone(tree, "intel-rapl:0:0", "core", 500_000)
    add_zone(tree, "intel-rapl:0:1", "uncore", 100_000)
    add_zone(tree, "intel-rapl:0:2", "dram", 200_000)
    add_zone(tree, "intel-rapl:1", "psys", 9_000_000)
    add_zone(tree, "intel-rapl-mmio:0", "package-0", 7_000_000)
    return tree


@pytest.fixture
def amd_server(tree: Tree) -> Tree:
    """Two packages of two cores, k10temp in hwmon, performance, boost off."""
    tree.proc(
        {
            "cpuinfo": cpuinfo(4, vendor="AuthenticAMD", model="AMD EPYC 7763 64-Core Processor"),
            "stat": "cpu  1000 0 1000 70000 0 0 0 0 0 0\n",
            "meminfo": meminfo(527_000_000, 500_000_000),
            "loadavg": "0.01 0.01 0.01 1/500 4242",
            "self/status": status(cpus="0-3"),
            "self/cgroup": "0::/\n",
            "sys/kernel/osrelease": "6.1.0-18-amd64\n",
        }
    )
    cpu = "devices/system/cpu"
    tree.sys({f"{cpu}/online": "0-3\n", f"{cpu}/cpufreq/boost": "0\n"})
    for number in range(4):
        tree.sys(
            {
                f"{cpu}/cpu{number}/topology/core_id": f"{number % 2}\n",
                f"{cpu}/cpu{number}/topology/physical_package_id": f"{number // 2}\n",
                f"{cpu}/cpu{number}/cpufreq/scaling_governor": "performance\n",
                f"{cpu}/cpu{number}/cpufreq/scaling_cur_freq": "2450000\n",
            }
        )
    for chip, (tctl, tdie) in enumerate([(71_000, 61_000), (75_000, 65_000)]):
        tree.sys(
            {
                f"class/hwmon/hwmon{chip}/name": "k10temp\n",
                f"class/hwmon/hwmon{chip}/temp1_input": f"{tctl}\n",
                f"class/hwmon/hwmon{chip}/temp1_label": "Tctl\n",
                f"class/hwmon/hwmon{chip}/temp2_input": f"{tdie}\n",
                f"class/hwmon/hwmon{chip}/temp2_label": "Tdie\n",
                f"class/hwmon/hwmon{chip}/temp3_input": "90000\n",
                f"class/hwmon/hwmon{chip}/temp3_label": "Tccd1\n",
            }
        )
    tree.sys({"kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"})
    add_zone(tree, "intel-rapl:0", "package-0", 10_000_000, range_uj=65_532_610_987)
    add_zone(tree, "intel-rapl:0:0", "core", 500_000, range_uj=65_532_610_987)
    add_zone(tree, "intel-rapl:1", "package-1", 20_000_000, range_uj=65_532_610_987)
    add_zone(tree, "intel-rapl:1:0", "core", 500_000, range_uj=65_532_610_987)
    return tree


@pytest.fixture
def raspberry_pi(tree: Tree) -> Tree:
    """A board with four cores, a thermal zone and cpufreq, without RAPL and DMI."""
    tree.proc(
        {
            "cpuinfo": (
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n\n"
                "Revision\t: c03114\nModel\t\t: Raspberry Pi 4 Model B Rev 1.4\n"
            ),
            "stat": "cpu  1000 0 1000 70000 0 0 0 0 0 0\n",
            "meminfo": meminfo(3_884_000, 200_000, swap_total=102_400, swap_free=51_200),
            "loadavg": "0.90 0.20 0.30 1/500 4242",
            "self/status": status(cpus="2-3"),
            "self/cgroup": "0::/\n",
            "sys/kernel/osrelease": "6.6.31+rpt-rpi-v8\n",
        }
    )
    cpu = "devices/system/cpu"
    tree.sys(
        {
            f"{cpu}/online": "0-3\n",
            "class/thermal/thermal_zone0/type": "cpu-thermal\n",
            "class/thermal/thermal_zone0/temp": "82280\n",
            "firmware/devicetree/base/model": "Raspberry Pi 4 Model B Rev 1.4\0",
            "firmware/devicetree/base/compatible": "raspberrypi,4-model-b\0brcm,bcm2711\0",
            "devices/platform/soc/soc:firmware/get_throttled": "50005\n",
        }
    )
    for number in range(4):
        tree.sys(
            {
                f"{cpu}/cpu{number}/topology/core_id": f"{number}\n",
                f"{cpu}/cpu{number}/topology/physical_package_id": "0\n",
                f"{cpu}/cpu{number}/cpufreq/scaling_governor": "ondemand\n",
                f"{cpu}/cpu{number}/cpufreq/scaling_cur_freq": f"{(number + 1) * 300_000}\n",
            }
        )
    return tree


@pytest.fixture
def virtual_machine(tree: Tree) -> Tree:
    """Two CPUs of a small virtual machine: no DMI, no cpufreq, no sensors, a CPU quota."""
    model = "AMD EPYC"
    tree.proc(
        {
            "cpuinfo": cpuinfo(2, vendor="AuthenticAMD", model=model, flags="hypervisor"),
            "stat": "cpu  1000 0 1000 70000 0 0 0 100 0 0\n",
            "meminfo": meminfo(24_684_092, 24_212_928),
            "loadavg": "0.03 0.41 0.38 1/86 5533",
            "self/status": status(cpus="0-1"),
            "self/cgroup": "2:cpu,cpuacct:/job/step\n1:name=systemd:/\n0::/\n",
            "self/root/.dockerenv": "",
            "sys/kernel/osrelease": "6.18.44\n",
        }
    )
    clocksource = "devices/system/clocksource/clocksource0/available_clocksource"
    tree.sys({"devices/system/cpu/online": "0-1\n", clocksource: "tsc kvm-clock \n"})
    return tree


def add_zone(
    tree: Tree, folder: str, name: str, energy_uj: int, *, range_uj: int = 262_143_328_850
) -> None:
    tree.sys(
        {
            f"class/powercap/{folder}/name": f"{name}\n",
            f"class/powercap/{folder}/energy_uj": f"{energy_uj}\n",
            f"class/powercap/{folder}/max_energy_range_uj": f"{range_uj}\n",
        }
    )


class Spinning:
    """A clock of 1 ms a look, while which all energy counters but those in `stuck` go up."""

    def __init__(self, tree: Tree, *, stuck: tuple[str, ...] = ()) -> None:
        self._counters = [
            path
            for path in tree.sysfs.glob("class/powercap/*/energy_uj")
            if path.parent.name not in stuck
        ]
        self._now_ns = 0

    def __call__(self) -> int:
        self._now_ns += 1_000_000
        for counter in self._counters:
            counter.write_text(f"{int(counter.read_text()) + 1}\n")
        return self._now_ns


@pytest.fixture
def spinning() -> type[Spinning]:
    return Spinning


class Obedient:
    """A real process that executes the lines it is sent, one after the other."""

    CODE = "import sys\nfor line in sys.stdin:\n    exec(line)\n    print('done', flush=True)"

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self.CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid
        self.do("pass")

    def do(self, line: str) -> None:
        """Execute a line and return when it is done."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "done\n"

    def kill(self) -> None:
        """End it and collect it."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def obedient() -> Iterator[Obedient]:
    process = Obedient()
    yield process
    process.close()


@pytest.fixture
def not_root() -> Iterator[None]:
    """Run as a user without privileges, as most people do."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.fixture
def write_status() -> Callable[..., str]:
    return status


@pytest.fixture
def write_stat() -> Callable[..., str]:
    return stat


@pytest.fixture
def write_meminfo() -> Callable[..., str]:
    return meminfo


@pytest.fixture
def write_zone() -> Callable[..., None]:
    return add_zone
