"""Metrics of one generation, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from edgebench.harness.metrics.timing import generation_metrics
from edgebench.runners.base import Generation

S = 1_000_000_000


def generation(**changes: object) -> Generation:
    """A prompt of 10 tokens at t=1000 s, tokenized in 0.1 s, prefilled in 0.4 s more."""
    fields: dict[str, object] = {
        "token_ids": [5, 6, 7, 8, 9],
        "submitted_ns": 1000 * S,
        "tokenized_ns": 1000 * S + S // 10,
        "prefilled_ns": 1000 * S + S // 2,
        # gaps of 0.1, 0.1, 0.2 and 0.4 s after a first token at 0.6 s
        "token_ns": [1000 * S + part * S // 10 for part in (6, 7, 8, 10, 14)],
        "prompt_tokens": 10,
        "finish_reason": "length",
    }
    return Generation(**{**fields, **changes})  # type: ignore[arg-type]


def test_latencies_and_rates_follow_their_definitions() -> None:
    """TTFT, TPOT, rates and gap quantiles equal what the definitions give by hand."""
    metrics = generation_metrics(generation())
    assert {key: pytest.approx(item.value) for key, item in metrics.items()} == {
        "ttft_s": 0.6,
        "tokenize_s": 0.1,
        "prefill_s": 0.4,
        "prefill_rate": 25.0,  # 10 / 0.4
        "first_token_s": 0.1,
        "tpot_s": 0.2,  # 0.8 / 4
        "decode_rate": 5.0,  # 4 / 0.8
        "itl_p50_s": 0.15,  # between 0.1 and 0.2
        "itl_p95_s": 0.37,  # 0.2 + 0.85 x 0.2, linear between the last two
        "itl_p99_s": 0.394,  # 0.2 + 0.97 x 0.2
        "itl_max_s": 0.4,
        "e2e_rate": 5 / 1.4,
    }
    assert metrics["ttft_s"].source == "observed"
    assert metrics["decode_rate"].source == "derived"


def test_huge_time_stamps_lose_no_precision() -> None:
    """A clock that has run for 200 years still gives the exact gaps."""
    base = 200 * 365 * 86_400 * S
    shifted = generation(
        submitted_ns=base,
        tokenized_ns=None,
        prefilled_ns=base + 3,
        token_ns=[base + 5, base + 7],
        token_ids=[1, 2],
    )
    metrics = generation_metrics(shifted)
    assert metrics["tpot_s"].value == 2e-9
    assert metrics["ttft_s"].value == 5e-9


def test_one_token_has_no_decode_rate() -> None:
    """With a single token there is no gap: null with the reason, not zero and not infinity."""
    metrics = generation_metrics(generation(token_ids=[5], token_ns=[1001 * S]))
    for key in ("tpot_s", "decode_rate", "itl_p50_s", "itl_max_s"):
        assert metrics[key].value is None
        assert metrics[key].reason == "one token has no gap to another"


def test_what_the_framework_hides_is_null_with_the_reason() -> None:
    """Without the prefill's end there is no prefill rate, and TTFT stands all the same."""
    metrics = generation_metrics(generation(prefilled_ns=None, tokenized_ns=None))
    assert metrics["prefill_rate"].value is None
    assert "does not show" in (metrics["prefill_rate"].reason or "")
    assert metrics["tokenize_s"].value is None
    assert metrics["ttft_s"].value == pytest.approx(0.6)


def test_no_time_between_tokens_is_no_infinite_rate() -> None:
    """Equal time stamps, as a coarse clock gives them, make no rate."""
    metrics = generation_metrics(generation(token_ns=[1001 * S] * 5))
    assert metrics["decode_rate"].value is None
    assert metrics["tpot_s"].value == 0


def test_the_frameworks_own_figures_stand_beside_ours() -> None:
    """An engine's figure keeps its key, its unit and its source."""
    metrics = generation_metrics(generation(engine={"decode_rate": 9.5, "ttft_s": 0.25}))
    assert metrics["engine_decode_rate"].value == 9.5
    assert metrics["engine_decode_rate"].unit == "token/s"
    assert metrics["engine_ttft_s"].source == "engine"
