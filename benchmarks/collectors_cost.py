"""What the collectors cost: CPU time of the sampling thread as a share of one core.

Watches a process that computes without pause, alone and with children, with and without energy
counters, clocks and temperature (recorded files stand in for those where the machine has none),
and prints a table. The limit is 1 % of one core at 20 Hz.

Usage: python benchmarks/collectors_cost.py [--seconds 5] [--rate 20] [--limit 0.01]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.devices.monitor import Monitor
from edgebench.devices.rapl import RaplMeter, Zone

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY = """
import subprocess, sys, threading
# The children wait for the end of their input, which comes when this process is stopped.
children = [subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"],
                             stdin=subprocess.PIPE) for _ in range(int(sys.argv[1]))]
waiting = threading.Event()
for _ in range(int(sys.argv[2])):
    threading.Thread(target=waiting.wait, daemon=True).start()
print("ready", flush=True)
while True:
    sum(range(100_000))
"""
PACKAGES = 2
CPUS = 16


@dataclass(frozen=True)
class Case:
    """What is watched, and whether there are sensors beside it."""

    name: str
    children: int = 0
    threads: int = 0
    sensors: bool = False


CASES = (
    Case("one process"),
    Case("one process, 16 threads", threads=16),
    Case("one process, energy, 16 clocks, temperature", sensors=True),
    Case("8 children, 16 threads, energy, clocks, temperature", 8, 16, sensors=True),
)


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def recorded_sensors(root: Path) -> list[RaplMeter]:
    """Fill a folder that looks like the sysfs of a server with two packages."""
    for cpu in range(CPUS):
        write(root, f"devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq", "2450000\n")
    for zone, kind in enumerate(("x86_pkg_temp", "x86_pkg_temp")):
        write(root, f"class/thermal/thermal_zone{zone}/type", f"{kind}\n")
        write(root, f"class/thermal/thermal_zone{zone}/temp", "45000\n")
    zones = []
    for package in range(PACKAGES):
        folder = f"class/powercap/intel-rapl:{package}"
        write(root, f"{folder}/energy_uj", "123456789\n")
        zones.append(Zone(f"package-{package}", root / folder, 262_143_328_850))
    return [RaplMeter("rapl:package", zones)]


@contextmanager
def busy_process(case: Case) -> Iterator[int]:
    command = [sys.executable, "-c", BUSY, str(case.children), str(case.threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.terminate()


def measure(case: Case, seconds: float, rate: float) -> tuple[float, float, int]:
    """Seconds watched, seconds that the sampling thread computed, and samples."""
    with tempfile.TemporaryDirectory() as folder, busy_process(case) as pid:
        root = Path(folder)
        meters = recorded_sensors(root) if case.sensors else []
        sysfs = root if case.sensors else Path("/sys")
        with Monitor(pid, meters=meters, interval_s=1 / rate, sysfs=sysfs) as monitor:
            monitor.begin()
            time.sleep(seconds)
            window = monitor.end()
            return (
                (window.end_ns - window.begin_ns) / 1e9,
                monitor.sampler_cpu_s,
                len(window.samples),
            )


def main() -> int:
    """Print the table; the status says whether every case is within the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to watch each case")
    parser.add_argument("--rate", type=float, default=20.0, help="samples per second")
    parser.add_argument("--limit", type=float, default=0.01, help="allowed share of one core")
    arguments = parser.parse_args()

    print(f"{'case':<52} {'samples':>8} {'us/sample':>10} {'of a core':>10}")
    worst = 0.0
    for case in CASES:
        watched_s, used_s, samples = measure(case, arguments.seconds, arguments.rate)
        share = used_s / watched_s
        worst = max(worst, share)
        print(f"{case.name:<52} {samples:>8} {used_s / samples * 1e6:>10.0f} {share:>10.3%}")
    verdict = "met" if worst <= arguments.limit else "MISSED"
    print(f"limit {arguments.limit:.1%} of one core: {verdict}")
    return 0 if worst <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
