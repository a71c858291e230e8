"""What two results are made of where they are compared, and what comes of it.

A *side* is one run, several runs or a saved baseline. A *cell* is a variant on a workload. Every
figure is of raw samples; nothing here was averaged.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.metrics.definitions import Better
    from edgebench.harness.results.measured import Failure, Source
    from edgebench.harness.results.model import (
        CommitRecord,
        MachineRecord,
        VariantRecord,
        WorkloadRecord,
    )
    from edgebench.harness.results.quality import WindowRecord

BlockKey: TypeAlias = tuple[str, int]
"""A session and a block's number in it. Runs that were interleaved share a session, so that equal
keys on both sides are a pair; the session of any other run is its id, so that none is."""

CellKey: TypeAlias = tuple[str, str]
"""A variant's id and a workload's name, as their side names them."""

BROKEN: Final = "its cell is broken: it takes more than the memory's bandwidth"
"""Why it is not compared."""

FACTS = frozenset({"model_bytes", "bits_per_weight", "weight_bytes_per_token"})
"""Metrics that are known of an artifact, not sampled: any difference is a true one."""

LARGEST: Final = 1e300
"""Beyond, the mean of two values has no room in a float; nothing that was measured is there."""

Verdict = Literal["better", "worse", "same", "cant_tell", "not_compared"]


@dataclass(frozen=True, slots=True)
class Samples:
    """One metric of one cell.

    Attributes:
        values: measured repetitions that succeeded, in the order in which they were made.
        blocks: of each value its block.
        unit, source: of all values.
        reason: why there are none; None where there are some.
        meter: of an energy or a power, what measured it; None where that is not known.
    """

    values: tuple[float, ...]
    blocks: tuple[BlockKey, ...]
    unit: str
    source: Source
    reason: str | None = None
    meter: str | None = None

    def by_block(self) -> dict[BlockKey, float]:
        """The median of each block, in the order of the first value.

        Repetitions of one block share a process and a moment, and count once.
        """
        found: dict[BlockKey, list[float]] = defaultdict(list)
        for block, value in zip(self.blocks, self.values, strict=True):
            found[block].append(value)
        return {block: statistics.median(values) for block, values in found.items()}


@dataclass(frozen=True, slots=True)
class SideCell:
    """A variant on a workload, on one side.

    Attributes:
        variant, workload: as recorded; of several runs those of the newest.
        status: ``failed`` has a failure and no samples; ``partial`` has both; ``not_run`` neither.
        metrics: by key, with the loads' own (`load_s`, memory at load); a metric that the run
            speaks of without a value has its reason.
        windows: of a text that was rated, as many as all variants of the run rated.
        flags: ``noisy`` and the like, as in ``run.json``.
        n: measured repetitions that succeeded; 0 where that is not known either.
        n_failed: attempts that failed, loads included.
    """

    variant: VariantRecord
    workload: WorkloadRecord
    status: Literal["ok", "partial", "failed", "not_run"]
    metrics: Mapping[str, Samples]
    windows: tuple[WindowRecord, ...] = ()
    flags: tuple[str, ...] = ()
    failure: Failure | None = None
    n: int = 0
    n_failed: int = 0

    @property
    def key(self) -> CellKey:
        """Its name on its side."""
        return (self.variant.id, self.workload.name)

    @property
    def is_broken(self) -> bool:
        """Whether it takes more than the memory's bandwidth, so that it can't be right."""
        return "above_bandwidth" in self.flags

    def counted(self) -> SideCell:
        """The cell with what may be compared: of a broken one, what is known of its file alone."""
        if not self.is_broken:
            return self
        kept = {
            key: each
            if key in FACTS or not each.values
            else Samples((), (), each.unit, each.source, BROKEN)
            for key, each in self.metrics.items()
        }
        return replace(self, metrics=kept)


@dataclass(frozen=True, slots=True)
class SideRun:
    """One run of a side.

    Attributes:
        id: the run's.
        session: what its blocks are called after; see `BlockKey`.
        commit: of what was measured; None where it is not known.
        interleaved: whether it was measured in the same blocks as another run.
        quick: whether it was a quick look, which is no measurement.
        testing: whether a runner of it makes its figures up.
        difference: of an interleaved run, what the two sides were meant to differ in; else empty.
        unfinished: whether it broke off before all of it was measured.
    """

    id: str
    session: str
    created_at: str
    scenario_name: str
    edgebench_version: str
    commit: CommitRecord | None
    machine: MachineRecord
    interleaved: bool = False
    quick: bool = False
    testing: bool = False
    difference: str = ""
    unfinished: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One of two things that are compared.

    Attributes:
        label: what people call it, such as the run's folder or the baseline's name.
        runs: at least one, oldest first; all on one machine and of one model.
        model_name, model_source: as the scenario says.
        hashes: all that tells which weights it is of, by what it is the hash of, such as
            ``the source``; see `edgebench.harness.compare.matching`.
        cells: by key, in the order of the newest run; failed and not run ones included.
        notes: what a reader must know, such as lines that could not be read; a sentence each.
    """

    label: str
    runs: tuple[SideRun, ...]
    model_name: str
    model_source: str
    hashes: Mapping[str, str]
    cells: Mapping[CellKey, SideCell]
    notes: tuple[str, ...] = ()

    @property
    def machine(self) -> MachineRecord:
        """Where all of it was measured."""
        return self.runs[-1].machine

    @property
    def synthetic(self) -> bool:
        """Whether its weights are made up."""
        return self.model_source.startswith("synthetic:")


