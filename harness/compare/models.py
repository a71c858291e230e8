"""Whether two sides are of the same model, as far as they tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.compare.identity import HASH_DIGITS
from edgebench.harness.compare.model import Differing
from edgebench.harness.compare.refusing import refuse

if TYPE_CHECKING:
    from edgebench.harness.compare.model import Side


def differing_model(baseline: Side, candidate: Side) -> Differing | None:
    """The model of each where they differ; None where nothing says that they do.

    Hashes of the same thing decide; without any, the sources that the scenarios name.
    """
    common = [each for each in baseline.hashes if each in candidate.hashes]
    for each in common:
        mine, theirs = baseline.hashes[each], candidate.hashes[each]
        if mine != theirs:
            return Differing(
                "the model",
                f"{_model(baseline)}, sha256 {mine[:HASH_DIGITS]} of {each}",
                f"{_model(candidate)}, sha256 {theirs[:HASH_DIGITS]} of {each}",
                "artifact",
            )
    if not common and baseline.model_source != candidate.model_source:
        return Differing("the model", _model(baseline), _model(candidate), "artifact")
    return None


def refuse_other_models(what: str, one: Side, other: Side) -> None:
    """Raise where two sides are of different models.

    Args:
        what: what can't be done, the beginning of a sentence.
        one: a side.
        other: another.

    Raises:
        NotComparableError: they are; it names both and their hashes.
    """
    found = differing_model(one, other)
    if found is not None:
        refuse(
            f"{what}: they are of different models.",
            (one.label, found.baseline),
            (other.label, found.candidate),
            "Figures of different weights don't compare. If they are the same weights, write "
            "their `sha256:` in both scenarios and run them again; to compare two model files on "
            "purpose, `edgebench run SCENARIO --against model=SOURCE`.",
        )


def _model(side: Side) -> str:
    name, source = side.model_name, side.model_source
    return f"{name} ({source})" if name and source else name or source or "no model named"
