"""Quality against what it costs: which variants no other one dominates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.metrics.definitions import metric
from edgebench.harness.quality.cell import windows_by_variant
from edgebench.harness.quality.figures import MIN_WINDOWS
from edgebench.harness.results.summary import weakest
from edgebench.reports.dominance import ALIKE_COST, Place, dominating
from edgebench.reports.format import PERPLEXITY, Scale, percent, scale_for, shown
from edgebench.reports.languages import N_, _, plural
from edgebench.reports.languages.words import commas, lowered, paragraph
from edgebench.reports.metered import why_apart
from edgebench.reports.metric_names import label_of, metric_label
from edgebench.reports.quality import quality_summaries
from edgebench.reports.quantization import main_quality, speed_workload
from edgebench.reports.sentences import Name, Sentence, fill, listed
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.model import VariantRecord, WorkloadRecord
    from edgebench.harness.results.quality import WindowRecord
    from edgebench.reports.data import ReportData

COSTS = ("decode_rate", "peak_rss_bytes")
WHERE_MEASURED = ("energy_per_token_j",)
REFERENCE, LOWEST = N_("the reference"), N_("the lowest")
_LEAST = 2

INTRO = N_("Perplexity against speed, memory and energy.")


@dataclass(frozen=True, slots=True)
class Point:
    """One variant.

    Attributes:
        variant: its id.
        number: its place in the run, counted from 1, by which plots call it.
        cost: what it costs, as stored.
        perplexity: its perplexity.
        low, high: of the perplexity's bar; None without.
        dominated_by: the best variant that dominates it; empty where none does or that is not
            known.
    """

    variant: str
    number: int
    cost: Summary
    perplexity: float
    low: float | None
    high: float | None
    dominated_by: str

    @property
    def has_bar(self) -> bool:
        """Whether the perplexity has an interval of some width."""
        return self.low is not None and self.high is not None and self.low < self.high

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
        judged: whether it is known who is dominated.
    """

    key: str
    label: str
    higher: bool
    scale: Scale
    workload: str
    points: tuple[Point, ...]
    absent: tuple[tuple[str, str], ...]
    judged: bool

    @property
    def best(self) -> tuple[Point, ...]:
        """The points that none dominates, by rising cost; empty where that is not known."""
        kept = [point for point in self.points if self.judged and not point.dominated_by]
        return tuple(sorted(kept, key=lambda point: (_cost(point), point.perplexity)))

    @property
    def line(self) -> tuple[Point, ...]:
        """Those of the best that no other one of them beats by the values alone, by rising cost."""
        sign = -1 if self.higher else 1
        found: list[Point] = []
        for point in sorted(self.best, key=lambda each: (sign * _cost(each), each.perplexity)):
            if not found or point.perplexity < found[-1].perplexity:
                found.append(point)
        return tuple(found[::sign])


