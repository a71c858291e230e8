"""CPU counters and clocks."""

from __future__ import annotations

import os

import pytest

from edgebench.devices.clock import ClockReader, parse_cpuinfo_clocks
from edgebench.devices.cpu import Counters, parse_stat, parse_switches, use_between


def test_stat_is_read_behind_any_name(write_stat):
    """A name with brackets and spaces moves no field, and collected children count."""
    text = write_stat(
        7, "a) (b 1 2", utime=10, stime=20, cutime=300, cstime=4000, minflt=5, cminflt=6, majflt=7
    )

    stat = parse_stat(text.encode())

    assert (stat.own_ticks, stat.cpu_ticks) == (30, 4330)
    assert (stat.minor_faults, stat.major_faults) == (11, 7)


def test_stat_of_this_process_agrees_with_times():
    """The ticks are those that the system reports by another way."""
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - as the module does it
        stat = parse_stat(file.read())

    times = os.times()
    assert stat.own_ticks / os.sysconf("SC_CLK_TCK") == pytest.approx(
        times.user + times.system, abs=0.5
    )


def test_switches_need_both_lines(write_status):
    """A kernel that does not count gives no pair of numbers."""
    assert parse_switches(write_status(voluntary=12, involuntary=3).encode()) == (12, 3)
    assert parse_switches(b"Name:\tx\nvoluntary_ctxt_switches:\t1\n") is None


def test_difference_of_counters():
    """What was used is the difference of two looks, by field."""
    begin = Counters(1.5, 100, 10, {1: (5, 50)})
    end = Counters(4.0, 350, 10, {1: (9, 60)})

    used = use_between(begin, end)

    assert used.cpu_time.value == 2.5
    assert used.minor_faults.value == 250
    assert used.major_faults.value == 0
    assert used.voluntary_switches.value == 4
    assert used.involuntary_switches.value == 10


def test_threads_that_come_and_go_never_count_negative():
    """A thread that ended takes its count along; one that was born is counted whole."""
    begin = Counters(1.0, 0, 0, {1: (5, 50), 2: (1000, 2000)})
    end = Counters(1.0, 0, 0, {1: (6, 52), 3: (10, 20)})

    used = use_between(begin, end)

    assert used.voluntary_switches.value == 1 + 10
    assert used.involuntary_switches.value == 2 + 20


def test_counter_that_went_back_is_no_reading():
    """A child that left the tree uncollected leaves a reason, not a negative time."""
    used = use_between(Counters(9.0, 100, 0), Counters(2.0, 50, 0))

    assert used.cpu_time.value is None
    assert used.minor_faults.reason == "a child process ended without being collected by its parent"


def test_counters_that_a_system_lacks_are_missing():
    """What can't be read keeps the system's reason."""
    counters = Counters(1.0, None, None, method="psutil", missing="not here")

    used = use_between(counters, counters)

    assert used.cpu_time.value == 0.0
    assert used.minor_faults.reason == "not here"
    assert used.voluntary_switches.reason == "not here"


def test_clock_is_the_mean_over_allowed_cpus(raspberry_pi):
    """Only the CPUs that the process may use count: 0.9 and 1.2 GHz, then 0.9 and 1.8."""
    reader = ClockReader((2, 3), raspberry_pi.procfs, raspberry_pi.sysfs)
    first = reader.read_hz()
    raspberry_pi.sys({"devices/system/cpu/cpu3/cpufreq/scaling_cur_freq": "1800000\n"})
    second = reader.read_hz()

    reading = reader.mean((first, second))
    reader.close()

    assert first == (0.9e9, 1.2e9)
    assert reading.value == 1.2e9
    assert reading.method == "scaling_cur_freq"


def test_cpu_without_clock_is_left_out(raspberry_pi):
    """A CPU whose driver says <unknown> does not spoil the mean of the others."""
    raspberry_pi.sys({"devices/system/cpu/cpu2/cpufreq/scaling_cur_freq": "<unknown>\n"})
    reader = ClockReader((2, 3), raspberry_pi.procfs, raspberry_pi.sysfs)

    assert reader.read_hz() == (1.2e9,)
    reader.close()


def test_constant_of_cpuinfo_is_no_clock(virtual_machine):
    """In a virtual machine the file repeats the nominal clock, which is not a measurement."""
    reader = ClockReader((0, 1), virtual_machine.procfs, virtual_machine.sysfs)

    reading = reader.mean([reader.read_hz(), reader.read_hz()])
    reader.close()

    assert reading.value is None
    assert reading.reason == "/proc/cpuinfo reports a constant"


def test_cpuinfo_that_moves_is_a_clock():
    """Without cpufreq, clocks that differ are read from cpuinfo, for the asked CPUs only."""
    text = "".join(f"processor\t: {n}\ncpu MHz\t\t: {1000.5 + n}\n\n" for n in range(3))

    assert parse_cpuinfo_clocks(text.encode(), (0, 2)) == (1000.5e6, 1002.5e6)


def test_unknown_affinity_is_a_reason(virtual_machine):
    """Without the CPUs of the process there is no clock of them."""
    reader = ClockReader((), virtual_machine.procfs, virtual_machine.sysfs)

    assert reader.mean([()]).reason == "the CPUs that the process may use are not known"
    reader.close()
