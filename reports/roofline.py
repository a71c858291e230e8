"""How near each variant comes to what its machine can do: work against memory traffic.

After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for
multicore architectures", Communications of the ACM 52 (4), 2009. The model is kept as simple as
the figures allow: a token takes 2 floating-point operations for each parameter, and memory
traffic is the weights alone. Attention and the KV cache are left out; both are small against the
weights while a context is short.

The memory's roof is the bandwidth that was measured on the machine, where it was. The roof of the
arithmetic is not measured: what is known is that it is at least as high as the highest rate that
any variant reached, which is what is drawn; of a memory that was not measured, the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from edgebench.reports.languages import _

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from edgebench.harness.results.device import BandwidthRecord
    from edgebench.harness.results.model import MachineRecord, VariantRecord, WorkloadRecord
    from edgebench.reports.data import ReportData

Phase = Literal["decode", "prefill"]

FLOP_PER_PARAMETER = 2
"""A multiplication and an addition for each parameter and token."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What a variant reached in one phase of one workload.

    Attributes:
        variant: its id.
        number: its place in the run, counted from 1.
        workload: what it ran.
        phase: whether it generated or took the prompt in.
        intensity: FLOP for each byte of weights that is read.
        flop_rate: FLOP/s.
    """

    variant: str
    number: int
    workload: str
    phase: Phase
    intensity: float
    flop_rate: float

    @property
    def byte_rate(self) -> float:
        """Bytes of weights read in a second."""
        return self.flop_rate / self.intensity


@dataclass(frozen=True, slots=True)
class Roofline:
    """The variants of one machine.

    Attributes:
        machine: what it is called.
        workload: whose points are drawn: the one with the longest prompt.
        points: of that workload, in the order of the run.
        byte_rate: the highest that any variant reached on any workload, bytes/s.
        flop_rate: the highest that any variant reached on any workload, FLOP/s.
        absent: variants that have no point, and what they lack.
        memory: the fastest measured reading of the machine's memory; None where there is none
            that nothing disturbed.
    """

    machine: str
    workload: str
    points: tuple[Reached, ...]
    byte_rate: float
    flop_rate: float
    absent: tuple[tuple[str, str], ...]
    memory: BandwidthRecord | None = None

    @property
    def slope(self) -> float:
        """The memory's roof in bytes/s: the fastest reading, else the most that was reached."""
        return self.byte_rate if self.memory is None else max(self.memory.samples)

    @property
    def ridge(self) -> float:
        """The intensity from which on the arithmetic limits, were these the machine's roofs."""
        return self.flop_rate / self.slope

    def memory_share(self, point: Reached) -> float | None:
        """How much of the measured roof a point takes; None where it was not measured."""
        return None if self.memory is None else point.byte_rate / self.slope


def rooflines(data: ReportData) -> tuple[Roofline, ...]:
    """One for each machine on which any variant has a point."""
    found = []
    for machine, variants in _by_machine(data):
        reached = [each for variant in variants for each in _reached(data, variant)]
        if not reached:
            continue
        workload = _longest_prompt(data, {each.workload for each in reached})
        points = tuple(each for each in reached if each.workload == workload)
        # What can't be right is drawn, and is no roof.
        right = [each for each in reached if not data.is_broken(each.workload, each.variant)]
        drawn = {each.variant for each in points}
        found.append(
            Roofline(
                machine=machine.cpu_model,
                workload=workload,
                points=points,
                byte_rate=max(each.byte_rate for each in right or reached),
                flop_rate=max(each.flop_rate for each in right or reached),
                absent=tuple(
                    (each.id, _lacking(each)) for each in variants if each.id not in drawn
                ),
                memory=_measured(data, machine),
            )
        )
    return tuple(found)


def _by_machine(data: ReportData) -> Iterator[tuple[MachineRecord, Sequence[VariantRecord]]]:
    machines: dict[str, MachineRecord] = {}
    own: dict[str, set[str]] = {}
    for part in data.parts:
        machine = part.record.machine
        machines.setdefault(machine.fingerprint, machine)
        own.setdefault(machine.fingerprint, set()).update(part.variants)
    for fingerprint, machine in machines.items():
        yield machine, [each for each in data.record.variants if each.id in own[fingerprint]]


def _measured(data: ReportData, machine: MachineRecord) -> BandwidthRecord | None:
    """The fastest of the readings that the machine's runs hold."""
    found = [
        each
        for part in data.parts
        if part.record.machine.fingerprint == machine.fingerprint
        for each in part.record.bandwidth
        if not each.disturbed
    ]
    return max(found, key=lambda each: max(each.samples), default=None)


def _reached(data: ReportData, variant: VariantRecord) -> Iterator[Reached]:
    artifact = variant.artifact
    if artifact is None or not artifact.parameters or not artifact.weight_bytes_per_token:
        return
    work = FLOP_PER_PARAMETER * artifact.parameters
    intensity = work / artifact.weight_bytes_per_token
    number = data.variant_ids.index(variant.id) + 1
    for workload in data.record.workloads:
        if workload.name not in data.workload_names:
            continue
        rates: dict[Phase, tuple[str, float]] = {
            "decode": ("decode_rate", intensity),
            # The weights are read once for all tokens of the prompt.
            "prefill": ("prefill_rate", intensity * (workload.prompt_tokens or 0)),
        }
        for phase, (key, on) in rates.items():
            summary = data.summary(workload.name, variant.id, key)
            if on and summary is not None and summary.median:
                yield Reached(variant.id, number, workload.name, phase, on, summary.median * work)


def _longest_prompt(data: ReportData, names: set[str]) -> str:
    workloads: list[WorkloadRecord] = [each for each in data.record.workloads if each.name in names]
    return max(workloads, key=lambda each: each.prompt_tokens or 0).name


def _lacking(variant: VariantRecord) -> str:
    artifact = variant.artifact
    if artifact is None or not artifact.parameters:
        return _("the number of its parameters is not known")
    if not artifact.weight_bytes_per_token:
        return _("how many bytes of weights a token reads is not known")
    return _("it has no rate on this workload")
