"""Attention and what changes the cache in place, scheduled: no result changes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mlc_kernels import PAGE, call, compiled, ints, plainly_compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

pytestmark = pytest.mark.mlc


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
