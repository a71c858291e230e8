"""macOS's powermetrics, by recorded output and a program that prints it."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING

import pytest
from recorded_meters import FOLDER, recorded

from edgebench.devices.powermetrics import (
    SUDOERS_REMEDY,
    Draw,
    DrawReader,
    find_powermetrics,
    parse_draw,
)

if TYPE_CHECKING:
    from pathlib import Path

APPLE = recorded("powermetrics-apple.plist")
INTEL = """\
<?xml version="1.0" encoding="UTF-8"?>
<plist version="1.0"><dict>
<key>elapsed_ns</key><integer>500000000</integer>
<key>processor</key><dict>{}</dict>
</dict></plist>
"""
HIGHER = APPLE.replace("3248.07", "13248.07").replace("2978.45", "12978.45")


@pytest.mark.parametrize(
    ("text", "draw"),
    [
        (APPLE, Draw(3.24807, 2.97845, 0.269614, None)),
        (recorded("powermetrics-energy.plist"), Draw(0.120, 0.089, 0.031, 0.0)),
        (INTEL.format("<key>package_watts</key><real>26.86</real>"), Draw(26.86)),
        (INTEL.format("<key>package_joules</key><real>2.5</real>"), Draw(5.0)),
    ],
    ids=("apple", "apple, energies", "intel", "intel, joules"),
)
def test_each_kind_of_output_is_understood(text: str, draw: Draw) -> None:
    """Milliwatts, millijoules over the interval, watts and joules become watts."""
    found = parse_draw(text.encode())

    assert found is not None
    for name in ("whole_w", "cpu_w", "gpu_w", "ane_w"):
        expected = getattr(draw, name)
        assert getattr(found, name) == (expected if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"powermetrics must be invoked as the superuser\n",
        b"<plist><dict><key>processor</key>",
        INTEL.format("").encode(),
        b"<?xml version='1.0'?><plist version='1.0'><array/></plist>",
    ],
)
def test_output_without_power_is_none(text: bytes) -> None:
    """Half a list, another kind of list and plain words say nothing of power."""
    assert parse_draw(text) is None


def test_lists_separated_by_nul_become_joules() -> None:
    """Each list is the mean of its interval: 13.248 W for 0.2 s, however the pieces fall."""
    now_ns = [0]
    reader = DrawReader(lambda: now_ns[0])
    reader.take(APPLE.encode())
    now_ns[0] = 200_000_000
    second = b"\0" + HIGHER.encode()
    reader.take(second[:300])
    reader.take(second[300:])

    assert [meter.name for meter in reader.meters] == [
        "powermetrics",
        "powermetrics:cpu",
        "powermetrics:gpu",
    ]
    assert reader.meters[0].read_j() == pytest.approx(13.24807 * 0.2)
    assert reader.meters[1].read_j() == pytest.approx(12.97845 * 0.2)
    reader.end("powermetrics ended with status 1")
    with pytest.raises(OSError, match=r"^powermetrics ended with status 1$"):
        reader.meters[0].read_j()


def printing(tmp_path: Path, body: str) -> tuple[str, ...]:
    """A program that does what the shell is told, in the place of the real one."""
    path = tmp_path / "powermetrics"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return (str(path),)


def test_program_that_tells_power_is_a_meter(tmp_path: Path) -> None:
    """Two different lists prove it; the program ends with the last of its meters."""
    (tmp_path / "second.plist").write_text(HIGHER)
    first, second = (
        shlex.quote(str(path))
        for path in (FOLDER / "powermetrics-apple.plist", tmp_path / "second.plist")
    )
    program = printing(tmp_path, f"cat {first}; printf '\\0'; cat {second}; exec tail -f /dev/null")

    meters, refusals = find_powermetrics(time.perf_counter_ns, platform="darwin", program=program)

    assert refusals == []
    assert [(meter.name, meter.source) for meter in meters] == [
        ("powermetrics", "observed"),
        ("powermetrics:cpu", "observed"),
        ("powermetrics:gpu", "observed"),
    ]
    for meter in meters:
        meter.close()


@pytest.mark.parametrize(
    ("body", "finding", "remedy"),
    [
        (
            "echo 'powermetrics must be invoked as the superuser'; exit 1",
            "powermetrics: only root may run it",
            SUDOERS_REMEDY,
        ),
        (
            "echo 'sudo: a password is required' >&2; exit 1",
            "powermetrics: only root may run it",
            SUDOERS_REMEDY,
        ),
        (
            "echo 'unrecognized sampler: cpu_power' >&2; exit 64",
            "powermetrics: powermetrics ended with status 64: unrecognized sampler: cpu_power",
            None,
        ),
    ],
    ids=("not root", "sudo asks", "old system"),
)
def test_program_that_tells_nothing(
    tmp_path: Path, body: str, finding: str, remedy: str | None
) -> None:
    """Without root there is the one line that allows it; else its own words are the reason."""
    program = printing(tmp_path, body)

    meters, (refusal,) = find_powermetrics(time.perf_counter_ns, platform="darwin", program=program)

    assert meters == []
    assert (refusal.finding, refusal.remedy) == (finding, remedy)


def test_program_that_is_missing(tmp_path: Path) -> None:
    """A Mac without it says so."""
    (refusal,) = find_powermetrics(
        time.perf_counter_ns, platform="darwin", program=(str(tmp_path / "absent"),)
    )[1]

    assert str(refusal) == "powermetrics: it can't be started (No such file or directory)"


@pytest.mark.skipif(sys.platform == "darwin", reason="this is a Mac")
def test_no_mac_no_word() -> None:
    """Elsewhere no program is started and nothing is said."""
    assert find_powermetrics(time.perf_counter_ns) == ([], [])


@pytest.mark.parametrize("value", ["<true/>", "<real>nan</real>", "<real>inf</real>"])
def test_what_is_no_number_is_no_power(value: str) -> None:
    """A truth value is not a milliwatt, and nan is nothing."""
    text = (
        '<plist version="1.0"><dict><key>processor</key><dict>'
        f"<key>cpu_power</key>{value}</dict></dict></plist>"
    )
    assert parse_draw(text.encode()) is None
