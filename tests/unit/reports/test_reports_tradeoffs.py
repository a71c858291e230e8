"""Quality against what it costs: the table of quantisations, and who is dominated by whom."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from sample_quality import by_windows, rate
from sample_run import handmade, sha256

from edgebench.harness.results.cell import Summary
from edgebench.harness.results.model import Artifact
from edgebench.harness.results.quality import WindowRecord
from edgebench.harness.results.run import Run
from edgebench.reports.data import build_report_data
from edgebench.reports.dominance import Place, dominating
from edgebench.reports.pareto import dominated_sentence, fronts, kept_sentences
from edgebench.reports.pareto_plot import front_plot
from edgebench.reports.point_labels import MARKER, place_labels
from edgebench.reports.quantization import NOT_TOLD, quantization_table
from edgebench.reports.sentences import plain

EXACT = [WindowRecord(tokens=10, bytes=40, log_likelihood=-10 * math.log(8))] * 8
MIB = 2**20
RATES = (10.0, 11.0, 9.0, 10.5, 9.5)


def data_of(variants, *, reference=EXACT, energy=False):
    """A run of variants, each (runner, quantisation, size in MiB, read in MiB, speed, loss).

    A size also is the variant's peak of memory; a loss of None is a text that was not rated.
    """
    metrics = {
        name: {
            "decode_rate": [each * speed for each in RATES],
            "peak_rss_bytes": [float(size * MIB)] * 5,
            **({"energy_per_token_j": [1 / speed] * 5} if energy else {}),
        }
        for name, (_, _, size, _, speed, _) in variants.items()
    }
    record, trials = handmade(metrics, units={"energy_per_token_j": "J/token"})
    windows = {
        name: rate(reference or EXACT, loss)
        for name, (*_, loss) in variants.items()
        if loss is not None
    }
    workload, rated = by_windows(windows, reference, name="text")
    given = [
        each.model_copy(
            update={
                "runner": variants[each.id][0],
                "quantization": variants[each.id][1],
                "artifact": Artifact(
                    name=each.id,
                    sha256=sha256(each.id),
                    bytes=variants[each.id][2] * MIB,
                    parameters=4 * MIB,
                    weight_bytes_per_token=variants[each.id][3] and variants[each.id][3] * MIB,
                    made_by="hand",
                ),
            }
        )
        for each in record.variants
    ]
    record = record.model_copy(
        update={"variants": given, "workloads": [*record.workloads, workload]}
    )
    return build_report_data(Run(Path("made-up"), record, (*trials, *rated)))


def rows_of(found):
    return {
        row.variant: {
            column.key: f"{value.text} {value.interval}".strip()
            for column, value in zip(found.table.columns, row.values, strict=True)
        }
        for row in found.table.rows
    }


BOTH = {
    "whole": ("llama.cpp", "F16", 8, 8, 1.0, 0.0),
    "small": ("mnn", "int4", 2, 3, 2.5, math.log(1.1)),
}


def test_everything_is_relative_to_the_variant_in_sixteen_bits():
    """By hand: 1.1 times the perplexity, 2.5 times as fast, 3 of 8 MiB read."""
    found = quantization_table(data_of(BOTH))
    rows = rows_of(found)
    assert list(rows) == ["llama.cpp: F16", "mnn: int4"]
    small, whole = rows["mnn: int4"], rows["llama.cpp: F16"]
    assert small["model_bytes"] == "2.00"
    assert small["bits_per_weight"] == "4.00"  # 2 MiB of 8 bits for 4 Mi weights
    assert small["perplexity"].startswith("8.800")
    assert small["perplexity_change"].startswith("+10.0")
    assert small["relative_speed"].startswith("2.50")
    assert small["relative_read"] == "37.5"
    assert whole["relative_speed"] == "1.00"
    assert whole["relative_read"] == "100"
    assert whole["perplexity_change"] == "0.00"
    assert "The base is llama.cpp: F16." in found.notes


def test_the_ratio_of_speeds_is_paired_within_blocks():
    """Rates that drift by a fifth between blocks have a ratio that does not drift at all."""
    found = quantization_table(data_of(BOTH))
    assert rows_of(found)["mnn: int4"]["relative_speed"] == "2.50"


@pytest.mark.parametrize(
    ("formats", "base"),
    [
        (("q8_0", "fp32", "BF16", "f16"), "bf16"),
        (("q8_0", "F32", "int4", "q4_0"), "f32"),
        (("int4", "q0f32", "q0f16", "fp16"), "q0f16"),
    ],
)
def test_the_base_is_the_first_in_sixteen_bits_else_in_thirty_two(formats, base):
    """In whatever letters it is written."""
    variants = {
        f"v{place}": ("mlc", name, 8, 8, 1.0, 0.1 * place) for place, name in enumerate(formats)
    }
    notes = quantization_table(data_of(variants)).notes
    assert f"The base is mlc: {base}.".lower() in [note.lower() for note in notes]


def test_a_base_that_was_rated_goes_before_one_that_was_not():
    """Two in 16 bits, of which the first gives no likelihoods."""
    variants = {"mute": ("mediapipe", "fp16", 8, None, 1.0, None), **BOTH}
    found = quantization_table(data_of(variants))
    assert "The base is llama.cpp: F16." in found.notes
    assert rows_of(found)["mediapipe: fp16"]["perplexity_change"] == "–"
    assert rows_of(found)["mediapipe: fp16"]["relative_read"] == "–"
    assert NOT_TOLD in found.table.footnotes


def test_without_a_base_the_reference_is_what_perplexities_are_compared_with():
    """Speed and bandwidth then have no column, and a note says why."""
    variants = {
        "a": ("llama.cpp", "q8_0", 4, 4, 1.0, math.log(1.02)),
        "b": ("llama.cpp", "q4_0", 2, 2, 2.0, math.log(1.1)),
    }
    found = quantization_table(data_of(variants))
    assert rows_of(found)["llama.cpp: q8_0"]["perplexity_change"].startswith("+2.00")
    assert not {"relative_speed", "relative_read"} & set(rows_of(found)["llama.cpp: q8_0"])
    assert "No variant is in 16 or 32 bits, so there is no base for speed and bandwidth." in (
        found.notes
    )
    assert not any(note.startswith(("Speed is", "Bandwidth need")) for note in found.notes)
    column = next(each for each in found.table.columns if each.key == "perplexity_change")
    assert column.label == "Perplexity against the reference"


def test_one_format_alone_has_no_table():
    """Two frameworks in the same format compare no quantisations."""
    variants = {"a": ("x", "q8_0", 4, 4, 1.0, 0.1), "b": ("y", "q8_0", 4, 4, 1.0, 0.1)}
    assert quantization_table(data_of(variants)) is None


def test_variants_of_one_format_are_told_apart_by_their_names():
    """A sweep of threads is not three rows of the same name."""
    variants = {**BOTH, "small two": ("mnn", "int4", 2, 3, 2.0, 0.1)}
    assert list(rows_of(quantization_table(data_of(variants)))) == [
        "llama.cpp: F16",
        "small",
        "small two",
    ]


PLANE = {
    "exact": ("a", "f16", 8, 8, 1.0, 0.0),
    "middle": ("a", "q8", 4, 4, 2.0, 0.1),
    "beaten": ("b", "q8", 5, 4, 1.5, 0.2),
    "fast": ("a", "q4", 3, 2, 4.0, 0.3),
    "small": ("b", "q3", 2, 2, 3.0, 0.4),
}


def test_dominated_is_who_is_beaten_in_both():
    """By hand: `beaten` by `middle` in both planes; `small` by `fast` where speed counts."""
    found = fronts(data_of(PLANE))
    speed, memory = found.fronts
    assert (speed.key, memory.key) == ("decode_rate", "peak_rss_bytes")
    by = {point.variant: point.dominated_by for point in speed.points}
    assert by == {"exact": "", "middle": "", "beaten": "middle", "fast": "", "small": "fast"}
    by = {point.variant: point.dominated_by for point in memory.points}
    assert by == {"exact": "", "middle": "", "beaten": "middle", "fast": "", "small": ""}
    assert [point.variant for point in speed.best] == ["exact", "middle", "fast"]
    assert [point.variant for point in memory.best] == ["small", "fast", "middle", "exact"]
    assert [name for _, name, dominated in found.numbers if dominated] == ["beaten"]


def test_the_front_in_words():
    """Who is kept, from the best quality on, and who is dominated by whom."""
    speed, _ = fronts(data_of(PLANE)).fronts
    assert [plain(each) for each in kept_sentences(speed)] == [
        "exact at 10 tokens/s, perplexity 8.000",
        "middle at 20 tokens/s, perplexity 8.841",
        "fast at 40 tokens/s, perplexity 10.80",
    ]
    assert plain(dominated_sentence(speed)) == "Dominated: beaten by middle; small by fast."


def test_equals_do_not_dominate_each_other():
    """Two variants with the same values are both on the front."""
    twins = {"a": ("x", "f16", 4, 4, 1.0, 0.1), "b": ("y", "q8", 4, 4, 1.0, 0.1)}
    for front in fronts(data_of(twins)).fronts:
        assert [point.dominated_by for point in front.points] == ["", ""]


def test_energy_has_a_plane_where_it_was_measured():
    """And none where no meter was there."""
    assert [each.key for each in fronts(data_of(PLANE, energy=True)).fronts][2:] == [
        "energy_per_token_j"
    ]
    assert len(fronts(data_of(PLANE)).fronts) == 2


def test_who_has_no_perplexity_is_not_drawn_and_said_not_to_be():
    """A variant without a value is named below the plots."""
    found = fronts(data_of({**PLANE, "mute": ("c", "q8", 4, 4, 9.0, None)}))
    assert "mute" not in {point.variant for front in found.fronts for point in front.points}
    assert "mute has no perplexity." in found.notes


def test_bars_are_of_the_difference_to_the_reference():
    """All windows lose alike, so the paired bar has no width; the text's interval would."""
    front = fronts(data_of(PLANE)).fronts[0]
    point = front.points[1]
    assert (point.low, point.high) == pytest.approx((point.perplexity, point.perplexity))


