"""The reference against transformers' float32 models, and against itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from in_memory import InMemory, no_tokenizer

from edgebench.models.architecture import Architecture, Rope
from edgebench.models.canonical import CanonicalModel
from edgebench.models.errors import ModelFormatError
from edgebench.models.reference import COVERED, WINDOW_COVERED, Reference, Tree, Window

if TYPE_CHECKING:
    from edgebench.models.ratings import Ratings

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
    for place, (row, named) in enumerate(zip(told, PROMPT[1:], strict=False)):
        best = np.sort(row)[::-1]
        ids = rated.prompt.candidates(place)
        logs = candidate_log_likelihoods(rated.prompt, place)
        assert rated.prompt.log_likelihoods[place] == pytest.approx(row[named], abs=2e-4)
        assert logs[0] == pytest.approx(best[0], abs=2e-4)
        assert rated.prompt.top_ids[place] == ids[0]
        if best[0] - best[1] > 1e-3:
            assert ids[0] == row.argmax()
        rated_there = row[ids]
        assert logs == pytest.approx(rated_there, abs=2e-4)
        assert np.exp(rated_there).sum() == pytest.approx(COVERED, abs=1.1e-3)
        # One candidate fewer would not be enough.
        assert np.exp(rated_there[:-1]).sum() < COVERED + 1e-5

    for branch, found in zip(BRANCHES, rated.branches, strict=True):
        told = log_likelihoods(oracle, PROMPT + branch)[len(PROMPT) - 1 : -1]
        assert len(found) == len(branch)
        for row, named, position in zip(told, branch, found, strict=True):
            assert position.log_likelihood == pytest.approx(row[named], abs=2e-4)
            assert position.behind == pytest.approx(row.max() - row[named], abs=4e-4)
            best = np.sort(row)[::-1]
            assert position.lead == pytest.approx(best[0] - best[1], abs=4e-4)


def candidate_log_likelihoods(ratings: Ratings, position: int) -> list[float]:
    first, last = ratings.offsets[position : position + 2]
    return ratings.candidate_log_likelihoods[first:last].tolist()


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
        assert alone.prompt.top_ids.tolist() == rated.prompt.top_ids.tolist()
        for branch, found in zip(tree.branches, rated.branches, strict=True):
            (plain,) = Reference(model).rate([Tree(tree.prompt + branch)])
            expected = plain.prompt.log_likelihoods[-len(branch) :].tolist()
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
    pairs = [*zip(*map(sum, (whole.branches, blocks.branches), ((), ())), strict=True)]
    assert (len(whole.prompt), len(pairs)) == (39, 16)
    assert whole.prompt.candidate_lists() == blocks.prompt.candidate_lists()
    for name in ("log_likelihoods", "candidate_log_likelihoods"):
        assert getattr(whole.prompt, name) == pytest.approx(getattr(blocks.prompt, name), abs=1e-5)
    for one, other in pairs:
        assert one.top_id == other.top_id
        assert one.log_likelihood == pytest.approx(other.log_likelihood, abs=1e-5)


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
    (rated,) = Reference(silent).rate([Tree((5, 6, 7), ((8, 9),))])
    assert rated.prompt.log_likelihoods == pytest.approx([-np.log(VOCABULARY)] * 2)
    assert rated.prompt.candidate_lists() == [list(range(VOCABULARY))] * 2
    for position in rated.branches[0]:
        assert position.log_likelihood == pytest.approx(-np.log(VOCABULARY))
        assert (position.top_id, position.lead, position.behind) == (0, 0.0, 0.0)


def test_the_candidates_are_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    """No position has more than the most, and those are the likeliest."""
    monkeypatch.setattr("edgebench.models.reference.MOST_CANDIDATES", 3)
    model = arrays()
    (capped,) = Reference(model).rate([Tree(PROMPT[:9])])
    monkeypatch.undo()
    (rated,) = Reference(model).rate([Tree(PROMPT[:9])])
    for few, many in zip(
        capped.prompt.candidate_lists(), rated.prompt.candidate_lists(), strict=True
    ):
        assert few == many[:3]
    assert max(map(len, rated.prompt.candidate_lists())) > 3


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


def test_windows_are_rated_from_their_start_on() -> None:
    """As the same tokens are in a whole text, in passes of one window or of all."""
    model = arrays()
    windows = [Window(PROMPT[:30], 12), Window(drawn(9, 7), 1), Window(PROMPT[20:50], 29)]
    (together,) = Reference(model).rate_windows(windows)
    for window, found in zip(windows, together, strict=True):
        (whole,) = Reference(model).rate([Tree(window.ids)])
        expected = whole.prompt.log_likelihoods[window.start - 1 :]
        assert found.log_likelihoods == pytest.approx(expected, abs=1e-5)
        for place, ids in enumerate(found.candidate_lists()):
            fewer = whole.prompt.candidates(window.start - 1 + place)
            assert ids[: len(fewer)] == fewer
        assert (found.covered >= WINDOW_COVERED - 1e-6).all()
        assert (found.samples == 0).all()


def test_passes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """One window in each pass gives what all in one do; each pass is handed over when done."""
    model, told = arrays(), list[str]()
    windows = [Window(drawn(20, seed), 5) for seed in range(3)]
    (together,) = Reference(model).rate_windows(windows)
    monkeypatch.setattr("edgebench.models.reference_plan.PASS_TOKENS", 25)
    made = Reference(model, told.append).rate_windows(windows)
    first = next(made)
    assert told.count("layer 1 of 2") == 1
    parts = [first, *made]
    assert [len(part) for part in parts] == [1, 1, 1]
    for one, (other,) in zip(together, parts, strict=True):
        assert one.log_likelihoods == pytest.approx(other.log_likelihoods, abs=1e-5)
        assert one.candidate_lists() == other.candidate_lists()


def nearly_flat() -> CanonicalModel:
    """Says nearly the same of each of 3,000 tokens, of which nearly all would be needed."""
    model = arrays(vocabulary_size=3000)
    weights = {
        name: InMemory(tensor.read() * np.float32(0.3 if name == "lm_head.weight" else 1))
        for name, tensor in model.weights.items()
    }
    return replace(model, weights=weights)


def test_a_position_of_a_window_takes_at_most_2000_bytes() -> None:
    """With as many likeliest tokens and samples as there ever are."""
    ((found,),) = Reference(nearly_flat()).rate_windows([Window(PROMPT[:50], 10)])
    assert len(found) == 40
    assert found.samples.tolist() == [80] * 40
    assert 1800 * 40 < found.nbytes < 2000 * 40


def test_samples_are_others_than_the_likeliest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their likelihoods are those of a whole distribution; none is one of the likeliest."""
    model, window = nearly_flat(), Window(PROMPT[:20], 10)
    told = list[str]()
    ((found,),) = Reference(model, told.append).rate_windows([window])
    assert told[-1] == "output layer anew, token 0 of 3000"
    monkeypatch.setattr("edgebench.models.reference.MOST_CANDIDATES", 3000)
    monkeypatch.setattr("edgebench.models.reference.COVERED", 2.0)
    (whole,) = Reference(model).rate([Tree(window.ids)])
    assert whole.prompt.samples.tolist() == [0] * 19
    for place in range(10):
        ids, order = found.candidates(place), whole.prompt.candidates(place + 9)
        assert ids[:160] == order[:160]
        assert ids[160:] == sorted(ids[160:])
        assert set(ids[160:]) <= set(order[160:])
        known = dict(zip(order, candidate_log_likelihoods(whole.prompt, place + 9), strict=True))
        assert candidate_log_likelihoods(found, place) == pytest.approx(
            [known[each] for each in ids], abs=1e-5
        )
        assert found.covered[place] == pytest.approx(
            np.exp([known[each] for each in ids[:160]]).sum(), abs=1e-5
        )


