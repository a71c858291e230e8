"""The external meter's lines, and real commands that print them."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path

import pytest

from edgebench.devices.external import ExternalMeter, Stream, find_external
from edgebench.devices.proof import Refusal

S = 1_000_000_000


class Lines:
    """Lines that arrive when a test says."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.stream = Stream(lambda: round(self.now_s * S))

    def say(self, at_s: float, text: str) -> None:
        self.now_s = 1000.0 + at_s
        self.stream.take(text.encode())

    def why(self) -> str:
        with pytest.raises(OSError) as caught:  # noqa: PT011 - the text is what is returned
            self.stream.joules()
        return caught.value.strerror


@pytest.fixture
def lines() -> Lines:
    return Lines()


def test_readings_add_up_by_trapezoids(lines):
    """10 W to 20 W in a second is 15 J, and 20 W for half a second 10 J more.

    The seconds are of the meter's own clock, so that lines that come a bit late do no harm.
    """
    lines.say(0.0, "7.0,10")
    lines.say(1.2, "8.0,20")
    lines.say(1.5, "  8.5 , 20.0 ")

    assert lines.stream.joules() == pytest.approx(25.0)
    assert lines.stream.interval_s == pytest.approx(0.75)


def test_comments_and_blank_lines_are_no_readings(lines):
    """A header, a comment and an empty line do not end a meter; the header is counted."""
    for text in ("# my meter", "", "seconds,watts"):
        lines.say(0.0, text)
    lines.say(0.0, "0,4")
    lines.say(1.0, "1,4")

    assert lines.stream.joules() == pytest.approx(4.0)
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
    assert lines.stream.joules() == pytest.approx(18.6)

    slow = Lines()
    for second in range(3):
        slow.say(second, f"{second},3")
    slow.now_s += 9.9
    assert slow.stream.joules() == pytest.approx(6.0)


def test_lines_out_of_a_buffer_are_found_out(lines):
    """Many seconds' readings at one moment are of other moments: the energy would be misplaced."""
    for second in range(5):
        lines.say(0.0, f"{second},3")

    assert "arrive up to 3 s late" in lines.why()
    assert "python -u" in lines.why()


def test_pieces_of_lines_are_joined():
    """What a pipe cuts in two is one line."""
    stream = Stream(lambda: 0)
    for piece in (b"0,1\n0.5", b",3\n1", b"\n"):
        stream.feed(piece)

    assert stream.joules() == pytest.approx(1.0)
    assert stream.garbage == 1


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
        (command("for n in range(3): print(f'{n / 100},0')\nimport time; time.sleep(60)"), "0 W"),
        (command("import time; time.sleep(60)"), "printed 0 readings in 0.5 s"),
        ("no-such-program --port 3", "no-such-program can't be started (No such file"),
        ("read 'port", "no closing quotation"),
        ("   ", "it is empty"),
    ],
    ids=["ends", "zero", "silent", "absent", "quotes", "empty"],
)
def test_command_that_is_no_meter_is_refused(line, said):
    """What does not measure is refused before a run begins, and says why."""
    refusal = find_external(line, time.perf_counter_ns, start_s=0.5 if "sleep" in line else 30)
    assert isinstance(refusal, Refusal)
    assert said in str(refusal)
    assert refusal.finding.startswith("external:")
