"""Everything that is no product: number by number, or with sums along a row.

Imports TVM: import it late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import s_tir

from edgebench.runners.tvm_blocks import (
    REDUCTION,
    SPATIAL,
    child_blocks,
    extent,
    is_step,
    kinds,
    scheduled_function,
)

if TYPE_CHECKING:
    from tvm import tirx
    from tvm.s_tir.schedule import LoopRV, SBlockRV

    from edgebench.runners.tvm_target import Registers


def schedule_spatial(function: tirx.PrimFunc, registers: Registers) -> tirx.PrimFunc | None:
    """Steps fused where each number is used, rows in parallel, numbers of a row in vectors.

    Only loops whose length a run brings are parallel: those of one token are too short to pay for
    waking the other threads.

    Returns:
        None where there is no block, or one whose loops are not its variables.
    """
    schedule = s_tir.Schedule(function)
    blocks = child_blocks(schedule)
    if not blocks or not all(_plain(schedule, block) for block in blocks):
        return None
    for block in blocks:
        if is_step(schedule, block) and REDUCTION not in kinds(schedule, block):
            schedule.compute_inline(block)
    done: list[tirx.For] = []
    for block in child_blocks(schedule):
        outermost = schedule.get(schedule.get_loops(block)[0])
        if not any(outermost.same_as(other) for other in done):
            _schedule_block(schedule, block, registers.lanes)
            done.append(schedule.get(schedule.get_loops(block)[0]))
    return scheduled_function(schedule)


def _plain(schedule: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block's variables are its loops, spatial ones first."""
    found = kinds(schedule, block)
    spatial = found.count(SPATIAL)
    return (
        len(found) == len(schedule.get_loops(block)) > 0
        and found == (SPATIAL,) * spatial + (REDUCTION,) * (len(found) - spatial)
        and spatial > 0
    )


def _schedule_block(schedule: s_tir.Schedule, block: SBlockRV, lanes: int) -> None:
    loops: list[LoopRV] = list(schedule.get_loops(block))
    rows = loops[: kinds(schedule, block).count(SPATIAL)]
    if len(rows) == len(loops) > 1 and (extent(schedule, rows[-1]) or 1) % lanes == 0:
        number = rows.pop()
        _, number = schedule.split(number, [None, lanes])
        schedule.vectorize(number)
    row = schedule.fuse(*rows) if len(rows) > 1 else rows[0]
    if extent(schedule, row) is None:
        schedule.parallel(row)
