"""Neither converting nor running takes torch, jax or tensorflow along."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tiny_models import TEXT, tiny_folder

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]

LIMIT_S = 240
HEAVY = ("torch", "jax", "jaxlib", "tensorflow", "transformers")

WORK = """
import json, os, sys
source, place, prompt = sys.argv[1:4]
heavy = json.loads(sys.argv[4])
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in heavy:
            print("IMPORTED", name, flush=True)
sys.meta_path.insert(0, Watch())
from edgebench.runners.base import ConvertRequest, GenerateRequest, LoadRequest
from edgebench.runners.mediapipe import MediaPipeRunner
runner = MediaPipeRunner()
options = {"cache_length": 64, "prefill_lengths": "8,16"}
for quantization in runner.QUANTIZATIONS:
    artifact = f"{place}/{quantization}.litertlm"
    runner.convert(ConvertRequest(source, quantization, artifact, options))
    runner.load(LoadRequest(artifact, 32, {"threads": 1}))
    ids = runner.tokenize(prompt)
    made = runner.generate(GenerateRequest(ids, 4, prompt_text=prompt))
    assert len(made.token_ids) == 4
    runner.close()
%s
print("LOADED", sorted({name.split(".")[0] for name in sys.modules} & set(heavy)), flush=True)
os._exit(0)
"""


def run(place: Path, more: str = "") -> str:
    """What a process prints that converts and runs every quantisation, and then does more."""
    import json

    tiny_folder(place / "source", "llama")
    arguments = [str(place / "source"), str(place), TEXT[:30], json.dumps(HEAVY)]
    done = subprocess.run(
        [sys.executable, "-c", WORK % more, *arguments],
        capture_output=True,
        text=True,
        errors="replace",
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_converting_and_running_import_nothing_heavy(tmp_path: Path) -> None:
    """All quantisations: nothing of the kind is even looked for."""
    said = run(tmp_path)
    assert "IMPORTED" not in said
    assert "LOADED []" in said


def test_an_import_of_torch_would_be_noticed(tmp_path: Path) -> None:
    """This is what the test above would show."""
    said = run(tmp_path, "import torch")
    assert "IMPORTED torch" in said
    assert "LOADED ['torch'" in said
