"""What is said where a broken cell would have stood: see `edgebench.reports.data.BROKEN`."""

from __future__ import annotations

from edgebench.reports.languages import _


def broken_text() -> str:
    """Why its figures are not chosen by, as a predicate."""
    return _("left out: broken, above the memory's bandwidth")
