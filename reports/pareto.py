"""Quality against what it costs: which variants no other one beats in both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.reports.format import PERPLEXITY, Scale, scale_for, shown
from edgebench.reports.quality import quality_summaries
from edgebench.reports.quantization import main_quality, speed_workload
from edgebench.reports.sentences import Name, Sentence, listed
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.model import Summary, WorkloadRecord
    from edgebench.reports.data import ReportData

COSTS = ("decode_rate", "peak_rss_bytes")
WHERE_MEASURED = ("energy_per_token_j",)
_LEAST = 2

INTRO = (
    "Perplexity against speed, memory and energy. A variant is dominated where another one is at "
    "least as good in both and better in one. That goes by the values alone: where intervals "
    "overlap, another run may find it otherwise."
)


@dataclass(frozen=True, slots=True)
class Point:
    """One variant.

    Attributes:
        variant: its id.
        number: its place in the run, counted from 1, by which plots call it.
        cost: what it costs, as stored.
        perplexity: its perplexity.
        low, high: of the perplexity's bar; None without.
        dominated_by: the best variant that beats it in both; empty where none does.
    """

    variant: str
    number: int
    cost: Summary
    perplexity: float
    low: float | None
    high: float | None
    dominated_by: str

    @property
    def written(self) -> str:
        """The perplexity as text."""
        return PERPLEXITY.write(self.perplexity, PERPLEXITY.decimals(self.perplexity))


@dataclass(frozen=True, slots=True)
class Front:
    """All variants in one plane.

    Attributes:
        key: the metric of the cost.
        label: its name.
        higher: whether more of it is better.
        scale: its unit.
        workload: what it was measured on.
        points: in the order of the run.
        absent: variants that lack a value, and which.
    """

    key: str
    label: str
    higher: bool
    scale: Scale
    workload: str
    points: tuple[Point, ...]
    absent: tuple[tuple[str, str], ...]

    @property
    def best(self) -> tuple[Point, ...]:
        """The points that none dominates, by rising cost value."""
        kept = [point for point in self.points if not point.dominated_by]
        return tuple(sorted(kept, key=lambda point: (_cost(point), point.perplexity)))


@dataclass(frozen=True, slots=True)
class Fronts:
    """All planes of a run.

    Attributes:
        quality: the workload that the perplexities are of.
        fronts: at least one.
        paired: whether the perplexities' bars are of pairs with the reference.
    """

    quality: str
    fronts: tuple[Front, ...]
    paired: bool

    @property
    def bars(self) -> str:
        """What is drawn, a sentence or two."""
        upright = "of the perplexity"
        if self.paired:
            upright = "of the difference to the reference, over pairs of windows"
        return (
            "Grey points are dominated; the line joins the others. Bars are 95 % intervals: the "
            f"upright ones {upright}, the level ones of the median."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the perplexities are of, and who has none, a sentence each."""
        absent: dict[tuple[str, str], None] = {}
        for front in self.fronts:
            absent.update(dict.fromkeys(front.absent))
        return (
            f"Perplexity is that on {one_line(self.quality)}.",
            *(f"{one_line(variant)} has {what}." for variant, what in absent),
        )

    @property
    def numbers(self) -> tuple[tuple[int, str, bool], ...]:
        """Number and id of each variant that is drawn, and whether all planes have it dominated."""
        found: dict[tuple[int, str], bool] = {}
        for front in self.fronts:
            for point in front.points:
                key = (point.number, point.variant)
                found[key] = found.get(key, True) and bool(point.dominated_by)
        return tuple((*key, dominated) for key, dominated in sorted(found.items()))


def fronts(data: ReportData) -> Fronts | None:
    """Perplexity against each cost; None where fewer than two variants have both."""
    workload = main_quality(data)
    speed = speed_workload(data) or next(iter(data.workload_names), "")
    if workload is None or not speed:
        return None
    bars, paired = _bars(data, workload)
    keys = [*COSTS, *(key for key in WHERE_MEASURED if data.summaries(speed, key))]
    found = [_front(data, speed, key, bars) for key in keys]
    drawn = tuple(front for front in found if len(front.points) >= _LEAST)
    return Fronts(workload.name, drawn, paired) if drawn else None