@dataclass(frozen=True, slots=True)
class Fronts:
    """All planes of a run.

    Attributes:
        quality: the workload that the perplexities are of.
        fronts: at least one.
        whole: the perplexity to which others are compared, the reference's or the lowest.
        against: which of the two it is, `REFERENCE` or `LOWEST`.
        windows: how many windows the perplexities are of.
        variants: all of the run, drawn or not.
    """

    quality: str
    fronts: tuple[Front, ...]
    whole: float
    against: str
    windows: int
    variants: tuple[VariantRecord, ...]

    @property
    def rule(self) -> str:
        """Who is dominated, a sentence or two; or why that is not known."""
        if self.fronts[0].judged:
            return _(
                "A variant is dominated where another one is better in one of the two and not "
                "worse in the other. What can't be told apart counts as equal: perplexities by "
                "their pairs of windows, costs by their intervals. Costs without intervals count "
                "as equal up to {share}, and beyond that by their medians alone: a hint only.",
                share=percent(ALIKE_COST),
            )
        return plural(
            "Which variants are dominated is not known: to tell perplexities apart needs {least} "
            "windows, there is {count}.",
            "Which variants are dominated is not known: to tell perplexities apart needs {least} "
            "windows, there are {count}.",
            self.windows,
            least=MIN_WINDOWS,
        )

    @property
    def bars(self) -> str:
        """How to read what is drawn, a sentence or two; empty where it needs no word."""
        points = [point for front in self.fronts for point in front.points]
        drawn = []
        if any(front.judged for front in self.fronts):
            grey = any(point.dominated_by for point in points)
            drawn.append(
                _("Hollow points are dominated; the line joins the best of the others.")
                if grey
                else _("The line joins the best points.")
            )
        upright = any(point.has_bar for point in points)
        level = any(has_interval(point.cost) for point in points)
        of = []
        if upright:
            of.append(
                _("the upright ones of the difference to the reference, over pairs of windows")
                if self.against == REFERENCE
                else _("the upright ones of the perplexity")
            )
        if level:
            of.append(_("the level ones of the median"))
        if of:
            drawn.append(_("Bars are 95 % intervals: {which}.", which=commas(of)))
        return paragraph(drawn)

    @property
    def notes(self) -> tuple[str, ...]:
        """Who is dominated, what the perplexities are of, and who has none."""
        absent: dict[tuple[str, str], None] = {}
        for front in self.fronts:
            absent.update(dict.fromkeys(front.absent))
        return (
            self.rule,
            _("Perplexity is that on {text}.", text=one_line(self.quality)),
            *(
                _("{variant} has {nothing}.", variant=one_line(variant), nothing=what)
                for variant, what in absent
            ),
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
    assert workload.quality is not None
    bars = _bars(data, workload)
    windows = windows_by_variant(data.run.trials, workload.name, workload.quality)
    count = max(map(len, windows.values()), default=0)
    keys = [
        *COSTS,
        *(key for key in WHERE_MEASURED if data.summaries(speed, key) and not why_apart(data, key)),
    ]
    found = [_front(data, speed, key, bars, windows) for key in keys]
    drawn = tuple(front for front in found if len(front.points) >= _LEAST)
    if not drawn:
        return None
    reference = workload.quality.reference
    whole = reference.perplexity if reference else None
    return Fronts(
        quality=workload.name,
        fronts=drawn,
        whole=whole or min(point.perplexity for front in drawn for point in front.points),
        against=REFERENCE if whole else LOWEST,
        windows=count,
        variants=tuple(data.record.variants),
    )


def kept_sentences(front: Front) -> tuple[Sentence, ...]:
    """The variants that none dominates, by rising perplexity; all where that is not known."""
    known = front.best if front.judged else front.points
    ranked = sorted(known, key=lambda point: point.perplexity)
    return tuple(
        fill(
            "{variant} at {cost}, perplexity {perplexity}",
            variant=Name(point.variant),
            cost=f"{shown(point.cost, front.scale).value}{front.scale.suffix}",
            perplexity=point.written,
        )
        for point in ranked
    )


def dominated_sentence(front: Front) -> Sentence:
    """Which variants are dominated, and by which; empty where none is."""
    by: dict[str, list[str]] = {}
    for point in front.points:
        if point.dominated_by:
            by.setdefault(point.dominated_by, []).append(point.variant)
    if not by:
        return ()
    clauses: list[str | Name] = []
    for best, variants in by.items():
        clauses += [_("; ")] if clauses else []
        clauses += fill("{variants} by {best}", variants=listed(variants), best=Name(best))
    return fill("Dominated: {clauses}.", clauses=tuple(clauses))


def has_interval(summary: Summary) -> bool:
    """Whether a summary has an interval of some width."""
    low, high = summary.ci_low, summary.ci_high
    return low is not None and high is not None and low < high


def _bars(
    data: ReportData, workload: WorkloadRecord
) -> dict[str, tuple[float, float | None, float | None]]:
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
    return found


def _front(
    data: ReportData,
    workload: str,
    key: str,
    bars: Mapping[str, tuple[float, float | None, float | None]],
    windows: Mapping[str, tuple[WindowRecord, ...]],
) -> Front:
    known = metric(key)
    costs = data.summaries(workload, key)
    both = [each for each in data.variant_ids if each in costs and each in bars and each in windows]
    higher = known.better == "higher"
    judged = all(len(windows[each]) >= MIN_WINDOWS for each in both)
    places = {each: Place(costs[each], bars[each][0], windows[each]) for each in both}
    by = dominating(places, higher=higher) if judged else {}
    points = tuple(
        Point(
            variant=each,
            number=data.variant_ids.index(each) + 1,
            cost=costs[each],
            perplexity=bars[each][0],
            low=bars[each][1],
            high=bars[each][2],
            dominated_by=by.get(each, ""),
        )
        for each in both
    )
    absent = tuple(
        (
            each,
            _("no perplexity")
            if each not in bars or each not in windows
            else _("no {metric} that can be right: it is broken", metric=lowered(metric_label(key)))
            if data.is_broken(workload, each)
            else _("no {metric}", metric=lowered(metric_label(key))),
        )
        for each in data.variant_ids
        if each not in both
    )
    scale = scale_for(known.unit, [costs[each].median for each in both])
    label = label_of(key, weakest(point.cost.source for point in points) if points else "")
    return Front(key, label, higher, scale, workload, points, absent, judged)


def _cost(point: Point) -> float:
    return point.cost.median or 0.0
