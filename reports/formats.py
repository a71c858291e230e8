"""The formats of a run's variants: their names, and which one the others are compared with."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from edgebench.reports.quality_text import wants_reference

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from edgebench.harness.results.model import VariantRecord, WorkloadRecord

SIXTEEN_BITS = frozenset({"f16", "fp16", "q0f16", "bf16"})
THIRTY_TWO_BITS = frozenset({"f32", "fp32", "q0f32"})
SOURCE = "source"
"""The name of a source's own format, whatever that is."""

AROUND_SIXTEEN = (15.5, 17.0)
AROUND_THIRTY_TWO = (31.0, 34.0)
"""Bits per weight of a source in so many bits; a file holds a little more than its weights."""


def format_names(variants: Sequence[VariantRecord]) -> dict[str, str]:
    """Framework and quantisation of each variant; its id where several have the same."""
    short = {each.id: f"{each.framework or each.runner}: {each.quantization}" for each in variants}
    taken = Counter(short.values())
    return {each.id: short[each.id] if taken[short[each.id]] == 1 else each.id for each in variants}


def base_of(
    variants: Sequence[VariantRecord], windows: Mapping[str, object], *, alone: bool
) -> VariantRecord | None:
    """What the other formats are compared with.

    The first in 16 bits, else in 32; one that was rated before one that could not be.

    Args:
        variants: of the run.
        windows: by variant, of those that were rated.
        alone: whether there is no reference either. Then, of formats that all are smaller, that
            with the most bits per weight is the base.
    """
    candidates = [
        each
        for names, around in (
            (SIXTEEN_BITS, AROUND_SIXTEEN),
            (THIRTY_TWO_BITS, AROUND_THIRTY_TWO),
        )
        for each in variants
        if _is_in(each, names, around)
    ]
    if alone and not candidates:
        known = (each for each in variants if bits_of(each))
        candidates = sorted(known, key=lambda each: -bits_of(each))
    rated = (each for each in candidates if each.id in windows)
    return next(rated, candidates[0] if candidates else None)


def is_whole(variant: VariantRecord) -> bool:
    """Whether a variant is in 16 or 32 bits."""
    return _is_in(variant, SIXTEEN_BITS, AROUND_SIXTEEN) or _is_in(
        variant, THIRTY_TWO_BITS, AROUND_THIRTY_TWO
    )


def bits_of(variant: VariantRecord) -> float:
    """Bits per weight; 0 where that is not known."""
    made = variant.artifact
    return 8 * made.bytes / made.parameters if made and made.parameters else 0.0


def without_reference(workload: WorkloadRecord) -> bool:
    """Whether a text has no reference that perplexities could be compared with."""
    quality = workload.quality
    return quality is None or quality.reference is None or not wants_reference(quality)


def _is_in(variant: VariantRecord, names: frozenset[str], around: tuple[float, float]) -> bool:
    name = variant.quantization.lower()
    return name in names or (name == SOURCE and around[0] <= bits_of(variant) <= around[1])
