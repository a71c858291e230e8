"""Stars by a rule that is stated, so that nobody has to guess what the fourth one was for."""

from __future__ import annotations

from edgebench.reports.languages import _

RULE = ((0.9, 5), (0.75, 4), (0.5, 3), (0.25, 2))
"""Least share of the best's rate, and the stars for it; what is below the last has one star."""

MOST = 5


def stars_for(share: float) -> int:
    """Stars of a rate.

    Args:
        share: the rate, of the best framework's rate in the same run.

    Returns:
        1 to 5.
    """
    return next((stars for least, stars in RULE if share >= least), 1)


def rule_text() -> str:
    """The rule in a sentence."""
    return _(
        "Stars of this run: 5 from 90 % of the best framework's decode rate on, 4 from 75 %, 3 "
        "from 50 %, 2 from 25 %, else 1. The rates are geometric means over the workloads, of each "
        "framework's fastest variant."
    )
