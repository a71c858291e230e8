"""Models run by the real MNN, compared with transformers and with MNN's own loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest
from tiny_models import VOCABULARY, log_likelihoods

from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.metrics.timing import generation_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.mnn, pytest.mark.transformers]

IDS = [int(token) for token in np.random.default_rng(5).integers(2, VOCABULARY, 200)]
PROMPT = IDS[:30]


@pytest.fixture(scope="module")
def loaded(tiny: Any, open_model: Callable[..., Any]) -> Iterator[Any]:
    """The tiny model in a process that several tests use."""
    with open_model(tiny.artifact) as each:
        yield each


def test_greedy_tokens_are_those_of_transformers(loaded: Any, tiny: Any) -> None:
    """Exactly as many tokens come out as were asked for, each with a time stamp."""
    made = loaded.generate(PROMPT, 24)
    assert made.token_ids == tiny.greedy(PROMPT, 24)
    assert len(made.token_ns) == 24
    assert made.prompt_tokens == 30
    assert made.finish_reason == "length"


@pytest.mark.parametrize("depth", [1, 17, 29])
def test_depth_counts_as_text_before_the_prompt(loaded: Any, tiny: Any, depth: int) -> None:
    """A filled cache gives the tokens of the longer prompt, also before a prompt of one token."""
    made = loaded.generate(PROMPT[depth:], 12, depth_ids=PROMPT[:depth])
    assert made.token_ids == tiny.greedy(PROMPT, 12)
    assert made.depth_tokens == depth


def test_nothing_is_left_of_the_generation_before(loaded: Any) -> None:
    """The cache is emptied each time: the same tokens come fifty times, and memory stays."""
    first = [loaded.generate(IDS, 40) for _ in range(5)]
    process = psutil.Process(loaded.session.pid)
    before = process.memory_info().rss
    for _ in range(50):
        assert loaded.generate(IDS, 40).token_ids == first[0].token_ids
    # Keys and values that were kept would take 50 x 239 tokens x 2 layers x 64 floats: 6 MB.
    assert process.memory_info().rss - before < 3_000_000


def test_it_goes_on_past_the_end_of_the_text(
    tiny: Any, make_tiny: Callable[..., Any], open_model: Callable[..., Any]
) -> None:
    """A stop token is a token like others; MNN's own loop ends there, so its rate is left out."""
    tokens = tiny.greedy(PROMPT, 12)
    other = make_tiny(eos_token_id=tokens[3])
    assert other.greedy(PROMPT, 12) == tokens
    with open_model(other.artifact) as each:
        made = each.generate(PROMPT, 12)
    assert made.token_ids == tokens
    assert set(made.engine) == {"prefill_s", "prefill_rate"}


def test_the_engines_own_figures_come_with_the_first_of_each_prompt(loaded: Any) -> None:
    """MNN's timers stand beside ours once for each prompt and length, under known names."""
    first = loaded.generate(PROMPT[:20], 9)
    again = loaded.generate(PROMPT[:20], 9)
    longer = loaded.generate(PROMPT[:20], 10)
    assert set(first.engine) == {"prefill_s", "prefill_rate", "decode_rate"}
    assert again.engine == {}
    assert set(longer.engine) == set(first.engine)
    assert first.engine["prefill_rate"] == pytest.approx(20 / first.engine["prefill_s"])
    assert generation_metrics(first)["engine_decode_rate"].source == "engine"


@pytest.mark.parametrize(("option", "figures"), [("off", 0), ("always", 3)])
def test_the_engines_own_figures_can_be_chosen(
    tiny: Any, open_model: Callable[..., Any], option: str, figures: int
) -> None:
    """``off`` never runs MNN's own loop, ``always`` each time."""
    with open_model(tiny.artifact, engine_timers=option) as each:
        counts = [len(each.generate(PROMPT, 4).engine) for _ in range(2)]
    assert counts == [figures, figures]


def test_log_likelihoods_are_those_of_transformers(loaded: Any, tiny: Any) -> None:
    """Within 1e-4 over more positions than one pass takes, from the first and from a later one."""
    expected = np.array(log_likelihoods(tiny.model, IDS))
    whole, part = loaded.score(IDS), loaded.score(IDS, 60)
    assert np.abs(np.array(whole.log_likelihoods) - expected).max() < 1e-4
    assert np.abs(np.array(part.log_likelihoods) - expected[59:]).max() < 1e-4


def test_scores_name_the_likeliest_token_and_rate_candidates(loaded: Any, tiny: Any) -> None:
    """Both are of the position whose token is rated."""
    import torch

    with torch.no_grad():
        logits = tiny.model(torch.tensor([PROMPT])).logits[0].double()
    expected = torch.log_softmax(logits, dim=-1).numpy()[9:-1]
    candidates = [[3, 7, 300]] * 20
    scores = loaded.score(PROMPT, 10, candidates=candidates)
    assert scores.top_ids == expected.argmax(axis=1).tolist()
    assert np.abs(np.array(scores.candidates) - expected[:, [3, 7, 300]]).max() < 1e-4


def test_scoring_leaves_generating_as_it_was(loaded: Any) -> None:
    """MNN makes wrong tokens while it gives the logits of all positions: that is switched off."""
    before = loaded.generate(PROMPT, 12).token_ids
    loaded.score(IDS)
    assert loaded.generate(PROMPT, 12, depth_ids=[]).token_ids == before
    assert loaded.generate(PROMPT, 13).engine  # where MNN's own loop agrees


