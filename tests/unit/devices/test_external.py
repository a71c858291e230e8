"""The external meter's lines, and real commands that print them."""

from __future__ import annotations

import math
import os
import random
import shlex
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edgebench.devices.counter_log import CounterLog
from edgebench.devices.energy import energy_between
from edgebench.devices.external import ExternalMeter, Stream, find_external
from edgebench.devices.proof import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.devices.reading import Reading
    from edgebench.devices.window import EnergyTrace

S = 1_000_000_000


class Lines:
    """Lines that arrive when a test says."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.stream = Stream(lambda: round(self.now_s * S))

    def say(self, at_s: float, text: str) -> None:
        self.now_s = 1000.0 + at_s
        self.stream.take(text.encode())

    def joules(self, at_s: float) -> float:
        self.now_s = 1000.0 + at_s
        return self.stream.joules()

    def why(self) -> str:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the text is what is returned
            self.stream.joules()
        return caught.value.strerror

    def log(self) -> CounterLog:
        """What reads it 20 times a second in a run."""
        return CounterLog(Plug(self.stream), lambda: round(self.now_s * S))


class Plug:
    """The meter of a stream without its command."""

    name = "external:plug"
    source = "observed"

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.read_j = stream.joules
        self.points_from = stream.points_from
        self.wait_past = stream.wait_past

    @property
    def resolution_s(self) -> float:
        return self._stream.interval_s()

    def close(self) -> None:
        """Nothing runs."""


def between(trace: EnergyTrace, start_s: float, end_s: float) -> Reading:
    return energy_between(trace, round((1000 + start_s) * S), round((1000 + end_s) * S))


@pytest.fixture
def lines() -> Lines:
    return Lines()


# Known curves ----------------------------------------------------------------------------------


def saw(t: float) -> float:
    """From 10 W to 30 W in each second: 20 J a second."""
    return 10 + 20 * (t % 1)


def square(t: float) -> float:
    """40 W for two seconds, 4 W for two: 88 J in each four seconds."""
    return 40.0 if t % 4 < 2 else 4.0


def wave(t: float) -> float:
    """From 10 W to 30 W and back in three seconds."""
    return 20 + 10 * math.sin(2 * math.pi * t / 3)


def seen_through(
    lines: Lines, watts: Callable[[float], float], every_s: float, seed: int
) -> EnergyTrace:
    """20 s of a meter that measures at uneven times, and whose lines come up to 2 ms late.

    It is read 20 times a second or a little less.
    """
    chance, log = random.Random(seed), lines.log()
    moments = [(n + chance.uniform(0.05, 0.95)) * every_s for n in range(round(20 / every_s))]
    events, came_s = [], 0.0
    for t in moments:
        came_s = max(came_s, t + chance.uniform(0, 0.002))
        events.append((came_s, f"{t:.4f},{watts(t):.4f}"))
    read_s = 3.0
    while read_s < 19:
        events.append((read_s, ""))
        read_s += 0.05 + chance.uniform(0, 0.03)
    for at_s, text in sorted(events, key=lambda each: each[0]):
        lines.now_s = 1000.0 + at_s
        if text:
            lines.say(at_s, text)
        else:
            log.read()
    log.note_resolution()
    return log.trace()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("watts", "start_s", "end_s", "joules"),
    [
        # Five whole periods, from the middle of a rise and from a fall on.
        (saw, 4.3, 9.3, 100.0),
        (saw, 5.0, 10.0, 100.0),
        # By hand: 1.5 s of 40 W, 2 s of 4 W, 2 s of 40 W, 0.5 s of 4 W; and whole periods.
        (square, 4.5, 10.5, 60 + 8 + 80 + 2),
        (square, 4.0, 16.0, 264.0),
        # 2 s of 4 W before, 2 s after: a "prefill" whose edges are those of the power.
        (square, 8.0, 10.0, 80.0),
        (square, 10.0, 12.0, 8.0),
    ],
)
def test_known_curve_at_100_hz_has_its_energy(
    lines: Lines,
    watts: Callable[[float], float],
    start_s: float,
    end_s: float,
    joules: float,
    seed: int,
) -> None:
    """From the lines to the energy of a window: half a percent, where power stands at its edges.

    Where it jumps right at an edge, a line too early or too late is 0.01 s x 36 W: told to that,
    or, of the 8 J, not told.
    """
    found = between(seen_through(lines, watts, 0.01, seed), start_s, end_s)
    if found.value is None:
        assert joules == 8.0
        assert "power changed by 36 W within the 0.0" in (found.reason or "")
        return
    jumps = (watts(start_s - 1e-6) != watts(start_s + 1e-6)) and watts is square
    assert found.value == pytest.approx(joules, rel=0.005, abs=0.012 * 36 * 2 if jumps else 0)


@pytest.mark.parametrize("every_s", [0.05, 0.1])
@pytest.mark.parametrize("start_s", [4.5, 4.52, 4.57, 4.61])
def test_known_curve_at_a_plugs_pace(lines: Lines, every_s: float, start_s: float) -> None:
    """Four whole waves of 20 W in the mean are 240 J wherever they begin, at 10 Hz too."""
    trace = seen_through(lines, wave, every_s, 1)
    assert between(trace, start_s, start_s + 12).value == pytest.approx(240.0, rel=0.005)


@pytest.mark.parametrize("offset_s", [0.0, 0.02, 0.05, 0.09])
def test_jump_at_an_edge_is_told_or_right(lines: Lines, offset_s: float) -> None:
    """At 20 Hz, 2 s from one jump to the next: within a tenth of 80 J; 8 J between are not told."""
    trace = seen_through(lines, lambda t: square(t - offset_s), 0.05, 2)
    high = between(trace, 8 + offset_s, 10 + offset_s)
    assert high.value == pytest.approx(80, rel=0.1)

    low = between(trace, 10 + offset_s, 12 + offset_s)
    assert low.value is None
    assert "of before or after: it takes a faster meter or more tokens" in (low.reason or "")


def test_window_ends_with_the_next_line(lines: Lines) -> None:
    """A line each second, and a window up to a moment between two: the next one is waited for."""
    log = lines.log()
    for second in range(30):
        lines.say(second, f"{second},6")
    lines.now_s = 1029.5
    log.read()
    late = threading.Timer(0.05, lines.say, (30.0, "30,6"))
    late.start()
    log.settle(round(1029.5 * S))
    late.join()
    lines.now_s = 1030.1
    log.read()

    assert log.trace().points[-1].t_ns == 1030 * S


def test_pause_and_end_cost_only_what_they_touch(lines: Lines) -> None:
    """10 Hz at 25 W with a pause of 1.5 s, and an end: 3 s before each are 75 J."""
    log = lines.log()
    for tick in range(200):
        if not 80 < tick < 95:
            lines.say(tick / 10, f"{tick / 10},25")
        lines.now_s = 1000 + tick / 10 + 0.05
        log.read()
        log.note_resolution()
    for _ in range(80):
        lines.now_s += 0.1
        log.read()
        log.note_resolution()
    seen = log.trace()

    assert between(seen, 5, 8).value == pytest.approx(75.0)
    assert between(seen, 9.5, 12.5).value == pytest.approx(75.0)
    assert between(seen, 16, 19).value == pytest.approx(75.0)
    assert between(seen, 7, 11).reason == (
        "the window is too short for external:plug, whose readings in it are up to 1.5 s apart: it "
        "takes 15 s"
    )
    assert "can't be read any more" in str(between(seen, 18, 22).reason)


# Lines -----------------------------------------------------------------------------------------


def test_readings_add_up_by_trapezoids(lines):
    """10 W to 20 W in 1.2 s is 18 J, and 20 W for 0.3 s 6 J more: the seconds are our own.

    What came last is told a moment later, as more may belong to it.
    """
    lines.say(0.0, "7.0,10")
    lines.say(1.2, "8.0,20")
    lines.say(1.5, "  8.5 , 20.0 ")

    assert lines.joules(1.51) == pytest.approx(18.0)
    assert lines.joules(1.55) == pytest.approx(24.0)
    assert lines.stream.interval_s() == pytest.approx(1.2)


def test_lines_that_come_together_share_the_time_since_the_last_ones(lines):
    """Ten lines at once: 10 W for 0.9 s of theirs and 30 W for 0.1 s is a mean of 12 W.

    They came 2 s after the first one, so that is 24 J: what their clock says is a share only.
    """
    lines.say(0.0, "0,10")
    for tenth in range(1, 10):
        lines.say(2.0, f"{tenth / 10},10")
    lines.say(2.001, "0.9,30")
    lines.say(2.002, "1.0,30")

    assert lines.joules(2.1) == pytest.approx(12 * 2.002)


@pytest.mark.parametrize("clump_s", [0.1, 0.4, 0.9])
@pytest.mark.parametrize("begin_s", [4.0, 4.37, 4.8])
def test_clumps_give_no_false_energy(lines, clump_s, begin_s):
    """12 W in lines of 10 Hz that come in clumps: 12 W times the window, or nothing.

    A window has to be ten clumps long.
    """
    came = 0
    log = lines.log()
    for tick in range(600):
        at_s = tick * 0.05
        while (came + 1) * clump_s <= at_s:
            of_clump = round(clump_s * 10)
            for line in range(came * of_clump, (came + 1) * of_clump):
                lines.say(at_s, f"{line / 10:.1f},12")
            came += 1
        lines.now_s = 1000.0 + at_s
        log.read()
    trace = log.trace()

    for length_s in (0.6, 1.2, 5.0, 9.0, 20.0):
        found = between(trace, begin_s, begin_s + length_s)
        if length_s < 10 * clump_s:
            assert found.value is None
            assert found.reason is not None
        elif length_s > 11.5 * clump_s:
            assert found.value == pytest.approx(12 * length_s)


def test_pace_is_that_of_late(lines):
    """10 Hz, then 1 Hz: the new pace counts from its first gap on, and even while it lasts."""
    for tenth in range(40):
        lines.say(tenth / 10, f"{tenth / 10},12")
    assert lines.stream.interval_s() == pytest.approx(0.1)

    lines.now_s += 0.7
    assert lines.stream.interval_s() == pytest.approx(0.7)
    for second in range(1, 8):
        lines.say(3.9 + second, f"{3.9 + second},12")
    assert lines.stream.interval_s() == pytest.approx(1.0)


def test_pace_recovers(lines):
    """One gap of 2 s is forgotten after 10 s without another."""
    for tenth in [*range(20), *range(40, 200)]:
        lines.say(tenth / 10, f"{tenth / 10},12")

    assert lines.stream.interval_s() == pytest.approx(0.1)


@pytest.mark.parametrize("rate", [1.3, 0.8, 1.1])
def test_clock_that_runs_wrong_is_told_and_changes_no_energy(lines, rate):
    """5 W are 5 J in each second of ours whatever the meter's clock says, until it is told."""
    for tenth in range(600):
        at_s = tenth / 10
        lines.say(at_s, f"{at_s * rate:.4f},5")
        if lines.stream.stopped:
            break
        assert lines.joules(at_s + 0.05) == pytest.approx(5 * at_s)

    assert lines.why() == f"its clock runs {rate:g} times as fast as this machine's"
    assert 2 <= at_s < 10