def test_a_window_has_the_same_samples_whatever_else_is_rated() -> None:
    """Alone, behind others, from another position on; and another text has others."""
    model = nearly_flat()
    window, other = Window(PROMPT[:30], 12), Window(drawn(30, 4), 12)
    ((alone,),) = Reference(model).rate_windows([window])
    ((different, beside),) = Reference(model).rate_windows([other, window])
    ((later,),) = Reference(model).rate_windows([replace(window, start=20)])
    assert alone.samples.tolist() == [80] * 18
    for place in range(18):
        ids = alone.candidates(place)[160:]
        assert ids == pytest.approx(beside.candidates(place)[160:], abs=1)
        assert len(set(ids) & set(different.candidates(place)[160:])) < 40
    assert alone.candidates(8)[160:] == pytest.approx(later.candidates(0)[160:], abs=1)
    # At a position no mark is where it is at another.
    assert len({tuple(each[160:]) for each in alone.candidate_lists()}) == 18


def test_tokens_are_drawn_by_how_likely_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all places of the first mark each is drawn as often as its share, in blocks or not."""
    from edgebench.models import reference_head, reference_samples, weights

    places, keep, draws = 500, 5, 12
    column = 1.5 * np.random.default_rng(8).standard_normal(40)
    # More alike than are kept, so that ids and not values tell who is left out.
    column[[3, 4, 9, 20, 30, 31, 35]] = column.max()
    shares = np.exp(column) / np.exp(column).sum()
    top = np.lexsort((np.arange(40), -column))[:keep]
    shares[top] = 0
    expected = draws * shares / shares.sum()
    assert (expected > 1).any(), "none is drawn for certain"
    output, hidden = InMemory(column.astype(np.float32)[:, None]), np.ones((places, 1), np.float32)
    for block in (41, 17, 1):
        for module in (reference_head, reference_samples):
            monkeypatch.setattr(
                module, "row_blocks", lambda each, rows=block: weights.row_blocks(each, 4 * rows)
            )
        found = reference_head.likeliest(
            output, hidden, np.zeros(places, np.int64), keep, lambda *_: None
        )
        samples = reference_samples.draw(
            output, hidden, found, (np.arange(places) + 0.5) / places,
            draws=draws, covered=0.999, progress=lambda *_: None,
        )  # fmt: skip
        times = np.stack([np.bincount(row, minlength=40) for row in samples.ids])
        assert times.sum(axis=1).tolist() == [draws] * places
        assert times.mean(axis=0) == pytest.approx(expected, abs=2 / places)
        assert (np.abs(times - expected) < 1).all()
        logs = column - np.log(np.exp(column).sum())
        assert samples.log_likelihoods == pytest.approx(logs[samples.ids], abs=1e-5)


@pytest.mark.parametrize(("keep", "covered"), [(5, 0.5), (40, 1.0), (60, 1.0)])
def test_nothing_is_drawn_where_there_is_no_need(keep: int, covered: float) -> None:
    """The likeliest hold enough, or are all that there are."""
    from edgebench.models import reference_head, reference_samples

    output, hidden = InMemory(np.arange(40, dtype=np.float32)[:, None]), np.ones((3, 1), np.float32)
    found = reference_head.likeliest(output, hidden, np.zeros(3, np.int64), keep, lambda *_: None)
    told = list[int]()
    samples = reference_samples.draw(
        output, hidden, found, np.zeros(3),
        draws=4, covered=covered, progress=lambda done, _: told.append(done),
    )  # fmt: skip
    assert (samples.ids == reference_samples.NONE).all()
    assert told == [], "the output layer was read for nothing"


@pytest.mark.parametrize("chance", [0.0, 1 - 2**-53])
def test_a_mark_at_the_very_end_names_a_token(chance: float) -> None:
    """Whatever rounding did to the sum: it is one of the others, and one that can be."""
    from edgebench.models import reference_head, reference_samples

    chances = np.random.default_rng(2)
    column = chances.standard_normal(5000).astype(np.float32)
    column[-3:] = -200.0  # as unlikely as to be nothing in float32
    column[-4] = 9.0  # one of the likeliest
    output, hidden = InMemory(column[:, None]), np.ones((1, 1), np.float32)
    found = reference_head.likeliest(output, hidden, np.zeros(1, np.int64), 20, lambda *_: None)
    samples = reference_samples.draw(
        output, hidden, found, np.array([chance]),
        draws=64, covered=0.999, progress=lambda *_: None,
    )  # fmt: skip
    (ids,) = samples.ids.tolist()
    assert min(ids) >= 0
    assert max(ids) < 4996
    assert not set(ids) & set(found.ids[0].tolist())
    assert len(set(ids)) > 32
    if chance:
        # The last of the others that is not one of the likeliest.
        assert ids[-1] == max(set(range(4996)) - set(found.ids[0].tolist()))


def test_the_likeliest_are_found_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted alike neighbours, ties and few tokens: as sorting all of them would have it."""
    from edgebench.models import reference_head, weights

    chance = np.random.default_rng(3)
    hidden = np.ones((4, 1), np.float32)
    logits = {
        "sorted": np.arange(900.0),
        "at one end": np.where(np.arange(900) < 40, 5.0, 0.0) + np.arange(900) / 1e4,
        "ties": chance.integers(0, 4, 900).astype(np.float64),
        "random": chance.standard_normal(900),
        "few": chance.standard_normal(9),
    }
    for block in (901, 130, 7):
        monkeypatch.setattr(
            reference_head,
            "row_blocks",
            lambda each, rows=block: weights.row_blocks(each, 4 * rows),
        )
        for case, column in logits.items():
            for keep in (1, 10, 300):
                found = reference_head.likeliest(
                    InMemory(column.astype(np.float32)[:, None]),
                    hidden,
                    np.full(4, 2),
                    keep,
                    lambda *_: None,
                )
                order = np.lexsort((np.arange(len(column)), -column))[:keep]
                total = np.log(np.exp(column - column.max()).sum()) + column.max()
                assert found.ids.tolist() == [order.tolist()] * 4, (case, keep, block)
                assert found.log_likelihoods[3] == pytest.approx(column[order] - total, abs=1e-4)
                assert found.named == pytest.approx([column[2] - total] * 4, abs=1e-4)


