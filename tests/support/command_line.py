"""The command line in a process of its own, as its users have it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def outside_ci() -> dict[str, str]:
    """The environment without what a worker of pytest-xdist, or a CI, leaves in it.

    A session of pytest that inherits the former takes itself for a worker, where pytest-benchmark
    measures nothing and warns; one that inherits the latter prints lines of any length.
    """
    return {
        key: text
        for key, text in os.environ.items()
        if "XDIST" not in key and key not in {"CI", "BUILD_NUMBER"}
    }


def edgebench(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run it on 80 columns without colours, with `environment` added to the test's own."""
    return subprocess.run(
        [sys.executable, "-m", "edgebench", *map(str, arguments)],
        capture_output=True, text=True, check=False, cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "80", **environment},
    )  # fmt: skip
