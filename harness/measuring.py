"""The measuring of a run, or of two that are interleaved: blocks in random order, until settled.

A block holds every variant that needs more repetitions, each in a process of its own, shuffled.
Where two runs are interleaved, the two sides of a variant follow each other directly, and which
of them comes first is decided by a fair coin, in each block and for each variant anew. If the
sides do not differ, exchanging them within a block therefore changes nothing, whatever the machine
does meanwhile: on this the statistics of pairs rest (docs/decisions/0020-interleaved-runs.md).

Sustained work comes last of all, once for each cell, since it heats the device for what comes after
it (docs/decisions/0024-sustained-work.md).
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING

from edgebench.devices.reading import Reading
from edgebench.harness.cooldown import Cooldown
from edgebench.harness.errors import RunnerError
from edgebench.harness.measure import Bench, Task
from edgebench.harness.observer import Outlook
from edgebench.harness.prompts import TaskText
from edgebench.harness.results.summary import is_settled
from edgebench.harness.seats import Place, Seat, Turn, baseline_last, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from edgebench.harness.board import Board
    from edgebench.harness.cooldown import Waited
    from edgebench.harness.execution import Execution
    from edgebench.harness.observer import Observer


FITS = 0.9
"""So much of a stretch must fit into the time that is left: what came before may have overrun it
by some seconds."""


def measure(runs: Sequence[Execution], since: float, observer: Observer) -> None:
    """Measure all cells of all runs.

    Args:
        runs: one, or two that are interleaved: the baseline, then the candidate. Its protocol and
            its seed are those of both.
        since: when the time budget began, by the runs' clock.
        observer: told of what concerns all runs.
    """
    main = runs[-1]
    protocol = main.record.protocol
    everywhere = places(runs)
    here = [place for place in everywhere if any(seat.workloads() for seat in place.seats)]
    seats = [seat for place in everywhere for seat in place.seats]
    stretches = [prompt for seat in seats for prompt in seat.stretches()]
    if not here and not stretches:
        return
    begun = main.settings.monotonic()
    left_s = max(0.0, since + protocol.time_budget_s - begun)
    sustained_s = sum(prompt.sustained_s or 0.0 for prompt in stretches)
    observer.planned(
        Outlook(
            cells=sum(len(seat.workloads()) for place in here for seat in place.seats),
            min_repetitions=protocol.min_repetitions,
            max_repetitions=protocol.max_repetitions,
            time_budget_s=left_s,
            stretches=len(stretches),
            sustained_s=sustained_s,
        )
    )
    for refusal in dict.fromkeys(each for run in runs for each in run.board.meters().refusals):
        observer.note(f"power: {refusal}")
    cooling = _cooling(runs, observer)
    # What is measured first leaves time for what comes last.
    early_s = max(0.0, left_s - sustained_s)
    groups = [here] if protocol.interleave else [[place] for place in here]
    starts = Starts()
    for position, group in enumerate(groups, start=1):
        # Variants that run one after the other share the budget evenly.
        _Group(runs, group, begun + early_s * position / len(groups), cooling, starts).run()
    _Group(runs, everywhere, begun + left_s, cooling, starts).sustain()


def _cooling(runs: Sequence[Execution], observer: Observer) -> list[Cooldown | None]:
    """How each run's device cools down between blocks; None where that is not asked for.

    The temperature before the first block of all is read now, of every run.
    """
    protocol = runs[-1].record.protocol
    within, at_most = protocol.cooldown_within_celsius, protocol.cooldown_at_most_s
    if within is None or at_most is None:
        return [None] * len(runs)
    made = [
        Cooldown(
            within,
            at_most,
            partial(_temperature, run.board),
            pause_s=protocol.cooldown_s,
            now=run.settings.monotonic,
        )
        for run in runs
    ]
    for why in dict.fromkeys(each.why_blind for each in made if each.why_blind):
        pause = f"a pause of {protocol.cooldown_s:g} s" if protocol.cooldown_s else "no pause"
        observer.note(f"cool-down: {why}; there is {pause} before each block (cooldown_s)")
    return list(made)


def _temperature(board: Board) -> Reading:
    try:
        return board.temperature()
    except RunnerError as error:
        # Whoever runs something there next says so in a row of its own.
        return Reading.missing(error.message)


class Starts:
    """How long each seat took last time before it was measured, in seconds."""

    def __init__(self) -> None:
        self._took: dict[tuple[int, str], float] = {}

    def keep(self, key: tuple[int, str], seconds: float) -> None:
        """Keep that of a run's variant."""
        self._took[key] = seconds

    def expected(self, key: tuple[int, str]) -> float:
        """What it took last time; of one that was not started yet, the mean of the others."""
        known = self._took.values()
        return self._took.get(key, sum(known) / len(known) if known else 0.0)