@pytest.mark.parametrize(
    ("prompt", "count", "says"),
    [
        ([], 1, "at least one token"),
        ([5], 0, "at least one token"),
        ([5, -1], 1, "token id -1"),
        ([5, VOCABULARY], 1, f"token id {VOCABULARY}"),
        (PROMPT, 227, "257 tokens are asked for and the context holds 256"),
    ],
)
def test_what_would_crash_mnn_is_refused(
    loaded: Any, prompt: list[int], count: int, says: str
) -> None:
    """MNN checks none of it; the process is as good as before."""
    with pytest.raises(RunnerRefusedError, match=says) as caught:
        loaded.generate(prompt, count)
    assert caught.value.reason == "invalid"
    assert len(loaded.generate([5], 1).token_ids) == 1


@pytest.mark.parametrize(("ids", "start"), [(IDS[:5], 0), (IDS[:5], 5), (IDS * 2, 1), ([-1, 2], 1)])
def test_scores_that_cannot_be_are_refused(loaded: Any, ids: list[int], start: int) -> None:
    """There is nothing before the first token, and no room past the context."""
    with pytest.raises(RunnerRefusedError) as caught:
        loaded.score(ids, start)
    assert caught.value.reason == "invalid"


def test_options_reach_the_engine(tiny: Any, open_model: Callable[..., Any]) -> None:
    """What is told as effective is what MNN has been given, by its own account."""
    options = {"memory": "normal", "dynamic_option": 2, "precision": "high", "threads": 2}
    with open_model(tiny.artifact, kv_cache="key_int8", flash_attention=False, **options) as each:
        effective = each.model.effective_options
        assert each.generate(PROMPT, 2).token_ids
    assert effective.items() >= options.items()
    assert effective["attention_mode"] == 1
    assert effective["kv_cache"] == "key_int8"
    assert effective["flash_attention"] is False


def test_the_folder_decides_what_the_variant_leaves_open(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """An fp32 artifact asks for full precision itself; the context is ours."""
    with open_model(tiny.artifact, context=77) as each:
        effective = each.model.effective_options
    assert effective["precision"] == "high"
    assert effective["memory"] == "normal"
    assert effective["context"] == 77
    assert effective["threads"] == 1


def test_more_threads_than_mnn_takes_are_not_told(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """It takes 32 at the most; threads are counted, not believed."""
    with open_model(tiny.artifact, threads=40) as each:
        assert each.model.effective_options["threads"] == 32


def test_mapped_weights_leave_nothing_behind(
    tiny: Any,
    open_model: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They stand in a temporary folder while the model is loaded."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    with open_model(tiny.artifact, mmap=True) as each:
        tokens = each.generate(PROMPT, 6).token_ids
        assert len(list(place.iterdir())) == 1
    assert tokens == tiny.greedy(PROMPT, 6)
    assert list(place.iterdir()) == []


def test_the_facts_of_a_model_are_told(loaded: Any, tiny: Any) -> None:
    """Vocabulary, architecture, weights and context, as transformers counts them."""
    model = loaded.model
    assert model.vocabulary_size == VOCABULARY
    assert model.architecture == "llama"
    assert model.parameters == sum(weight.numel() for weight in tiny.model.parameters())
    assert model.trained_context_tokens == 256


def test_a_text_is_tokenized_in_the_measured_time_where_mnn_can(loaded: Any, tiny: Any) -> None:
    """Where MNN's tokenizer gives the same ids it is timed, else the ids are handed over."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(tiny.source / "tokenizer.json"))
    text = "It was the best of times"
    same = loaded.generate(tokenizer.encode(text).ids, 3, prompt_text=text)
    other = loaded.generate(PROMPT, 3, prompt_text=text)
    assert same.tokenized_ns is not None
    assert other.tokenized_ns is None
    assert other.token_ids == tiny.greedy(PROMPT, 3)


def test_a_real_model_makes_the_tokens_of_mnns_own_loop(
    smollm2: Path, open_model: Callable[..., Any]
) -> None:
    """With MNN's own defaults, where activations are rounded; the runner compares the tokens."""
    with open_model(smollm2, memory="low", threads=2) as each:
        made = each.generate([int(number) for number in range(1000, 1064)], 32)
        assert each.model.effective_options["memory"] == "low"
        assert each.model.vocabulary_size == 49152
    assert set(made.engine) == {"prefill_s", "prefill_rate", "decode_rate"}


@pytest.mark.parametrize("kind", ["key_int8", "int8"])
def test_a_cache_in_int8_says_nearly_the_same(
    kind: str, smollm2: Path, open_model: Callable[..., Any]
) -> None:
    """After a first pass of many tokens; one token gives no scales, and is refused."""
    ids = [int(number) for number in range(1000, 1100)]
    with open_model(smollm2, memory="normal") as exact:
        wanted = exact.score(ids, 80).log_likelihoods
    with open_model(smollm2, memory="normal", kv_cache=kind) as each:
        found = each.score(ids, 80).log_likelihoods
        assert each.model.effective_options["kv_cache"] == kind
        with pytest.raises(RunnerRefusedError, match="from the first pass"):
            each.generate(ids[:1], 4)
        with pytest.raises(RunnerRefusedError, match="from the first pass"):
            each.score(ids, 2)
        assert len(each.generate(ids[:1], 4, depth_ids=ids[1:40]).token_ids) == 4
    # They are rounded, which shows, and right, which shows as well: chance is 10.8 nat away.
    off = [abs(one - other) for one, other in zip(wanted, found, strict=True)]
    assert 0 < max(off) < 2
