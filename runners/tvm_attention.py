"""TVM's own attention kernels, which are written as plain loops: rows and heads in parallel.

Imports TVM: import it late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tvm_ffi
from tvm import ir, s_tir, sym, tirx

if TYPE_CHECKING:
    from collections.abc import Iterable

    from edgebench.runners.tvm_target import Registers


ROTARY_MODE = "rotary_mode"
"""The parameter by which TVM's kernels are told to rotate queries and keys themselves."""


def schedule_attention(function: tirx.PrimFunc, _registers: Registers) -> tirx.PrimFunc | None:
    """`without_rotation`, then `parallel_attention`."""
    return parallel_attention(without_rotation(function))


def without_rotation(function: tirx.PrimFunc) -> tirx.PrimFunc:
    """An attention kernel that may not be asked to rotate, which the cache has done before.

    It is unchanged where it takes no such parameter. Otherwise it keeps the parameter, fails where
    that is not 0, and its innermost loops are free of the other branch, and of a `Let` in it that
    LLVM's code generator of TVM 0.27 can't compile in a parallel loop.
    """
    found = [p for p in function.params if getattr(p, "name", "") == ROTARY_MODE]
    if not found:
        return function
    mode = found[0]
    off = tirx.IntImm(mode.ty, 0)

    def replaced(variable: tirx.Var) -> tirx.Expr:
        return off if variable.same_as(mode) else variable

    body = tvm_ffi.structural_map(function.body, (tirx.Var, replaced))
    told = ir.StringImm("this library's attention leaves rotating to its cache")
    # The order in which TVM 0.27 takes them; its own names for the first two are swapped.
    check = tirx.AssertStmt(mode == off, ir.StringImm("ValueError"), [told])
    root = body.block
    checked = s_tir.SBlock(
        root.iter_vars,
        root.reads,
        root.writes,
        root.name_hint,
        tirx.SeqStmt([check, root.body]),
        root.init,
        root.alloc_buffers,
        root.match_buffers,
        root.annotations,
    )
    return function.with_body(s_tir.SBlockRealize(body.iter_values, body.predicate, checked))


def parallel_attention(function: tirx.PrimFunc) -> tirx.PrimFunc | None:
    """Share the loop that makes up an attention kernel among the threads.

    Of the cache's kernels that is the loop over the rows of the prompt, or over the heads where
    there is one row. It stands in a block, inside of a loop over the batch, and holds no blocks
    itself, so that no schedule primitive can name it: its kind is changed instead. What a round
    computes in is its own, since TVM's lowering allocates a buffer in the innermost loop that holds
    all of its uses.

    Returns:
        None unless the function is one block whose last statement is a loop with rounds that are
        independent: each writes the results at an index that grows with the loop's variable, and
        what else it writes is read by that loop alone.
    """
    block = _only_block(function)
    if block is None or not block.alloc_buffers:
        return None
    *before, loop = block.body.seq if isinstance(block.body, tirx.SeqStmt) else [block.body]
    if not isinstance(loop, tirx.For) or not _independent(loop, before, block):
        return None
    shared = tirx.For(
        loop.loop_var, loop.min, loop.extent, tirx.ForKind.PARALLEL, loop.body, span=loop.span
    )

    def replaced(statement: tirx.For) -> tirx.For:
        return shared if statement.same_as(loop) else statement

    return function.with_body(
        tvm_ffi.structural_map(function.body, (tirx.For, replaced), order="pre")
    )


def _only_block(function: tirx.PrimFunc) -> s_tir.SBlock | None:
    """The block of a function that has one, root aside."""
    blocks: list[s_tir.SBlock] = []
    tvm_ffi.structural_walk(function.body, (s_tir.SBlock, blocks.append), order="pre")
    inner = [block for block in blocks if block.name_hint != "root"]
    return inner[0] if len(inner) == 1 else None


def _independent(loop: tirx.For, before: Iterable[tirx.Stmt], block: s_tir.SBlock) -> bool:
    bound: dict[tirx.Var, tirx.Expr] = {}
    stores: list[tirx.BufferStore] = []
    tvm_ffi.structural_walk(
        loop,
        [
            (tirx.Bind, lambda statement: bound.update({statement.var: statement.value})),
            (tirx.BufferStore, stores.append),
        ],
        order="pre",
    )
    outside: list[tirx.Buffer] = []
    for statement in before:
        tvm_ffi.structural_walk(
            statement, (tirx.BufferStore, lambda store: outside.append(store.buffer))
        )
    return all(
        not any(store.buffer.same_as(buffer) for buffer in outside)
        if any(store.buffer.same_as(buffer) for buffer in block.alloc_buffers)
        else any(_grows(index, loop.loop_var, bound) for index in store.indices)
        for store in stores
    )


def _grows(index: tirx.Expr, variable: tirx.Var, bound: dict[tirx.Var, tirx.Expr]) -> bool:
    """Whether no two values of a variable give the same index."""
    found = bound.get(index, index) if isinstance(index, tirx.Var) else index
    parts = sym.detect_linear_equation(found, [variable])
    return bool(parts) and isinstance(parts[0], tirx.IntImm) and int(parts[0]) != 0
