"""What the GitHub action does first: edgebench in a virtual environment of its own.

Other steps of the job find the command too, but no other program of that environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from pathlib import Path


def main() -> int:
    """Install from this checkout; pip's exit status."""
    source = Path(__file__).resolve().parents[1]
    extras = re.sub(r"\s", "", os.environ.get("EDGEBENCH_ACTION_EXTRAS", ""))
    if not re.fullmatch(r"[a-z0-9,._-]*", extras):
        sys.stdout.write("::error title=edgebench::extras are names, separated by commas\n")
        return 2
    more = os.environ.get("EDGEBENCH_ACTION_INSTALL", "").splitlines()
    home = Path(os.environ.get("RUNNER_TEMP", ".")).resolve() / "edgebench"
    environment = home / "venv"
    if not (environment / "bin" / "python").exists():
        venv.create(environment, with_pip=True)
    done = subprocess.run(
        [
            environment / "bin" / "python", "-m", "pip", "install",
            f"{source}[{extras}]" if extras else str(source),
            *(line.strip() for line in more if line.strip()),
        ],
        check=False,
    )  # fmt: skip
    if done.returncode:
        return done.returncode
    programs = home / "bin"
    programs.mkdir(exist_ok=True)
    link = programs / "edgebench"
    link.unlink(missing_ok=True)
    link.symlink_to(environment / "bin" / "edgebench")
    path = os.environ.get("GITHUB_PATH")
    if path:
        with Path(path).open("a", encoding="utf-8") as paths:
            paths.write(f"{programs}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