def test_one_point_is_no_plane():
    """A single variant with both values is compared with nothing."""
    assert fronts(data_of({**BOTH, "whole": ("x", "f16", 8, 8, 1.0, None)})) is None


def test_the_plot_names_everything_for_those_who_cannot_see_it():
    """Title, numbers, values and which way is better; every number is written once."""
    found = fronts(data_of(PLANE))
    speed, memory = found.fronts
    plot = front_plot(found, speed, name="front-0")
    root = ET.fromstring(plot.svg)
    description = next(each.text for each in root.iter() if each.tag.endswith("desc"))
    assert "3, beaten: 15 tokens/s, perplexity 9.771, dominated" in description
    written = [each.text for each in root.iter() if each.tag.endswith("text")]
    assert "decode rate, tokens/s (→ better)" in written
    assert "perplexity against the reference, % (↓ better)" in written
    assert "peak memory, MiB (← better)" in front_plot(found, memory, name="front-1").svg
    assert not re.search(r'style="', plot.svg)


def places_of(svg, what):
    """The height in the picture of each of its tick labels or points, from the top."""
    root = ET.fromstring(svg)
    if what == "ticks":
        texts = [each for each in root.iter() if each.tag.endswith("text")]
        return {each.text: float(each.get("y") or 0) for each in texts}
    uses = [each for each in root.iter() if each.tag.endswith("use")]
    return sorted(float(each.get("y")) for each in uses if "var(--" in each.get("fill", ""))


