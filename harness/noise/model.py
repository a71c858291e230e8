"""The noise of a machine, as a run of the same thing on both sides shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgebench.harness.gate.policy import CONFIDENCE
from edgebench.harness.gate.wording import percent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.compare.model import Comparison
    from edgebench.harness.metrics.definitions import Better


@dataclass(frozen=True, slots=True)
class Noticed:
    """The smallest true worsening that is noticed in 95 % of cases, as a share of the baseline.

    Attributes:
        repetitions: on each side.
        interleaved: measured in the same blocks; None where so few can never be certain.
        separate: measured at different times; likewise.
    """

    repetitions: int
    interleaved: float | None
    separate: float | None


@dataclass(frozen=True, slots=True)
class Drift:
    """By how much the second half of a run was worse than the first, beyond its noise.

    Attributes:
        worsening: as a share of the first half; negative where it got better.
    """

    metric: str
    worsening: float


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one metric of one cell.

    Attributes:
        cell: ``VARIANT / WORKLOAD``.
        value: the median of all repetitions of both sides, in `unit`.
        pairs: how many blocks both sides have.
        per_block: repetitions in each of them.
        repetition_cv: standard deviation of one repetition / mean.
        pair_spread: standard deviation of the logarithm of a pair's ratio, robust.
        block_spread: the same of one block's value on one side.
        lag1: correlation of a block's value with the next block's; near 1 the machine's pace
            drifts, near 0 it does not. None of too few, or of values that are all alike.
        inflation: by how much the interval of separate runs is wider for that.
        ratio: of the sides; 1 but for noise.
        p_worse, p_better: as in `edgebench.harness.compare.model.Answer`.
        noticed: by repetitions.
        needed: repetitions in the same blocks at which the default policy's limit would be
            noticed; None where no number would do.
    """

    cell: str
    metric: str
    unit: str
    better: Better
    value: float
    pairs: int
    per_block: int
    repetition_cv: float | None
    pair_spread: float
    block_spread: float | None
    lag1: float | None
    inflation: float
    ratio: float
    p_worse: float
    p_better: float
    noticed: tuple[Noticed, ...]
    needed: int | None

    def certain(self, confidence: float) -> bool:
        """Whether a difference would be called certain, in which direction ever."""
        return min(self.p_worse, self.p_better) <= 1 - confidence


@dataclass(frozen=True, slots=True)
class Suggestion:
    """What to ask of a gate on this machine.

    Attributes:
        repetitions: of each cell, in the scenario.
        noise_floor: how much runs made at different times may differ by, as a share.
        limits: `worse_by` by metric, as a share, of runs in the same blocks.
        separate: the same of runs made at different times; metrics that are too noisy for any
            limit then are left out.
        hopeless: metrics of which not even the widest limit would be noticed in the same blocks.
    """

    repetitions: int
    noise_floor: float
    limits: Mapping[str, float]
    separate: Mapping[str, float]
    hopeless: tuple[str, ...]

    def policy(self, confidence: float = CONFIDENCE) -> str | None:
        """The YAML of a policy for runs in the same blocks, as `edgebench gate --policy` reads it.

        What it would be for separate runs stands beside it as comments. None where all metrics are
        too noisy for a limit: a policy without limits asks nothing.
        """
        if not self.limits:
            return None
        limits = {key: f"  {key}: {{worse_by: {percent(by)}}}" for key, by in self.limits.items()}
        wide = max(map(len, limits.values()))
        lines = [
            "schema_version: 1",
            f"confidence: {percent(confidence)}",
            f"noise_floor: {percent(self.noise_floor)}  # counts for separate runs only",
            f"{'limits:':<{wide}}  # for separate runs:",
            *(f"{line:<{wide}}  # {self._apart(key)}" for key, line in limits.items()),
            *(f"  # {key}: too noisy here for a limit" for key in self.hopeless),
        ]
        return "\n".join(lines) + "\n"

    def _apart(self, key: str) -> str:
        return percent(self.separate[key]) if key in self.separate else "too noisy"


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """All that a run of a thing against itself tells.

    Attributes:
        comparison: of the two sides, by the default policy's metrics, at its confidence.
        rows: by cell and metric; those that are sampled.
        alarms: rows in which a difference would have been called certain; by chance one such run
            in fifty has any at 99 %, as there are two directions.
        drifts: metrics whose pace changed from one half of the run to the other.
        suggestion: None where nothing was measured often enough.
    """

    comparison: Comparison
    rows: tuple[Noise, ...]
    alarms: tuple[Noise, ...]
    drifts: tuple[Drift, ...]
    suggestion: Suggestion | None
