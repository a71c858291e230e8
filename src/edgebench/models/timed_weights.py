"""Weights that tell how long reading them takes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from edgebench.models.weights import Floats, Tensor, Weights


class TimedWeights(Mapping[str, "Tensor"]):
    """Gives the same tensors.

    Args:
        weights: what is read.

    Attributes:
        seconds: that reading took so far.
    """

    def __init__(self, weights: Weights) -> None:
        self.seconds = 0.0
        self._weights = weights

    def __getitem__(self, name: str) -> Tensor:
        return _Timed(self._weights[name], self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


@dataclass(frozen=True, slots=True)
class _Timed:
    tensor: Tensor
    clock: TimedWeights

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of its axes."""
        return self.tensor.shape

    @property
    def stored_as(self) -> str:
        """The type that its source keeps it in."""
        return self.tensor.stored_as

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries ``[start:stop]`` of the first axis."""
        begun = time.perf_counter()
        try:
            return self.tensor.read(start, stop)
        finally:
            self.clock.seconds += time.perf_counter() - begun
