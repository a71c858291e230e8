"""Bundles run by the real LiteRT-LM, compared with transformers and with the engine's counts."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from tiny_models import TEXT, byte_level_tokenizer, log_likelihoods

from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.session import Launch, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]


def ids_of(text: str) -> list[int]:
    """By Hugging Face's tokenizers."""
    from tokenizers import Tokenizer

    ids: list[int] = Tokenizer.from_str(byte_level_tokenizer()).encode(text).ids
    return ids


IDS = ids_of(TEXT)
LONG = ids_of(TEXT * 4)
PROMPT = ids_of("It was the best of times 1789, it was")


@pytest.fixture(scope="module")
def loaded(tiny: Any, open_model: Callable[..., Any]) -> Iterator[Any]:
    """The tiny model in a process that several tests use."""
    with open_model(tiny.artifact) as each:
        yield each


def test_greedy_tokens_are_those_of_transformers(loaded: Any, tiny: Any) -> None:
    """Exactly as many tokens come out as were asked for, each told and with a time stamp."""
    made = loaded.generate(PROMPT, 40)
    assert made.token_ids == tiny.greedy(PROMPT, 40)
    assert len(made.token_ns) == 40
    assert all(earlier < later for earlier, later in pairwise(made.token_ns))
    assert made.submitted_ns < made.prefilled_ns < made.token_ns[0]
    assert (made.prompt_tokens, made.finish_reason) == (len(PROMPT), "length")
    assert made.tokenized_ns is None  # the engine tokenizes within its prefill


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_tokens_are_as_many_as_asked_for(loaded: Any, tiny: Any, count: int) -> None:
    """The token that is made beyond them, to see the last one come, is left out."""
    made = loaded.generate(PROMPT, count)
    assert made.token_ids == tiny.greedy(PROMPT, count)


@pytest.mark.parametrize("length", [1, 2, 16, 17, 18, 90])
def test_prompts_of_any_length_are_taken_in_whole(loaded: Any, tiny: Any, length: int) -> None:
    """Shorter than what the graph takes in at once, as long, and longer."""
    prompt = LONG[:length]
    assert loaded.generate(prompt, 12).token_ids == tiny.greedy(prompt, 12)


@pytest.mark.parametrize("depth", [1, 8, len(PROMPT) - 1])
def test_depth_counts_as_text_before_the_prompt(loaded: Any, tiny: Any, depth: int) -> None:
    """A filled cache gives the tokens of the longer prompt, also before a prompt of one token."""
    made = loaded.generate(PROMPT[depth:], 12, depth_ids=PROMPT[:depth])
    assert made.token_ids == tiny.greedy(PROMPT, 12)
    assert made.depth_tokens == depth


def test_nothing_is_left_of_the_generation_before(loaded: Any) -> None:
    """Each has a session of its own: the same tokens come fifty times, and memory stays."""
    first = [loaded.generate(IDS, 40).token_ids for _ in range(10)]
    process = psutil.Process(loaded.session.pid)
    before = process.memory_info().rss
    for _ in range(50):
        assert loaded.generate(IDS, 40).token_ids == first[0]
    # Caches that were kept would take 50 x 256 places x 2 layers x 64 floats: 6 MB.
    assert process.memory_info().rss - before < 3_000_000


def test_a_prompts_own_text_is_taken_where_it_gives_the_ids(loaded: Any, tiny: Any) -> None:
    """And where it gives others, a text that does; the ids are what counts."""
    text = "It was the best of times"
    prompt = ids_of(text)
    for given in (text, "another text", None):
        made = loaded.generate(prompt, 8, prompt_text=given)
        assert made.token_ids == tiny.greedy(prompt, 8)


def test_ids_that_no_text_gives_are_refused(loaded: Any) -> None:
    """ "the" in three letters is no text's ids, since the tokenizer makes one token of it."""
    letters = [ids_of(letter)[0] for letter in "times"]
    assert ids_of("times") != letters
    with pytest.raises(RunnerRefusedError, match="LiteRT-LM takes text only") as caught:
        loaded.generate(letters, 4)
    assert caught.value.reason == "unsupported"


