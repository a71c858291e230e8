"""The short answer about a rated text: which small variant is about as good as the whole model."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from edgebench.harness.quality.cell import windows_by_variant
from edgebench.reports.differences import change_of, compared
from edgebench.reports.format import (
    CHANGE,
    DIVERGENCE,
    SHARE,
    counted,
    percent,
    quantity,
    shown,
)
from edgebench.reports.formats import SOURCE, base_of, without_reference
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, unstopped
from edgebench.reports.quality import quality_summaries, too_few_windows
from edgebench.reports.quality_text import wants_reference
from edgebench.reports.sentences import Name, Sentence, fill, joined
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from edgebench.harness.results.cell import Summary
    from edgebench.harness.results.model import WorkloadRecord
    from edgebench.harness.results.quality import QualityRecord, WindowRecord
    from edgebench.reports.data import ReportData

CLOSE = 1.01
"""A perplexity is close to another one up to so many times it."""

WITHIN = percent(CLOSE - 1)


@dataclass(frozen=True, slots=True)
class _Against:
    """What perplexities are compared with.

    Attributes:
        whose: whose perplexity that is, as a sentence ends with it.
        ratios: by variant, perplexity / that one.
        sizes: by variant, in bytes, as far as they are known.
        sources: variants that are what the reference was read from, so that no choice of a
            format is told by them; empty where nothing else was rated.
        source: what such a source holds, in words; empty where that is not known.
        beside: by variant, its other figures, in words.
        base: whether it is a variant of the run, of which only smaller ones are compared.
    """

    whose: Sentence
    ratios: Mapping[str, Summary]
    sizes: Mapping[str, float]
    sources: frozenset[str] = frozenset()
    source: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    base: bool = False


def quality_answer(data: ReportData, workload: str) -> Sentence:
    """The smallest variant that is about as good as the reference, or what can be said instead.

    Only a variant whose interval is known, and ends below the limit, is named. Where there is no
    reference, the variant in 16 or 32 bits stands for it, or else that with the most bits per
    weight, and smaller ones are looked for. Empty where nobody asked for the perplexity, or there
    is nothing to compare with.
    """
    record = next(each for each in data.record.workloads if each.name == workload)
    quality = record.quality
    if quality is None or "perplexity" not in quality.metrics:
        return ()
    summaries = quality_summaries(data, workload, quality)
    rated = _known(summaries["perplexity"])
    if not rated:
        return fill("No perplexity was measured.")
    windows = windows_by_variant(data.run.trials, workload, quality)
    if too_few_windows(windows, rated):
        there_are = max(map(len, windows.values()))
        return fill(
            "{count} of {windows}: too few to name a format or to tell variants apart.",
            count=there_are,
            windows=counted("{count} window", "{count} windows", quality.windows_planned),
        )
    sizes = {
        each: size.median
        for each in rated
        if (size := data.summary(workload, each, "model_bytes")) and size.median is not None
    }
    ratios = _known(summaries.get("perplexity_ratio", {}))
    if not ratios:
        return _by_base(data, record, windows, sizes) or _no_answer(quality)
    sources = {
        each.id
        for each in data.record.variants
        if each.id in ratios and each.quantization.lower() == SOURCE
    }
    lossy = quality.reference.lossy_types if quality.reference else []
    against = _Against(
        whose=fill("the reference's"),
        ratios=ratios,
        sizes={each: size for each, size in sizes.items() if each in ratios},
        sources=frozenset(sources if len(sources) < len(ratios) else ()),
        source=one_line("/".join(lossy)),
        beside={each: _beside(summaries, each) for each in ratios},
    )
    return _compared(against)


def _by_base(
    data: ReportData,
    record: WorkloadRecord,
    windows: Mapping[str, tuple[WindowRecord, ...]],
    sizes: Mapping[str, float],
) -> Sentence:
    base = base_of(data.record.variants, windows, alone=without_reference(record))
    if base is None or base.id not in sizes or base.id not in windows:
        return ()
    ratios = {
        each: change_of(compared(windows[each], windows[base.id]))
        for each, size in sizes.items()
        if each in windows and size < sizes[base.id]
    }
    known = _known(ratios)
    if not known:
        return ()
    smaller = {each: sizes[each] for each in known}
    size = quantity(sizes[base.id], "byte")
    whose = fill("that of {variant} ({size})", variant=Name(base.id), size=size)
    return _compared(_Against(whose, known, smaller, base=True))


def _compared(against: _Against) -> Sentence:
    medians = {each: summary.median or 0.0 for each, summary in against.ratios.items()}
    sizes = against.sizes
    if not against.base and len({sizes.get(each) for each in medians}) == 1:
        return _of_one_size(against, medians)
    made = {each: ratio for each, ratio in medians.items() if each not in against.sources}
    if all(against.ratios[each].ci_high is None for each in made):
        said = recorded(next(iter(against.ratios[each].reason for each in made)) or "")
        reason = unstopped(one_line(said or _("there is no interval")))
        return fill("No format is named: {reason}.", reason=reason)
    close = [each for each in medians if (against.ratios[each].ci_high or inf) <= CLOSE]
    if not set(close) & set(made):
        return joined(filter(None, (_none_is_close(against, made), _source_alone(against, close))))
    known = [each for each in close if each in sizes and each in made]
    if not known:
        return fill(
            "Perplexities that are at most {share} above {whose}: {count} of {all}.",
            share=WITHIN,
            whose=against.whose,
            count=len(close),
            all=len(medians),
        )
    smallest = min(known, key=lambda each: (sizes[each], medians[each]))
    as_small = sum(sizes[each] == sizes[smallest] for each in known)
    which = (
        _("is the smallest")
        if as_small == 1
        else _("is the best of the {count} smallest", count=as_small)
    )
    size = quantity(sizes[smallest], "byte")
    smaller = [
        each for each in close if each not in made and sizes.get(each, inf) < sizes[smallest]
    ]
    figures = _figures(against, smallest)
    if smaller:
        return fill(
            "At most {share} above {whose} perplexity: {source}; of what was made from it, "
            "{variant} {which} ({size}): {figures}.",
            share=WITHIN,
            whose=against.whose,
            source=_source(against, smaller),
            variant=Name(smallest),
            which=which,
            size=size,
            figures=figures,
        )
    return fill(
        "{variant} {which} ({size}) whose perplexity is at most {share} above {whose}: {figures}.",
        variant=Name(smallest),
        which=which,
        size=size,
        share=WITHIN,
        whose=against.whose,
        figures=figures,
    )


def _none_is_close(against: _Against, made: Mapping[str, float]) -> Sentence:
    closest = min(made, key=made.__getitem__)
    if against.sources:
        what = _("variant made from the source")
    elif against.base:
        what = _("smaller variant")
    else:
        what = _("variant")
    fields = {
        "what": what,
        "share": WITHIN,
        "whose": against.whose,
        "variant": Name(closest),
        "figures": _figures(against, closest),
    }
    # A value may be close while its interval goes further.
    if made[closest] <= CLOSE:
        return fill(
            "No {what} has a perplexity surely within {share} of {whose}. Closest: {variant}, "
            "{figures}.",
            **fields,
        )
    return fill(
        "No {what} has a perplexity within {share} of {whose}. Closest: {variant}, {figures}.",
        **fields,
    )


def _source_alone(against: _Against, close: Collection[str]) -> Sentence:
    sources = [each for each in close if each in against.sources]
    return fill("Only {source} has.", source=_source(against, sources)) if sources else ()


def _figures(against: _Against, variant: str) -> str:
    """How far its perplexity is, and its other figures."""
    change = _change(against.ratios[variant])
    beside = against.beside.get(variant)
    return _("{change}; {others}", change=change, others=beside) if beside else change


def _source(against: _Against, sources: Iterable[str]) -> str:
    """``the source itself (Q4_1, 93.8 MiB)``."""
    sizes = [against.sizes[each] for each in sources if each in against.sizes]
    holds = filter(None, (against.source, quantity(min(sizes), "byte") if sizes else ""))
    if not sizes:
        return _("the source itself")
    return _("the source itself ({what})", what=commas(holds))


def _of_one_size(against: _Against, medians: Mapping[str, float]) -> Sentence:
    """Where none is smaller than another: the closest one."""
    closest = min(medians, key=lambda each: abs(medians[each] - 1))
    fields = {
        "whose": against.whose,
        "variant": Name(closest),
        "figures": _figures(against, closest),
    }
    if len(medians) == 1:
        return fill("Perplexity against {whose}: {variant}, {figures}.", **fields)
    return fill("The perplexity closest to {whose}: {variant}, {figures}.", **fields)


def _beside(summaries: Mapping[str, Mapping[str, Summary | None]], variant: str) -> str:
    """Top-1 agreement and KL divergence, as far as they are known: ``top-1 97 %, KL 0.003 nat``."""
    parts = []
    for key, name, scale in (
        ("top1_agreement", _("top-1"), SHARE),
        ("kl_divergence", _("KL"), DIVERGENCE),
    ):
        found = summaries.get(key, {}).get(variant)
        if found is not None and found.median is not None:
            parts.append(f"{name} {shown(found, scale).value}{scale.suffix}")
    return commas(parts)


def _no_answer(quality: QualityRecord) -> Sentence:
    if not wants_reference(quality):
        return ()
    if quality.no_reference:
        why = unstopped(one_line(recorded(quality.no_reference)))
        return fill("No perplexity could be compared with a reference: {reason}.", reason=why)
    return fill("No perplexity was compared with a reference.")


def _known(summaries: Mapping[str, Summary | None]) -> dict[str, Summary]:
    return {
        variant: each
        for variant, each in summaries.items()
        if each is not None and each.median is not None
    }


def _change(ratio: Summary) -> str:
    """A ratio as a change: ``+0.42 % [+0.31, +0.55]``."""
    text = shown(ratio, CHANGE)
    return f"{text.value} % {text.interval}".rstrip()
