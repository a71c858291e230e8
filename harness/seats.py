"""Who is measured beside whom: the variants of a run, or of two that are interleaved."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.execution import Execution
    from edgebench.harness.measure import Task
    from edgebench.harness.prepared import PreparedVariant
    from edgebench.harness.prompts import Prompt, TaskText


@dataclass(frozen=True, slots=True)
class Seat:
    """A variant of one of the runs."""

    run: Execution
    item: PreparedVariant

    @property
    def name(self) -> str:
        """The variant's, in its run."""
        return self.item.variant.id

    def workloads(self) -> list[Prompt | TaskText]:
        """What it is measured on: the prompts, and those tasks that it can run."""
        if self.item.failure is not None:
            return []
        prepared = self.run.prepared
        able = [task for task in prepared.tasks if task.task in self.item.tasks]
        return [*(each for each in prepared.prompts if each.sustained_s is None), *able]

    def stretches(self) -> list[Prompt]:
        """Sustained work that it still has to do."""
        if self.item.failure is not None:
            return []
        tally = self.run.tally
        return [
            prompt
            for prompt in self.run.prepared.prompts
            if prompt.sustained_s is not None
            and not tally.measured(self.name, prompt.workload)
            and not tally.is_lost(self.name, prompt.workload)
        ]


@dataclass(frozen=True, slots=True)
class Place:
    """What takes one place in a block: a variant, or the two sides of one that are a pair."""

    seats: tuple[Seat, ...]

    def beside(self, seat: Seat) -> Seat | None:
        """The other side of a pair; None where there is none."""
        return next((each for each in self.seats if each is not seat), None)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one seat does in the next block."""

    seat: Seat
    tasks: list[Task]


def places(runs: Sequence[Execution]) -> list[Place]:
    """The variants of one run, each in a place of its own; of two, those that match side by side.

    Args:
        runs: one, or the baseline and the candidate.
    """
    seats = [[Seat(run, item) for item in run.prepared.variants] for run in runs]
    if len(seats) == 1:
        return [Place((seat,)) for seat in seats[0]]
    return seat_pairs(*seats)


def seat_pairs(baseline: Sequence[Seat], candidate: Sequence[Seat]) -> list[Place]:
    """Which variants of two runs are measured side by side, in the order of the candidate.

    Those of the same name; of the others, which an option that differs names differently, the
    first of a runner with the first of it, and so on. What has nobody beside it comes last.
    """
    free = list(baseline)
    beside: dict[int, Seat] = {}
    for same in (_same_name, _same_runner):
        for position, seat in enumerate(candidate):
            found = next((other for other in free if same(seat, other)), None)
            if position not in beside and found is not None:
                beside[position] = found
                free.remove(found)
    paired = [
        Place((beside[position], seat) if position in beside else (seat,))
        for position, seat in enumerate(candidate)
    ]
    return [*paired, *(Place((seat,)) for seat in free)]


def _same_name(one: Seat, other: Seat) -> bool:
    return one.name == other.name


def _same_runner(one: Seat, other: Seat) -> bool:
    return one.item.variant.runner == other.item.variant.runner


def baseline_last(session: str, block: int, variant: str) -> bool:
    """Whether the baseline's side comes after the candidate's: a fair coin for each of them.

    The session's name is drawn for each run anew, and so are the coins: with those of the
    scenario's seed, every run of a scenario would favour the same side in the same blocks.
    """
    return random.Random(f"{session}-{block}-{variant}").random() < 1 / 2  # noqa: S311 - no secret
