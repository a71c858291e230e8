"""How often the history is wrong, and what it finds: false alarms and power, on simulated series.

To reach: at most 1 % of stable histories of 40 series x 50 runs say anything; a step of 5 % at a
noise of 1 to 2 % is found, with its place within one run, in at least 95 %.

    python benchmarks/history_power.py [--histories 500] [--series 400]
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.history.changes import FAMILY, find

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray

RUNS = 50
FOLLOWS = 0.3
DISTURBED = 0.05
KINDS = ("normal", "heavy-tailed", "autocorrelated", "disturbed")
STEP = 0.05


def noise(kind: str, chance: Generator, runs: int = RUNS) -> NDArray[np.float64]:
    """Of a standard deviation of 1; what disturbs is on top."""
    if kind == "heavy-tailed":  # Student's t of 3 degrees of freedom
        return chance.standard_t(3, runs) / np.sqrt(3)
    made = chance.normal(size=runs + 20)
    if kind == "autocorrelated":
        for place in range(1, len(made)):
            made[place] = FOLLOWS * made[place - 1] + np.sqrt(1 - FOLLOWS**2) * made[place]
    found = made[20:]
    if kind == "disturbed":  # one run in twenty is slower, by several standard deviations
        found = found + (chance.random(runs) < DISTURBED) * chance.exponential(8, runs)
    return found


def alarms(kind: str, histories: int, chance: Generator) -> tuple[int, int]:
    """How many stable histories, and how many series of them, say anything."""
    wrong = series = 0
    for _history in range(histories):
        count = 0
        for _series in range(FAMILY):
            found = find(100 * np.exp(0.015 * noise(kind, chance)))
            count += bool(found.changes or found.drifts)
        wrong += count > 0
        series += count
    return wrong, series


def steps(kind: str, spread: float, after: int, series: int, chance: Generator) -> list[float]:
    """Shares of series: found, found with its place within one run, with more than one finding."""
    at = RUNS - after
    counts = np.zeros(3)
    for _series in range(series):
        values = 100 * np.exp(spread * noise(kind, chance))
        values[at:] *= 1 - STEP
        found = find(values)
        near = any(abs(each.at - at) <= 1 for each in found.changes)
        more = len(found.changes) + len(found.drifts) > 1
        counts += [bool(found.changes), near, more]
    return list(counts / series)


def drifts(kind: str, spread: float, total: float, series: int, chance: Generator) -> float:
    """Share of series whose slow fall is called a drift."""
    line = np.linspace(1, 1 - total, RUNS)
    return float(
        np.mean(
            [
                bool(find(100 * line * np.exp(spread * noise(kind, chance))).drifts)
                for _series in range(series)
            ]
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=500)
    parser.add_argument("--series", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = np.random.default_rng(given.seed)
    print(f"| noise | stable histories of {FAMILY} x {RUNS} that alarm | series that do |")
    print("| --- | ---: | ---: |")
    for kind in KINDS:
        wrong, series = alarms(kind, given.histories, chance)
        print(
            f"| {kind} | {wrong} of {given.histories} ({wrong / given.histories:.1%}) | "
            f"{series} of {given.histories * FAMILY} |",
            flush=True,
        )
    print(f"\n| step of {STEP:.0%}: noise | runs after it | found | within one run | more found |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for kind in KINDS:
        for spread in (0.01, 0.015, 0.02):
            for after in (25, 10, 5):
                found, near, more = steps(kind, spread, after, given.series, chance)
                name = f"{kind}, {100 * spread:g} %"
                print(f"| {name} | {after} | {found:.1%} | {near:.1%} | {more:.1%} |", flush=True)
    print(f"\n| drift over {RUNS} runs: noise | 5 % in all | 10 % in all |")
    print("| --- | ---: | ---: |")
    for kind in KINDS:
        for spread in (0.01, 0.02):
            shares = [drifts(kind, spread, total, given.series, chance) for total in (0.05, 0.1)]
            print(f"| {kind}, {100 * spread:g} % | {shares[0]:.1%} | {shares[1]:.1%} |", flush=True)


if __name__ == "__main__":
    main()
