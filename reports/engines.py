"""Which engine a variant drove, in a few words: every table says it beside the variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgebench.harness.results.model import VariantRecord


def engine_text(variant: VariantRecord) -> str:
    """Name and version, such as ``LiteRT-LM 0.18.1``; empty where the engine was not reached.

    What stands in brackets behind a version, such as that of a binding, is left to the list of
    all options. A variant that is named after its framework anyway has the version alone.
    """
    version = (variant.engine_version or "").partition(" (")[0]
    name = "" if variant.framework else variant.engine or ""
    return f"{name} {version}".strip()
