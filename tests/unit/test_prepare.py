"""What a conversion is named and keyed by, and how much room it is expected to take."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import byte_level_tokenizer

from edgebench.harness.artifacts import conversion, expected_bytes
from edgebench.harness.errors import ModelError
from edgebench.harness.prepared import PreparedVariant
from edgebench.harness.scenario.expand import ExpandedVariant
from edgebench.harness.store.store import AS_PUBLISHED, StoredFile
from edgebench.harness.tokenization import own_tokenizer
from edgebench.harness.wire import Probe
from edgebench.runners.base import Capabilities, Description

MB = 1_000_000


@pytest.mark.parametrize(
    ("source", "source_bytes", "quantization", "really"),
    [
        # SmolLM2-135M, made with llama_model_quantize
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "Q8_0", 144_811_072),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "F32", 539_000_000),
        # The same by MNN's converter
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "int4", 77_282_592),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "int8", 144_573_170),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "fp16", 270_585_468),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "fp32", 709_408_259),
        ("SmolLM2-135M-Instruct-F16.gguf", 270_900_000, "fp32", 709_408_259),
        # The same as MLC names it: group size 32, scales in fp32
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "q4f32_1", 84_200_000),
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 98_362_432, "q0f32", 538_100_000),
        # Llama-2 7B as published
        ("llama-2-7b.f16.gguf", 13_480 * MB, "Q4_0", 3_826 * MB),
        ("llama-2-7b.f16.gguf", 13_480 * MB, "Q4_K_M", 4_081 * MB),
        ("llama-2-7b.f16.gguf", 13_480 * MB, "Q8_0", 7_161 * MB),
    ],
)
def test_enough_room_is_asked_for_and_not_much_more(
    source: str, source_bytes: int, quantization: str, really: int
) -> None:
    """The estimate is no less than what came out, and less than twice that."""
    assert really <= expected_bytes(source, source_bytes, quantization) < 2 * really


def test_a_name_that_tells_nothing_is_taken_for_four_bits() -> None:
    """Without a hint the source may be 4 bits already: 16 bits take about four times its room."""
    assert expected_bytes("model.gguf", 100, "F16") == pytest.approx(400, rel=0.1)


def test_an_unknown_kind_of_artifact_is_as_large_as_its_source() -> None:
    """Names without bits say nothing about size."""
    assert expected_bytes("model.bin", 100, "copy") == 100


@pytest.mark.parametrize("name", ["tiny-q0f32-MLC", "hf-q0f16"])
def test_a_source_that_is_named_as_mlc_names_them_has_its_bits(name: str) -> None:
    """The 0 in ``q0f16`` is no number of bits."""
    half = 16 if name.endswith("16") else 32
    assert expected_bytes(name, MB, "q4f32_1") == pytest.approx(MB * 5 / half, rel=0.02)


def test_a_folders_weights_are_taken_for_sixteen_bits() -> None:
    """Hugging Face's folders hold F16 or BF16 by custom, and seldom say so in their name."""
    assert expected_bytes("Llama-2-7b-hf", 13_480 * MB, "Q8_0", is_folder=True) == pytest.approx(
        7_161 * MB, rel=0.1
    )


SOURCE = StoredFile(Path("/m/tiny.Q4_1.gguf"), "abc", 9, "tiny.Q4_1.gguf", AS_PUBLISHED, None)
DESCRIPTION = Description("Engine", "1.2", Capabilities(*[True] * 5))


def variant(**options: bool | int | str) -> ExpandedVariant:
    return ExpandedVariant(id="v", runner="engine", quantization="int4", options=options)


