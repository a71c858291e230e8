"""Readings, and the kernel's small text files."""

from __future__ import annotations

import math
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgebench.devices.files import (
    format_cpu_list,
    list_folder,
    parse_cpu_list,
    read_int,
    read_open_file,
    read_text,
)
from edgebench.devices.reading import Reading


def test_reading_without_value_needs_a_reason():
    """What was not measured says why."""
    with pytest.raises(ValueError, match="needs a reason"):
        Reading(None)

    assert Reading.missing("not here").reason == "not here"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_reading_is_finite(value):
    """Infinity and NaN are never readings."""
    with pytest.raises(ValueError, match="finite"):
        Reading(value)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8\n", (0, 1, 2, 3, 8)),
        ("5", (5,)),
        ("", ()),
        ("2,0-1,1", (0, 1, 2)),
        ("(none)", ()),
    ],
)
def test_cpu_lists(text, cpus):
    """The kernel's lists of CPUs are read; what is none is no CPU."""
    assert parse_cpu_list(text) == cpus


@given(st.sets(st.integers(0, 300)))
def test_cpu_list_survives_writing(cpus):
    """A list that was written is read back."""
    assert set(parse_cpu_list(format_cpu_list(tuple(cpus)))) == cpus


def test_cpu_list_is_short():
    """Neighbouring CPUs are written as a range."""
    assert format_cpu_list((0, 1, 2, 5, 7, 8)) == "0-2,5,7-8"


def test_unreadable_files_are_none(tmp_path):
    """Missing files, folders and words are no numbers and no errors."""
    (tmp_path / "word").write_text("on\n")
    (tmp_path / "number").write_text("-12\n")

    assert read_text(tmp_path / "absent") is None
    assert read_int(tmp_path) is None
    assert read_int(tmp_path / "word") is None
    assert read_int(tmp_path / "number") == -12
    assert list_folder(tmp_path / "absent") == []


def test_folders_are_in_natural_order(tmp_path):
    """cpu2 comes before cpu10, and names that differ in kind can be compared."""
    for name in ("cpu10", "cpu2", "10", "cpufreq", "cpu"):
        (tmp_path / "folder" / name).mkdir(parents=True)

    names = [folder.name for folder in list_folder(tmp_path / "folder")]

    assert names == ["10", "cpu", "cpu2", "cpu10", "cpufreq"]


def test_long_files_are_read_to_their_end(tmp_path):
    """A file longer than one read is whole, and a second look sees what changed."""
    path = tmp_path / "long"
    path.write_bytes(b"x" * 200_000)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        assert len(read_open_file(descriptor)) == 200_000
        path.write_bytes(b"short")
        assert read_open_file(descriptor) == b"short"
    finally:
        os.close(descriptor)


def test_kernel_hands_out_long_files_in_parts():
    """A real long file of procfs is read like by any other way."""
    descriptor = os.open("/proc/filesystems", os.O_RDONLY)
    try:
        with open("/proc/filesystems", "rb") as file:  # noqa: PTH123 - another way on purpose
            assert read_open_file(descriptor) == file.read()
    finally:
        os.close(descriptor)
