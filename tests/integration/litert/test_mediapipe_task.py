"""MediaPipe's TextSummarizer on bundles of edgebench's: what runs, what is refused, and why."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import TEXT, tiny_folder

from edgebench.harness import wire
from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import ConvertRequest, LoadRequest, to_wire
from edgebench.runners.litert_convert import convert
from edgebench.runners.litert_embedded import LLM_METADATA, WANTED, empty_bundle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from edgebench.runners.base import LoadedTask, TaskResult

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]

TASK = "text-summarizer"
LIMIT_S = 120.0
CACHE = 160
CHATML = (
    "{% for message in messages %}{{ 'U' + message['content'] + 'E' }}{% endfor %}"
    "{% if add_generation_prompt %}A{% endif %}"
)


class Task:
    """The task in a process of its own."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def load(self, bundle: Path, **options: Any) -> LoadedTask:
        request = {"task": TASK, "request": to_wire(LoadRequest(str(bundle), 0, options))}
        return wire.loaded_task(self.session.call("load_task", request, timeout_s=LIMIT_S))

    def run(self, text: str) -> TaskResult:
        return wire.task_result(self.session.call("task", {"text": text}, timeout_s=LIMIT_S))


@pytest.fixture(scope="module")
def make_bundle(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Converts a tiny model, with a chat template or without."""
    source = tmp_path_factory.mktemp("tiny")
    tiny_folder(source, "llama")

    def make(template: str | None = None, **options: Any) -> Path:
        settings = {"chat_template": template} if template else {}
        (source / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
        target = tmp_path_factory.mktemp("bundle") / "tiny.litertlm"
        chosen = {"cache_length": CACHE, "prefill_lengths": "32", "stop_tokens": "model"}
        convert(ConvertRequest(str(source), "fp32", str(target), chosen | options))
        return target

    return make


@pytest.fixture(scope="module")
def bundle(make_bundle: Callable[..., Path]) -> Path:
    return make_bundle()


@pytest.fixture
def task(tmp_path: Path) -> Iterator[Task]:
    with Session(Launch("mediapipe", tmp_path / "task.log")) as session:
        yield Task(session)


@contextmanager
def refused(reason: str, *texts: str) -> Iterator[None]:
    with pytest.raises(RunnerRefusedError) as caught:
        yield
    message = str(caught.value)
    assert caught.value.reason == reason, message
    assert all(text in message for text in texts), message
    assert "\n" not in message


def test_the_wheel_names_its_version_and_the_engine_in_it(task: Task) -> None:
    """The version of the wheel, and what the engine that it embeds says of itself."""
    from importlib.metadata import version

    answer = task.session.call("describe_task", {"task": TASK}, timeout_s=LIMIT_S)
    found = wire.task_description(answer)
    assert (found.engine, found.engine_version) == (
        "MediaPipe TextSummarizer",
        version("mediapipe"),
    )
    # Of 1.2.3, which the extra asks for; read off the wheel's library.
    assert found.build == {"embedded engine": "LiteRT-LM 0.20.0"}


def test_the_bundle_without_a_model_is_what_the_format_says() -> None:
    """Read by litert-lm-builder's own schema: one section, with a wish for a newer engine."""
    from litert_lm_builder import litertlm_header_schema_py_generated as schema
    from litert_lm_builder.runtime.proto.llm_metadata_pb2 import LlmMetadata

    data = empty_bundle()
    header = schema.LiteRTLMMetaData.GetRootAs(data, 32)
    sections = header.SectionMetadata()
    assert sections.ObjectsLength() == 1
    section = sections.Objects(0)
    assert section.DataType() == LLM_METADATA == schema.AnySectionDataType.LlmMetadataProto
    settings = LlmMetadata.FromString(data[section.BeginOffset() : section.EndOffset()])
    assert settings.min_runtime_version == WANTED.decode()
    assert settings.WhichOneof("_min_runtime_version") is not None


def test_a_summary_is_the_same_each_time_and_takes_time(task: Task, bundle: Path) -> None:
    """Nothing is left of the text before; the time is that of the runner's own clock."""
    loaded = task.load(bundle)
    assert loaded.ready_ns > loaded.started_ns
    assert loaded.effective_options["max_num_tokens"] == CACHE
    first, _, third = task.run(TEXT), task.run("Something else."), task.run(TEXT)
    assert first.text == third.text
    assert first.finished_ns > first.submitted_ns > loaded.ready_ns


def test_fewer_tokens_make_a_shorter_summary(task: Task, bundle: Path) -> None:
    """max_num_tokens bounds text and summary together, and is what the task uses."""
    long = (task.load(bundle), task.run("Why?"))[1]
    short = (task.load(bundle, max_num_tokens=24), task.run("Why?"))[1]
    assert len(short.text) < len(long.text)
    assert long.text.startswith(short.text.rstrip("\ufffd"))


def test_a_process_with_a_task_has_not_what_makes_tokens(task: Task, bundle: Path) -> None:
    """One engine is in memory, not two: what is measured is the task's."""
    from pathlib import Path as Place

    task.load(bundle)
    task.run(TEXT)
    mapped = Place(f"/proc/{task.session.pid}/maps").read_text("utf-8")
    assert "libmediapipe.so" in mapped
    assert "liblitert-lm" not in mapped


def test_a_text_that_does_not_fit_is_refused_with_the_numbers(task: Task, bundle: Path) -> None:
    """The next text is summarized all the same."""
    task.load(bundle)
    with refused("invalid", "does not fit into the cache", f">= {CACHE}"):
        task.run(TEXT * 8)
    assert task.run(TEXT).text


def test_a_text_with_a_nul_is_refused(task: Task, bundle: Path) -> None:
    """The framework would see half of it, without a word."""
    task.load(bundle)
    with refused("invalid", "NUL character"):
        task.run("one\0two")


def test_a_bundle_for_exact_lengths_never_ends_a_summary(
    task: Task, make_bundle: Callable[..., Path]
) -> None:
    """It is refused before it is loaded, with the option that helps."""
    with refused("unsupported", "stop_tokens: model", "until the cache is full"):
        task.load(make_bundle(stop_tokens="reserved"))


@pytest.mark.parametrize(("option", "value"), [("backend", "gpu"), ("cache", "warm")])
def test_options_that_do_not_reach_the_task_are_refused(
    task: Task, bundle: Path, option: str, value: str
) -> None:
    """Nothing is measured under a name that it does not have."""
    with refused("unsupported", f"{option}: ", value):
        task.load(bundle, **{option: value})


def test_more_tokens_than_the_bundle_holds_are_refused(task: Task, bundle: Path) -> None:
    """The engine would take fewer without a word."""
    with refused("invalid", "max_num_tokens is 161", "160"):
        task.load(bundle, max_num_tokens=CACHE + 1)


@pytest.mark.parametrize(
    ("content", "says"),
    [(None, "there is no file"), (b"", "is empty"), (b"GGUF\3\0\0\0" * 9, "GGUF")],
)
def test_what_is_no_bundle_is_refused_in_a_sentence(
    task: Task, tmp_path: Path, content: bytes | None, says: str
) -> None:
    """As the runner itself says it."""
    path = tmp_path / "model.litertlm"
    if content is not None:
        path.write_bytes(content)
    with refused("invalid", says):
        task.load(path)


def test_a_chat_template_of_most_models_takes_the_text(
    task: Task, make_bundle: Callable[..., Path], bundle: Path
) -> None:
    """TextSummarizer gives the text in parts; it arrives as the turn that the template makes."""
    task.load(make_bundle(CHATML))
    templated = task.run("Why not?").text
    task.load(bundle)
    assert task.run("UWhy not?EA").text == templated


def test_a_template_that_fails_is_named_as_the_reason(
    task: Task, make_bundle: Callable[..., Path]
) -> None:
    """What the template said is in the message."""
    task.load(make_bundle("{{ raise_exception('no such turn') }}"))
    with refused("unsupported", "chat template", "no such turn"):
        task.run(TEXT)


def test_importing_mediapipe_is_no_part_of_loading(task: Task, bundle: Path) -> None:
    """Its library is there before the clock of the load starts, and so before the baseline."""
    from pathlib import Path as Place

    task.session.call("import_task", {"task": TASK}, timeout_s=LIMIT_S)
    assert "libmediapipe.so" in Place(f"/proc/{task.session.pid}/maps").read_text("utf-8")
    task.load(bundle)


def test_without_the_wheel_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, bundle: Path
) -> None:
    """One sentence, with the command; nothing else of the runner needs the wheel."""
    import sys
    from importlib import metadata

    from edgebench.runners.base import RunnerFailure
    from edgebench.runners.mediapipe_task import MediaPipeTask, wheel_version

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.setitem(sys.modules, "mediapipe", None)
    assert wheel_version() is None
    for ask in (
        lambda: MediaPipeTask().describe(TASK),
        lambda: MediaPipeTask().load(TASK, LoadRequest(str(bundle), 0)),
    ):
        with pytest.raises(RunnerFailure, match=r"pip install 'edgebench\[mediapipe\]'") as caught:
            ask()
        assert caught.value.reason == "unavailable"
