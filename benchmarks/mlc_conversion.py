"""How long it takes to make a folder for MLC with TVM alone, and how much memory.

The library is built in at most 30 s and 2 GB, whatever the model; the shape of Llama-2-7B becomes
q4f32_1 in at most 4 GB. Each runs in a process of its own, whose peak is the kernel's.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from conversion_support import LARGE, MEDIUM, SMALL, child, measure, model_path, report

from edgebench.runners.base import ConvertRequest
from edgebench.runners.mlc_config import sizes
from edgebench.runners.mlc_convert import Recipe, make_folder
from edgebench.runners.mlc_layout import OWN
from edgebench.runners.tvm_build import Tools, build_library

if TYPE_CHECKING:
    from collections.abc import Callable

    from edgebench.models.canonical import CanonicalModel
    from edgebench.runners.mlc_layout import Quantization

LIBRARY = "library of "
"""Before a quantisation: nothing but the library is made."""

BUILD_LIMIT = "at most 30 s and 2 GB"
LIMITS = {SMALL: "", MEDIUM: "", LARGE: "at most 4 GB"}


def library(quantization: Quantization, target: Path) -> Callable[[CanonicalModel], object]:
    """Builds the library alone."""

    def build(model: CanonicalModel) -> None:
        architecture = model.architecture
        shared = sizes(architecture, quantization, architecture.context_tokens, 512)
        build_library(architecture, quantization, shared, Tools.find(quantization), target)

    return build


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="the large one too: 5 GB of disk")
    parser.add_argument("--small", action="store_true", help="only the small one: 1 GB of disk")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    parser.add_argument(
        "--folder", type=Path, help="where to make them, instead of a temporary one"
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, made, target = arguments.child
        quantization = made.removeprefix(LIBRARY)
        if made != quantization:
            child(name, library(OWN[quantization], Path(target)))
        else:
            recipe = Recipe.of(ConvertRequest("", quantization, ""))
            child(name, lambda model: make_folder(model, recipe, Path(target)))
        return
    model_path()
    names = [SMALL] if arguments.small else [SMALL, MEDIUM, LARGE]
    cases = [(name, LIBRARY + each) for name in names for each in ("q0f32", "q4f32_1")]
    cases += [(name, each) for name in names[:2] for each in OWN]
    if arguments.large:
        cases.append((LARGE, "q4f32_1"))
    figures = []
    for name, made in cases:
        cost = measure(__file__, name, made, arguments.folder)
        report(name, made, cost, BUILD_LIMIT if made.startswith(LIBRARY) else LIMITS[name])
        figures.append({"model": name, "made": made, **asdict(cost)})
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
