"""What is said of made-up stretches of sustained work: how often yes, no and not known.

Prints the table of docs/sustained.md. Every series is of seconds: a rate with noise, and a clock
with 1 % of noise that follows the rate's levels where the kind says so.

    python benchmarks/throttling_power.py --series 200
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.throttling import judged

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edgebench.harness.throttling import Verdict

    Array = NDArray[np.float64]

RATE, CLOCK = 20.0, 2e9
CLOCK_NOISE = 0.01


@dataclass(frozen=True)
class Kind:
    """A kind of series.

    Attributes:
        name: of it.
        level: of the rate at each second, 1 at first.
        spread: of the noise.
        alike: correlation of successive seconds' noise.
        clock: whether the clock follows the levels; None where it can't be read.
    """

    name: str
    level: Callable[[np.random.Generator, int], Array]
    spread: float = 0.02
    alike: float = 0.0
    clock: bool | None = True


def steady(_random: np.random.Generator, count: int) -> Array:
    """No fall."""
    return np.ones(count)


def falls(share: float) -> Callable[[np.random.Generator, int], Array]:
    """By that share, once, somewhere in the middle three fifths."""

    def level(random: np.random.Generator, count: int) -> Array:
        at = int(random.integers(count // 5, 4 * count // 5))
        return np.where(np.arange(count) < at, 1.0, 1 - share)

    return level


def after(second: int, share: float) -> Callable[[np.random.Generator, int], Array]:
    """By that share from a second on; counted from the end where it is below 0."""

    def level(_random: np.random.Generator, count: int) -> Array:
        return np.where(np.arange(count) < second % count, 1.0, 1 - share)

    return level


def steps(number: int, share: float) -> Callable[[np.random.Generator, int], Array]:
    """So many falls by that share, at equal distances."""

    def level(_random: np.random.Generator, count: int) -> Array:
        return (1 - share) ** (np.arange(count) * (number + 1) // count).astype(np.float64)

    return level


def declines(share: float) -> Callable[[np.random.Generator, int], Array]:
    """Little by little, by that share in all."""
    return lambda _random, count: np.linspace(1, 1 - share, count)


def passing(share: float, part: float) -> Callable[[np.random.Generator, int], Array]:
    """By that share for a part of the stretch, from its third on."""

    def level(_random: np.random.Generator, count: int) -> Array:
        at = np.arange(count)
        return np.where((at >= count // 3) & (at < count // 3 + part * count), 1 - share, 1.0)

    return level


def slow_v(share: float) -> Callable[[np.random.Generator, int], Array]:
    """Down by that share from a fifth to the middle, and up again until four fifths."""

    def level(_random: np.random.Generator, count: int) -> Array:
        off = np.abs(np.arange(count) / count - 0.5)
        return 1 - share * np.clip(1 - off / 0.3, 0, 1)

    return level


def waves(share: float, number: int) -> Callable[[np.random.Generator, int], Array]:
    """Up and down by that share, as a cosine, so many times."""

    def level(_random: np.random.Generator, count: int) -> Array:
        return 1 - share / 2 * (1 - np.cos(2 * np.pi * number * np.arange(count) / count))

    return level


def cycles(share: float, number: int) -> Callable[[np.random.Generator, int], Array]:
    """Lower by that share in every second half of so many equal parts."""

    def level(_random: np.random.Generator, count: int) -> Array:
        low = np.arange(count) * 2 * number // count % 2 == 1
        return np.where(low, 1 - share, 1.0)

    return level


def hiccup(random: np.random.Generator, count: int) -> Array:
    """Three seconds at 0.3 of the rate."""
    at, start = np.arange(count), int(random.integers(count // 6, 5 * count // 6 - 3))
    return np.where((at >= start) & (at < start + 3), 0.3, 1.0)


KINDS = (
    Kind("steady, 3 % of noise", steady, 0.03),
    Kind("steady, 10 % of noise", steady, 0.10),
    *(
        Kind(f"steady, 5 % of noise, seconds alike by {each}", steady, 0.05, each)
        for each in (0.5, 0.9, 0.95, 0.99)
    ),
    Kind("three bad seconds", hiccup, clock=False),
    Kind("falls by 5 %, 3 % of noise", falls(0.05), 0.03),
    Kind("falls by 10 %, 3 % of noise", falls(0.10), 0.03),
    Kind("falls by 30 %, 3 % of noise", falls(0.30), 0.03),
    Kind("falls by 30 %, the clock can't be read", falls(0.30), 0.03, clock=None),
    Kind("falls by 10 %, the clock does not", falls(0.10), 0.03, clock=False),
    Kind("falls by 30 %, the clock does not", falls(0.30), 0.03, clock=False),
    Kind("boost of 5 s, 20 %", after(5, 0.2)),
    Kind("3 steps of 7 %", steps(3, 0.07)),
    Kind("5 steps of 7 %", steps(5, 0.07)),
    Kind("8 steps of 5 %", steps(8, 0.05)),
    Kind("declines by 10 %, 3 % of noise", declines(0.1), 0.03),
    Kind("declines by 20 %, 3 % of noise", declines(0.2), 0.03),
    Kind("declines by 15 %, the clock does not", declines(0.15), 0.03, clock=False),
    Kind("30 % lower for a third, then back", passing(0.3, 1 / 3)),
    Kind("30 % lower for a third, the clock not", passing(0.3, 1 / 3), clock=False),
    Kind("10 % lower for a fifth, then back", passing(0.1, 1 / 5)),
    Kind("slow V of 12 %", slow_v(0.12)),
    Kind("slow V of 20 %", slow_v(0.2)),
    Kind("slow V of 30 %", slow_v(0.3)),
    Kind("slow V of 20 %, the clock does not", slow_v(0.2), clock=False),
    Kind("one wave of 25 %", waves(0.25, 1)),
    Kind("3 waves of 20 %", waves(0.2, 3)),
    Kind("2 cycles of 40 %", cycles(0.4, 2)),
    Kind("5 cycles of 20 %", cycles(0.2, 5)),
    Kind("10 cycles of 40 %", cycles(0.4, 10)),
    Kind("5 cycles of 20 %, the clock does not", cycles(0.2, 5), clock=False),
    Kind("50 % lower in the last 5 s", after(-5, 0.5)),
)


def verdict_on(kind: Kind, count: int, seed: int) -> Verdict:
    """What is said of one series of so many seconds."""
    random = np.random.default_rng([zlib.crc32(kind.name.encode()), count, seed])
    level = kind.level(random, count)
    rates = RATE * level * np.exp(noise(random, count, kind.alike) * kind.spread)
    clocks = CLOCK * (level if kind.clock else 1.0) * (1 + random.normal(0, CLOCK_NOISE, count))
    edge = min(60, count // 10)
    return judged(
        [second + 0.5 for second in range(count)],
        rates.tolist(),
        [None] * count if kind.clock is None else clocks.tolist(),
        [None] * count,
        kept_share=float(rates[-edge:].mean() / rates[:edge].mean()),
    )


def noise(random: np.random.Generator, count: int, alike: float) -> Array:
    """First-order autoregression with a standard deviation of 1."""
    made = random.normal(0, 1, count)
    for place in range(1, count):
        made[place] = alike * made[place - 1] + (1 - alike**2) ** 0.5 * made[place]
    return made


def shares(kind: Kind, count: int, series: int) -> tuple[float, float, float]:
    """Of so many series: yes, a no that names a fall, and not known; the rest did not fall."""
    found = [verdict_on(kind, count, seed) for seed in range(series)]
    yes = sum(each.throttled is True for each in found)
    other = sum(each.throttled is False and each.at_s is not None for each in found)
    unknown = sum(each.throttled is None for each in found)
    return yes / series, other / series, unknown / series


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=200)
    parser.add_argument("--seconds", type=int, nargs="+", default=[60, 600])
    asked = parser.parse_args()
    print("| series | seconds | yes | no, another cause | no fall | not known |")
    print("|---|--:|--:|--:|--:|--:|")
    for kind in KINDS:
        for count in asked.seconds:
            yes, other, unknown = shares(kind, count, asked.series)
            rest = max(0.0, 1 - yes - other - unknown)
            cells = " | ".join(f"{100 * each:.0f} %" for each in (yes, other, rest, unknown))
            print(f"| {kind.name} | {count} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
