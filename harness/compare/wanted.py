"""Which metrics and cells are asked about: the fewer, the sharper each answer is."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Wanted: TypeAlias = Callable[[str, str], bool]
    """Of a pair's name and a metric's key, whether it is asked about."""

DEFAULT_METRICS: Final = frozenset(
    {
        "load_s",
        "load_cold_s",
        "task_load_s",
        "ttft_s",
        "decode_rate",
        "burst_rate",
        "sustained_rate",
        "task_latency_s",
        "duration_s",
        "peak_rss_bytes",
        "model_bytes",
        "energy_per_token_j",
        "perplexity",
    }
)
"""What people choose and complain by. All others say the same in other words (the time per token
beside the rate, the prefill's rate beside the time to the first token), in parts (the peak's), of
the engine's own clock, or of the machine, and are asked about by name."""


def by_default(name: str, key: str) -> bool:  # noqa: ARG001 - a `Wanted`
    """Whether it is one of `DEFAULT_METRICS`."""
    return key in DEFAULT_METRICS


def by_patterns(cells: Sequence[str], metrics: Sequence[str]) -> Wanted:
    """Whether a pair's name and a metric's key each match one of some fnmatch patterns.

    Args:
        cells: patterns of ``VARIANT / WORKLOAD``; all where there are none.
        metrics: patterns of keys; `DEFAULT_METRICS` where there are none.
    """

    def wanted(name: str, key: str) -> bool:
        if cells and not any(fnmatchcase(name, each) for each in cells):
            return False
        if metrics:
            return any(fnmatchcase(key, each) for each in metrics)
        return by_default(name, key)

    return wanted
