"""How long conversion to LiteRT-LM takes, and how much memory.

SmolLM2-135M in at most 10 s and 1 GB, the shape of TinyLlama-1.1B in at most 60 s and 3 GB, that of
Llama-2-7B to int4 in at most 4 GB. Each conversion runs in a process of its own, whose peak is the
kernel's.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from conversion_support import LARGE, MEDIUM, SMALL, STORED, child, measure, model_path, report

from edgebench.runners.base import ConvertRequest
from edgebench.runners.litert_convert import Recipe, make_bundle
from edgebench.runners.litert_settings import QUANTIZATIONS

LIMITS = {SMALL: "at most 10 s and 1 GB", MEDIUM: "at most 60 s and 3 GB", LARGE: "at most 4 GB"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="the large one too: 8 GB of disk")
    parser.add_argument("--small", action="store_true", help="only the small one: 1 GB of disk")
    parser.add_argument("--stored", action="store_true", help="only one from Q4_0: 2 GB of disk")
    parser.add_argument(
        "--folder", type=Path, help="where to make them, instead of a temporary one"
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, quantization, target = arguments.child
        recipe = Recipe.of(ConvertRequest("", quantization, ""))
        child(name, lambda model: make_bundle(model, recipe, Path(target)))
        return
    cases = [(STORED, "int4")]
    if not arguments.stored:
        model_path()
        cases += [(SMALL, quantization) for quantization in QUANTIZATIONS]
    if not arguments.small and not arguments.stored:
        cases += [(MEDIUM, quantization) for quantization in QUANTIZATIONS]
    if arguments.large:
        cases.append((LARGE, "int4"))
    for name, quantization in cases:
        cost = measure(__file__, name, quantization, arguments.folder, "made.litertlm")
        report(name, quantization, cost, LIMITS.get(name, ""))


if __name__ == "__main__":
    main()
