"""The reference of one text: what it rated so far, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.quality.figures import bits_per_byte, perplexity
from edgebench.harness.results.quality import QualityReference, WindowRecord
from edgebench.models.errors import ModelFormatError

if TYPE_CHECKING:
    from edgebench.harness.quality.plan import QualityTask
    from edgebench.harness.quality.reference import CachedReference
    from edgebench.models.ratings import Ratings

NOT_NEEDED = "the scenario asks for no metric that needs a reference"


class Exact:
    """The reference's way through a text's windows.

    Args:
        task: the text.
        source: what rates; None where no metric needs it.

    Attributes:
        reason: why there is none; empty while there is.
        vocabulary_size: of the source, once a window was taken.
    """

    def __init__(self, task: QualityTask, source: CachedReference | None) -> None:
        self.reason = "" if source is not None else NOT_NEEDED
        self._task = task
        self._source = source
        self._ratings: list[Ratings] = []
        self.vocabulary_size = 0

    @property
    def lacks(self) -> str:
        """Why there is none although one was needed; else empty."""
        return "" if self.reason == NOT_NEEDED else self.reason

    def take(self, windows: int) -> None:
        """Have the first `windows` windows rated; a source that can't be is told in `reason`."""
        source = self._source
        if source is None:
            return
        try:
            missing = self._task.windows[len(self._ratings) : windows]
            self._ratings += source.rate(missing) if missing else []
            self.vocabulary_size = source.vocabulary_size
        except ModelFormatError as error:
            self._source, self._ratings = None, []
            self.reason = f"there is no reference: {error}"

    def of(self, place: int) -> Ratings | None:
        """The ratings of one window that was taken; None without a reference."""
        return None if self.reason else self._ratings[place]

    def costs_s(self, planned: int) -> tuple[float, float]:
        """What one more pass costs by itself, and each window in it; 0 where all are kept."""
        source = self._source
        if source is None or not source.missing(self._task.windows[1:planned]):
            return 0.0, 0.0
        return source.reading_s, source.seconds_a_window

    @property
    def windows(self) -> list[WindowRecord] | None:
        """What its ratings sum up to; None without a reference."""
        if self.reason:
            return None
        return [
            WindowRecord(
                tokens=len(each), bytes=size, log_likelihood=float(each.log_likelihoods.sum())
            )
            for each, size in zip(self._ratings, self._task.scored_bytes, strict=False)
        ]

    def record(self, count: int) -> QualityReference | None:
        """It, over the first `count` windows, as results keep it."""
        source, ratings, windows = self._source, self._ratings[:count], self.windows
        if source is None or not windows or not ratings:
            return None
        windows = windows[:count]
        positions = sum(len(each) for each in ratings)
        return QualityReference(
            name=source.name,
            sha256=source.sha256,
            lossy_types=list(source.lossy_types),
            perplexity=perplexity(windows),
            bits_per_byte=bits_per_byte(windows),
            windows=windows,
            candidates=sum(len(each.ids) for each in ratings) / positions,
            covered=sum(float(each.covered.sum()) for each in ratings) / positions,
            stored_bytes=sum(each.nbytes for each in ratings),
            cached_windows=min(source.cached, count),
            duration_s=source.duration_s,
        )
