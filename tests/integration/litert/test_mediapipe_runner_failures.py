"""What LiteRT-LM passes over in silence, or ends the process of: here each is told."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from litert_engine import sections_of
from tiny_models import TEXT, byte_level_tokenizer

from edgebench.harness.errors import (
    RunnerCrashedError,
    RunnerRefusedError,
    RunnerUnavailableError,
)
from edgebench.harness.execute import execute, new_run_folder
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import (
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    RunnerFailure,
    to_wire,
)
from edgebench.runners.console import Console
from edgebench.runners.litert_backend import npu_fault
from edgebench.runners.litert_bundle import read_bundle
from edgebench.runners.litert_convert import Recipe
from edgebench.runners.litert_engine import Engine
from edgebench.runners.litert_library import Library, tidy
from edgebench.runners.litert_score import CHECKED, FAR, MOST_OFF, NEAR, Cut, apart
from edgebench.runners.mediapipe import MediaPipeRunner
from edgebench.runners.registry import runner_classes

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


def pack(target: Path, tiny: Any, **changes: Any) -> Path:
    """A bundle by Google's own builder, of the tiny model; changes are fields of its metadata."""
    import litert_lm_builder
    from litert_lm_builder.runtime.proto.llm_metadata_pb2 import LlmMetadata

    graph = target.with_suffix(".tflite")
    graph.write_bytes(sections_of(tiny.artifact)["TFLiteModel"])
    metadata = LlmMetadata(max_num_tokens=256)
    metadata.llm_model_type.generic_model.SetInParent()
    for token in changes.pop("stops", [1]):
        stop = metadata.stop_tokens.add()
        if token is not None:
            stop.token_ids.ids.append(token)
    if (start := changes.pop("start", None)) is not None:
        metadata.start_token.token_ids.ids.append(start)
    assert not changes
    settings = target.with_suffix(".pb")
    settings.write_bytes(metadata.SerializeToString())
    builder = litert_lm_builder.LitertLmFileBuilder()
    builder.add_system_metadata(
        litert_lm_builder.Metadata("Authors", "somebody", litert_lm_builder.DType.STRING)
    )
    builder.add_llm_metadata(str(settings))
    builder.add_hf_tokenizer(str(tiny.source / "tokenizer.json"))
    builder.add_tflite_model(str(graph), litert_lm_builder.TfLiteModelType.PREFILL_DECODE)
    with target.open("wb") as file:
        builder.build(file)
    return target


def refusal(path: Path) -> RunnerFailure:
    with pytest.raises(RunnerFailure) as caught:
        read_bundle(str(path))
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"GGUF" + bytes(100), "is a GGUF file"),
        (b"garbage" * 9999, "is no bundle for LiteRT-LM"),
        (b"LITERTLM", "is cut off: it has 8 bytes"),
        (b"LITERTLM" + bytes([1, 0, 0, 0]) + bytes(300), "is cut off"),
        (b"LITERTLM" + bytes([1, 0, 0, 0]) + b"\xff" * 300, "is cut off"),
        (b"PK\x03\x04" + bytes(300), "is no whole bundle"),
    ],
)
def test_what_is_no_bundle_is_named(tmp_path: Path, content: bytes, says: str) -> None:
    """Each in one sentence, before the engine sees the file."""
    path = tmp_path / "model.litertlm"
    path.write_bytes(content)
    failure = refusal(path)
    assert says in str(failure)
    assert failure.reason == "invalid"


def test_what_is_no_file_is_named(tmp_path: Path) -> None:
    """A path that leads nowhere, and a folder."""
    assert "there is no file" in str(refusal(tmp_path / "none.litertlm"))
    assert "is a folder; choose quantization" in str(refusal(tmp_path))


def test_a_newer_format_is_told_apart(tmp_path: Path) -> None:
    """Its parts may stand elsewhere."""
    path = tmp_path / "new.litertlm"
    path.write_bytes(b"LITERTLM" + bytes([2, 0, 0, 0]) + bytes(300))
    failure = refusal(path)
    assert "version 2 of the format" in str(failure)
    assert failure.reason == "unsupported"


def test_a_bundle_cut_off_anywhere_is_refused(tiny: Any, tmp_path: Path) -> None:
    """The engine loads some of them and says of others that they have no model."""
    whole = tiny.artifact.read_bytes()
    path = tmp_path / "cut.litertlm"
    for size in (*range(1, 2000, 37), *range(2000, len(whole), 9973), len(whole) - 1):
        path.write_bytes(whole[:size])
        assert "cut off" in str(refusal(path)), size


