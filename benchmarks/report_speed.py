"""How long, and with how much memory, the reports of a large run are made; and how large they are.

The runs are synthetic: their numbers are made up, only their amount is real. To reach: a report of
10,000 trials of 128 tokens, in all its forms, in at most 5 s and 500 MB; a page of at most 3 MB for
4 frameworks x 4 workloads x 20 repetitions.

    python benchmarks/report_speed.py [--trials 10000] [--keep DIR] [--profile]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebench.harness.results.model import VariantRecord, WorkloadRecord
from edgebench.harness.results.trial import Trial

if TYPE_CHECKING:
    from types import ModuleType

MOST_S = 5.0
MOST_BYTES = 500_000_000
MOST_PAGE_BYTES = 3_000_000
TOKENS = 128
PER_BLOCK = 5
TIMELINE_SAMPLES = 40
FRAMEWORKS = {
    # runner: its engine, and a made-up decode rate
    "llama.cpp": ("llama.cpp", 92.0),
    "mnn": ("MNN", 96.0),
    "mediapipe": ("LiteRT-LM", 80.0),
    "mlc": ("TVM", 60.0),
}
REPETITIONS = 20
SUPPORT = Path(__file__).parents[1] / "tests" / "support"

MEASURE = """
import json, resource, sys, time
begin = time.perf_counter()
from edgebench.reports.write import FORMATS, write_reports
made = write_reports(sys.argv[1], formats=FORMATS)
wall_s = time.perf_counter() - begin
unit = 1 if sys.platform == "darwin" else 1024
used = resource.getrusage(resource.RUSAGE_SELF)
peak = used.ru_maxrss * unit
cpu_s = used.ru_utime + used.ru_stime
sizes = {each.name: each.stat().st_size for each in made}
print(json.dumps({"wall_s": wall_s, "cpu_s": cpu_s, "peak_bytes": peak, "sizes": sizes}))
"""
PROFILE = """
import cProfile, pstats, sys
from edgebench.reports.write import FORMATS, write_reports
profile = cProfile.Profile()
profile.runcall(write_reports, sys.argv[1], formats=FORMATS)
pstats.Stats(profile).sort_stats("cumulative").print_stats("edgebench|reports", 60)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="write the synthetic runs here and keep them")
    parser.add_argument("--profile", action="store_true", help="show where the time goes instead")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        many, usual = folder / "many-trials", folder / "four-by-four"
        trials = write_synthetic_run(many, given.trials)
        if given.profile:
            subprocess.run([sys.executable, "-c", PROFILE, str(many)], check=True)
            return 0
        write_four_by_four(usual)
        large, page = _measure(many), _measure(usual)
    print(f"load average when it began: {os.getloadavg()[0]:.2f}")
    rows = [
        ("trials (synthetic)", f"{trials}", ""),
        *((name, f"{size / 1e6:.2f} MB", "") for name, size in large["sizes"].items()),
        ("wall time, imports included", f"{large['wall_s']:.2f} s", f"at most {MOST_S:g} s"),
        ("CPU time, for a busy machine", f"{large['cpu_s']:.2f} s", ""),
        (
            "peak memory",
            f"{large['peak_bytes'] / 1e6:.0f} MB",
            f"at most {MOST_BYTES / 1e6:.0f} MB",
        ),
        ("4 frameworks x 4 workloads", f"x {REPETITIONS}", ""),
        (
            "report.html",
            f"{page['sizes']['report.html'] / 1e6:.2f} MB",
            f"at most {MOST_PAGE_BYTES / 1e6:g} MB",
        ),
        ("wall time, imports included", f"{page['wall_s']:.2f} s", ""),
    ]
    for name, value, limit in rows:
        print(f"{name:30} {value:>12}  {limit}")
    reached = (
        large["wall_s"] <= MOST_S
        and large["peak_bytes"] <= MOST_BYTES
        and page["sizes"]["report.html"] <= MOST_PAGE_BYTES
    )
    return 0 if reached else 1


def write_synthetic_run(folder: Path, trials: int) -> int:
    """Write a run of at least so many trials; returns how many."""
    support = load_support("sample_run")
    sample = support.sample(
        workloads=[_workload(512)],
        crash=None,
        per_block=PER_BLOCK,
        timeline_samples=TIMELINE_SAMPLES,
    )
    # One load and three warm-ups come with each block of a variant.
    sample.blocks = math.ceil(trials / (len(sample.variants) * (PER_BLOCK + 4)))
    sample.write(folder)
    with (folder / "trials.jsonl").open("rb") as lines:
        first = next(lines)
        Trial.model_validate_json(first)
        return 1 + sum(1 for _ in lines)


def write_four_by_four(folder: Path) -> None:
    """Write a run of four frameworks on four workloads, 20 repetitions each."""
    support = load_support("sample_run")
    variants = {}
    for runner, (engine, rate) in FRAMEWORKS.items():
        variant = VariantRecord(
            id=f"{runner} q4 threads=2",
            runner=runner,
            quantization="q4",
            options={"threads": 2},
            engine=engine,
            engine_version="1.0",
            artifact=support.llama_variant("Q4_0", {}, f"{runner}-q4", 91_000_000).artifact,
        )
        variants[variant.id] = (variant, support.Speed(7 * rate, rate, 58.0, 94.0))
    blocks = REPETITIONS // 2
    sample = support.Sample(
        variants,
        [_workload(prompt) for prompt in (64, 256, 512, 1024)],
        blocks=blocks,
        per_block=2,
        timeline_samples=TIMELINE_SAMPLES,
    )
    sample.write(folder)


def load_support(name: str) -> ModuleType:
    """A module of tests/support, which is no package."""
    spec = importlib.util.spec_from_file_location(name, SUPPORT / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _workload(prompt: int) -> WorkloadRecord:
    return WorkloadRecord(
        name=f"pp{prompt}-tg{TOKENS}",
        description="synthetic",
        prompt_tokens=prompt,
        generate_tokens=TOKENS,
    )


def _measure(folder: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
