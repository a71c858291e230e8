"""Scheduled functions: each rule takes what it is meant for, and changes no result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

pytestmark = pytest.mark.mlc

PAGE = 16
ROWS = (1, 2, 5, 6, 7, 17)


@pytest.fixture(scope="module")
def host() -> Any:
    """This machine's target; TVM is imported by then."""
    MlcRunner().describe()
    from edgebench.runners.tvm_target import host_target

    return host_target()


@pytest.fixture
def two_threads(host: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Calls functions so that they share parallel loops among two threads.

    TVM makes a pool for each thread that calls it, of as many as the environment says then.
    """
    import tvm

    monkeypatch.setenv("TVM_NUM_THREADS", "2")
    with ThreadPoolExecutor(1) as caller:

        def called(function: Callable[..., Any], *arguments: Any) -> Any:
            return caller.submit(function, *arguments).result()

        assert called(tvm.get_global_func("runtime.NumThreads")) == 2
        yield called


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


def attention_inputs(
    heads: int, kv_heads: int, size: int, queries: int, keys: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    random = np.random.default_rng(queries)
    q = random.standard_normal((queries, heads, size), dtype=np.float32)
    k, v = (random.standard_normal((keys, kv_heads, size), dtype=np.float32) for _ in range(2))
    return q, k, v


def attention(
    q: NDArray[Any], k: NDArray[Any], v: NDArray[Any], *, causal: bool
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Softmax attention in float64, and the base-2 logarithm of its sums."""
    queries, heads, size = q.shape
    keys, kv_heads, _ = k.shape
    k, v = (np.repeat(each.astype(np.float64), heads // kv_heads, axis=1) for each in (k, v))
    scores = np.einsum("qhd,khd->hqk", q.astype(np.float64), k) * size**-0.5
    if causal:
        ahead = np.arange(keys)[None, :] > np.arange(queries)[:, None] + keys - queries
        scores = np.where(ahead, -np.inf, scores)
    most = scores.max(-1, keepdims=True)
    weights = np.exp(scores - most)
    sums = weights.sum(-1, keepdims=True)
    logs = (np.log(sums) + most)[..., 0].T / np.log(2)
    return np.einsum("hqk,khd->qhd", weights / sums, v), logs


def paged(k: NDArray[Any], v: NDArray[Any], pages: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Keys and values in scattered pages of a cache, and which pages in order."""
    keys, kv_heads, size = k.shape
    numbers = np.random.default_rng(7).permutation(pages)[: -(-keys // PAGE)].astype(np.int32)
    cache = np.full((pages, 2, kv_heads, PAGE, size), np.nan, np.float32)
    for row in range(keys):
        page = cache[numbers[row // PAGE], :, :, row % PAGE]
        page[0], page[1] = k[row], v[row]
    return cache, numbers


def ints(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


KERNELS = [(9, 3, 64), (4, 4, 80), (8, 1, 96), (2, 2, 128)]


@pytest.mark.parametrize(("heads", "kv_heads", "size"), KERNELS)
def test_attention_kernels_are_right_with_rows_and_heads_in_parallel(
    host: Any, two_threads: Callable[..., Any], heads: int, kv_heads: int, size: int
) -> None:
    """TVM's three kernels: of a prompt with itself, with what is in the cache, and of one token."""
    from tvm.relax.frontend.nn.llm import _decode_kernels, _prefill_kernels

    rope = (0, 1.0, 1e4, size**-0.5)
    made = (heads, kv_heads, size)
    compile_ = partial(compiled, target=host, rule="attention")
    ragged = compile_(
        _prefill_kernels._attention_prefill_ragged_cpu(kv_heads, heads, size, size, "float32", {}),
    )
    for rows in (1, 5, 40):
        q, k, v = attention_inputs(*made, rows, rows)
        expected = attention(q, k, v, causal=True)
        out = call(
            partial(two_threads, ragged),
            [q, ints(0, rows), k, v, ints(0, rows), np.arange(rows, dtype=np.int32), ints(0)],
            [q.shape, q.shape[:2]],
            (1, *rope),
        )
        agree(out, expected)
    cached = compile_(
        _prefill_kernels._attention_prefill_cpu(
            kv_heads, heads, size, "float32", sliding_window=False, rope_scaling={}
        )
    )
    one = compile_(
        _decode_kernels._attention_decode_cpu(
            kv_heads, heads, size, "float32", sliding_window=False, rope_scaling={}
        )
    )
    for rows, keys in ((3, 16), (6, 37)):
        q, k, v = attention_inputs(*made, rows, keys)
        cache, numbers = paged(k, v, 8)
        place = [ints(0, len(numbers)), numbers, ints((keys - 1) % PAGE + 1)]
        inputs = [q, ints(0, rows), cache, *place, ints(0), np.arange(rows, dtype=np.int32)]
        out = call(partial(two_threads, cached), inputs, [q.shape, q.shape[:2]], (0, *rope))
        agree(out, attention(q, k, v, causal=False))
        inputs = [q[:1], cache, *place, ints(0), ints(0)]
        out = call(partial(two_threads, one), inputs, [q[:1].shape, (1, heads)], rope)
        agree(out, attention(q[:1], k, v, causal=False))
    with pytest.raises(Exception, match="leaves rotating to its cache"):
        call(partial(two_threads, one), inputs, [q[:1].shape, (1, heads)], (1, *rope[1:]))


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


def agree(got: list[NDArray[Any]], expected: tuple[NDArray[Any], ...]) -> None:
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5)


def test_what_the_cache_changes_in_place_is_not_miscompiled(
    host: Any, two_threads: Callable[..., Any]
) -> None:
    """Told that buffers don't overlap, in-place kernels still do what they do untold."""
    import tvm
    from tvm.relax.frontend.nn.llm import _decode_kernels, _page_kernels

    heads, size, pages, rows = 3, 64, 6, 40
    random = np.random.default_rng(5)

    def numbers(*shape: int) -> NDArray[np.float32]:
        return random.standard_normal(shape, dtype=np.float32)

    cache = numbers(pages, 2, heads, PAGE, size)
    places = random.permutation(pages * PAGE)[:rows].astype(np.int32)
    places[3] = -1  # A token that is not to be kept.
    moves = np.stack([np.arange(20, 30), np.arange(18, 28)]).astype(np.int32)
    cases: list[tuple[Any, str, list[Any]]] = [
        (
            _page_kernels._kv_cache_transpose_append(heads, size, "float32"),
            "spatial",
            [cache, numbers(rows, heads, size), numbers(rows, heads, size), places],
        ),
        (
            _decode_kernels._merge_state_inplace_cpu("float32"),
            "none",
            [numbers(rows, heads, size), numbers(rows, heads), numbers(rows, heads, size),
             numbers(rows, heads)],
        ),
        (
            _page_kernels._copy_single_page_cpu(heads, PAGE, size, "float32"),
            "none",
            [cache, 1, 4, 9],
        ),
        (
            _page_kernels._compact_kv_copy_cpu(heads, size, "float32"),
            "none",
            [cache, ints(0, 10), moves, 1],
        ),
    ]  # fmt: skip
    for kernel, rule, arguments in cases:
        results = []
        for function in (compiled(kernel, host, rule), plainly_compiled(kernel)):
            given = [
                tvm.runtime.tensor(each) if isinstance(each, np.ndarray) else each
                for each in arguments
            ]
            two_threads(function, *given)
            results.append([each.numpy() for each in given if not isinstance(each, int)])
        changed = [not np.array_equal(new, old) for new, old in zip(results[0], arguments)]  # noqa: B905
        assert any(changed)
        for one, other in zip(*results, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.transformers
@pytest.mark.parametrize(
    ("family", "quantization"),
    [("llama", "q4f32_1"), ("llama", "q0f16"), ("qwen2", "q0f32"), ("qwen3", "q4f32_1")],
)
def test_every_product_of_a_model_gets_a_schedule_of_its_own(
    host: Any, tmp_path: Any, family: str, quantization: str
) -> None:
    """No function falls back because a rule failed, and none that multiplies weights is left."""
    from tiny_models import tiny_folder

    from edgebench.models.canonical import open_model
    from edgebench.runners import tvm_build
    from edgebench.runners.mlc_layout import OWN
    from edgebench.runners.tvm_model import Decoder

    tiny_folder(tmp_path / "model", family)
    architecture = open_model(tmp_path / "model").architecture
    decoder = Decoder(architecture, OWN[quantization], host)
    module, _, _ = decoder.export_tvm(spec=decoder.functions(), allow_extern=True)
    notes: dict[str, str] = {}
    with host:
        tvm_build._passes(host, 64, notes)(module)
    assert not [note for note in notes.values() if note.startswith("none: ")]
    products = {name: note for name, note in notes.items() if "matmul" in name}
    assert set(products.values()) == (
        {"words", "matmul"} if quantization == "q4f32_1" else {"gemv", "matmul"}
    )


def test_the_hosts_target_has_what_this_cpu_has(host: Any) -> None:
    """LLVM's list of instructions for the target is Linux's, and a newer CPU's is longer."""
    from edgebench.runners.tvm_target import cpu_target, missing_features, target_facts

    assert missing_features(target_facts(host)) == []
    foreign = cpu_target({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": "generic-rv64"})
    assert missing_features(target_facts(foreign)) == ["riscv64"]
