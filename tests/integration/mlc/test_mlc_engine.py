"""How MLC's own engine is driven, shown with a stand-in that has MLC's names and signatures.

These tests show the calls, not MLC: its package is not on PyPI. The stand-in refuses every keyword
that MLC's engine lacks, and its next token is a formula, computed here once more.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from mlc_llm_call import VERSION, call

if TYPE_CHECKING:
    from pathlib import Path

VOCABULARY = 97
PROMPT = [5, 11, 3, 8]

LOAD = """
from edgebench.runners.mlc_engine import MlcEngine
from edgebench.runners.mlc_settings import Chosen
folder = Path(given["folder"])
chosen = Chosen("mlc_llm", 2, False, given.get("device", "cpu"), given.get("context", 64),
                given.get("chunk"))
known = LoadedModel({"threads": 2, "kv_cache_type": "float32", "engine": "?"}, 97, "llama", 1234)
engine = MlcEngine(folder, folder / given.get("library", "lib.so"), chosen, known)
"""
FACTS = (
    LOAD
    + """
facts = engine.facts()
answer = {"options": dict(facts.effective_options), "engine": facts.engine,
          "version": facts.engine_version, "vocabulary": facts.vocabulary_size,
          "architecture": facts.architecture, "parameters": facts.parameters}
engine.close()
engine.close()
"""
)
GENERATE = (
    LOAD
    + """
import time
from edgebench.runners.base import to_wire
answer = []
for prompt, count in given["requests"]:
    began = time.perf_counter_ns()
    made = engine.generate(GenerateRequest(prompt, count, depth_ids=given.get("depth", [])))
    ended = time.perf_counter_ns()
    answer.append({**to_wire(made), "began": began, "ended": ended})
import gc, threading, weakref
gc.disable()
held = weakref.ref(engine._engine)
engine.close()
answer.append([threading.active_count(), held() is None])
"""
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the stand-in reads of a model: its sizes, and stops at every token below 60."""
    sizes = {
        "vocab_size": VOCABULARY,
        "context_window_size": 128,
        "prefill_chunk_size": 32,
        "conv_template": {"stop_token_ids": list(range(60))},
    }
    (tmp_path / "mlc-chat-config.json").write_text(json.dumps(sizes), encoding="utf-8")
    (tmp_path / "lib.so").touch()
    return tmp_path


def script(folder: Path, **said: Any) -> None:
    """Have the stand-in fail, or behave badly."""
    (folder / "stand_in.json").write_text(json.dumps(said), encoding="utf-8")


def expected(prompt: list[int], count: int) -> list[int]:
    """The stand-in's tokens."""
    ids = list(prompt)
    for _ in range(count):
        ids.append((31 * ids[-1] + 17 * (len(ids) - 1) + 5) % VOCABULARY)
    return ids[len(prompt) :]


def test_ids_go_in_and_come_out_past_every_stop(folder: Path) -> None:
    """Exactly the tokens asked for, although the model's configuration stops at most of them."""
    requests = [[PROMPT, 12], [[1], 1], [PROMPT, 12]]
    first, single, again, left = call(GENERATE, folder=str(folder), requests=requests).value
    assert first["token_ids"] == again["token_ids"] == expected(PROMPT, 12)
    assert min(first["token_ids"]) < 60
    assert single["token_ids"] == expected([1], 1)
    assert (first["prompt_tokens"], single["prompt_tokens"]) == (4, 1)
    assert first["finish_reason"] == "length"
    assert left == [1, True], "MLC's threads have ended, and its engine is gone"


def test_each_token_has_a_time_and_the_prefill_has_none(folder: Path) -> None:
    """Times are taken as tokens come; MLC does not show when it had processed the prompt."""
    made = call(GENERATE, folder=str(folder), requests=[[PROMPT, 9]]).value[0]
    stamps = made["token_ns"]
    assert len(stamps) == 9
    assert stamps == sorted(stamps)
    assert made["began"] <= made["submitted_ns"] <= stamps[0]
    assert stamps[-1] <= made["ended"]
    assert made["prefilled_ns"] is None
    assert made["tokenized_ns"] is None


def test_tokens_that_come_together_share_a_time(folder: Path) -> None:
    """MLC's thread hands over what has gathered: no time is made up for those before the last."""
    script(folder, together=4)
    made = call(GENERATE, folder=str(folder), requests=[[PROMPT, 10]]).value[0]
    assert made["token_ids"] == expected(PROMPT, 10)
    stamps = made["token_ns"]
    assert [stamps.count(each) for each in sorted(set(stamps))] == [4, 4, 2]


def test_mlcs_own_figures_stand_under_the_metrics_that_they_are(folder: Path) -> None:
    """In the metrics' units; what is not defined as ours is left out."""
    made, single, _ = call(GENERATE, folder=str(folder), requests=[[PROMPT, 9], [PROMPT, 1]]).value
    # The stand-in tells 0.25 s to the first token, and 80 tokens/s after it.
    assert made["engine"] == {"ttft_s": 0.25, "prefill_rate": 16.0, "decode_rate": 80.0}
    assert single["engine"] == {"ttft_s": 0.25, "prefill_rate": 16.0}


