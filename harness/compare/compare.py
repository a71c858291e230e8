"""From two sides to verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.harness.compare.model import Comparison, Matched, Side


def compare(
    matched: Matched,
    *,
    confidence: float = 0.95,
    margin: float = 0.02,
    noise_floor: float = 0.01,
    wanted: Callable[[str, str], bool] | None = None,
) -> Comparison:
    """Compare every metric of every pair that has a direction in which it is better.

    Args:
        matched: the cells of both sides.
        confidence: of all verdicts together.
        margin: up to which a change counts as none, as a share.
        noise_floor: how much two runs of the same thing may differ that were not interleaved.
        wanted: of a pair's name and a metric's key, whether it is asked about: the fewer
            questions, the sharper each. All by default.
    """
    raise NotImplementedError


def read_side(paths: Sequence[Path], *, fingerprint: str | None = None) -> Side:
    """Read a side: see sides.py."""
    raise NotImplementedError
