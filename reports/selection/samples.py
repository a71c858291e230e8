"""The samples of a run, resampled together: what pairs variants, so that drift hits all alike.

Blocks are drawn, not repetitions, as for every other interval of a report, and the same ones for
all variants of a run; a variant of another run has draws of its own. See
`edgebench.harness.metrics.statistics`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import special

from edgebench.harness.metrics.statistics import CONFIDENCE, MIN_BLOCKS, RESAMPLES, SEED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from edgebench.harness.results.quality import WindowRecord
    from edgebench.reports.data import ReportData

    Floats: TypeAlias = NDArray[np.float64]
    Ints: TypeAlias = NDArray[np.int32]

Key = tuple[str, str, str]
"""Workload, variant, metric."""

TAIL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True, slots=True)
class Samples:
    """The measured values of a report's prompts, by block.

    Attributes:
        values: by workload, variant and metric, the values of each block.
        parts: by variant, the place of its run among those of the report.
        places: by part, all blocks that hold a value of any of its variants, counted from 0.
    """

    values: Mapping[Key, Mapping[int, Sequence[float]]]
    parts: Mapping[str, int]
    places: Mapping[int, Mapping[int, int]]

    def count(self, workloads: Sequence[str], variant: str, key: str) -> int:
        """In how many blocks there is a value, of the workload where there are the fewest."""
        return min(
            (len(self.values.get((each, variant, key), ())) for each in workloads), default=0
        )

    def drawn(self, workload: str, variant: str, key: str) -> Floats | None:
        """The median under each resampling of blocks, shape (RESAMPLES,); None without values."""
        by_block = self.values.get((workload, variant, key))
        return self._drawn(by_block, self.parts[variant]) if by_block else None

    def ratio(
        self, workloads: Sequence[str], one: str, other: str, key: str
    ) -> tuple[float, Floats | None] | None:
        """How many times one variant's value is another's: geometric mean over workloads.

        Of two variants of one run it is the median of the ratios within blocks, which takes out
        what drifted between blocks; of two runs the ratio of medians.

        Returns:
            The ratio, and it under each resampling, None where there are too few blocks; None
            where a workload lacks a value, or holds one that is not above 0.
        """
        points, drawn, enough = [], [], True
        for workload in workloads:
            found = self._ratio(workload, one, other, key)
            if found is None:
                return None
            points.append(math.log(found[0]))
            enough = enough and found[1] is not None
            if found[1] is not None:
                drawn.append(np.log(found[1]))
        if not points:
            return None
        together = np.exp(np.mean(drawn, axis=0)) if enough else None
        return math.exp(sum(points) / len(points)), together

    def _ratio(
        self, workload: str, one: str, other: str, key: str
    ) -> tuple[float, Floats | None] | None:
        above = self.values.get((workload, one, key), {})
        below = self.values.get((workload, other, key), {})
        if not above or not below or min(map(min, (*above.values(), *below.values()))) <= 0:
            return None
        part = self.parts[one]
        if part == self.parts[other] and (both := [each for each in above if each in below]):
            # Of logarithms, so that the ratio the other way round is one over it.
            within = {
                each: [math.log(np.median(above[each]) / np.median(below[each]))] for each in both
            }
            enough = len(both) >= MIN_BLOCKS
            point = math.exp(np.median([each for (each,) in within.values()]))
            return point, np.exp(self._drawn(within, part)) if enough else None
        point = _median(above) / _median(below)
        if min(len(above), len(below)) < MIN_BLOCKS:
            return point, None
        return point, self._drawn(above, part) / self._drawn(below, self.parts[other])

    def _drawn(self, by_block: Mapping[int, Sequence[float]], part: int) -> Floats:
        places = self.places[part]
        pairs = [(value, places[block]) for block, each in by_block.items() for value in each]
        pairs.sort()
        ordered = np.array([value for value, _ in pairs], dtype=np.float64)
        place = np.array([place for _, place in pairs], dtype=np.int64)
        return resampled_medians(ordered, _draws(len(places), part)[place])


def samples_of(data: ReportData, keys: frozenset[str]) -> Samples:
    """Gather the measured values of these metrics."""
    values: dict[Key, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    parts = dict.fromkeys(data.variant_ids, 0)
    for place, part in enumerate(data.parts):
        parts.update(dict.fromkeys(part.variants, place))
    blocks: dict[int, set[int]] = defaultdict(set)
    prompts = frozenset(data.workload_names)
    for trial in data.run.trials:
        if trial.phase != "measured" or trial.status != "ok" or trial.workload not in prompts:
            continue
        for key in keys & trial.metrics.keys():
            value = trial.metrics[key].value
            if value is not None:
                values[trial.workload, trial.variant, key][trial.block].append(value)
                blocks[parts[trial.variant]].add(trial.block)
    places = {
        part: {block: place for place, block in enumerate(sorted(own))}
        for part, own in blocks.items()
    }
    return Samples(values, parts, places)


def resampled_medians(ordered: Floats, weights: Ints) -> Floats:
    """Medians of one ordered sample under many weightings.

    Each is the mean of the first values at and past half of the weight, as in
    `edgebench.harness.metrics.statistics`; a weighting that leaves nothing gives the median.

    Args:
        ordered: shape (values,).
        weights: how often each value is drawn, shape (values, resamples).
    """
    totals = np.empty_like(weights)
    totals[0] = weights[0]
    # Row by row, which is several times as fast here as np.cumsum.
    for place in range(1, len(weights)):
        np.add(totals[place - 1], weights[place], out=totals[place])
    whole = totals[-1].copy()
    totals *= 2
    lower = (totals < whole).sum(axis=0)
    upper = np.minimum((totals <= whole).sum(axis=0), ordered.size - 1)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    return medians if whole.all() else np.where(whole == 0, np.median(ordered), medians)


def resampled_log_perplexities(windows: Sequence[Sequence[WindowRecord]]) -> Floats:
    """Logarithms of perplexities under each resampling of windows.

    Few windows are spread as wide as intervals of quality are; see
    `edgebench.harness.quality.figures`.

    Args:
        windows: of each variant, the same ones of each, at least two.

    Returns:
        Shape (variants, RESAMPLES).
    """
    count = len(windows[0])
    tokens = np.array([each.tokens for each in windows[0]], dtype=np.float64)
    losses = -np.array([[each.log_likelihood for each in own] for own in windows])
    generator = np.random.default_rng(SEED)
    drawn = generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    weights = drawn.astype(np.float64).T
    found = (losses @ weights) / (tokens @ weights)
    whole = losses.sum(axis=1, keepdims=True) / tokens.sum()
    wide = special.stdtrit(count - 1, 1 - TAIL) / special.ndtri(1 - TAIL)
    spread: Floats = whole + (found - whole) * float(wide) * math.sqrt(count / (count - 1))
    return spread


def interval(drawn: Floats) -> tuple[float, float]:
    """The 95 % interval of what was resampled."""
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL])
    return float(low), float(high)


def _median(by_block: Mapping[int, Sequence[float]]) -> float:
    return float(np.median([value for each in by_block.values() for value in each]))


@lru_cache(maxsize=64)
def _draws(blocks: int, part: int) -> Ints:
    """How often each block is drawn, shape (blocks, RESAMPLES); other draws for each run."""
    generator = np.random.default_rng([SEED, part] if part else SEED)
    drawn = generator.multinomial(blocks, np.full(blocks, 1 / blocks), size=RESAMPLES)
    return np.ascontiguousarray(drawn.T.astype(np.int32))
