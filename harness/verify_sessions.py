"""The two starts of a variant that verifying needs: one to generate, one to rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness import wire
from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.variant_session import SCORING, in_session, load, score
from edgebench.runners.base import GenerateRequest, ScoreRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.session import Session
    from edgebench.runners.base import LoadedModel, Scores


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
        timeout_s: for one load or one generation; a rating gets more.
    """

    def __init__(self, folder: Path, timeout_s: float) -> None:
        self._folder = folder
        self._timeout_s = timeout_s

    def generate(self, item: PreparedVariant, prompts: Sequence[Asked]) -> Generated | Failure:
        """Make each prompt's greedy tokens, and ask the tokenizer where that can be."""
        can = item.description.capabilities if item.description is not None else None
        can_tokenize = can is not None and (can.tokenizer or can.tokenizes)

        def work(session: Session) -> Generated:
            model = load(session, item, _context(prompts), self._timeout_s)
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

        return in_session(item, self._folder, "verify", work)

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
            model = load(session, item, _context(prompts), self._timeout_s)
            made: list[Scores | None] = []
            for prompt, wanted in zip(prompts, candidates, strict=True):
                if not wanted:
                    made.append(None)
                    continue
                request = ScoreRequest(list(prompt.ids), 1, [list(ids) for ids in wanted])
                try:
                    made.append(score(session, request, model, self._timeout_s))
                except RunnerRefusedError as error:
                    if error.reason == "unsupported":
                        return error.message
                    raise
            return made

        return in_session(item, self._folder, "verify", work)


def _context(prompts: Sequence[Asked]) -> int:
    """The longest of them, with what is generated."""
    return max(len(each.ids) + each.generate_tokens for each in prompts)


def _told(ids: Sequence[int | None]) -> tuple[int, ...]:
    """The ids before the first one that is not known."""
    known = []
    for number in ids:
        if number is None:
            break
        known.append(number)
    return tuple(known)
