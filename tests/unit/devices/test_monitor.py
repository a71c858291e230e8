"""Windows of the monitor, over real and recorded processes."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import count

import pytest

from edgebench.devices.monitor import EnergyPoint, EnergyTrace, Monitor, Sample

MIB = 1 << 20
SLACK = 3 * MIB
NEVER_S = 3600.0


@dataclass
class Meter:
    """A meter of 0.5 J a reading, which tells when it was read often enough."""

    name: str = "bench:supply"
    source: str = "observed"
    resolution_s: float | None = None
    fails_at: int | None = None
    error: Exception = field(default_factory=lambda: OSError("unplugged"))
    enough: int = 5
    readings: int = 0
    read_enough: threading.Event = field(default_factory=threading.Event)

    def read_j(self) -> float:
        self.readings += 1
        if self.readings >= self.enough:
            self.read_enough.set()
        if self.readings == self.fails_at:
            raise self.error
        return 0.5 * self.readings

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def recorded(raspberry_pi, write_status, write_stat):
    raspberry_pi.proc(
        {
            "10/status": write_status(
                10, hwm=5000, rss=4000, anon=1000, file=2900, shmem=100, cpus="0-1"
            ),
            "10/stat": write_stat(10, utime=100, stime=50, minflt=1000, majflt=2),
            "10/task/10/status": write_status(10, voluntary=7, involuntary=3),
            "10/task/10/children": "",
        }
    )
    return raspberry_pi


def watch(tree, **options) -> Monitor:
    return Monitor(
        10,
        procfs=tree.procfs,
        sysfs=tree.sysfs,
        interval_s=NEVER_S,
        clock=count(0, 1000).__next__,
        **options,
    )


def test_window_of_a_recorded_process(recorded, write_status, write_stat):
    """Each field has the value that the files spell out."""
    with watch(recorded, meters=[Meter()]) as monitor:
        monitor.begin()
        recorded.proc(
            {
                "10/status": write_status(
                    10, hwm=9000, rss=6000, anon=3000, file=2800, shmem=200, cpus="0-1"
                ),
                "10/stat": write_stat(10, utime=250, stime=75, minflt=1500, majflt=5),
                "10/task/10/status": write_status(10, voluntary=17, involuntary=8),
                "10/smaps_rollup": "0-1 ---p 0 00:00 0 [rollup]\nRss: 1 kB\nPss:  5500 kB\n",
            }
        )
        recorded.sys(
            {
                "class/thermal/thermal_zone0/temp": "70000\n",
                "devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "900000\n",
            }
        )
        window = monitor.end()

    kib = 1024
    # 1000 ns a look at the clock: clocks, heat, begin, energy, memory; memory, energy, end.
    assert (window.begin_ns, window.end_ns) == (2000, 7000)
    assert window.samples == (
        Sample(4000, 4000 * kib, 1000 * kib, 2900 * kib, 100 * kib),
        Sample(5000, 6000 * kib, 3000 * kib, 2800 * kib, 200 * kib),
    )
    assert window.energy == (
        EnergyTrace("bench:supply", "observed", (EnergyPoint(3000, 0.5), EnergyPoint(6000, 1.0))),
    )
    assert window.energy_reason is None
    assert window.peak_anon.value == 3000 * kib
    assert window.peak_file.value == 2800 * kib
    assert window.peak_shared.value == 200 * kib
    assert window.pss.value == 5500 * kib
    assert window.cpu_time.value == pytest.approx(1.75)
    assert window.minor_faults.value == 500
    assert window.major_faults.value == 3
    assert window.voluntary_switches.value == 10
    assert window.involuntary_switches.value == 5
    # CPUs 0 and 1 at 0.3 and 0.6 GHz, then 0.9 and 0.6.
    assert window.clock.value == 0.6e9
    assert window.temperature.value == 82.28


def test_peak_that_could_not_be_reset_says_so(recorded):
    """Without clear_refs the peak is that since the start, and the method tells."""
    with watch(recorded) as monitor:
        monitor.begin()
        window = monitor.end()

    assert window.peak_rss.value == 5000 * 1024
    assert window.peak_rss.method == (
        "VmHWM since the process started (clear_refs: No such file or directory)"
    )


def test_tree_of_processes_has_its_greatest_sampled_sum(recorded, write_status, write_stat):
    """Peaks of single processes are not added; the greatest sum that was seen is."""
    recorded.proc(
        {
            "10/task/10/children": "11 ",
            "11/status": write_status(11, hwm=90_000, rss=1000, anon=600, file=400),
            "11/stat": write_stat(11, ppid=10),
            "11/task/11/children": "",
        }
    )
    with watch(recorded) as monitor:
        monitor.begin()
        recorded.proc({"11/status": write_status(11, hwm=90_000, rss=500, anon=100, file=400)})
        window = monitor.end()

    assert window.peak_rss.value == 5000 * 1024
    assert window.peak_rss.method == "VmRSS summed over 2 processes, greatest of 2 samples"
    assert window.peak_anon.value == 1600 * 1024


def test_without_meter_the_reason_is_kept(recorded):
    """No meter, no energy: the window repeats why."""
    with watch(recorded, no_meter_reason="rapl: hidden") as monitor:
        monitor.begin()
        window = monitor.end()

    assert window.energy == ()
    assert window.energy_reason == "rapl: hidden"


def test_meter_that_fails_meanwhile_keeps_what_it_said(recorded):
    """A meter that is unplugged in the window leaves its readings and the reason."""
    with watch(recorded, meters=[Meter(fails_at=2)]) as monitor:
        monitor.begin()
        window = monitor.end()

    (energy,) = window.energy
    assert [point.joules for point in energy.points] == [0.5]
    assert energy.reason == "bench:supply can't be read any more: unplugged"
    assert window.energy_reason is None


def test_all_meters_are_read(recorded):
    """Each has its own readings; one that is lost costs the others nothing."""
    lost, kept = Meter("bench:lost", fails_at=2), Meter("bench:kept")
    with watch(recorded, meters=[lost, kept]) as monitor:
        monitor.begin()
        window = monitor.end()

    assert [(each.meter, len(each.points)) for each in window.energy] == [
        ("bench:lost", 1),
        ("bench:kept", 2),
    ]
    assert window.energy[1].reason is None


def test_hole_before_a_window_is_no_fault_of_it(recorded):
    """A meter that tells once of a hole in the past is asked again where a window begins."""
    with watch(recorded, meters=[Meter(fails_at=1)]) as monitor:
        monitor.begin()
        window = monitor.end()

    assert [point.joules for point in window.energy[0].points] == [1.0, 1.5]


def test_window_can_be_begun_anew(recorded):
    """A window whose trial failed is dropped by the next begin."""
    with watch(recorded) as monitor:
        monitor.begin()
        monitor.begin()
        window = monitor.end()

        assert len(window.samples) == 2
        with pytest.raises(RuntimeError, match="no window is open"):
            monitor.end()


def test_monitor_must_be_entered(recorded):
    """Outside its context the monitor says how it is used."""
    monitor = watch(recorded)

    with pytest.raises(RuntimeError, match="use it as a context manager"):
        monitor.begin()


def test_thread_samples_in_between(obedient):
    """Between the edges the thread takes samples, in the order of their times."""
    meter = Meter(enough=6)
    with Monitor(obedient.pid, meters=[meter], interval_s=0.001) as monitor:
        monitor.begin()
        assert meter.read_enough.wait(30)
        window = monitor.end()

    times = [sample.t_ns for sample in window.samples]
    assert len(times) >= 5
    assert times == sorted(times)
    assert window.begin_ns <= times[0]
    assert times[-1] <= window.end_ns
    assert monitor.sampler_cpu_s > 0


def test_thread_that_fails_is_heard(obedient):
    """A fault of a collector is raised where the window ends, and the next window works."""
    meter = Meter(fails_at=2, enough=2, error=ZeroDivisionError("bug"))
    with Monitor(obedient.pid, meters=[meter], interval_s=0.001) as monitor:
        monitor.begin()
        assert meter.read_enough.wait(30)
        with pytest.raises(ZeroDivisionError, match="bug"):
            monitor.end()

        meter.read_enough.clear()
        meter.enough = meter.readings + 4
        monitor.begin()
        assert meter.read_enough.wait(30)
        assert len(monitor.end().samples) >= 3


def test_peak_belongs_to_its_window(obedient):
    """What was used and freed between two samples is in the peak; what was before is not."""
    obedient.do(f"a = b'x' * {96 * MIB}; del a")
    with Monitor(obedient.pid, interval_s=NEVER_S) as monitor:
        base = monitor.current_rss()
        assert base.value is not None
        monitor.begin()
        obedient.do(f"a = b'x' * {32 * MIB}; del a")
        window = monitor.end()

    assert window.peak_rss.value == pytest.approx(base.value + 32 * MIB, abs=SLACK)
    assert window.peak_rss.method == "VmHWM"
    assert base.method == "VmRSS"


def test_process_that_ends_leaves_what_was_seen(obedient):
    """A runner that crashes in the window is no error of the monitor."""
    meter = Meter()
    with Monitor(obedient.pid, meters=[meter], interval_s=0.001) as monitor:
        monitor.begin()
        obedient.do(f"a = b'x' * {32 * MIB}")
        meter.enough = meter.readings + 3
        meter.read_enough.clear()
        assert meter.read_enough.wait(30)
        obedient.kill()
        window = monitor.end()

        assert monitor.current_rss().reason == "the process has ended"

    assert max(sample.rss_bytes or 0 for sample in window.samples) > 32 * MIB
    assert window.peak_rss.value is not None
    assert window.peak_rss.value > 32 * MIB
    assert window.peak_rss.method == "VmHWM, last seen before the process ended"
    for reading in (window.cpu_time, window.minor_faults, window.voluntary_switches, window.pss):
        assert reading.value is None
        assert reading.reason == "the process has ended"


def test_process_that_ended_before(obedient):
    """A window over nothing has reasons for everything."""
    obedient.kill()
    with Monitor(obedient.pid, interval_s=NEVER_S) as monitor:
        monitor.begin()
        window = monitor.end()

    assert window.samples == ()
    for reading in (window.peak_rss, window.peak_anon, window.pss, window.cpu_time):
        assert reading.reason == "the process has ended"


def test_without_procfs_psutil_stands_in(obedient, tmp_path):
    """On other systems the same window comes from psutil, which each method names."""
    absent = tmp_path / "absent"
    with Monitor(obedient.pid, interval_s=NEVER_S, procfs=absent, sysfs=absent) as monitor:
        monitor.begin()
        obedient.do(f"a = b'x' * {32 * MIB}")
        window = monitor.end()

    first, last = window.samples[0].rss_bytes, window.samples[-1].rss_bytes
    assert first is not None
    assert last is not None
    assert last - first == pytest.approx(32 * MIB, abs=SLACK)
    assert window.peak_rss.value == last
    assert window.peak_rss.method == "psutil.memory_info().rss, greatest of 2 samples"
    assert window.peak_file.reason == "this system does not tell RssFile apart"
    assert window.minor_faults.reason == "this system does not say; it is read on Linux"
