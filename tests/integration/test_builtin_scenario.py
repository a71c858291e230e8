"""The shipped scenario, as its user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.llama_cpp, pytest.mark.mnn, pytest.mark.mediapipe, pytest.mark.mlc]


def test_the_frameworks_run_the_same_model_end_to_end(tmp_path: Path) -> None:
    """`edgebench run smollm2-135m --quick`: every cell measured, one table, sameness shown."""
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "run", "smollm2-135m", "--quick", "--json",
         "--out", str(tmp_path)],
        capture_output=True, text=True, check=False, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = read_run(json.loads(done.stdout)["run_dir"])
    assert [cell.status for cell in run.record.cells] == ["ok"] * len(run.record.cells)
    variants = {variant.id: variant for variant in run.record.variants}
    assert {variant.engine for variant in variants.values()} == {
        "llama.cpp",
        "MNN",
        "LiteRT-LM",
        "TVM, built by edgebench",
    }
    own = [variant.id for variant in variants.values() if variant.framework is None]
    assert "mlc q4f32_1 threads=2" not in own
    assert len(run.record.cells) == 3 * len(variants)
    for variant in variants.values():
        assert variant.artifact is not None
        assert variant.artifact.parameters == 134_515_008
        assert variant.sameness is not None
        assert variant.sameness.verdict == "not_judged"
    proofs = [proof.sameness and proof.sameness.verdict for proof in run.record.proofs]
    assert proofs == ["agrees"] * 4
    prompts = {(load.workload, load.tokens.prompt_tokens) for load in run.trials if load.tokens}
    assert len(prompts) == 2  # one length a workload, whatever the framework
    for trial in run.trials:
        if trial.tokens is None:
            continue
        assert trial.tokens.finish_reason == "length"
        # Weights are counted, mapped or not: memory is more than most of the file.
        peak = trial.metrics["peak_rss_bytes"].value
        artifact = variants[trial.variant].artifact
        assert peak is not None
        assert artifact is not None
        assert peak > 0.8 * artifact.bytes
        if variants[trial.variant].runner == "llama.cpp":
            assert variants[trial.variant].effective_options["load_mode"] == "mmap"
            mapped = trial.metrics["peak_file_bytes"].value
            assert mapped is not None
            assert peak > mapped > 0.8 * artifact.bytes
    (protocol,) = (each.quality for each in run.record.workloads if each.quality)
    assert protocol.windows == protocol.windows_planned
    assert protocol.reference is not None
    for cell in run.record.cells:
        if cell.workload == "prose":
            ratio = cell.metrics["perplexity_ratio"].median
            assert ratio is not None
            assert 0.9 < ratio < 2
            rates_others = variants[cell.variant].runner != "mediapipe"
            assert (cell.metrics["kl_divergence"].median is not None) == rates_others
    frame = run.to_frame()
    rates = frame[(frame.metric == "decode_rate") & (frame.phase == "measured")]
    assert len(rates) == 2 * 2 * len(variants)
    assert (rates.value > 0).all()