def kept_sentences(front: Front) -> tuple[Sentence, ...]:
    """The variants that none dominates, by rising perplexity."""
    ranked = sorted(front.best, key=lambda point: point.perplexity)
    return tuple(
        (
            Name(point.variant),
            f" at {shown(point.cost, front.scale).value}{front.scale.suffix}, ",
            f"perplexity {point.written}",
        )
        for point in ranked
    )


def dominated_sentence(front: Front) -> Sentence:
    """Which variants are dominated, and by which; empty where none is."""
    by: dict[str, list[str]] = {}
    for point in front.points:
        if point.dominated_by:
            by.setdefault(point.dominated_by, []).append(point.variant)
    clauses = [(*listed(variants), " by ", Name(best)) for best, variants in by.items()]
    parts: list[str | Name] = []
    for clause in clauses:
        parts += ["; " if parts else "Dominated: ", *clause]
    return (*parts, ".") if parts else ()


def _bars(
    data: ReportData, workload: WorkloadRecord
) -> tuple[dict[str, tuple[float, float | None, float | None]], bool]:
    """Perplexity of each variant with the ends of its bar."""
    assert workload.quality is not None
    summaries = quality_summaries(data, workload.name, workload.quality)
    reference = workload.quality.reference
    ratios = summaries.get("perplexity_ratio", {}) if reference else {}
    found: dict[str, tuple[float, float | None, float | None]] = {}
    for variant, summary in summaries.get("perplexity", {}).items():
        if summary is None or summary.median is None:
            continue
        ratio = ratios.get(variant)
        if reference is None:
            found[variant] = (summary.median, summary.ci_low, summary.ci_high)
        elif ratio is None or ratio.median is None or ratio.ci_low is None or ratio.ci_high is None:
            found[variant] = (summary.median, None, None)
        else:
            # Scaled by the variant's own value, so that it lies inside of its bar for certain.
            whole = summary.median / ratio.median
            found[variant] = (summary.median, ratio.ci_low * whole, ratio.ci_high * whole)
    return found, reference is not None


def _front(
    data: ReportData,
    workload: str,
    key: str,
    bars: Mapping[str, tuple[float, float | None, float | None]],
) -> Front:
    known = metric(key)
    costs = data.summaries(workload, key)
    both = [each for each in data.variant_ids if each in costs and each in bars]
    higher = known.better == "higher"
    places = {each: (_sign(costs[each], higher=higher), bars[each][0]) for each in both}
    points = tuple(
        Point(
            variant=each,
            number=data.variant_ids.index(each) + 1,
            cost=costs[each],
            perplexity=bars[each][0],
            low=bars[each][1],
            high=bars[each][2],
            dominated_by=_dominating(each, places),
        )
        for each in both
    )
    absent = tuple(
        (each, "no perplexity" if each not in bars else f"no {known.label.lower()}")
        for each in data.variant_ids
        if each not in both
    )
    scale = scale_for(known.unit, [costs[each].median for each in both])
    return Front(key, known.label, higher, scale, workload, points, absent)


def _dominating(variant: str, places: Mapping[str, tuple[float, float]]) -> str:
    """The one of the lowest perplexity that is nowhere worse, and somewhere better."""
    cost, perplexity = places[variant]
    better = [
        other
        for other, (theirs, rated) in places.items()
        if theirs <= cost and rated <= perplexity and (theirs, rated) != (cost, perplexity)
    ]
    return min(better, key=lambda other: (places[other][1], places[other][0]), default="")


def _sign(cost: Summary, *, higher: bool) -> float:
    value = cost.median or 0.0
    return -value if higher else value


def _cost(point: Point) -> float:
    return point.cost.median or 0.0
