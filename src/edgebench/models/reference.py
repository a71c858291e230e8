"""The reference: the canonical model itself, run in float32 by nothing but numpy.

It shares no code with any framework, so that whatever agrees with it runs the same model. One
pass over the layers serves many texts, with one matrix in memory at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from edgebench.models.errors import ModelFormatError
from edgebench.models.ratings import Ratings, compact
from edgebench.models.reference_head import Likeliest, likeliest
from edgebench.models.reference_layers import attention, feed_forward, rms_norm, rotation
from edgebench.models.reference_plan import Rows, Wanted, passes, tokens_a_pass
from edgebench.models.reference_samples import Samples, chances, draw

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.weights import Floats, Tensor

COVERED = 0.999
"""The share of the probability that a position's candidates hold together."""

MOST_CANDIDATES = 2048
"""No more candidates than that, even where they cover less: a flat distribution has no end."""

WINDOW_COVERED = 0.9999
"""As `COVERED`, for the likeliest tokens at a position of a window."""

MOST_WINDOW_CANDIDATES = 160
"""As `MOST_CANDIDATES`, for windows, of which there are many more positions."""

WINDOW_DRAWS = 80
"""How many others are drawn where those cover less; all take at most 2,000 bytes a position."""


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
class Window:
    """A piece of a text, whose end is rated.

    Attributes:
        ids: token ids.
        start: the first position that is rated, at least 1.
    """

    ids: tuple[int, ...]
    start: int


@dataclass(frozen=True, slots=True)
class Position:
    """What the reference says of a token, given all tokens before it.

    Attributes:
        log_likelihood: of the token that stands there; a natural logarithm.
        top_id: the likeliest token, the smallest id where several are.
        top_log_likelihood: its log-likelihood.
        lead: by how much the logit of the likeliest is above that of the second.
    """

    log_likelihood: float
    top_id: int
    top_log_likelihood: float
    lead: float

    @property
    def behind(self) -> float:
        """By how much the logit of the token that stands there is below the likeliest's."""
        return self.top_log_likelihood - self.log_likelihood


@dataclass(frozen=True, slots=True, eq=False)
class RatedTree:
    """A rated `Tree`.

    Attributes:
        prompt: of each token but the first, which nothing stands before; the candidates are the
            fewest that cover `COVERED` of the probability, at most `MOST_CANDIDATES`.
        branches: for each branch an entry for each of its tokens.
    """

    prompt: Ratings
    branches: tuple[tuple[Position, ...], ...]


