"""What a report calls a variant.

A runner may have run something else than the framework it is named after: its figures must never
be taken for that framework's. So such a variant's name says whose they are, wherever it stands.
"""

from __future__ import annotations

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
    labels = {each.id: label(each) for each in variants if each.framework}
    if not labels and not any(each.framework for each in run.record.proofs):
        return run, series
    record = run.record.model_copy(
        update={
            "variants": with_labels(variants),
            "proofs": with_labels(run.record.proofs),
            "cells": [
                cell.model_copy(update={"variant": labels.get(cell.variant, cell.variant)})
                for cell in run.record.cells
            ],
        }
    )
    trials = tuple(
        trial.model_copy(update={"variant": labels.get(trial.variant, trial.variant)})
        for trial in run.trials
    )
    return replace(run, record=record, trials=trials), Series(
        gaps=_by_label(series.gaps, labels),
        generation_memory=_by_label(series.generation_memory, labels),
        load_memory={labels.get(each, each): one for each, one in series.load_memory.items()},
    )


def with_labels(variants: Sequence[VariantRecord]) -> list[VariantRecord]:
    """The variants with labels in place of their ids."""
    return [each.model_copy(update={"id": label(each)}) for each in variants]


def label(variant: VariantRecord) -> str:
    """A variant's id; behind the framework's name where its runner is named after another one."""
    if not variant.framework:
        return variant.id
    return f"{variant.framework}: {variant.id.removeprefix(variant.runner).strip() or variant.id}"


def _by_label(samples: Mapping[Place, T], labels: Mapping[str, str]) -> dict[Place, T]:
    return {(name, labels.get(each, each)): one for (name, each), one in samples.items()}
