"""Bundles for LiteRT-LM: tiny random models, converted and run, compared with transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from litert_engine import (
    ask,
    facts_of,
    kept_matrices,
    matrices_in,
    sections_of,
    settings_of,
)
from tiny_models import LLAMA3, TEXT, VOCABULARY, tiny_folder

from edgebench.runners.base import ConvertRequest
from edgebench.runners.litert_convert import convert

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]

# Some of the first tokens, which every model here has.
IDS = [int(token) for token in np.random.default_rng(3).integers(0, VOCABULARY, 40)]

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
TIED = {"tie_word_embeddings": True}
ODD = {"hidden_size": 54, "intermediate_size": 77, "num_attention_heads": 3, "head_dim": 10}
SMALL = {"cache_length": 64, "prefill_lengths": "8,16"}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, tied, every bias": ("llama", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "llama, linear rope": ("llama", {"rope": {"rope_type": "linear", "factor": 2.5}}),
    "llama, llama3 rope": ("llama", {"rope": LLAMA3}),
    "llama, yarn rope": ("llama", {"rope": YARN}),
    "llama, one key head": ("llama", {"num_key_value_heads": 1, "head_dim": 24}),
    "llama, odd sizes": ("llama", {**ODD, "num_key_value_heads": 3}),
    "mistral, large heads": ("mistral", {"head_dim": 32, "sliding_window": None}),
    "qwen2, tied": ("qwen2", TIED),
    "qwen2, untied, yarn": ("qwen2", {"rope": YARN}),
    "qwen3": ("qwen3", {}),
    "qwen3, tied, odd sizes": ("qwen3", {**ODD, **TIED, "num_key_value_heads": 1}),
}


def make(source: Path, target: Path, quantization: str, **options: Any) -> dict[str, str]:
    return convert(ConvertRequest(str(source), quantization, str(target), {**SMALL, **options}))


def expected(model: Any) -> NDArray[np.float32]:
    """The logits of all positions by transformers."""
    import torch

    with torch.no_grad():
        logits: NDArray[np.float32] = model(torch.tensor([IDS])).logits[0].numpy()
    return logits


def assert_same(bundle: Path, model: Any) -> None:
    """Logits within 1e-4, decoded alone and after prefills, padded or not; measured are 2e-5."""
    reference = expected(model)
    # Nothing, a padded graph, two full ones and a padded one, more than the largest takes.
    for steps in ([], [5], [16, 8, 3], [16, 16]):
        logits, done = ask(bundle, ids=IDS, steps=steps)["logits"], sum(steps)
        assert logits.shape == reference[done:].shape
        assert np.abs(logits - reference[done:]).max() < 1e-4, steps
        assert np.array_equal(logits.argmax(axis=1), reference[done:].argmax(axis=1)), steps


def put_in(model: Any, bundle: Path) -> None:
    """Give transformers' model the matrices as the bundle keeps them."""
    import torch

    kept = kept_matrices(bundle)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim == 2:
                weight.copy_(torch.from_numpy(kept[name].copy()))


