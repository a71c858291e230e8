"""How often a gate alarms although nothing changed, and how often it notices what did.

Simulated noise, and recorded noise from files; each gate has 40 cells of one metric, decided by the
code that `edgebench gate` runs, at 99 % confidence. Prints Markdown tables; `--write` puts them
between the markers of a page.

    python benchmarks/gate_power.py [--gates 500] [--power-gates 60] [--tables alarms,power]
        [--recorded FILE…] [--write docs/gate-power.md]
    python benchmarks/gate_power.py --record RUN_DIR… --metric decode_rate OUT.json

A file of recorded noise is JSON: `{"metric": …, "unit": …, "cells": [{"name": …, "blocks": […],
"values": […]}]}`, a value for each block in the order of time, of a run in which nothing changed;
where two interleaved runs are recorded together, two for each block, a pair. Gates are made of
stretches of it, the same ones for all cells, so that what cells share and how values follow each
other stays; cells are used again, from another moment, where there are fewer than 40.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import os
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

# Before numpy: two processes with two threads each would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import stats

from edgebench.harness.compare.decide import decide
from edgebench.harness.compare.model import Question
from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from edgebench.harness.compare.model import Answer

    Floats: TypeAlias = NDArray[np.float64]

CELLS = 40
CONFIDENCE = 0.99
NOISE_FLOOR = 0.01
WORSE_BY = 0.02
BLOCKS = 20
OFFSETS = (0.005, 0.01)
QUIET = 0.005
RUNS = (1, 2, 3)
SPREAD = 0.02
SEGMENT = 10
LEAST_VALUES = 2 * SEGMENT
WAYS = ("interleaved", "separate")
EFFECTS = (0.02, 0.03, 0.05, 0.10)
REPETITIONS = (7, 10, 20, 40)
SPREADS = (0.01, 0.02, 0.03, 0.05)
PROCESSES = 2
TABLES = ("alarms", "offsets", "power", "noticeable", "recorded")

Noise: TypeAlias = Callable[[np.random.Generator, int, int], "Floats"]
"""Of cells and moments: a value each, of a standard deviation of about 1."""


def shared(noise: Noise) -> Noise:
    """Half of the variance is common to all cells, as a busy neighbour's is."""

    def both(generator: np.random.Generator, cells: int, moments: int) -> Floats:
        own = noise(generator, cells, moments)
        return (own + noise(generator, 1, moments)) / math.sqrt(2)

    return both


def normal(generator: np.random.Generator, cells: int, moments: int) -> Floats:
    return generator.normal(size=(cells, moments))


def heavy(generator: np.random.Generator, cells: int, moments: int) -> Floats:
    return generator.standard_t(3, size=(cells, moments))


def contaminated(generator: np.random.Generator, cells: int, moments: int) -> Floats:
    """Every tenth value is disturbed, and only ever slower."""
    disturbed = generator.random((cells, moments)) < 0.1
    slower = generator.lognormal(1.5, 0.7, size=(cells, moments))
    return normal(generator, cells, moments) + disturbed * slower


def correlated(generator: np.random.Generator, cells: int, moments: int, *, rho: float) -> Floats:
    values = generator.normal(size=(cells, moments))
    for at in range(1, moments):
        values[:, at] = rho * values[:, at - 1] + math.sqrt(1 - rho * rho) * values[:, at]
    return values


def trend(generator: np.random.Generator, cells: int, moments: int, *, rise: float) -> Floats:
    """All cells rise, or fall, by so many standard deviations over one run; two runs follow."""
    way = generator.choice([-1.0, 1.0])
    return normal(generator, cells, moments) + way * np.linspace(0, 2 * rise, moments)


def walk(generator: np.random.Generator, cells: int, moments: int, *, step: float) -> Floats:
    """All cells wander together, by such a step a moment."""
    common = step * generator.normal(size=(1, moments)).cumsum(axis=1)
    return normal(generator, cells, moments) + common


