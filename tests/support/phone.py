"""A phone for tests: its folder, its programs, and the adb that reaches it."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parent
DATA = SUPPORT.parent / "data"
SERIAL = "R5CT90ABCDE"

PROPERTIES = {
    "ro.product.manufacturer": "samsung",
    "ro.product.model": "SM-S938B",
    "ro.soc.manufacturer": "QTI",
    "ro.soc.model": "SM8750",
    "ro.board.platform": "sun",
    "ro.product.cpu.abilist": "arm64-v8a",
    "ro.product.cpu.abi": "arm64-v8a",
    "ro.build.version.release": "15",
    "ro.build.fingerprint": "samsung/pa3qxxx/pa3q:15",
}

GETPROP = """#!/bin/sh
sed -n "s|^$1=||p" "$PHONE/properties.txt"
"""
DUMPSYS = """#!/bin/sh
cat "$PHONE/$1.txt" 2>/dev/null || { echo "Can't find service: $1"; exit 1; }
"""
TOYBOX = """#!/bin/sh
[ $# = 0 ] && { cat "$PHONE/toybox.txt"; exit; }
command=$1; shift
[ $command = time ] || exec $command "$@"
case $1 in -v) shift;; -*) echo "toybox: time: Unknown option '${1#-}'" >&2; exit 1;; esac
if [ -f "$PHONE/short-time.txt" ]; then
  echo "time: Unknown option 'v' (see \"time --help\")" >&2
  exit 1
fi
"$@"
status=$?
echo "Real time (s): 1.503220
System time (s): 0.120000
User time (s): 5.010000
Max RSS (KiB): 520168
Major faults: 12
Minor faults: 4321
File system inputs: 0
File system outputs: 0
Voluntary context switches: 10
Involuntary context switches: 20" >&2
exit $status
"""
DF = """#!/bin/sh
echo "Filesystem     1024-blocks    Used Available Capacity Mounted on"
echo "/dev/block/dm-54  1000000000 1000 $(cat "$PHONE/free_kib.txt")  1% /data"
"""


def elf(machine: int, bits: int = 64) -> bytes:
    """The first bytes of a program for a processor (e_machine), little-endian."""
    start = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9)
    return start + (3).to_bytes(2, "little") + machine.to_bytes(2, "little") + bytes(44)


@dataclass
class PlayedPhone:
    """A phone in a folder of a test."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.root / "bin"
        programs.mkdir(parents=True)
        for name, text in (
            ("getprop", GETPROP),
            ("dumpsys", DUMPSYS),
            ("toybox", TOYBOX),
            ("df", DF),
        ):
            _program(programs / name, text)
        self.files(
            properties="".join(f"{key}={value}\n" for key, value in PROPERTIES.items()),
            toybox="cat df grep sha256sum time timeout",
            free_kib="50000000",
            battery=(DATA / "meters/dumpsys-battery-current.txt").read_text("utf-8"),
        )
        self.state(devices=[[SERIAL, "device", "SM_S938B"]])
        self.tool()
        adb = _program(
            self.root / "adb",
            f'#!/bin/sh\nexec {sys.executable} {SUPPORT / "adb_stand_in.py"} "$@"\n',
        )
        self.environment = {
            "EDGEBENCH_ADB": str(adb),
            "PHONE": str(self.root),
            "RECORDED": str(DATA / "adb"),
        }

    @property
    def folder(self) -> Path:
        """Where a scenario keeps its things on the phone."""
        return self.root / "tmp"

    def files(self, **texts: str) -> None:
        """What its programs print."""
        for name, text in texts.items():
            (self.root / f"{name}.txt").write_text(text, encoding="utf-8")

    def state(self, **state: Any) -> None:
        """How adb finds it; what is not named stays."""
        path = self.root / "phone.json"
        before = json.loads(path.read_text("utf-8")) if path.exists() else {}
        path.write_text(json.dumps({**before, **state}), encoding="utf-8")

    def tool(self, **state: Any) -> None:
        """How its tools fail."""
        (self.root / "tool.json").write_text(json.dumps(state), encoding="utf-8")

    def started(self) -> list[list[str]]:
        """The tools that were started, with their arguments."""
        path = self.root / "started.txt"
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def calls(self, command: str) -> list[list[str]]:
        """What adb was asked, of one command."""
        lines = (self.root / "calls.txt").read_text("utf-8").splitlines()
        return [call for line in lines if command in (call := json.loads(line))]


def built_tool(folder: Path, name: str) -> Path:
    """A tool as a user built it, which prints what the real one prints."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"#!{sys.executable}\n{(SUPPORT / 'phone_tool.py').read_text('utf-8')}"
    return _program(folder / name, text)


def _program(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path
