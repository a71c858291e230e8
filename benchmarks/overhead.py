"""How much of a run's wall time is neither loading, nor warming up, nor measuring.

Runs the built-in scenario as a user does and takes the whole command's time, from the start of
Python to the written report. The limit is 10 %.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "edgebench", "run", "smollm2-135m", "--json"]
        command += ["--repetitions", "5", "--out", folder]
        # Once before, so that the model has been fetched and converted.
        subprocess.run([*command, "--quick"], check=True, capture_output=True)
        begun = time.perf_counter()
        done = subprocess.run(command, check=True, capture_output=True)
        wall_s = time.perf_counter() - begun
        record = json.loads((Path(json.loads(done.stdout)["run_dir"]) / "run.json").read_text())
    spent = record["accounting"]
    useful_s = spent["load_s"] + spent["warmup_s"] + spent["measured_s"]
    inside = spent["prepare_s"] + spent["start_s"] + spent["overhead_s"]
    rows = {
        "loads, warm-ups, measured work": useful_s,
        "preparing": spent["prepare_s"],
        "starting processes": spent["start_s"],
        "rest of the run": spent["overhead_s"],
        "Python's start, reports": wall_s - useful_s - inside,
        "whole command": wall_s,
    }
    for name, seconds in rows.items():
        print(f"{name:32}{seconds:8.2f} s {seconds / wall_s:8.1%}")
    print(f"{'overhead':32}{wall_s - useful_s:8.2f} s {1 - useful_s / wall_s:8.1%}  at most 10 %")


if __name__ == "__main__":
    main()