@pytest.mark.parametrize(("family", "changes"), CASES.values(), ids=CASES.keys())
def test_fp32_computes_what_transformers_computes(
    family: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """Nothing is rounded, and the greedy tokens are the same."""
    model = tiny_folder(tmp_path / "source", family, **changes)
    make(tmp_path / "source", tmp_path / "made.litertlm", "fp32")
    assert_same(tmp_path / "made.litertlm", model)


@pytest.mark.parametrize(
    "case", ["llama", "llama, tied, every bias", "qwen2, untied, yarn", "qwen3, tied, odd sizes"]
)
def test_fp16_computes_with_the_weights_rounded_to_float16(case: str, tmp_path: Path) -> None:
    """Matrices and embeddings are rounded once; norms and biases stay in float32."""
    import torch

    family, changes = CASES[case]
    model = tiny_folder(tmp_path / "source", family, **changes)
    make(tmp_path / "source", tmp_path / "made.litertlm", "fp16")
    with torch.no_grad():
        for weight in model.parameters():
            if weight.ndim > 1:
                weight.copy_(weight.half().float())
    assert_same(tmp_path / "made.litertlm", model)


@pytest.mark.parametrize("changes", [TIED, {}], ids=["tied", "untied"])
def test_weight_only_int8_computes_in_float32_with_the_weights_kept(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """A scale for each row, zero in the middle; activations are not rounded."""
    model = tiny_folder(tmp_path / "source", "llama", **changes)
    original = {name: weight.detach().numpy().copy() for name, weight in model.named_parameters()}
    make(tmp_path / "source", tmp_path / "made.litertlm", "int8_weight_only")
    for name, kept in kept_matrices(tmp_path / "made.litertlm").items():
        step = np.abs(original[name]).max(axis=1, keepdims=True) / 127
        assert (np.abs(kept - original[name]) <= 0.501 * step).all(), name
    put_in(model, tmp_path / "made.litertlm")
    assert_same(tmp_path / "made.litertlm", model)


def test_weight_only_int8_is_what_googles_quantizer_makes(tmp_path: Path) -> None:
    """Of the graph in float32 ai-edge-quantizer makes the same weights and operators."""
    from ai_edge_litert import schema_py_generated as schema
    from ai_edge_quantizer import qtyping, quantizer, recipe_manager

    tiny_folder(tmp_path / "source", "qwen3")
    for quantization in ("fp32", "int8_weight_only"):
        make(tmp_path / "source", tmp_path / f"{quantization}.litertlm", quantization)
    names = qtyping.TFLOperationName
    recipe = recipe_manager.RecipeManager()
    recipe.add_weight_only_config(regex=".*", operation_name=names.FULLY_CONNECTED, num_bits=8)
    recipe.add_dynamic_config(regex=".*", operation_name=names.EMBEDDING_LOOKUP, num_bits=8)
    (tmp_path / "fp32.tflite").write_bytes(sections_of(tmp_path / "fp32.litertlm")["TFLiteModel"])
    theirs = quantizer.Quantizer(str(tmp_path / "fp32.tflite"))
    theirs.load_quantization_recipe(recipe.get_quantization_recipe())
    made = bytes(theirs.quantize().quantized_model)
    ours = sections_of(tmp_path / "int8_weight_only.litertlm")["TFLiteModel"]

    kept = matrices_in(ours)
    for name, matrix in matrices_in(made).items():
        # The last digit of a scale may differ.
        assert np.allclose(kept.pop(name), matrix, rtol=1e-6, atol=0), name
    assert not kept

    def operators(raw: bytes) -> list[list[int]]:
        model = schema.ModelT.InitFromPackedBuf(bytearray(raw))
        codes = [code.builtinCode for code in model.operatorCodes]
        return [
            sorted(codes[each.opcodeIndex] for each in graph.operators) for graph in model.subgraphs
        ]

    assert operators(ours) == operators(made)


@pytest.mark.parametrize("changes", [TIED, {}], ids=["tied", "untied"])
@pytest.mark.parametrize("quantization", ["int8", "int4"])
def test_integers_are_computed_with_as_they_are_kept(
    quantization: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """What remains is that the engine rounds activations to 8 bits, a token at a time.

    With the order of nibbles, a scale or a sign mistaken, logits would be off by their own size.
    """
    model = tiny_folder(tmp_path / "source", "llama", **changes)
    make(tmp_path / "source", tmp_path / "made.litertlm", quantization, output_quantization="int8")
    kept = kept_matrices(tmp_path / "made.litertlm")
    put_in(model, tmp_path / "made.litertlm")
    reference = expected(model)
    spread = float(reference.std())
    for steps in ([], [16, 3]):
        off = ask(tmp_path / "made.litertlm", ids=IDS, steps=steps)["logits"]
        off = off - reference[sum(steps) :]
        assert np.sqrt(np.square(off).mean()) < 0.05 * spread, steps
    assert len(kept) == (15 if changes else 16)


def test_int8_keeps_a_scale_for_each_row(tmp_path: Path) -> None:
    """Weights are off by half a step at most, of 127 to the row's largest."""
    model = tiny_folder(tmp_path / "source", "qwen2")
    make(tmp_path / "source", tmp_path / "made.litertlm", "int8")
    original = {name: weight.detach().numpy() for name, weight in model.named_parameters()}
    kept = kept_matrices(tmp_path / "made.litertlm")
    assert set(kept) == {name for name, weight in original.items() if weight.ndim == 2}
    for name, values in kept.items():
        step = np.abs(original[name]).max(axis=1, keepdims=True) / 127
        assert (np.abs(values - original[name]) <= 0.501 * step).all(), name


@pytest.mark.parametrize("changes", [TIED, {}], ids=["tied", "untied"])
@pytest.mark.parametrize(
    ("quantization", "output", "kind"),
    [
        ("fp32", None, "fp32"),
        ("int8", None, "int8"),
        ("int4", None, "int8"),
        ("int4", "int4", "int4"),
        ("int4", "fp16", "fp16"),
        ("fp32", "int4", "int4"),
    ],
)
def test_embedding_and_output_layer_have_a_precision_of_their_own(
    quantization: str, output: str | None, kind: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    """One for both; tied, they are one matrix. What is computed is what is kept."""
    model = tiny_folder(tmp_path / "source", "qwen3", **changes)
    options = {} if output is None else {"output_quantization": output}
    bundle = tmp_path / "made.litertlm"
    make(tmp_path / "source", bundle, quantization, **options)
    kept = kept_matrices(bundle)
    assert ("lm_head.weight" in kept) is not bool(changes)
    for name in {"model.embed_tokens.weight", "lm_head.weight"} & set(kept):
        assert_kept_as(kind, kept[name], model.get_parameter(name).detach().numpy())
    assert facts_of(bundle)["quantization"] == quantization
    assert facts_of(bundle)["output_quantization"] == kind
    put_in(model, bundle)
    reference = expected(model)
    off = ask(bundle, ids=IDS, steps=[16])["logits"] - reference[16:]
    assert np.sqrt(np.square(off).mean()) < 0.05 * float(reference.std())


def assert_kept_as(kind: str, kept: NDArray[np.float32], original: NDArray[np.float32]) -> None:
    """Told by the largest error, over the row's largest weight."""
    off = np.abs(kept - original) / np.abs(original).max(axis=1, keepdims=True)
    least, most = {
        "fp32": (0, 0),
        "fp16": (1e-5, 2**-11),
        "int8": (1e-3, 0.501 / 127),
        "int4": (0.02, 0.31),
    }[kind]
    assert least <= off.max() <= most


def test_weights_are_stored_once_for_all_graphs(tmp_path: Path) -> None:
    """Another prefill length costs a graph, and none of the 3.8 million bytes of weights."""
    tiny_folder(tmp_path / "source", "llama", hidden_size=512, intermediate_size=1024)
    sizes = []
    for lengths in ("8", "8,16,32,64"):
        bundle = tmp_path / f"{len(lengths)}.litertlm"
        make(tmp_path / "source", bundle, "int8", prefill_lengths=lengths)
        sizes.append(len(sections_of(bundle)["TFLiteModel"]))
    assert sizes[0] > 3_800_000
    assert sizes[1] - sizes[0] < 300_000


def test_the_engine_generates_what_transformers_does(tmp_path: Path) -> None:
    """The whole bundle: nothing before the prompt, all prefill graphs, a full cache, no stop."""
    import torch
    from tokenizers import Tokenizer

    model = tiny_folder(tmp_path / "source", "llama", **TIED)
    bundle = tmp_path / "made.litertlm"
    make(tmp_path / "source", bundle, "fp32")
    tokenizer = Tokenizer.from_file(str(tmp_path / "source" / "tokenizer.json"))
    for tokens, count in ((3, 20), (24, 20), (33, 20), (60, 4)):
        ids = tokenizer.encode(TEXT * 3).ids[:tokens]
        prompt = tokenizer.decode(ids)
        assert tokenizer.encode(prompt).ids == ids
        answer = ask(bundle, prompt=prompt, count=count)
        with torch.no_grad():
            for _ in range(count):
                ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
        assert answer["prompt"] == ids[:tokens]
        assert answer["made"] == count
        made = tokenizer.decode(ids[tokens:], skip_special_tokens=False)
        # Texts end at a NUL character, which these tokens have.
        assert answer["text"] == made.split("\0")[0]


def test_nothing_is_prepended_and_the_facts_are_told(tmp_path: Path) -> None:
    """In the engine's metadata and in edgebench's."""
    model = tiny_folder(tmp_path / "source", "qwen2")
    (tmp_path / "source" / "chat_template.jinja").write_text("{{ messages }}", encoding="utf-8")
    bundle = tmp_path / "made.litertlm"
    made = make(tmp_path / "source", bundle, "int4", prefill_lengths="16, 8")
    settings, facts = settings_of(bundle), facts_of(bundle)
    assert not settings.HasField("start_token")
    assert settings.max_num_tokens == 64
    # What is put before it is for turns in parts.
    assert settings.jinja_prompt_template.endswith("{{ messages }}")
    # No token of that number can be made.
    stops = [list(stop.token_ids.ids) for stop in settings.stop_tokens]
    assert stops == [[VOCABULARY]]
    assert facts == {
        "facts_version": 1,
        "architecture": "qwen2",
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "trained_context_tokens": 256,
        "vocabulary_size": VOCABULARY,
        "start_id": None,
        "end_ids": [1],
        "start_text": "",
        "end_text": "",
        "cache_length": 64,
        "prefill_lengths": [8, 16],
        "quantization": "int4",
        "output_quantization": "int8",
        "block_size": 32,
        "stop_tokens": "reserved",
        "stop_ids": [[VOCABULARY]],
        "converter": made["tool"],
    }
    assert made["tool"].startswith("edgebench's graph for LiteRT 2.")
    assert made["note"] == "embedding and output layer are kept as int8"
    assert sorted(path.name for path in tmp_path.glob("*made*")) == ["made.litertlm"]


def test_the_models_own_ends_stop_it_where_asked(tmp_path: Path) -> None:
    """A token that greedy decoding makes soon is named as an end, and ends it."""
    import json

    import torch
    from tokenizers import Tokenizer

    model = tiny_folder(tmp_path / "source", "llama")
    tokenizer = Tokenizer.from_file(str(tmp_path / "source" / "tokenizer.json"))
    prompt = TEXT[:40]
    ids = tokenizer.encode(prompt).ids
    before = len(ids)
    with torch.no_grad():
        for _ in range(4):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    ends = {"eos_token_id": [1, ids[-1]]}
    assert ids[-1] not in ids[before:-1]
    (tmp_path / "source" / "generation_config.json").write_text(json.dumps(ends))
    for stops, made in (("model", 4), ("reserved", 20)):
        bundle = tmp_path / f"{stops}.litertlm"
        make(tmp_path / "source", bundle, "fp32", stop_tokens=stops)
        assert ask(bundle, prompt=prompt, count=20)["made"] == made