def test_clock_that_counts_milliseconds_is_told(lines):
    """Readings each 0.1 s that are 100 apart are no late lines."""
    lines.say(0.0, "0,5")
    lines.say(0.1, "100,5")

    assert lines.why() == "its clock runs 1000 times as fast as this machine's"


def test_stall_is_no_wrong_clock(lines):
    """Lines that wait for 1.5 s and come at once are of a good clock; all energy is there."""
    for tenth in range(100):
        lines.say(tenth / 10, f"{tenth / 10},5")
    for tenth in range(100, 115):
        lines.say(11.4, f"{tenth / 10},5")
    for tenth in range(115, 200):
        lines.say(tenth / 10, f"{tenth / 10},5")

    assert lines.joules(19.95) == pytest.approx(5 * 19.9)


def test_comments_and_blank_lines_are_no_readings(lines):
    """A header, a comment and an empty line do not end a meter; the header is counted."""
    for text in ("# my meter", "", "seconds,watts"):
        lines.say(0.0, text)
    lines.say(0.0, "0,4")
    lines.say(1.0, "1,4")

    assert lines.joules(1.1) == pytest.approx(4.0)
    assert lines.stream.garbage == 1


def test_garbage_ends_it_at_last(lines):
    """A command that prints anything else is not listened to for ever, and its words are told."""
    lines.say(0.0, "0,4")
    for _ in range(19):
        lines.say(0.1, "error: no port")
    assert lines.stream.joules() == 0.0

    lines.say(0.2, "error: \x1b[31mno port")

    assert lines.why() == (
        "20 lines in a row are not 'seconds,watts'; the last is 'error: ?[31mno port'"
    )


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2,nan", "it printed 2,nan, which is no power"),
        ("inf,3", "it printed inf,3, which is no power"),
        ("2,-3", "it printed -3 W; power is from 0 to 100000 W"),
        ("2,1e9", "it printed 1e+09 W; power is from 0 to 100000 W"),
        ("0.5,3", "its clock went back from 1 s to 0.5 s"),
    ],
)
def test_what_can_not_be_is_never_believed(lines, line, reason):
    """One such reading ends the meter, with what it said; later ones change nothing."""
    lines.say(0.0, "0,3")
    lines.say(1.0, "1,3")
    lines.say(2.0, line)
    lines.say(3.0, "3,3")

    assert lines.why() == reason


