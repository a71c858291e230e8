"""Synthetic weights: the file, its tensors, and the sizes of the published one."""

from __future__ import annotations

import hashlib
import re
import tracemalloc
from dataclasses import replace
from math import prod
from pathlib import Path

import gguf
import numpy as np
import pytest
from jinja2 import Environment

from edgebench.harness.scenario.find import find_scenario
from edgebench.harness.scenario.loader import load_scenario
from edgebench.models.gguf_file import open_gguf
from edgebench.models.shapes import SHAPES, ModelShape
from edgebench.models.synthetic import synthetic_bytes, version_of, write_synthetic
from edgebench.models.synthetic_template import TEMPLATES
from edgebench.models.synthetic_tensors import BLOCKS, NUMBERS, synthetic_tensors, tensor_bytes
from edgebench.models.synthetic_vocabulary import LAYOUTS
from edgebench.runners.registry import runner_classes

SCENARIOS = sorted(each.stem for each in (Path(__file__).parents[3] / "scenarios").glob("*.yaml"))
FOR_QUALITY = {"quantization", "wikitext2"}
"""Scenarios that random weights have nothing to say to."""

TEXT = "the cat sat on the mat and the other cat sat on that mat " * 3
TINY = ModelShape(
    "tiny", "Tiny", "llama", "spm", 2, 256, 512, 4, 2, 64, 700, 128, 1e-5, 10_000.0
)  # fmt: skip


def made(folder: Path, shape: ModelShape = TINY, seed: int = 1) -> Path:
    path = folder / f"{shape.key}-{seed}.gguf"
    write_synthetic(shape, "Q4_0", path, text=TEXT, seed=seed)
    return path


def test_llama_2_7b_has_the_bytes_of_the_published_file() -> None:
    """4.5 bits for all matrices, 6.5625 for the output, 32 for norms: within 1 MB of the file."""
    in_layers = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)
    four_bits, six_bits = in_layers + 32000 * 4096, 32000 * 4096
    norms = 4096 * (2 * 32 + 1)
    by_hand = four_bits // 32 * 18 + six_bits // 256 * 210 + 4 * norms
    tensors = synthetic_tensors(SHAPES["llama2-7b"], "Q4_0")
    assert sum(each.nbytes for each in tensors) == by_hand == 3_825_065_984
    # llama-2-7b.Q4_0.gguf of TheBloke/Llama-2-7B-GGUF; the rest of it is the header.
    assert 0 < 3_825_807_296 - by_hand < 1_000_000
    assert len(tensors) == 3 + 32 * 9


def test_types_are_those_that_llama_quantize_chooses() -> None:
    """The output has 6 bits, where its rows are whole blocks of 256; a tied one is the output."""

    def kinds(key: str) -> dict[str, str]:
        return {each.name: each.kind for each in synthetic_tensors(SHAPES[key], "Q4_0")}

    llama = kinds("llama2-7b")
    assert (llama["token_embd.weight"], llama["output.weight"]) == ("Q4_0", "Q6_K")
    assert (llama["blk.31.ffn_down.weight"], llama["blk.31.ffn_norm.weight"]) == ("Q4_0", "F32")
    assert kinds("llama3.2-1b")["token_embd.weight"] == "Q6_K"
    assert kinds("qwen2.5-0.5b")["token_embd.weight"] == "Q8_0"  # rows of 896 = 3.5 x 256
    assert "output.weight" not in kinds("qwen2.5-0.5b")


def test_numbers_and_blocks_of_types_are_ggml_s() -> None:
    """As the package gguf, which is llama.cpp's own, has them."""
    for kind, number in NUMBERS.items():
        assert gguf.GGMLQuantizationType[kind] == number
        assert gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]] == BLOCKS[kind]


@pytest.mark.parametrize("key", SHAPES)
def test_every_shape_has_as_many_weights_as_its_model(key: str) -> None:
    """All of a shape's parameters are in some tensor, none twice."""
    shape = SHAPES[key]
    tensors = synthetic_tensors(shape, "Q4_0")
    assert len({each.name for each in tensors}) == len(tensors)
    weights = [each for each in tensors if each.fill != "rope"]
    assert sum(prod(each.shape) for each in weights) == shape.parameters


