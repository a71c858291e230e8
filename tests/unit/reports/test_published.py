"""What the documents say: word for word, checked when read, and held against physics.

The tables below were typed from the documents a second time, independently of the YAML files.
"""

from __future__ import annotations

import math

import pytest

from edgebench.reports.languages import language
from edgebench.reports.physics import (
    agrees,
    platform_checks,
    power_column_agrees,
    published_bytes_per_token,
    published_size,
    read_column_agrees,
    speedup_checks,
    weight_bytes_per_token,
)
from edgebench.reports.published.load import (
    PublishedError,
    capability,
    documents,
    parse,
    published_features,
    published_formats,
    published_frameworks,
    published_platforms,
)
from edgebench.reports.published.model import Architecture, Figure, Formats, Judgement
from edgebench.reports.selection.tree import load_trees
from edgebench.reports.stars import stars_for

FRAMEWORKS = """
| 框架 | 首Token延迟 | 生成速度(tokens/s) | 内存占用 | 量化支持 |
| llama.cpp | 1.0x | 25-30 | 4.2GB(Q4) | 优秀 |
| MediaPipe | 1.2x | 20-25 | 4.5GB | 良好 |
| MNN | 1.1x | 22-28 | 4.3GB | 优秀 |
"""
FORMATS = """
| 格式 | 模型大小 | 困惑度(PPL) | 推理速度 | 内存带宽需求 |
| FP16 | 13GB | 5.47 | 1.0x | 100% |
| Q8_0 | 7.2GB | 5.48 | 1.8x | 55% |
| Q4_0 | 3.9GB | 5.59 | 3.2x | 30% |
| Q4_K_M | 4.1GB | 5.51 | 3.0x | 32% |
"""
PLATFORMS = """
| 平台 | 设备 | 推理速度(tokens/s) | 功耗(W) | 能效比 |
| x86 | i9-13900K | 35 | 125 | 0.28 |
| x86 | AMD 7950X | 32 | 105 | 0.30 |
| ARM | Snapdragon 8 Gen3 | 18 | 8 | 2.25 |
| ARM | Dimensity 9300 | 20 | 10 | 2.00 |
| Apple | M2 Pro | 28 | 20 | 1.40 |
| Apple | M3 Max | 38 | 40 | 0.95 |
"""
CHAPTER_FEATURES = """
| 特性 | llama.cpp | MediaPipe | MNN |
| 模型格式 | GGUF | TFLite/自定义 | MNN/ONNX |
| 平台支持 | 全平台 | 移动为主 | 全平台 |
| 多模态 | 有限 | 原生支持 | 支持 |
| 部署难度 | 简单 | 中等 | 中等 |
| 社区活跃度 | 很高 | 高 | 高 |
"""
ARTICLE_FEATURES = """
| 特性 | llama.cpp | MLC LLM | MNN |
| 底层技术栈 | 手写 C++ / SIMD 汇编 | Apache TVM (ML 编译) | C++ / 工业级算子库 |
| CPU 推理性能 | ⭐⭐⭐⭐⭐ (极其强悍) | ⭐⭐⭐ | ⭐⭐⭐⭐⭐ |
| GPU 推理性能 | ⭐⭐⭐ (Metal好, Vulkan一般) | ⭐⭐⭐⭐⭐ (Vulkan/WebGPU强) | ⭐⭐⭐⭐ (OpenCL/Metal强) |
| 上手难度 | 简单 (开箱即用) | 较高 (需懂编译与 Python) | 中等 (需熟悉移动端工程) |
| 跨平台能力 | 极佳 (甚至支持 DOS) | 优秀 (主打 iOS/Android/Web) | 优秀 (主打 iOS/Android) |
| 模型格式 | GGUF | MLC 格式 | MNN 格式 |
| 工业级稳定性 | ⭐⭐⭐ | ⭐⭐⭐ | ⭐⭐⭐⭐⭐ (久经沙场) |
"""  # noqa: E501 - stars are wide
WRITTEN = {"llama.cpp": "llama.cpp", "mediapipe": "MediaPipe", "mnn": "MNN", "mlc": "MLC LLM"}


def typed(table):
    """The cells of a table as typed above, a list a line."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()
    ]


def test_the_published_frameworks_are_as_printed():
    """Heads and cells of the chapter's table, word for word."""
    published = published_frameworks()
    head, *rows = typed(FRAMEWORKS)
    assert [each.zh for each in published.columns.values()] == head[1:]
    assert [
        [
            WRITTEN[row.framework],
            row.ttft_relative.text,
            row.decode_rate.text,
            row.peak_memory.text,
            row.quantization_support.zh,
        ]
        for row in published.rows
    ] == rows


