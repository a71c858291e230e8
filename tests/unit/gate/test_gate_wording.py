"""Numbers in a gate's sentences."""

from __future__ import annotations

import pytest

from edgebench.harness.gate.wording import (
    about,
    amounts,
    chance,
    interval,
    percent,
    repetitions,
    worse,
)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0512, "5.1 %"), (0.123, "12 %"), (1.5, "150 %"), (0.00001, "under 0.01 %"), (-0.02, "2 %")],
)
def test_what_was_measured_has_two_digits(share: float, text: str) -> None:
    """No more than is worth showing."""
    assert about(share) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.02, "2 %"), (0.9999, "99.99 %"), (0.07, "7 %"), (0.005, "0.5 %")]
)
def test_what_somebody_wrote_keeps_its_digits(share: float, text: str) -> None:
    """99.99 % does not become 100 %."""
    assert percent(share) == text


def test_a_worsening_in_words() -> None:
    """A direction instead of a sign."""
    assert [worse(each) for each in (0.05, -0.05, 0.0)] == ["5 % worse", "5 % better", "no worse"]


@pytest.mark.parametrize(
    ("values", "unit", "texts"),
    [
        ((2.0, 1.9), "s", ("2.00 s", "1.90 s")),
        ((0.2021, 0.1), "s", ("202 ms", "100 ms")),
        ((50.0, 50.01), "token/s", ("50.00 tokens/s", "50.01 tokens/s")),
        ((2.0**30, 1.5 * 2**30), "byte", ("1.00 GiB", "1.50 GiB")),
        ((2.0**30, 2.0**30 + 1024), "byte", ("1.000000 GiB", "1.000001 GiB")),
        ((20.0, 21.0), "1", ("20.0", "21.0")),
        ((0.0, 5.0), "J", ("0.00 J", "5.00 J")),
        ((12345678.0,), "1", ("1.23e+07",)),
    ],
)
def test_amounts_share_a_unit_and_have_the_digits_that_tell_them_apart(
    values: tuple[float, ...], unit: str, texts: tuple[str, ...]
) -> None:
    """Three digits, and more where two values would look the same."""
    assert amounts(values, unit) == texts


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (-0.0483, -0.0422, "-4.8 to -4.2 %"),
        (-0.0501, -0.0499, "-5.01 to -4.99 %"),
        (-0.8151, -0.1114, "-82 to -11 %"),
        (-0.00001, 0.00002, "0.00 to 0.00 %"),
        (0.0, 0.012, "0.0 to +1.2 %"),
    ],
)
def test_an_interval_has_the_digits_that_its_width_deserves(
    low: float, high: float, text: str
) -> None:
    """One unit for both ends, a sign on each, and none on nothing."""
    assert interval(low, high) == text


@pytest.mark.parametrize(
    ("p", "text"), [(0.00024414, "p = 0.00024"), (0.00005, "p < 0.0001"), (1.5, "p = 1")]
)
def test_a_chance_is_written_as_statisticians_do(p: float, text: str) -> None:
    """Without powers of ten."""
    assert chance(p) == text


def test_nobody_is_told_to_run_a_million_repetitions() -> None:
    """The number says no more than that it is too many."""
    assert (repetitions(1000), repetitions(1001)) == ("1000", "more than 1000")