def test_another_reader_finds_what_was_written(tmp_path: Path) -> None:
    """llama.cpp's own package reads names, shapes, types and metadata."""
    reader = gguf.GGUFReader(made(tmp_path))
    tensors = {each.name: each for each in reader.tensors}
    wanted = {each.name: each for each in synthetic_tensors(TINY, "Q4_0")}
    assert tensors.keys() == wanted.keys()
    for name, tensor in tensors.items():
        assert tuple(tensor.shape.tolist()[::-1]) == wanted[name].shape
        assert tensor.tensor_type.name == wanted[name].kind
    field = reader.get_field("llama.attention.head_count_kv")
    assert field is not None
    assert field.contents() == 2


@pytest.mark.parametrize("quantization", ["Q4_0", "Q8_0", "F16"])
def test_weights_are_as_large_as_keeps_activations_in_bounds(
    tmp_path: Path, quantization: str
) -> None:
    """Their mean is 0 and their deviation 1/sqrt(inputs), in every type; norms are 1."""
    path = tmp_path / "model.gguf"
    write_synthetic(TINY, quantization, path, text=TEXT)  # type: ignore[arg-type]
    for tensor in gguf.GGUFReader(path).tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if values.ndim == 1:
            assert (values == 1).all()
            continue
        deviation = values.shape[-1] ** -0.5
        assert values.std() == pytest.approx(deviation, rel=0.02)
        assert abs(values.mean()) < 5 * deviation / np.sqrt(values.size)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    """The hash that is returned is the file's, and depends on shape and seed alone."""
    first = tmp_path / "first.gguf"
    told = write_synthetic(TINY, "Q4_0", first, text=TEXT, seed=1)
    assert told == hashlib.sha256(first.read_bytes()).hexdigest()
    assert made(tmp_path, seed=1).read_bytes() == first.read_bytes()
    assert made(tmp_path, seed=2).read_bytes() != first.read_bytes()


def test_the_bytes_are_those_of_this_version(tmp_path: Path) -> None:
    """A change that makes another file must raise the version, which is part of the store's key."""
    told = write_synthetic(TINY, "Q4_0", tmp_path / "model.gguf", text=TEXT, seed=1)
    assert told == "7b7805d4ab0557b3cfa3df88fb3f4d4dbbb994e3dbb79ca3a80ef039a463f361"


def test_no_more_than_some_megabytes_are_in_memory(tmp_path: Path) -> None:
    """A file of 90 MB takes less than a third of that."""
    large = replace(TINY, key="large", hidden=2048, intermediate=16384, heads=32, vocabulary=3000)
    tracemalloc.start()
    path = made(tmp_path, large)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 90_000_000
    assert peak < 40_000_000


