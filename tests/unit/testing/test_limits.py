"""What an assertion asks, of what a policy asks."""

from __future__ import annotations

import pytest

from edgebench.harness.errors import UsageError
from edgebench.harness.gate.policy import Policy
from edgebench.testing.limits import narrowed

POLICY = Policy.model_validate(
    {
        "schema_version": 1,
        "confidence": "95%",
        "limits": {
            "*_s": {"worse_by": "9%"},
            "ttft_s": {"at_most": "2s", "confidence": "99.9%"},
            "decode_rate": {"worse_by": "2%"},
        },
        "cells": [
            {"match": "mnn*", "limits": {"ttft_s": "off", "decode_rate": {"worse_by": "7%"}}}
        ],
        "allow": [{"cell": "*", "until": "2027-01-31", "reason": "known"}],
    }
)


def narrow(*metrics: str, worse_by: object = None, confidence: object = None) -> Policy:
    return narrowed(POLICY, "gate.yaml", metrics, worse_by, confidence)  # type: ignore[arg-type]


def test_without_a_word_the_policy_stays_as_it_is() -> None:
    """What is off for some cells stays off."""
    assert narrow() == POLICY


def test_a_named_metric_keeps_the_limits_that_patterns_give_it() -> None:
    """Both entries that fit ttft_s, the later one above; nothing of decode_rate."""
    found = narrow("ttft_s")
    assert list(found.limits) == ["ttft_s"]
    limit = found.limits["ttft_s"]
    assert limit is not None
    assert (limit.worse_by, limit.at_most, limit.confidence) == (0.09, "2s", 0.999)
    assert found.cells[0].limits == {"ttft_s": None}
    assert found.allow == POLICY.allow


def test_a_given_worsening_holds_alone() -> None:
    """For each named metric and every cell; allowances and confidence stay."""
    found = narrow("decode_rate", "load_s", worse_by="5%")
    assert {
        key: each and each.model_dump(exclude_none=True) for key, each in found.limits.items()
    } == {
        "decode_rate": {"worse_by": 0.05},
        "load_s": {"worse_by": 0.05},
    }
    assert found.cells == []
    assert (found.confidence, found.allow) == (0.95, POLICY.allow)


def test_a_given_confidence_holds_for_every_limit() -> None:
    """Also for those that had their own."""
    found = narrow(confidence=0.999)
    assert found.confidence == 0.999
    assert [each and each.confidence for each in found.limits.values()] == [None, None, None]


@pytest.mark.parametrize(
    ("metrics", "worse_by", "confidence", "words"),
    [
        (
            ["decode_rat"],
            None,
            None,
            "there is no metric 'decode_rat'; did you mean 'decode_rate'?",
        ),
        (["peak_rss_bytes"], None, None, "gate.yaml has no limit for 'peak_rss_bytes'"),
        (["decode_rat"], "5%", None, "did you mean 'decode_rate'?"),
        (["decode_rate"], "5", None, "worse_by: must be a share such as 5% or 0.05"),
        (["decode_rate"], 5, None, "write 5% or 0.05"),
        (["decode_rate"], -0.1, None, "must be a share"),
        (["decode_rate"], float("nan"), None, "must be a share"),
        ([], None, "40%", "confidence: must be more than 50%"),
        ([], None, 1, "confidence: must be"),
    ],
)
def test_what_is_wrong_is_said(
    metrics: list[str], worse_by: object, confidence: object, words: str
) -> None:
    """The argument, what was given, what is allowed."""
    with pytest.raises(UsageError) as caught:
        narrow(*metrics, worse_by=worse_by, confidence=confidence)
    assert words in str(caught.value)
