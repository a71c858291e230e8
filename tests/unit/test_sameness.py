"""The figures of a comparison, and what is called the same model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from in_memory import InMemory, no_tokenizer
from scipy.stats import entropy

from edgebench.harness.results.measured import Measured
from edgebench.harness.results.sameness import Parting, PromptSameness
from edgebench.harness.sameness import (
    BFLOAT,
    FULL,
    Said,
    compare_prompt,
    figures,
    findings,
    limits_for,
    metrics_of,
    what_is_not_exact,
)
from edgebench.harness.scenario.expand import ExpandedVariant
from edgebench.harness.verify import high_precision_variants
from edgebench.models.architecture import Architecture, Rope
from edgebench.models.canonical import CanonicalModel
from edgebench.models.ratings import Ratings, kl_divergences
from edgebench.models.reference import RatedTree, Reference, Tree
from edgebench.runners.base import Scores

if TYPE_CHECKING:
    from collections.abc import Callable


VOCABULARY = 97
HEAD = 8


def model(theta: float = 1000.0) -> CanonicalModel:
    """A small model with biases, whose distributions have peaks."""
    architecture = Architecture(
        family="qwen2", layers=3, hidden_size=32, intermediate_size=64, heads=4, kv_heads=2,
        head_size=HEAD, vocabulary_size=VOCABULARY, context_tokens=128, norm_epsilon=1e-5,
        rope=Rope(theta, "default", tuple(theta ** (-np.arange(HEAD // 2) * 2 / HEAD))),
        attention_bias=True,
    )  # fmt: skip
    chance = np.random.default_rng(11)
    weights = {
        name: InMemory((0.4 * chance.standard_normal(shape)).astype(np.float32))
        for name, shape in architecture.tensor_shapes().items()
    }
    return CanonicalModel(Path("made-up"), architecture, weights, no_tokenizer)


def changed(
    good: CanonicalModel, change: Callable[[str, np.ndarray], np.ndarray]
) -> CanonicalModel:
    """The model with each tensor as `change` makes it."""
    weights = {
        name: InMemory(np.ascontiguousarray(change(name, tensor.read())))
        for name, tensor in good.weights.items()
    }
    return replace(good, weights=weights)


def swapped_gate_and_up(good: CanonicalModel) -> CanonicalModel:
    names = {"gate": "up", "up": "gate"}

    def source(name: str) -> str:
        part = name.split(".")[-2].removesuffix("_proj")
        return name.replace(f"{part}_proj", f"{names[part]}_proj") if part in names else name

    return replace(good, weights={name: good.weights[source(name)] for name in good.weights})


def neighbours_for_halves(name: str, values: np.ndarray) -> np.ndarray:
    """Queries and keys in llama.cpp's order, as if the permutation had been forgotten."""
    if "q_proj" not in name and "k_proj" not in name:
        return values
    heads = values.shape[0] // HEAD
    return values.reshape(heads, 2, HEAD // 2, -1).swapaxes(1, 2).reshape(values.shape)


def nibbles_swapped(name: str, values: np.ndarray) -> np.ndarray:
    """Each pair of neighbours of one matrix in the wrong order."""
    if name != "model.layers.1.mlp.down_proj.weight":
        return values
    return values.reshape(values.shape[0], -1, 2)[:, :, ::-1].reshape(values.shape)


FAULTS: dict[str, Callable[[CanonicalModel], CanonicalModel]] = {
    "gate and up swapped": swapped_gate_and_up,
    "q and k not permuted": lambda good: changed(good, neighbours_for_halves),
    "nibbles swapped in one matrix": lambda good: changed(good, nibbles_swapped),
    "the key's bias dropped in one layer": lambda good: changed(
        good,
        lambda name, values: 0 * values if name.endswith("2.self_attn.v_proj.bias") else values,
    ),
    "another rope theta": lambda good: replace(good, architecture=model(100.0).architecture),
    "the last norm left out": lambda good: changed(
        good, lambda name, values: 0 * values + 1 if name == "model.norm.weight" else values
    ),
    "8 bits for 16": lambda good: changed(
        good,
        lambda _, values: (
            np.round(values / np.abs(values).max() * 127) / 127 * np.abs(values).max()
        ),
    ),
}

PROMPT = tuple(np.random.default_rng(2).integers(0, VOCABULARY, 60).tolist())


def plays(variant: CanonicalModel, tokens: int = 12) -> tuple[Said, RatedTree]:
    """What a runner of `variant` would say, and the reference's ratings."""
    ids = PROMPT
    for _ in range(tokens):
        (rated,) = Reference(variant).rate([Tree(ids, ((0,),))])
        ids += (rated.branches[0][0].top_id,)
    generated = ids[len(PROMPT) :]
    (ours,) = Reference(model()).rate([Tree(PROMPT, (generated,))])
    (theirs,) = Reference(variant).rate([Tree(PROMPT)])
    told, rows = theirs.prompt, []
    for place, asked in enumerate(ours.prompt.candidate_lists()):
        logs = told.candidate_log_likelihoods[told.offsets[place] : told.offsets[place + 1]]
        known = dict(zip(told.candidates(place), logs.tolist(), strict=True))
        rows.append([known.get(each, -12.0) for each in asked])
    scores = Scores(told.log_likelihoods.tolist(), told.top_ids.tolist(), rows)
    return Said(generated, scores), ours


def compared(variant: CanonicalModel) -> PromptSameness:
    said, rated = plays(variant)
    found = figures(rated.prompt, said.scores, "")
    return compare_prompt("w", len(PROMPT), said, rated.branches[0], found, str)


def test_the_same_weights_agree() -> None:
    """The model itself, and the same weights rounded to 16 bits, are called the same."""
    exact = compared(model())
    assert findings([exact]) == []
    assert (exact.common_tokens, exact.parting) == (12, None)
    assert exact.metrics["top1_agreement"].value == 1
    assert exact.metrics["kl_divergence"].value == pytest.approx(0, abs=1e-9)
    halves = changed(model(), lambda _, each: each.astype(np.float16).astype(np.float32))
    assert findings([compared(halves)]) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_converters_fault_differs_and_is_told(fault: str) -> None:
    """What a broken converter makes is far from the same, by the looser limits too."""
    wrong = compared(FAULTS[fault](model()))
    assert findings([wrong], FULL)
    assert wrong.metrics["kl_divergence"].value > 3 * FULL.kl_divergence
    if fault != "8 bits for 16":
        assert findings([wrong], BFLOAT)


def positions(*logs: list[float], stands: float = -1.0) -> Ratings:
    counts = [len(each) for each in logs]
    return Ratings(
        np.full(len(logs), stands),
        np.cumsum([0, *counts]),
        np.concatenate([np.arange(count) for count in counts]).astype(np.uint32),
        np.concatenate(logs).astype(np.float32),
        np.zeros(len(logs), np.uint32),
    )


def kl_divergence(ours: list[float], theirs: list[float]) -> float:
    (found,) = kl_divergences(positions(ours), [theirs])
    return float(found)


def test_kl_divergence_by_hand() -> None:
    """0.5, 0.25 and a rest of 0.25 against 0.25, 0.25 and 0.5: ln 2 / 2 - ln 2 / 4."""
    ours = np.log([0.5, 0.25]).tolist()
    assert kl_divergence(ours, np.log([0.25, 0.25]).tolist()) == pytest.approx(np.log(2) / 4)
    same = kl_divergence(ours, np.log([0.5, 0.25]).tolist())
    assert same == pytest.approx(0, abs=1e-13)  # rounded to float32


def test_kl_divergence_is_never_more_than_the_real_one() -> None:
    """Over all tokens it is scipy's; over some of them and a rest, at most that."""
    chance = np.random.default_rng(4)
    for _ in range(50):
        ours, theirs = np.sort(chance.dirichlet(np.full(30, 0.3), 2) + 1e-8)[:, ::-1]
        ours, theirs = ours / ours.sum(), chance.permutation(theirs / theirs.sum())
        real = entropy(ours, theirs)
        every = kl_divergence(np.log(ours).tolist(), np.log(theirs).tolist())
        assert every == pytest.approx(real, rel=1e-6)
        some = kl_divergence(np.log(ours[:4]).tolist(), np.log(theirs[:4]).tolist())
        assert 0 <= some <= real + 1e-9


def test_a_variant_that_is_certain_of_other_tokens_has_a_finite_divergence() -> None:
    """No share of the rest is left by the variant's rounding: the figure stays a number."""
    found = kl_divergence(np.log([0.5, 0.3]).tolist(), [0.0, -80.0])
    assert 20 < found < 100


def test_what_a_framework_hides_is_null_with_the_reason() -> None:
    """No scores, no likeliest tokens, no candidates: each figure says why it is missing."""
    rated = replace(positions([-0.5, -1.5], [-0.2, -2.0]), log_likelihoods=np.array([-0.5, -0.2]))
    none = metrics_of([figures(rated, None, "it can't")])
    assert {each.reason for each in none.values()} == {"it can't"}
    assert {each.value for each in none.values()} == {None}
    partly = metrics_of([figures(rated, Scores([-0.6, -0.2]), "")])
    assert "likeliest" in partly["top1_agreement"].reason
    assert "don't stand there" in partly["kl_divergence"].reason
    assert partly["log_likelihood_difference_max"].value == pytest.approx(0.1)
    assert partly["log_likelihood_difference"].value == pytest.approx(0.05)


def test_figures_of_several_prompts_count_each_position_once() -> None:
    """One prompt with 1 of 1 alike and one with 0 of 3: a quarter, not a half."""
    parts = [
        figures(positions([-0.1, -3.0]), Scores([-1.0], [0], [[-0.1, -3.0]]), ""),
        figures(
            positions(*[[-0.1, -3.0]] * 3), Scores([-1.0] * 3, [1] * 3, [[-0.1, -3.0]] * 3), ""
        ),
    ]
    assert metrics_of(parts)["top1_agreement"].value == 0.25


def prompt(**changes: object) -> PromptSameness:
    metrics = {
        "kl_divergence": Measured(value=1e-6, unit="nat", source="derived"),
        "log_likelihood_difference_max": Measured(value=1e-3, unit="nat", source="derived"),
    }
    return PromptSameness.model_validate(
        {
            "workload": "chat", "prompt_tokens": 5, "tokenizer": "equal", "generated_tokens": 9,
            "common_tokens": 9, "metrics": metrics,
        }
        | changes
    )  # fmt: skip


def parting(margin: float) -> Parting:
    return Parting(
        token=6, reference_id=1, reference_text=" the", variant_id=2, variant_text=" a",
        margin=margin,
    )  # fmt: skip


def test_a_near_tie_is_no_fault_and_a_clear_choice_is() -> None:
    """Texts may part where both tokens were as likely; elsewhere the place is named."""
    assert findings([prompt(common_tokens=6, parting=parting(FULL.near_tie))]) == []
    (found,) = findings([prompt(common_tokens=6, parting=parting(FULL.near_tie + 0.01))])
    assert "on chat, its text parts" in found
    assert "at token 7: ' a' for ' the'" in found


def test_another_tokenizer_is_a_fault() -> None:
    """Other ids for the same text: the same model would be asked something else."""
    (found,) = findings([prompt(tokenizer="differs", tokenizer_note="3 ids for 4")])
    assert "its tokenizer makes other ids: 3 ids for 4" in found


@pytest.mark.parametrize("key", ["kl_divergence", "log_likelihood_difference_max"])
def test_each_limit_is_looked_at(key: str) -> None:
    """A figure over its limit is a finding that holds both numbers."""
    far = {**prompt().metrics, key: Measured(value=9.0, unit="nat", source="derived")}
    (found,) = findings([prompt(metrics=far)])
    assert " is 9, over " in found


def test_figures_that_are_missing_are_not_held_against_a_variant() -> None:
    """A framework that gives no likelihoods is judged by its text and its tokenizer."""
    missing = {key: Measured.missing("nat", "hidden") for key in prompt().metrics}
    assert findings([prompt(metrics=missing)]) == []


@pytest.mark.parametrize(
    ("quantization", "lossy", "options", "inexact"),
    [
        ("F32", ("Q4_1",), {}, None),
        ("fp16", (), {"threads": 2, "memory": "normal"}, None),
        ("BF16", (), {"kv_cache_type_k": "f16", "kv_cache_type_v": "f32"}, None),
        ("source", (), {}, None),
        ("source", ("Q4_1", "Q8_0"), {}, "Q4_1 weights"),
        ("int4", (), {}, "int4 weights"),
        ("Q8_0", (), {}, "Q8_0 weights"),
        ("F16", (), {"kv_cache_type_v": "q8_0"}, "kv_cache_type_v=q8_0"),
        ("q0f16", (), {"kv_cache_type": "float16"}, None),
        ("q0f32", (), {"kv_cache_type": "int8"}, "kv_cache_type=int8"),
        ("q4f32_1", (), {}, "q4f32_1 weights"),
        ("fp32", (), {"output_quantization": "int8"}, "output_quantization=int8"),
        ("fp16", (), {"precision": "low"}, "precision=low"),
    ],
)
def test_only_what_loses_nothing_is_judged(
    quantization: str, lossy: tuple[str, ...], options: dict[str, str], inexact: str | None
) -> None:
    """Quantised weights, caches and output layers, and low precision are shown and not judged."""
    assert what_is_not_exact(quantization, lossy, options, {}) == inexact


def test_what_a_framework_uses_counts_and_its_own_precision_does_not() -> None:
    """A cache that a framework chose is looked at; a precision nobody asked for is judged."""
    assert what_is_not_exact("fp32", (), {}, {"kv_cache": "int8"}) == "kv_cache=int8"
    assert what_is_not_exact("fp32", (), {}, {"kv_cache": "fp", "precision": "low"}) is None


def test_bfloat16_is_held_to_what_bfloat16_can_do() -> None:
    """BF16 artifacts, and sources in BF16 that are run as they are, have looser limits."""
    assert limits_for("F16", {"BF16"}) is FULL
    assert limits_for("BF16", {"F32"}) is BFLOAT
    assert limits_for("source", {"F32", "BF16"}) is BFLOAT
    assert limits_for("source", {"F32", "F16"}) is FULL


def test_the_most_exact_artifact_is_added_for_each_runner() -> None:
    """One each where a runner makes one and the scenario has none, under a name of its own."""

    def variant(runner: str, quantization: str, **options: int) -> ExpandedVariant:
        name = f"{runner} {quantization}"
        return ExpandedVariant(name, runner, quantization, options)

    made = {"a": ("Q8_0", "F16", "F32"), "b": ("int4", "fp16", "fp32"), "c": ("copy",)}
    scenario = [variant("a", "Q8_0", threads=2), variant("a", "source"), variant("b", "fp32"),
                variant("c", "copy")]  # fmt: skip
    added = high_precision_variants(scenario, made)
    assert [(each.id, each.quantization, dict(each.options)) for each in added] == [
        ("a F32 threads=2", "F32", {"threads": 2})
    ]
    taken = [variant("a", "F32", batch=2)]
    assert [each.id for each in high_precision_variants(taken, made)] == ["a F32 (to verify)"]


def test_each_compiler_and_engine_of_a_runner_is_proven() -> None:
    """They are frameworks of their own: what one computes says nothing of the other."""

    def variant(quantization: str, **options: str | int) -> ExpandedVariant:
        words = [f"{name}={value}" for name, value in options.items()]
        return ExpandedVariant(" ".join(["m", quantization, *words]), "m", quantization, options)

    made = {"m": ("q0f32", "q4f32_1")}
    both = [variant("q4f32_1", compiler="x"), variant("q4f32_1", compiler="y", threads=2)]
    assert [each.id for each in high_precision_variants(both, made)] == [
        "m q0f32 compiler=x",
        "m q0f32 compiler=y threads=2",
    ]
    one_has = [variant("q0f32", compiler="x"), variant("q4f32_1", engine="z")]
    assert [each.id for each in high_precision_variants(one_has, made)] == ["m q0f32 engine=z"]