def own_walk(generator: np.random.Generator, cells: int, moments: int, *, step: float) -> Floats:
    """Each cell wanders for itself."""
    common = step * generator.normal(size=(cells, moments)).cumsum(axis=1)
    return normal(generator, cells, moments) + common


def bimodal(generator: np.random.Generator, cells: int, moments: int) -> Floats:
    """Three of ten processes are of the slow kind, by five standard deviations of the rest."""
    slow = generator.random((cells, moments)) < 0.3
    return 0.4 * normal(generator, cells, moments) + 2.0 * slow


SIMULATED: dict[str, Noise] = {
    "normal": shared(normal),
    "heavy-tailed (t, 3 degrees of freedom)": shared(heavy),
    "every tenth value disturbed": contaminated,
    "bimodal": bimodal,
    "autocorrelated, 0.5": shared(functools.partial(correlated, rho=0.5)),
    "autocorrelated, 0.9": shared(functools.partial(correlated, rho=0.9)),
    "linear drift, 1 sd a run": functools.partial(trend, rise=1.0),
    "linear drift, 4 sd a run": functools.partial(trend, rise=4.0),
    "random walk, 0.1 sd a step": functools.partial(walk, step=0.1),
    "random walk, 0.3 sd a step": functools.partial(walk, step=0.3),
    "random walk, 1 sd a step": functools.partial(walk, step=1.0),
    "each cell walks, 0.3 sd a step": functools.partial(own_walk, step=0.3),
    "each cell walks, 1 sd a step": functools.partial(own_walk, step=1.0),
}


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded noise.

    Attributes:
        name: of its file.
        metric: its key.
        series: of each cell logarithms about their median, in the order of time.
    """

    name: str
    metric: str
    series: tuple[tuple[float, ...], ...]

    def __call__(self, generator: np.random.Generator, cells: int, moments: int) -> Floats:
        """Stretches of it for so many cells and moments."""
        out = np.empty((cells, moments))
        for round_start in range(0, cells, len(self.series)):
            starts = generator.random(-(-moments // SEGMENT))
            for at in range(round_start, min(round_start + len(self.series), cells)):
                series = np.array(self.series[at % len(self.series)])
                # Two values that stand beside each other from an even place on may be a pair.
                series = series[: len(series) // 2 * 2]
                picked = [
                    (2 * int(start * len(series) / 2) + np.arange(SEGMENT)) % len(series)
                    for start in starts
                ]
                out[at] = series[np.concatenate(picked)[:moments]]
        return out


@dataclass(frozen=True, slots=True)
class Setting:
    """What is asked of many gates.

    Attributes:
        noise: a name of `SIMULATED`, or a recording.
        spread: what the noise is multiplied by; 1 for recordings.
        way: ``interleaved``, or ``separate``: the candidate's run follows the baseline's.
        blocks: repetitions on each side.
        effect: by which share the first cell got slower.
        runs: of each side, of so many blocks each; interleaved there is one.
        offset: what each run is off by for as long as it lasts, as a standard deviation.
        common: whether all cells of a run are off by the same.
    """

    noise: str | Recording
    spread: float
    way: str
    blocks: int
    effect: float = 0.0
    runs: int = 1
    offset: float = 0.0
    common: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """What many gates said.

    Attributes:
        gates: how many.
        certain: in how many a cell was certain to be worse (of those with an effect: the cell).
        limited: in how many it was also worse by the limit.
        noticeable: the median of what the gates say that they would have noticed, over all cells.
    """

    gates: int
    certain: int
    limited: int
    noticeable: float | None


def look(setting: Setting, gates: int) -> Seen:
    """Decide many gates."""
    key = json.dumps(str(setting)).encode()
    generator = np.random.default_rng(zlib.crc32(key))
    certain = limited = 0
    noticeable: list[float] = []
    for _ in range(gates):
        answers = decide(
            _questions(setting, generator), confidence=CONFIDENCE, noise_floor=NOISE_FLOOR
        )
        asked = answers[:1] if setting.effect else answers
        certain += any(_is_certain(each) for each in asked)
        limited += any(
            _is_certain(each) and each.ratio is not None and each.ratio - 1 >= WORSE_BY
            for each in asked
        )
        noticeable += [math.inf if each.noticeable is None else each.noticeable for each in answers]
    middle = float(np.median(noticeable))
    return Seen(gates, certain, limited, middle if math.isfinite(middle) else None)


def _is_certain(answer: Answer) -> bool:
    return answer.p_worse is not None and answer.p_worse <= 1 - CONFIDENCE + 1e-12


def _questions(setting: Setting, generator: np.random.Generator) -> list[Question]:
    noise = SIMULATED[setting.noise] if isinstance(setting.noise, str) else setting.noise
    moments = setting.runs * setting.blocks
    values = setting.spread * noise(generator, CELLS, 2 * moments)
    if setting.offset:
        # A new process, another layout of memory, a warmer day: it stays for all of a run.
        of_run = generator.normal(size=(1 if setting.common else CELLS, 2 * setting.runs))
        values = values + setting.offset * np.repeat(of_run, setting.blocks, axis=1)
    if setting.way == "interleaved":
        first, second = values[:, 0::2], values[:, 1::2]
        coins = generator.random(setting.blocks) < 0.5
        baseline, candidate = np.where(coins, first, second), np.where(coins, second, first)
    else:
        baseline, candidate = values[:, :moments], values[:, moments:].copy()
    candidate[0] += math.log1p(setting.effect)
    other = "a" if setting.way == "interleaved" else "b"
    keys = [(run, block) for run in range(setting.runs) for block in range(setting.blocks)]
    return [
        Question(
            {
                (f"a{run}", block): float(v)
                for (run, block), v in zip(keys, np.exp(one), strict=True)
            },
            {
                (f"{other}{run}", block): float(v)
                for (run, block), v in zip(keys, np.exp(two), strict=True)
            },
            "lower",
        )
        for one, two in zip(baseline, candidate, strict=True)
    ]


class Crew:
    """Two processes, and a line on standard error that says how far they are."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(PROCESSES)

    def look(self, settings: Sequence[Setting], gates: int) -> list[Seen]:
        """What the gates of each setting said, in their order."""
        begun = time.monotonic()
        found = []
        for seen in self._pool.map(functools.partial(look, gates=gates), settings):
            found.append(seen)
            spent = time.monotonic() - begun
            print(
                f"\r{len(found)}/{len(settings)} settings, {spent:.0f} s", end="", file=sys.stderr
            )
        print(file=sys.stderr)
        return found