def test_the_engines_figures_stand_beside_ours(loaded: Any) -> None:
    """Its rates under known names; its time to the first token is made up, and left out."""
    made = loaded.generate(PROMPT, 40)
    assert set(made.engine) == {"prefill_s", "prefill_rate", "decode_rate"}
    assert made.engine["prefill_s"] <= (made.prefilled_ns - made.submitted_ns) / 1e9


def test_its_tokenizer_is_that_of_hugging_face(loaded: Any) -> None:
    """Special tokens parsed; so are characters of several bytes."""
    for text in (TEXT, "<|start|>It<|end|>", "naïve café 😀", " two  spaces\n"):
        assert loaded.tokenize(text) == ids_of(text)


def test_a_start_token_that_is_due_stands_in_front(
    make_tiny: Callable[..., Any], open_model: Callable[..., Any]
) -> None:
    """Prompts of a model with a start token begin with it, once, and generate as they should."""
    made = make_tiny()
    settings = '{"add_bos_token": true, "bos_token": "<|start|>", "eos_token": "<|end|>"}'
    (made.source / "tokenizer_config.json").write_text(settings, encoding="utf-8")
    from edgebench.runners.base import ConvertRequest
    from edgebench.runners.litert_convert import convert

    bundle = made.artifact.with_name("start.litertlm")
    options = {"cache_length": 256, "prefill_lengths": "16"}
    convert(ConvertRequest(str(made.source), "fp32", str(bundle), options))
    with open_model(bundle) as each:
        prompt = each.tokenize("It was")
        assert prompt == [0, *ids_of("It was")]
        assert each.model.bos_text == "<|start|>"
        answer = each.session.call("detokenize", {"ids": prompt}, timeout_s=60)
        assert answer["text"] == "It was"
        for text in ("It was", None):
            tokens = each.generate(prompt, 8, prompt_text=text).token_ids
            assert tokens == made.greedy(prompt, 8)


@pytest.mark.parametrize("start", [1, 2, 9, len(IDS) - 1])
def test_scores_are_those_of_transformers(loaded: Any, tiny: Any, start: int) -> None:
    """Log-likelihoods within 1e-4, wherever they begin; of other tokens the engine tells none."""
    rated = loaded.score(IDS, start, candidates=[[2, 3]] * (len(IDS) - start))
    expected = log_likelihoods(tiny.model, IDS)[start - 1 :]
    assert rated.log_likelihoods == pytest.approx(expected, abs=1e-4)
    assert rated.top_ids is None
    assert rated.candidates is None


def test_scores_reach_to_the_end_of_the_context(
    make_tiny: Callable[..., Any], open_model: Callable[..., Any]
) -> None:
    """As many tokens as the cache has places; of more the engine would write past its end."""
    short = make_tiny({"cache_length": 32, "prefill_lengths": "16"})
    with open_model(short.artifact, 32) as each:
        rated = each.score(LONG[:32], 20)
        expected = log_likelihoods(short.model, LONG[:32])[19:]
        assert rated.log_likelihoods == pytest.approx(expected, abs=1e-4)
        with pytest.raises(
            RunnerRefusedError, match="33 tokens are to be rated and the context holds 32"
        ):
            each.score(LONG[:33], 20)


