"""One model through all real frameworks in one run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from command_line import edgebench
from tiny_models import tiny_folder

from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.llama_cpp,
    pytest.mark.mnn,
    pytest.mark.mediapipe,
    pytest.mark.mlc,
    pytest.mark.transformers,
]

SCENARIO = """\
schema_version: 1
name: all
model: {name: tiny, source: 'path:tiny'}
verify: true
variants:
  - {runner: llama.cpp, quantization: F32, threads: 1}
  - {runner: mnn, quantization: fp32, threads: 1}
  - {runner: mediapipe, quantization: fp32, threads: 1, cache_length: 128}
  - {runner: mediapipe, quantization: fp16, threads: 1, cache_length: 128}
  - {runner: mlc, quantization: q0f32, threads: 1}
  - {runner: mnn, quantization: int8, block_size: 40, threads: 1}
workloads:
  - {name: told, prompt: 'It was the best of times 1789', generate_tokens: 12}
measure: {warmup: {min: 1, max: 1}, repetitions: {min: 3, max: 3}, timeout_s: 60}
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The folder of a run whose last variant can't be made, and what the run printed."""
    folder = tmp_path_factory.mktemp("all")
    tiny_folder(folder / "tiny", "llama")
    (folder / "all.yaml").write_text(SCENARIO, encoding="utf-8")
    ran = edgebench("run", "all.yaml", "--json", cwd=folder, EDGEBENCH_CACHE=str(folder / "cache"))
    assert ran.returncode == 3, ran.stderr
    return folder, json.loads(ran.stdout)


def test_a_failed_cell_stands_beside_good_ones(done: tuple[Path, Any]) -> None:
    """Blocks of 40 divide neither 64 nor 96: that variant fails by name, the rest is measured."""
    folder, printed = done
    cells = {cell["variant"]: cell for cell in printed["cells"]}
    assert [cell["status"] for cell in cells.values()] == ["ok"] * 5 + ["failed"]
    (failed,) = (cell for cell in cells.values() if cell["status"] == "failed")
    assert "block_size" in failed["failure"]["message"]
    assert "these fit: 16, 32" in failed["failure"]["message"]
    report = (folder / printed["report"]["markdown"]).read_text(encoding="utf-8")
    assert failed["failure"]["message"].split(";")[0] in " ".join(report.split())


def test_the_frameworks_are_shown_to_run_the_same_model(done: tuple[Path, Any]) -> None:
    """A Hugging Face folder reaches all; they agree with the reference, and in their text."""
    folder, printed = done
    run = read_run(folder / printed["run_dir"])
    assert run.record.reference is not None
    verdicts = [variant.sameness and variant.sameness.verdict for variant in run.record.variants]
    assert verdicts == ["agrees"] * 5 + ["failed"]
    texts = {tuple(trial.tokens.generated_ids) for trial in run.trials if trial.tokens}
    # A model of random weights writes no whole characters, so one framework's text tells no ids.
    assert len({text for text in texts if None not in text}) == 1
    assert {trial.variant for trial in run.trials if trial.tokens} == {
        variant.id for variant in run.record.variants[:5]
    }


def test_the_frameworks_take_turns(done: tuple[Path, Any]) -> None:
    """Each block holds all, one process each."""
    folder, printed = done
    run = read_run(folder / printed["run_dir"])
    loads = [(trial.block, trial.variant) for trial in run.trials if trial.kind == "load"]
    good = sorted(variant.id for variant in run.record.variants[:5])
    for block in {block for block, variant in loads if variant in good}:
        assert sorted(variant for at, variant in loads if at == block and variant in good) == good


def test_what_was_made_is_verified_alone(done: tuple[Path, Any]) -> None:
    """`edgebench verify` says the same without measuring, as a table of 80 columns and in JSON."""
    folder, _ = done
    shown = edgebench("verify", "all.yaml", cwd=folder, EDGEBENCH_CACHE=str(folder / "cache"))
    assert shown.returncode == 3  # one could not be made
    assert "agrees" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    exact = edgebench(
        "verify",
        "all.yaml",
        "--runners",
        "llama.cpp",
        "--json",
        cwd=folder,
        EDGEBENCH_CACHE=str(folder / "cache"),
    )
    assert exact.returncode == 0
    (variant,) = json.loads(exact.stdout)["variants"]
    assert variant["sameness"]["verdict"] == "agrees"
    assert variant["sameness"]["metrics"]["top1_agreement"]["value"] == 1.0


def test_the_most_exact_artifacts_are_verified_and_not_measured(tmp_path: Path) -> None:
    """`verify: high_precision` adds F32, fp32 and q0f32, which must agree, and no cell."""
    tiny_folder(tmp_path / "tiny", "qwen2")
    text = SCENARIO[: SCENARIO.index("variants:")].replace("true", "high_precision")
    text += (
        "variants:\n  - {runner: llama.cpp, quantization: Q8_0, threads: 1}\n"
        "  - {runner: mnn, quantization: int8, block_size: 32, threads: 1}\n"
        "  - {runner: mediapipe, quantization: int8, cache_length: 128, threads: 1}\n"
        "  - {runner: mlc, quantization: q4f32_1, threads: 1}\n"
    )
    text += SCENARIO[SCENARIO.index("workloads:") :]
    (tmp_path / "all.yaml").write_text(text, encoding="utf-8")
    done = edgebench(
        "run",
        "all.yaml",
        "--quick",
        "--json",
        cwd=tmp_path,
        EDGEBENCH_CACHE=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert len(printed["cells"]) == 4
    run = read_run(tmp_path / printed["run_dir"])
    proofs = {proof.id: proof.sameness and proof.sameness.verdict for proof in run.record.proofs}
    assert proofs == {
        "llama.cpp F32 threads=1": "agrees",
        "mnn fp32 threads=1": "agrees",
        "mediapipe fp32 threads=1": "agrees",
        "mlc q0f32 threads=1": "agrees",
    }
    assert {trial.variant for trial in run.trials}.isdisjoint(proofs)
    for written in printed["report"].values():
        report = (tmp_path / written).read_text(encoding="utf-8")
        assert "4 of 4 in high precision agree" in report
        assert "mnn fp32 threads=1" in report