def test_an_artifact_is_keyed_by_all_that_shapes_it_and_nothing_else() -> None:
    """Options of loading share an artifact; those of converting, and versions, do not."""
    probe = Probe(DESCRIPTION, frozenset({"block", "symmetric"}))
    made = conversion(variant(threads=2, block=32, symmetric=True), probe, SOURCE)
    assert made.key == {
        "source": "abc",
        "quantization": "int4",
        "runner": "engine",
        "engine": "Engine 1.2",
        "option block": "32",
        "option symmetric": "true",
    }
    assert made.options == {"block": 32, "symmetric": True}
    assert conversion(variant(threads=4), probe, SOURCE).key == (
        conversion(variant(threads=1), probe, SOURCE).key
    )
    newer = Probe(DESCRIPTION, probe.convert_options, converter_version="2")
    assert conversion(variant(block=32), newer, SOURCE).key["converter"] == "2"


def test_an_option_of_converting_is_no_option_of_loading() -> None:
    """What shaped the artifact is not asked for again at load."""
    item = PreparedVariant(
        variant(threads=2, block=32), None, Probe(DESCRIPTION, frozenset({"block"}))
    )
    assert item.load_options == {"threads": 2}


@pytest.mark.parametrize(
    ("suffix", "options", "name"),
    [
        ("", {}, "tiny.Q4_1-int4-engine"),
        (".gguf", {}, "tiny.Q4_1-int4.gguf"),
        ("", {"threads": 2}, "tiny.Q4_1-int4-engine"),
        ("", {"block": 32, "symmetric": False}, "tiny.Q4_1-int4-block=32-symmetric=false-engine"),
        ("", {"block": "/home/me/my checkout/"}, "tiny.Q4_1-int4-block=home-me-my-checkout-engine"),
        ("", {"block": "x" * 300}, f"tiny.Q4_1-int4-block={'x' * 40}-engine"),
    ],
)
def test_an_artifacts_name_says_what_it_is(
    suffix: str, options: dict[str, bool | int | str], name: str
) -> None:
    """Source, quantisation and options; then the file's suffix, or the runner where it has none."""
    probe = Probe(DESCRIPTION, frozenset({"block", "symmetric"}), artifact_suffix=suffix)
    assert conversion(variant(**options), probe, SOURCE).name == name


def test_a_folders_name_is_kept_whole(tmp_path: Path) -> None:
    """A folder has no suffix, even where there is a dot in its name."""
    folder = tmp_path / "Qwen2.5-0.5B"
    folder.mkdir()
    source = StoredFile(folder, "abc", 9, folder.name, AS_PUBLISHED, None)
    probe = Probe(DESCRIPTION, artifact_suffix=".gguf")
    assert conversion(variant(), probe, source).name == "Qwen2.5-0.5B-int4.gguf"


def test_a_frameworks_own_folder_is_told_from_a_damaged_one(tmp_path: Path) -> None:
    """MNN's folders have a config.json too: it is no model of Hugging Face's, and says so."""
    (tmp_path / "config.json").write_text('{"llm_model": "llm.mnn"}', encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match="names no model_type: this is not Hugging Face's"):
        own_tokenizer(tmp_path)


def test_a_folder_of_mlc_has_a_tokenizer_that_makes_prompts(tmp_path: Path) -> None:
    """It has Hugging Face's tokenizer.json, and its vocabulary's size in a file of its own."""
    from tokenizers import Tokenizer

    (tmp_path / "mlc-chat-config.json").write_text('{"vocab_size": 320}', encoding="utf-8")
    (tmp_path / "tokenizer.json").write_text(byte_level_tokenizer(), encoding="utf-8")
    facts, tokenizer = own_tokenizer(tmp_path)
    assert facts.vocabulary_size == 320
    text = "It was the best of times."
    expected = Tokenizer.from_file(str(tmp_path / "tokenizer.json")).encode(text).ids
    assert tokenizer.tokenize(text) == expected


def test_a_folder_of_mlc_that_does_not_say_its_size_is_refused(tmp_path: Path) -> None:
    """One sentence with the file's name."""
    (tmp_path / "mlc-chat-config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ModelError, match=r"mlc-chat-config.json.*vocab_size"):
        own_tokenizer(tmp_path)
