"""What is read of an Android device and of a tool's file."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest
from damage import damaged
from hypothesis import given, settings
from hypothesis import strategies as st
from phone import SERIAL, PlayedPhone, elf

from edgebench.harness.adb.board import AdbBoard, name_there
from edgebench.harness.adb.client import Adb, Attached, Done, adb_words
from edgebench.harness.adb.diagnosis import cannot_start, link_broken
from edgebench.harness.adb.elf import abi_of, is_script
from edgebench.harness.adb.phone import ask, celsius, free_bytes
from edgebench.harness.errors import BoardError, BoardUnfitError, UsageError

THERMAL = """IsStatusOverride: false
Thermal Status: 0
Cached temperatures:
\tTemperature{mValue=51.500004, mType=3, mName=skin, mStatus=0}
HAL Ready: true
Current temperatures from HAL:
\tTemperature{mValue=56.0, mType=0, mName=CPU0, mStatus=0}
\tTemperature{mValue=33.3, mType=3, mName=skin, mStatus=0}
\tTemperature{mValue=0.0, mType=3, mName=other, mStatus=0}
Current cooling devices from HAL:
\tCoolingDevice{mValue=0, mType=2, mName=cpufreq-cpu0}
"""

BATTERY = "Current Battery Service state:\n  temperature: 280\n  voltage: 3848\n"
FACTS = "x\n" + "edgebench: next\n" * 5 + "MemTotal: 8000000 kB\n"
DISK = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/x 100 1 50 1% /data\n"
PHONE_TEXTS = (THERMAL, BATTERY, FACTS, DISK, "x\n" + "edgebench: next\n" * 9)


@pytest.fixture
def phone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlayedPhone:
    made = PlayedPhone(tmp_path / "phone")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture
def adb(phone: PlayedPhone) -> Adb:
    return Adb(SERIAL, [phone.environment["EDGEBENCH_ADB"]])


def test_a_phone_names_itself(adb: Adb, phone: PlayedPhone) -> None:
    """Its chip, else its board, with the model; the ABIs in its own order."""
    found = ask(adb)
    assert found.machine.cpu_model == "QTI SM8750 (samsung SM-S938B)"
    assert found.abis == ("arm64-v8a",)
    assert found.programs == {"sha256sum", "time", "timeout"}
    phone.files(properties="ro.board.platform=sun\nro.product.cpu.abi=armeabi-v7a\n", toybox="cat")
    older = ask(adb)
    assert older.machine.cpu_model == "sun"
    assert (older.abis, older.programs) == (("armeabi-v7a",), frozenset())
    assert older.machine.fingerprint != found.machine.fingerprint


def test_a_time_without_the_kernels_figures_is_not_used(adb: Adb, phone: PlayedPhone) -> None:
    """Old toyboxes have `time` without -v; the peak of memory is then not told."""
    phone.files(**{"short-time": ""})
    assert ask(adb).programs == {"sha256sum", "timeout"}


def test_facts_that_can_not_be_are_no_facts(adb: Adb, phone: PlayedPhone) -> None:
    """Memory of thousands of digits, or none; a temperature of a star."""
    cat = phone.root / "bin" / "cat"
    for kilobytes in ("9" * 5000, "0", "-5"):
        text = f"#!/bin/sh\ncase $1 in /proc/meminfo) echo 'MemTotal: {kilobytes} kB';; "
        cat.write_text(text + '*) exec /bin/cat "$@";; esac\n', encoding="utf-8")
        cat.chmod(0o755)
        with pytest.raises(BoardUnfitError, match="does not tell its memory"):
            ask(adb)
    battery = "Current Battery Service state:\n  temperature: 1e300\n"
    phone.files(battery=battery, thermalservice="")
    assert celsius(adb).value is None


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200) | st.sampled_from(PHONE_TEXTS).flatmap(damaged))
def test_no_answer_of_a_phone_breaks_the_run(text: str) -> None:
    """Whatever it says, there are facts or a failure that names the device."""
    adb = Adb(SERIAL, ["adb"])
    adb.shell = lambda *_: Done(0, text)  # type: ignore[method-assign]
    with contextlib.suppress(BoardError):
        json.dumps(asdict(ask(adb).machine), allow_nan=False).encode()
    found = celsius(adb).value
    assert found is None or abs(found) < 1000
    free = free_bytes(adb, "/")
    assert free is None or free >= 0


def test_a_file_whose_name_begins_with_a_dash_is_copied(
    adb: Adb, phone: PlayedPhone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Named from where one stands, it would be an option of adb, which refuses those it lacks."""
    monkeypatch.chdir(tmp_path)
    Path("-llama-bench").write_bytes(b"tool")
    adb.push(Path("-llama-bench"), str(phone.root / "there"), 10)
    assert (phone.root / "there").read_bytes() == b"tool"
    with pytest.raises(BoardError, match="unrecognized option"):
        adb.push(tmp_path / "-llama-bench", "-there", 10)


def test_serials_with_spaces(phone: PlayedPhone) -> None:
    """As makers of cheap phones choose them; `adb devices` has a tab behind, `-l` only spaces."""
    phone.state(devices=[["MY PHONE 01", "device", "M1"], ["MY", "offline", ""]])
    adb = Adb("MY PHONE 01", [phone.environment["EDGEBENCH_ADB"]])
    assert adb.attached() == [
        Attached("MY PHONE 01", "device", "M1"),
        Attached("MY", "offline", ""),
    ]
    adb.find()
    assert adb.shell("echo hello").out == "hello"


