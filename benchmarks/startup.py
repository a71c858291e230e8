"""How long ``edgebench --version`` and ``--help`` take beside an empty Python.

The two run in turn; the limit is 2.5 times the time of ``python -c pass`` plus 60 ms.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

ROUNDS = 25


def main() -> None:
    script = str(Path(sys.executable).with_name("edgebench"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "edgebench --version": [script, "--version"],
        "edgebench --help": [script, "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            begun = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)
            times[name].append(time.perf_counter() - begun)
    limit = 2.5 * median(times["python -c pass"]) + 0.060
    for name, values in times.items():
        note = "" if name.startswith("python") else f"  at most {limit * 1000:.0f} ms"
        print(f"{name:22}{median(values) * 1000:8.1f} ms{note}")


if __name__ == "__main__":
    main()