@pytest.mark.parametrize("start", [0, 5, 9])
def test_a_window_that_rates_nothing_is_refused(start: int) -> None:
    """Before any pass: its first token is given nothing, and beyond its end there is none."""
    with pytest.raises(ValueError, match=f"from position {start}"):
        Reference(arrays()).rate_windows([Window(PROMPT[:5], start)])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_output_layer_of_no_numbers_is_named(value: float) -> None:
    """It is an error of the file where the layers before it are sound, too."""
    model = arrays()
    output = model.weights["lm_head.weight"].read()
    output[77] = value
    broken = replace(model, weights={**model.weights, "lm_head.weight": InMemory(output)})
    with pytest.raises(ModelFormatError, match="no finite numbers"):
        list(Reference(broken).rate_windows([Window(PROMPT[:5], 1)]))


@pytest.mark.transformers
def test_windows_are_rated_as_transformers_does() -> None:
    """With the start in the middle: log-likelihoods, likeliest tokens and candidates."""
    oracle, model = made_up("llama", tie_word_embeddings=True)
    windows = [Window(PROMPT, 40), Window(drawn(33, 4), 32)]
    (rated,) = Reference(model).rate_windows(windows)
    for window, found in zip(windows, rated, strict=True):
        told = log_likelihoods(oracle, window.ids)[window.start - 1 : -1]
        stands = told[np.arange(len(told)), list(window.ids[window.start :])]
        assert found.log_likelihoods == pytest.approx(stands, abs=2e-4)
        for place, row in enumerate(told):
            logs = candidate_log_likelihoods(found, place)
            assert logs == pytest.approx(row[found.candidates(place)], abs=2e-4)
            assert logs == pytest.approx(np.sort(row)[::-1][: len(logs)], abs=2e-4)