@pytest.mark.parametrize("folder", ["tmp", "-x", "/data/a,b"])
def test_folders_that_tools_would_misread_are_refused(folder: str) -> None:
    """Relative ones may be options; llama-bench takes a comma for the end of a path."""
    with pytest.raises(UsageError, match=r"device\.folder"):
        AdbBoard(Adb(SERIAL, ["adb"]), folder)


@pytest.mark.parametrize(
    ("name", "there"),
    [("a,b.gguf", "a_b.gguf"), ("-m.gguf", "m.gguf"), ("--", "model"), ("x y'é", "x_y__")],
)
def test_models_have_plain_names_on_the_device(name: str, there: str) -> None:
    """A name with a comma would be two models for llama-bench."""
    assert name_there(name) == there


def test_temperature_is_the_batterys_or_the_cases(adb: Adb, phone: PlayedPhone) -> None:
    """Tenths of a degree of dumpsys battery; else the hottest skin sensor that is read now."""
    assert celsius(adb).value == 28.0
    phone.files(battery="Can't find service: battery", thermalservice=THERMAL)
    assert celsius(adb).value == 33.3
    phone.files(thermalservice="Thermal Status: 0\n")
    assert celsius(adb).reason == "the phone tells no temperature of its battery or its case"


def test_free_space_is_read(adb: Adb, phone: PlayedPhone) -> None:
    """In KiB, of the line below the header."""
    phone.files(free_kib="123")
    assert free_bytes(adb, "/data/local/tmp") == 123 * 1024


def test_a_commands_status_and_output_are_apart(adb: Adb) -> None:
    """Also where its last line has no end."""
    done = adb.shell("printf 'one\\ntwo'; false")
    assert (done.code, done.out) == (1, "one\ntwo")
    assert adb.run(["echo", "a b"]) == "a b"
    with pytest.raises(OSError, match=r"cat failed: .*none"):
        adb.run(["cat", "/none"])


@pytest.mark.parametrize("serial", ["-s", "a\tb", " a", "a\n", ""])
def test_a_serial_that_is_none_is_refused(serial: str) -> None:
    """A leading dash would be an option of adb; spaces may be in it, not around it."""
    with pytest.raises(UsageError, match="no serial number"):
        Adb(serial, ["adb"])


def test_adb_is_named_by_the_environment() -> None:
    """With words of its own, as a shell splits them."""
    assert adb_words({"EDGEBENCH_ADB": "'/my tools/adb' -P 5038"}) == (
        "/my tools/adb",
        "-P",
        "5038",
    )
    with pytest.raises(UsageError, match="EDGEBENCH_ADB"):
        adb_words({"EDGEBENCH_ADB": "'adb"})


def test_a_program_tells_its_processor(tmp_path: Path) -> None:
    """By e_machine of the ELF header: 183 is AArch64, 62 x86-64, 40 Arm."""
    names = {183: "arm64-v8a", 62: "x86_64", 40: "armeabi-v7a", 8: "machine 8, 64 bits"}
    for machine, name in names.items():
        path = tmp_path / "tool"
        path.write_bytes(elf(machine))
        assert abi_of(path) == name
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    assert abi_of(path) is None
    assert is_script(path)
    path.write_bytes(b"")
    assert abi_of(path) is None
    assert not is_script(path)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("error: device unauthorized.\nThis adb server's", "does not trust this computer yet"),
        ("error: device offline", "does not answer (offline)"),
        ("error: closed", "broke: error: closed"),
        ("", "the connection was closed"),
    ],
)
def test_a_broken_link_says_why(said: str, found: str) -> None:
    """In adb's own words where there are no better ones."""
    assert found in link_broken("ABC", said).message


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("error: failed to load model", 1),
        ("warning: failed to set the priority: Permission denied\nout of memory", 139),
        ('warning: library "libOpenCL.so" not found, using the CPU', 137),
        ("mlock: Permission denied", 3),
        ("the file is not executable, so what", 1),
    ],
)
def test_other_words_of_a_tool_are_not_about_starting_it(said: str, code: int) -> None:
    """A tool that ran and failed says so itself; what it warned of before is not why."""
    assert cannot_start("llama-bench", said, "arm64-v8a", code) is None


@pytest.mark.parametrize(
    ("said", "code", "message"),
    [
        # As bionic's linker, mksh and toybox print them.
        (
            'CANNOT LINK EXECUTABLE "./t": library "libllama.so" not found: needed by "t"',
            134,
            "needs the library libllama.so",
        ),
        ('CANNOT LINK EXECUTABLE "./t": cannot locate symbol "x"', 1, "can't be linked"),
        (
            'CANNOT LINK EXECUTABLE "./t": "t" has unexpected e_machine: 62 (EM_X86_64)',
            1,
            "not executable",
        ),
        ("sh: ./t: not executable: 64-bit ELF file", 126, "not executable"),
        ("sh: ./t: can't execute: Permission denied", 126, "may not be run"),
        ("sh: ./t: No such file or directory", 127, "can't be started on the device: sh: ./t: No"),
        ("", 127, "can't be started on the device: status 127"),
    ],
)
def test_why_a_tool_does_not_start(said: str, code: int, message: str) -> None:
    """The linker says it in a line of its own, the shell by its exit status."""
    error = cannot_start("t", said, "arm64-v8a", code)
    assert isinstance(error, BoardUnfitError)
    assert message in error.message


@pytest.mark.parametrize("program", ["/bin/echo", "/bin/true"])
def test_a_program_that_is_no_adb_is_named(program: str) -> None:
    """It lists no devices; that none is attached would be another thing."""
    with pytest.raises(BoardUnfitError, match="is no adb") as caught:
        Adb("any", (program,)).find()
    assert program in caught.value.message
    assert "EDGEBENCH_ADB" in str(caught.value.remedy)
