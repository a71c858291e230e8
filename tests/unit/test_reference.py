"""The reference against transformers' float32 models, and against itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_memory import InMemory, no_tokenizer

from edgebench.models.architecture import Architecture, Rope
from edgebench.models.canonical import CanonicalModel
from edgebench.models.errors import ModelFormatError
from edgebench.models.reference import COVERED, Reference, Tree

VOCABULARY = 131

SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    # Large enough that the distributions have peaks, so that a fault would show.
    "initializer_range": 0.3,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}

CASES: dict[str, tuple[str, dict[str, object]]] = {
    "llama, tied": ("llama", {"tie_word_embeddings": True}),
    "llama, untied, every bias": ("llama", {"attention_bias": True, "mlp_bias": True}),
    "llama, linear rope": ("llama", {"rope": {"rope_type": "linear", "factor": 4.0}}),
    "llama, llama3 rope": ("llama", {"rope": LLAMA3}),
    "llama, one key head": ("llama", {"num_key_value_heads": 1}),
    "llama, no shared key heads": ("llama", {"num_key_value_heads": 6}),
    "mistral": ("mistral", {"sliding_window": None}),
    "qwen2, tied, bias": ("qwen2", {"tie_word_embeddings": True}),
    "qwen2, yarn": ("qwen2", {"rope": YARN}),
    "qwen3, q and k normed": ("qwen3", {"head_dim": 16}),
}


def made_up(family: str, **changes: Any) -> tuple[Any, CanonicalModel]:
    """A random model of transformers, and the same in canonical form."""
    import torch
    import transformers

    rope = {"rope_theta": 10_000.0, "rope_type": "default", **changes.pop("rope", {})}
    config = transformers.AutoConfig.for_model(
        family, **{**SIZES, "tie_word_embeddings": False, "rope_parameters": rope, **changes}
    )
    torch.manual_seed(3)
    oracle = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for name, weight in oracle.named_parameters():
            if name.endswith("bias") or "norm" in name:
                weight.add_(0.2 * torch.randn_like(weight))  # they begin as zeros and ones
    rotary = oracle.model.rotary_emb
    architecture = Architecture(
        family=family,  # type: ignore[arg-type]
        layers=config.num_hidden_layers,
        hidden_size=config.hidden_size,
        intermediate_size=config.intermediate_size,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads,
        head_size=config.head_dim
        if family != "qwen2"
        else config.hidden_size // config.num_attention_heads,
        vocabulary_size=config.vocab_size,
        context_tokens=config.max_position_embeddings,
        norm_epsilon=config.rms_norm_eps,
        rope=Rope(
            theta=rope["rope_theta"],
            kind=rope["rope_type"],
            inverse_frequencies=tuple(rotary.inv_freq.double().tolist()),
            attention_factor=float(rotary.attention_scaling),
        ),
        attention_bias=family == "qwen2" or bool(getattr(config, "attention_bias", False)),
        output_bias=family == "llama" and bool(config.attention_bias),
        mlp_bias=bool(getattr(config, "mlp_bias", False)),
        qk_norm=family == "qwen3",
        tied_embeddings=bool(config.tie_word_embeddings),
    )
    state = {name: InMemory(value.numpy()) for name, value in oracle.state_dict().items()}
    weights = {name: state[name] for name in architecture.tensor_shapes()}
    for name, shape in architecture.tensor_shapes().items():
        assert weights[name].shape == shape, name
    return oracle, CanonicalModel(Path("made-up"), architecture, weights, no_tokenizer)


def log_likelihoods(oracle: Any, ids: tuple[int, ...]) -> np.ndarray:
    """What transformers says after each token of `ids`: (tokens, vocabulary)."""
    import torch

    with torch.no_grad():
        logits = oracle(torch.tensor([ids])).logits[0].double()
    return np.asarray(torch.log_softmax(logits, dim=-1))


def drawn(count: int, seed: int = 0) -> tuple[int, ...]:
    return tuple(np.random.default_rng(seed).integers(0, VOCABULARY, count).tolist())


PROMPT = drawn(90)
BRANCHES = (drawn(9, 1), drawn(7, 2), drawn(1, 3), ())


@pytest.mark.transformers
@pytest.mark.parametrize("case", CASES)
def test_every_token_is_rated_as_transformers_does(case: str) -> None:
    """Each family and rope: log-likelihood, likeliest token, lead and candidates are the same."""
    family, changes = CASES[case]
    oracle, model = made_up(family, **changes)
    (rated,) = Reference(model).rate([Tree(PROMPT, BRANCHES)])

    told = log_likelihoods(oracle, PROMPT)
    assert told.max(axis=-1).mean() > -2, "too flat to show a fault"
    assert len(rated.prompt) == len(PROMPT) - 1
    for row, named, position in zip(told, PROMPT[1:], rated.prompt, strict=False):
        best = np.sort(row)[::-1]
        assert position.log_likelihood == pytest.approx(row[named], abs=2e-4)
        assert position.top_log_likelihood == pytest.approx(best[0], abs=2e-4)
        assert position.lead == pytest.approx(best[0] - best[1], abs=4e-4)
        if position.lead > 1e-3:
            assert position.top_id == row.argmax()
        rated_there = row[list(position.candidates)]
        assert position.candidate_log_likelihoods == pytest.approx(rated_there, abs=2e-4)
        assert np.exp(rated_there).sum() == pytest.approx(COVERED, abs=1.1e-3)
        # One candidate fewer would not be enough.
        assert np.exp(rated_there[:-1]).sum() < COVERED + 1e-5

    for branch, found in zip(BRANCHES, rated.branches, strict=True):
        told = log_likelihoods(oracle, PROMPT + branch)[len(PROMPT) - 1 : -1]
        assert len(found) == len(branch)
        for row, named, position in zip(told, branch, found, strict=True):
            assert position.log_likelihood == pytest.approx(row[named], abs=2e-4)
            assert position.behind == pytest.approx(row.max() - row[named], abs=4e-4)


def arrays(**changes: object) -> CanonicalModel:
    """A small llama of random weights, without transformers."""
    architecture = Architecture(
        family="llama", layers=2, hidden_size=16, intermediate_size=24, heads=4, kv_heads=2,
        head_size=4, vocabulary_size=VOCABULARY, context_tokens=64, norm_epsilon=1e-5,
        rope=Rope(100.0, "default", (1.0, 0.1)),
    )  # fmt: skip
    architecture = replace(architecture, **changes)  # type: ignore[arg-type]
    chance = np.random.default_rng(5)
    weights = {
        name: InMemory((0.5 * chance.standard_normal(shape)).astype(np.float32))
        for name, shape in architecture.tensor_shapes().items()
    }
    return CanonicalModel(Path("made-up"), architecture, weights, no_tokenizer)


def test_texts_in_one_pass_do_not_see_each_other() -> None:
    """A tree is rated the same alone, beside others, and as a plain text."""
    model = arrays()
    first, second = Tree(PROMPT[:20], BRANCHES[:2]), Tree(drawn(12, 7), (drawn(3, 8),))
    together = Reference(model).rate([first, second])
    for tree, rated in zip((first, second), together, strict=True):
        (alone,) = Reference(model).rate([tree])
        assert [each.top_id for each in alone.prompt] == [each.top_id for each in rated.prompt]
        for branch, found in zip(tree.branches, rated.branches, strict=True):
            (plain,) = Reference(model).rate([Tree(tree.prompt + branch)])
            expected = [each.log_likelihood for each in plain.prompt[-len(branch) :]]
            assert [each.log_likelihood for each in found] == pytest.approx(expected, abs=1e-4)


def test_matrices_read_in_blocks_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, of queries and of positions change nothing."""
    from edgebench.models import reference_head, reference_layers, weights

    model, tree = arrays(tied_embeddings=True), Tree(PROMPT[:40], BRANCHES[:2])
    (whole,) = Reference(model).rate([tree])

    def few_rows(tensor: Any) -> Any:
        return weights.row_blocks(tensor, 7 * 4 * tensor.shape[1])

    monkeypatch.setattr(reference_head, "row_blocks", few_rows)
    monkeypatch.setattr(reference_layers, "row_blocks", few_rows)
    monkeypatch.setattr(reference_layers, "QUERY_ROWS", 3)
    monkeypatch.setattr(reference_head, "POSITIONS", 5)
    (blocks,) = Reference(model).rate([tree])
    pairs = [
        *zip(whole.prompt, blocks.prompt, strict=True),
        *zip(*map(sum, (whole.branches, blocks.branches), ((), ())), strict=True),
    ]
    assert len(pairs) == 39 + 16
    for one, other in pairs:
        assert one.candidates == other.candidates
        assert one.top_id == other.top_id
        assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-5)
        assert one.candidate_log_likelihoods == pytest.approx(
            other.candidate_log_likelihoods, abs=1e-5
        )


