"""The reference: the canonical model itself, run in float32 by nothing but numpy.

It shares no code with any framework, so that whatever agrees with it runs the same model. One
pass over the layers serves many texts, with one matrix in memory at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.errors import ModelFormatError
from edgebench.models.reference_head import Likeliest, likeliest
from edgebench.models.reference_layers import (
    Span,
    attention,
    feed_forward,
    rms_norm,
    rotation,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.weights import Floats

COVERED = 0.999
"""The share of the probability that a position's candidates hold together."""

MOST_CANDIDATES = 2048
"""No more candidates than that, even where they cover less: a flat distribution has no end."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A text, and texts that go on from its end, each without knowing of the others.

    Attributes:
        prompt: token ids, at least one.
        branches: token ids that may follow the prompt.
    """

    prompt: tuple[int, ...]
    branches: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """What the reference says of a token, given all tokens before it.

    Attributes:
        log_likelihood: of the token that stands there; a natural logarithm.
        top_id: the likeliest token, the smallest id where several are.
        top_log_likelihood: its log-likelihood.
        lead: by how much the logit of the likeliest is above that of the second.
        candidates: the likeliest tokens, likeliest first: the fewest that cover `COVERED` of the
            probability, at most `MOST_CANDIDATES`. Empty in a branch.
        candidate_log_likelihoods: theirs.
    """

    log_likelihood: float
    top_id: int
    top_log_likelihood: float
    lead: float
    candidates: tuple[int, ...] = ()
    candidate_log_likelihoods: tuple[float, ...] = ()

    @property
    def behind(self) -> float:
        """By how much the logit of the token that stands there is below the likeliest's."""
        return self.top_log_likelihood - self.log_likelihood


@dataclass(frozen=True, slots=True)
class RatedTree:
    """A rated `Tree`.

    Attributes:
        prompt: an entry for each token but the first, which nothing stands before.
        branches: for each branch an entry for each of its tokens.
    """

    prompt: tuple[Position, ...]
    branches: tuple[tuple[Position, ...], ...]


class Reference:
    """Rates texts by a canonical model.

    Args:
        model: its weights are read anew by each call of `rate`.
        progress: told of each step in a few words, such as ``layer 3 of 30``.
    """

    def __init__(
        self, model: CanonicalModel, progress: Callable[[str], None] = lambda _: None
    ) -> None:
        self._model = model
        self._progress = progress

    def rate(self, trees: Sequence[Tree]) -> list[RatedTree]:
        """Rate every token of every tree, in one pass over the weights.

        Raises:
            ModelFormatError: the weights can't be read, or give numbers that are none.
            ValueError: a token id is outside of the vocabulary, or a prompt is empty.
        """
        plan = _Plan(trees)
        self._check(plan.ids)
        hidden = self._layers(plan)
        output = self._model.weights[
            "model.embed_tokens.weight"
            if self._model.architecture.tied_embeddings
            else "lm_head.weight"
        ]

        def step(done: int, rows: int) -> None:
            self._progress(f"output layer, token {done} of {rows}")

        found = [
            likeliest(
                output,
                hidden[[each.row for each in wanted]],
                np.array([each.named for each in wanted], dtype=np.int64),
                keep,
                step,
            )
            for wanted, keep in ((plan.in_prompts, MOST_CANDIDATES), (plan.in_branches, 2))
        ]
        return plan.gather(*found)

    def _check(self, ids: Sequence[int]) -> None:
        size = self._model.architecture.vocabulary_size
        for number in ids:
            if not 0 <= number < size:
                msg = f"token id {number} is outside of the vocabulary of {size}"
                raise ValueError(msg)

    def _layers(self, plan: _Plan) -> Floats:
        """The last layer's output, normalised: (tokens, hidden)."""
        architecture, weights = self._model.architecture, self._model.weights
        epsilon = architecture.norm_epsilon
        values = self._embed(plan.ids)
        turn = rotation(architecture.rope, plan.positions)
        for layer in range(architecture.layers):
            self._progress(f"layer {layer + 1} of {architecture.layers}")
            prefix = f"model.layers.{layer}."
            scale = weights[f"{prefix}input_layernorm.weight"].read()
            normal = rms_norm(values, scale, epsilon)
            values += attention(architecture, weights, prefix, normal, turn, plan.spans)
            scale = weights[f"{prefix}post_attention_layernorm.weight"].read()
            values += feed_forward(weights, prefix, rms_norm(values, scale, epsilon))
        if not np.isfinite(values).all():
            msg = (
                f"the weights of {self._model.path} give values that are no finite numbers; "
                "the file is damaged, or was made by a tool that went wrong"
            )
            raise ModelFormatError(msg)
        return rms_norm(values, weights["model.norm.weight"].read(), epsilon)

    def _embed(self, ids: Sequence[int]) -> Floats:
        tensor = self._model.weights["model.embed_tokens.weight"]
        rows = {number: tensor.read(number, number + 1)[0] for number in sorted(set(ids))}
        return np.stack([rows[number] for number in ids])


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A row of the pass whose output rates the token `named`."""

    row: int
    named: int


class _Plan:
    """All tokens of all trees, one below the other."""

    def __init__(self, trees: Sequence[Tree]) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.spans: list[Span] = []
        self.in_prompts: list[_Wanted] = []
        self.in_branches: list[_Wanted] = []
        self._trees = trees
        for tree in trees:
            self._add(tree)

    def _add(self, tree: Tree) -> None:
        if not tree.prompt:
            msg = "a prompt needs at least one token"
            raise ValueError(msg)
        start = len(self.ids)
        count = len(tree.prompt)
        self._span(tree.prompt, 0, (0, 0))
        self.in_prompts += [
            _Wanted(start + before, named) for before, named in enumerate(tree.prompt[1:])
        ]
        for branch in tree.branches:
            if not branch:
                continue
            first = len(self.ids)
            # Nothing is asked of what would follow the last token.
            self._span(branch[:-1], count, (start, start + count))
            rows = (start + count - 1, *range(first, first + len(branch) - 1))
            self.in_branches += [_Wanted(*each) for each in zip(rows, branch, strict=True)]

    def _span(self, ids: Sequence[int], position: int, before: tuple[int, int]) -> None:
        first = len(self.ids)
        self.ids += ids
        self.positions += range(position, position + len(ids))
        if ids:
            self.spans.append(Span(first, len(self.ids), before))

    def gather(self, prompts: Likeliest, branches: Likeliest) -> list[RatedTree]:
        """What was found, in the trees' own order."""
        of_prompts, of_branches = iter(range(len(prompts.ids))), iter(range(len(branches.ids)))
        return [
            RatedTree(
                tuple(_position(prompts, next(of_prompts), COVERED) for _ in tree.prompt[1:]),
                tuple(
                    tuple(_position(branches, next(of_branches), 0.0) for _ in branch)
                    for branch in tree.branches
                ),
            )
            for tree in self._trees
        ]


def _position(found: Likeliest, row: int, covered: float) -> Position:
    ids, logs = found.ids[row], found.log_likelihoods[row]
    count = 0
    if covered:
        count = 1 + int(np.searchsorted(np.cumsum(np.exp(logs)), covered))
    return Position(
        log_likelihood=float(found.named[row]),
        top_id=int(ids[0]),
        top_log_likelihood=float(logs[0]),
        lead=float(logs[0] - logs[1]) if len(logs) > 1 else 0.0,
        candidates=tuple(ids[:count].tolist()),
        candidate_log_likelihoods=tuple(logs[:count].tolist()),
    )
