"""The product of a matrix with many vectors: what most of the time of a prompt goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from edgebench.runners.tvm_blocks import (
    STACK_NUMBERS,
    Product,
    divisor,
    extent,
    find_product,
    scheduled_function,
)

if TYPE_CHECKING:
    from tvm import s_tir, tirx
    from tvm.s_tir.schedule import SBlockRV

    from edgebench.runners.tvm_target import Registers

PANELS = 4
"""Panels of a task: its part of the weight, made once, stays in the CPU's second cache."""

ROWS = 6
"""Rows of a tile. Of one row of the weight and of `x` each number is used that often."""

TOGETHER = 8
"""Steps of k packed together."""


class Tile(NamedTuple):
    """What one round of the innermost loop adds to, held in registers.

    Attributes:
        rows: of `x`.
        columns: of the result.
    """

    rows: int
    columns: int


def tile(registers: Registers) -> Tile:
    """Three quarters of the registers hold sums; the rest, a row of the weight and one of `x`.

    Of AVX-512's, fewer do: what is larger than `STACK_NUMBERS` would not be held in registers.
    """
    vectors = min(registers.names // 8, STACK_NUMBERS // (ROWS * registers.lanes))
    return Tile(rows=ROWS, columns=vectors * registers.lanes)


def schedule_matmul(function: tirx.PrimFunc, registers: Registers) -> tirx.PrimFunc | None:
    """Tiles of sums in registers, the weight packed once a task; parts of the columns in parallel.

    A task makes its part of the weight, dequantised and with k outermost, so that the innermost
    loop reads it in one stretch; rows and columns are padded to whole tiles.

    Returns:
        None unless the function is a product of several rows, or of as many as a run brings.
    """
    product = find_product(function)
    if product is None or product.row_count == 1:
        return None
    return scheduled_function(_scheduled(product, tile(registers), registers.lanes))


def _scheduled(product: Product, size: Tile, lanes: int) -> s_tir.Schedule:
    schedule, block = product.schedule, product.block
    for producer in product.before[:-1]:
        schedule.compute_inline(producer)
    for step in product.after[:-1]:
        schedule.compute_inline(step)
    made, epilogue = product.before[-1:], product.after[-1:]
    names = {schedule.get(b).name_hint for b in (block, *made, *epilogue)}
    padding = [1, 1, size.columns, 1]
    padding[product.rows] = size.rows
    schedule.pad_einsum(block, padding)
    weight, inputs = _operands(schedule, block, names, made)
    schedule.transform_layout(
        weight, ("write", 0), lambda n, k: (n // size.columns, k, n % size.columns)
    )
    *outer, n, k = schedule.get_loops(block)
    m = outer.pop(product.rows)
    tile_row, row = schedule.split(m, [None, size.rows])
    panels = _panels(-(-product.columns // size.columns))
    task, panel, column = schedule.split(n, [None, panels, size.columns])
    schedule.reorder(*outer, task, tile_row, panel, k, row, column)
    task = schedule.fuse(*outer, task)
    schedule.compute_at(weight, task)
    _pack(schedule, weight, size.columns, product.depth)
    _place_result(schedule, block, epilogue, panel)
    schedule.parallel(task)
    schedule.vectorize(column)
    schedule.unroll(row)
    start = schedule.decompose_reduction(block, k)
    *_, row, column = schedule.get_loops(start)
    schedule.unroll(row)
    schedule.vectorize(column)
    for copied in inputs:
        *rows, number = schedule.get_loops(copied)
        schedule.parallel(schedule.fuse(*rows))
        if (extent(schedule, number) or 0) % lanes == 0:
            _, number = schedule.split(number, [None, lanes])
            schedule.vectorize(number)
    return schedule


def _pack(schedule: s_tir.Schedule, weight: SBlockRV, columns: int, depth: int) -> None:
    """Write a panel's columns as vectors, several steps of k after another.

    The quantised weights of eight steps stand in one word, which is then read once for all.
    """
    *_, column, k = schedule.get_loops(weight)
    panel, column = schedule.split(column, [None, columns])
    stretch, k = schedule.split(k, [None, divisor(depth, TOGETHER)])
    schedule.reorder(panel, stretch, k, column)
    schedule.vectorize(column)
    schedule.unroll(k)


def _operands(
    schedule: s_tir.Schedule, block: SBlockRV, names: set[str], made: tuple[SBlockRV, ...]
) -> tuple[SBlockRV, list[SBlockRV]]:
    """The block that writes the weight as the product reads it, and those that pad `x`."""
    added = [b for b in schedule.get_producers(block) if schedule.get(b).name_hint not in names]
    weight_buffer = schedule.get(block).reads[1].source
    packing = [b for b in added if schedule.get(b).writes[0].source.same_as(weight_buffer)]
    inputs = [b for b in added if not schedule.get(b).writes[0].source.same_as(weight_buffer)]
    if packing:
        for producer in made:
            schedule.compute_inline(producer)
        return packing[0], inputs
    return (made[0] if made else schedule.cache_read(block, 1, "global")), inputs


def _place_result(
    schedule: s_tir.Schedule, block: SBlockRV, epilogue: tuple[SBlockRV, ...], panel: object
) -> None:
    """Write a tile out, through what is fused to it, as soon as it is summed."""
    consumers = schedule.get_consumers(block)
    if not consumers:
        return
    last = consumers[0]
    if epilogue and not schedule.get(last).same_as(schedule.get(epilogue[0])):
        schedule.compute_inline(last)
        last = epilogue[0]
    schedule.reverse_compute_at(last, panel)
    schedule.vectorize(schedule.get_loops(last)[-1])


def _panels(count: int) -> int:
    """At most `PANELS`, and a divisor of how many there are."""
    return next(number for number in range(PANELS, 0, -1) if count % number == 0)
