"""Which engine a variant drove, in a few words: every table says it beside the variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.languages import _
from edgebench.reports.languages.words import commas

if TYPE_CHECKING:
    from edgebench.harness.results.model import VariantRecord


def engine_text(variant: VariantRecord) -> str:
    """Name and version, such as ``LiteRT-LM 0.18.1``; empty where the engine was not reached.

    What stands in brackets behind a version, such as that of a binding, is left to the list of
    all options. A variant that is named after its framework anyway has the version alone. Where
    the weights are made up, that is said as well.
    """
    version = (variant.engine_version or "").partition(" (")[0]
    name = "" if variant.framework else variant.engine or ""
    text = f"{name} {version}".strip()
    return commas(filter(None, (text, made_up_text(variant)))) if text else ""


def made_up_text(variant: VariantRecord) -> str:
    """That a variant's weights are made up; empty where they are a model's own."""
    made_up = variant.artifact is not None and variant.artifact.synthetic
    return _("synthetic weights") if made_up else ""
