"""What MNN passes over in silence, or crashes of: here each is told, and the process lives on."""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiny_models import log_likelihoods

from edgebench.harness.errors import RunnerRefusedError, RunnerUnavailableError
from edgebench.runners.base import GenerateRequest, RunnerFailure, ScoreRequest
from edgebench.runners.console import Console
from edgebench.runners.mnn import MnnRunner
from edgebench.runners.mnn_check import check_model
from edgebench.runners.mnn_engine import Engine
from edgebench.runners.mnn_reach import weight_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.mnn, pytest.mark.transformers]

VERSION = "3.6.1"
PROMPT = list(range(10, 30))


def change(path: Path, **values: Any) -> None:
    """Set keys of a JSON file; None takes one away."""
    content = {**json.loads(path.read_text("utf-8")), **values}
    path.write_text(json.dumps({k: v for k, v in content.items() if v is not None}), "utf-8")


def cut(path: Path, size: int) -> None:
    """Leave the first `size` bytes; what is negative is cut off at the end."""
    path.write_bytes(path.read_bytes()[:size])


def test_the_graph_tells_how_long_the_weights_are(tiny: Any) -> None:
    """To the byte, for a file that was written with nothing behind the last tensor."""
    size = (tiny.artifact / "llm.mnn.weight").stat().st_size
    assert weight_bytes((tiny.artifact / "llm.mnn").read_bytes()) == size


@pytest.mark.parametrize("graph", [b"", b"\0" * 64, b"no graph" * 100, struct.pack("<I", 1 << 31)])
def test_what_is_no_graph_is_refused(graph: bytes) -> None:
    """Whatever the bytes are, nothing but ValueError comes of them."""
    with pytest.raises(ValueError, match="no whole MNN graph"):
        weight_bytes(graph)


def test_a_graph_cut_off_anywhere_is_refused_or_says_less(tiny: Any) -> None:
    """No length makes the reader raise something else, or read for ever."""
    graph = (tiny.artifact / "llm.mnn").read_bytes()
    whole = weight_bytes(graph)
    for size in range(0, len(graph), 211):
        try:
            assert weight_bytes(graph[:size]) <= whole
        except ValueError as error:
            assert "no whole MNN graph" in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    "name", ["config.json", "llm_config.json", "llm.mnn", "llm.mnn.weight", "tokenizer.mtok"]
)
def test_a_missing_file_is_named(artifact: Path, name: str) -> None:
    """MNN says so of some and goes on without others."""
    (artifact / name).unlink()
    with pytest.raises(RunnerFailure, match=name.replace(".", r"\.")) as caught:
        check_model(str(artifact), VERSION)
    assert caught.value.reason == "invalid"


@pytest.mark.parametrize("lost", [1, 100, 20_000])
def test_weights_that_were_cut_off_are_refused(artifact: Path, lost: int) -> None:
    """MNN loads them and computes with whatever is in memory."""
    cut(artifact / "llm.mnn.weight", -lost)
    with pytest.raises(RunnerFailure, match=r"llm\.mnn\.weight is cut off"):
        check_model(str(artifact), VERSION)


def test_embeddings_that_were_cut_off_are_refused(artifact: Path) -> None:
    """MNN reads past their end."""
    cut(artifact / "embeddings_bf16.bin", -2)
    with pytest.raises(RunnerFailure, match=r"embeddings_bf16\.bin is cut off"):
        check_model(str(artifact), VERSION)


def test_tied_embeddings_that_were_cut_off_are_refused(artifact: Path) -> None:
    """They are read from the output's weights, whose place llm_config.json tells."""
    size = (artifact / "llm.mnn.weight").stat().st_size
    place = {"weight_offset": 8, "alpha_offset": size - 8, "alpha_size": 8}
    change(artifact / "llm_config.json", tie_embeddings=place)
    check_model(str(artifact), VERSION)
    change(artifact / "llm_config.json", tie_embeddings={**place, "alpha_size": 9})
    with pytest.raises(RunnerFailure, match="is cut off"):
        check_model(str(artifact), VERSION)


