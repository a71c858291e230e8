"""How a variant is named beside its framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.sentences import Name, fill

if TYPE_CHECKING:
    from edgebench.reports.selection.view import Measured
    from edgebench.reports.sentences import Sentence


def named(measured: Measured) -> Sentence:
    """The measurements' choice: its framework with the variant, as ``MNN (mnn int4)``.

    A variant of a library that its runner is not named after begins with the framework's name,
    which is then said once.
    """
    if measured.variant.startswith(f"{measured.framework}: "):
        return (Name(measured.variant),)
    return fill(
        "{measured} ({variant})",
        measured=Name(measured.framework),
        variant=Name(measured.variant),
    )
