"""What two machines differ in, in the order in which it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.compare.model import Differing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.results.model import MachineRecord

ABSENT = "–"
"""In place of a value that one of two does not have."""

_GIB = 2**30


def differing_machines(baseline: MachineRecord, candidate: MachineRecord) -> tuple[Differing, ...]:
    """What is known to differ; the fingerprints themselves where nothing else tells."""
    mine, theirs = dict(_facts(baseline)), dict(_facts(candidate))
    found = tuple(
        Differing(what, mine[what], theirs[what], "machine")
        for what in mine
        if mine[what] != theirs[what]
    )
    if found or baseline.fingerprint == candidate.fingerprint:
        return found
    return (Differing("the fingerprint", baseline.fingerprint, candidate.fingerprint, "machine"),)


def _facts(machine: MachineRecord) -> Iterator[tuple[str, str]]:
    yield "CPU", machine.cpu_model
    yield "CPUs", str(machine.logical_cpus)
    yield "cores", ABSENT if machine.physical_cpus is None else str(machine.physical_cpus)
    yield "CPUs that may be used", ",".join(map(str, sorted(machine.affinity))) or ABSENT
    yield "memory", f"{round(machine.memory_bytes / _GIB)} GiB"
    yield "architecture", machine.architecture
    yield "governor", machine.governor or ABSENT
    turbo = {None: ABSENT, True: "on", False: "off"}
    yield "turbo", turbo[machine.turbo]
    yield "virtualization", machine.virtualization or ABSENT
    yield "kernel", machine.kernel
    yield "system", machine.system