def test_silence_is_told_and_ends(lines):
    """After 5 s without a line there is no energy; with the next lines there is again.

    A meter that speaks once a second may take ten times as long.
    """
    for tenth in range(11):
        lines.say(tenth / 10, f"{tenth / 10},3")
    lines.now_s += 5.1
    assert lines.why() == "it has printed nothing for 5 s"

    lines.say(6.2, "6.2,3")
    assert lines.joules(6.3) == pytest.approx(18.6)

    slow = Lines()
    for second in range(3):
        slow.say(second, f"{second},3")
    slow.now_s += 9.9
    assert slow.stream.joules() == pytest.approx(6.0)


def test_lines_out_of_a_buffer_are_found_out(lines):
    """Many seconds' readings at one moment are of other moments: the energy would be misplaced."""
    for second in range(5):
        lines.say(0.0, f"{second},3")

    assert "arrive up to 4 s late" in lines.why()
    assert "python -u" in lines.why()


def test_pieces_of_lines_are_joined():
    """What a pipe cuts in two is one line."""
    now_s = iter((0, 1, 2, 2))
    stream = Stream(lambda: next(now_s) * S)
    for piece in (b"0,1\n0.5", b",3\n1", b"\n"):
        stream.feed(piece)

    assert stream.joules() == pytest.approx(2.0)
    assert stream.garbage == 1