def test_a_file_that_is_no_json_is_named(artifact: Path) -> None:
    """MNN goes on with the defaults of another model."""
    cut(artifact / "llm_config.json", 30)
    with pytest.raises(RunnerFailure, match=r"llm_config\.json can't be read"):
        check_model(str(artifact), VERSION)


def test_models_of_others_are_told_apart(tiny: Any, tmp_path: Path) -> None:
    """A GGUF file and a folder of Hugging Face's get the way out: a quantization."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    for path in (file, tiny.source):
        with pytest.raises(RunnerFailure, match="choose quantization fp32, fp16, int8 or int4"):
            check_model(str(path), VERSION)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"mnn_version": "3.7.0"}, "made for MNN 3.7.0 and MNN 3.6.1 is installed"),
        ({"mnn_version": "4.0"}, "made for MNN 4.0"),
        ({"schema_version": 2}, "schema version 2, this edgebench reads 1"),
    ],
)
def test_a_folder_from_the_future_is_refused(
    artifact: Path, values: dict[str, object], says: str
) -> None:
    """Operators change between MNN's minor releases, and edgebench.json may, too."""
    change(artifact / "edgebench.json", **values)
    with pytest.raises(RunnerFailure, match=says) as caught:
        check_model(str(artifact), VERSION)
    assert caught.value.reason == "unsupported"


