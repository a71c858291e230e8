"""Products with weights: any number of rows, whole tiles or not, right on every CPU."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mlc_kernels import call, compiled, grouped, named, product

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

pytestmark = pytest.mark.mlc

ROWS = (1, 2, 5, 6, 7, 17)


def check_product(
    function: Callable[..., None], weights: list[NDArray[Any]], wide: NDArray[Any], rows: int, *,
    more: bool, dtype: str = "float32",
) -> None:  # fmt: skip
    """Compare with numpy's product in float64."""
    random = np.random.default_rng(rows)
    columns, depth = wide.shape
    x = random.standard_normal((1, rows, depth)).astype(dtype)
    expected = x.astype(np.float64) @ wide.T
    arrays = [x, *weights]
    if more:
        bias = random.standard_normal(columns).astype(np.float32)
        residual = random.standard_normal((1, rows, columns)).astype(np.float32)
        expected = expected + bias + residual
        arrays += [bias, residual]
    got = call(function, arrays, [(1, rows, columns)], ())[0]
    sizes = np.abs(x.astype(np.float64)) @ np.abs(wide).T
    assert np.all(np.abs(got - expected) <= 2e-6 * (sizes + 1))


def codes(columns: int, depth: int) -> tuple[list[NDArray[Any]], NDArray[Any]]:
    """Random words and scales, and the weights that they stand for: ``(code - 7) * scale``."""
    random = np.random.default_rng(columns)
    words = random.integers(0, 2**32, (columns, depth // 8), dtype=np.uint32)
    scales = random.standard_normal((columns, depth // 32)).astype(np.float32)
    wide = np.empty((columns, depth))
    for k in range(depth):
        code = (words[:, k // 8] >> np.uint32(4 * (k % 8))) & np.uint32(15)
        wide[:, k] = (code.astype(np.float64) - 7) * scales[:, k // 32]
    return [words, scales], wide


SHAPES = [(192, 576, True), (192, 576, False), (40, 96, True), (33, 64, False), (1003, 32, True)]


@pytest.mark.parametrize(("columns", "depth", "more"), [*SHAPES, (48, 54, True)])
def test_products_of_whole_weights_are_right_for_any_number_of_rows(
    host: Any, two_threads: Callable[..., Any], columns: int, depth: int, more: bool
) -> None:
    """Whole tiles or not, with what is fused to the product or without."""
    weights = np.random.default_rng(1).standard_normal((columns, depth)).astype(np.float32)
    wide = weights.astype(np.float64)
    several = partial(
        two_threads, compiled(product(columns, depth, None, more=more), host, "matmul")
    )
    for rows in (*ROWS, *((512,) if columns == 192 else ())):
        check_product(several, [weights], wide, rows, more=more)
    one = partial(two_threads, compiled(product(columns, depth, 1, more=more), host, "gemv"))
    check_product(one, [weights], wide, 1, more=more)


@pytest.mark.parametrize(("columns", "depth", "more"), SHAPES)
def test_products_of_codes_are_right_for_any_number_of_rows(
    host: Any, two_threads: Callable[..., Any], columns: int, depth: int, more: bool
) -> None:
    """The same of weights in groups of 4 bits."""
    weights, wide = codes(columns, depth)
    several = partial(
        two_threads, compiled(grouped(columns, depth, None, more=more), host, "matmul")
    )
    for rows in ROWS:
        check_product(several, weights, wide, rows, more=more)
    one = partial(two_threads, compiled(grouped(columns, depth, 1, more=more), host, "words"))
    check_product(one, weights, wide, 1, more=more)


def test_products_of_half_precision_sum_in_single(host: Any) -> None:
    """Rounding is that of the inputs alone."""
    weights = np.random.default_rng(1).standard_normal((64, 96)).astype(np.float16)
    wide = weights.astype(np.float64)
    several = compiled(product(64, 96, None, "float16"), host, "matmul")
    check_product(several, [weights], wide, 7, more=False, dtype="float16")
    one = compiled(product(64, 96, 1, "float16"), host, "gemv")
    check_product(one, [weights], wide, 1, more=False, dtype="float16")


@pytest.mark.parametrize(
    ("kind", "instruction"),
    [
        ({"mcpu": "znver4"}, r"vfmadd\d+ps.*%zmm"),
        ({"mcpu": "haswell"}, r"vfmadd\d+ps.*%ymm"),
        ({"mcpu": "x86-64"}, r"mulps.*%xmm"),
        ({"mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76"}, r"fmla\s+v\d+\.4s"),
    ],
    ids=["avx512", "avx2", "sse", "arm"],
)
def test_other_cpus_get_their_own_vectors_held_in_registers(
    host: Any, kind: dict[str, str], instruction: str
) -> None:
    """Tiles are as wide as the CPU's vectors, and no innermost loop allocates its sums."""
    import re

    import tvm

    from edgebench.runners.tvm_schedule import schedule_with_notes
    from edgebench.runners.tvm_target import cpu_target

    target = cpu_target({"kind": "llvm", **kind})
    functions = {
        "gemv": product(256, 512, 1),
        "words": grouped(256, 512, 1),
        "matmul": product(256, 512, None),
    }
    for rule, function in functions.items():
        module, notes = schedule_with_notes(tvm.IRModule({"f": named(function)}), target)
        assert notes == {"f": rule}
        with target:
            text = tvm.tirx.build(module, target=target).inspect_source("asm")
        tasks = re.split(r"^\.Lfunc_end\d+:", text, flags=re.MULTILINE)
        task = next(part for part in tasks if re.search(instruction, part))
        if rule != "matmul":  # That one packs a part of the weight, which is too large.
            assert "BackendAllocWorkspace" not in task
