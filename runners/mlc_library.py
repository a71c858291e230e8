"""A compiled model library: whether this machine can load it at all, and what it says of itself.

The dynamic linker crashes on a file that was cut off, and a library with instructions that the CPU
lacks ends the process at its first prompt: both are seen before.
"""

from __future__ import annotations

import json
import platform
import struct
import sys
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_cpu import missing_instructions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ELF_MACHINES = MappingProxyType(
    {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv64"}
)
SAME_MACHINE = MappingProxyType(
    {"amd64": "x86_64", "arm64": "aarch64", "armv7l": "arm", "armv8l": "arm", "i686": "i386"}
)
HEADER_BYTES = 64
ELF_CLASS_64, ELF_LOAD = 2, 1
"""64 bits; a part of the file that is mapped."""
ELF_TYPES = MappingProxyType({1: "an object file", 2: "a program", 4: "a core dump"})
ELF_SHARED = 3
"""The type of ELF files that can be loaded; what the others are is told."""
ELF_ENTRY_BYTES = 56
"""Of an entry in the table of parts of a 64-bit file."""

OLD_SYMBOL = b"__tvm_dev_mblob"
"""In libraries for TVM before 0.21, whose functions were called in another way."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What a library says of itself.

    Attributes:
        context_tokens: the most it was compiled for, or None where it does not say.
        prefill_chunk: the most tokens that it takes in at once.
        sliding_window: tokens that each token sees, or None for all before it.
        parameters: name, shape and dtype of each, in order; a name in a shape is one that the
            configuration has a value for.
        built_by: edgebench's own entry, or None for a library of MLC's compiler.
    """

    model_type: str
    quantization: str
    context_tokens: int | None
    prefill_chunk: int
    sliding_window: int | None
    parameters: tuple[tuple[str, tuple[int | str, ...], str], ...]
    built_by: Mapping[str, Any] | None


def check_file(path: Path) -> None:
    """Whether the dynamic linker of this machine may be given this file.

    Raises:
        RunnerFailure: it is no library, one for another machine, or cut off (invalid).
    """
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    expected, found = _kind_here(), _kind(head)
    if found is None:
        raise _no_library(path)
    if found[0] == "ELF" and (kind := int.from_bytes(head[16:18], "little")) != ELF_SHARED:
        raise _no_library(path, ELF_TYPES.get(kind, f"an ELF file of type {kind}"))
    if found != expected:
        msg = (
            f"{path} is a library for {found[1]} ({found[0]}), and this machine takes "
            f"{expected[1]} ({expected[0]}): compile the model for this machine"
        )
        raise _invalid(msg)
    if found[0] == "ELF" and head[4] == ELF_CLASS_64 and _mapped_end(path) > path.stat().st_size:
        msg = f"{path} is cut off: copy it or compile the model again"
        raise _invalid(msg)


def _mapped_end(path: Path) -> int:
    """Where the last part of a 64-bit ELF file ends that is mapped into memory, in bytes.

    Raises:
        RunnerFailure: its table of parts is none (invalid).
    """
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
        (offset,) = struct.unpack_from("<Q", head, 32)
        width, count = struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        table = file.read(width * count)
    if width != ELF_ENTRY_BYTES:
        raise _no_library(path, "a damaged ELF file")
    end: int = offset + width * count
    for first in range(0, len(table) - width + 1, width):
        kind, _, begin, _, _, length = struct.unpack_from("<IIQQQQ", table, first)
        end = max(end, begin + length) if kind == ELF_LOAD else end
    return end


def _kind(head: bytes) -> tuple[str, str] | None:
    """Format of a library, and machine; None for any other file."""
    if len(head) < HEADER_BYTES:
        return None
    if head.startswith(b"\x7fELF"):
        number = int.from_bytes(head[18:20], "little")
        return "ELF", ELF_MACHINES.get(number, f"machine {number}")
    if head.startswith(b"\xcf\xfa\xed\xfe"):
        number = head[4]
        return "Mach-O", {7: "x86_64", 12: "aarch64"}.get(number, f"machine {number}")
    if head.startswith(b"MZ"):
        return "PE", _kind_here()[1]  # its machine stands further on, and Windows checks it
    return None


def _kind_here() -> tuple[str, str]:
    machine = platform.machine().lower()
    kind = {"darwin": "Mach-O", "win32": "PE"}.get(sys.platform, "ELF")
    return kind, SAME_MACHINE.get(machine, machine)


def is_for_older_tvm(path: Path) -> bool:
    """Whether a library was compiled for a TVM that called functions in another way."""
    return OLD_SYMBOL in path.read_bytes()


def parse_metadata(text: str, path: Path) -> Metadata:
    """What ``_metadata()`` gave.

    Raises:
        RunnerFailure: it is not understood (invalid), or a kind of model that is not run
            (unsupported).
    """
    try:
        facts = json.loads(text)
        parameters = tuple(
            (str(each["name"]), tuple(each["shape"]), str(each["dtype"]))
            for each in facts["params"]
        )
        metadata = Metadata(
            model_type=str(facts["model_type"]),
            quantization=str(facts["quantization"]),
            context_tokens=_positive(facts.get("context_window_size")),
            prefill_chunk=int(facts["prefill_chunk_size"]),
            sliding_window=_positive(facts.get("sliding_window_size")),
            parameters=parameters,
            built_by=facts.get("edgebench"),
        )
        shards = int(facts.get("tensor_parallel_shards", 1))
        shards *= int(facts.get("pipeline_parallel_stages", 1))
        state = facts.get("kv_state_kind", "kv_cache")
        task = facts.get("model_task", "chat")
        _check_own(metadata.built_by)
    except (KeyError, TypeError, ValueError) as error:
        msg = (
            f"what {path} says in _metadata() is not understood ({type(error).__name__}: {error}): "
            "compile the model again"
        )
        raise _invalid(msg) from None
    if shards != 1 or state != "kv_cache" or task != "chat":
        kinds = f"{shards} devices, state {state}, task {task}"
        msg = f"{path} is compiled for {kinds}: only one device, kv_cache and chat are run here"
        raise RunnerFailure(msg, reason="unsupported")
    return metadata


def _check_own(entry: object) -> None:
    """Raises ValueError where what stands under ``edgebench`` is not as edgebench writes it."""
    target = entry.get("target", {}) if isinstance(entry, dict) else {}
    if not isinstance(entry, dict | None) or not isinstance(target, dict):
        msg = "edgebench's own entry is no object"
        raise ValueError(msg)  # noqa: TRY004 - told as any other of what is not understood
    if not isinstance(target.get("features", []), list):
        msg = "the features in edgebench's own entry are no list"
        raise ValueError(msg)  # noqa: TRY004


def _positive(value: object) -> int | None:
    return value if isinstance(value, int) and value > 0 else None


def check_target(metadata: Metadata, path: Path, device: str) -> None:
    """Whether a library that edgebench built is for this device, and this CPU has what it takes.

    MLC's libraries do not tell what they were compiled for.

    Raises:
        RunnerFailure: it is for the CPU only, or for another one (unsupported).
    """
    if metadata.built_by is None:
        return
    if device != "cpu":
        msg = f"edgebench built {path}, for the CPU only, and device is {device}"
        raise RunnerFailure(msg, reason="unsupported")
    target = metadata.built_by.get("target") or {}
    missing = missing_instructions(target)
    if missing:
        msg = (
            f"{path} was compiled for a CPU ({target.get('mcpu')}) with {', '.join(missing)}, "
            "which this one lacks by the system's account: convert the model on this machine"
        )
        raise RunnerFailure(msg, reason="unsupported")


def _no_library(path: Path, found: str = "") -> RunnerFailure:
    what = f" but {found}" if found else ""
    msg = (
        f"{path} is no compiled library{what}: a shared library is expected, as MLC's compiler or "
        "edgebench makes it; copy it or compile the model again"
    )
    return _invalid(msg)


def _invalid(message: str) -> RunnerFailure:
    return RunnerFailure(message, reason="invalid")