def test_the_largest_model_is_made_in_pieces() -> None:
    """The largest tensor of 7B, 108 MB, is never in memory as a whole; the others are smaller."""
    shape = SHAPES["llama2-7b"]
    tensors = synthetic_tensors(shape, "Q4_0")
    largest = max(tensors, key=lambda each: each.nbytes)
    assert largest.nbytes == 32000 * 4096 // 256 * 210  # Q6_K: 210 bytes for 256 weights
    tracemalloc.start()
    sizes = [len(piece) for piece in tensor_bytes(largest, shape, 1)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(sizes) == largest.nbytes
    assert peak < 40_000_000
    # Of each of the others the first piece; the rest comes as it does here.
    assert all(len(next(tensor_bytes(each, shape, 1))) <= 2 * max(sizes) for each in tensors[:12])


def test_progress_ends_at_the_size_of_the_file(tmp_path: Path) -> None:
    """What is told never goes back, and the estimate is a little above it."""
    told: list[int] = []
    path = tmp_path / "model.gguf"
    write_synthetic(TINY, "Q4_0", path, text=TEXT, tell=told.append)
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size <= synthetic_bytes(TINY, "Q4_0")


def test_rows_that_are_no_whole_blocks_are_refused(tmp_path: Path) -> None:
    """48 weights are no whole blocks of 32, which is said; in 16 bits there are no blocks."""
    odd = replace(TINY, hidden=48, heads=3, head_size=16, kv_heads=1)
    with pytest.raises(ValueError, match="rows of 48 weights can't be Q4_0"):
        synthetic_tensors(odd, "Q4_0")
    write_synthetic(odd, "F16", tmp_path / "model.gguf", text=TEXT)


def test_the_canonical_model_is_that_of_the_shape(tmp_path: Path) -> None:
    """What converters for other frameworks read has the shape's figures."""
    shape = replace(TINY, key="qwen", family="qwen2", tokenizer="bpe", attention_bias=True)
    architecture = open_gguf(made(tmp_path, shape)).architecture
    assert (architecture.family, architecture.layers, architecture.hidden_size) == ("qwen2", 2, 256)
    assert (architecture.heads, architecture.kv_heads, architecture.head_size) == (4, 2, 64)
    assert (architecture.attention_bias, architecture.tied_embeddings) == (True, False)


def test_llama_3_s_rotations_are_scaled(tmp_path: Path) -> None:
    """By 32, as its published configuration says; the slowest frequency shows it."""
    rope = open_gguf(made(tmp_path, replace(TINY, rope_theta=500_000.0, long_rope=True)))
    frequencies = rope.architecture.rope.inverse_frequencies
    assert rope.architecture.rope.kind == "llama3"
    assert frequencies[-1] == pytest.approx(500_000.0 ** (-62 / 64) / 32, rel=1e-6)
    assert frequencies[0] == 1


@pytest.mark.parametrize("key", TEMPLATES)
def test_a_chat_is_put_in_tokens_that_the_tokenizer_has(key: str) -> None:
    """What a template writes around a text is special there, as in the published model."""
    # By the published tokenizers: ChatML, Llama 3, Gemma 2; Zephyr's marks are no tokens.
    marks = {
        "qwen2.5-0.5b": ["<|im_start|>", "<|im_end|>", "<|im_start|>"],
        "smollm2-135m": ["<|im_start|>", "<|im_end|>", "<|im_start|>"],
        "llama3.2-1b": [
            "<|begin_of_text|>",
            *("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
            *("<|start_header_id|>", "<|end_header_id|>"),
        ],
        "gemma2-2b": ["<bos>", "<start_of_turn>", "<end_of_turn>", "<start_of_turn>"],
        "tinyllama-1.1b": ["</s>"],
    }[key]
    layout = LAYOUTS[key]
    for trims in (True, False):  # some frameworks' Jinja does, some does not
        environment = Environment(trim_blocks=trims, lstrip_blocks=trims, autoescape=False)
        text = environment.from_string(TEMPLATES[key]).render(
            messages=[{"role": "user", "content": "Hi"}],
            add_generation_prompt=True,
            bos_token=layout.start,
            eos_token=layout.end,
        )
        special = "|".join(map(re.escape, layout.special.values()))
        assert re.findall(special, text) == marks
        assert text.count("Hi") == 1
        assert text.endswith("\n")


def test_only_what_has_a_template_is_another_file_than_before(tmp_path: Path) -> None:
    """Llama 2 7B is a base model: it has none, and what was made of it stays in the store."""
    assert version_of(SHAPES["llama2-7b"]) == 1
    assert {key for key in SHAPES if version_of(SHAPES[key]) == 2} == SHAPES.keys() - {"llama2-7b"}
    assert open_gguf(made(tmp_path)).tokenizer.chat_template is None
    chat = replace(TINY, key="tinyllama-1.1b")
    template = open_gguf(made(tmp_path, chat)).tokenizer.chat_template
    assert template == TEMPLATES["tinyllama-1.1b"]


@pytest.mark.parametrize("name", [each for each in SCENARIOS if each not in FOR_QUALITY])
def test_shipped_scenarios_can_be_run_with_synthetic_weights(name: str) -> None:
    """A shape for each that is about speed, with a chat template where one is asked for."""
    scenario = load_scenario(find_scenario(name), runners=runner_classes())
    key = scenario.model.synthetic
    assert key in SHAPES
    if any(each.chat_template for each in scenario.workloads):
        assert key in TEMPLATES
