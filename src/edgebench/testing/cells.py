"""What a test gets of what it measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest

from edgebench.harness.gate.policy import DEFAULT_LIMITS
from edgebench.harness.scenario.problems import unknown
from edgebench.reports.text import one_line, tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from os import PathLike
    from pathlib import Path

    from edgebench.harness.compare.model import Comparison
    from edgebench.harness.gate.model import Gate
    from edgebench.harness.gate.policy import Policy
    from edgebench.harness.results.cell import Cell as Record
    from edgebench.harness.results.cell import Flag, Summary
    from edgebench.harness.results.measured import Failure
    from edgebench.testing.marker import Share

_LOG_LINES = 12


class Judge(Protocol):
    """Holds cells of one run against their baseline."""

    def compare(self, cells: Sequence[Cell]) -> Comparison:
        """Compare them in everything that both sides know."""

    def hold(
        self,
        cells: Sequence[Cell],
        metrics: Sequence[str],
        *,
        worse_by: Share | None,
        confidence: Share | None,
        policy: Policy | str | PathLike[str] | None,
    ) -> Gate | None:
        """Fail the test where a limit is broken."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A variant on a workload, measured.

    Attributes:
        run_dir: the run's folder, with every sample in it.
    """

    record: Record
    run_dir: Path
    _judge: Judge

    @property
    def variant(self) -> str:
        """The variant's name, as the scenario makes it."""
        return self.record.variant

    @property
    def workload(self) -> str:
        """The workload's name."""
        return self.record.workload

    @property
    def name(self) -> str:
        """``VARIANT / WORKLOAD``."""
        return f"{self.variant} / {self.workload}"

    @property
    def metrics(self) -> Mapping[str, Summary]:
        """By key: median, 95 % interval, number of samples; a null median has its reason."""
        return self.record.metrics

    @property
    def n(self) -> int:
        """Measured repetitions that succeeded."""
        return self.record.n

    @property
    def flags(self) -> Sequence[Flag]:
        """What to think of it, such as ``noisy``."""
        return self.record.flags

    def median(self, metric: str) -> float:
        """A metric's median, in the unit that docs/metrics.md names.

        Without one the test fails, and says why there is none.
        """
        found = self.metrics.get(metric)
        if found is not None and found.median is not None:
            return found.median
        if found is None:
            why = unknown(f"it has no metric {metric!r}", metric, self.metrics)
        else:
            why = f"no {metric}: {found.reason}"
        pytest.fail(one_line(f"{self.name}: {why}"), pytrace=False)

    def compare(self) -> Comparison:
        """Compare it with its baseline in everything that both know."""
        return self._judge.compare([self])

    def assert_not_worse(
        self,
        *metrics: str,
        worse_by: Share | None = None,
        confidence: Share | None = None,
        policy: Policy | str | PathLike[str] | None = None,
    ) -> Gate | None:
        """Fail the test if it is certainly worse than its baseline, by as much as is not borne.

        Args:
            metrics: keys, such as ``decode_rate``; none for those that the policy limits.
            worse_by: the least worsening that fails, as a share of the baseline ("5%", 0.05);
                else the marker's, else the policy's.
            confidence: how certain that must be; else the marker's, else the policy's.
            policy: a policy's file, or a policy; else the marker's, else the default policy.

        Returns:
            The gate's outcome; None where baselines are saved and nothing is compared.
        """
        return self._judge.hold(
            [self], metrics, worse_by=worse_by, confidence=confidence, policy=policy
        )


@dataclass(frozen=True, slots=True)
class Cells:
    """Several cells of one run; failed ones are among them."""

    cells: tuple[Cell, ...]
    _judge: Judge

    def __iter__(self) -> Iterator[Cell]:
        return iter(self.cells)

    def __len__(self) -> int:
        return len(self.cells)

    def compare(self) -> Comparison:
        """Compare them with their baseline in everything that both know."""
        return self._judge.compare(self.cells)

    def assert_not_worse(
        self,
        *metrics: str,
        worse_by: Share | None = None,
        confidence: Share | None = None,
        policy: Policy | str | PathLike[str] | None = None,
    ) -> Gate | None:
        """The same as of one cell, with one confidence for all of them together."""
        return self._judge.hold(
            self.cells, metrics, worse_by=worse_by, confidence=confidence, policy=policy
        )


def refuse_failed(cell: Cell) -> None:
    """Fail the test where the cell has no result, or ended before all repetitions were made."""
    if cell.record.status == "ok":
        return
    made = f"failed after {cell.n} repetitions" if cell.n else "has no result"
    failure = cell.record.failure
    why = f": {_told(failure)}" if failure else ": nothing of it was run"
    lines = [one_line(f"{cell.name} {made}{why}")]
    if failure and failure.log_tail.strip():
        lines += ["The end of its log:", tail(failure.log_tail, lines=_LOG_LINES)]
    lines.append(f"The run is in {cell.run_dir}")
    pytest.fail("\n".join(lines), pytrace=False)


def _told(failure: Failure) -> str:
    signal = f" ({failure.signal})" if failure.signal else ""
    return f"{failure.kind}{signal}: {failure.message}"


def shown_properties(cell: Cell) -> Iterator[tuple[str, str]]:
    """The figures of a cell that go into the JUnit file of a session."""
    for key in DEFAULT_LIMITS:
        summary = cell.metrics.get(key)
        if summary is not None and summary.median is not None:
            unit = "" if summary.unit == "1" else f" {summary.unit}"
            yield one_line(f"edgebench: {cell.name}: {key}"), f"{summary.median:.6g}{unit}"
