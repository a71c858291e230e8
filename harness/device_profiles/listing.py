"""A profile's figures as people read them, in order, each with its unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from edgebench.harness.device_profiles.figures import (
    GIB,
    Bytes,
    BytesPerSecond,
    Fact,
    Figure,
    Hertz,
    Names,
    OpsPerSecond,
)

if TYPE_CHECKING:
    from edgebench.harness.device_profiles.figures import Sourced
    from edgebench.harness.device_profiles.model import DeviceProfile

UNKNOWN: Final = "–"

BASES: Final = {
    "maker": "",
    "third_party": "not the maker's",
    "measured": "measured",
    "derived": "derived",
    "assumed": "assumed",
    "unchecked": "unchecked",
}
"""What is said of a figure that its maker does not say."""


@dataclass(frozen=True, slots=True)
class Line:
    """One figure.

    Attributes:
        name: what it is.
        value: with its unit, or `UNKNOWN`.
        basis: who says it, where that is not the maker.
        why: its source, or the reason why there is none.
    """

    name: str
    value: str
    basis: str
    why: str


def lines(profile: DeviceProfile) -> list[Line]:
    """All figures of a profile, and those that follow from them."""
    found = [_line("SoC", profile.soc)]
    for cores in profile.cores:
        name = f"{cores.count} x {cores.name}"
        found += [
            Line("cores", name, "", cores.source),
            _line("  highest clock", cores.max_hz),
            _line("  float32 a cycle", cores.fp32_flop_per_cycle),
            _line("  int8 a cycle", cores.int8_op_per_cycle),
        ]
    compute, memory, power = profile.compute, profile.memory, profile.power
    found += [
        _line("all cores, float32", compute.fp32_flops),
        _line("all cores, int8", compute.int8_ops),
        _line("instruction sets", profile.instruction_sets),
        _line("RAM", profile.ram_bytes),
        _line("memory", memory.kind),
        _line("  width", memory.width_bits),
        _line("  bandwidth", memory.bandwidth_bytes_per_s),
        _line("peak power", power.peak_w),
        _line("sustained power", power.sustained_w),
        _line("TDP", power.tdp_w),
        _line("storage", profile.storage.kind),
        _line("  read", profile.storage.read_bytes_per_s),
    ]
    for each in profile.accelerators:
        found += [
            _line(each.kind.upper() if each.kind != "other" else "accelerator", each.name),
            _line("  float32", each.fp32_flops),
            _line("  int8, dense", each.int8_ops),
        ]
    return found


def amount(known: Sourced) -> str:
    """A figure with its unit, a name as it is, or `UNKNOWN`."""
    match known:
        case Fact(value=str(text)):
            return text
        case Names(value=list(names)):
            return ", ".join(names) or "none"
        case Figure(value=float(number)):
            return _with_unit(known, number)
        case _:
            return UNKNOWN


def _line(name: str, known: Sourced) -> Line:
    if not known.has_value():
        return Line(name, UNKNOWN, "", known.reason or "")
    value = amount(known)
    sold = getattr(known, "choices", [])
    if sold:
        value += f" (of {', '.join(f'{each / GIB:g}' for each in sold)})"
    source, basis = known.source or "", BASES[known.basis]
    # Many a source says itself what it is.
    told = basis and source.lower().startswith(basis)
    return Line(name, value, "" if told else basis, source)


def _with_unit(figure: Figure, number: float) -> str:
    if isinstance(figure, Bytes):
        return f"{number / GIB:.4g} GiB"
    if isinstance(figure, BytesPerSecond | Hertz | OpsPerSecond):
        return _scaled(number, figure.units[0])
    return f"{number:g} {figure.units[0]}" if figure.units else f"{number:g}"


def _scaled(number: float, unit: str) -> str:
    for power, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if number >= power:
            return f"{number / power:.4g} {prefix}{unit}"
    return f"{number:.4g} {unit}"
