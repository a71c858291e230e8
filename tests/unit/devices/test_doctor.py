"""What the doctor finds on recorded machines."""

from __future__ import annotations

import time
from itertools import count

import pytest

from edgebench.devices.cgroup import cpu_quota
from edgebench.devices.check import Check
from edgebench.devices.doctor import examine


def no_time(seconds: float) -> None:
    """Stands for the wait between two looks in which nothing happens."""


def look(tree, *, sleep=no_time, clock=None) -> dict[str, Check]:
    clock = clock or count(0, 10**8).__next__
    return {
        check.name: check for check in examine(tree.procfs, tree.sysfs, sleep=sleep, clock=clock)
    }


def test_good_needs_no_remedy():
    """A good finding with a remedy would be nonsense."""
    with pytest.raises(ValueError, match="needs no remedy"):
        Check("CPU", "good", "All well.", "Do something.")


def test_desktop_with_default_settings(intel_desktop, spinning):
    """Each thing that spoils a measurement has its command."""
    checks = look(intel_desktop, clock=spinning(intel_desktop))

    assert checks["CPU"].finding == "Intel(R) Core(TM) i7-7700 CPU, 4 cores, 8 CPUs online."
    assert checks["affinity"] == Check("affinity", "good", "All 8 online CPUs may be used.")
    assert checks["SMT"].remedy == "Ask for at most 4 threads, or sweep over the number of threads."
    assert checks["governor"].status == "problem"
    assert checks["governor"].remedy == (
        "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
    )
    assert checks["turbo"].status == "note"
    assert "intel_pstate/no_turbo" in checks["turbo"].remedy
    # The mean of 3.000 to 3.007 GHz.
    assert checks["clock"].finding == "The CPU clock can be recorded: 3.00 GHz now."
    assert checks["temperature"].finding == "The processor is at 45 °C (x86_pkg_temp)."
    assert checks["huge pages"].status == "note"
    assert checks["memory"].finding == "28.6 of 31.2 GiB are available."
    assert checks["throttling"].status == "good"
    assert checks["load"].status == "good"
    assert "virtual machine" not in checks


def test_power_lists_each_meter(intel_desktop, spinning):
    """Readable meters are good, and the others say what is wrong."""
    clock = spinning(intel_desktop, stuck=("intel-rapl:0:2",))

    checks = examine(intel_desktop.procfs, intel_desktop.sysfs, sleep=no_time, clock=clock)

    power = [(check.status, check.finding) for check in checks if check.name == "power"]
    assert power == [
        ("good", "rapl:package measures energy, which results show; it changes every 1 ms."),
        ("good", "rapl:psys measures energy; it changes every 1 ms."),
        ("good", "rapl:core measures energy; it changes every 1 ms."),
        ("good", "rapl:uncore measures energy; it changes every 1 ms."),
        (
            "note",
            "rapl:dram: intel-rapl:0:2/energy_uj never changes, so it measures nothing.",
        ),
    ]


def test_server_that_is_set_up_well(amd_server, spinning):
    """A machine that is ready has good findings only, with nothing to do."""
    checks = look(amd_server, clock=spinning(amd_server))

    assert {check.status for check in checks.values()} == {"good"}
    assert {check.remedy for check in checks.values()} == {None}


def test_hot_board_with_a_weak_supply(raspberry_pi):
    """Heat, under-voltage, little memory, swap, load and a CPU set are all told."""
    checks = look(raspberry_pi)

    assert checks["temperature"].status == "problem"
    # 0x50005: bits 0 and 2 now, 16 and 18 since the start.
    assert checks["throttling"].finding == "The firmware says now: under-voltage, throttled."
    assert checks["affinity"].finding == "Only 2 of 4 online CPUs may be used: 2-3."
    assert checks["memory"].status == "problem"
    assert checks["swap"].finding.startswith("0.0 GiB are swapped out")
    # 0.9 on 4 CPUs is more than 0.4.
    assert checks["load"].status == "problem"
    assert checks["power"].remedy is None


@pytest.mark.parametrize(
    ("bits", "status"), [("0", "good"), ("50000", "note"), ("8", "problem"), ("0x80008", "problem")]
)
def test_firmware_of_the_board(raspberry_pi, bits, status):
    """What was since the start is a note, what is now is a problem."""
    raspberry_pi.sys({"devices/platform/soc/soc:firmware/get_throttled": f"{bits}\n"})

    assert look(raspberry_pi)["throttling"].status == status


def test_virtual_machine(virtual_machine):
    """What the host hides is noted, without commands that can't help."""
    checks = look(virtual_machine)

    for name in ("governor", "turbo", "clock", "temperature", "power"):
        assert (checks[name].status, checks[name].remedy) == ("note", None), name
    assert "reports a constant" in checks["clock"].finding
    assert checks["virtual machine"].status == "note"