def test_scores_in_a_small_context_are_checked_within_it(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """The text of the check is cut to it; where too little of that is left, none are given."""
    with open_model(tiny.artifact, max_num_tokens=10) as each:
        expected = log_likelihoods(tiny.model, IDS[:5])
        assert each.score(IDS[:5]).log_likelihoods == pytest.approx(expected, abs=1e-4)
    with (
        open_model(tiny.artifact, max_num_tokens=6) as each,
        pytest.raises(RunnerRefusedError, match=r"scores can't be checked: .* 6 tokens only"),
    ):
        each.score(IDS[:5])


def test_the_context_is_used_to_its_end_and_no_further(
    make_tiny: Callable[..., Any], open_model: Callable[..., Any]
) -> None:
    """The last place is for the token that shows the last one; more is refused with the counts."""
    short = make_tiny({"cache_length": 32, "prefill_lengths": "16"})
    prompt = IDS[:20]
    with open_model(short.artifact, 64) as each:
        assert each.model.effective_options["max_num_tokens"] == 32
        assert each.generate(prompt, 11).token_ids == short.greedy(prompt, 11)
        with pytest.raises(RunnerRefusedError, match="32 tokens are asked for and the context"):
            each.generate(prompt, 12)


def test_room_for_the_longest_workload_is_what_is_asked_for(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """A context of 60 tokens holds 60, and the engine gets one more."""
    with open_model(tiny.artifact, 60) as each:
        assert each.model.effective_options["max_num_tokens"] == 61
        count = 60 - len(PROMPT)
        assert each.generate(PROMPT, count).token_ids == tiny.greedy(PROMPT, count)


def test_any_number_of_threads_gives_the_same_tokens(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """The number is counted in the process, not believed."""
    for threads in (1, 2, 3):
        with open_model(tiny.artifact, threads=threads) as each:
            assert each.model.effective_options["threads"] == threads
            assert each.generate(PROMPT, 24).token_ids == tiny.greedy(PROMPT, 24)


def test_what_is_loaded_says_what_it_is(loaded: Any, tiny: Any) -> None:
    """The facts of the model that the bundle was made of, and how it was loaded."""
    model = loaded.model
    assert model.vocabulary_size == tiny.model.config.vocab_size
    assert model.architecture == "llama"
    assert model.parameters == sum(each.numel() for each in tiny.model.parameters())
    assert model.trained_context_tokens == 256
    assert model.effective_options == {
        "backend": "cpu",
        "threads": 1,
        "max_num_tokens": 201,
        "cache": "none",
        "stop_tokens": "reserved",
        "cache_length": 256,
        "prefill_lengths": "16,64",
        "output_quantization": "fp32",
    }


def test_the_vocabulary_alone_can_be_loaded(tiny: Any, open_model: Callable[..., Any]) -> None:
    """For prompts, with no more than a context of one token asked for."""
    with open_model(tiny.artifact) as each:
        request = {"model_path": str(tiny.artifact), "context_tokens": 1, "vocab_only": True}
        each.session.call("load", request, timeout_s=60)
        assert each.tokenize(TEXT) == IDS


@pytest.mark.parametrize("cache", ["none", "cold", "warm"])
def test_caches_give_the_same_tokens_and_leave_nothing_behind(
    tiny: Any,
    open_model: Callable[..., Any],
    cache: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine's file of prepared weights is there while the model is loaded, not afterwards."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with open_model(tiny.artifact, cache=cache) as each:
        files = [path for path in tmp_path.rglob("*.xnnpack_cache") if path.stat().st_size]
        assert len(files) == (0 if cache == "none" else 1)
        assert each.model.effective_options["cache"] == cache
        assert each.generate(PROMPT, 24).token_ids == tiny.greedy(PROMPT, 24)
        each.session.call("unload", timeout_s=60)
        assert not list(tmp_path.rglob("*.xnnpack_cache"))


def test_a_cache_is_warm_where_nothing_else_is_asked_for(tiny: Any, tmp_path: Path) -> None:
    """As an application has it from its second start on; a vocabulary alone needs none."""
    with Session(Launch("mediapipe", tmp_path / "log")) as session:
        asked = {"vocab_only": True, "options": {"cache": "warm"}}
        for changes, cache in (({}, "warm"), ({"vocab_only": True}, "none"), (asked, "none")):
            request = {"model_path": str(tiny.artifact), "context_tokens": 40, **changes}
            answer = session.call("load", request, timeout_s=60)
            assert answer["model"]["effective_options"]["cache"] == cache


def test_real_text_is_told_token_by_token(smollm2: Path, open_model: Callable[..., Any]) -> None:
    """SmolLM2 goes on past its end of text, and its own tokenizer makes these ids of the text."""
    with open_model(smollm2, threads=2) as each:
        chat = "<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n"
        made = each.generate(each.tokenize(chat), 48)
        assert None not in made.token_ids
        assert 2 in made.token_ids[:-1]  # <|im_end|>
        text = each.session.call("detokenize", {"ids": made.token_ids}, timeout_s=60)["text"]
        assert each.tokenize(text) == made.token_ids


def test_padding_that_does_not_fit_is_said_with_the_way_out(
    make_tiny: Callable[..., Any], open_model: Callable[..., Any]
) -> None:
    """After 20 tokens of 32 there is no room for text that is padded to 16."""
    short = make_tiny({"cache_length": 32, "prefill_lengths": "16"})
    with (
        open_model(short.artifact, 32) as each,
        pytest.raises(RunnerRefusedError, match="greater cache_length, or with more prefill"),
    ):
        each.generate(IDS[20:24], 2, depth_ids=IDS[:20])


def spaced_ids(spaced: Any, text: str) -> list[int]:
    """By Hugging Face's tokenizers, behind the start token."""
    from tokenizers import Tokenizer

    return [1, *Tokenizer.from_file(str(spaced.source / "tokenizer.json")).encode(text).ids]


def test_letters_that_are_bytes_too_are_told(spaced: Any, open_model: Callable[..., Any]) -> None:
    """Of a tokenizer with a token for each byte; only of the first token the space is unknown."""
    with open_model(spaced.artifact) as each:
        for words in (1, 3, 9):
            text = " ".join(TEXT.split()[:words])
            prompt = spaced_ids(spaced, text)
            assert each.tokenize(text) == prompt
            made = each.generate(prompt, 24, prompt_text=text)
            expected = spaced.greedy(prompt, 24)
            assert made.token_ids[1:] == expected[1:]
            assert made.token_ids[0] in (None, expected[0])


def test_ids_behind_a_start_token_need_no_text_of_their_own(
    spaced: Any, open_model: Callable[..., Any]
) -> None:
    """Where the tokenizer adds a space after it, which is no part of the ids' own text."""
    from edgebench.runners.base import LoadRequest
    from edgebench.runners.mediapipe import MediaPipeRunner

    whole = spaced_ids(spaced, TEXT)
    runner = MediaPipeRunner()
    runner.load(LoadRequest(str(spaced.artifact), 200, {"threads": 1}))
    texts = runner.model._texts
    ends = range(2, len(whole) + 1)
    found = [end for end in ends if texts.find(whole[:end], first=True) is not None]
    runner.close()
    # A text whose end the tokenizer joins otherwise has other ids.
    assert len(found) >= len(ends) - 4
    with open_model(spaced.artifact) as each:
        prompt = spaced_ids(spaced, "It was the best of times 1789, it was the worst")
        depth = spaced_ids(spaced, "It was the best")
        assert prompt[: len(depth)] == depth
        made = each.generate(prompt[len(depth) :], 12, depth_ids=depth)
        assert made.token_ids[1:] == spaced.greedy(prompt, 12)[1:]
        assert each.generate(prompt, 12).token_ids[1:] == spaced.greedy(prompt, 12)[1:]


@pytest.mark.parametrize("start", [1, 2, 9, 17])
def test_scores_behind_a_start_token_are_right(
    spaced: Any, open_model: Callable[..., Any], start: int
) -> None:
    """Wherever they begin, of a tokenizer that adds a space to a text."""
    ids = spaced_ids(spaced, TEXT)
    with open_model(spaced.artifact) as each:
        rated = each.score(ids, start).log_likelihoods
        assert rated == pytest.approx(log_likelihoods(spaced.model, ids)[start - 1 :], abs=1e-4)
