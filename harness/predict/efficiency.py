"""How much of a device's peaks frameworks reach, as measured and published.

A range is of a kind of processor and not of any device in particular, and some figures lie outside
of it. ``benchmarks/prediction_errors.py`` checks it against all figures at hand, and a test that
what is said here of them is so; docs/predict.md has the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.predict.device import DeviceFacts, Processor


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What share of a peak is reached.

    Attributes:
        low, high: the ends of the range.
        why: what it rests on.
        inside, published: how many of the published rates at hand lie in the range, and how many
            there are; 0 where it is not set against any.
    """

    low: float
    high: float
    why: str
    inside: int = 0
    published: int = 0

    def said(self) -> str:
        """The range in words, such as ``35 to 80 %``."""
        return f"{100 * self.low:.0f} to {100 * self.high:.0f} %"


DECODE: Final[Mapping[Processor, Efficiency]] = MappingProxyType(
    {
        "cpu": Efficiency(
            0.35,
            0.80,
            "13 of 14 published rates of CPUs lie in it (Raspberry Pi 5, x86 desktops, Apple "
            "silicon); an M2 Max reached 27 %",
            inside=13,
            published=14,
        ),
        "gpu": Efficiency(
            0.40,
            0.90,
            "13 of 15 published rates of GPUs lie in it (Apple silicon, Jetsons); a Jetson Orin "
            "Nano Super reached 31 % and 11 %",
            inside=13,
            published=15,
        ),
    }
)
"""Of the memory's theoretical peak, for one sequence, without speculation."""

DECODE_MEASURED: Final = Efficiency(
    DECODE["cpu"].low,
    1.00,
    "no framework reads faster than reading alone; the low end is that of theoretical peaks, which "
    "13 of 14 published rates of CPUs reached",
)
"""Of a bandwidth that was measured: reading alone reaches less than the theoretical peak, so that
the shares are higher, up to all of it."""


def decode_efficiency(device: DeviceFacts) -> Efficiency:
    """What frameworks in general are expected to reach of a device's bandwidth."""
    return DECODE_MEASURED if device.bandwidth.measured else DECODE[device.processor]


PREFILL_FP32: Final[Mapping[Processor, Efficiency]] = MappingProxyType(
    {
        "cpu": Efficiency(
            0.20,
            1.00,
            "of that are expected of CPUs, of which four published rates reached 28 to 76 %; more "
            "only with dot products of integers or matrix units",
        ),
        "gpu": Efficiency(0.20, 0.80, "of that are assumed of GPUs"),
    }
)

PREFILL_INT8: Final[Mapping[Processor, Efficiency]] = MappingProxyType(
    {
        "cpu": Efficiency(
            0.05,
            0.45,
            "of that are expected of CPUs, of which four published rates reached 7 to 19 %",
        ),
        "gpu": Efficiency(0.05, 0.40, "of that are assumed of GPUs"),
    }
)

OWN_LOW: Final = 0.60
OWN_HIGH: Final = 0.90
"""What a read of memory alone reaches of its theoretical peak: where a run's own utilisation, which
is of a measured bandwidth, is carried over to another device, it is multiplied by these."""


def own_decode(
    mbu_low: float, mbu_high: float, *, of_measured: bool = False, spread: float = 1.0
) -> Efficiency:
    """The efficiency of a run, carried over to another device.

    Args:
        mbu_low: of its measured memory bandwidth utilisation, the lowest.
        mbu_high: the highest.
        of_measured: the other device's bandwidth was measured too.
        spread: the median of the run's own bandwidth over its fastest repetition, which is what a
            profile that was made by a probe has.
    """
    if of_measured:
        return Efficiency(
            mbu_low * spread,
            mbu_high,
            f"this run uses {100 * mbu_low:.0f} to {100 * mbu_high:.0f} % of the bandwidth that "
            "was measured on its machine",
        )
    low, high = min(mbu_low, 1.0) * OWN_LOW, min(mbu_high, 1.0) * OWN_HIGH
    return Efficiency(
        low,
        high,
        f"this run uses {100 * mbu_low:.0f} to {100 * mbu_high:.0f} % of the bandwidth that was "
        f"measured on its machine; reading alone reaches {100 * OWN_LOW:.0f} to "
        f"{100 * OWN_HIGH:.0f} % of a theoretical peak",
    )
