"""The options that were in effect: what differs between the variants, and what does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.reports.languages import _

if TYPE_CHECKING:
    from edgebench.harness.results.measured import Scalar
    from edgebench.harness.results.model import VariantRecord
    from edgebench.reports.data import ReportData

ABSENT = "–"


@dataclass(frozen=True, slots=True)
class Options:
    """What each variant really ran with.

    Attributes:
        differing: names of the facts and options in which variants differ.
        rows: by variant, the values of `differing` in that order.
        shared: facts and options that are the same everywhere, with their value.
        overruled: options that were asked for and are not what the framework used, as
            (variant, option, asked, used).
    """

    differing: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    shared: tuple[tuple[str, str], ...]
    overruled: tuple[tuple[str, str, str, str], ...]


def option_text(value: Scalar) -> str:
    """An option's value as people write it in a scenario."""
    if value is None:
        return _("not said")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def options(data: ReportData) -> Options:
    """Compare the variants' effective options and the facts that act like options."""
    variants = data.record.variants
    # A task has an engine of its own, which its table names.
    makes_tokens = any(workload.task is None for workload in data.record.workloads)
    used = {
        each.id: _facts(each, makes_tokens=makes_tokens) | _effective(data, each)
        for each in variants
    }
    names = dict.fromkeys(name for values in used.values() for name in values)
    table = {name: [values.get(name, ABSENT) for values in used.values()] for name in names}
    differing = tuple(name for name, values in table.items() if len(set(values)) > 1)
    return Options(
        differing=differing,
        rows=tuple(
            (variant, tuple(values.get(name, ABSENT) for name in differing))
            for variant, values in used.items()
        ),
        shared=tuple(
            (name, values[0]) for name, values in table.items() if name not in set(differing)
        ),
        overruled=tuple(
            (each.id, name, option_text(asked), used[each.id][name])
            for each in variants
            for name, asked in each.options.items()
            if used[each.id].get(name, option_text(asked)) != option_text(asked)
        ),
    )


def _facts(variant: VariantRecord, *, makes_tokens: bool) -> dict[str, str]:
    facts = {
        _("engine"): variant.engine if makes_tokens else None,
        _("engine version"): variant.engine_version if makes_tokens else None,
        _("quantization"): variant.quantization,
        _("context tokens"): variant.context_tokens,
    }
    return {name: option_text(value) for name, value in facts.items() if value is not None}


def _effective(data: ReportData, variant: VariantRecord) -> dict[str, str]:
    effective = variant.effective_options
    if not effective:
        # A run that was killed has them only in the record of the load.
        effective = next(
            (
                trial.effective_options
                for trial in data.run.trials
                if trial.variant == variant.id
                and trial.kind in ("load", "quality")
                and trial.effective_options
            ),
            {},
        )
    # What shaped the artifact is no option of its loading, and stands there as it was asked for.
    return {name: option_text(value) for name, value in {**variant.options, **effective}.items()}
