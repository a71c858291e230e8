"""The pictures: one colour a framework, what is drawn of many variants, and what is computed."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sample_quality import quality_sample
from sample_run import handmade, llama_variant, sha256

from edgebench.harness.results.model import Artifact, VariantRecord
from edgebench.harness.results.run import Run
from edgebench.harness.results.trial import Tokens
from edgebench.reports import bars, picture, plots
from edgebench.reports.colours import framework_colours
from edgebench.reports.data import Part, build_report_data
from edgebench.reports.languages import language
from edgebench.reports.pareto import fronts
from edgebench.reports.point_labels import MOST_NUMBERS, place_labels
from edgebench.reports.roofline import rooflines
from edgebench.reports.table import comparison_rows

STYLE = Path(__file__).parents[3] / "reports" / "templates" / "style.css"
MIB = 2**20
SVG = "{http://www.w3.org/2000/svg}"

# Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision
# deficiency", IEEE TVCG 15 (6), 2009: severity 1.0, for linear RGB.
VISIONS = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
APART = 0.095
"""In OKLab, where black and white are 1 apart: some five times what an eye just tells apart."""


def linear(colour):
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    """Ottosson, "A perceptual color space for image processing", 2020, from linear RGB."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    mixed = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return mixed @ np.cbrt(cones @ rgb)


def distance(one, other, vision):
    matrix = VISIONS[vision]
    seen = [oklab(np.clip(matrix @ linear(each), 0, 1)) for each in (one, other)]
    return float(np.linalg.norm(seen[0] - seen[1]))


def palettes():
    """The variables of the style sheet, by colour scheme."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE.read_text(encoding="utf-8"), re.DOTALL)
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]
    return dict(zip(("light", "dark", "print"), found, strict=True))


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_no_two_frameworks_look_alike_to_anyone(scheme, vision):
    """Also to who lacks the cones for red or for green."""
    colours = [palettes()[scheme][f"s{number}"] for number in range(1, 9)]
    close = {
        pair: apart
        for pair in combinations(colours, 2)
        if (apart := distance(*pair, vision)) < APART
    }
    assert close == {}


def test_the_check_sees_what_colour_blindness_hides():
    """A red and a green that everyone else tells apart would not do."""
    assert distance("#c0392b", "#6b7a1f", "usual") > APART
    assert distance("#c0392b", "#6b7a1f", "deuteranopia") < APART


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_every_colour_stands_out_from_the_page(scheme):
    """At least 3:1, as WCAG 2.2 asks of graphics (1.4.11)."""
    palette = palettes()[scheme]
    weights = np.array([0.2126, 0.7152, 0.0722])
    ground = float(weights @ linear(palette["surface"]))
    for number in range(1, 9):
        light = float(weights @ linear(palette[f"s{number}"]))
        high, low = max(light, ground), min(light, ground)
        assert (high + 0.05) / (low + 0.05) >= 3, number


def data_of(record, trials):
    return build_report_data(Run(Path("made-up"), record, tuple(trials)))


@pytest.fixture(scope="module")
def quality_data():
    """Fourteen variants of four frameworks."""
    sample = quality_sample()
    return data_of(sample.record(), sample.trials())


def colours_in(svg):
    """The series' colours that an SVG is drawn in."""
    return set(re.findall(r"var\(--(s\d)\)", svg))


def test_a_framework_has_the_same_colour_everywhere(quality_data):
    """Of MNN alone, every picture is drawn in MNN's colour and in no other framework's."""
    own = [each for each in quality_data.record.variants if each.runner == "mnn"]
    record = quality_data.record.model_copy(update={"variants": own})
    names = {each.id for each in own}
    trials = [each for each in quality_data.run.trials if each.variant in names]
    data = data_of(record, trials)
    found = fronts(data)
    drawn = [
        *plots.bar_plots(data, comparison_rows(data)[0], name="b"),
        *plots.token_plots(data),
        *plots.memory_plots(data, "chat", name="m"),
        *plots.roofline_plots(data, name="r"),
        *(plots.front_plot(found, each, name=each.key) for each in found.fronts),
    ]
    assert len(drawn) == 4 + 2 + 3 + 1 + 2
    assert {frozenset(colours_in(each.svg)) for each in drawn} == {frozenset({"s2"})}


