"""Holds what a test measured against its baseline."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.compare.compare import compare
from edgebench.harness.compare.matching import match
from edgebench.harness.compare.run_side import side_of_run
from edgebench.harness.errors import BaselineError, NotComparableError, UsageError
from edgebench.harness.gate.evaluate import evaluate
from edgebench.harness.gate.policy import Policy
from edgebench.harness.gate.wording import TOO_NOISY, USELESS, about
from edgebench.harness.scenario.problems import one_line
from edgebench.testing.baselines import (
    HOW_TO_SAVE,
    NoBaselineError,
    baseline_side,
    place,
    save_cells,
)
from edgebench.testing.cells import refuse_failed
from edgebench.testing.limits import narrowed, read_policy
from edgebench.testing.marker import MARKER
from edgebench.testing.runs import lock
from edgebench.testing.session import failing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from pathlib import Path

    from edgebench.harness.compare.model import Comparison, Matched, Side
    from edgebench.harness.gate.model import Check, Gate
    from edgebench.testing.cells import Cell
    from edgebench.testing.marker import Asked, Share
    from edgebench.testing.runs import Measured
    from edgebench.testing.session import Session

INTENDED = f"If that is how it is to be measured from now on: {HOW_TO_SAVE}"

OWN = "the test's own limits"


@dataclass(frozen=True, slots=True)
class Judge:
    """Holds cells of one run against their baseline, for one test."""

    session: Session
    item: pytest.Item
    asked: Asked
    measured: Measured

    def compare(self, cells: Sequence[Cell]) -> Comparison:
        """Compare them in everything that both sides know."""
        if self._saves():
            with failing():
                self._save(cells)
            pytest.skip("a baseline is being saved, and nothing compared (--edgebench-save)")
        with failing():
            return compare(self._matched(cells))

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
        with failing():
            given, name = self._policy(policy)
            share = self.asked.worse_by if worse_by is None else worse_by
            certain = self.asked.confidence if confidence is None else confidence
            own = narrowed(given, name, metrics, share, certain)
            if self._saves():
                self._save(cells)
                return None
            today = dt.datetime.now(tz=dt.UTC).date()
            gate = evaluate(
                self._matched(cells), own, today=today, policy_name=name if share is None else OWN
            )
            refuse_unchecked(gate, metrics, cells)
        for check in gate.checks:
            self._tell(f"{check.status}: {check.cell}: {check.message}{_noticed(check)}")
        if gate.outcome != "passed":
            from edgebench.reports.comparing.gate_terminal import gate_text  # noqa: PLC0415 - seldom

            text = gate_text(gate)
            pytest.fail(f"{text.rstrip()}\n\nThe run is in {self._where()}", pytrace=False)
        return gate

    def _policy(self, given: Policy | str | PathLike[str] | None) -> tuple[Policy, str]:
        if isinstance(given, Policy):
            return given, "the test's policy"
        named = self.asked.policy if given is None else given
        return read_policy(None if named is None else place(str(named), self._folders()))

    def _matched(self, cells: Sequence[Cell]) -> Matched:
        """The cells with those of the baseline, and nothing else of either side."""
        candidate = replace(side_of_run(self.measured.run), label=str(self._where()))
        if self.measured.partner is not None:
            partner = self.measured.partner
            baseline = replace(side_of_run(partner), label=str(self._relative(partner.path)))
        else:
            baseline = self._baseline(candidate)
        try:
            matched = match(baseline, candidate)
        except NotComparableError as error:
            if self.measured.partner is not None:
                raise
            remedy = "\n".join(filter(None, (error.remedy, INTENDED)))
            raise NotComparableError(error.message, remedy=remedy) from error
        keys = {(cell.variant, cell.workload) for cell in cells}
        missing = [each for each in matched.added if each.key in keys]
        if missing:
            names = "".join(f"\n  {one_line(' / '.join(each.key))}" for each in missing)
            msg = f"The baseline {one_line(baseline.label)} has nothing of{names}"
            raise BaselineError(msg, remedy=HOW_TO_SAVE)
        pairs = tuple(each for each in matched.pairs if each.candidate.key in keys)
        return replace(matched, pairs=pairs, vanished=(), added=())

    def _baseline(self, candidate: Side) -> Side:
        run = candidate.runs[-1]
        where = self._place()
        try:
            return baseline_side(where, run.scenario_name, run.machine.fingerprint)
        except NoBaselineError as error:
            save = f"edgebench baseline save {self._where()} --dir {self._relative(where)}"
            remedy = f"`{save}` saves what was measured now.\n{HOW_TO_SAVE}"
            raise NoBaselineError(error.message, remedy=remedy) from error

    def _saves(self) -> bool:
        return bool(self.session.config.getoption("edgebench_save"))

    def _save(self, cells: Sequence[Cell]) -> None:
        if self.measured.partner is not None:
            self._tell("not saved: it was compared with what it was interleaved with")
            return
        for cell in cells:
            refuse_failed(cell)
        side = side_of_run(self.measured.run)
        keys = [(cell.variant, cell.workload) for cell in cells]
        with lock(self.session.runs.out):
            path = save_cells(self._place(), side.runs[-1].scenario_name, side, keys)
        names = ", ".join(cell.name for cell in cells)
        self._tell(f"saved: {names}: in {self._relative(path)}")

    def _place(self) -> Path:
        """Where the baseline is, or is to be."""
        config = self.session.config
        if named := config.getoption("edgebench_baseline"):
            return config.invocation_params.dir / str(named)
        if self.asked.baseline is None:
            return config.rootpath / str(config.getini("edgebench_baseline"))
        return place(self.asked.baseline, self._folders())

    def _folders(self) -> list[Path]:
        return [self.item.path.parent, self.session.config.rootpath]

    def _tell(self, sentence: str) -> None:
        """Into the JUnit file, and the terminal's summary."""
        self.item.user_properties.append((MARKER, one_line(sentence)))

    def _where(self) -> Path:
        return self._relative(self.measured.run.path)

    def _relative(self, path: Path) -> Path:
        here = self.session.config.invocation_params.dir
        return path.relative_to(here) if path.is_relative_to(here) else path


def refuse_unchecked(gate: Gate, metrics: Sequence[str], cells: Sequence[Cell]) -> None:
    """Raise where a metric that a test names was held against nothing: that would always pass.

    Raises:
        UsageError: neither side has a value of it, or of anything that is limited.
    """
    checked = {check.metric for check in gate.checks}
    if "" in checked:
        return  # a cell that failed has no metrics, and is told already
    for key in metrics or ["*"]:
        if not any(fnmatchcase(each, key) for each in checked):
            what = f"{one_line(key)!r}" if metrics else f"anything that {gate.policy} limits"
            names = ", ".join(one_line(cell.name) for cell in cells)
            summary = cells[0].metrics.get(key)
            why = f": {one_line(summary.reason)}" if summary and summary.reason else ""
            msg = f"nothing was checked: neither side has a value of {what}{why}"
            raise UsageError(msg, remedy=f"It was asked of {names}.")


def _noticed(check: Check) -> str:
    """How small a change would have been noticed; what is undecided says so itself."""
    noticeable = check.compared.answer.noticeable if check.compared else None
    if check.status != "pass" or noticeable is None:
        return ""
    if noticeable >= USELESS:
        return f", and the samples are {TOO_NOISY}"
    return f", and a worsening of {about(noticeable)} would have been noticed"
