"""What was measured in this pytest session: each cell once, however many tests ask for it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from filelock import FileLock

from edgebench.harness.errors import EdgebenchError, OutputError
from edgebench.harness.execute import execute, new_run_folder
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.testing.picking import Picked, joined, only

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from edgebench.harness.results.run import Run
    from edgebench.testing.marker import Against, Asked
    from edgebench.testing.picking import Loaded

Key: TypeAlias = "tuple[Path, int | None, float | None, Against]"
"""What runs of one scenario may differ in."""

_LOCK = ".measuring.lock"


def key_of(asked: Asked, loaded: Loaded) -> Key:
    """What a test's run has in common with those that can serve it too."""
    return (loaded.path, asked.repetitions, asked.time_budget_s, asked.against)


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of this session.

    Attributes:
        picked: its cells.
        run: as it stands on disk.
        partner: the run that it was interleaved with; None where it was alone.
    """

    picked: Picked
    run: Run
    partner: Run | None = None


@dataclass(slots=True)
class Runs:
    """Runs scenarios, and remembers what came of it.

    Attributes:
        out: where the runs' folders go.
        command: how the session was started, for the runs' records.
        shared: a file by which the processes of one session tell each other what they measured;
            None where there is one process.
    """

    out: Path
    command: Sequence[str]
    shared: Path | None = None
    _finished: dict[Key, list[Measured]] = field(default_factory=dict)
    _failed: dict[tuple[Key, Picked], EdgebenchError] = field(default_factory=dict)
    _heard: int = 0

    def measured(
        self, asked: Asked, loaded: Loaded, picked: Picked, others: Collection[Picked]
    ) -> Measured:
        """The run that has these cells: one of this session, or a new one.

        Args:
            asked: how it is to be measured.
            loaded: the scenario.
            picked: what it must have.
            others: what other tests will ask for of a run that is measured alike.

        Raises:
            EdgebenchError: nothing could be run; the same again where that is known already.
        """
        key = key_of(asked, loaded)
        found = self._known(key, picked)
        if found is not None:
            return found
        if (key, picked) in self._failed:
            raise self._failed[key, picked]
        whole = joined(picked, others)
        # Two processes of one session, or two sessions, would measure each other.
        with lock(self.out):
            self._hear()
            found = self._known(key, picked)
            if found is not None:
                return found
            try:
                made = self._run(asked, loaded, whole)
            except EdgebenchError as error:
                self._failed |= {(key, each): error for each in (picked, *others)}
                raise
            self._finished.setdefault(key, []).append(made)
            self._tell(key, made)
        return made

    def _known(self, key: Key, picked: Picked) -> Measured | None:
        found = self._finished.get(key, [])
        return next((each for each in found if picked.cells <= each.picked.cells), None)

    def _tell(self, key: Key, made: Measured) -> None:
        """Let the session's other processes know of a run."""
        if self.shared is None:
            return
        path, *others = key
        line = {
            "key": [str(path), *others],
            "picked": [made.picked.variants, made.picked.workloads],
            "folders": [str(each.path) for each in (made.run, made.partner) if each is not None],
        }
        with self.shared.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._heard += 1

    def _hear(self) -> None:
        """Take over what the session's other processes measured."""
        if self.shared is None or not self.shared.exists():
            return
        lines = self.shared.read_text("utf-8").splitlines()
        for line in lines[self._heard :]:
            told = json.loads(line)
            path, repetitions, time_budget_s, against = told["key"]
            key = (Path(path), repetitions, time_budget_s, tuple(map(tuple, against)))
            variants, workloads = told["picked"]
            run, *partner = (read_run(folder) for folder in told["folders"])
            made = Measured(Picked(tuple(variants), tuple(workloads)), run, *partner)
            self._finished.setdefault(key, []).append(made)
        self._heard = len(lines)

    def _run(self, asked: Asked, loaded: Loaded, picked: Picked) -> Measured:
        scenario = only(loaded.scenario, picked, asked)
        folder = new_run_folder(self.out, scenario.name)
        settings = Settings(
            folder=folder,
            base=loaded.path.parent,
            scenario_path=loaded.path,
            pythons=loaded.pythons,
            command=self.command,
        )
        if asked.against:
            from edgebench.testing.against import run_against  # noqa: PLC0415 - seldom

            candidate, baseline = run_against(scenario, settings, asked.against)
            return Measured(picked, read_run(candidate), read_run(baseline))
        execute(scenario, settings)
        return Measured(picked, read_run(folder))


def lock(out: Path) -> FileLock:
    """Of what only one process may do at a time.

    Raises:
        OutputError: the folder can't be made.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        msg = f"{out} can't be made ({error.strerror or error})"
        raise OutputError(msg, remedy="Name another folder by --edgebench-out.") from error
    return FileLock(out / _LOCK)