def test_who_else_comes_has_a_colour_of_its_own():
    """Frameworks that edgebench does not know share none with those that it does."""
    variants = [
        VariantRecord(id=name, runner=name, quantization="q")
        for name in ("fake", "mnn", "llama.cpp", "another", "mlc")
    ]
    assert framework_colours(variants) == {
        "fake": "s5",
        "mnn": "s2",
        "llama.cpp": "s1",
        "another": "s6",
        "mlc": "s4",
    }


def test_another_engine_behind_a_runner_is_not_drawn_as_it():
    """What TVM does when edgebench builds it is not MLC's own."""
    variants = [
        VariantRecord(id="a", runner="mlc", quantization="q"),
        VariantRecord(id="b", runner="mlc", quantization="q", framework="TVM, built by edgebench"),
    ]
    assert framework_colours(variants) == {"a": "s4", "b": "s5"}


def test_variants_of_one_framework_differ_by_their_dashes(quality_data):
    """Five of llama.cpp: one colour and marker, five kinds of line."""
    looks = picture.looks(quality_data.record.variants)
    own = [look for variant, look in looks.items() if variant.startswith("llama.cpp ")]
    assert {(look.style, look.marker) for look in own} == {("s1", "o")}
    assert len({look.dashes for look in own}) == len(own) == 5


def test_of_many_lines_each_framework_has_its_fastest(quality_data):
    """By hand: the first of each of the four, then the second of the two that come first."""
    ranked = ["mlc q4f16_1 threads=2", *(f"llama.cpp {each} threads=2" for each in ("f16", "q8_0"))]
    ranked += ["mnn int4 threads=2", "mlc q0f16 threads=2", "mnn int8 threads=2"]
    assert picture.some_of_each(quality_data, ranked, 4) == [
        "llama.cpp f16 threads=2",
        "llama.cpp q8_0 threads=2",
        "mnn int4 threads=2",
        "mlc q4f16_1 threads=2",
    ]


def texts_of(svg):
    return [each.text for each in ET.fromstring(svg).iter(f"{SVG}text")]


def plot_of(found, title):
    return next(each for each in found if each.title == title)


def test_bars_go_from_the_best_to_what_was_not_measured(by_hand):
    """Highest rate first, shortest time first; without a value last, and said so."""
    data = by_hand(
        {
            "slow": {"decode_rate": [10.0] * 5, "ttft_s": [0.1] * 5},
            "mute": {"decode_rate": [None] * 5, "ttft_s": [None] * 5},
            "fast": {"decode_rate": [40.0] * 5, "ttft_s": [0.3] * 5},
        }
    )
    found = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    rate, ttft = (
        texts_of(plot_of(found, name).svg) for name in ("Decode rate", "Time to first token")
    )
    assert rate == ["fast", "40.0", "slow", "10.0", "mute", "not measured"]
    assert ttft == ["slow", "100", "fast", "300", "mute", "not measured"]


def test_what_nobody_measured_has_no_picture(by_hand):
    """Empty rows say less than the reason in the table."""
    data = by_hand({"A": {"decode_rate": [50.0] * 5}, "B": {"decode_rate": [40.0] * 5}})
    found = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    assert [each.title for each in found] == ["Decode rate"]


def test_a_bar_is_as_long_as_its_value(by_hand):
    """40 and 10 tokens/s: four to one, from the left edge on."""
    data = by_hand({"A": {"decode_rate": [40.0] * 5}, "B": {"decode_rate": [10.0] * 5}})
    (plot,) = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    widths = [width for left, width in spans(plot.svg, "var(--s5)")]
    assert widths[0] / widths[1] == pytest.approx(4, rel=1e-3)
    assert {left for left, _ in spans(plot.svg, "var(--s5)")} == {0.0}


