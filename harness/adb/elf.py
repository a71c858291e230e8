"""For which processors a program is built, by the first bytes of its file (the ELF format)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

HEADER_BYTES: Final = 20
_BITS: Final = {1: 32, 2: 64}
_MACHINES: Final = {3: "x86", 40: "armeabi-v7a", 62: "x86_64", 183: "arm64-v8a", 243: "riscv64"}
"""The field e_machine, of the ELF specification's registry, as Android names the ABI."""


def abi_of(path: Path) -> str | None:
    """Android's name of what a program is built for; None where it is no ELF file.

    Raises:
        OSError: it can't be read.
    """
    with path.open("rb") as file:
        start = file.read(HEADER_BYTES)
    if len(start) < HEADER_BYTES or start[:4] != b"\x7fELF":
        return None
    machine = int.from_bytes(start[18:20], "little" if start[5] == 1 else "big")
    return _MACHINES.get(machine, f"machine {machine}, {_BITS.get(start[4], '?')} bits")


def is_script(path: Path) -> bool:
    """Whether it names its own interpreter."""
    with path.open("rb") as file:
        return file.read(2) == b"#!"