def test_the_published_formats_are_as_printed():
    """The chapter's table of formats, word for word."""
    published = published_formats()
    head, *rows = typed(FORMATS)
    assert [each.zh for each in published.columns.values()] == head[1:]
    assert [
        [
            row.format,
            row.model_size.text,
            row.perplexity.text,
            row.relative_speed.text,
            row.relative_read.text,
        ]
        for row in published.rows
    ] == rows


def test_the_published_platforms_are_as_printed():
    """The chapter's table of platforms, word for word."""
    published = published_platforms()
    head, *rows = typed(PLATFORMS)
    assert [each.zh for each in published.columns.values()] == head
    assert [
        [row.platform, row.device, row.decode_rate.text, row.power.text, row.rate_per_watt.text]
        for row in published.rows
    ] == rows


@pytest.mark.parametrize(("at", "table"), [(0, CHAPTER_FEATURES), (1, ARTICLE_FEATURES)])
def test_the_published_features_are_as_printed(at, table):
    """Both documents' tables of features, word for word."""
    published = published_features()[at]
    head, *rows = typed(table)
    assert [WRITTEN[each] for each in published.frameworks] == head[1:]
    assert [
        [row.label.zh, *(row.cells[each].zh for each in published.frameworks)]
        for row in published.rows
    ] == rows


def test_what_is_published_names_a_document_that_is_known():
    """Every table and quote has its document, with its file, and a date or none."""
    known = documents()
    assert {key: each.file[:3] for key, each in known.items()} == {
        "chapter": "000",
        "article": "001",
    }
    assert known["chapter"].date is None
    assert str(known["article"].date) == "2026-05-21"


def test_a_document_has_one_title_wherever_it_is_named():
    """The trees name it as the tables do, in both languages."""
    for tag in ("en", "zh"):
        with language(tag):
            named = [tree.source.document.words for tree in load_trees()]
            titles = [documents()[key].title.said() for key in ("chapter", "article")]
        assert [name[: len(title)] for name, title in zip(named, titles, strict=True)] == titles