def spans(svg, fill):
    """Left edge and width of each path of a colour."""
    found = []
    for path in ET.fromstring(svg).iter(f"{SVG}path"):
        if path.get("fill") == fill:
            along = [float(x) for x, _ in re.findall(r"[ML] ([\d.-]+) ([\d.-]+)", path.get("d"))]
            found.append((min(along), max(along) - min(along)))
    return found


def test_memory_is_split_by_strength_of_one_colour(by_hand):
    """60 of 100 MiB anonymous, 40 mapped: two parts of the framework's colour, one weaker."""
    parts = {"peak_rss_bytes": 100, "peak_anon_bytes": 60, "peak_file_bytes": 40}
    units = dict.fromkeys(parts, "byte")
    data = by_hand(
        {name: {key: [float(each * MIB)] * 5 for key, each in parts.items()} for name in "AB"},
        units=units,
    )
    (plot,) = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    assert [label for label, *_ in plot.legend] == ["anonymous", "file-backed", "shared"]
    drawn = spans(plot.svg, "var(--s5)")
    assert len(drawn) == 4
    (begin, anonymous), (then, mapped) = drawn[:2]
    assert (begin, anonymous / mapped) == (0.0, pytest.approx(1.5, rel=1e-3))
    assert then == pytest.approx(anonymous, abs=0.02)
    strengths = [
        each.get("opacity", "1")
        for each in ET.fromstring(plot.svg).iter(f"{SVG}path")
        if each.get("fill") == "var(--s5)"
    ]
    assert strengths[:2] == ["1", "0.55"]


def test_one_repetition_has_a_bar_without_an_interval(by_hand):
    """No line of an interval is drawn, and none is written."""
    data = by_hand({"A": {"decode_rate": [50.0]}, "B": {"decode_rate": [40.0]}})
    (plot,) = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    assert texts_of(plot.svg) == ["A", "50.0", "B", "40.0"]
    assert 'stroke="var(--ink)"' not in plot.svg


@pytest.fixture(scope="module")
def crowd():
    """500 variants, of which v1 is the slowest and v500 the fastest."""
    record, trials = handmade(
        {f"v{number}": {"decode_rate": [float(number)]} for number in range(1, 501)}
    )
    return data_of(record, trials)


def test_of_500_variants_the_best_forty_are_drawn(crowd):
    """The others are counted; the table has them."""
    (plot,) = plots.bar_plots(crowd, comparison_rows(crowd)[0], name="b")
    names = [text for text in texts_of(plot.svg) if text.startswith("v")]
    assert names == [f"v{number}" for number in range(500, 460, -1)]
    assert "the best 40 are drawn; 460 more variants are in the table" in plot.remark
    assert len(plot.svg) < 60_000


def test_forty_and_one_is_said_in_the_singular(by_hand):
    """As a reader would say it."""
    data = by_hand({f"v{number}": {"decode_rate": [float(number)]} for number in range(1, 42)})
    (plot,) = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    assert plot.remark.endswith(
        f"the best {bars.MOST_BARS} are drawn; 1 more variant is in the table"
    )


LONG = {
    "latin": "W" * 200,
    "path": "/models/" + "very-long-folder-name/" * 9 + "Q4_0.gguf",
    "chinese": "模型" * 100,
    "arabic": "نموذج " * 33,
    "markup": '<script>alert("x")</script>&amp;' * 7,
}


@pytest.mark.parametrize("kind", LONG)
def test_a_long_name_leaves_room_for_its_value(by_hand, kind):
    """Beside a value with its interval; begin and end are kept, markup is text."""
    name = LONG[kind]
    data = by_hand(
        {name: {"decode_rate": [50.1, 49.2, 52.3, 47.4, 50.5]}, "B": {"decode_rate": [9.0]}}
    )
    (plot,) = plots.bar_plots(data, comparison_rows(data)[0], name="b")
    label, value = texts_of(plot.svg)[:2]
    assert picture.text_width(label) + picture.text_width(value) <= picture.WIDTH / bars.CHARACTER
    assert label.startswith(name[:4])
    assert "…" in label
    assert "<script" not in plot.svg


