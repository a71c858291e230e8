"""One variant's way through a text's windows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgebench.harness.quality.figures import quality_metrics
from edgebench.harness.records import utc_now
from edgebench.harness.results.measured import Measured
from edgebench.harness.results.quality import WITH_REFERENCE, WindowRecord
from edgebench.harness.results.trial import Trial
from edgebench.harness.variant_session import load, score
from edgebench.models.ratings import kl_divergences
from edgebench.runners.base import ScoreRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.quality.exact import Exact
    from edgebench.harness.quality.plan import QualityTask
    from edgebench.harness.results.measured import Failure
    from edgebench.harness.results.quality import QualityRecord
    from edgebench.harness.session import Session
    from edgebench.models.ratings import Ratings
    from edgebench.runners.base import LoadedModel, Scores

NO_BYTES = "the bytes of the text's tokens are not known"


class Rater:
    """Rates windows with one variant, and sums up.

    Args:
        item: a variant that can be started.
        task: the text.
        exact: the reference.
        timeout_s: for a load; a window gets more.

    Attributes:
        windows: what was rated, in order.
        load_s: what the last start took, from the process to the loaded model.
    """

    def __init__(
        self, item: PreparedVariant, task: QualityTask, exact: Exact, timeout_s: float
    ) -> None:
        self.item = item
        self.windows: list[WindowRecord] = []
        self.load_s = 0.0
        self._task = task
        self._exact = exact
        self._timeout_s = timeout_s
        self._model: LoadedModel | None = None
        self._divergences: list[NDArray[np.float64]] = []
        self._reasons: dict[str, str] = {}
        self._started_at = utc_now()
        can = item.description.capabilities if item.description is not None else None
        self.scores = can is not None and can.scoring
        self._rates_others = can is not None and can.top_k_logits

    @property
    def id(self) -> str:
        """The variant's."""
        return self.item.variant.id

    @property
    def window_s(self) -> float:
        """What a window takes, in seconds."""
        return self.windows[-1].duration_s if self.windows else 0.0

    @property
    def is_loaded(self) -> bool:
        """Whether it ever was."""
        return self._model is not None

    @property
    def trained_tokens(self) -> int | None:
        """The longest context that the model was trained for, where the framework tells it."""
        return self._model.trained_context_tokens if self._model else None

    def load(self, session: Session, begun: float) -> None:
        """Load the model in a new process.

        Args:
            session: an open one.
            begun: when its start began, by ``time.perf_counter()``.
        """
        self._model = load(
            session,
            self.item,
            self._task.context_tokens,
            self._timeout_s,
            prepared=self._model is None,
        )
        self.load_s = time.perf_counter() - begun

    def rate(self, session: Session) -> None:
        """Rate the next window."""
        assert self._model is not None
        place, wanted = len(self.windows), self._task.record.metrics
        ratings = self._comparable(place)
        asks = self._rates_others and "kl_divergence" in wanted
        window = self._task.windows[place]
        candidates = ratings.candidate_lists() if ratings is not None and asks else []
        request = ScoreRequest(list(window.ids), window.start, candidates)
        begun = time.perf_counter()
        scores = score(session, request, self._model, self._timeout_s)
        took = time.perf_counter() - begun
        divergence = top1 = None
        if ratings is not None:
            divergence, top1 = self._compared(ratings, scores)
        if divergence is not None:
            self._divergences.append(divergence)
        self.windows.append(
            WindowRecord(
                tokens=len(scores.log_likelihoods),
                bytes=self._task.scored_bytes[place],
                log_likelihood=float(np.sum(scores.log_likelihoods)),
                kl_divergence=None if divergence is None else float(divergence.sum()),
                top1=top1 if "top1_agreement" in wanted else None,
                duration_s=took,
            )
        )

    def _comparable(self, place: int) -> Ratings | None:
        """The reference's ratings of a window, where they are wanted and can be compared."""
        ratings = self._exact.of(place)
        if ratings is None or not any(each in WITH_REFERENCE for each in self._task.record.metrics):
            return None
        assert self._model is not None
        ours, theirs = self._model.vocabulary_size, self._exact.vocabulary_size
        if ours != theirs:
            why = f"its vocabulary has {ours} tokens and the reference's {theirs}"
            self._reasons |= dict.fromkeys(WITH_REFERENCE, why)
            return None
        return ratings

    def _compared(
        self, ratings: Ratings, scores: Scores
    ) -> tuple[NDArray[np.float64] | None, int | None]:
        """KL divergence at each position, and how many likeliest tokens are the reference's."""
        divergence = top1 = None
        if scores.candidates is not None:
            divergence = kl_divergences(ratings, scores.candidates)
        else:
            why = "the framework tells the likelihoods of the text's own tokens only"
            self._reasons |= dict.fromkeys(("kl_divergence", "kl_divergence_p99"), why)
        if scores.top_ids is not None:
            top1 = int((ratings.top_ids == np.array(scores.top_ids)).sum())
        else:
            self._reasons["top1_agreement"] = "the framework does not tell its likeliest token"
        return divergence, top1

    def trial(self, count: int) -> Trial:
        """What its first `count` windows gave."""
        windows = self.windows[:count]
        return self._trial(windows, "ok").model_copy(
            update={
                **self._told(),
                "metrics": self._metrics(count),
                "windows": windows,
            }
        )

    def _told(self) -> dict[str, object]:
        """What the framework said when it loaded the model."""
        assert self._model is not None
        model = self._model
        return {
            "effective_options": model.effective_options,
            "parameters": model.parameters,
            "weight_bytes_per_token": model.weight_bytes_per_token,
            "engine": model.engine,
            "engine_version": model.engine_version,
        }

    def failed(self, failure: Failure) -> Trial:
        """How it failed."""
        told = self._told() if self._model else {}
        return self._trial(self.windows, "failed").model_copy(update={**told, "failure": failure})

    def _trial(self, windows: Sequence[WindowRecord], status: Literal["ok", "failed"]) -> Trial:
        return Trial(
            kind="quality",
            variant=self.id,
            workload=self._task.workload,
            block=0,
            repetition=0,
            phase="measured",
            status=status,
            started_at=self._started_at,
            duration_s=sum(each.duration_s for each in windows),
        )

    def _metrics(self, count: int) -> dict[str, Measured]:
        reasons = {"bits_per_byte": NO_BYTES} | self._reasons
        if self._exact.reason:
            reasons |= dict.fromkeys((*WITH_REFERENCE, "perplexity_ratio"), self._exact.reason)
        known = self._divergences[:count]
        metrics = quality_metrics(
            self.windows[:count],
            self._exact.windows,
            reasons,
            np.concatenate(known) if known and len(known) == count else None,
            sum(len(each.ids) for each in self._task.windows[:count]),
        )
        return metrics | {
            name: Measured.missing(metrics[name].unit, why, "derived")
            for name, why in _unasked(self._task.record).items()
        }


def _unasked(record: QualityRecord) -> dict[str, str]:
    """Why metrics that the scenario leaves out are null."""
    wanted: set[str] = set(record.metrics)
    if "perplexity" in wanted:
        wanted.add("perplexity_ratio")
    if "kl_divergence" in wanted:
        wanted.add("kl_divergence_p99")
    return {
        name: f"the scenario does not ask for {name.removesuffix('_p99').removesuffix('_ratio')}"
        for name in ("perplexity", "perplexity_ratio", "bits_per_byte", *sorted(WITH_REFERENCE))
        if name not in wanted
    }
