"""The product of a matrix with one vector: what most of the time of generating a token goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.tvm_blocks import Product, divisor, find_product, scheduled_function

if TYPE_CHECKING:
    from tvm import s_tir, tirx

    from edgebench.runners.tvm_target import Registers

ROWS = 8
"""Rows at once: as many sums as a CPU adds to before the first one can be added to again."""


def schedule_gemv(function: tirx.PrimFunc, registers: Registers) -> tirx.PrimFunc | None:
    """Sum in lanes of a vector register, several rows of the weight at once; rows in parallel.

    The sum over k is split in two by rfactor: lanes, that are summed at the end, and steps. Several
    rows share what is read of `x`, and give the CPU sums that don't wait for each other. The
    weight is made where it is used, so that quantised weights are read as they are, and once.

    Returns:
        None unless the function is a product of one row, its depth a multiple of two.
    """
    product = find_product(function)
    if product is None or product.row_count != 1:
        return None
    lanes = divisor(product.depth, registers.lanes)
    if lanes == 1:
        return None
    rows = divisor(product.columns, ROWS)
    return scheduled_function(_scheduled(product, lanes, rows))


def _scheduled(product: Product, lanes: int, rows: int) -> s_tir.Schedule:
    schedule, block = product.schedule, product.block
    for producer in product.before:
        schedule.compute_inline(producer)
    epilogue = product.after[-1:]
    for step in product.after[:-1]:
        schedule.compute_inline(step)
    *_, k = product.loops
    _, lane = schedule.split(k, [None, lanes])
    partial = schedule.rfactor(lane, 3)
    batch, row, n, step, lane = schedule.get_loops(partial)
    group, one = schedule.split(n, [None, rows])
    schedule.reorder(batch, row, group, step, one, lane)
    task = schedule.fuse(batch, row, group)
    schedule.reverse_compute_at(block, task)
    if epilogue:
        schedule.reverse_compute_at(epilogue[0], task)
    schedule.parallel(task)
    schedule.vectorize(lane)
    schedule.unroll(one)
    start = schedule.decompose_reduction(partial, step)
    *_, one, lane = schedule.get_loops(start)
    schedule.unroll(one)
    schedule.vectorize(lane)
    for last in (block, *epilogue):
        for loop in schedule.get_loops(last)[1:]:
            schedule.unroll(loop)
    return schedule