def test_text_stays_text(quality_data):
    """Nothing is drawn as outlines of letters, so it can be read, found and copied."""
    found = fronts(quality_data)
    drawn = [
        plots.gap_plot(quality_data, "chat", name="g"),
        plots.time_plot(quality_data, "chat", name="t"),
        plots.roofline_plot(quality_data, name="r"),
        plots.front_plot(found, found.fronts[0], name="f"),
    ]
    for plot in drawn:
        root = ET.fromstring(plot.svg)
        assert len(list(root.iter(f"{SVG}text"))) >= 6
        assert not any("DejaVu" in (each.get("id") or "") for each in root.iter())


def generation(variant, stamps_ns, **changes):
    _, (trial, *_) = handmade({variant: {"decode_rate": [1.0]}})
    tokens = Tokens(
        prompt_tokens=4,
        generated_ids=[1] * len(stamps_ns),
        token_ns=stamps_ns,
        finish_reason="length",
    )
    return trial.model_copy(update={"tokens": tokens, **changes})


def test_when_tokens_came_is_the_median_over_generations():
    """By hand, of three generations of which the last stopped after its second token."""
    stamps = [[1, 2, 5], [3, 5, 7], [2, 2, 0]]
    record, _ = handmade({"A": {"decode_rate": [1.0]}})
    data = data_of(
        record,
        [
            generation("A", [round(each * 1e9) for each in stamps[0]]),
            generation("A", [round(each * 1e9) for each in stamps[1]], block=1),
            generation("A", [round(each * 1e9) for each in stamps[2][:2]], block=2),
        ],
    )
    gaps = data.series.gaps["w", "A"]
    assert gaps.first_s == 2.0
    assert gaps.at_s.tolist() == [2.0, 6.0]
    assert gaps.median_s.tolist() == [1.0, 2.5]
    assert gaps.token.tolist() == [2.0, 3.0]
    assert gaps.repetitions == 3


def test_latency_over_time_says_when_the_first_token_came(quality_data):
    """In words too; and how many variants are not drawn."""
    plot = plots.time_plot(quality_data, "chat", name="t")
    first = quality_data.series.gaps["chat", "mnn int4 threads=2"].first_s
    description = next(each.text for each in ET.fromstring(plot.svg) if each.tag == f"{SVG}desc")
    assert f"mnn int4 threads=2: {first * 1000:.1f} ms" in description
    assert plot.remark.endswith(
        "8 more variants are not drawn: the fastest of each framework go first"
    )
    assert len(plot.legend) == 6


def artifact(name, parameters, read):
    return Artifact(
        name=name,
        sha256=sha256(name),
        bytes=1,
        parameters=parameters,
        weight_bytes_per_token=read,
        made_by="hand",
    )


def with_artifacts(values, artifacts):
    record, trials = handmade(values)
    variants = [
        each.model_copy(update={"artifact": artifacts.get(each.id)}) for each in record.variants
    ]
    return record.model_copy(update={"variants": variants}), trials


RATES = {
    "light": {"decode_rate": [10.0] * 5, "prefill_rate": [60.0] * 5},
    "heavy": {"decode_rate": [6.0] * 5, "prefill_rate": [50.0] * 5},
    "unread": {"decode_rate": [9.0] * 5, "prefill_rate": [9.0] * 5},
    "unknown": {"decode_rate": [9.0] * 5, "prefill_rate": [9.0] * 5},
}
FILES = {
    "light": artifact("light", 1_000_000, 500_000),
    "heavy": artifact("heavy", 1_000_000, 2_000_000),
    "unread": artifact("unread", 1_000_000, None),
}


