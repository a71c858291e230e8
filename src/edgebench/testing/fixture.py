"""The fixture ``edgebench``: measures what a test is marked with, and judges it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from edgebench.harness.scenario.problems import one_line
from edgebench.testing.cells import Cell, Cells, refuse_failed, shown_properties
from edgebench.testing.judge import Judge
from edgebench.testing.marker import MARKER, changed, read_marks
from edgebench.testing.picking import pick
from edgebench.testing.runs import Runs, key_of
from edgebench.testing.session import Session, failing

if TYPE_CHECKING:
    from os import PathLike

    from edgebench.harness.compare.model import Comparison
    from edgebench.harness.gate.model import Gate
    from edgebench.harness.gate.policy import Policy
    from edgebench.testing.marker import Asked, Share

SHARED = "edgebench-runs.jsonl"

SESSION = pytest.StashKey[Session]()


def make_fixture(request: pytest.FixtureRequest) -> Edgebench:
    """The fixture of one test; an error of the test's marker is the test's."""
    config = request.config
    if SESSION not in config.stash:
        config.stash[SESSION] = Session(config, _runs(request))
    item = request.node
    assert isinstance(item, pytest.Item)
    with failing():
        asked = read_marks(item.iter_markers(MARKER))
        loaded = config.stash[SESSION].load(asked, item)
        pick(asked, loaded.scenario)
    return Edgebench(config.stash[SESSION], item, asked)


def _runs(request: pytest.FixtureRequest) -> Runs:
    config = request.config
    out = config.getoption("edgebench_out")
    base = config.invocation_params.dir if out else config.rootpath
    shared = None
    if hasattr(config, "workerinput"):
        # All of xdist's processes have a folder of their own in one that they share.
        shared = request.getfixturevalue("tmp_path_factory").getbasetemp().parent / SHARED
    return Runs(
        base / str(out or config.getini("edgebench_out")),
        ["pytest", *map(str, config.invocation_params.args)],
        shared,
    )


class Edgebench:
    """What a test marked with ``edgebench`` measures and asserts by."""

    def __init__(self, session: Session, item: pytest.Item, asked: Asked) -> None:
        self._session = session
        self._item = item
        self._asked = asked

    def run(self, **changes: object) -> Cell:
        """Measure the marked cell, or take it from a run of this session that has it.

        Args:
            changes: arguments of the marker in place of its own, such as ``repetitions=20``.

        Returns:
            The cell, with all repetitions made. One that failed fails the test.
        """
        cells = self.run_all(**changes)
        if len(cells) > 1:
            names = "".join(f"\n  {one_line(each.name)}" for each in cells)
            pytest.fail(
                f"the patterns pick {len(cells)} cells, and run() measures one; run_all() gives "
                f"all of them:{names}",
                pytrace=False,
            )
        (cell,) = cells
        refuse_failed(cell)
        return cell

    def run_all(self, **changes: object) -> Cells:
        """The same of all cells that the patterns pick, those that failed included."""
        with failing():
            asked = changed(self._asked, changes)
            loaded = self._session.load(asked, self._item)
            picked = pick(asked, loaded.scenario)
            others = self._session.others(key_of(asked, loaded), self._item.session)
            measured = self._session.runs.measured(asked, loaded, picked, others)
        judge = Judge(self._session, self._item, asked, measured)
        cells = tuple(
            Cell(record, measured.run.path, judge)
            for record in measured.run.record.cells
            if (record.variant, record.workload) in picked.cells
        )
        for cell in cells:
            for entry in shown_properties(cell):
                if entry not in self._item.user_properties:
                    self._item.user_properties.append(entry)
        return Cells(cells, judge)

    def compare(self) -> Comparison:
        """Compare all that the marker picks with its baseline; see `assert_not_worse`."""
        return self.run_all().compare()

    def assert_not_worse(
        self,
        *metrics: str,
        worse_by: Share | None = None,
        confidence: Share | None = None,
        policy: Policy | str | PathLike[str] | None = None,
    ) -> Gate | None:
        """Fail the test if anything that the marker picks is certainly worse; see `Cell`."""
        return self.run_all().assert_not_worse(
            *metrics, worse_by=worse_by, confidence=confidence, policy=policy
        )
