"""Which CPU a model library is built for, in TVM's words."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from edgebench.runners.mlc_cpu import host_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tvm.target import Target

FAST_MATH = ("fast-math-reassoc", "fast-math-contract", "fast-math-nsz")
"""What LLVM may do to sums: reorder them, contract them to fused multiply-adds, lose the sign of a
zero. Never that there are no infinities or NaNs: attention masks with the one, and wrong weights
must show as the other."""

UNROLL = "-unroll-threshold-aggressive:uint=150"
"""LLVM's limit for writing a loop out whole, half of its own. A dot product of 64 numbers, as in
TVM's attention kernels, is then still a loop when LLVM looks for loops to vectorise."""


class Registers(NamedTuple):
    """The vector registers of a CPU.

    Attributes:
        lanes: float32 numbers in one.
        names: how many of them there are.
    """

    lanes: int
    names: int


def host_target() -> Target:
    """This machine's CPU, with exactly the instructions that it has.

    The name alone would not do: a virtual machine may mask instructions that every CPU of that
    name has, so what LLVM detects is set or unset feature by feature. The number of cores is left
    out, since it changes no code.
    """
    import tvm  # noqa: PLC0415

    kind = {"kind": "llvm", "mcpu": str(_llvm("llvm_get_system_cpu"))}
    by_name = _features(tvm.target.Target(kind))
    detected = _detected()
    wrong = {name for name, there in detected.items() if there != (name in by_name)}
    attributes = [f"{'+' if detected[name] else '-'}{name}" for name in sorted(wrong)]
    return cpu_target({**kind, **({"mattr": attributes} if attributes else {})})


def cpu_target(kind: Mapping[str, Any]) -> Target:
    """Any CPU that LLVM knows, with the flags and vector width that edgebench compiles with.

    Args:
        kind: TVM's configuration, such as ``{"kind": "llvm", "mcpu": "haswell"}``.
    """
    import tvm  # noqa: PLC0415

    width = 32 * vector_registers(tvm.target.Target(dict(kind))).lanes
    flags = {**dict.fromkeys(FAST_MATH, True), "cl-opt": [UNROLL], "vector-width": width}
    return tvm.target.Target({**kind, **flags})


def vector_registers(target: Target) -> Registers:
    """From the CPU's features, as LLVM lists them.

    TVM's ``llvm_get_vector_width`` says 512 bits for any x86-64 that sets no width. CPUs with
    ARM's scalable vectors are treated as having their fixed 128 bits.
    """
    features = _features(target)
    if "avx512f" in features:
        return Registers(lanes=16, names=32)
    if "avx" in features:
        return Registers(lanes=8, names=16)
    return Registers(lanes=4, names=32 if "neon" in features else 16)


def target_facts(target: Target) -> dict[str, Any]:
    """What a library says in ``_metadata()`` about the CPU that it is for; goes into JSON.

    ``features`` holds those that LLVM can detect on a CPU of this kind; what merely tunes the order
    of instructions is left out. ``host`` is this kind of CPU's name, where it is for this one.
    """
    known = _detected()
    facts = {
        "kind": target.kind.name,
        "arch": _architecture(target),
        "mcpu": str(target.attrs.get("mcpu", "")),
        "features": sorted(name for name in _features(target) if name in known),
        "vector_bits": 32 * vector_registers(target).lanes,
    }
    if str(target) == str(host_target()):
        facts["host"] = host_name()
    return facts


def _llvm(name: str, *arguments: Any) -> Any:  # noqa: ANN401 - whatever TVM gives
    import tvm  # noqa: PLC0415

    return tvm.get_global_func(f"target.{name}")(*arguments)


def _features(target: Target) -> frozenset[str]:
    """Names by LLVM, tuning flags among them."""
    return frozenset(str(name) for name in _llvm("llvm_get_cpu_features", target))


@cache
def _detected() -> dict[str, bool]:
    """Every instruction set extension that LLVM looked for on this machine."""
    import tvm  # noqa: PLC0415

    found = tvm.get_global_func("tvm.codegen.llvm.GetHostCPUFeatures")()
    return {str(name): bool(there) for name, there in (found or {}).items()}


def _architecture(target: Target) -> str:
    """The first part of LLVM's triple, such as ``x86_64``."""
    triple = target.attrs.get("mtriple")
    return str(triple or _llvm("llvm_get_system_triple")).partition("-")[0]
