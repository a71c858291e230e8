"""The two starts of a variant that verifying needs: one to generate, one to rate."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from edgebench.harness import wire
from edgebench.harness.errors import RunnerError, RunnerRefusedError
from edgebench.harness.failures import failure_of
from edgebench.harness.results.writer import LOGS_FOLDER
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.harness.prepare import PreparedVariant
    from edgebench.harness.results.model import Failure
    from edgebench.runners.base import LoadedModel, Scores

T = TypeVar("T")

PATIENCE = 3.0
"""Rating runs the output layer at every position, which a generation's prompt does not."""

SCORING = "the framework gives no log-likelihoods of given tokens"


@dataclass(frozen=True, slots=True)
class Asked:
    """A workload's prompt, as far as it is verified.

    Attributes:
        ids: its first tokens.
        text: the text of the whole prompt, or None where there is none.
        generate_tokens: how many tokens are generated after `ids`.
        whole: `ids` are the whole prompt.
    """

    workload: str
    ids: tuple[int, ...]
    text: str | None
    generate_tokens: int
    whole: bool = True

    def request(self) -> GenerateRequest:
        """To generate after `ids`; with the text, for frameworks that take nothing else."""
        text = self.text if self.whole else None
        return GenerateRequest(list(self.ids), self.generate_tokens, prompt_text=text)


@dataclass(frozen=True, slots=True)
class Generated:
    """What a variant made.

    Attributes:
        model: what it loaded.
        tokens: for each prompt, the greedy tokens, up to one whose id was not told.
        text_ids: for each prompt, the ids of its text by the framework's own tokenizer; None
            where there is no text, or the tokenizer can't be asked.
    """

    model: LoadedModel
    tokens: tuple[tuple[int, ...], ...]
    text_ids: tuple[tuple[int, ...] | None, ...]


class VariantSessions:
    """Starts variants for the comparison.

    Args:
        folder: the folder that the logs' folder stands in.
        timeout_s: for one load or one generation; a rating gets `PATIENCE` times that.
    """

    def __init__(self, folder: Path, timeout_s: float) -> None:
        self._folder = folder
        self._timeout_s = timeout_s

    def generate(self, item: PreparedVariant, prompts: Sequence[Asked]) -> Generated | Failure:
        """Make each prompt's greedy tokens, and ask the tokenizer where that can be."""
        can = item.description.capabilities if item.description is not None else None
        can_tokenize = can is not None and (can.tokenizer or can.tokenizes)

        def work(session: Session) -> Generated:
            model = self._load(session, item, prompts)
            tokens, text_ids = [], []
            for prompt in prompts:
                ids = None
                if can_tokenize and prompt.text is not None:
                    answer = session.call(
                        "tokenize", {"text": prompt.text}, timeout_s=self._timeout_s
                    )
                    ids = tuple(wire.token_ids(answer))
                text_ids.append(ids)
                request = prompt.request()
                answer = session.call("generate", to_wire(request), timeout_s=self._timeout_s)
                made = wire.generation(answer, request, model.vocabulary_size)
                tokens.append(_told(made.token_ids))
            return Generated(model, tuple(tokens), tuple(text_ids))

        return self._in_session(item, work)

    def score(
        self,
        item: PreparedVariant,
        prompts: Sequence[Asked],
        candidates: Sequence[Sequence[Sequence[int]]],
    ) -> list[Scores | None] | str | Failure:
        """Rate each prompt's tokens from the second on, and the candidates at their positions.

        Returns:
            The ratings of each prompt, None for one of a single token; or why the framework has
            none; or how it failed.
        """
        assert item.description is not None
        if not item.description.capabilities.scoring:
            return SCORING

        def work(session: Session) -> list[Scores | None] | str:
            model = self._load(session, item, prompts)
            made: list[Scores | None] = []
            for prompt, wanted in zip(prompts, candidates, strict=True):
                if not wanted:
                    made.append(None)
                    continue
                request = ScoreRequest(list(prompt.ids), 1, [list(ids) for ids in wanted])
                try:
                    answer = session.call(
                        "score", to_wire(request), timeout_s=PATIENCE * self._timeout_s
                    )
                except RunnerRefusedError as error:
                    if error.reason == "unsupported":
                        return error.message
                    raise
                made.append(wire.scores(answer, request, model.vocabulary_size))
            return made

        return self._in_session(item, work)

    def _load(
        self, session: Session, item: PreparedVariant, prompts: Sequence[Asked]
    ) -> LoadedModel:
        assert item.file is not None
        session.call("probe", timeout_s=self._timeout_s)
        request = LoadRequest(
            model_path=str(item.file.path),
            context_tokens=max(len(each.ids) + each.generate_tokens for each in prompts),
            options=item.load_options,
        )
        answer = session.call("load", to_wire(request), timeout_s=self._timeout_s)
        return wire.loaded_model(answer)[0]

    def _in_session(self, item: PreparedVariant, work: Callable[[Session], T]) -> T | Failure:
        slug = re.sub(r"[^A-Za-z0-9._-]+", "-", item.variant.id).strip("-.") or "variant"
        log = Path(LOGS_FOLDER) / f"verify-{slug[:80]}.log"
        session = Session(Launch(item.variant.runner, self._folder / log, item.python))
        try:
            with session:
                return work(session)
        except RunnerError as error:
            return failure_of(error, log=log, log_tail=session.log_tail())


def _told(ids: Sequence[int | None]) -> tuple[int, ...]:
    """The ids before the first one that is not known."""
    known = []
    for number in ids:
        if number is None:
            break
        known.append(number)
    return tuple(known)
