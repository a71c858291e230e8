"""How long conversion to MNN takes, and how much memory.

SmolLM2-135M to int4 in at most 30 s and 1.5 GB, the shape of Llama-2-7B to int4 in at most 4 GB.
Each conversion runs in a process of its own, whose peak is the kernel's.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, cast

from conversion_support import LARGE, SMALL, STORED, child, measure, model_path, report

from edgebench.runners.mnn_convert import make_folder
from edgebench.runners.mnn_quantize import PRECISIONS
from edgebench.runners.mnn_weights import Format

if TYPE_CHECKING:
    from edgebench.runners.mnn_quantize import Precision

LIMITS = {(SMALL, "int4"): "at most 30 s and 1.5 GB", (LARGE, "int4"): "at most 4 GB"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", action="store_true", help="the large one too: 4 GB of disk")
    parser.add_argument("--stored", action="store_true", help="only one from Q4_0: 2 GB of disk")
    parser.add_argument(
        "--folder", type=Path, help="where to make them, instead of a temporary one"
    )
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        name, precision, target = arguments.child
        form = Format(cast("Precision", precision), 32)
        child(name, lambda model: make_folder(model, form, form, Path(target)))
        return
    cases = [(STORED, "int4")]
    if not arguments.stored:
        model_path()
        cases += [(SMALL, precision) for precision in reversed(PRECISIONS)]
    for name, precision in [*cases, *([(LARGE, "int4")] if arguments.large else [])]:
        cost = measure(__file__, name, precision, arguments.folder)
        report(name, precision, cost, LIMITS.get((name, precision), ""))


if __name__ == "__main__":
    main()