def test_end_of_a_line_that_is_too_long_is_no_reading():
    """12.5 W for 2 s are 25 J, whatever stands at the end of 80 kB without a line's end."""
    lines = Lines()
    for hundredth in range(201):
        lines.say(hundredth / 100, f"{hundredth / 100},12.5")
        if hundredth == 100:
            for piece in (b"y" * 65536, b"y" * 9000 + b" " * 6000, b"1.001,9999\n"):
                lines.stream.feed(piece)

    # The first lines, which came together, only say where it begins.
    assert lines.joules(2.1) == pytest.approx(25.0 - 0.02 * 12.5)
    assert lines.stream.garbage == 0


def test_bytes_without_a_line_are_told():
    """A command that forgets the line's end is not called silent."""
    lines = Lines()
    lines.say(0.0, "0,12")
    lines.stream.feed(b"0.1,12 " * 1000)
    lines.now_s += 5.1

    assert lines.why() == "it has printed 7000 bytes and no line for 5 s"


@pytest.mark.parametrize("every_s", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("begin_s", [0.05, 0.5, 0.95])
def test_whole_seconds_are_a_clock(lines: Lines, every_s: float, begin_s: float) -> None:
    """``date +%s`` tells whole seconds, and is no wrong clock: 12 W for 30 s are 360 J."""
    for line in range(round(30 / every_s) + 1):
        at_s = line * every_s
        lines.say(at_s, f"{int(1_700_000_000 + begin_s + at_s)},12")

    assert lines.joules(30.05) == pytest.approx(12 * 30)


# Real commands ---------------------------------------------------------------------------------


def command(code: str) -> str:
    return shlex.join([sys.executable, "-u", "-c", code])


STEADY = """
import time
begun = time.monotonic()
while True:
    print(f"{time.monotonic() - begun:.4f},12", flush=True)
    time.sleep(0.01)
"""


def test_command_is_a_meter_until_it_is_closed():
    """A steady 12 W is measured as such, and nothing of the command is left afterwards."""
    meter = find_external(command(STEADY), time.perf_counter_ns)
    assert isinstance(meter, ExternalMeter)
    assert meter.name == f"external:{Path(sys.executable).name}"
    assert meter.source == "observed"
    assert 0.005 < meter.resolution_s < 1

    with meter.stream.changed:
        first, at = meter.stream.joules(), meter.stream.readings
        meter.stream.changed.wait_for(lambda: meter.stream.readings >= at + 20, 30)
        assert meter.stream.joules() > first

    pid = meter._end.peek()[2][0]._process.pid
    meter.close()
    meter.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(OSError, match="it was closed"):
        meter.read_j()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            command("print('no such port'); raise SystemExit(3)"),
            "ended with status 3: no such port",
        ),
        (command("print('0,12'); print('0.1,13'); raise SystemExit(3)"), "ended with status 3"),
        (
            command("for n in range(9): print(f'{n / 9},5')\nimport time; time.sleep(60)"),
            "its 9 readings came at 1 time",
        ),
        (command("for n in range(3): print(f'{n / 100},0')\nimport time; time.sleep(60)"), "0 W"),
        (command("import time; time.sleep(60)"), "printed 0 readings in 0.5 s"),
        (
            command("import time; print('1,5 ' * 99, end='', flush=True); time.sleep(60)"),
            "0 readings in 0.5 s, and 396 bytes without a line's end",
        ),
        ("no-such-program --port 3", "no-such-program can't be started (No such file"),
        ("read 'port", "no closing quotation"),
        ("   ", "it is empty"),
    ],
    ids=["ends", "readings", "at once", "zero", "silent", "one line", "absent", "quotes", "empty"],
)
def test_command_that_is_no_meter_is_refused(line, said):
    """What does not measure is refused before a run begins, and says why."""
    refusal = find_external(line, time.perf_counter_ns, start_s=0.5 if "sleep" in line else 30)
    assert isinstance(refusal, Refusal)
    assert said in str(refusal)
    assert refusal.finding.startswith("external:")
    assert "12" not in refusal.finding