def share(count: int, gates: int) -> str:
    """A share with its exact 95 % interval."""
    low = stats.beta.ppf(0.025, count, gates - count + 1) if count else 0.0
    high = stats.beta.ppf(0.975, count + 1, gates - count) if count < gates else 1.0
    return f"{count / gates:.1%} ({low:.1%} to {high:.1%})".replace("%", " %")


def percent(value: float | None) -> str:
    return "—" if value is None else f"{100 * value:.1f} %"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def alarms_table(crew: Crew, gates: int, noises: Sequence[tuple[str | Recording, float]]) -> str:
    settings = [Setting(noise, spread, way, BLOCKS) for noise, spread in noises for way in WAYS]
    seen_all = crew.look(settings, gates)
    found = iter(seen_all)
    rows = []
    for noise, _ in noises:
        cells = [noise if isinstance(noise, str) else f"{noise.metric}, {noise.name}"]
        for _ in WAYS:
            seen = next(found)
            cells += [share(seen.certain, gates), share(seen.limited, gates)]
        rows.append(cells)
    if len(noises) > 1:
        rows.append(["all", *_pooled(seen_all, gates)])
    heads = ["noise"]
    for way in WAYS:
        heads += [f"{way}, any worsening", f"{way}, from {WORSE_BY:.0%}".replace("%", " %")]
    return table(heads, rows)


