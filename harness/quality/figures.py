"""From windows to figures: perplexity and the like, their intervals, and differences of two.

A figure is a sum over windows divided by another such sum. Its interval resamples whole windows,
since the tokens of one window share their text. Few windows make percentile intervals too narrow
for their name, so they are expanded: Hesterberg, What Teachers Should Know About the Bootstrap,
2015, section 3.3. The test of a difference turns the signs of whole windows: Good, Permutation,
Parametric and Bootstrap Tests of Hypotheses, 2005, section 3.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np
from scipy import special

from edgebench.harness.metrics.statistics import CONFIDENCE, SEED, Interval
from edgebench.harness.results.cell import Summary
from edgebench.harness.results.measured import Measured

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from edgebench.harness.results.quality import WindowRecord

    Floats = NDArray[np.float64]

_Key = TypeVar("_Key")

RESAMPLES: Final = 10_000
LEAST_RESAMPLES: Final = 2_000
EXACT_WINDOWS: Final = 12
"""Up to so many, every turning of signs is tried; beyond, `RESAMPLES` drawn at random."""

CHUNK: Final = 4_000_000
"""Drawn windows held in memory at once."""

MIN_WINDOWS: Final = 6
"""With fewer, intervals that resample them hold what they should in less than 94 % of cases."""

MOST_NAT: Final = 700.0
"""A mean log-likelihood below the negative of it gives a perplexity that no float holds."""

UNITS: Final = {
    "perplexity": "1",
    "perplexity_ratio": "1",
    "bits_per_byte": "bit/byte",
    "kl_divergence": "nat",
    "kl_divergence_p99": "nat",
    "top1_agreement": "1",
    "scoring_rate": "token/s",
}
"""The metrics of a rated text."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two variants on the same windows.

    Attributes:
        ratio: perplexity of the one / that of the other; NaN where no number holds it.
        low, high: its 95 % interval; None where `reason` says why.
        p: of a two-sided test that the two are alike; None where `reason` says why.
        windows: how many pairs.
    """

    ratio: float
    low: float | None
    high: float | None
    p: float | None
    windows: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Ratio:
    """A metric as two sums over windows, and what is made of their ratio."""

    above: Floats
    below: Floats
    exponential: bool = False

    def value(self, ratio: float) -> float:
        """What stands for it in a table."""
        return math.exp(ratio) if self.exponential else float(ratio)


def quality_metrics(
    windows: Sequence[WindowRecord],
    reference: Sequence[WindowRecord] | None,
    reasons: Mapping[str, str],
    divergences: Floats | None = None,
    taken_in: int | None = None,
) -> dict[str, Measured]:
    """The figures of one variant, each null with its reason if need be.

    Args:
        windows: of the variant.
        reference: the same windows of the reference; more of them do not matter.
        reasons: by metric, why there is none.
        divergences: KL divergences of all positions, in nat.
        taken_in: tokens in all windows, scored or not.
    """
    found = {name: _point(ratio) for name, ratio in _ratios(windows, reference).items()}
    beyond = "its tokens are so unlikely that no number holds the perplexity"
    reasons = {"perplexity": beyond, "perplexity_ratio": beyond, **reasons}
    if divergences is not None and len(divergences):
        found["kl_divergence_p99"] = float(np.percentile(divergences, 99))
    took = sum(each.duration_s for each in windows)
    if taken_in and took > 0:
        found["scoring_rate"] = taken_in / took
    return {
        name: Measured(value=found[name], unit=unit, source="derived")
        if name in found
        else Measured.missing(unit, reasons.get(name, "not measured"), "derived")
        for name, unit in UNITS.items()
    }


def quality_summaries(
    metrics: Mapping[str, Measured],
    windows: Sequence[WindowRecord],
    reference: Sequence[WindowRecord] | None,
    *,
    intervals: bool = True,
) -> dict[str, Summary]:
    """The same with their intervals.

    Args:
        metrics: as `quality_metrics` gave them.
        windows: of the variant.
        reference: the same windows of the reference.
        intervals: whether to compute them.
    """
    known = _ratios(windows, reference) if intervals else {}
    found = _intervals(
        {name: known[name] for name, each in metrics.items() if name in known and _is(each)}
    )
    alone = Interval(None, None, "no interval is computed for it")
    summaries = {}
    for name, measured in metrics.items():
        interval = found.get(name, alone)
        summaries[name] = Summary(
            median=measured.value,
            ci_low=interval.low,
            ci_high=interval.high,
            n=len(windows) if _is(measured) else 0,
            unit=measured.unit,
            source=measured.source,
            reason=interval.reason if _is(measured) else measured.reason,
        )
    return summaries


def _is(measured: Measured) -> bool:
    return measured.value is not None


def perplexity(windows: Sequence[WindowRecord]) -> float | None:
    """exp(- mean log-likelihood) of all scored tokens; None where no float holds it."""
    tokens = sum(each.tokens for each in windows)
    mean = -math.fsum(each.log_likelihood for each in windows) / tokens
    return math.exp(mean) if mean <= MOST_NAT else None


def bits_per_byte(windows: Sequence[WindowRecord]) -> float | None:
    """Bits that the tokens cost, for each byte of their text; None where bytes are not known."""
    sizes = [each.bytes for each in windows if each.bytes is not None]
    if len(sizes) < len(windows) or not sum(sizes):
        return None
    return -math.fsum(each.log_likelihood for each in windows) / math.log(2) / sum(sizes)


def paired_difference(one: Sequence[WindowRecord], other: Sequence[WindowRecord]) -> Difference:
    """How two variants differ on the same windows: far sharper than two intervals.

    Args:
        one: its windows.
        other: the same windows of the other.

    Raises:
        ValueError: they are not the same windows.
    """
    if [each.tokens for each in one] != [each.tokens for each in other] or not one:
        msg = "these are not the same windows"
        raise ValueError(msg)
    by = np.array([b.log_likelihood - a.log_likelihood for a, b in zip(one, other, strict=True)])
    if float((np.abs(by) / _tokens(one)).max()) > MOST_NAT:
        beyond = "they are so far apart that no number holds the ratio"
        return Difference(math.nan, None, None, None, len(one), beyond)
    ratio = _Ratio(by, _tokens(one), exponential=True)
    interval = _intervals({"ratio": ratio})["ratio"]
    return Difference(
        ratio=_point(ratio),
        low=interval.low,
        high=interval.high,
        p=None if interval.reason else _sign_test(by),
        windows=len(one),
        reason=interval.reason,
    )


def holm(values: Mapping[_Key, float]) -> dict[_Key, float]:
    """p-values adjusted so that all of them may be looked at (Holm, 1979)."""
    adjusted: dict[_Key, float] = {}
    highest = 0.0
    for place, key in enumerate(sorted(values, key=values.__getitem__)):
        highest = max(highest, min(1.0, (len(values) - place) * values[key]))
        adjusted[key] = highest
    return adjusted


def _ratios(
    windows: Sequence[WindowRecord], reference: Sequence[WindowRecord] | None
) -> dict[str, _Ratio]:
    """What can be computed of these windows."""
    if not windows:
        return {}
    tokens = _tokens(windows)
    logs = np.array([each.log_likelihood for each in windows])
    found = {}
    likely = float((-logs / tokens).max()) <= MOST_NAT
    if likely:
        found["perplexity"] = _Ratio(-logs, tokens, exponential=True)
    if likely and reference is not None and len(reference) >= len(windows):
        exact = np.array([each.log_likelihood for each in reference[: len(windows)]])
        found["perplexity_ratio"] = _Ratio(exact - logs, tokens, exponential=True)
    for name, values in (
        ("kl_divergence", [each.kl_divergence for each in windows]),
        ("top1_agreement", [each.top1 for each in windows]),
    ):
        known = [value for value in values if value is not None]
        if len(known) == len(windows):
            found[name] = _Ratio(np.array(known, dtype=np.float64), tokens)
    sizes = np.array([each.bytes or 0 for each in windows], dtype=np.float64)
    if sizes.any() and all(each.bytes is not None for each in windows):
        found["bits_per_byte"] = _Ratio(-logs / math.log(2), sizes)
    return found


def _tokens(windows: Sequence[WindowRecord]) -> Floats:
    return np.array([each.tokens for each in windows], dtype=np.float64)


def _point(ratio: _Ratio) -> float:
    whole = math.fsum(ratio.above) / math.fsum(ratio.below)
    return ratio.value(whole)


def _intervals(ratios: Mapping[str, _Ratio]) -> dict[str, Interval]:
    """95 % intervals, all from the same resampled windows."""
    if not ratios:
        return {}
    count = len(next(iter(ratios.values())).above)
    if count < MIN_WINDOWS:
        why = f"an interval needs {MIN_WINDOWS} windows, there are {count}"
        return dict.fromkeys(ratios, Interval(None, None, why))
    empty = {name: each for name, each in ratios.items() if not (each.below > 0).all()}
    if empty:
        why = "some windows score no whole byte of the text"
        kept = {name: each for name, each in ratios.items() if name not in empty}
        return _intervals(kept) | dict.fromkeys(empty, Interval(None, None, why))
    above = np.stack([each.above for each in ratios.values()], axis=1)
    below = np.stack([each.below for each in ratios.values()], axis=1)
    drawn = np.concatenate([(weights @ above) / (weights @ below) for weights in _resampled(count)])
    tail = _tail(count)
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0)
    return {
        name: Interval(ratio.value(low[place]), ratio.value(high[place]))
        for place, (name, ratio) in enumerate(ratios.items())
    }


def _resampled(count: int) -> Iterable[Floats]:
    """How often each window is drawn, many times over, in parts of shape (draws, count)."""
    draws = _draws(count)
    return _kept(count) if draws * count <= CHUNK else _drawn(count)


def _draws(count: int) -> int:
    """How many resamples: with many windows, whose tails are less far out, fewer do."""
    return min(RESAMPLES, max(LEAST_RESAMPLES, CHUNK // count))


@lru_cache(maxsize=2)
def _kept(count: int) -> list[Floats]:
    return list(_drawn(count))


def _drawn(count: int) -> Iterator[Floats]:
    generator = np.random.default_rng(SEED)
    draws, step = _draws(count), max(1, CHUNK // count)
    for first in range(0, draws, step):
        size = min(step, draws - first)
        drawn = generator.multinomial(count, np.full(count, 1 / count), size=size)
        yield drawn.astype(np.float64)


def _tail(count: int) -> float:
    """What is cut off at either end, so that a mean of so few is covered as often as it says."""
    wide = special.stdtrit(count - 1, (1 + CONFIDENCE) / 2) * math.sqrt(count / (count - 1))
    return float(special.ndtr(-wide))


def _sign_test(differences: Floats) -> float:
    """P of a sum at least as far from 0, were each difference as likely to be its negative."""
    count = len(differences)
    seen = abs(math.fsum(differences))
    # Rounding must not make one of two equal sums the larger.
    least = seen * (1 - 1e-12)
    if count <= EXACT_WINDOWS:
        turned = (np.arange(2**count)[:, None] >> np.arange(count)) & 1
        return float((np.abs((1 - 2 * turned) @ differences) >= least).mean())
    generator = np.random.default_rng(SEED)
    beyond, step = 0, max(1, CHUNK // count)
    for first in range(0, RESAMPLES, step):
        size = min(step, RESAMPLES - first)
        turned = generator.integers(0, 2, size=(size, count))
        beyond += int((np.abs((1 - 2 * turned) @ differences) >= least).sum())
    return (beyond + 1) / (RESAMPLES + 1)