def test_a_damaged_header_gives_a_sentence_or_another_header(tiny: Any, tmp_path: Path) -> None:
    """No byte that is wrong makes anything else of it, nor does it take long."""
    whole = bytearray(tiny.artifact.read_bytes())
    path = tmp_path / "damaged.litertlm"
    chance = random.Random(3)
    refused = 0
    for _ in range(300):
        spoiled = bytearray(whole)
        for _ in range(3):
            spoiled[chance.randrange(8, 1500)] = chance.randrange(256)
        path.write_bytes(spoiled)
        try:
            read_bundle(str(path))
        except RunnerFailure:
            refused += 1
    assert refused > 0


@pytest.mark.parametrize("stops", [[], [None]])
def test_a_bundle_without_stop_tokens_is_refused_before_it_is_loaded(
    tiny: Any, tmp_path: Path, stops: list[int | None]
) -> None:
    """The engine would load it and then start no session; an entry may name no token."""
    bundle = pack(tmp_path / "endless.litertlm", tiny, stops=stops)
    with pytest.raises(RunnerFailure, match="names no stop tokens") as caught:
        MediaPipeRunner().load(LoadRequest(str(bundle), 32))
    assert caught.value.reason == "invalid"


def test_a_prompt_longer_than_the_context_is_refused(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """With how many tokens were asked for, how many there is room for, and what to set."""
    asked = len(IDS) + 4
    with open_model(tiny.artifact, 20) as each:
        words = f"{asked} tokens are asked for and the context holds 21, .* max_num_tokens to"
        with pytest.raises(RunnerRefusedError, match=f"{words} {asked + 1} or more"):
            each.generate(IDS, 4)
        with pytest.raises(RunnerRefusedError, match="set cache_length to 260 or more"):
            each.generate(IDS[:9], 250)
        assert len(each.generate(IDS[:8], 4).token_ids) == 4


def test_more_room_than_the_bundle_has_is_refused(
    tiny: Any, open_model: Callable[..., Any]
) -> None:
    """The engine would take its own number without a word."""
    with (
        pytest.raises(
            RunnerRefusedError, match=r"max_num_tokens is 257 and tiny\.litertlm has room"
        ),
        open_model(tiny.artifact, max_num_tokens=257),
    ):
        pass
    with open_model(tiny.artifact, max_num_tokens=256) as each:
        assert each.model.effective_options["max_num_tokens"] == 256


def test_a_text_that_ends_early_is_a_failure_with_the_counts(
    tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """Where the model makes a stop token of the bundle; up to it nothing is wrong."""
    tokens = tiny.greedy(IDS[:9], 24)
    at = next(place for place in range(6, 24) if tokens[place] not in tokens[:place])
    bundle = pack(tmp_path / "early.litertlm", tiny, stops=[tokens[at]])
    with open_model(bundle) as each:
        assert each.generate(IDS[:9], at - 1).token_ids == tokens[: at - 1]
        # The token beyond those asked for is the stop token, and all that were asked for came.
        assert len(each.generate(IDS[:9], at).token_ns) == at
        with pytest.raises(RunnerRefusedError, match="the bundle's stop token came") as caught:
            each.generate(IDS[:9], 24)
        assert f"ended after {at} pieces of text and {at + 1} of 25 tokens" in str(caught.value)
        assert each.generate(IDS[:9], 4).token_ids == tokens[:4]


def test_a_bundle_of_others_runs_as_it_is(
    tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """With the start token that its metadata names, which the engine puts before each prompt."""
    bundle = pack(tmp_path / "other.litertlm", tiny, start=0, stops=[1])
    with open_model(bundle) as each:
        prompt = each.tokenize(TEXT)
        assert prompt == [0, *IDS]
        assert each.generate(prompt, 12).token_ids == tiny.greedy(prompt, 12)
        split = each.generate(prompt[5:], 12, depth_ids=prompt[:5])
        assert split.token_ids == tiny.greedy(prompt, 12)
        with pytest.raises(RunnerRefusedError, match="after the start token 0 that this bundle"):
            each.generate(IDS, 4)
        assert each.model.vocabulary_size == tiny.model.config.vocab_size
        assert each.model.bos_text == "<|start|>"


def test_scores_of_a_bundle_with_a_start_token_are_right(
    tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """From the first token after it on."""
    from tiny_models import log_likelihoods

    bundle = pack(tmp_path / "scored.litertlm", tiny, start=0)
    ids = [0, *IDS]
    with open_model(bundle) as each:
        for start in (1, 2, 10):
            rated = each.score(ids, start).log_likelihoods
            expected = log_likelihoods(tiny.model, ids)[start - 1 :]
            assert rated == pytest.approx(expected, abs=1e-4)


def test_a_task_file_runs_too(
    make_tiny: Callable[..., Any], open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """MediaPipe's older kind of bundle, a zip file with a tokenizer of SentencePiece's."""
    import sentencepiece
    from litert_lm_builder.runtime.proto.llm_metadata_pb2 import LlmMetadata

    text = tmp_path / "text.txt"
    text.write_text("\n".join([TEXT] * 40), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(tmp_path / "pieces"), vocab_size=320, model_type="bpe",
        byte_fallback=True, hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "pieces.model"))
    vocabulary = {number: pieces.id_to_piece(number) for number in range(pieces.vocab_size())}
    written = {n for n in vocabulary if not (pieces.is_byte(n) or pieces.is_control(n))}
    plain = [n for n in written - {pieces.unk_id()} if vocabulary[n].strip("▁").isascii()]
    model = make_tiny(said=plain)
    metadata = LlmMetadata(max_num_tokens=256)
    metadata.llm_model_type.generic_model.SetInParent()
    metadata.start_token.token_ids.ids.append(pieces.bos_id())
    metadata.stop_tokens.add().token_ids.ids.append(pieces.eos_id())
    bundle = tmp_path / "model.task"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("TF_LITE_PREFILL_DECODE", sections_of(model.artifact)["TFLiteModel"])
        archive.writestr("TOKENIZER_MODEL", (tmp_path / "pieces.model").read_bytes())
        archive.writestr("METADATA", metadata.SerializeToString())
    with open_model(bundle) as each:
        prompt = [pieces.bos_id(), *pieces.encode("It was the best of times")]
        assert each.tokenize("It was the best of times") == prompt
        made = each.generate(prompt, 12)
        expected = model.greedy(prompt, 12)
        assert len(made.token_ns) == 12
        # Whether there was a space before the first one, the text does not tell.
        assert made.token_ids[1:] == expected[1:]
        assert made.token_ids[0] in (None, expected[0])


def test_a_task_file_that_the_engine_could_not_read_is_refused(tiny: Any, tmp_path: Path) -> None:
    """Compressed parts, and parts that are missing."""
    graph = sections_of(tiny.artifact)["TFLiteModel"]
    packed, empty = tmp_path / "packed.task", tmp_path / "empty.task"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("TF_LITE_PREFILL_DECODE", graph)
    with zipfile.ZipFile(empty, "w") as archive:
        archive.writestr("TF_LITE_PREFILL_DECODE", graph)
    assert "is compressed" in str(refusal(packed))
    assert "it has no metadata" in str(refusal(empty))


@pytest.mark.parametrize("backend", ["gpu", "npu"])
def test_a_back_end_that_is_not_there_is_refused(
    tiny: Any, open_model: Callable[..., Any], backend: str
) -> None:
    """With the engine's own reason; of a neural processor it takes the CPU without an error."""
    with (
        pytest.raises(RunnerUnavailableError, match=f"can't use the back end {backend}") as caught,
        open_model(tiny.artifact, backend=backend),
    ):
        pass
    message = str(caught.value)
    assert "set backend: cpu" in message
    assert "\n" not in message
    assert ".cc:" not in message


def test_a_neural_processor_is_missed_each_time(tiny: Any, open_model: Callable[..., Any]) -> None:
    """Also where the process has computed on the CPU before, of which the engine tells once."""
    request = LoadRequest(str(tiny.artifact), 100, {"backend": "npu"})
    with open_model(tiny.artifact) as each:
        for _ in range(2):
            with pytest.raises(RunnerUnavailableError, match="would compute on the CPU instead"):
                each.session.call("load", to_wire(request), timeout_s=60)


APPLIED = "INFO: [compiled_model.cc:1] 1 compiler plugins were applied successfully: A vendor's"


@pytest.mark.parametrize(
    ("log", "says"),
    [
        ([APPLIED], None),
        (["INFO: Created TensorFlow Lite XNNPACK delegate for CPU.", APPLIED], None),
        ([APPLIED.replace(" 1 c", " 0 c")], "can't be seen: its log names no compiler plug-in"),
        (["Failed to apply compiler plugins: No such file"], r"CPU instead \(No such file\)"),
        (["INFO: Created TensorFlow Lite XNNPACK delegate for CPU."], "on the CPU instead"),
        ([], "can't be seen: its log names no compiler plug-in"),
        (None, "can't be seen, since only its log tells"),
    ],
)
def test_a_neural_processor_is_used_only_where_the_log_tells_it(
    log: list[str] | None, says: str | None
) -> None:
    """By a plug-in that was applied; what is not seen is not told as the CPU."""
    fault = npu_fault(log)
    if says is None:
        assert fault is None
    else:
        assert re.search(says, fault or "")


def test_a_bundle_that_no_back_end_loads_is_no_missing_gpu(
    tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """A damaged graph is told as one, whatever was to compute it."""
    damaged = tmp_path / "damaged.litertlm"
    damaged.write_bytes(tiny.artifact.read_bytes().replace(b"TFL3", b"TFL9"))
    with (
        pytest.raises(RunnerRefusedError, match=r"LiteRT-LM can't load .*: .*flatbuffer") as caught,
        open_model(damaged, backend="gpu"),
    ):
        pass
    assert "backend" not in str(caught.value)


def test_blocks_where_there_are_none_are_refused(tmp_path: Path) -> None:
    """An option that would change nothing; int4 in either place has blocks."""
    where = (str(tmp_path / "source"), "int8", str(tmp_path / "target"))
    with pytest.raises(RunnerFailure, match="has no blocks; leave it out"):
        Recipe.of(ConvertRequest(*where, {"block_size": 64}))
    options = {"block_size": 64, "output_quantization": "int4"}
    assert Recipe.of(ConvertRequest(*where, options)).block_size == 64


def test_the_engines_own_reason_is_part_of_the_error(
    tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """A bundle that is whole and whose graph is not one the engine knows."""
    damaged = tmp_path / "damaged.litertlm"
    shutil.copy(tiny.artifact, damaged)
    content = damaged.read_bytes()
    damaged.write_bytes(content.replace(b"kv_cache_k_1", b"kv_cache_x_1"))
    with (
        pytest.raises(RunnerRefusedError, match="LiteRT-LM") as caught,
        open_model(damaged) as each,
    ):
        each.generate(IDS[:4], 4)
    message = str(caught.value)
    assert "gave no reason" not in message
    assert "third_party" not in message


def test_lines_of_the_log_are_read_whatever_their_bytes_are(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What the engine prints of a damaged file is no UTF-8; places in its source are left out."""
    with capfd.disabled():
        assert tidy("=== Source Location Trace: ===") == ""
        assert tidy("third_party/odml/litert_lm/runtime/core/tasks.cc:558") == ""
        assert tidy("    @     0x7f98bfc01808  absl::StatusBuilder::Create()") == ""
    console = Console(tidy)
    os.write(
        2,
        b"E0000 00:00:1795990899.972098    7686 engine.cc:854] Failed to create engine: "
        b"INVALID_ARGUMENT: Invalid magic number: \xd4\xdc\xc9\n=== Source Location Trace: ===\n"
        b"third_party/odml/litert_lm/schema/core/litertlm_read.cc:78\n",
    )
    assert console.reason() == "Invalid magic number: \ufffd\ufffd\ufffd"


@pytest.fixture
def runner(tiny: Any) -> Iterator[MediaPipeRunner]:
    """In this process, with the tiny model."""
    each = MediaPipeRunner()
    each.load(LoadRequest(str(tiny.artifact), 200, {"threads": 1}))
    yield each
    each.close()


def test_the_check_of_scores_tells_the_engines_fault(runner: MediaPipeRunner) -> None:
    """Rated as the engine does it by itself, scores depend on how a text is cut: so none are given
    where the way around does not fit."""
    model = runner.model

    def plain(ids: list[int], start: int) -> list[float]:
        with model._engine.session() as session:
            session.prefill(model._texts.first(ids[:start]).encode())
            return session.score(model._texts.next(ids[start:]).encode())

    assert apart(plain, IDS, NEAR) > 5 * MOST_OFF
    assert apart(model._scoring._rate, IDS, NEAR) < 1e-4
    assert len(IDS) > FAR


def test_scores_are_refused_where_the_way_around_does_not_fit(
    runner: MediaPipeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason, each time."""
    scoring = runner.model._scoring
    monkeypatch.setattr("edgebench.runners.litert_score.MOST_OFF", -1.0)
    for _ in range(2):
        with pytest.raises(RunnerFailure, match="scores are wrong") as caught:
            scoring.score(IDS, 1)
        assert caught.value.reason == "unsupported"


def test_scores_that_cant_be_checked_are_refused_with_the_reason(
    runner: MediaPipeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once found out, each time; it is no fault of the text that was to be rated."""
    scoring = runner.model._scoring
    asked = []

    def fails(ids: list[int], start: int) -> list[float]:
        asked.append(ids[start])
        raise RunnerFailure("no text")

    monkeypatch.setattr(scoring, "_rate", fails)
    for _ in range(2):
        with pytest.raises(RunnerFailure, match="scores can't be checked: no text") as caught:
            scoring.score(IDS, 1)
        assert caught.value.reason == "unsupported"
    assert len(asked) == 1


def test_scores_are_checked_behind_the_start_token_that_is_due(
    spaced: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the engine does not add it by itself."""
    runner = MediaPipeRunner()
    runner.load(LoadRequest(str(spaced.artifact), 200, {"threads": 1}))
    scoring = runner.model._scoring
    rate, checked = scoring._rate, []

    def noted(ids: list[int], start: int) -> list[float]:
        checked.append((ids[0], start))
        return rate(ids, start)

    monkeypatch.setattr("edgebench.runners.litert_score.CHECKED", TEXT)
    monkeypatch.setattr(scoring, "_rate", noted)
    scoring.score(runner.tokenize("It was the best"), 1)
    runner.close()
    (one, near), (other, far) = checked[:2]
    assert (one, other) == (1, 1)
    assert NEAR < near < FAR <= far


def test_scores_of_a_text_that_cant_be_cut_twice_are_refused(
    runner: MediaPipeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rated twice in the same way, they would be equal however wrong they are."""
    scoring = runner.model._scoring
    monkeypatch.setattr(scoring, "_cut", lambda *_: Cut(1, [], "", 0))
    with pytest.raises(RunnerFailure, match="can't be cut at two places"):
        scoring.score(IDS, 1)


@pytest.mark.parametrize("checked", [False, True])
def test_the_position_of_what_is_no_number_is_named(
    tiny: Any, tmp_path: Path, open_model: Callable[..., Any], *, checked: bool
) -> None:
    """One row of the embedding is damaged: it is the token behind that token which can't be rated,
    also where the text that scoring is checked with has that token."""
    ids = ids_of(TEXT * 2)
    others = set(ids_of(CHECKED)[: FAR + 8])
    place = next(
        at
        for at, token in enumerate(ids)
        if at > 1 and token not in ids[:at] and (token in others) == checked
    )
    row = tiny.model.model.embed_tokens.weight[ids[place]].detach().numpy().tobytes()
    data = tiny.artifact.read_bytes()
    assert data.count(row) == 1
    damaged = tmp_path / "damaged.litertlm"
    damaged.write_bytes(data.replace(row, bytes([0, 0, 0xC0, 0x7F]) * (len(row) // 4)))
    says = rf"token {ids[place + 1]}, at position {place + 1} of {len(ids)} .* with nan"
    with open_model(damaged) as each, pytest.raises(RunnerRefusedError, match=says) as told:
        each.score(ids, 3)
    assert told.value.reason == "framework"


@pytest.mark.parametrize(
    ("first", "last", "says"),
    [(1, None, "the first of them, is a part of a character"), (0, -1, "ends within a character")],
)
def test_what_no_text_can_say_is_refused_with_the_reason(
    runner: MediaPipeRunner, first: int, last: int | None, says: str
) -> None:
    """A piece of a text that is cut within a character: its bytes alone are no text."""
    ids = ids_of("😀 It was the best of times 😀")[first:last]
    with pytest.raises(RunnerFailure, match=says) as told:
        runner.model._scoring.score(ids, 6)
    assert told.value.reason == "unsupported"
    assert "take another text" in str(told.value)


def test_a_stream_that_cant_be_read_ends_with_the_error(
    runner: MediaPipeRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the engine's thread is heard, and the generation does not wait for ever."""
    engine = runner.model._engine

    def broken(_: object) -> bytes:
        raise ValueError("no such chunk")

    with engine.session(4) as session:
        session.prefill(b"It was")
        monkeypatch.setattr(
            session._functions, "litert_lm_stream_chunk_get_text", broken, raising=True
        )
        with pytest.raises(RunnerFailure, match="stream can't be read: no such chunk"):
            session.decode()
    monkeypatch.undo()
    assert len(runner.generate(GenerateRequest(IDS[:8], 4)).token_ns) == 4


@pytest.mark.parametrize("fails", ["Engine.start_token", "Engine.detokenize"])
def test_an_engine_of_a_load_that_fails_is_closed(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    """Whatever fails after the engine has loaded the model, which fills the memory."""
    bundle = pack(tmp_path / "other.litertlm", tiny, start=0)
    closed = []
    close = Engine.close

    def noted(self: Engine) -> None:
        closed.append(self)
        close(self)

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Engine, "close", noted)
    monkeypatch.setattr(f"edgebench.runners.litert_engine.{fails}", broken)
    runner = MediaPipeRunner()
    with pytest.raises(RuntimeError, match="broken"):
        runner.load(LoadRequest(str(bundle), 100, {"threads": 1, "cache": "none"}))
    assert len(closed) == 1
    with pytest.raises(RunnerFailure, match="no model is loaded"):
        runner.tokenize("a")


def test_a_text_that_ends_the_engines_process_does_not_reach_it(runner: MediaPipeRunner) -> None:
    """Half a pair of surrogates is no UTF-8; a character of value 0 ends a text for it."""
    for text in ("\ud83d", "a\0b"):
        with pytest.raises(RunnerFailure) as caught:
            runner.tokenize(text)
        assert caught.value.reason == "unsupported"


def test_a_session_that_is_left_open_does_not_outlive_its_engine(
    tiny: Any, runner: MediaPipeRunner, capfd: pytest.CaptureFixture[str]
) -> None:
    """Loading the next model closes it first; the engine would print that it lives."""
    opened = runner.model._engine.session(4)
    opened.__enter__().prefill(b"It was")
    runner.load(LoadRequest(str(tiny.artifact), 100))
    runner.close()
    assert "living sessions" not in capfd.readouterr().err


ABORT = """
import os
try:
    from edgebench.runners.litert_session import Session
    Session.score = lambda *_: os.abort()
except ImportError:
    pass
"""


def test_a_crash_while_scoring_is_told_as_one(
    tiny: Any, open_model: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that rated tokens is gone; the harness names the signal."""
    (tmp_path / "sitecustomize.py").write_text(ABORT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with (
        open_model(tiny.artifact) as each,
        pytest.raises(RunnerCrashedError, match="SIGABRT during score"),
    ):
        each.score(IDS)


def test_a_crash_while_scoring_costs_no_generation(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run goes on: what needs no scores is measured, and the row of what does has the reason."""
    (tmp_path / "sitecustomize.py").write_text(ABORT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    path = tmp_path / "scenario.yaml"
    variant = {
        "runner": "mediapipe", "quantization": "fp32", "threads": 1,
        "cache_length": 256, "prefill_lengths": "16",
    }  # fmt: skip
    path.write_text(
        "schema_version: 1\nname: crash\n"
        f"model: {{name: tiny, source: 'path:{tiny.source}'}}\n"
        f"variants: [{json.dumps(variant)}]\n"
        "workloads: [{name: it, prompt: It was the best of, generate_tokens: 4}]\n"
        "measure: {warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}, timeout_s: 60}\n"
        "verify: true\n",
        encoding="utf-8",
    )
    scenario = load_scenario(path, runners=runner_classes())
    folder = new_run_folder(tmp_path / "results", scenario.name)
    execute(scenario, Settings(folder=folder, base=tmp_path, store=ModelStore(tmp_path / "store")))
    run = read_run(folder)
    (cell,) = run.record.cells
    assert (cell.status, cell.n) == ("ok", 2), cell.failure
    assert "SIGABRT" in run.record.model_dump_json()


def test_without_the_package_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The pip command with the extra."""
    import sys

    monkeypatch.setitem(sys.modules, "litert_lm", None)
    with pytest.raises(RunnerFailure, match=r"pip install 'edgebench\[mediapipe\]'") as caught:
        Library()
    assert caught.value.reason == "unavailable"
