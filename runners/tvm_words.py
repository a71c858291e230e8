"""The product of a matrix in groups of 4 bits with one vector, word by word.

What most of the time of generating a token goes to, where weights are quantised.

Imports TVM: import it late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tvm import s_tir, te, tirx

from edgebench.runners.mlc_layout import GROUP, PER_WORD
from edgebench.runners.tvm_blocks import child_blocks, divisor, scheduled_function

if TYPE_CHECKING:
    from tvm.s_tir.schedule import SBlockRV

    from edgebench.runners.tvm_target import Registers

SUMS, PARTS, PRODUCT = "state_sums", "word_products", "NT_words_matmul"
"""Of its blocks, by which its schedule knows it."""

LARGEST = 7
"""What is taken from a code of 4 bits."""

ROWS = 4
"""Rows of the weight at once: with their words, sums and parts they fill 16 registers."""


def word_product(state: te.Tensor, words: te.Tensor, scales: te.Tensor) -> te.Tensor:
    """The product of one vector with a matrix in groups.

    The numbers of a group share a scale, and the 7 that is taken from every code is the same for
    all rows. So each word's codes are multiplied as they are, and what is taken and the scale
    come in once a word: ``sum over words of scale * (sum of codes * x - 7 * sum of x)``.

    Args:
        state: (1, 1, K) in float32, K whole groups.
        words: (N, K / 8) of uint32, eight codes each, the first in the lowest bits.
        scales: (N, K / 32).

    Returns:
        (1, 1, N) in float32.
    """
    count, dtype = words.shape[1], state.dtype
    place, other = (te.reduce_axis((0, PER_WORD), name="place") for _ in range(2))
    along = te.reduce_axis((0, count), name="word")

    def code(row: tirx.Expr, word: tirx.Expr, place: tirx.Expr) -> tirx.Expr:
        shifted = tirx.shift_right(words[row, word], tirx.Cast("uint32", place * 4))
        bits = tirx.bitwise_and(shifted, tirx.const(15, "uint32"))
        # By way of a signed number, from which CPUs convert faster.
        return tirx.Cast(dtype, tirx.Cast("int32", bits))

    sums = te.compute(
        (count,),
        lambda word: te.sum(state[0, 0, word * PER_WORD + other], axis=other),
        name=SUMS,
    )
    parts = te.compute(
        (words.shape[0], count),
        lambda row, word: te.sum(
            state[0, 0, word * PER_WORD + place] * code(row, word, place), axis=place
        ),
        name=PARTS,
    )

    def part(row: tirx.Var) -> tirx.Expr:
        taken = parts[row, along] - tirx.const(LARGEST, dtype) * sums[along]
        return te.sum(scales[row, along // (GROUP // PER_WORD)] * taken, axis=along)

    shape = (state.shape[0], state.shape[1], words.shape[0])
    return te.compute(shape, lambda _b, _m, row: part(row), name=PRODUCT)


def schedule_words(function: tirx.PrimFunc, registers: Registers) -> tirx.PrimFunc | None:
    """Words in the lanes of a vector register, several rows at once; rows in parallel.

    The state is packed once so that the numbers that meet the same place of a vector's words lie
    side by side.

    Returns:
        None unless the function is a `word_product`, with what is fused to it.
    """
    schedule = s_tir.Schedule(function)
    blocks = child_blocks(schedule)
    names = [schedule.get(block).name_hint for block in blocks]
    if set(names[:3]) != {SUMS, PARTS, PRODUCT}:
        return None
    sums, parts, product = (blocks[names.index(name)] for name in (SUMS, PARTS, PRODUCT))
    after = blocks[3:]
    for step in after[:-1]:
        schedule.compute_inline(step)
    _schedule(schedule, sums, parts, product, after[-1:], registers.lanes)
    return scheduled_function(schedule)


def _schedule(
    schedule: s_tir.Schedule,
    sums: SBlockRV,
    parts: SBlockRV,
    product: SBlockRV,
    epilogue: list[SBlockRV],
    lanes: int,
) -> None:
    _, _, row, word = schedule.get_loops(product)
    rows, count = (int(schedule.get(loop).extent) for loop in (row, word))
    lanes, together = divisor(count, lanes), divisor(rows, ROWS)
    _, lane = schedule.split(word, [None, lanes])
    lane_sums = schedule.rfactor(lane, 3)
    batch, one, row, vector, lane = schedule.get_loops(lane_sums)
    group, row = schedule.split(row, [None, together])
    schedule.reorder(batch, one, group, vector, row, lane)
    task = schedule.fuse(batch, one, group)
    packed = schedule.cache_read(parts, 0, "global", [parts, sums])
    stretch = lanes * PER_WORD
    schedule.transform_layout(
        packed,
        ("write", 0),
        lambda _b, _m, k: (k // stretch, k % PER_WORD, k % stretch // PER_WORD),
    )
    schedule.compute_at(parts, vector, preserve_unit_loops=True)
    schedule.reverse_compute_at(product, task)
    if epilogue:
        schedule.reverse_compute_at(epilogue[0], task)
    schedule.parallel(task)
    _in_lanes(schedule, lane_sums, vector, [row], lane)
    *_, row, lane, place = schedule.get_loops(parts)
    schedule.reorder(place, row, lane)
    schedule.unroll(place)
    _in_lanes(schedule, parts, place, [row], lane)
    word, place = schedule.get_loops(sums)
    _, lane = schedule.split(word, [None, lanes])
    schedule.reorder(place, lane)
    _in_lanes(schedule, sums, place, [], lane)
    for block in (product, *epilogue):
        for loop in schedule.get_loops(block)[1:]:
            schedule.unroll(loop)


def _in_lanes(
    schedule: s_tir.Schedule,
    block: SBlockRV,
    reduction: object,
    rows: list[object],
    lane: object,
) -> None:
    """Vectorise a sum's innermost loop and write those around it out, for its start as well."""
    schedule.vectorize(lane)
    for row in rows:
        schedule.unroll(row)
    start = schedule.decompose_reduction(block, reduction)
    loops = schedule.get_loops(start)
    schedule.vectorize(loops[-1])
    for row in loops[len(loops) - 1 - len(rows) : -1]:
        schedule.unroll(row)
