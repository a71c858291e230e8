"""The reference's ratings of windows, each made once and kept in the store."""

from __future__ import annotations

import hashlib
import time
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.errors import StoreError
from edgebench.harness.steps import Seldom
from edgebench.harness.store.references import SUFFIX
from edgebench.models.canonical import open_model
from edgebench.models.ratings import Ratings
from edgebench.models.reference import Reference
from edgebench.models.timed_weights import TimedWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from edgebench.harness.store.store import ModelStore, StoredFile
    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.reference import Window

REFERENCE_VERSION = 2
"""To be raised where the same weights and window give other ratings than before."""

PACE = "seconds_a_token"
"""The file that says how long ratings took, for the plan of a run that has yet to make some."""


class CachedReference:
    """Rates windows by a source's weights, in float32 by numpy, unless the store has the ratings.

    Args:
        source: a GGUF file or a Hugging Face folder; opened when it is first needed.
        store: what keeps the ratings.
        progress: told of the steps of rating, seldom, in a few words.

    Attributes:
        cached: windows whose ratings were read from the store.
        computed: windows that were rated.
        duration_s: what rating those took.
    """

    def __init__(
        self, source: StoredFile, store: ModelStore, progress: Callable[[str], None]
    ) -> None:
        self.cached = 0
        self.computed = 0
        self.duration_s = 0.0
        self._source = source
        self._kept = store.kept_reference(source.sha256, REFERENCE_VERSION)
        self._progress = progress
        self._tokens = 0
        self._passes = 0
        self._weights = TimedWeights({})
        self._asked: list[int] = []
        self._keeps = True

    @property
    def name(self) -> str:
        """The source's file or folder."""
        return self._source.name

    @property
    def sha256(self) -> str:
        """The source's."""
        return self._source.sha256

    @property
    def lossy_types(self) -> tuple[str, ...]:
        """The quantised types that the source keeps weights in, most weights first.

        Raises:
            ModelFormatError: see `rate`.
        """
        return self._model.lossy_types

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the model has.

        Raises:
            ModelFormatError: see `rate`.
        """
        return self._model.architecture.vocabulary_size

    @property
    def seconds_a_window(self) -> float:
        """About what a window that is not in the store takes beside reading the weights.

        0 where none was ever rated.
        """
        if not self._asked:
            return 0.0
        return (self._pace or self._known_pace()) * sum(self._asked) / len(self._asked)

    @property
    def reading_s(self) -> float:
        """What reading all weights once takes, which one pass over many windows does once."""
        return self._weights.seconds / max(1, self._passes)

    @property
    def _pace(self) -> float:
        """Seconds a token, without reading the weights."""
        if not self._tokens:
            return 0.0
        return max(0.0, self.duration_s - self._weights.seconds) / self._tokens

    def missing(self, windows: Sequence[Window]) -> int:
        """How many of some windows would have to be rated; damaged ratings count as there."""
        return sum(not self._kept.path(_name(window)).is_file() for window in windows)

    def rate(self, windows: Sequence[Window]) -> list[Ratings]:
        """The ratings of ``ids[start:]`` of each window.

        What has to be rated is in the store as soon as a pass over the weights is done; other
        processes may do the same meanwhile. A store that can't be written to is told of, once.

        Raises:
            ModelFormatError: the source can't be read, holds something that is not understood
                (`UnsupportedModelError`), or gives numbers that are none.
            ValueError: a token id is outside of the vocabulary, or a window rates nothing.
        """
        model = self._model  # its errors come first, whatever is in the store
        self._asked += [len(window.ids) for window in windows]
        names = [_name(window) for window in windows]
        found = {}
        missing = {}
        for name, window in zip(names, windows, strict=True):
            ratings = self._read(name, window)
            if ratings is None:
                missing[name] = window
            else:
                found[name] = ratings
                self.cached += 1
        self._kept.used()
        begun = time.monotonic()
        left = list(missing)
        reference = Reference(model, Seldom(self._progress))
        for made in reference.rate_windows(list(missing.values())):
            done, left = left[: len(made)], left[len(made) :]
            found.update(zip(done, made, strict=True))
            self.computed += len(made)
            self._passes += 1
            self._tokens += sum(len(missing[name].ids) for name in done)
            self.duration_s += time.monotonic() - begun
            self._keep(dict(zip(done, made, strict=True)))
            begun = time.monotonic()
        return [found[name] for name in names]

    @cached_property
    def _model(self) -> CanonicalModel:
        model = open_model(self._source.path)
        self._weights = TimedWeights(model.weights)
        return replace(model, weights=self._weights)

    def _read(self, name: str, window: Window) -> Ratings | None:
        """What the store has, if it can be of this window."""
        with suppress(OSError, ValueError):  # there is none, or a damaged one
            ratings = Ratings.load(self._kept.path(name))
            if len(ratings) == len(window.ids) - window.start and (
                ratings.ids.max(initial=0) < self.vocabulary_size
            ):
                return ratings
        return None

    def _keep(self, made: dict[str, Ratings]) -> None:
        files: dict[str, Callable[[Path], None]] = {
            name: ratings.save for name, ratings in made.items()
        }
        files[PACE] = self._write_pace
        try:
            if self._keeps:
                self._kept.keep(files)
        except StoreError as error:
            self._keeps = False
            self._progress(f"its ratings can't be kept for the next time: {error.message}")

    def _write_pace(self, path: Path) -> None:
        path.write_text(f"{self._pace:.6g}\n", encoding="ascii")

    def _known_pace(self) -> float:
        """Seconds a token when ratings were last made, or 0."""
        with suppress(OSError, ValueError):
            known = float(self._kept.path(PACE).read_text(encoding="ascii"))
            return known if 0 < known < float("inf") else 0.0
        return 0.0


def _name(window: Window) -> str:
    """A file name for a window's ratings: all that they depend on but the weights."""
    digest = hashlib.sha256(f"{window.start}:".encode())
    digest.update(np.array(window.ids, dtype="<u4").tobytes())
    return digest.hexdigest() + SUFFIX
