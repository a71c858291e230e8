"""Ceilings and floors of the candidate's own median."""

from __future__ import annotations

from dataclasses import replace

import pytest
from gate_sides import around, cell, lacking, samples

from edgebench.harness.gate.bounds import bound_check
from edgebench.harness.gate.limits import Asked


def asked(*, at_most: float | None = None, at_least: float | None = None) -> Asked:
    return Asked(None, 0.99, at_most, at_least, "fail")


def test_a_ceiling_is_broken_where_median_and_interval_are_beyond_it() -> None:
    """About 2.1 s with a spread of 1 % is more than 2 s; about 1.9 s is less."""
    for value, status in ((2.1, "fail"), (1.9, "pass")):
        of = cell(metrics={"ttft_s": samples(around(value), "ttft_s")})
        check = bound_check("c", of, "ttft_s", asked(at_most=2.0), "at_most")
        assert (check.status, check.limit, check.unit) == (status, 2.0, "s")
        assert check.value == pytest.approx(value, rel=0.005)
        assert "95 % interval of the median" in check.detail
        assert check.message.endswith(" s, and may be at most 2.00 s")


def test_a_floor_is_broken_from_the_other_side() -> None:
    """9 tokens/s where 10 are asked for."""
    for value, status in ((9.0, "fail"), (11.0, "pass")):
        of = cell(metrics={"decode_rate": samples(around(value))})
        check = bound_check("c", of, "decode_rate", asked(at_least=10), "at_least")
        assert check.status == status
        assert "and must be at least 10.0 tokens/s" in check.message


@pytest.mark.parametrize("value", [1.99, 2.01])
def test_an_interval_that_holds_the_bound_decides_nothing(value: float) -> None:
    """About 2 s with a spread of 5 % may be below 2 s or above: undecided on either side."""
    of = cell(metrics={"ttft_s": samples(around(value, noise=5), "ttft_s")})
    check = bound_check("c", of, "ttft_s", asked(at_most=2.0), "at_most")
    assert check.status == "undecided"
    assert "its interval holds both sides" in check.message


def test_with_few_repetitions_the_median_decides_and_says_so() -> None:
    """Two repetitions have no interval; a requirement holds all the same."""
    of = cell(metrics={"ttft_s": samples([2.5, 2.6], "ttft_s")})
    check = bound_check("c", of, "ttft_s", asked(at_most=2.0), "at_most")
    assert check.status == "fail"
    assert check.detail.startswith("the median decides by itself: an interval needs 5 blocks")


def test_repetitions_of_one_block_do_not_make_an_interval() -> None:
    """Twenty values of one process are one look at it."""
    one = samples(around(2.5, count=20), "ttft_s")
    of = cell(metrics={"ttft_s": replace(one, blocks=(("s", 0),) * 20)})
    check = bound_check("c", of, "ttft_s", asked(at_most=2.0), "at_most")
    assert "there are 1" in check.detail


@pytest.mark.parametrize(
    ("key", "kind", "value", "bound", "status"),
    [
        ("perplexity", "at_most", 20.1, 20.0, "fail"),
        ("perplexity", "at_most", 20.0, 20.0, "pass"),
        ("top1_agreement", "at_least", 0.97, 0.98, "fail"),
        ("model_bytes", "at_most", 2**30 + 1, 2**30, "fail"),
        ("model_bytes", "at_most", 2**30, 2**30, "pass"),
    ],
)
def test_what_is_exact_is_held_exactly(
    key: str, kind: str, value: float, bound: float, status: str
) -> None:
    """A perplexity of this text and a file's size have no chance in them."""
    of = cell(metrics={key: samples([value], key)})
    wanted = asked(at_most=bound) if kind == "at_most" else asked(at_least=bound)
    check = bound_check("c", of, key, wanted, kind)  # type: ignore[arg-type]
    assert (check.status, check.detail) == (status, "")


def test_what_is_not_measured_is_undecided_with_its_reason() -> None:
    """A ceiling of energy on a machine without a meter does not pass in silence."""
    of = cell(metrics={"energy_per_token_j": lacking("energy_per_token_j")})
    check = bound_check("c", of, "energy_per_token_j", asked(at_most=1.0), "at_most")
    assert (check.status, check.value) == ("undecided", None)
    assert check.message == "Energy per token is not measured: no sensor is readable"


def test_constant_values_have_an_interval_without_width() -> None:
    """A value on the bound is within it."""
    of = cell(metrics={"ttft_s": samples([2.0] * 9, "ttft_s")})
    assert bound_check("c", of, "ttft_s", asked(at_most=2.0), "at_most").status == "pass"
    assert bound_check("c", of, "ttft_s", asked(at_most=1.9999), "at_most").status == "fail"