def offsets_table(crew: Crew, gates: int) -> str:
    rows = [
        (offset, common, runs) for offset in OFFSETS for common in (False, True) for runs in RUNS
    ]
    settings = [
        Setting("normal", QUIET, "separate", BLOCKS, runs=runs, offset=offset, common=common)
        for offset, common, runs in rows
    ]
    lines = []
    for (offset, common, runs), seen in zip(rows, crew.look(settings, gates), strict=True):
        name = f"{percent(offset)}, {'all cells the same' if common else 'each cell another'}"
        shares = (share(seen.certain, gates), share(seen.limited, gates))
        lines.append([name, str(runs), *shares])
    from_limit = f"from {WORSE_BY:.0%}".replace("%", " %")
    return table(
        ["each run is off by (sd)", "runs on each side", "any worsening", from_limit], lines
    )


def _pooled(seen: Sequence[Seen], gates: int) -> Iterator[str]:
    for way in range(len(WAYS)):
        of_way = seen[way :: len(WAYS)]
        yield share(sum(each.certain for each in of_way), gates * len(of_way))
        yield share(sum(each.limited for each in of_way), gates * len(of_way))


def power_table(crew: Crew, gates: int, noises: Sequence[tuple[str | Recording, float]]) -> str:
    rows = [
        (noise, spread, blocks, way)
        for noise, spread in noises
        for way in WAYS
        for blocks in REPETITIONS
    ]
    settings = [
        Setting(noise, spread, way, blocks, effect)
        for noise, spread, blocks, way in rows
        for effect in EFFECTS
    ]
    found = iter(crew.look(settings, gates))
    lines = []
    for noise, spread, blocks, way in rows:
        name = f"{spread:.0%}".replace("%", " %") if isinstance(noise, str) else noise.name
        seen = [next(found) for _ in EFFECTS]
        noticed = [f"{each.limited / gates:.0%}".replace("%", " %") for each in seen]
        lines.append([name, way, str(blocks), *noticed])
    slower = [f"{effect:.0%} slower".replace("%", " %") for effect in EFFECTS]
    return table(["noise", "how", "repetitions", *slower], lines)