class Reference:
    """Rates texts by a canonical model.

    Args:
        model: its weights are read anew in each pass over them.
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
        rows, in_prompts, in_branches = _planned(trees)
        for tree in trees:
            for ids in (tree.prompt, *tree.branches):
                self._check(ids)
        hidden = self._layers(rows)
        prompts = self._output(hidden, in_prompts, MOST_CANDIDATES)
        branches = _positions(self._output(hidden, in_branches, 2))
        rated, first = [], 0
        for tree in trees:
            last = first + len(tree.prompt) - 1
            found = tuple(tuple(next(branches) for _ in branch) for branch in tree.branches)
            rated.append(RatedTree(_ratings(prompts, slice(first, last)), found))
            first = last
        return rated

    def rate_windows(self, windows: Sequence[Window]) -> Iterator[list[Ratings]]:
        """Rate the ends of windows, as many as memory allows in each pass over the weights.

        Returns:
            For each pass, when it is done, and in it for each window, the ratings of
            ``ids[start:]``; the candidates are the fewest that cover `WINDOW_COVERED` of
            the probability, at most `MOST_WINDOW_CANDIDATES`; where those cover less there are
            `WINDOW_DRAWS` samples of the others, which depend on nothing but weights and ids.

        Raises:
            ModelFormatError: the weights can't be read, or give numbers that are none.
            ValueError: a token id is outside of the vocabulary, or a window rates nothing.
        """
        for window in windows:
            self._check(window.ids)
            if not 1 <= window.start < len(window.ids):
                msg = f"of {len(window.ids)} tokens none can be rated from position {window.start}"
                raise ValueError(msg)
        return self._in_passes(windows)

    def _in_passes(self, windows: Sequence[Window]) -> Iterator[list[Ratings]]:
        most = tokens_a_pass(self._model.architecture, MOST_WINDOW_CANDIDATES + WINDOW_DRAWS)
        for part in passes([len(window.ids) for window in windows], most):
            rows, wanted, bounds = Rows(), list[Wanted](), [0]
            for window in windows[part]:
                # Nothing is asked of what would follow the last token.
                row = rows.add(window.ids[:-1]) + window.start - 1
                wanted += [
                    Wanted(row + at, each) for at, each in enumerate(window.ids[window.start :])
                ]
                bounds.append(len(wanted))
            hidden = self._layers(rows)
            found = self._output(hidden, wanted, MOST_WINDOW_CANDIDATES)
            chance = [chances(window.ids)[window.start :] for window in windows[part]]
            samples = self._draw(hidden, wanted, found, np.concatenate(chance))
            yield [_ratings(found, slice(first, last), samples) for first, last in pairwise(bounds)]

    def _check(self, ids: Sequence[int]) -> None:
        size = self._model.architecture.vocabulary_size
        for number in ids:
            if not 0 <= number < size:
                msg = f"token id {number} is outside of the vocabulary of {size}"
                raise ValueError(msg)

    def _layers(self, rows: Rows) -> Floats:
        """The last layer's output, normalised: (tokens, hidden)."""
        architecture, weights = self._model.architecture, self._model.weights
        epsilon = architecture.norm_epsilon
        values = self._embed(rows.ids)
        turn = rotation(architecture.rope, rows.positions)
        for layer in range(architecture.layers):
            self._progress(f"layer {layer + 1} of {architecture.layers}")
            prefix = f"model.layers.{layer}."
            scale = weights[f"{prefix}input_layernorm.weight"].read()
            normal = rms_norm(values, scale, epsilon)
            values += attention(architecture, weights, prefix, normal, turn, rows.spans)
            del normal
            scale = weights[f"{prefix}post_attention_layernorm.weight"].read()
            values += feed_forward(weights, prefix, rms_norm(values, scale, epsilon))
        self._require_finite(values)
        return rms_norm(values, weights["model.norm.weight"].read(), epsilon)

    def _embed(self, ids: Sequence[int]) -> Floats:
        tensor = self._model.weights["model.embed_tokens.weight"]
        known, places = np.unique(np.array(ids, dtype=np.int64), return_inverse=True)
        values = np.stack([tensor.read(number, number + 1)[0] for number in known.tolist()])
        embedded: Floats = values[places]
        return embedded

    def _output(self, hidden: Floats, wanted: Sequence[Wanted], keep: int) -> Likeliest:
        """The output layer, at the wanted rows of `_layers`' output."""
        found = likeliest(
            self._output_weight,
            hidden[[each.row for each in wanted]],
            np.array([each.named for each in wanted], dtype=np.int64),
            keep,
            lambda done, size: self._progress(f"output layer, token {done} of {size}"),
        )
        self._require_finite(found.named)
        return found

    def _draw(
        self,
        hidden: Floats,
        wanted: Sequence[Wanted],
        found: Likeliest,
        chance: NDArray[np.float64],
    ) -> Samples:
        """Samples of what `_output` did not find, at the same rows."""
        return draw(
            self._output_weight,
            hidden[[each.row for each in wanted]],
            found,
            chance,
            draws=WINDOW_DRAWS,
            covered=WINDOW_COVERED,
            progress=lambda done, size: self._progress(
                f"output layer anew, token {done} of {size}"
            ),
        )

    @property
    def _output_weight(self) -> Tensor:
        tied = self._model.architecture.tied_embeddings
        return self._model.weights["model.embed_tokens.weight" if tied else "lm_head.weight"]

    def _require_finite(self, values: NDArray[np.floating]) -> None:
        if not np.isfinite(values).all():
            msg = (
                f"the weights of {self._model.path} give values that are no finite numbers; "
                "the file is damaged, or was made by a tool that went wrong"
            )
            raise ModelFormatError(msg)


def _planned(trees: Sequence[Tree]) -> tuple[Rows, list[Wanted], list[Wanted]]:
    """All tokens of all trees, and what is wanted of prompts and of branches."""
    rows = Rows()
    in_prompts: list[Wanted] = []
    in_branches: list[Wanted] = []
    for tree in trees:
        count = len(tree.prompt)
        if not count:
            msg = "a prompt needs at least one token"
            raise ValueError(msg)
        start = rows.add(tree.prompt)
        in_prompts += [
            Wanted(start + before, named) for before, named in enumerate(tree.prompt[1:])
        ]
        for branch in tree.branches:
            if not branch:
                continue
            # Nothing is asked of what would follow the last token.
            first = rows.add(branch[:-1], count, (start, start + count))
            places = (start + count - 1, *range(first, first + len(branch) - 1))
            in_branches += [Wanted(*each) for each in zip(places, branch, strict=True)]
    return rows, in_prompts, in_branches


def _ratings(found: Likeliest, rows: slice, samples: Samples | None = None) -> Ratings:
    parts = found.ids[rows], found.log_likelihoods[rows], found.named[rows]
    if samples is None:
        return compact(*parts, COVERED)
    return compact(*parts, WINDOW_COVERED, (samples.ids[rows], samples.log_likelihoods[rows]))


def _positions(found: Likeliest) -> Iterator[Position]:
    for ids, logs, named in zip(found.ids, found.log_likelihoods, found.named, strict=True):
        yield Position(
            log_likelihood=float(named),
            top_id=int(ids[0]),
            top_log_likelihood=float(logs[0]),
            lead=float(logs[0] - logs[1]) if len(logs) > 1 else 0.0,
        )
