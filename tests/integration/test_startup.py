"""What the command line imports before it has something to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = (
    "pandas",
    "matplotlib",
    "numpy",
    "scipy",
    "pydantic",
    "rich",
    "llama_cpp",
    "jinja2",
    "ruamel",
)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_help_and_version_import_nothing_heavy(arguments: list[str]) -> None:
    """No framework, no pandas, no matplotlib, nor anything else that takes time."""
    script = (
        "import sys\n"
        "from edgebench.cli.main import run_command_line\n"
        f"status = run_command_line({arguments!r})\n"
        f"print('heavy:', [name for name in {HEAVY!r} if name in sys.modules], status)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: [] 0"


def test_a_runners_process_imports_nothing_of_the_harness() -> None:
    """The worker runs on the standard library until its runner imports its framework."""
    script = (
        "import sys\n"
        "import edgebench.runners.worker, edgebench.runners.llama_cpp, edgebench.runners.fake\n"
        "print([name for name in sys.modules if name.startswith(('edgebench.harness', 'numpy',"
        " 'pydantic', 'llama_cpp'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