def test_small_and_large_changes_both_have_room():
    """Losses of 0.2, 2 and 20 % lie equally far apart beside a model that fell to pieces."""
    losses = {"a": 0.002, "b": 0.02, "c": 0.2, "broken": math.expm1(6)}
    variants = {
        name: ("x", name, 8, 8, 1.0 + place, math.log1p(loss))
        for place, (name, loss) in enumerate(losses.items())
    }
    found = fronts(data_of(variants))
    svg = front_plot(found, found.fronts[0], name="front").svg
    assert {"+1", "+10", "+100", "+1000", "+10000"} <= set(places_of(svg, "ticks"))
    *_, c, b, a = places_of(svg, "points")
    assert a - b == pytest.approx(b - c, abs=0.1)
    assert a - b > 20


def test_ticks_keep_their_digits():
    """Perplexities that differ by hundredths of a percent have an axis that shows it."""
    close = {f"v{n}": ("x", f"q{n}", n, n, float(n), 0.00002 * n) for n in range(1, 7)}
    found = fronts(data_of(close))
    ticks = places_of(front_plot(found, found.fronts[0], name="front").svg, "ticks")
    assert sum(bool(re.fullmatch(r"\+0\.0\d+", tick)) for tick in ticks) >= 2


def test_without_a_reference_the_lowest_is_the_measure():
    """The best one then is at 0."""
    found = fronts(data_of(BOTH, reference=None))
    assert (found.whole, found.against) == (pytest.approx(8), "the lowest")
    assert "perplexity against the lowest, %" in front_plot(found, found.fronts[0], name="f").svg


