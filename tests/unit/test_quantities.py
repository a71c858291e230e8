"""Amounts as people write them."""

from __future__ import annotations

import pytest

from edgebench.harness.metrics.definitions import METRICS
from edgebench.harness.scenario.quantities import amount, is_amount, share, units_of


@pytest.mark.parametrize(
    ("text", "value"),
    [("5%", 0.05), ("5 %", 0.05), ("0.5%", 0.005), (".5%", 0.005), ("29%", 0.29), ("150%", 1.5)],
)
def test_a_share_in_percent(text: str, value: float) -> None:
    """The number nearest to the decimal one, not a product of two."""
    assert share(text) == value


@pytest.mark.parametrize("text", ["5", "", "%", "-5%", "5%%", "1e3%", "five %", f"{'9' * 400}%"])
def test_what_is_no_share(text: str) -> None:
    """No sign, no exponent, no text."""
    assert share(text) is None


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("2s", "s", 2.0),
        ("2 s", "s", 2.0),
        ("350ms", "s", 0.35),
        ("1.5 min", "s", 90.0),
        ("1GiB", "byte", 2.0**30),
        ("1 GB", "byte", 1e9),
        ("12 tokens/s", "token/s", 12.0),
        ("98 %", "1", 0.98),
        ("4 mJ/token", "J/token", 0.004),
    ],
)
def test_an_amount_in_the_unit_that_results_are_stored_in(
    text: str, unit: str, value: float
) -> None:
    """Units are converted."""
    assert amount(text, unit) == pytest.approx(value, rel=1e-15)
    assert is_amount(text)


@pytest.mark.parametrize(("text", "unit"), [("2s", "byte"), ("1GiB", "s"), ("2 x", "s"), ("", "s")])
def test_an_amount_of_something_else(text: str, unit: str) -> None:
    """A unit that does not fit is no amount."""
    assert amount(text, unit) is None


def test_every_metric_with_a_unit_can_be_written_with_it() -> None:
    """No metric is in a unit that nobody can write, but counts and temperatures."""
    without = {each.unit for each in METRICS.values() if not units_of(each.unit)}
    assert without <= {"character", "°C"}
