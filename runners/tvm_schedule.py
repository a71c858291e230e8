"""Schedules for every function of a model: how its loops are tiled, vectorised and shared.

Every function is also told that its buffers don't overlap, without which LLVM reads and writes
one number at a time. That holds: a call's output is allocated while its inputs are in use, so that
TVM's memory plan can't give it their place; and what a function of the KV cache changes in place,
pages or sums of attention, it takes as one buffer, not as two.

Imports TVM: import it late.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from tvm import s_tir, tirx

from edgebench.runners.tvm_attention import schedule_attention
from edgebench.runners.tvm_gemv import schedule_gemv
from edgebench.runners.tvm_matmul import schedule_matmul
from edgebench.runners.tvm_spatial import schedule_spatial
from edgebench.runners.tvm_target import vector_registers
from edgebench.runners.tvm_words import schedule_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import tvm
    from tvm.target import Target

    from edgebench.runners.tvm_target import Registers


RULES: Mapping[str, Callable[[tirx.PrimFunc, Registers], tirx.PrimFunc | None]] = MappingProxyType(
    {
        "words": schedule_words,
        "gemv": schedule_gemv,
        "matmul": schedule_matmul,
        "attention": schedule_attention,
        "spatial": schedule_spatial,
    }
)
"""By name, in the order in which they are tried; a rule gives None where it isn't meant for one."""

UNSCHEDULED = "none"


def schedule(module: tvm.IRModule, target: Target) -> tvm.IRModule:
    """`schedule_with_notes`, without the notes."""
    return schedule_with_notes(module, target)[0]


def schedule_with_notes(
    module: tvm.IRModule, target: Target
) -> tuple[tvm.IRModule, dict[str, str]]:
    """Schedule every function of a module by the first rule that is meant for it.

    Returns:
        A new module, and for each function the rule's name; ``none`` where there is none, or
        ``none: …`` with TVM's reason where the rule failed. Such a function works, but slowly.
    """
    registers = vector_registers(target)
    notes: dict[str, str] = {}
    made = {}
    for variable, function in module.functions_items():
        if isinstance(function, tirx.PrimFunc):
            scheduled, notes[variable.name_hint] = _scheduled(function, registers)
            made[variable] = scheduled.with_attr("tirx.noalias", 1)
    module = module.clone()
    for variable, scheduled in made.items():
        module[variable] = scheduled
    return module, notes


def _scheduled(function: tirx.PrimFunc, registers: Registers) -> tuple[tirx.PrimFunc, str]:
    for name, rule in RULES.items():
        try:
            found = rule(function, registers)
        except s_tir.schedule.ScheduleError as error:
            return function, f"{UNSCHEDULED}: {name}: {str(error).strip().splitlines()[-1]}"
        if found is not None:
            return found.with_attr("tirx.is_scheduled", 1), name
    return function, UNSCHEDULED