def test_too_few_windows_tell_nobody_to_be_dominated():
    """Five windows: the points are drawn without a line, and the words say why."""
    found = fronts(data_of(PLANE, reference=EXACT[:5]))
    for front in found.fronts:
        assert [point.dominated_by for point in front.points] == [""] * 5
        assert front.best == front.line == ()
        assert len(kept_sentences(front)) == 5
        assert not dominated_sentence(front)
        assert ", dominated" not in front_plot(found, front, name="front").svg
    assert found.notes[0] == (
        "Which variants are dominated is not known: to tell perplexities apart needs 6 windows, "
        "there are 5."
    )


def test_only_bars_that_are_drawn_are_explained():
    """All windows lose alike, so no bar is upright; without intervals of costs none is level."""
    found = fronts(data_of(PLANE))
    assert "the level ones of the median" in found.bars
    assert "upright" not in found.bars
    alone = replace(found, fronts=(without_intervals(found.fronts[0]),))
    assert "Bars" not in alone.bars


def without_intervals(front):
    points = [
        replace(each, cost=each.cost.model_copy(update={"ci_low": None, "ci_high": None}))
        for each in front.points
    ]
    return replace(front, points=tuple(points))


def cost(median, *ends):
    low, high = ends or (None, None)
    reason = None if ends else "an interval needs 5 blocks, there are 3"
    return Summary(
        median=median, ci_low=low, ci_high=high, n=3, unit="x", source="observed", reason=reason
    )


def place(of_cost, losses):
    """Windows of 10 tokens that lose so many nat a token each."""
    windows = tuple(WindowRecord(tokens=10, log_likelihood=-10 * each) for each in losses)
    return Place(of_cost, math.exp(sum(losses) / len(losses)), windows)


LEVEL = [2.0, 2.1, 1.9, 2.0, 2.2, 1.8, 2.0, 2.0]
"""Of mean 2."""

NOISE = [0.3, -0.3, 0.2, -0.2, 0.3, -0.3, 0.2, -0.1]
"""Of mean 0.0125, far from telling anything."""


def noisy(change=0.0):
    return [one + two + change for one, two in zip(LEVEL, NOISE, strict=True)]