def test_time_that_the_host_took(virtual_machine):
    """5 of 100 ticks that went to others are 5 %, and a problem."""

    def pass_time(seconds: float) -> None:
        virtual_machine.proc({"stat": "cpu  1050 0 1000 70045 0 0 0 105 900 0\n"})

    check = look(virtual_machine, sleep=pass_time)["virtual machine"]

    assert check.status == "problem"
    assert check.finding == "The host took 5.0% of the CPU time for others (KVM, Docker)."


def test_busy_neighbours_are_named(amd_server, write_stat):
    """200 ticks on 4 CPUs are 50 ticks of time: 20 of them are 40 % of one CPU."""
    amd_server.proc(
        {
            "700/stat": write_stat(700, "idle one", utime=5000),
            "701/stat": write_stat(701, "x (y) z", utime=100, stime=10),
        }
    )

    def pass_time(seconds: float) -> None:
        assert seconds > 0
        amd_server.proc(
            {
                "stat": "cpu  1100 0 1000 70100 0 0 0 0 0 0\n",
                "701/stat": write_stat(701, "x (y) z", utime=115, stime=15),
                "702/stat": write_stat(702, "new", utime=5, cutime=999),
            }
        )

    check = look(amd_server, sleep=pass_time)["neighbours"]

    assert check.status == "problem"
    assert check.finding == (
        "Other processes are busy, in shares of one CPU: x (y) z (701) 40%, new (702) 10%."
    )


def test_quiet_neighbours_are_no_problem(amd_server, write_stat):
    """Less than 5 % of one CPU spoils nothing."""
    amd_server.proc({"701/stat": write_stat(701, utime=100)})

    def pass_time(seconds: float) -> None:
        amd_server.proc(
            {
                "stat": "cpu  1100 0 1000 70100 0 0 0 0 0 0\n",
                "701/stat": write_stat(701, utime=102),
            }
        )

    check = look(amd_server, sleep=pass_time)["neighbours"]

    assert check.status == "good"
    assert check.finding.endswith("of one CPU; the busiest: bash (701) 4%.")


def test_heat_while_looking(intel_desktop, spinning):
    """A throttle counter that grows means that it is too hot now; one that stands, that it was."""
    path = "devices/system/cpu/cpu3/thermal_throttle/core_throttle_count"
    intel_desktop.sys({path: "7\n"})
    was = look(intel_desktop)["throttling"]

    def pass_time(seconds: float) -> None:
        intel_desktop.sys({path: "8\n"})

    now = look(intel_desktop, sleep=pass_time)["throttling"]

    assert (was.status, now.status) == ("note", "problem")


@pytest.mark.parametrize(
    ("lines", "files", "quota"),
    [
        ("0::/a/b\n", {"a/b/cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "150000 100000\n"}, 0.5),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n"}, None),
        ("0::/not/here\n", {"cpu.max": "200000 100000\n"}, 2.0),
        ("0::/\n", {"unified/cpu.max": "100000 100000\n"}, 1.0),
        (
            "3:cpu,cpuacct:/job\n",
            {
                "cpu,cpuacct/job/cpu.cfs_quota_us": "25000\n",
                "cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            },
            0.25,
        ),
        (
            "3:cpu:/\n",
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            None,
        ),
        ("5:cpuset:/x\n", {"cpuset/x/cpu.max": "1 100000\n"}, None),
    ],
)
def test_quota_of_control_groups(tree, lines, files, quota):
    """Both versions are read, and the least limit on the way to the top holds."""
    tree.proc({"self/cgroup": lines})
    tree.sys({f"fs/cgroup/{name}": text for name, text in files.items()})

    assert cpu_quota(tree.procfs, tree.sysfs) == quota


def test_quota_below_the_cpus_is_a_problem(virtual_machine):
    """Two CPUs with the time of one and a half stop the threads now and then."""
    virtual_machine.sys(
        {
            "fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "150000\n",
            "fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
        }
    )

    check = look(virtual_machine)["CPU quota"]

    assert check.status == "problem"
    assert check.finding.startswith("A cgroup allows the time of 1.5 CPUs, but 2 may be used")


def test_pc_without_temperature_driver(intel_desktop):
    """Where the driver is missing, its module is named."""
    intel_desktop.sys({"class/thermal/thermal_zone1/temp": "0\n"})

    assert look(intel_desktop)["temperature"].remedy == "sudo modprobe coretemp"


def test_other_systems_get_what_can_be_said(tmp_path):
    """Without procfs there is the processor, and a note about the rest."""
    checks = examine(tmp_path / "proc", tmp_path / "sys", sleep=no_time)

    assert [(check.name, check.status) for check in checks] == [("CPU", "good"), ("system", "note")]


def test_this_machine():
    """On the real machine each check has one sentence, and a good one no remedy."""
    checks = examine(sleep=no_time, clock=time.perf_counter_ns)

    assert len(checks) >= 10
    for check in checks:
        assert check.finding.endswith("."), check
        assert "\n" not in check.finding
