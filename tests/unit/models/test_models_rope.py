"""Rotary frequencies against numbers worked out by hand from the papers' formulas."""

from __future__ import annotations

import math

import pytest

from edgebench.models.rope import default_rope, linear_rope, llama3_rope, yarn_mscale, yarn_rope


def test_frequencies_fall_from_one_by_equal_ratios() -> None:
    """The k-th of size/2 frequencies is theta to the power of -2k/size."""
    rope = default_rope(10000.0, 8)

    assert rope.inverse_frequencies == pytest.approx((1.0, 0.1, 0.01, 0.001))
    assert rope.attention_factor == 1.0


def test_linear_scaling_divides_every_frequency() -> None:
    """A factor of four makes four tokens turn what one did."""
    assert linear_rope(10000.0, 4, factor=4.0).inverse_frequencies == pytest.approx((0.25, 0.0025))


def test_llama_3_keeps_the_fast_and_slows_the_slow() -> None:
    """Wave lengths of the frequencies 1, 0.1, 0.01, 0.001 are 6.3, 63, 628 and 6283 tokens.

    With a context of 1000, waves below 250 tokens are kept, those above 1000 slowed eightfold,
    and the one of 628 is between: it turns 1.59 times, a share of (1.59 - 1) / (4 - 1) is kept.
    """
    rope = llama3_rope(
        10000.0, 8, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=1000
    )

    kept = (1000 * 0.01 / (2 * math.pi) - 1) / 3
    between = kept * 0.01 + (1 - kept) * 0.01 / 8
    assert rope.inverse_frequencies == pytest.approx((1.0, 0.1, between, 0.001 / 8))


def test_yarn_ramps_between_the_dimensions_of_32_turns_and_one() -> None:
    """Within 1000 tokens, dimension 0.70 turns 32 times and dimension 2.2 once: a ramp 0 to 3."""
    rope = yarn_rope(10000.0, 8, factor=2.0, original_context=1000)

    expected = [f * (1 - k / 3) + f / 2 * k / 3 for k, f in enumerate((1.0, 0.1, 0.01, 0.001))]
    assert rope.inverse_frequencies == pytest.approx(expected)
    assert rope.attention_factor == pytest.approx(0.1 * math.log(2) + 1)


def test_yarn_without_whole_ends_ramps_between_the_exact_dimensions() -> None:
    """The ramp's ends are the dimensions themselves, and not the whole numbers around them."""
    rope = yarn_rope(10000.0, 8, factor=2.0, original_context=1000, truncate=False)

    low, high = (
        8 * math.log(1000 / (turns * 2 * math.pi)) / (2 * math.log(10000)) for turns in (32, 1)
    )
    ramp = (1 - low) / (high - low)
    assert rope.inverse_frequencies[0] == 1.0
    assert rope.inverse_frequencies[1] == pytest.approx(0.1 * (1 - ramp) + 0.05 * ramp)
    assert rope.inverse_frequencies[3] == pytest.approx(0.0005)


def test_no_stretch_is_no_factor() -> None:
    """Where the context is not stretched, attention is as it was."""
    assert yarn_mscale(1.0) == 1.0
    assert yarn_mscale(0.5) == 1.0
    assert yarn_mscale(math.e, 2.0) == pytest.approx(1.2)


def test_yarn_with_absurd_rotations_has_finite_frequencies() -> None:
    """A file may hold any number; a ramp beyond all dimensions leaves them all divided."""
    rope = yarn_rope(10000.0, 8, factor=2.0, original_context=1000, beta_fast=1e308)
    assert all(0 < each <= 1 for each in rope.inverse_frequencies)