def test_a_folder_made_by_others_runs(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """Without edgebench.json the logits tell the vocabulary, and MNN's own files the rest."""
    (artifact / "edgebench.json").unlink()
    with open_model(artifact) as each:
        assert each.model.vocabulary_size == 320
        assert each.model.parameters is None
        assert each.model.architecture == "llama"
        assert each.generate(PROMPT, 8).token_ids == tiny.greedy(PROMPT, 8)


def test_what_mnn_does_not_load_is_told_with_its_reason(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """MNN's Python class drops that load() failed; the reason stands in the log only."""
    (artifact / "tokenizer.mtok").write_bytes(b"hello, I am no tokenizer\n")
    with (
        pytest.raises(RunnerRefusedError, match=r"MNN can't load .*tokenizer") as caught,
        open_model(artifact),
    ):
        pass
    assert caught.value.reason == "framework"


def test_a_pass_that_fails_is_told_with_mnns_reason(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """Its logits would crash the process when touched; it lives, and fails again the same way."""
    width = json.loads((artifact / "llm_config.json").read_text("utf-8"))["hidden_size"]
    change(artifact / "llm_config.json", hidden_size=width // 2)
    with open_model(artifact) as each:
        for _ in range(2):
            with pytest.raises(RunnerRefusedError, match=r"internal error.*hape") as caught:
                each.generate(PROMPT, 4)
            with pytest.raises(RunnerRefusedError, match="internal error"):
                each.score(PROMPT)
    assert caught.value.reason == "framework"


def test_logits_that_are_no_numbers_are_a_failure(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """MNN makes the largest float of them, and the same token on and on: never a result."""
    weights = artifact / "llm.mnn.weight"
    values = np.full(weights.stat().st_size // 4, np.nan, dtype=np.float32)
    weights.write_bytes(values.tobytes())
    with (
        open_model(artifact) as each,
        pytest.raises(RunnerRefusedError, match="as the highest logit"),
    ):
        each.generate(PROMPT, 4)
    with (
        open_model(artifact) as each,
        pytest.raises(RunnerRefusedError, match=rf"for position 7 of {len(PROMPT)} .*are bad"),
    ):
        each.score(PROMPT, 7)


def test_the_position_of_what_is_no_number_is_named(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """One row of the embedding is damaged: it is the token behind that token which can't be rated.

    Whatever stands before it is rated as before.
    """
    row = 3 * 64  # three parts of bfloat16
    data = np.fromfile(artifact / "embeddings_bf16.bin", np.uint16)
    data[PROMPT[-4] * row : (PROMPT[-4] + 1) * row] = 0x7FC0  # NaN
    data.tofile(artifact / "embeddings_bf16.bin")
    count = len(PROMPT)
    with open_model(artifact) as each:
        found = each.score(PROMPT[:-3], 2).log_likelihoods
        with pytest.raises(
            RunnerRefusedError, match=rf"for position {count - 3} of {count} "
        ) as told:
            each.score(PROMPT, 2)
        assert told.value.reason == "framework"
    assert found == pytest.approx(log_likelihoods(tiny.model, PROMPT[:-3])[1:], abs=1e-4)


def test_another_vocabulary_than_the_models_is_a_failure(
    artifact: Path, open_model: Callable[..., Any]
) -> None:
    """What edgebench.json says is checked against the logits."""
    change(artifact / "edgebench.json", vocabulary_size=300)
    with (
        open_model(artifact) as each,
        pytest.raises(RunnerRefusedError, match="320 logits for a vocabulary of 300"),
    ):
        each.generate(PROMPT, 4)


def test_a_back_end_that_is_not_there_is_refused(tiny: Any, open_model: Callable[..., Any]) -> None:
    """MNN would compute on the CPU, with other settings at that, and print a line."""
    with (
        pytest.raises(RunnerUnavailableError, match=r"back end cuda is not in this build.*cpu"),
        open_model(tiny.artifact, backend="cuda"),
    ):
        pass


class ScriptedLlm:
    """MNN's object as far as the engine uses it: each pass likes the next token of a script."""

    def __init__(self, *, native: list[int], status: int = 2) -> None:
        self._native, self._status = native, status
        self._held = self._made = self._prefill_us = 0

    def load(self) -> bool:
        return True

    def set_config(self, text: str) -> None:
        assert json.loads(text)

    def set_context(self, values: dict[str, object]) -> None:
        assert values

    def stoped(self) -> bool:
        return False

    def generate_init(self) -> None:
        self._held = self._made = 0

    reset = generate_init

    def get_current_history(self) -> int:
        return self._held

    def get_context(self) -> dict[str, int]:
        timers = {"prefill_us": self._prefill_us, "decode_us": 1, "sample_us": 1}
        return {"status": self._status, **timers}

    def forward(self, ids: list[int]) -> ScriptedLlm:
        self._held += len(ids)
        self._made += 1
        return self

    def read(self) -> Any:
        return np.eye(8, dtype=np.float32)[self._made]

    def generate(self, ids: list[int], count: int) -> list[int]:
        assert ids
        self._prefill_us += 4
        return self._native[:count]


def scripted(llm: ScriptedLlm) -> MnnRunner:
    """A runner with an engine around `llm`, whose passes make tokens 1, 2, 3."""
    library = SimpleNamespace(llm=SimpleNamespace(create=lambda _: llm))
    engine = Engine(library, "config.json", {"thread_num": 1}, Console())
    engine.vocabulary_size = 8
    runner = MnnRunner()
    runner._engine, runner._context_tokens = engine, 64
    return runner


@pytest.mark.parametrize(
    ("native", "status", "says"),
    [
        ([1, 5, 3], 2, "makes token 5 at position 1, and 2 comes of pass by pass"),
        ([1, 2], 2, "made 2 of 3 tokens"),
        ([1, 2, 3], 1, "ended by a stop token"),
        ([1, 2, 3], 4, "internal error"),
        ([1, 2, 3], 5, "timeout"),
    ],
)
def test_mnns_own_loop_must_agree(native: list[int], status: int, says: str) -> None:
    """Other tokens, fewer of them or another end than "max tokens" make the generation fail."""
    runner = scripted(ScriptedLlm(native=native, status=status))
    with pytest.raises(RunnerFailure, match=says):
        runner.generate(GenerateRequest([5, 6], 3))


def test_mnns_own_loop_is_believed_when_it_agrees() -> None:
    """The same script without a fault."""
    made = scripted(ScriptedLlm(native=[1, 2, 3])).generate(GenerateRequest([5, 6], 3))
    assert made.token_ids == [1, 2, 3]
    # Two tokens in 4 µs, three in 1.
    expected = {"prefill_s": 4e-6, "prefill_rate": 5e5, "decode_rate": 3e6}
    assert made.engine == pytest.approx(expected)


def test_nothing_is_generated_before_a_model_is_loaded() -> None:
    """MNN would crash."""
    for call in (
        lambda runner: runner.generate(GenerateRequest([1], 1)),
        lambda runner: runner.score(ScoreRequest([1, 2])),
    ):
        with pytest.raises(RunnerFailure, match="no model is loaded"):
            call(MnnRunner())