@pytest.mark.parametrize(
    ("other", "dominated"),
    [
        # Worse by 1.3 % of perplexity, but no test can tell; faster for certain.
        (place(cost(20, 19, 21), noisy()), True),
        # The same, and rates can't be told apart either.
        (place(cost(11, 9.5, 12), noisy()), False),
        # Lower in every window by as much, at the same rate.
        (place(cost(11, 9.5, 12), [each - 0.0125 for each in LEVEL]), True),
        # Worse in every window by as little: a trade.
        (place(cost(20, 19, 21), [each + 0.0125 for each in LEVEL]), False),
        # Without intervals, 2 % of rate are no difference and 3 % are one.
        (place(cost(10.2), LEVEL), False),
        (place(cost(10.31), LEVEL), True),
    ],
)
def test_dominated_is_only_who_is_worse_beyond_doubt(other, dominated):
    """Against a variant at 10 (9 to 11) with the plain windows."""
    base = place(cost(10, 9, 11), LEVEL)
    found = dominating({"base": base, "other": other}, higher=True)
    assert found == {"base": "other" if dominated else "", "other": ""}


def test_with_five_windows_one_percent_is_no_difference():
    """No interval can be had of so few."""
    base, near, far = (place(cost(10, 9, 11), [loss] * 5) for loss in (2.0, 1.991, 1.989))
    assert dominating({"base": base, "near": near}, higher=True) == {"base": "", "near": ""}
    assert dominating({"base": base, "far": far}, higher=True) == {"base": "far", "far": ""}


def test_equal_is_no_chain():
    """a equals b and b equals c in cost, yet a is better than c: c alone is dominated."""
    places = {
        "a": place(cost(12, 11, 13), LEVEL),
        "b": place(cost(10.5, 9.5, 11.5), LEVEL),
        "c": place(cost(9, 8, 10), LEVEL),
    }
    assert dominating(places, higher=True) == {"a": "", "b": "", "c": "a"}


def test_a_circle_has_no_losers():
    """a beats b and b beats c in memory, c beats d and d beats a in quality, all else is equal.

    d's memory is so uncertain that it equals all, and b's losses are.
    """
    places = {
        "a": place(cost(1, 0.5, 1.2), [each + 0.01 for each in LEVEL]),
        "b": place(cost(2, 1.5, 2.5), noisy()),
        "c": place(cost(4, 3, 5), [each - 0.01 for each in LEVEL]),
        "d": place(cost(2, 1, 3.5), LEVEL),
    }
    assert set(dominating(places, higher=False).values()) == {""}
    del places["d"]
    assert dominating(places, higher=False) == {"a": "", "b": "a", "c": "b"}


def boxes(middles, sizes):
    return [
        (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        for (x, y), (width, height) in zip(middles, sizes, strict=True)
    ]


def overlap(one, other):
    return (
        min(one[2], other[2]) > max(one[0], other[0]) + 1e-9
        and min(one[3], other[3]) > max(one[1], other[1]) + 1e-9
    )


def test_no_number_covers_another_one_or_a_point():
    """Fourteen points in a corner: every number has a place of its own, inside of the frame."""
    points = [(40 + 9 * (place % 4), 40 + 9 * (place // 4)) for place in range(14)]
    sizes = [(14.0, 10.5)] * 14
    placed = boxes(place_labels(points, sizes, (0, 0, 300, 240)), sizes)
    marks = [(x - MARKER, y - MARKER, x + MARKER, y + MARKER) for x, y in points]
    for place, box in enumerate(placed):
        assert box[0] >= 0
        assert box[1] >= 0
        assert not any(overlap(box, other) for other in placed[:place])
        assert not any(overlap(box, mark) for mark in marks)


def test_a_number_leaves_the_line_free():
    """The nearest place would be on it."""
    point, size = (100.0, 100.0), (8.0, 10.0)
    corners = [(100.0, 200.0), (100.0, 100.0), (200.0, 100.0), (200.0, 107.0), (90.0, 107.0)]
    (box,) = boxes(place_labels([point], [size], (0, 0, 300, 240), corners), [size])
    assert not overlap(box, (99.0, 100.0, 101.0, 200.0))
    assert not overlap(box, (100.0, 99.0, 200.0, 101.0))
    assert not overlap(box, (90.0, 106.0, 200.0, 108.0))