def test_a_flat_distribution_has_a_lead_of_zero() -> None:
    """Weights of zero: every token has the same likelihood, and the smallest id is named."""
    model = arrays()
    silent = replace(
        model,
        weights={
            name: InMemory(np.zeros(tensor.shape, np.float32))
            for name, tensor in model.weights.items()
        },
    )
    (rated,) = Reference(silent).rate([Tree((5, 6, 7))])
    for position in rated.prompt:
        assert position.log_likelihood == pytest.approx(-np.log(VOCABULARY))
        assert (position.top_id, position.lead, position.behind) == (0, 0.0, 0.0)


def test_the_candidates_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No position has more than the most, and those are the likeliest."""
    monkeypatch.setattr("edgebench.models.reference.MOST_CANDIDATES", 3)
    model = arrays()
    (capped,) = Reference(model).rate([Tree(PROMPT[:9])])
    monkeypatch.undo()
    (rated,) = Reference(model).rate([Tree(PROMPT[:9])])
    for few, many in zip(capped.prompt, rated.prompt, strict=True):
        assert few.candidates == many.candidates[:3]


@pytest.mark.parametrize("wrong", [-1, VOCABULARY])
def test_a_token_outside_of_the_vocabulary_is_refused(wrong: int) -> None:
    """It is named, and nothing is read as another token."""
    with pytest.raises(ValueError, match=f"token id {wrong} is outside"):
        Reference(arrays()).rate([Tree((1, wrong))])


def test_an_empty_prompt_is_refused() -> None:
    """There is nothing that a first token could be given."""
    with pytest.raises(ValueError, match="at least one token"):
        Reference(arrays()).rate([Tree(())])


def test_weights_that_are_no_numbers_are_named() -> None:
    """A NaN in a file is an error of that file, not a strange result."""
    model = arrays()
    broken = {**model.weights}
    broken["model.layers.1.mlp.up_proj.weight"] = InMemory(
        np.full((24, 16), np.nan, dtype=np.float32)
    )
    with pytest.raises(ModelFormatError, match="made-up give values that are no finite numbers"):
        Reference(replace(model, weights=broken)).rate([Tree(PROMPT[:4])])


def test_every_step_is_told() -> None:
    """The layers are counted, and the output layer is named."""
    told: list[str] = []
    Reference(arrays(), told.append).rate([Tree(PROMPT[:4])])
    assert told[:2] == ["layer 1 of 2", "layer 2 of 2"]
    assert told[-1] == f"output layer, token 0 of {VOCABULARY}"