def test_what_is_used_is_read_back_from_mlc(folder: Path) -> None:
    """With the engine's name and version, and what else is known of the model."""
    facts = call(FACTS, folder=str(folder), context=100, chunk=20).value
    assert (facts["engine"], facts["version"]) == ("MLC LLM", VERSION)
    assert (facts["vocabulary"], facts["architecture"], facts["parameters"]) == (97, "llama", 1234)
    assert facts["options"] == {
        "engine": "mlc_llm",
        "compiler": "mlc_llm",
        "threads": 2,
        "device": "cpu",
        "kv_cache_tokens": 128,  # whole pages of 16, with room for 8 more and a page
        "kv_cache_type": "float32",
        "prefill_chunk": 20,
        "prefix_cache": "disable",
    }
    # MLC's own choice: the library's, or the context where that is shorter.
    assert call(FACTS, folder=str(folder)).value["options"]["prefill_chunk"] == 32
    assert call(FACTS, folder=str(folder), context=25).value["options"]["prefill_chunk"] == 25


@pytest.mark.parametrize("context", [17, 32, 57, 64])
def test_a_prompt_that_fills_the_context_is_taken(context: int, folder: Path) -> None:
    """MLC waits until there is room for some tokens more, so it gets a little more cache."""
    prompt = [number % VOCABULARY for number in range(context - 1)]
    made = call(GENERATE, folder=str(folder), context=context, requests=[[prompt, 1]]).value[0]
    assert made["token_ids"] == expected(prompt, 1)


def test_a_cache_filled_before_is_refused(folder: Path) -> None:
    """MLC has no call for that; the sentence names what can do it."""
    failed = call(GENERATE, folder=str(folder), requests=[[PROMPT, 2]], depth=[1, 2]).value
    assert failed["reason"] == "unsupported"
    assert "can't fill the cache before the clock starts" in failed["failed"]
    assert "`engine: tvm` can" in failed["failed"]


def test_a_generation_that_ends_early_is_a_failure(folder: Path) -> None:
    """Never fewer tokens than asked for, taken as if they were all."""
    script(folder, stop_after=3)
    failed = call(GENERATE, folder=str(folder), requests=[[PROMPT, 9]]).value
    assert failed == {
        "failed": "MLC's engine ended (stop) after 3 of 9 tokens",
        "reason": "framework",
    }


def test_what_mlc_refuses_is_said_in_its_words(folder: Path) -> None:
    """A prompt beyond the context, which edgebench's runner would have refused before."""
    failed = call(GENERATE, folder=str(folder), context=3, requests=[[PROMPT, 1]]).value
    assert failed["failed"] == (
        "MLC's engine failed: Request prompt has 4 tokens in total, larger than the "
        "model input length limit 3."
    )


def test_a_thread_of_mlcs_that_fails_while_loading_does_not_hang(folder: Path) -> None:
    """Its constructor would wait for that thread for ever."""
    script(folder, load="InternalError: the library lacks a function\nStack trace:\n  [bt] (0)")
    told = call(GENERATE, folder=str(folder), requests=[])
    assert told.value == {
        "failed": f"MLC's engine can't load {folder}: InternalError: the library lacks a function",
        "reason": "framework",
    }
    assert "Stack trace" in told.log


def test_a_thread_of_mlcs_that_fails_while_generating_does_not_hang(folder: Path) -> None:
    """Its caller would wait for the next token for ever, then and at every prompt after it."""
    script(folder, fail_after=5)
    again = """
try:
    engine.generate(GenerateRequest([1], 9))
except RunnerFailure as failure:
    first = str(failure)
engine.generate(GenerateRequest([1], 9))
"""
    failed = call(LOAD + again, folder=str(folder)).value
    assert failed["failed"] == (
        "MLC's engine failed: InternalError: Check failed: the stand-in was told so"
    )
    assert failed["reason"] == "framework"


def test_running_out_of_memory_is_told_as_that(folder: Path) -> None:
    """By MLC's words for it."""
    script(folder, load="Insufficient GPU memory error: The available single GPU memory is 1 MB")
    failed = call(GENERATE, folder=str(folder), requests=[]).value
    assert failed["reason"] == "out_of_memory"


def test_a_device_that_is_not_there_is_unavailable(folder: Path) -> None:
    """MLC looks for it itself."""
    failed = call(GENERATE, folder=str(folder), device="cuda", requests=[]).value
    assert failed["reason"] == "unavailable"
    assert "Device is not found on your local environment: cuda" in failed["failed"]


def test_an_engine_without_the_watched_method_is_refused(folder: Path) -> None:
    """Another version may have none: ids that can't be seen are not guessed from texts."""
    work = "import mlc_llm\ndel mlc_llm.MLCEngine._request_stream_callback_impl\n" + GENERATE
    failed = call(work, folder=str(folder), requests=[[PROMPT, 2]]).value
    assert failed["reason"] == "unsupported"
    assert "MLCEngine has no _request_stream_callback_impl" in failed["failed"]


def test_without_mlc_llm_the_command_is_told(folder: Path, tmp_path: Path) -> None:
    """As for every framework that is missing."""
    failed = call(GENERATE, path=str(tmp_path), folder=str(folder), requests=[]).value
    assert failed["reason"] == "unavailable"
    assert "mlc_llm is not installed; install MLC's own into an environment" in failed["failed"]
    assert "python: pip install --pre" in failed["failed"]