@dataclass(frozen=True, slots=True)
class Differing:
    """Something that the two sides did not run alike, such as an option or a version.

    Attributes:
        what: such as ``threads``, ``llama.cpp's version``, ``the artifact``.
        baseline, candidate: its values as text; a dash where one side does not have it.
        kind: ``option`` of the variant or in effect; ``version``; ``artifact``.
    """

    what: str
    baseline: str
    candidate: str
    kind: Literal["option", "version", "artifact", "machine"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A cell of the baseline and the cell of the candidate that it is compared with."""

    baseline: SideCell
    candidate: SideCell
    differing: tuple[Differing, ...] = ()

    @property
    def name(self) -> str:
        """The candidate's name for it: ``VARIANT / WORKLOAD``, as patterns match it."""
        return f"{self.candidate.variant.id} / {self.candidate.workload.name}"

    @property
    def per_block(self) -> int:
        """The candidate's repetitions in one block, at least 1; a load is one of its block."""
        found = self.candidate.metrics.values()
        counts = (len(each.values) // len(set(each.blocks)) for each in found if each.values)
        return max(counts, default=1)


@dataclass(frozen=True, slots=True)
class Matched:
    """The cells of two sides.

    Attributes:
        pairs: in the order of the candidate.
        vanished: cells of the baseline that the candidate does not have at all.
        added: cells of the candidate that the baseline does not have.
        differing: what differs in every pair, so not worth naming in each: versions, machines.
        across_machines: what to label everything with; empty on one machine.
        interleaved: whether the two were measured in the same blocks.
    """

    baseline: Side
    candidate: Side
    pairs: tuple[Pair, ...]
    vanished: tuple[SideCell, ...] = ()
    added: tuple[SideCell, ...] = ()
    differing: tuple[Differing, ...] = ()
    across_machines: str = ""
    interleaved: bool = False


@dataclass(frozen=True, slots=True)
class Question:
    """One metric of one pair of cells, as the statistics ask it.

    Attributes:
        baseline, candidate: a value for each block, all above 0; see `Samples.by_block`.
        better: which direction is better.
    """

    baseline: Mapping[BlockKey, float]
    candidate: Mapping[BlockKey, float]
    better: Better


@dataclass(frozen=True, slots=True)
class Answer:
    """What the samples say about a question.

    A *worsening* is a share of the baseline: 0.05 where a rate fell by 5 % or a time grew by 5 %;
    negative where it got better.

    Attributes:
        ratio: candidate / baseline; None where `reason` says why.
        low, high: its 95 % interval by itself; None where `no_interval` says why.
        paired: whether values of one block were compared with each other.
        n: pairs; or blocks of the smaller side.
        p_worse, p_better: adjusted for all questions of the family: the chance that a gate of
            nothing but equals would say this of any of them. None where `reason` says why.
        noticeable: the smallest true worsening that would have been called worse in 95 % of cases
            at the family's confidence; None where it can't be told.
        spread: standard deviation of one pair's log ratio (paired), or of one block's log value
            (not paired), robust; None where it can't be told.
        inflation: how much wider the interval is for values that follow each other closely in
            time; 1 for pairs.
        reason: why nothing could be asked, such as a value of 0; None where it was.
        no_interval: why there is no interval.
    """

    ratio: float | None
    low: float | None = None
    high: float | None = None
    paired: bool = False
    n: int = 0
    p_worse: float | None = None
    p_better: float | None = None
    noticeable: float | None = None
    spread: float | None = None
    inflation: float = 1.0
    reason: str | None = None
    no_interval: str | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of one pair of cells, with its verdict.

    Attributes:
        metric: its key; `edgebench.harness.metrics.definitions.metric` tells the rest.
        baseline, candidate: medians as stored (quality: over all windows); None without.
        worsening: as in `Answer`, of the ratio; 1 of a rate that fell to 0; else None without.
        verdict: see `docs/compare.md`.
        why: of can't tell, not compared and a rate that fell to 0, a sentence without a full stop;
            else empty.
        repetitions: how many on each side would settle it; None where that can't be told or
            nothing is to be settled.
        estimated: whether one of the values is computed from a model of power, not measured.
    """

    pair: Pair
    metric: str
    unit: str
    better: Better
    baseline: float | None
    candidate: float | None
    answer: Answer
    verdict: Verdict
    worsening: float | None = None
    why: str = ""
    repetitions: int | None = None
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that two sides say about each other.

    Attributes:
        rows: by pair, in the order of the metrics; those that neither side has are left out. What
            several workloads share, such as a load, stands at the first pair that was asked for it.
        confidence: of the verdicts, over all of them together.
        margin: up to which a change counts as none, as a share.
        noise_floor: how much two runs of the same thing may differ that were not interleaved.
    """

    matched: Matched
    rows: tuple[Compared, ...]
    confidence: float
    margin: float
    noise_floor: float
    notes: tuple[str, ...] = field(default=())