def noticeable_table(
    crew: Crew, gates: int, noises: Sequence[tuple[str | Recording, float]]
) -> str:
    rows = [
        Setting(noise, spread, way, blocks)
        for noise, spread in noises
        for way in WAYS
        for blocks in REPETITIONS
    ]
    equal = crew.look(rows, max(gates // 10, 10))
    asked = [
        (row, seen.noticeable)
        for row, seen in zip(rows, equal, strict=True)
        if seen.noticeable is not None
    ]
    settings = [
        Setting(row.noise, row.spread, row.way, row.blocks, effect) for row, effect in asked
    ]
    found = crew.look(settings, gates)
    lines = []
    for (row, effect), seen in zip(asked, found, strict=True):
        name = row.noise if isinstance(row.noise, str) else row.noise.name
        lines.append([name, row.way, str(row.blocks), percent(effect), share(seen.certain, gates)])
    return table(["noise", "how", "repetitions", "said to be noticeable", "noticed"], lines)


def read_recording(path: Path) -> Recording:
    written = json.loads(path.read_text(encoding="utf-8"))
    series = []
    for cell in written["cells"]:
        if len(cell["values"]) < LEAST_VALUES:
            sys.exit(f"{path}: {cell['name']} has fewer than {LEAST_VALUES} values")
        logs = np.log(np.array(cell["values"], dtype=float))
        series.append(tuple(float(each) for each in logs - np.median(logs)))
    return Recording(path.stem, written["metric"], tuple(series))


def record(folders: Sequence[Path], metric: str, out: Path) -> None:
    """Write the values of one metric of runs in which nothing changed as recorded noise.

    Two runs that were interleaved make one series a cell, in the order of time, so that values of
    one block stand beside each other, as they do in a gate.
    """
    # Of a cell's block, of each run: when it was, and what.
    cells: dict[str, dict[int, dict[str, list[tuple[str, float]]]]] = {}
    unit = ""
    runs = [read_run(folder) for folder in folders]
    sessions = {run.record.interleaved.session for run in runs if run.record.interleaved}
    together = len(sessions) == 1 and all(run.record.interleaved for run in runs)
    for run in runs:
        for trial in run.trials:
            value = trial.metrics.get(metric)
            if trial.phase != "measured" or value is None or not value.value or value.value < 0:
                continue
            unit = value.unit
            name = f"{trial.variant} / {trial.workload}"
            if len(runs) > 1 and not together:
                name = f"{run.path.name}: {name}"
            block = cells.setdefault(name, {}).setdefault(trial.block, {})
            block.setdefault(run.path.name, []).append((trial.started_at, value.value))
    written = []
    for name, blocks in cells.items():
        each = [
            (block, min(when for when, _ in of_run), statistics.median(v for _, v in of_run))
            for block, by in blocks.items()
            for of_run in by.values()
            if not together or len(by) == len(runs)
        ]
        if not each:
            continue
        each.sort(key=lambda entry: (entry[0], entry[1]))
        written.append(
            {
                "name": name,
                "blocks": [block for block, _, _ in each],
                "values": [value for _, _, value in each],
            }
        )
    if not written:
        shown = ", ".join(map(str, folders))
        sys.exit(f"no value of {metric} in {shown}, or in no block of all of them")
    text = json.dumps({"metric": metric, "unit": unit, "cells": written}, indent=1)
    out.write_text(text + "\n", encoding="utf-8")


def replace_table(page: str, name: str, text: str) -> str:
    """The page with another table between the markers of that name."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        sys.exit(f"the page has no place for the table {name}: {begin.strip()} … {end}")
    return f"{before}{begin}{text}\n{end}{after}"


def tables(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    crew = Crew()
    wanted = given.tables.split(",")
    simulated = [(name, SPREAD) for name in SIMULATED]
    if "alarms" in wanted:
        yield "alarms", alarms_table(crew, given.gates, simulated)
    if "offsets" in wanted:
        # Of few gates: this is told to show a limit, not to prove a rate.
        yield "offsets", offsets_table(crew, max(given.gates // 5, 20))
    if "power" in wanted:
        spreads = [("normal", spread) for spread in SPREADS]
        yield "power", power_table(crew, given.power_gates, spreads)
    if "noticeable" in wanted:
        some = [(name, SPREAD) for name in list(SIMULATED)[:4]]
        yield "noticeable", noticeable_table(crew, given.power_gates, some)
    if "recorded" in wanted and given.recorded:
        recordings = [(read_recording(path), 1.0) for path in given.recorded]
        parts = [
            alarms_table(crew, given.gates, recordings),
            power_table(crew, given.power_gates, recordings),
            noticeable_table(crew, given.power_gates, recordings),
        ]
        yield "recorded", "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gates", type=int, default=500, help="for each false-alarm rate")
    parser.add_argument("--power-gates", type=int, default=60, help="for each power")
    parser.add_argument("--tables", default=",".join(TABLES), help="which, with commas between")
    parser.add_argument("--recorded", type=Path, nargs="+", help="files of recorded noise")
    parser.add_argument("--write", type=Path, help="a page whose tables to replace")
    parser.add_argument("--record", type=Path, nargs="+", metavar="RUN_DIR", help="record instead")
    parser.add_argument("--metric", default="decode_rate", help="what to record")
    parser.add_argument("out", type=Path, nargs="?", help="where to record it")
    given = parser.parse_args()
    if given.record:
        if given.out is None:
            # A list of folders swallows what follows it.
            *given.record, given.out = given.record
        record(given.record, given.metric, given.out)
        return
    unknown = set(given.tables.split(",")) - set(TABLES)
    if unknown:
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    for name, text in tables(given):
        print(f"\n{name}\n\n{text}", flush=True)
        if given.write:
            page = given.write.read_text(encoding="utf-8")
            given.write.write_text(replace_table(page, name, text), encoding="utf-8")


if __name__ == "__main__":
    main()
