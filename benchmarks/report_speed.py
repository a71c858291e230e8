"""How long, and with how much memory, the reports of a large run are made.

The run is synthetic: its numbers are made up, only their amount is real. To reach: a report of
10,000 trials of 128 tokens in at most 5 s and 500 MB.

    python benchmarks/report_speed.py [--trials 10000] [--keep DIR]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from edgebench.harness.results.model import Trial, WorkloadRecord

if TYPE_CHECKING:
    from types import ModuleType

MOST_S = 5.0
MOST_BYTES = 500_000_000
TOKENS = 128
PER_BLOCK = 5
TIMELINE_SAMPLES = 40
SAMPLE = Path(__file__).parents[1] / "tests" / "support" / "sample_run.py"

MEASURE = """
import json, resource, sys, time
begin = time.perf_counter()
from edgebench.reports.write import write_reports
write_reports(sys.argv[1])
wall_s = time.perf_counter() - begin
unit = 1 if sys.platform == "darwin" else 1024
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
print(json.dumps({"wall_s": wall_s, "peak_bytes": peak}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="write the synthetic run here and keep it")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary) / "synthetic"
        trials = write_synthetic_run(folder, given.trials)
        done = subprocess.run(
            [sys.executable, "-c", MEASURE, str(folder)], check=True, capture_output=True, text=True
        )
        found = json.loads(done.stdout)
        sizes = {
            file.name: file.stat().st_size
            for file in map(folder.joinpath, ("trials.jsonl", "report.html", "report.md"))
        }
    rows = [
        ("trials (synthetic)", f"{trials}", ""),
        *((name, f"{size / 1e6:.1f} MB", "") for name, size in sizes.items()),
        ("wall time, imports included", f"{found['wall_s']:.2f} s", f"at most {MOST_S:g} s"),
        (
            "peak memory",
            f"{found['peak_bytes'] / 1e6:.0f} MB",
            f"at most {MOST_BYTES / 1e6:.0f} MB",
        ),
    ]
    for name, value, limit in rows:
        print(f"{name:30} {value:>12}  {limit}")
    return 0 if found["wall_s"] <= MOST_S and found["peak_bytes"] <= MOST_BYTES else 1


def write_synthetic_run(folder: Path, trials: int) -> int:
    """Write a run of at least so many trials; returns how many."""
    support = _load(SAMPLE)
    workload = WorkloadRecord(
        name="pp512-tg128", description="synthetic", prompt_tokens=512, generate_tokens=TOKENS
    )
    sample = support.sample(
        workloads=[workload], crash=None, per_block=PER_BLOCK, timeline_samples=TIMELINE_SAMPLES
    )
    # One load and three warm-ups come with each block of a variant.
    sample.blocks = math.ceil(trials / (len(sample.variants) * (PER_BLOCK + 4)))
    sample.write(folder)
    with (folder / "trials.jsonl").open("rb") as lines:
        first = next(lines)
        Trial.model_validate_json(first)
        return 1 + sum(1 for _ in lines)


def _load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
