"""One colour for each framework, the same in every table and plot of every report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.harness.results.model import VariantRecord

KNOWN = {"llama.cpp": 1, "mnn": 2, "mediapipe": 3, "mlc": 4}
"""Places of the frameworks that edgebench comes with: ``--s1`` to ``--s8`` of the style sheet."""

OTHERS = (5, 6, 7, 8)
"""Places of all others, in the order in which a run names them; from the fifth on they repeat."""


def framework_key(variant: VariantRecord) -> str:
    """Whose figures a variant's are: the framework's own name where its runner has another one."""
    return variant.framework or variant.runner


def framework_colours(variants: Iterable[VariantRecord]) -> dict[str, str]:
    """The class of each variant's colour, by its id: ``s1`` to ``s8``."""
    listed = list(variants)
    others = dict.fromkeys(key for each in listed if (key := framework_key(each)) not in KNOWN)
    places = KNOWN | {key: OTHERS[at % len(OTHERS)] for at, key in enumerate(others)}
    return {each.id: f"s{places[framework_key(each)]}" for each in listed}
