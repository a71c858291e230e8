"""From one generation's time stamps to its metrics. Definitions: docs/metrics.md."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.results.measured import Measured

if TYPE_CHECKING:
    from edgebench.runners.base import Generation, TaskResult

NS = 1e9
RATE = "token/s"


def generation_metrics(made: Generation) -> dict[str, Measured]:
    """Latencies in s and rates in token/s of one generation.

    Args:
        made: a checked generation; time stamps do not go back.
    """
    submitted = made.submitted_ns
    first, last = made.token_ns[0], made.token_ns[-1]
    metrics = {
        "ttft_s": _seconds(first - submitted),
        **_prompt_metrics(made),
        **_decode_metrics([later - earlier for earlier, later in pairwise(made.token_ns)]),
        "e2e_rate": _rate(len(made.token_ids), last - submitted),
    }
    for key, value in made.engine.items():
        unit = "s" if key.endswith("_s") else RATE if key.endswith("_rate") else "1"
        metrics[f"engine_{key}"] = Measured(value=value, unit=unit, source="engine")
    return metrics


def task_metrics(made: TaskResult) -> dict[str, Measured]:
    """Latency in s and length in characters of one run of a task."""
    length = Measured(value=len(made.text), unit="character", source="observed")
    return {
        "task_latency_s": _seconds(made.finished_ns - made.submitted_ns),
        "task_output_characters": length,
    }


def _prompt_metrics(made: Generation) -> dict[str, Measured]:
    start = made.submitted_ns
    if made.tokenized_ns is None:
        reason = "the framework was handed token ids, or tokenizes as a part of its prefill"
        tokenize = Measured.missing("s", reason)
    else:
        tokenize = _seconds(made.tokenized_ns - start)
        start = made.tokenized_ns
    if made.prefilled_ns is None:
        reason = "the framework does not show when the prompt was processed"
        return {
            "tokenize_s": tokenize,
            "prefill_s": Measured.missing("s", reason),
            "prefill_rate": Measured.missing(RATE, reason, "derived"),
            "first_token_s": Measured.missing("s", reason),
        }
    return {
        "tokenize_s": tokenize,
        "prefill_s": _seconds(made.prefilled_ns - start),
        "prefill_rate": _rate(made.prompt_tokens, made.prefilled_ns - start),
        "first_token_s": _seconds(made.token_ns[0] - made.prefilled_ns),
    }


def _decode_metrics(gaps_ns: list[int]) -> dict[str, Measured]:
    keys = ("itl_p50_s", "itl_p95_s", "itl_p99_s", "itl_max_s")
    if not gaps_ns:
        reason = "one token has no gap to another"
        return {
            "tpot_s": Measured.missing("s", reason),
            "decode_rate": Measured.missing(RATE, reason, "derived"),
            **{key: Measured.missing("s", reason) for key in keys},
        }
    total = sum(gaps_ns)
    quantiles = np.quantile(gaps_ns, [0.5, 0.95, 0.99, 1.0])
    return {
        "tpot_s": _seconds(total / len(gaps_ns)),
        "decode_rate": _rate(len(gaps_ns), total),
        **{key: _seconds(value) for key, value in zip(keys, quantiles, strict=True)},
    }


def _seconds(nanoseconds: float) -> Measured:
    return Measured(value=float(nanoseconds) / NS, unit="s", source="observed")


def _rate(count: int, nanoseconds: int) -> Measured:
    if nanoseconds <= 0:
        return Measured.missing(RATE, "took less time than the clock resolves", "derived")
    return Measured(value=count * NS / nanoseconds, unit=RATE, source="derived")
