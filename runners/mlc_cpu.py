"""What this CPU is called, and which of a library's instructions it lacks; all without TVM."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CPUINFO = Path("/proc/cpuinfo")
CPUINFO_KEYS = (
    "vendor_id",
    "cpu family",
    "model",
    "flags",
    "CPU implementer",
    "CPU part",
    "Features",
)
"""What tells one kind of CPU from another in Linux's words, on x86 and on ARM."""

MACHINES = MappingProxyType({"amd64": "x86_64", "arm64": "aarch64"})
"""LLVM's names for what Python calls a machine, where they differ."""

ALIKE = (
    # x86-64
    *("cmov", "cx8", "cx16", "mmx", "sse", "sse2", "sse4a", "ssse3", "popcnt", "movbe", "adx"),
    *("avx", "avx2", "f16c", "fma", "fma4", "xop", "tbm", "bmi2", "gfni", "vaes", "vpclmulqdq"),
    *("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi"),
    # both
    "aes",
    # 64-bit ARM
    *("bf16", "i8mm", "sha2", "sha3", "sm4", "sve", "sve2"),
)
OTHERWISE = {
    # x86-64
    "64bit": "lm",
    "amx-bf16": "amx_bf16",
    "amx-int8": "amx_int8",
    "amx-tile": "amx_tile",
    "avx512bf16": "avx512_bf16",
    "avx512bitalg": "avx512_bitalg",
    "avx512fp16": "avx512_fp16",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512vnni": "avx512_vnni",
    "avx512vp2intersect": "avx512_vp2intersect",
    "avx512vpopcntdq": "avx512_vpopcntdq",
    "avxvnni": "avx_vnni",
    "bmi": "bmi1",
    "crc32": "sse4_2",  # part of it
    "lzcnt": "abm",
    "pclmul": "pclmulqdq",
    "prfchw": "3dnowprefetch",
    "sahf": "lahf_lm",
    "sha": "sha_ni",
    "sse3": "pni",
    "sse4.1": "sse4_1",
    "sse4.2": "sse4_2",
    # 64-bit ARM
    "complxnum": "fcma",
    "crc": "crc32",
    "dotprod": "asimddp",
    "fp-armv8": "fp",
    "fullfp16": "asimdhp",
    "lse": "atomics",
    "neon": "asimd",
    "rdm": "asimdrdm",
    "sve-aes": "sveaes",
    "sve-sha3": "svesha3",
    "sve-sm4": "svesm4",
}
LINUX_NAMES = MappingProxyType(dict(zip(ALIKE, ALIKE, strict=True)) | OTHERWISE)
"""Linux's names, as in ``/proc/cpuinfo``, of what LLVM calls otherwise or alike."""

NEVER_USED = frozenset(
    (
        *("cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "fxsr", "hreset"),
        *("invpcid", "kl", "lwp", "movdir64b", "movdiri", "mwaitx", "pconfig", "pku"),
        *("prefetchi", "ptwrite", "rdpid", "rdpru", "rdrnd", "rdseed", "rtm", "serialize", "sgx"),
        *("shstk", "tsxldtrk", "uintr", "usermsr", "waitpkg", "wbnoinvd", "widekl"),
        *("xsave", "xsavec", "xsaveopt", "xsaves"),
    )
)
"""What a compiler writes only where a program asks for it by name, and no model does: for systems,
caches, random numbers, transactions. Linux may hide some of them by choice."""


def missing_instructions(target: Mapping[str, Any]) -> list[str]:
    """Instructions that a library may use, and that this CPU lacks by Linux's account.

    With one of them missing, the library would end the process. What Linux shows nowhere, such as
    AMX in float16, and what is not known here, counts as missing, unless the library was built on
    this kind of CPU.

    Args:
        target: what a library says of the CPU that it is for: ``arch``, LLVM's ``features``, and
            ``host`` where it was built for the CPU that built it.

    Returns:
        Names by LLVM, in order; the whole architecture's where it is another. None on systems that
        tell nothing.
    """
    machine = platform.machine().lower()
    here = MACHINES.get(machine, machine)
    arch = str(target.get("arch", here))
    if arch != here:
        return [arch]
    lines = cpuinfo()
    listed = [line.partition(":")[2] for line in lines if line.startswith(("flags", "Features"))]
    if not listed or target.get("host") == host_name():
        return []
    there = set(listed[0].split())
    needed = {str(name) for name in target.get("features") or ()} - NEVER_USED
    return sorted(name for name in needed if LINUX_NAMES.get(name) not in there)


@cache
def host_name() -> str:
    """A short name of this kind of CPU: two with the same can share a library.

    Such as ``x86_64-5f0c9a1e``; the digits stand for the CPU's model and instructions.
    """
    lines = cpuinfo() or [platform.processor()]
    facts = sorted(line for line in lines if line.partition(":")[0].strip() in CPUINFO_KEYS)
    digest = hashlib.sha256("\n".join(facts or lines).encode()).hexdigest()
    return f"{platform.machine()}-{digest[:8]}"


def cpuinfo() -> list[str]:
    """What Linux says of the first CPU; nothing elsewhere."""
    if not CPUINFO.is_file():
        return []
    return CPUINFO.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
