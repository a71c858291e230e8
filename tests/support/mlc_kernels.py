"""Functions as TVM makes them for MLC's models, compiled with edgebench's schedules or plainly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

PAGE = 16


def compiled(function: Any, target: Any, rule: str) -> Callable[..., None]:
    """Schedule a function and compile it; the rule must be the one that took it."""
    import tvm

    from edgebench.runners.tvm_schedule import schedule_with_notes

    module, notes = schedule_with_notes(tvm.IRModule({"f": named(function)}), target)
    assert notes == {"f": rule}
    with target:
        return tvm.tirx.build(module, target=target)["f"]  # type: ignore[no-any-return]


def plainly_compiled(function: Any) -> Callable[..., None]:
    """Compile a function as it is, without saying that its buffers don't overlap."""
    import tvm

    target = tvm.target.Target("llvm")
    with target:
        module = tvm.IRModule({"f": named(function).without_attr("tirx.noalias")})
        return tvm.tirx.build(module, target=target)["f"]  # type: ignore[no-any-return]


def named(function: Any) -> Any:
    return function.with_attr("global_symbol", "f")


def product(
    columns: int, depth: int, rows: int | None, dtype: str = "float32", *, more: bool = False
) -> Any:
    """``x @ w.T`` as relax makes it, with bias and residual fused where there is more."""
    from tvm import te, tirx

    count = tirx.Var("n", "int64") if rows is None else rows
    x = te.placeholder((1, count, depth), dtype, name="x")
    w = te.placeholder((columns, depth), dtype, name="w")
    k = te.reduce_axis((0, depth), name="k")
    made = te.compute(
        (1, count, columns),
        lambda b, m, n: te.sum(x[b, m, k].astype("float32") * w[n, k].astype("float32"), axis=k),
        name="NT_matmul",
    )
    return fused(te, [x, w], made, (1, count, columns), more=more)


def grouped(columns: int, depth: int, rows: int | None, *, more: bool = False) -> Any:
    """A product with codes of 4 bits, as the model has it for one row and for several."""
    from tvm import te, tirx

    from edgebench.runners.mlc_layout import OWN
    from edgebench.runners.tvm_layers import Matrix
    from edgebench.runners.tvm_words import word_product

    count = tirx.Var("n", "int64") if rows is None else rows
    x = te.placeholder((1, count, depth), "float32", name="x")
    words = te.placeholder((columns, depth // 8), "uint32", name="w")
    scales = te.placeholder((columns, depth // 32), "float32", name="s")
    if rows == 1:
        made = word_product(x, words, scales)
    else:
        made = Matrix(depth, columns, OWN["q4f32_1"])._grouped_product(x, words, scales)
    return fused(te, [x, words, scales], made, (1, count, columns), more=more)


def fused(te: Any, inputs: list[Any], made: Any, shape: tuple[Any, ...], *, more: bool) -> Any:
    if more:
        bias = te.placeholder((shape[-1],), "float32", name="bias")
        residual = te.placeholder(shape, "float32", name="residual")
        plain, inputs = made, [*inputs, bias, residual]
        added = te.compute(shape, lambda b, m, n: plain[b, m, n] + bias[n], name="T_add")
        made = te.compute(shape, lambda b, m, n: added[b, m, n] + residual[b, m, n], name="T_add_1")
    return te.create_prim_func([*inputs, made])


def call(
    function: Callable[..., None],
    inputs: list[NDArray[Any]],
    outputs: list[tuple[int, ...]],
    numbers: tuple[float, ...],
) -> list[NDArray[Any]]:
    import tvm

    made = [tvm.runtime.tensor(np.full(shape, np.nan, np.float32)) for shape in outputs]
    function(*(tvm.runtime.tensor(np.ascontiguousarray(each)) for each in inputs), *made, *numbers)
    return [each.numpy() for each in made]


def ints(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)