class _Group:
    """Places that share their blocks."""

    def __init__(
        self,
        runs: Sequence[Execution],
        group: Sequence[Place],
        deadline: float,
        cooling: Sequence[Cooldown | None],
        starts: Starts,
    ) -> None:
        self._runs = runs
        self._starts = starts
        self._group = group
        self._deadline = deadline
        self._cooling = cooling
        self._protocol = runs[-1].record.protocol
        self._now = runs[-1].settings.monotonic
        self._lasted: dict[tuple[int, str], float] = {}
        self._benches = [self._bench(run) for run in runs]

    def _bench(self, run: Execution) -> Bench:
        return Bench(
            folder=run.settings.folder,
            protocol=self._protocol,
            context_tokens=run.prepared.context_tokens,
            board=run.board,
            transferring=run.observer.transferring,
            record=lambda trial: run.keep(trial, self._deadline),
            begins=run.observer.trial,
            out_of_time=self._out_of_time,
            clock=run.clock,
            note=run.observer.note,
        )

    def run(self) -> None:
        """Block after block, until nothing is missing or the time is over."""
        block = self._next_block()
        first = True
        while todo := self._todo():
            expected = sum(
                self._lasted.get(self._key(turn), 0.0) for place in todo for turn in place
            )
            if self._now() + (0.0 if first else expected) >= self._deadline:
                self._stop()
                return
            order = random.Random(f"{self._runs[-1].record.seed}-{block}")  # noqa: S311 - no secret
            order.shuffle(todo)
            for turns in todo:
                for turn in self._in_order(turns, block):
                    if self._out_of_time():
                        self._stop()
                        return
                    self._take(turn, block)
            block += 1
            first = False

    def sustain(self) -> None:
        """Sustained work: one stretch for each cell, each in a block of its own.

        One that was begun is not cut off by the end of the time; so none is begun that would last
        beyond it. A line tells of each that is not.
        """
        block = self._next_block()
        begun, spent = self._now(), self._spent_s()
        left_out: set[tuple[tuple[int, str], str]] = set()
        while todo := self._stretches(left_out):
            if self._protocol.interleave:
                order = random.Random(f"{self._runs[-1].record.seed}-{block}")  # noqa: S311 - no secret
                order.shuffle(todo)
            for turns in todo:
                in_order = self._in_order(turns, block)
                for position, turn in enumerate(in_order):
                    # The clock of a run may stand still while its runners work, in a test.
                    done_s = max(self._now() - begun, self._spent_s() - spent)
                    # One side of a pair alone would tell nothing.
                    if self._fits(in_order[position:], self._deadline - begun - done_s):
                        self._take(turn, block)
                        continue
                    self._stop()
                    left_out.update(self._stretch(each) for each in in_order[position:])
                    break
                block += 1

    def _spent_s(self) -> float:
        """How long everything took so far, by what was counted of it."""
        return sum(
            clock.start_s + clock.load_s + clock.warmup_s + clock.measured_s + clock.cooldown_s
            for clock in (each.clock for each in self._benches)
        )

    def _fits(self, turns: Sequence[Turn], left_s: float) -> bool:
        """Whether the sustained work of these fits into what is left of the time; tell if not."""
        work = [
            sum(
                each.prompt.sustained_s or 0.0
                for each in turn.tasks
                if not isinstance(each.prompt, TaskText)
            )
            for turn in turns
        ]
        loads = [self._starts.expected(self._key(turn)) for turn in turns]
        if FITS * (sum(work) + sum(loads)) <= left_s:
            return True
        for turn, work_s, load_s in zip(turns, work, loads, strict=True):
            loading = f" and about {load_s:.0f} s to load and warm up" if load_s >= 1 else ""
            beside = " with the other side of its pair" if len(turns) > 1 else ""
            turn.seat.run.observer.note(
                f"sustained work: {turn.seat.name} is not begun{beside}: it takes "
                f"{work_s:g} s{loading}, and {max(0.0, left_s):.0f} s of the time budget are left"
            )
        return False

    def _stretch(self, turn: Turn) -> tuple[tuple[int, str], str]:
        return self._key(turn), turn.tasks[0].prompt.workload

    def _stretches(self, left_out: set[tuple[tuple[int, str], str]]) -> list[list[Turn]]:
        """The sustained work that is left, that of both sides of a pair together."""
        todo: dict[tuple[int, str], list[Turn]] = {}
        for position, place in enumerate(self._group):
            for seat in place.seats:
                for prompt in seat.stretches():
                    turn = Turn(seat, [Task(prompt, 1)])
                    if self._stretch(turn) in left_out:
                        continue
                    todo.setdefault((position, prompt.workload), []).append(turn)
        return list(todo.values())

    def _next_block(self) -> int:
        """The first number that no block of these variants has yet."""
        return max(
            run.tally.next_block(
                [
                    seat.name
                    for place in self._group
                    for seat in place.seats
                    if seat.run is run and (seat.workloads() or seat.stretches())
                ]
            )
            for run in self._runs
        )

    def _in_order(self, turns: list[Turn], block: int) -> list[Turn]:
        """The turns of one place; of a pair, a coin decides which comes first."""
        session = self._runs[-1].record.interleaved
        if session is None or not baseline_last(session.session, block, turns[-1].seat.name):
            return turns
        return turns[::-1]

    def _take(self, turn: Turn, block: int) -> None:
        begun = self._now()
        seat, bench = turn.seat, self._benches[self._runs.index(turn.seat.run)]
        seat.run.observer.session(block, seat.name)
        waited = self._pause(bench, self._cooling[self._runs.index(seat.run)])
        # The smallest first: a process keeps the memory that a larger one made it touch.
        tasks = sorted(turn.tasks, key=_place_in_block)
        loading = _starting_s(turn, bench)
        seat.run.conduct.run_block(bench, seat.item, tasks, block, waited)
        took = self._now() - begun
        self._lasted[self._key(turn)] = took
        self._starts.keep(self._key(turn), _starting_s(turn, bench) - loading)
        for other in self._runs:
            if other is not seat.run:
                other.away_s += took

    def _pause(self, bench: Bench, cooling: Cooldown | None) -> Waited | None:
        """Cool down between processes, as long as asked or until cool; how that went."""
        first = not any(run.has_trials for run in self._runs)
        if cooling is not None:
            waited = cooling.wait(self._deadline - self._now(), first=first)
            bench.clock.cooldown_s += waited.seconds
            if waited.reached is False:
                self._tell_hot(waited)
            return waited
        seconds = self._protocol.cooldown_s
        if seconds and not first:
            time.sleep(seconds)
            bench.clock.cooldown_s += seconds
        return None

    def _tell_hot(self, waited: Waited) -> None:
        self._runs[-1].observer.note(
            f"cool-down: still {waited.celsius:.1f} °C after {waited.seconds:.0f} s, and "
            f"{waited.reference:.1f} °C before the first block; measuring goes on"
        )

    def _todo(self) -> list[list[Turn]]:
        """What still needs repetitions, and how many of them in the next block."""
        todo = []
        for place in self._group:
            turns = []
            for seat in place.seats:
                beside = place.beside(seat)
                wanted = [
                    Task(prompt, count)
                    for prompt in seat.workloads()
                    if (count := self._missing(seat, beside, prompt.workload))
                ]
                if wanted:
                    turns.append(Turn(seat, wanted))
            if turns:
                todo.append(turns)
        return todo

    def _missing(self, seat: Seat, beside: Seat | None, workload: str) -> int:
        """Repetitions of a cell in the next block; 0 where it is settled or lost.

        Two sides go on until both are settled, so that each block has both. A cell that has lost
        the one beside it can't be compared any more, and gets no more than every cell has.
        """
        protocol = self._protocol
        tally = seat.run.tally
        if tally.is_lost(seat.name, workload):
            return 0
        mine = tally.measured(seat.name, workload)
        settled, most = is_settled(mine, protocol), protocol.max_repetitions - len(mine)
        if len(self._runs) > 1:
            if beside is None or not _still_measured(beside, workload):
                most = protocol.min_repetitions - len(mine)
            else:
                theirs = beside.run.tally.measured(beside.name, workload)
                settled = settled and is_settled(theirs, protocol)
                # After a failure on one side both go on, for what has no pair tells little.
                most = protocol.max_repetitions - min(len(mine), len(theirs))
        return 0 if settled else max(0, min(protocol.per_block, most))

    def _out_of_time(self) -> bool:
        return self._now() >= self._deadline

    def _stop(self) -> None:
        for run in self._runs:
            run.stopped_by_budget = True

    def _key(self, turn: Turn) -> tuple[int, str]:
        return self._runs.index(turn.seat.run), turn.seat.name


def _starting_s(turn: Turn, bench: Bench) -> float:
    """How long starting and loading took so far, and warming up too where work is sustained."""
    lasting = any(
        not isinstance(each.prompt, TaskText) and each.prompt.sustained_s is not None
        for each in turn.tasks
    )
    clock = bench.clock
    return clock.start_s + clock.load_s + (clock.warmup_s if lasting else 0.0)


def _still_measured(seat: Seat, workload: str) -> bool:
    able = any(each.workload == workload for each in seat.workloads())
    return able and not seat.run.tally.is_lost(seat.name, workload)


def _place_in_block(task: Task) -> tuple[bool, int]:
    """By the tokens in the cache at the end; whole tasks, whose tokens are not known, come last."""
    prompt = task.prompt
    return (True, 0) if isinstance(prompt, TaskText) else (False, prompt.context_tokens)
