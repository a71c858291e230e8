"""What a report calls a variant.

A runner may have run something else than the framework it is named after: its figures must never
be taken for that framework's. So such a variant's name says whose they are, wherever it stands.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness.records import with_loads
from edgebench.reports.series import Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord
    from edgebench.harness.results.run import Run
    from edgebench.reports.series import Place

T = TypeVar("T")


def labelled(run: Run, series: Series) -> tuple[Run, Series]:
    """The run and its samples with labels in place of its variants' ids.

    A run that was killed says nothing of what it loaded in its record; its trials do.
    """
    variants = [with_loads(each, run.trials) for each in run.record.variants]
    labels = _labels([*variants, *run.record.proofs])
    if not labels:
        return run, series
    record = run.record.model_copy(update={"variants": variants})
    return renamed(replace(run, record=record), series, labels)


def renamed(run: Run, series: Series, names: Mapping[str, str]) -> tuple[Run, Series]:
    """The run and its samples with other names for its variants.

    Args:
        run: as it is.
        series: its samples.
        names: new names by old; a variant that is not in it keeps its own.
    """
    record = run.record.model_copy(
        update={
            "variants": _renamed(run.record.variants, names),
            "proofs": _renamed(run.record.proofs, names),
            "cells": [
                cell.model_copy(update={"variant": names.get(cell.variant, cell.variant)})
                for cell in run.record.cells
            ],
        }
    )
    trials = tuple(
        trial.model_copy(update={"variant": names.get(trial.variant, trial.variant)})
        for trial in run.trials
    )
    return replace(run, record=record, trials=trials), Series(
        gaps=_by_label(series.gaps, names),
        generation_memory=_by_label(series.generation_memory, names),
        load_memory={names.get(each, each): one for each, one in series.load_memory.items()},
    )


def with_labels(variants: Sequence[VariantRecord]) -> list[VariantRecord]:
    """The variants with labels in place of their ids, all of them different."""
    return _renamed(variants, _labels(variants))


def label(variant: VariantRecord) -> str:
    """A variant's id; behind the framework's name where its runner is named after another one."""
    if not variant.framework:
        return variant.id
    # An id that the scenario gave is kept whole.
    made_of_options = f"{variant.id} ".startswith(f"{variant.runner} {variant.quantization} ")
    own = variant.id.removeprefix(f"{variant.runner} ") if made_of_options else variant.id
    return f"{variant.framework}: {own}"


def _labels(variants: Sequence[VariantRecord]) -> dict[str, str]:
    """Labels of those that have another name than their id; a label that is taken holds the id."""
    wanted = {each.id: label(each) for each in variants}
    taken = Counter(wanted.values())
    return {
        each.id: wanted[each.id] if taken[wanted[each.id]] == 1 else f"{each.framework}: {each.id}"
        for each in variants
        if each.framework
    }


def _renamed(variants: Sequence[VariantRecord], labels: Mapping[str, str]) -> list[VariantRecord]:
    return [each.model_copy(update={"id": labels.get(each.id, each.id)}) for each in variants]


def _by_label(samples: Mapping[Place, T], labels: Mapping[str, str]) -> dict[Place, T]:
    return {(name, labels.get(each, each)): one for (name, each), one in samples.items()}
