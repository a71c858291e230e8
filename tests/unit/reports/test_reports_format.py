"""Numbers as people read them."""

from __future__ import annotations

import pytest

from edgebench.harness.metrics.definitions import METRICS, metric
from edgebench.harness.results.cell import Summary
from edgebench.reports.format import duration, number, percent, quantity, scale_for, shown


def summary(median, low=None, high=None, unit="token/s"):
    return Summary(median=median, ci_low=low, ci_high=high, n=9, unit=unit, source="observed")


@pytest.mark.parametrize(
    ("median", "low", "high", "text"),
    [
        (52.345, 51.91, 52.84, "52.3 [51.9, 52.8]"),  # 0.93 wide: tenths
        (52.345, 51.7, 52.9, "52.3 [51.7, 52.9]"),  # 1.2 wide: a leading 1 keeps one more digit
        (52.345, 48.2, 57.1, "52 [48, 57]"),  # 8.9 wide: ones
        (52.346, 52.341, 52.349, "52.35 [52.34, 52.35]"),  # never more than four digits
        (1598.6, 1588.1, 1613.4, "1599 [1588, 1613]"),
        (0.0123, 0.0118, 0.0131, "0.0123 [0.0118, 0.0131]"),
        (52.345, None, None, "52.3"),  # no interval: three digits
        (98_765.4, None, None, "98\u202f765"),
        (0.0, 0.0, 0.0, "0"),
        (7.0, 7.0, 7.0, "7.00"),  # nothing varied: no interval to show
        (None, None, None, "–"),
    ],
)
def test_the_interval_decides_the_digits(median, low, high, text):
    """A median is shown as exactly as its interval justifies."""
    assert str(shown(summary(median, low, high), scale_for("token/s", [median]))) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0752, "s", "75.2 ms"),
        (2.5, "s", "2.50 s"),
        (0.0000421, "s", "42.1 µs"),
        (2**30 * 1.5, "byte", "1.50 GiB"),
        (92 * 2**20, "byte", "92.0 MiB"),
        (512, "byte", "512 B"),
        (3_200_000_000, "Hz", "3.20 GHz"),
        (0.25, "J/token", "250 mJ/token"),
        (51.5, "°C", "51.5 °C"),
        (17, "1", "17"),
        (0, "s", "0 s"),
        (None, "s", "–"),
    ],
)
def test_a_quantity_has_the_unit_that_fits(value, unit, text):
    """One value is written with the prefix that keeps it short."""
    assert quantity(value, unit) == text


def test_a_column_has_one_unit():
    """Values of one column are not to be compared across units."""
    assert scale_for("s", [0.080, 0.075, 1.4]).unit == "ms"
    assert scale_for("s", [None, None]).unit == "s"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(14.8, "14.8 s"), (60, "1 min"), (125, "2 min 5 s"), (3600, "1 h"), (5400, "1 h 30 min")],
)
def test_durations(seconds, text):
    """Wall times are written in the units of a clock."""
    assert duration(seconds) == text


def test_percent():
    """A share is a percentage with a space, as the SI asks."""
    assert percent(0.025) == "2.5 %"


def test_every_metric_is_defined():
    """A metric has a name, a unit and a definition that ends as a sentence."""
    for key, known in METRICS.items():
        assert known.key == key
        assert known.unit
        assert known.label
        assert known.definition.endswith(".")
    assert metric("decode_rate").better == "higher"
    assert metric("ttft_s").better == "lower"


def test_an_engines_own_figure_is_told_from_ours():
    """A key that starts with engine_ is the framework's figure of that metric."""
    own = metric("engine_decode_rate")
    assert own.label == "Decode rate, by the engine"
    assert own.unit == "token/s"
    assert own.better == "higher"


@pytest.mark.parametrize("key", ["", "engine_", "engine_unheard", "_", "unheard_of"])
def test_an_unknown_metric_never_fails(key):
    """A figure from a newer edgebench is shown under its own name."""
    unknown = metric(key)
    assert unknown.key == key
    assert unknown.better is None


def test_a_number_is_grouped_by_what_it_is_rounded_to():
    """9999.99999 without decimals is written as 10 000 is; 9999.4 stays as it is."""
    assert number(9999.9999999, 0) == number(10_000.0, 0) == "10\u202f000"
    assert number(-9999.9999999, 0) == "-10\u202f000"
    assert number(9999.4, 0) == "9999"
