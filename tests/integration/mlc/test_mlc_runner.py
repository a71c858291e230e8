"""Models run by the real TVM, compared with transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
import pytest
from tiny_models import VOCABULARY, log_likelihoods

from edgebench.harness.errors import RunnerRefusedError
from edgebench.runners.base import GenerateRequest, LoadRequest
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

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
    assert made.submitted_ns < made.prefilled_ns < made.token_ns[0]
    assert made.tokenized_ns is None


@pytest.mark.parametrize("depth", [1, 17, 29])
def test_depth_counts_as_text_before_the_prompt(loaded: Any, tiny: Any, depth: int) -> None:
    """A filled cache gives the tokens of the longer prompt, also before a prompt of one token."""
    made = loaded.generate(PROMPT[depth:], 12, depth_ids=PROMPT[:depth])
    assert made.token_ids == tiny.greedy(PROMPT, 12)
    assert made.depth_tokens == depth


def test_a_prompt_in_chunks_is_the_same_prompt(tiny: Any, open_model: Callable[..., Any]) -> None:
    """Chunks that divide neither prompt nor pages change nothing, in scores neither."""
    with open_model(tiny.artifact, prefill_chunk=7) as each:
        assert each.model.effective_options["prefill_chunk"] == 7
        assert each.generate(PROMPT, 12).token_ids == tiny.greedy(PROMPT, 12)
        likelihoods = each.score(IDS, 20).log_likelihoods
    expected = np.array(log_likelihoods(tiny.model, IDS))
    assert np.abs(np.array(likelihoods) - expected[19:]).max() < 1e-4


def test_nothing_is_left_of_the_generation_before(loaded: Any) -> None:
    """The cache is emptied each time: the same tokens come fifty times, and memory stays."""
    first = [loaded.generate(IDS, 40) for _ in range(5)]
    process = psutil.Process(loaded.session.pid)
    before = process.memory_info().rss
    for _ in range(50):
        assert loaded.generate(IDS, 40).token_ids == first[0].token_ids
    # Keys and values that were kept would take 50 x 239 tokens x 2 layers x 64 floats: 6 MB.
    assert process.memory_info().rss - before < 3_000_000


def test_a_context_is_used_to_its_last_token(tiny: Any, open_model: Callable[..., Any]) -> None:
    """The cache has room for exactly the workload, also where that is no whole number of pages."""
    with open_model(tiny.artifact, context=45) as each:
        assert each.model.effective_options["kv_cache_tokens"] == 48
        assert each.generate(PROMPT, 15).token_ids == tiny.greedy(PROMPT, 15)
        with pytest.raises(RunnerRefusedError, match="46 tokens are asked for and the context"):
            each.generate(PROMPT, 16)


def test_log_likelihoods_are_those_of_transformers(loaded: Any, tiny: Any) -> None:
    """Within 1e-4, from the first token on and from a later one."""
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
    """Both begin with an empty cache."""
    before = loaded.generate(PROMPT, 12).token_ids
    loaded.score(IDS)
    assert loaded.generate(PROMPT, 12).token_ids == before


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
def test_what_tvm_would_not_check_is_refused(
    loaded: Any, prompt: list[int], count: int, says: str
) -> None:
    """The process is as good as before."""
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


def test_candidates_outside_of_the_vocabulary_are_refused(loaded: Any) -> None:
    """A negative id would count from the end, without a word."""
    with pytest.raises(RunnerRefusedError, match="token id -1"):
        loaded.score(PROMPT, 29, candidates=[[-1]])


def test_the_facts_of_a_model_are_told(loaded: Any, tiny: Any) -> None:
    """Vocabulary, weights and context as transformers counts them, and who built the library."""
    model, options = loaded.model, loaded.model.effective_options
    assert model.vocabulary_size == VOCABULARY
    assert model.architecture == "llama"
    assert model.parameters == sum(weight.numel() for weight in tiny.model.parameters())
    assert model.trained_context_tokens == 256
    assert model.engine == "TVM, built by edgebench"
    assert model.engine_version.startswith("TVM 0.27")
    assert (options["engine"], options["compiler"]) == ("tvm", "edgebench")
    assert (options["device"], options["kv_cache_type"]) == ("cpu", "float32")
    assert (options["kv_cache_tokens"], options["thread_binding"]) == (256, False)
    assert "context_tokens" not in options, "reports have the longest workload's already"


def test_a_runner_can_be_closed_and_load_again(tiny: Any) -> None:
    """Closing twice, or before anything was loaded, does nothing."""
    runner = MlcRunner()
    runner.close()
    for _ in range(2):
        runner.load(LoadRequest(str(tiny.artifact), 64))
        made = runner.generate(GenerateRequest(PROMPT, 4))
        assert made.token_ids == tiny.greedy(PROMPT, 4)
        runner.close()
        runner.close()
