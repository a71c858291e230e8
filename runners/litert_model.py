"""A bundle that LiteRT-LM has loaded: generations from it, with a time stamp for each token."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from edgebench.runners.base import Generation, LoadedModel, RunnerFailure, Scores
from edgebench.runners.checked_request import check_ids, check_scoring
from edgebench.runners.litert_backend import load_engine
from edgebench.runners.litert_ids import pieces_of, tell
from edgebench.runners.litert_score import Scoring
from edgebench.runners.litert_texts import Texts
from edgebench.runners.litert_vocabulary import read_tokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.runners.base import GenerateRequest, Scalar, ScoreRequest
    from edgebench.runners.litert_bundle import Bundle
    from edgebench.runners.litert_ids import Told
    from edgebench.runners.litert_library import Library
    from edgebench.runners.litert_session import Stream, Turn
    from edgebench.runners.litert_settings import Chosen
    from edgebench.runners.litert_vocabulary import Tokens

BEYOND = 1
"""Tokens made beyond those asked for: the engine hands each over when the next one is made."""


class Model:
    """One loaded bundle.

    Args:
        library: the engine.
        bundle: what to load.
        chosen: how.
        cache: a folder for prepared weights, or None.

    Raises:
        RunnerFailure: nothing ends a text of the bundle (invalid), the back end is not there
            (unavailable), or the engine can't load it.
    """

    def __init__(self, library: Library, bundle: Bundle, chosen: Chosen, cache: str | None) -> None:
        # One may be named without a token in it, which is none.
        if not any(bundle.settings.stops):
            msg = (
                f"{bundle.path.name} names no stop tokens, and LiteRT-LM generates nothing without "
                "one; pack it again with a stop token in its metadata"
            )
            raise RunnerFailure(msg, reason="invalid")
        self._bundle = bundle
        self._chosen = chosen
        self._tokens: Tokens | None = None
        before = _threads()
        self._engine = load_engine(library, str(bundle.path), chosen, cache)
        # Its own thread takes part.
        self._threads = _threads() - before + 1 if before else chosen.threads
        try:
            self._look_in()
        except BaseException:
            self._engine.close()
            raise

    def _look_in(self) -> None:
        """What the loaded engine and its bundle tell."""
        bundle, chosen = self._bundle, self._chosen
        facts = bundle.facts
        self._start_token = self._engine.start_token()
        self._due_token = facts.start_id if facts is not None else self._start_token
        start_text = facts.start_text if facts is not None else ""
        self._texts = Texts(self._engine, self._start_token, start_text, self._due_token)
        self._room = chosen.max_tokens or bundle.cache_length or bundle.settings.max_tokens
        rooms = [room for room in (self._room, bundle.cache_length) if room]
        self._most_rated = min(rooms, default=None)
        self._scoring = Scoring(
            self._engine, self._texts, self._start_token, self._due_token, self._most_rated
        )
        self.vocabulary_size = bundle.vocabulary_size or self._tokens_count()

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()

    def facts(self) -> LoadedModel:
        """What was loaded."""
        facts, chosen = self._bundle.facts, self._chosen
        effective: dict[str, Scalar] = {
            "backend": chosen.backend,
            "threads": self._threads,
            "max_num_tokens": self._room,
            "cache": chosen.cache,
            "stop_tokens": facts.stop_tokens if facts is not None else "the bundle's own",
        }
        if self._bundle.cache_length is not None:
            effective["cache_length"] = self._bundle.cache_length
        if facts is not None:
            effective |= facts.shape
        start = self._due_token
        return LoadedModel(
            effective_options=effective,
            vocabulary_size=self.vocabulary_size,
            architecture=facts.architecture if facts else None,
            parameters=facts.parameters if facts else None,
            trained_context_tokens=facts.trained_context_tokens if facts else None,
            chat_template=self._bundle.settings.template,
            bos_text=facts.start_text
            if facts
            else ("" if start is None else self._engine.detokenize([start])),
            eos_text=facts.end_text if facts else self._stop_text(),
        )

    def tokenize(self, text: str) -> list[int]:
        """Ids of a text as a prompt: behind a start token where one is due."""
        ids = self._engine.tokenize(text)
        return ids if self._due_token is None else [self._due_token, *ids]

    def detokenize(self, ids: Sequence[int]) -> str:
        """The text of ids, a start token that is due left out."""
        check_ids(ids, self.vocabulary_size)
        skipped = 1 if ids and ids[0] == self._due_token else 0
        return self._engine.detokenize(list(ids[skipped:]))

    def generate(self, request: GenerateRequest) -> Generation:
        """Take the depth in, then measure prefill and each token.

        Raises:
            RunnerFailure: no text gives these ids (unsupported), the context is too short
                (invalid), or the engine made another number of tokens.
        """
        self._check_room(request)
        depth, prompt = list(request.depth_ids), list(request.prompt_ids)
        before = self._texts.first(depth).encode() if depth else b""
        find = self._texts.next if depth else self._texts.first
        text = find(prompt, request.prompt_text).encode()

        now = time.perf_counter_ns
        with self._engine.session(request.max_tokens + BEYOND) as session:
            if before:
                session.prefill(before)
            submitted = now()
            session.prefill(text)
            prefilled = now()
            stream = session.decode()
            taken_in, made = session.turns()

        self._check_counts(request, taken_in, made, stream)
        told = self._told(stream, request.max_tokens)
        stamps = [stream.stamps[at] for at in told.chunks[: request.max_tokens]]
        return Generation(
            token_ids=list(told.ids[: request.max_tokens]),
            submitted_ns=submitted,
            prefilled_ns=prefilled,
            token_ns=stamps,
            prompt_tokens=len(prompt),
            depth_tokens=len(depth),
            finish_reason="length",
            engine=_figures(taken_in[-1], made[-1]),
        )

    def score(self, request: ScoreRequest) -> Scores:
        """Log-likelihoods of ``ids[start:]``; those of other tokens the engine does not tell.

        Raises:
            RunnerFailure: they don't fit into the context (invalid), no text gives these ids, or
                this version of the engine rates something else (unsupported).
        """
        most = self._most_rated or len(request.ids)
        check_scoring(request, self.vocabulary_size, most)
        return Scores(self._scoring.score(request.ids, request.start))

    def _check_room(self, request: GenerateRequest) -> None:
        if not request.prompt_ids or request.max_tokens < 1:
            msg = "a prompt of at least one token and at least one token to make are needed"
            raise RunnerFailure(msg, reason="invalid")
        check_ids(request.prompt_ids, self.vocabulary_size)
        check_ids(request.depth_ids, self.vocabulary_size)
        asked = len(request.depth_ids) + len(request.prompt_ids) + request.max_tokens
        needed = asked + BEYOND
        if self._room is not None and needed > self._room:
            most = self._bundle.cache_length
            remedy = (
                f"set cache_length to {needed} or more, and have the bundle made anew"
                if most is None or needed > most
                else f"set max_num_tokens to {needed} or more, or leave it out"
            )
            msg = (
                f"{asked} tokens are asked for and the context holds {self._room}, one of which is "
                f"needed to see the last token come; {remedy}"
            )
            raise RunnerFailure(msg, reason="invalid")

    def _check_counts(
        self,
        request: GenerateRequest,
        taken_in: Sequence[Turn],
        made: Sequence[Turn],
        stream: Stream,
    ) -> None:
        """Whether the engine processed what it was asked to, by its own count."""
        asked = len(request.depth_ids) + len(request.prompt_ids)
        took = sum(turn.tokens for turn in taken_in)
        if took != asked:
            msg = f"LiteRT-LM took in {took} tokens of a text that it makes {asked} of"
            raise RunnerFailure(msg)
        wanted = request.max_tokens
        number = sum(turn.tokens for turn in made)
        if number < wanted + BEYOND:
            self._refuse_early(wanted, number, stream)
        if number > wanted + BEYOND:
            msg = f"LiteRT-LM made {number} tokens of {wanted + BEYOND} asked for"
            raise RunnerFailure(msg)
        if not stream.chunks:
            msg = f"LiteRT-LM made {number} tokens, none of which shows any text"
            raise RunnerFailure(msg)

    def _refuse_early(self, wanted: int, number: int, stream: Stream) -> NoReturn:
        if stream.full:
            why = f"its context of {self._room} tokens was full"
        else:
            why = (
                "the bundle's stop token came; have the bundle made with stop_tokens: reserved, "
                "or take another prompt"
            )
        # A stop token is counted by the engine, and shows no text.
        msg = (
            f"LiteRT-LM ended after {len(stream.chunks)} pieces of text and {number} of "
            f"{wanted + BEYOND} tokens ({wanted} asked for, and one to see the last one come): "
            f"{why}"
        )
        raise RunnerFailure(msg)

    def _told(self, stream: Stream, wanted: int) -> Told:
        """The tokens by the text that came."""
        if self._tokens is None:
            self._tokens = self._read_tokens()
        pieces = pieces_of(stream.chunks, self._tokens, self._usual)
        if len(pieces) > wanted + BEYOND:
            msg = f"LiteRT-LM gave {len(pieces)} pieces of text for {wanted + BEYOND} tokens"
            raise RunnerFailure(msg)
        facts = self._bundle.facts
        reserved = facts is not None and facts.stop_tokens == "reserved"
        silent = self._tokens.count < self.vocabulary_size
        return tell(pieces, wanted + BEYOND, silent=silent, stops=not reserved)

    def _read_tokens(self) -> Tokens:
        bundle = self._bundle
        return read_tokens(bundle.read(bundle.tokenizer), sentencepiece=bundle.sentencepiece)

    def _tokens_count(self) -> int:
        """The size of the vocabulary, where the graph does not tell: that of the tokenizer."""
        self._tokens = self._read_tokens()
        return self._tokens.size

    def _usual(self, text: str) -> list[int]:
        try:
            return self._engine.tokenize(text)
        except RunnerFailure:
            return []

    def _stop_text(self) -> str:
        stop = next(stop for stop in self._bundle.settings.stops if stop)
        return stop if isinstance(stop, str) else self._engine.detokenize(list(stop))


def _figures(taken_in: Turn, made: Turn) -> dict[str, float]:
    """The engine's own; its time to the first token is made up of both, so it is left out."""
    figures = {}
    if taken_in.rate > 0:
        figures["prefill_s"] = taken_in.tokens / taken_in.rate
        figures["prefill_rate"] = taken_in.rate
    if made.rate > 0:
        figures["decode_rate"] = made.rate
    return figures


def _threads() -> int:
    """How many threads this process has, or 0 where that can't be seen."""
    try:
        return len(list(Path("/proc/self/task").iterdir()))
    except OSError:
        return 0
