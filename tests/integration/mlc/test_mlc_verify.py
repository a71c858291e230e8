"""`edgebench verify` on a library that edgebench builds: exact weights, and those of 4 bits."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from mlc_library import put_in
from tiny_models import tiny_folder

from edgebench.runners.base import ConvertRequest
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

SCENARIO = """\
schema_version: 1
name: kept
model: {name: tiny, source: 'path:kept'}
variants:
  - {runner: mlc, quantization: q4f32_1, compiler: edgebench}
workloads:
  - {name: told, prompt: 'It was the best of times 1789', generate_tokens: 12}
"""


def test_weights_of_four_bits_agree_with_what_they_stand_for(tmp_path: Path) -> None:
    """A model that consists of weights of q4f32_1 loses nothing when it is made q4f32_1 again.

    The greatest of a group has the greatest code, so that scale and codes come out as they were:
    what `verify` sees is the conversion and the library alone.
    """
    model = tiny_folder(tmp_path / "source", "llama")
    made = ConvertRequest(
        str(tmp_path / "source"), "q4f32_1", str(tmp_path / "made"), {"compiler": "edgebench"}
    )
    MlcRunner().convert(made)
    shutil.copytree(tmp_path / "source", tmp_path / "kept")
    put_in(model, tmp_path / "made")
    model.save_pretrained(tmp_path / "kept")
    (tmp_path / "kept.yaml").write_text(SCENARIO, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "verify", "kept.yaml", "--json"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "EDGEBENCH_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (variant,) = json.loads(done.stdout)["variants"]
    assert variant["framework"] == "TVM, built by edgebench"
    same = variant["sameness"]
    assert (same["verdict"], same["not_judged_because"]) == ("not_judged", "q4f32_1 weights")
    assert same["metrics"]["kl_divergence"]["value"] < 1e-8
    assert same["metrics"]["log_likelihood_difference_max"]["value"] < 1e-4
    assert same["metrics"]["top1_agreement"]["value"] == 1.0
    (prompt,) = same["prompts"]
    assert prompt["common_tokens"] == prompt["generated_tokens"] == 12
