"""What reads memory as fast as it can be read, with nothing but the standard library.

A bandwidth that a program can exceed is no roof. The functions of the C library read one or two
streams at a time, and a processor needs more of them to keep its memory busy. So the first choice
is a few machine instructions of our own: they load one word of each cache line, since a line is
fetched whole, from one, four or eight places in turn. Where a system forbids memory that was
written by a program to be executed, or on another kind of processor, ``memcmp`` and ``memchr`` of
the C library read in their place. `ctypes` lets go of the interpreter's lock during a call, so
threads read at once.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

GRAIN = 1 << 16
"""Sizes are multiples of it, so that every reader reads all of a buffer: of 8 x 64 bytes, and of
two halves of whole pages."""

FILLED_WITH = 1
"""The value of every byte of a buffer: nothing is found in it, and both halves are alike."""

# Both kinds take where to begin and how many bytes each stream has, a multiple of 64. The streams
# lie one behind the other. They were assembled from the instructions that stand beside them.
_X86_64 = {
    # lea rdx, [rdi+rsi]
    # 1: mov rax, [rdi]; add rdi, 64; cmp rdi, rdx; jb 1b; ret
    1: "488d1437 488b07 4883c740 4839d7 72f4 c3",
    # lea rdx, [rdi+rsi]; lea rcx, [rsi+2*rsi]
    # 1: mov rax, of rdi + 0, 1, 2, 3 x rsi in turn; add rdi, 64; cmp rdi, rdx; jb 1b; ret
    4: "488d1437 488d0c76 488b07 488b0437 488b0477 488b040f 4883c740 4839d7 72e8 c3",
    # the same, with r8 = 5 x rsi and r9 = 7 x rsi, and of rdi + 0 to 7 x rsi
    8: """488d1437 488d0c76 4c8d0471 4c8d0cb1
        488b07 488b0437 488b0477 488b040f 488b04b7 4a8b0407 488b044f 4a8b040f
        4883c740 4839d7 72d8 c3""",
}
_AARCH64 = {
    # add x2, x0, x1
    # 1: ldr x9, [x0], #64; cmp x0, x2; b.lo 1b; ret
    1: "0200018b 090444f8 1f0002eb c3ffff54 c0035fd6",
    # add x2, x0, x1; x3 and x4 = 2 and 3 times x1
    # 1: ldr x9 to x12 of x0 + 0, x1, x3, x4; add x0, x0, #64; cmp x0, x2; b.lo 1b; ret
    4: """0200018b 2300018b 6400018b 090040f9 0a6861f8 0b6863f8 0c6864f8
        00000191 1f0002eb 43ffff54 c0035fd6""",
    # the same, with x5 to x8 = 4 to 7 times x1, into x9 to x16
    8: """0200018b 2300018b 6400018b 8500018b a600018b c700018b e800018b
        090040f9 0a6861f8 0b6863f8 0c6864f8 0d6865f8 0e6866f8 0f6867f8 106868f8
        00000191 1f0002eb c3feff54 c0035fd6""",
}
MACHINE_CODE: Mapping[str, Mapping[int, str]] = MappingProxyType(
    {"x86_64": _X86_64, "amd64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
)
"""By the machine's name, and by the number of streams, in hexadecimal."""

_PROT_READ, _PROT_EXEC, _MAP_PRIVATE = 1, 4, 2
_PLACE = 256
"""Bytes for each piece of code."""


@dataclass(frozen=True, slots=True)
class Reader:
    """One way to read.

    Attributes:
        name: such as ``lines-4``, cache lines from four places in turn.
        read: reads so many bytes, a multiple of `GRAIN`, from an address on, all of them, each
            once; it lets go of the interpreter's lock.
    """

    name: str
    read: Callable[[int, int], object]


def find_readers() -> tuple[Reader, ...]:
    """Those that this system and processor can run; empty where there is no C library."""
    try:
        library = ctypes.CDLL(None)
    except (OSError, TypeError):
        return ()
    return (*_line_readers(library), *_library_readers(library))


def _library_readers(library: ctypes.CDLL) -> list[Reader]:
    readers = []
    if compare := _function(library, "memcmp", ctypes.c_void_p):

        def read_halves(address: int, size: int) -> object:
            return compare(address, address + size // 2, size // 2)

        readers.append(Reader("memcmp", read_halves))
    if search := _function(library, "memchr", ctypes.c_int):

        def read_all(address: int, size: int) -> object:
            return search(address, 1 - FILLED_WITH, size)

        readers.append(Reader("memchr", read_all))
    return readers


def _function(library: ctypes.CDLL, name: str, second: Any) -> Any:  # noqa: ANN401 - ctypes' own
    found = getattr(library, name, None)
    if found is not None:
        found.argtypes = [ctypes.c_void_p, second, ctypes.c_size_t]
        found.restype = ctypes.c_int if name == "memcmp" else ctypes.c_void_p
    return found


def _line_readers(library: ctypes.CDLL) -> list[Reader]:
    known = MACHINE_CODE.get(platform.machine().lower(), {})
    place = _executable(library, [bytes.fromhex(code) for code in known.values()])
    if place is None:
        return []
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
    return [
        Reader(f"lines-{streams}", _in_streams(function(place + at * _PLACE), streams))
        for at, streams in enumerate(known)
    ]


def _in_streams(call: Callable[[int, int], object], streams: int) -> Callable[[int, int], object]:
    def read(address: int, size: int) -> object:
        return call(address, size // streams)

    return read


def _executable(library: ctypes.CDLL, codes: list[bytes]) -> int | None:
    """Where the pieces of code can be called, `_PLACE` bytes apart; None where it is forbidden.

    They are written to a file in memory, which is then mapped to be executed and never written:
    so the kernel makes the processor's caches of instructions and data agree, as for a program.
    """
    if not codes or not hasattr(os, "memfd_create") or ctypes.sizeof(ctypes.c_void_p) != 8:  # noqa: PLR2004
        return None
    try:
        descriptor = os.memfd_create("edgebench-readers")
    except OSError:
        return None
    try:
        os.write(descriptor, b"".join(code.ljust(_PLACE, b"\0") for code in codes))
        map_file: Any = library.mmap
        map_file.restype = ctypes.c_void_p
        map_file.argtypes = [
            ctypes.c_void_p,
            ctypes.c_size_t,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_long,
        ]
        size = mmap.PAGESIZE
        place = map_file(None, size, _PROT_READ | _PROT_EXEC, _MAP_PRIVATE, descriptor, 0)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    failed = ctypes.c_void_p(-1).value
    return None if place is None or place == failed else int(place)
