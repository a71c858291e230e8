"""What is read of an Android device and of a tool's file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from phone import SERIAL, PlayedPhone, elf

from edgebench.harness.adb.client import Adb, adb_words
from edgebench.harness.adb.diagnosis import cannot_start, link_broken
from edgebench.harness.adb.elf import abi_of, is_script
from edgebench.harness.adb.phone import ask, celsius, free_bytes
from edgebench.harness.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.parametrize("serial", ["-s", "a b", ""])
def test_a_serial_that_is_none_is_refused(serial: str) -> None:
    """A leading dash would be an option of adb."""
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


def test_other_words_of_a_tool_are_not_about_starting_it() -> None:
    """A tool that ran and failed says so itself."""
    assert cannot_start("llama-bench", "error: failed to load model", "arm64-v8a") is None
