"""Stars by a rule that is stated, so that nobody has to guess what the fourth one was for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.reports.format import number
from edgebench.reports.languages import _

if TYPE_CHECKING:
    from edgebench.harness.results.cell import Summary

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
        "from 50 %, 2 from 25 %, else 1. The share is of each framework's fastest variant: the "
        "median of the ratios within blocks, the geometric mean of these over the workloads."
    )


def doubt_text(share: Summary) -> str:
    """That another number of stars is possible too; empty where none is, or that is not known.

    Args:
        share: of the best one's rate, with its interval if it has one.
    """
    if share.ci_low is None or share.ci_high is None:
        return ""
    fewest, most = stars_for(share.ci_low), stars_for(share.ci_high)
    if fewest == most:
        return ""
    return _(
        "the interval of its share of the best rate, [{low}, {high}], reaches from {fewest} to "
        "{most} stars",
        low=number(share.ci_low, 2),
        high=number(share.ci_high, 2),
        fewest=fewest,
        most=most,
    )
