"""Amounts as people write them: shares with a percent sign, sizes and times with a unit."""

from __future__ import annotations

import math
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_SHARE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?%")
SHARE_PATTERN: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+) ?%$"
"""Of a share in percent, for schemas."""

_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+) ?(\S+)")
AMOUNT_PATTERN: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+) ?\S+$"
"""Of a number with its unit, for schemas."""

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?) ?([KMGT]i?)?B?")
SIZE_PATTERN: Final = r"^[0-9]+(\.[0-9]+)? ?([KMGT]i?)?B?$"
_POWERS: Final = "KMGT"

_SECONDS: Final = {
    "s": 1.0,
    "ms": 1e-3,
    "µs": 1e-6,
    "us": 1e-6,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
}
UNITS: Final[Mapping[str, Mapping[str, float]]] = MappingProxyType(
    {
        "s": _SECONDS,
        "token/s": {"token/s": 1.0, "tokens/s": 1.0},
        "token/s/W": {"token/s/W": 1.0, "tokens/s/W": 1.0},
        "J": {"J": 1.0, "mJ": 1e-3, "kJ": 1e3},
        "J/token": {"J/token": 1.0, "mJ/token": 1e-3},
        "W": {"W": 1.0, "mW": 1e-3},
        "Hz": {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
        "1": {"%": 0.01},
        "bit": {"bit": 1.0, "bits": 1.0},
        "bit/byte": {"bit/byte": 1.0, "bits/byte": 1.0},
        "nat": {"nat": 1.0},
    }
)
"""By the unit that results are stored in, how else people write it, and how much that is of it.
Of bytes see `size_in_bytes`."""


def share(text: str) -> float | None:
    """``5 %`` or ``5%`` as a share, 0.05; None where `text` is no such thing."""
    found = _SHARE.fullmatch(text.strip())
    if found is None:
        return None
    # Of the decimal number, so that 7 % is 0.07 and not the nearest number to 7 x 0.01.
    value = float(f"{found[1]}e-2")
    return value if math.isfinite(value) else None


def size_in_bytes(text: str) -> float | None:
    """``4GiB`` as 4 x 2**30 bytes, ``4GB`` as 4 x 10**9; None where `text` is no size.

    Not rounded; infinite where no number holds it.
    """
    found = _SIZE.fullmatch(text)
    if found is None:
        return None
    number, prefix = float(found[1]), found[2] or ""
    base = 1024 if prefix.endswith("i") else 1000
    power = _POWERS.index(prefix[0]) + 1 if prefix else 0
    return number * float(base**power)


def amount(text: str, unit: str) -> float | None:
    """A number with its unit as so many of `unit`; None where it is no amount of that.

    Args:
        text: such as ``2 s``, ``350ms``, ``1GiB``.
        unit: that results are stored in, such as ``s`` or ``byte``.
    """
    if unit == "byte":
        return size_in_bytes(text)
    found = _AMOUNT.fullmatch(text.strip())
    size = UNITS.get(unit, {}).get(found[2]) if found else None
    if found is None or size is None:
        return None
    return float(found[1]) * size


def units_of(unit: str) -> list[str]:
    """How an amount of `unit` may be written, the stored one first where it may be."""
    if unit == "byte":
        return ["B", "KiB", "MiB", "GiB", "KB", "MB", "GB"]
    return list(UNITS.get(unit, {}))


def is_amount(text: str) -> bool:
    """Whether it is a number with some unit that edgebench knows."""
    return any(amount(text, unit) is not None for unit in ("byte", *UNITS))
