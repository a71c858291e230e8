"""What the schedule rules ask of a function: its blocks, its loops, and whether it is a product.

Imports TVM: import it late.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tvm import s_tir, tirx

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tvm.s_tir.schedule import LoopRV, SBlockRV

SPATIAL = tirx.IterVar.DataPar
REDUCTION = tirx.IterVar.CommReduce

STACK_NUMBERS = 255
"""As many float32 numbers as TVM allocates on the stack, of where LLVM takes them into registers;
a buffer of 1024 bytes, or of another scope than ``global``, is allocated by a call each time."""


@dataclass(frozen=True, slots=True)
class Product:
    """A schedule of ``out[b, m, n] = sum over k of x[b, m, k] * weight[n, k]``, with what is fused.

    Attributes:
        schedule: of the whole function.
        block: the sum.
        before: what makes the weight, such as its dequantisation, in order; the last writes it.
        after: what is done with each number of the result, such as adding a bias, in order.
        rows: which loop counts rows of `x`, 0 for b or 1 for m; the other has one round.
        row_count: how many, or None where only a run can tell.
        columns: n, the rows of the weight.
        depth: k.
    """

    schedule: s_tir.Schedule
    block: SBlockRV
    before: tuple[SBlockRV, ...]
    after: tuple[SBlockRV, ...]
    rows: int
    row_count: int | None
    columns: int
    depth: int

    @property
    def loops(self) -> Sequence[LoopRV]:
        """Of the sum, from the outermost."""
        loops: Sequence[LoopRV] = self.schedule.get_loops(self.block)
        return loops


PRODUCT_LOOPS = (SPATIAL, SPATIAL, SPATIAL, REDUCTION)


def find_product(function: tirx.PrimFunc) -> Product | None:
    """The product that a function is, or None where it is none.

    It is one where exactly one block sums; that block has loops over b, m, n and k, of which n and
    k have known lengths and b or m has one round; it reads two buffers, the second one, the weight,
    by n and k alone; and of the blocks before it, the last makes the weight.
    """
    schedule = s_tir.Schedule(function)
    blocks = child_blocks(schedule)
    sums = [index for index, block in enumerate(blocks) if REDUCTION in kinds(schedule, block)]
    if len(sums) != 1:
        return None
    block = blocks[sums[0]]
    loops = schedule.get_loops(block)
    if kinds(schedule, block) != PRODUCT_LOOPS or len(loops) != len(PRODUCT_LOOPS):
        return None
    batch, rows, columns, depth = (extent(schedule, loop) for loop in loops)
    if (
        columns is None
        or depth is None
        or 1 not in (batch, rows)
        or not _reads_weight(schedule, block, blocks[: sums[0]])
    ):
        return None
    return Product(
        schedule=schedule,
        block=block,
        before=tuple(blocks[: sums[0]]),
        after=tuple(blocks[sums[0] + 1 :]),
        rows=0 if rows == 1 and batch != 1 else 1,
        row_count=batch if rows == 1 else rows,
        columns=columns,
        depth=depth,
    )


def child_blocks(schedule: s_tir.Schedule) -> list[SBlockRV]:
    """The blocks of a function, in order."""
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def is_step(schedule: s_tir.Schedule, block: SBlockRV) -> bool:
    """Whether a block writes what only the function itself reads."""
    made = schedule.get(schedule.get_sblock("root")).alloc_buffers
    return all(
        any(write.source.same_as(buffer) for buffer in made) for write in schedule.get(block).writes
    )


def scheduled_function(schedule: s_tir.Schedule) -> tirx.PrimFunc:
    """What has become of the function that a schedule was made of."""
    return schedule.mod["main"]


def kinds(schedule: s_tir.Schedule, block: SBlockRV) -> tuple[int, ...]:
    """Of each loop variable of a block, such as `SPATIAL`."""
    return tuple(variable.iter_type for variable in schedule.get(block).iter_vars)


def extent(schedule: s_tir.Schedule, loop: LoopRV) -> int | None:
    """How many rounds a loop makes, or None where only a run can tell."""
    length = schedule.get(loop).extent
    return int(length) if isinstance(length, int | tirx.IntImm) else None


def divisor(count: int, most: int) -> int:
    """The largest power of two that divides a count, up to one: how much of it fits a vector."""
    return next(part for part in (most >> n for n in range(most.bit_length())) if count % part == 0)


def _reads_weight(schedule: s_tir.Schedule, block: SBlockRV, before: Sequence[SBlockRV]) -> bool:
    body = schedule.get(block)
    if len(body.reads) != 2:  # noqa: PLR2004 - x and the weight
        return False
    n, k = (body.iter_vars[index].var for index in (2, 3))
    weight = [axis.min for axis in body.reads[1].region]
    if len(weight) != 2 or not (weight[0].same_as(n) and weight[1].same_as(k)):  # noqa: PLR2004
        return False
    made = [schedule.get(each).writes[0].source for each in before[-1:]]
    return all(each.same_as(body.reads[1].source) for each in made)
