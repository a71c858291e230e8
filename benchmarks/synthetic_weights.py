"""How long synthetic weights take to make, and how much memory: each shape in a process of its own.

The largest takes 3.6 GiB of disk while it is made; each file is removed before the next.

Usage: python benchmarks/synthetic_weights.py [SHAPE ...] [--quantization Q4_0] [--folder FOLDER]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from edgebench.harness.store.sources import SyntheticSource, parse_source
from edgebench.harness.store.synthetic import Wanted
from edgebench.models.shapes import SHAPES
from edgebench.models.synthetic import write_synthetic

MIB = 1 << 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*", metavar="SHAPE", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--quantization", default="Q4_0", choices=["Q4_0", "Q8_0", "F16"])
    parser.add_argument("--folder", type=Path, help="where to make them")
    parser.add_argument("--child", metavar="FILE", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if unknown := set(arguments.shapes) - set(SHAPES):
        parser.error(f"no shape is named {', '.join(sorted(unknown))}")
    if arguments.child:
        make(arguments.shapes[0], arguments.quantization, Path(arguments.child))
        return
    print("| shape | file, MiB | s | of a processor, s | peak of memory, MiB |")
    print("|---|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        for key in arguments.shapes or SHAPES:
            path = Path(folder) / f"{key}.gguf"
            words = [sys.executable, __file__, key, "--quantization", arguments.quantization]
            done = subprocess.run(
                [*words, "--child", str(path)], check=True, capture_output=True, text=True
            )
            took = json.loads(done.stdout)
            size = path.stat().st_size / MIB
            path.unlink()
            print(
                f"| {key} | {size:.0f} | {took['s']:.1f} | {took['cpu_s']:.1f} "
                f"| {took['peak_bytes'] / MIB:.0f} |",
                flush=True,
            )


def make(key: str, quantization: str, path: Path) -> None:
    """Make one file, and print what it took."""
    source = parse_source(f"synthetic:{key}@{quantization}")
    assert isinstance(source, SyntheticSource)
    wanted = Wanted.of(source, SHAPES)
    begun, begun_cpu = time.perf_counter(), time.process_time()
    write_synthetic(wanted.shape, wanted.quantization, path, text=wanted.text)
    took = {
        "s": time.perf_counter() - begun,
        "cpu_s": time.process_time() - begun_cpu,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(took))


if __name__ == "__main__":
    main()
