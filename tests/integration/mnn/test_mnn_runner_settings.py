"""A variant's options as MNN's settings: the numbers are those of MNN's documentation."""

from __future__ import annotations

import json

import pytest

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mnn_settings import (
    attention_mode,
    built_backends,
    check_cache,
    check_first_pass,
    from_mnn,
    to_mnn,
    usable_caches,
)


@pytest.mark.parametrize(
    ("kind", "flash", "number"),
    [
        ("fp", True, 8),
        ("int8", True, 10),
        ("tq3", True, 12),
        ("tq4", True, 14),
        ("fp", False, 0),
        ("key_int8", False, 1),
        ("key_tq4", False, 5),
    ],
)
def test_a_kind_of_cache_is_mnns_number(kind: str, flash: bool, number: int) -> None:
    """And back again: what MNN is given is told by the name that was asked for."""
    settings = to_mnn({"kv_cache": kind, "flash_attention": flash, "threads": 1}, None)
    assert settings["attention_mode"] == number
    effective = from_mnn(json.dumps(settings), threads=1, context=64)
    assert (effective["kv_cache"], effective["flash_attention"]) == (kind, flash)


def test_nothing_said_is_fused_attention_and_no_rounding() -> None:
    """MNN's own default."""
    assert attention_mode({}) == 8


def test_what_mnn_is_not_given_has_its_own_defaults() -> None:
    """Low precision and memory, and activations rounded per channel."""
    effective = from_mnn("{}", threads=4, context=64)
    assert effective["precision"] == "low"
    assert effective["memory"] == "low"
    assert effective["dynamic_option"] == 0
    assert effective["attention_mode"] == 8
    assert effective["backend"] == "cpu"


def test_a_folder_cannot_undo_what_a_benchmark_needs() -> None:
    """Greedy tokens, an empty cache each time, one token a pass and no limit of time."""
    settings = to_mnn({"threads": 3}, None)
    assert settings["sampler_type"] == "greedy"
    assert settings["reuse_kv"] is False
    assert settings["all_logits"] is False
    assert settings["speculative_type"] == ""
    assert settings["thread_num"] == 3
    assert "precision" not in settings  # this one is the folder's


def test_a_library_that_does_not_tell_its_back_ends_is_noticed() -> None:
    """None is not the same as none: the runner then refuses what it can't be sure of."""
    assert built_backends("/no/such/library.so") is None


def test_a_cache_that_mnn_would_not_make_is_refused() -> None:
    """Without fused attention MNN rounds the keys and not the values."""
    with pytest.raises(RunnerFailure, match="with flash_attention only") as caught:
        attention_mode({"kv_cache": "int8", "flash_attention": False})
    assert caught.value.reason == "unsupported"


def test_a_cache_that_is_computed_wrongly_is_refused() -> None:
    """Where it is known to be: on x86-64, not on ARM, and never without quantisation."""
    with pytest.raises(RunnerFailure, match=r"computes wrongly on x86-64.*tq4.*choose fp"):
        check_cache({"kv_cache": "tq4"}, "x86_64")
    check_cache({"kv_cache": "tq4"}, "aarch64")
    check_cache({"kv_cache": "int8"}, "x86_64")
    check_cache({}, "AMD64")
    assert usable_caches("x86_64") == ("fp", "key_int8", "int8")


def test_scales_of_one_token_are_refused() -> None:
    """Where the cache is quantised: two tokens are enough for keys, and fp needs no scales."""
    with pytest.raises(RunnerFailure, match=r"scales.*key_int8 from the first pass") as caught:
        check_first_pass({"kv_cache": "key_int8"}, 1)
    assert caught.value.reason == "unsupported"
    check_first_pass({"kv_cache": "key_int8"}, 2)
    check_first_pass({}, 1)