def test_a_roofline_by_hand():
    """A million parameters: 2 MFLOP a token. The prompt has 4 tokens.

    light: 4 FLOP/byte, 20 MFLOP/s; prompt 16 FLOP/byte, 120 MFLOP/s.
    heavy: 1 FLOP/byte, 12 MFLOP/s; prompt 4 FLOP/byte, 100 MFLOP/s, that is 25 MB/s, the most.
    """
    (found,) = rooflines(data_of(*with_artifacts(RATES, FILES)))
    points = {(each.variant, each.phase): (each.intensity, each.flop_rate) for each in found.points}
    assert points == {
        ("light", "decode"): (4.0, 20e6),
        ("light", "prefill"): (16.0, 120e6),
        ("heavy", "decode"): (1.0, 12e6),
        ("heavy", "prefill"): (4.0, 100e6),
    }
    assert (found.byte_rate, found.flop_rate) == (25e6, 120e6)
    assert found.ridge == pytest.approx(4.8)
    assert dict(found.absent) == {
        "unread": "how many bytes of weights a token reads is not known",
        "unknown": "the number of its parameters is not known",
    }


def test_a_roofline_names_who_is_missing_and_calls_its_roofs_a_least():
    """The lines are what was reached, not what the machine could do."""
    plot = plots.roofline_plot(data_of(*with_artifacts(RATES, FILES)), name="r")
    assert "not drawn: unread (how many bytes of weights a token reads is not known)" in plot.remark
    assert {"≥ 0.120 GFLOP/s", "≥ 0.0250 GB/s"} <= set(texts_of(plot.svg))
    assert "no limits of the machine" in plots.how_to_read()


def test_no_roofline_without_what_it_needs(by_hand):
    """No artifact, no picture."""
    assert plots.roofline_plot(by_hand({"A": {"decode_rate": [1.0]}}), name="r") is None


def test_each_machine_has_a_roofline_of_its_own():
    """The roofs of one say nothing of the other."""
    record, trials = with_artifacts(RATES, FILES)
    data = data_of(record, trials)
    machine = record.machine.model_copy(update={"fingerprint": "b" * 16, "cpu_model": "Other"})
    other = record.model_copy(update={"machine": machine})
    data = replace(
        data,
        parts=(
            Part(record, Path("a"), ("light", "unread")),
            Part(other, Path("b"), ("heavy", "unknown")),
        ),
    )
    first, second = rooflines(data)
    assert (first.machine, second.machine) == ("AMD EPYC 9B14", "Other")
    assert (first.byte_rate, second.byte_rate) == (7.5e6, 25e6)
    assert [each.title for each in plots.roofline_plots(data, name="r")] == [
        "AMD EPYC 9B14, w",
        "Other, w",
    ]


def test_a_crowd_of_points_keeps_its_numbers_to_the_front():
    """Of 300 points none is numbered but those of the line."""
    places = [(float(x), float(x * x % 97)) for x in range(300)]
    some = places[:MOST_NUMBERS]
    found = place_labels(some, [(20.0, 10.0)] * len(some), (0, 0, 300, 100), others=places)
    assert len(found) == MOST_NUMBERS
    assert all(0 <= x <= 300 and 0 <= y <= 100 for x, y in found)


def test_pictures_speak_chinese(quality_data):
    """What is written into a picture, and what is said of it."""
    with language("zh"):
        plot = plots.time_plot(quality_data, "chat", name="t")
        roofline = plots.roofline_plot(quality_data, name="r")
    assert "提交提示词后的时间（s）" in texts_of(plot.svg)
    assert plot.remark.endswith("优先显示各框架中最快的变体")
    assert "每读取一字节权重的浮点运算数（FLOP）" in texts_of(roofline.svg)
    with language("en"):
        assert "token" in texts_of(plots.gap_plot(quality_data, "chat", name="g").svg)


def test_a_framework_alone_has_no_legend(sample_run):
    """A colour that all have tells nothing."""
    sample = sample_run.sample(blocks=1)
    data = data_of(sample.record(), sample.trials())
    rate = plots.bar_plots(data, comparison_rows(data)[0], name="b")[0]
    assert rate.legend == ()
    variant = llama_variant("Q4_0", {}, "f.gguf", 1)
    assert picture.frameworks_legend([variant], {variant.id}) == ()