def test_parsed_values_are_those_of_the_text():
    """A number that the printed text does not hold is refused, and so is half a range."""
    assert Figure(text="4.2GB(Q4)", value=4.2e9, unit="byte").middle == 4.2e9
    assert Figure(text="25-30", low=25, high=30, unit="token/s").middle == 27.5
    with pytest.raises(ValueError, match=r"5\.0 is not what '4\.2GB' says"):
        Figure(text="4.2GB", value=5, unit="byte")
    with pytest.raises(ValueError, match="either a value, or both low and high"):
        Figure(text="25-30", low=25, unit="token/s")
    with pytest.raises(ValueError, match="4 stars are not what"):
        Judgement(zh="⭐⭐⭐", en="", stars=4)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows: [", "is not valid YAML"),
        ("document: chapter", "caption: Field required"),
        ("document: novel", "document: Input should be 'chapter' or 'article'"),
        ("surplus: 1", "surplus: Extra inputs are not permitted"),
        ("[]", "the file: "),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_name_and_key(text, said):
    """The message tells the file, the key and what is wrong with it."""
    with pytest.raises(PublishedError, match=r"reports/published/mine\.yaml") as caught:
        parse(text, Formats, "mine.yaml")
    assert said in str(caught.value)


def test_bytes_per_token_are_counted_from_the_architecture():
    """By hand, for a model small enough: every matrix once, one embedding row, the norms.

    2 layers x (4 x 8 x 8 + 3 x 8 x 16) weights = 1280, 80 for the output, 8 of the embedding, all
    of 8 bits, and 5 x 8 norms of 32 bits = 160 bytes: 1280 + 80 + 8 + 160.
    """
    small = Architecture(
        layers=2,
        hidden=8,
        feed_forward=16,
        key_value=8,
        vocabulary=10,
        weight_bits=8,
        output_bits=8,
        norm_bits=32,
    )
    assert weight_bytes_per_token(small) == 1528


def test_llama_2_7b_in_q4_0_reads_3_75_gigabytes_a_token():
    """Counted in blocks as GGUF stores them: 18 bytes for 32 weights, 210 for 256 of Q6_K."""
    layer = 4 * 4096 * 4096 + 3 * 4096 * 11008
    matrices = 32 * (layer // 32) * 18
    output = 32000 * 4096 // 256 * 210
    norms = 65 * 4096 * 4
    row = 4096 // 32 * 18
    assert published_bytes_per_token() == matrices + output + norms + row == 3_751_340_288
    assert published_size() == 3.9e9


def test_published_rates_above_the_memorys_peak_are_found():
    """Two desktops can't be; one phone not by the document's own size; the others can."""
    found = {each.row.device: each for each in platform_checks()}
    assert {name: each.verdict for name, each in found.items()} == {
        "i9-13900K": "impossible",
        "AMD 7950X": "impossible",
        "Snapdragon 8 Gen3": "possible",
        "Dimensity 9300": "impossible by its own size",
        "M2 Pro": "possible",
        "M3 Max": "possible",
    }
    # 35 x 3.75134 = 131.30 of 89.6; 20 x 3.75134 = 75.03 and 20 x 3.9 = 78 of 76.8.
    assert found["i9-13900K"].share == pytest.approx(131.2969 / 89.6, rel=1e-5)
    assert found["Dimensity 9300"].share == pytest.approx(75.0268 / 76.8, rel=1e-5)
    assert found["Dimensity 9300"].share_by_size == pytest.approx(78 / 76.8)


def test_peaks_are_transfers_times_their_width():
    """Of the devices whose memory has a speed in its name, the bandwidth is that speed's."""
    expected = {
        "i9-13900K": 5600e6 * 16,
        "AMD 7950X": 5200e6 * 16,
        "Snapdragon 8 Gen3": 9600e6 * 8,
        "Dimensity 9300": 9600e6 * 8,
    }
    for row in published_platforms().rows:
        if row.device in expected:
            assert row.memory.bytes_per_s == expected[row.device]
        assert row.memory.source.en
        assert row.memory.source.zh


def test_columns_that_follow_from_others_are_recognised():
    """tokens/s/W is rate over power, and bandwidth need is the ratio of the sizes, as rounded."""
    assert power_column_agrees()
    assert read_column_agrees()
    printed = Figure(text="0.28", value=0.28, unit="token/s/W")
    assert agrees(printed, 35 / 125)
    assert not agrees(printed, 36 / 125)
    assert agrees(Figure(text="55%", value=0.55, unit="1"), 7.2 / 13)
    assert not agrees(Figure(text="55%", value=0.55, unit="1"), 7.0 / 13)


def test_published_speed_ups_are_held_against_what_their_size_allows():
    """13 / 7.2, 13 / 3.9 and 13 / 4.1 times; the published ones are below, one of them barely."""
    found = {each.format: each for each in speedup_checks()}
    assert {name: round(each.bound, 3) for name, each in found.items()} == {
        "Q8_0": 1.806,
        "Q4_0": 3.333,
        "Q4_K_M": 3.171,
    }
    assert all(each.speedup < each.bound for each in found.values())
    assert found["Q8_0"].speedup / found["Q8_0"].bound > 0.99


@pytest.mark.parametrize(
    ("share", "stars"),
    [
        (1.0, 5),
        (0.9, 5),
        (0.899, 4),
        (0.75, 4),
        (0.74, 3),
        (0.5, 3),
        (0.49, 2),
        (0.25, 2),
        (0.2, 1),
    ],
)
def test_stars_follow_the_stated_rule(share, stars):
    """At each limit and just below it."""
    assert stars_for(share) == stars


def test_capabilities_are_what_the_documents_say_and_nothing_else():
    """Each with its words; where no document speaks of it, unknown and not no."""
    assert capability("fake") is None
    mediapipe, mlc, llama = (capability(each) for each in ("mediapipe", "mlc", "llama.cpp"))
    assert mediapipe.vision.value == "yes"
    assert "视觉" in mediapipe.vision.quote
    assert mediapipe.enterprise_support is None
    assert mlc.multimodal is None
    assert "browser" in mlc.targets
    assert "browser" not in llama.targets
    assert llama.multimodal.value == "limited"
    assert capability("mnn").enterprise_support.document == "chapter"


def test_quotes_and_judgements_speak_the_reports_language():
    """Chinese as printed, English translated; stars keep the words behind them."""
    row = published_features()[1].rows[1].cells["llama.cpp"]
    assert row.said() == "5/5 (extremely strong)"
    with language("zh"):
        assert row.said() == "5/5 (极其强悍)"
        assert capability("mlc").target_quotes["browser"].said().startswith("如果你要在")
    assert math.isclose(published_frameworks().rows[0].peak_memory.middle, 4.2e9)


def test_quoted_cells_are_those_of_the_documents_table():
    """A capability that rests on a cell quotes it with the row and the column, as they stand."""
    (table,) = (each for each in published_features() if each.document == "chapter")
    heads = {"llama.cpp": "llama.cpp", "mediapipe": "MediaPipe", "mnn": "MNN"}
    cells = {
        (f"{row.label.zh}（{heads[key]}）：{row.cells[key].zh}", key)
        for row in table.rows
        for key in table.frameworks
    }
    found = []
    for key in heads:
        known = capability(key)
        quotes = [known.multimodal, *known.target_quotes.values()]
        found += [(each.quote, key) for each in quotes if each and "）：" in each.quote]
    assert len(found) == 6
    assert set(found) <= cells


def test_what_a_quote_does_not_say_is_told_in_both_languages():
    """MNN beside a model for vision is no language model that takes images."""
    note = capability("mnn").vision.note
    assert "not that the language model takes images" in note.said()
    with language("zh"):
        assert "并未说" in note.said()
