"""Perplexities of a real model by all frameworks, beside those of the reference."""

from __future__ import annotations

from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from loaded_model import SMOLLM2, loaded

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.models.canonical import open_model
from edgebench.models.reference import Reference, Window
from edgebench.runners.base import ConvertRequest
from edgebench.runners.registry import runner_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WINDOW, START = 256, 128
WINDOWS = 1
"""Enough for differences that are as large as these."""

CONVERT: dict[str, dict[str, Any]] = {
    "mediapipe": {"cache_length": WINDOW + 32, "prefill_lengths": "32,128"},
    "mlc": {"compiler": "edgebench", "context_window": WINDOW, "prefill_chunk_size": WINDOW},
}
LOAD: dict[str, dict[str, Any]] = {
    "mediapipe": {"cache": "none"},
    "mnn": {"memory": "normal"},
}


def of(runner: str, *values: str | int) -> Any:
    """Parameters of a test that needs a framework."""
    return pytest.param(runner, *values, marks=getattr(pytest.mark, runner.replace(".", "_")))


class Text(NamedTuple):
    """The model's file, and the windows of the text as its own tokenizer has them."""

    source: Path
    windows: list[list[int]]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Text:
    """The beginning of the built-in prose."""
    store = ModelStore(tmp_path_factory.mktemp("quality") / "cache")
    source = store.fetch(parse_source(SMOLLM2)).path
    prose = resources.files("edgebench.harness").joinpath("texts/prose.txt").read_text("utf-8")
    ids = open_model(source).tokenizer.encode(prose[: 8 * WINDOW * WINDOWS])
    stride = WINDOW - START
    starts = range(0, stride * WINDOWS, stride)
    return Text(source, [list(ids[start : start + WINDOW]) for start in starts])


@pytest.fixture(scope="module")
def expected(text: Text) -> float:
    """The perplexity by the reference, which is numpy alone."""
    windows = [Window(tuple(ids), START) for ids in text.windows]
    rated = Reference(open_model(text.source)).rate_windows(windows)
    return perplexity([each.log_likelihoods for part in rated for each in part])


class Measured(NamedTuple):
    """What a framework says with one artifact."""

    perplexity: float
    weight_bytes: int | None


@pytest.fixture(scope="module")
def measured(text: Text, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Measured]:
    """What a framework says with an artifact that is made for it, once for all tests."""
    folder = tmp_path_factory.mktemp("artifacts")
    known: dict[tuple[str, str], Measured] = {}

    def found(runner: str, quantization: str) -> Measured:
        key = (runner, quantization)
        if key not in known:
            with opened(runner, quantization, text, folder) as each:
                scores = [each.score(ids, START) for ids in text.windows]
                told = each.model.weight_bytes_per_token
            known[key] = Measured(perplexity([one.log_likelihoods for one in scores]), told)
        return known[key]

    return found


@contextmanager
def opened(runner: str, quantization: str, text: Text, folder: Path) -> Iterator[Any]:
    """A framework with an artifact of the model; its context is as long as a window."""
    made: Any = runner_class(runner)()
    suffix = getattr(made, "ARTIFACT_SUFFIX", "")
    target = folder / f"{runner}-{quantization}{suffix}"
    options = CONVERT.get(runner, {})
    made.convert(ConvertRequest(str(text.source), quantization, str(target), options))
    options = {"threads": 1, **LOAD.get(runner, {})}
    with loaded(runner, folder / "runner.log", target, WINDOW, options) as each:
        yield each


def perplexity(log_likelihoods: Any) -> float:
    """Of all scored tokens together."""
    joined = np.concatenate([np.asarray(each, np.float64) for each in log_likelihoods])
    assert len(joined) == WINDOWS * (WINDOW - START)
    return float(np.exp(-joined.mean()))


@pytest.mark.parametrize(
    ("runner", "quantization"),
    [of("llama.cpp", "F16"), of("mnn", "fp16"), of("mediapipe", "fp16"), of("mlc", "q0f32")],
)
def test_exact_weights_give_the_perplexity_of_the_reference(
    measured: Callable[..., Measured], expected: float, runner: str, quantization: str
) -> None:
    """Within 0.1 %: it is the same model on the same tokens, each given the same ones before."""
    found = measured(runner, quantization).perplexity
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("runner", "coarse", "fine"),
    [
        of("llama.cpp", "Q4_0", "Q8_0"),
        of("mnn", "int4", "int8"),
        of("mediapipe", "int4", "int8"),
        of("mlc", "q4f32_1", "q0f32"),
    ],
)
def test_fewer_bits_are_not_better(
    measured: Callable[..., Measured], runner: str, coarse: str, fine: str
) -> None:
    """4 bits cost perplexity against 8, or against all of them where a framework has no 8."""
    few, many = measured(runner, coarse), measured(runner, fine)
    assert few.perplexity >= many.perplexity


# Of SmolLM2: its configuration's numbers. The embedding is the output layer as well.
VOCABULARY, HIDDEN, INNER, KEYS, LAYERS = 49152, 576, 1536, 192, 30
NORMS = (2 * LAYERS + 1) * HIDDEN
OUTPUTS = VOCABULARY + LAYERS * (3 * HIDDEN + 2 * KEYS + 2 * INNER)
MATRICES = HIDDEN * (VOCABULARY + LAYERS * (2 * HIDDEN + 2 * KEYS + 3 * INNER))


@pytest.mark.parametrize(
    ("runner", "quantization", "expected_bytes"),
    [
        # A norm's weights, and as many zeros; a scale and a zero point in two bytes for 64 weights.
        of("mnn", "int8", MATRICES + MATRICES // 64 * 4 + 2 * 4 * NORMS),
        # Zeros for biases in float32.
        of("mnn", "fp16", 2 * MATRICES + 4 * OUTPUTS + 2 * 4 * NORMS),
        # A scale in float32 for each row.
        of("mediapipe", "int8", MATRICES + 4 * OUTPUTS + 4 * NORMS),
        of("mlc", "q0f32", 4 * (MATRICES + NORMS)),
        # A scale in float32 for 32 weights.
        of("mlc", "q4f32_1", MATRICES // 2 + MATRICES // 32 * 4 + 4 * NORMS),
    ],
)
def test_what_a_token_reads_is_told(
    measured: Callable[..., Measured], runner: str, quantization: str, expected_bytes: int
) -> None:
    """Exactly, by the shapes of the model and how each framework keeps its weights."""
    assert measured(runner, quantization).weight_bytes == expected_bytes
