"""The documents' tables of features: what they think, quoted, beside what this run can tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from edgebench.harness.results.cell import Summary
from edgebench.harness.store.store import AS_PUBLISHED
from edgebench.reports.broken import broken_text
from edgebench.reports.engines import engine_text, made_up_text
from edgebench.reports.format import number, quantity, scale_for, shown
from edgebench.reports.framework_choice import (
    NO_FRAMEWORK,
    RATE,
    Standing,
    failure_of,
    framework_name,
    geometric_mean,
    is_left_out,
    rates_of,
    runs_on_gpu,
    standings,
    workloads_of,
)
from edgebench.reports.frameworks_table import offered_value
from edgebench.reports.languages import _
from edgebench.reports.languages.recorded import recorded
from edgebench.reports.languages.words import commas, day_text
from edgebench.reports.published.cells import (
    Footnotes,
    chip,
    judged,
    opinion_chip,
    published_meaning,
    quoted_fact,
    words_column,
)
from edgebench.reports.published.load import documents, published_features
from edgebench.reports.selection.goals import stands_of
from edgebench.reports.selection.samples import interval
from edgebench.reports.stars import MOST, doubt_text, rule_text, stars_for
from edgebench.reports.table import flag_text
from edgebench.reports.table_model import Row, Table, TableTexts, Value, Where
from edgebench.reports.text import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import ReportData
    from edgebench.reports.published.model import FeatureRow, FeatureTable
    from edgebench.reports.table_model import Column

FACTS = frozenset({"model_format", "technology"})
"""Rows of the documents that are no judgements: anybody can look them up."""

_FOLDERS = {"mnn": "MNN", "mlc": "MLC"}
"""Runners whose artifact is a folder, which has no suffix, and whose format it is."""


@dataclass(frozen=True, slots=True)
class _Fastest:
    """A framework's fastest variant on one kind of processor.

    Attributes:
        rate: the geometric mean of its median decode rates, in tokens/s.
    """

    variant: VariantRecord
    rate: float


class _Run:
    """What the run can tell of each framework.

    Of several machines, it tells of the one that ran the most frameworks; of a framework that did
    not run there, of the first machine that ran it.
    """

    def __init__(self, data: ReportData) -> None:
        self.data = data
        self.all = standings(data)
        ran = [each.part for each in self.all if each.chosen is not None]
        self.main = max(data.parts, key=lambda part: sum(each is part for each in ran))
        texts = map(made_up_text, data.record.variants)
        self.made_up = tuple(dict.fromkeys(filter(None, texts)))
        self.standings: dict[str, Standing] = {}
        for each in self.all:
            known = self.standings.get(each.key)
            if known is None or self._merit(each) > self._merit(known):
                self.standings[each.key] = each

    def _merit(self, standing: Standing) -> tuple[bool, bool]:
        return standing.chosen is not None, standing.part is self.main

    def value(self, key: str, framework: str, footnotes: Footnotes) -> Value:
        """The value of one measured row for one framework."""
        standing = self.standings.get(framework)
        if standing is None:
            return footnotes.missing(_("not part of this run"))
        return self._rows()[key](standing, footnotes)

    def _rows(self) -> Mapping[str, Callable[[Standing, Footnotes], Value]]:
        return {
            "technology": self._technology,
            "cpu_rate": lambda each, notes: self._stars(each, notes, gpu=False),
            "gpu_rate": lambda each, notes: self._stars(each, notes, gpu=True),
            "ease": self._ease,
            "platforms": self._platforms,
            "model_format": self._format,
            "quantizations": offered_value,
            "multimodal": _no_multimodal,
            "community": _no_community,
            "stability": self._stability,
        }

    def _technology(self, standing: Standing, footnotes: Footnotes) -> Value:
        variant = standing.chosen or standing.variants[0]
        engine = engine_text(variant)
        if variant.framework:
            engine = f"{variant.framework} {engine}".strip()
        if not engine:
            return self._absent(standing, footnotes)
        return Value(one_line(engine), source="engine")

    def _format(self, standing: Standing, footnotes: Footnotes) -> Value:
        variant = standing.chosen or standing.variants[0]
        if variant.artifact is None:
            return self._absent(standing, footnotes)
        suffix = PurePath(variant.artifact.name).suffix
        folder = _FOLDERS.get(standing.runner)
        if folder is not None:
            text = _("{format} folder", format=folder)
        elif suffix and suffix[1:].isalpha():
            text = _("{suffix} file", suffix=suffix)
        else:
            text = one_line(variant.artifact.name)
        return Value(text, source="observed")

    def _ease(self, standing: Standing, footnotes: Footnotes) -> Value:
        variant = standing.chosen or standing.variants[0]
        made = variant.artifact
        if made is None:
            return self._absent(standing, footnotes)
        if any(
            each.artifact and each.artifact.made_by == AS_PUBLISHED for each in standing.variants
        ):
            # Of any of its variants: the fastest may be one that was converted.
            text = _("the published model as it is")
        else:
            text = _("the model has to be converted first")
        cells = [self.data.cell(each, variant.id) for each in workloads_of(self.data, variant)]
        found = (
            (cell, load)
            for cell in cells
            if (load := cell.metrics.get("load_s")) and load.median is not None
        )
        for cell, load in found:
            return Value(
                _("{how}; loads in {time}", how=text, time=quantity(load.median, load.unit)),
                n=load.n,
                source=load.source,
                where=Where(cell.workload, variant.id, "load_s"),
            )
        return Value(text, source="observed")

    def _platforms(self, standing: Standing, footnotes: Footnotes) -> Value:
        own = [each for each in self.all if each.key == standing.key and each.chosen is not None]
        if not own:
            return self._absent(standing, footnotes)
        machines = dict.fromkeys(
            f"{one_line(each.part.record.machine.system)}, {each.part.record.machine.architecture}"
            for each in own
        )
        return Value(_("ran on {machines}", machines="; ".join(machines)), source="observed")

    def _stability(self, standing: Standing, footnotes: Footnotes) -> Value:
        ids = {each.id for each in standing.variants}
        own = [each for each in self.data.run.trials if each.variant in ids]
        if not own:
            return self._absent(standing, footnotes)
        fine = sum(each.status == "ok" for each in own)
        return Value(
            _("{fine} of {all} trials succeeded", fine=fine, all=len(own)),
            sort=fine / len(own),
            unit="1",
            n=len(own),
            source="observed",
        )

    def _stars(self, standing: Standing, footnotes: Footnotes, *, gpu: bool) -> Value:
        rated = {
            key: best
            for key, each in self.standings.items()
            if each.runner != NO_FRAMEWORK
            and each.part is self.main
            and (best := self._fastest(each, gpu=gpu))
        }
        own = self._fastest(standing, gpu=gpu)
        if own is None:
            if any(runs_on_gpu(each) == gpu for each in standing.variants):
                return self._absent(standing, footnotes)
            where = _("the GPU") if gpu else _("the CPU")
            reason = _("not measured: no variant of it ran on {where}", where=where)
            return footnotes.missing(reason)
        if unrated := self._unrated(standing, rated):
            return footnotes.missing(unrated)
        best = max(rated.values(), key=lambda each: each.rate)
        share = self._share(own, best)
        stars = stars_for(share.median or 0.0)
        rates = rates_of(self.data, own.variant)
        text = _(
            "{stars}/{most} ({share} of the best; {rate} tokens/s)",
            stars=stars,
            most=MOST,
            share=number(share.median or 0.0, 2),
            rate=number(own.rate, 1),
        )
        only = next(iter(rates.values())) if len(rates) == 1 else None
        interval = shown(only, scale_for("token/s", [only.median])).interval if only else ""
        flags = dict.fromkeys(
            flag_text(flag) for each in rates for flag in self.data.cell(each, own.variant.id).flags
        )
        return Value(
            text,
            interval=interval,
            sort=own.rate,
            low=only.ci_low if only else None,
            high=only.ci_high if only else None,
            unit="token/s",
            n=min(each.n for each in rates.values()),
            source="derived",
            flags=tuple(flags),
            stars=stars,
            footnote=footnotes.number(doubt_text(share)),
            reason=doubt_text(share),
            where=Where(next(iter(rates)), own.variant.id, RATE),
        )

    def _share(self, own: _Fastest, best: _Fastest) -> Summary:
        """A rate as a share of the best one, of pairs within blocks where there are some."""
        if own.variant.id == best.variant.id:
            return Summary(median=1.0, ci_low=1.0, ci_high=1.0, n=1, unit="1", source="derived")
        stands = stands_of(self.data)
        workloads = tuple(rates_of(self.data, own.variant))
        found = stands.samples.ratio(workloads, own.variant.id, best.variant.id, RATE)
        if found is None:
            return Summary(median=own.rate / best.rate, n=1, unit="1", source="derived")
        point, drawn = found
        low, high = interval(drawn) if drawn is not None else (None, None)
        return Summary(median=point, ci_low=low, ci_high=high, n=1, unit="1", source="derived")

    def _unrated(self, standing: Standing, rated: Mapping[str, _Fastest]) -> str:
        """Why a framework that has a rate has no stars; empty where it can have some."""
        if standing.runner == NO_FRAMEWORK:
            return _("the fake runner is no framework")
        if standing.part is not self.main:
            return _("it ran on another machine only, whose rates can't be set against these")
        if len(rated) == 1:
            return _("no other framework was measured, so there is nothing to rate it against")
        if not self._same_workloads(rated.values()):
            return _(
                "the frameworks have rates on different workloads, which can't be rated together"
            )
        return ""

    def _fastest(self, standing: Standing, *, gpu: bool) -> _Fastest | None:
        found = []
        for variant in standing.variants:
            rates = rates_of(self.data, variant)
            if rates and runs_on_gpu(variant) == gpu:
                mean = geometric_mean([each.median or 0.0 for each in rates.values()])
                found.append((len(rates), mean, variant))
        if not found:
            return None
        _count, rate, variant = max(found, key=lambda each: each[:2])
        return _Fastest(variant, rate)

    def _same_workloads(self, found: Collection[_Fastest]) -> bool:
        return len({frozenset(rates_of(self.data, each.variant)) for each in found}) == 1

    def _absent(self, standing: Standing, footnotes: Footnotes) -> Value:
        message = failure_of(self.data, standing.variants)
        if message:
            return footnotes.missing(_("failed: {message}", message=recorded(message)))
        if is_left_out(self.data, standing.variants):
            return footnotes.missing(broken_text())
        return footnotes.missing(_("not measured"))


def features_tables(data: ReportData) -> tuple[Table, ...]:
    """One table for each document, transposed as the documents have them: a row a feature."""
    run = _Run(data)
    return tuple(_table(run, each) for each in published_features())


def _table(run: _Run, published: FeatureTable) -> Table:
    footnotes = Footnotes()
    others = [each for each in run.standings if each not in published.frameworks]
    frameworks: list[str] = [*published.frameworks, *others]
    columns = tuple(words_column(each, one_line(framework_name(each))) for each in frameworks)
    rows: list[Row] = []
    for feature in published.rows:
        rows.append(_quoted_row(published, feature, frameworks, len(rows), footnotes))
        rows.append(
            _measured_row(run, feature.key, feature.label.said(), columns, len(rows), footnotes)
        )
        if feature.key == "model_format":
            label = _("Quantisation support")
            rows.append(_measured_row(run, "quantizations", label, columns, len(rows), footnotes))
    document = documents()[published.document]
    return Table(
        key=f"features-{published.document}",
        workload=_("Features: {document}", document=document.short.said()),
        columns=columns,
        rows=tuple(rows),
        footnotes=footnotes.texts,
        remarks=(
            (chip(published.document), published_meaning()),
            (
                opinion_chip(published.document),
                _("what the document's author thinks: no figure, and not measured by anybody here"),
            ),
        ),
        texts=TableTexts(how=_("words and stars"), marked="", counted="", rows=_("feature")),
        notes=_notes(run, published),
    )


def _quoted_row(
    published: FeatureTable,
    feature: FeatureRow,
    frameworks: Sequence[str],
    place: int,
    footnotes: Footnotes,
) -> Row:
    said = {str(key): each for key, each in feature.cells.items()}
    said_by = chip if feature.key in FACTS else opinion_chip
    values = []
    for each in frameworks:
        if each not in said:
            reason = _("the document does not speak of it")
            values.append(footnotes.silent(reason, published.document))
        elif feature.key in FACTS:
            values.append(quoted_fact(said[each], published.document))
        else:
            values.append(judged(said[each], published.document))
    return Row(
        variant=feature.label.said(),
        engine="",
        place=place,
        repetitions=0,
        remarks=(said_by(published.document),),
        failed=False,
        values=tuple(values),
        published=True,
    )


def _measured_row(
    run: _Run,
    key: str,
    label: str,
    columns: Sequence[Column],
    place: int,
    footnotes: Footnotes,
) -> Row:
    return Row(
        variant=label,
        engine=commas([_("this run"), *run.made_up]),
        place=place,
        repetitions=0,
        remarks=(),
        failed=False,
        values=tuple(run.value(key, each.key, footnotes) for each in columns),
    )


def _no_multimodal(standing: Standing, footnotes: Footnotes) -> Value:
    del standing
    return footnotes.missing(_("not measured: edgebench gives text in and takes text out"))


def _no_community(standing: Standing, footnotes: Footnotes) -> Value:
    del standing
    return footnotes.missing(_("not measured: no figure of a run tells it"))


def _notes(run: _Run, published: FeatureTable) -> tuple[str, ...]:
    document = documents()[published.document]
    date = day_text(document.date) if document.date else _("no date")
    notes = [
        _(
            "Quoted from: {title} ({date}). What it says of frameworks without figures is its "
            "author's judgement. The rows of this run are what it measured, or what the runners "
            "offer.",
            title=document.title.said(),
            date=date,
        )
    ]
    if any(each.key == "cpu_rate" for each in published.rows):
        notes.append(rule_text())
        notes.append(
            _("The document does not say by what rule it gives stars, nor on which device.")
        )
    if len(run.data.parts) > 1:
        notes.append(
            _(
                "Of several machines, what this run says is of {machine}, which ran the most "
                "frameworks; of one that did not run there, of the first machine that ran it.",
                machine=one_line(run.main.label or run.main.record.machine.cpu_model),
            )
        )
    notes += [
        _(
            "{framework} is not {named}: the runner {runner} ran it in its place.",
            framework=one_line(each.name),
            named=framework_name(each.runner),
            runner=each.runner,
        )
        for each in run.standings.values()
        if any(one.framework for one in each.variants)
    ]
    return tuple(notes)
