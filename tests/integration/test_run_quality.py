"""Texts that are rated in a run, by the fake runner: known probabilities give known figures.

The source is a model whose weights are all zero, so that the reference calls each of 259 tokens as
likely as every other; so does the fake runner, unless it is told to prefer the blank.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from flat_model import VOCABULARY, write_model

from edgebench.harness.errors import ExitStatus, ScenarioError
from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario, RunFake

    from edgebench.harness.results.cell import Cell
    from edgebench.harness.results.run import Run

TEXT = "Ein Café, two cafés: naïve? 你好, and more of it. " * 4
QUALITY = "text: 'path:text.txt', window: 16, stride: 8, score_from: 8"
BLANK = " "


def write_scenario(
    folder: Path, *variants: str, quality: str = QUALITY, text: str = TEXT, more: str = "",
    workloads: str = "", measure: str = "{repetitions: {min: 2, max: 2}, timeout_s: 20}",
) -> Path:  # fmt: skip
    (folder / "text.txt").write_text(text, encoding="utf-8")
    if not (folder / "model").exists():
        write_model(folder / "model", 0.0)
    listed = "".join(f"  - {{runner: fake{', ' * bool(each)}{each}}}\n" for each in variants)
    path = folder / "scenario.yaml"
    path.write_text(
        "schema_version: 1\nname: rated\nmodel: {name: flat, source: 'path:model'}\n"
        f"variants:\n{listed}workloads:\n  - {{name: text, quality: {{{quality}}}}}\n"
        f"{workloads}measure: {measure}\n{more}",
        encoding="utf-8",
    )
    return path


def cell(run: Run, variant: str, workload: str = "text") -> Cell:
    (found,) = (
        each for each in run.record.cells if (each.variant, each.workload) == (variant, workload)
    )
    return found


def test_uniform_probabilities_give_the_size_of_the_vocabulary(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """Perplexity 259, log2(259) bits a byte, and no divergence from a reference that is as flat."""
    run = run_fake(write_scenario(tmp_path, ""))
    metrics = cell(run, "fake source").metrics
    assert metrics["perplexity"].median == pytest.approx(VOCABULARY)
    assert metrics["perplexity_ratio"].median == pytest.approx(1)
    assert metrics["bits_per_byte"].median == pytest.approx(math.log2(VOCABULARY))
    assert metrics["kl_divergence"].median == pytest.approx(0, abs=1e-9)
    assert metrics["kl_divergence_p99"].median == pytest.approx(0, abs=1e-9)
    assert metrics["top1_agreement"].median == 1
    assert metrics["scoring_rate"].median is not None


def test_known_probabilities_give_figures_computed_by_hand(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """Half for the blank, the rest shared: each figure follows from counting blanks."""
    run = run_fake(write_scenario(tmp_path, "probabilities: skewed"))
    # A start token and 15 bytes in each window; position 8 is byte 7.
    scored = TEXT.encode()[7:]
    blanks = scored.count(BLANK.encode())
    rare = 1 / (2 * (VOCABULARY - 1))
    log_likelihood = blanks * math.log(0.5) + (len(scored) - blanks) * math.log(rare)
    metrics = cell(run, "fake source probabilities=skewed").metrics
    assert metrics["perplexity"].median == pytest.approx(math.exp(-log_likelihood / len(scored)))
    assert metrics["bits_per_byte"].median == pytest.approx(
        -log_likelihood / math.log(2) / len(scored)
    )
    flat = 1 / VOCABULARY
    divergence = flat * math.log(flat / 0.5) + (1 - flat) * math.log(flat / rare)
    # The reference keeps 160 of the 259 and samples of the rest, which all differ alike.
    assert metrics["kl_divergence"].median == pytest.approx(divergence, rel=1e-6)
    assert metrics["kl_divergence_p99"].median == pytest.approx(divergence, rel=1e-6)
    # The reference's likeliest, of equals, is the first; the fake's is the blank.
    assert metrics["top1_agreement"].median == 0
    (workload,) = run.record.workloads
    protocol = workload.quality
    assert protocol is not None
    assert (protocol.scored_tokens, protocol.scored_bytes) == (len(scored), len(scored))
    assert protocol.windows == protocol.windows_planned == math.ceil(len(scored) / 8)
    assert protocol.bos_id == 1
    assert protocol.reference is not None
    assert protocol.reference.perplexity == pytest.approx(VOCABULARY)
    assert protocol.reference.bits_per_byte == pytest.approx(math.log2(VOCABULARY))


def test_characters_cut_at_windows_edges_are_counted_once(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """Of a text of three-byte characters, windows of any width count the bytes that they score."""
    text = "你好世界" * 8
    quality = "text: 'path:text.txt', window: 11, stride: 4, score_from: 6"
    run = run_fake(write_scenario(tmp_path, "", quality=quality, text=text))
    (trial,) = run.trials
    assert {window.tokens for window in trial.windows[1:-1]} == {4}
    # Each of a character's three bytes is a token, and counts as one byte.
    assert [window.bytes for window in trial.windows] == [each.tokens for each in trial.windows]
    scored = len(text.encode()) - 5
    assert sum(window.tokens for window in trial.windows) == scored


def test_a_model_of_another_vocabulary_has_no_divergence_and_keeps_its_bits(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """What can't be compared is null with the reason; bits per byte can."""
    run = run_fake(write_scenario(tmp_path, "vocabulary: 300", ""))
    metrics = cell(run, "fake source vocabulary=300").metrics
    for key in ("kl_divergence", "kl_divergence_p99", "top1_agreement"):
        assert metrics[key].median is None
        assert metrics[key].reason == "its vocabulary has 300 tokens and the reference's 259"
    assert metrics["bits_per_byte"].median == pytest.approx(math.log2(300))
    assert cell(run, "fake source").metrics["kl_divergence"].median is not None


@pytest.mark.parametrize(
    ("tells", "missing", "reason"),
    [
        ("likeliest", ["kl_divergence", "kl_divergence_p99"], "own tokens only"),
        ("candidates", ["top1_agreement"], "does not tell its likeliest token"),
    ],
)
def test_what_a_framework_hides_is_null_with_the_reason(
    tmp_path: Path, run_fake: RunFake, tells: str, missing: list[str], reason: str
) -> None:
    """The other figures are there."""
    run = run_fake(write_scenario(tmp_path, f"tells: {tells}"))
    metrics = cell(run, f"fake source tells={tells}").metrics
    assert {key for key, each in metrics.items() if each.median is None} == set(missing)
    assert all(reason in (metrics[key].reason or "") for key in missing)


def test_metrics_that_are_not_asked_for_need_no_reference(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """Only what was asked for is there, and nothing was rated for the rest."""
    run = run_fake(write_scenario(tmp_path, "", quality=f"{QUALITY}, metrics: [perplexity]"))
    metrics = cell(run, "fake source").metrics
    assert metrics["perplexity"].median == pytest.approx(VOCABULARY)
    assert metrics["bits_per_byte"].reason == "the scenario does not ask for bits_per_byte"
    assert metrics["kl_divergence_p99"].reason == "the scenario does not ask for kl_divergence"
    (workload,) = run.record.workloads
    assert workload.quality is not None
    assert workload.quality.reference is None
    assert workload.quality.no_reference == ""
    assert "no metric that needs a reference" in (metrics["perplexity_ratio"].reason or "")


def test_a_source_that_is_not_understood_has_perplexity_and_no_reference(
    make_scenario: MakeScenario, run_fake: RunFake, tmp_path: Path
) -> None:
    """The framework's own tokenizer makes the ids; their bytes and a reference are not known."""
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    run = run_fake(make_scenario("", workloads=f"[{{name: text, quality: {{{QUALITY}}}}}]"))
    metrics = cell(run, "fake source").metrics
    assert metrics["perplexity"].median == pytest.approx(VOCABULARY)
    assert "bytes of the text's tokens" in (metrics["bits_per_byte"].reason or "")
    assert "there is no reference" in (metrics["kl_divergence"].reason or "")
    (workload,) = run.record.workloads
    assert workload.quality is not None
    assert workload.quality.tokenizer == "fake"
    assert "neither a GGUF file nor a folder" in workload.quality.no_reference


def test_no_number_is_a_failed_cell_that_names_the_place(tmp_path: Path, run_fake: RunFake) -> None:
    """Which window, which position in it; the other variant has its figures."""
    broken = "fail: nan, fail_in: score, fail_from_call: 1, fail_at_token: 3"
    run = run_fake(write_scenario(tmp_path, f"name: broken, {broken}", "name: sound"))
    failed = cell(run, "broken")
    assert failed.status == "failed"
    assert failed.failure is not None
    # The first window had a process of its own; in the next one, the second of them fails.
    assert "window 3 of" in failed.failure.message
    assert "scored tokens 17 to 24" in failed.failure.message
    assert "position 11" in failed.failure.message  # in the window: 8 and 3 more
    assert "nan" in failed.failure.message
    assert cell(run, "sound").metrics["perplexity"].median == pytest.approx(VOCABULARY)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ("tells: none", "unsupported"),
        ("fail: crash, fail_in: score", "crash"),
        ("fail: load", "framework"),
        ("fail: count, fail_in: score", "invalid_result"),
    ],
)
def test_a_variant_that_fails_costs_its_own_cell_only(
    tmp_path: Path, run_fake: RunFake, options: str, kind: str
) -> None:
    """Whatever goes wrong is a row with its reason."""
    run = run_fake(write_scenario(tmp_path, f"name: broken, {options}", "name: sound"))
    failed = cell(run, "broken")
    assert failed.status == "failed"
    assert failed.failure is not None
    assert failed.failure.kind == kind
    assert cell(run, "sound").status == "ok"


def test_all_rate_as_many_windows_as_the_slowest_has_time_for(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """The same first windows for all, fewer than planned, and the run says so."""
    path = write_scenario(
        tmp_path,
        "name: slow, score_s: 0.1",
        "name: quick",
        measure="{repetitions: {min: 2, max: 2}, timeout_s: 20, time_budget_s: 5}",
    )
    run = run_fake(path)
    (workload,) = run.record.workloads
    protocol = workload.quality
    assert protocol is not None
    assert 1 <= protocol.windows < protocol.windows_planned
    for variant in ("slow", "quick"):
        found = cell(run, variant)
        assert "cut_by_budget" in found.flags
        assert found.metrics["perplexity"].n == protocol.windows
    # Whoever is not the slowest is never stopped: each has one record.
    assert sorted(trial.variant for trial in run.trials) == ["quick", "slow"]
    kept = {trial.variant: trial for trial in run.trials}
    assert [w.tokens for w in kept["slow"].windows] == [w.tokens for w in kept["quick"].windows]


def test_speed_is_measured_beside_quality(tmp_path: Path, run_fake: RunFake) -> None:
    """A text is rated once and before; it is no prompt, and no repetition of it is measured."""
    speed = "  - {name: short, prompt: hello, generate_tokens: 4}\n"
    run = run_fake(write_scenario(tmp_path, "", workloads=speed))
    kinds = [trial.kind for trial in run.trials]
    assert kinds[0] == "quality"
    assert kinds.count("quality") == 1
    assert cell(run, "fake source", "short").n == 2
    assert "decode_rate" not in cell(run, "fake source").metrics
    assert run.record.accounting is not None
    assert run.record.accounting.quality_s > 0


def test_a_text_that_is_not_there_stops_the_run_before_anything_is_made(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """As with a model that is not there."""
    path = write_scenario(tmp_path, "quantization: copy")
    (tmp_path / "text.txt").unlink()
    with pytest.raises(ScenarioError, match=r"yaml:\d+:\d+: .*there is no text .*text\.txt"):
        run_fake(path)
    assert not (tmp_path / "store").exists()


def test_a_text_that_is_too_short_says_how_long_it_must_be(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """Eight tokens stand before the first that is scored, one of them the start token."""
    run = run_fake(write_scenario(tmp_path, "", text="1234567"))
    failed = cell(run, "fake source")
    assert failed.status == "failed"
    assert failed.failure is not None
    assert "has 8 tokens" in failed.failure.message
    assert "more than 8 are needed" in failed.failure.message


def test_a_text_of_less_than_a_window_is_one_short_window(
    tmp_path: Path, run_fake: RunFake
) -> None:
    """What is there beyond the first eight is scored."""
    run = run_fake(write_scenario(tmp_path, "", text="12345678"))
    (trial,) = run.trials
    assert [window.tokens for window in trial.windows] == [1]
    interval = cell(run, "fake source").metrics["perplexity"]
    assert interval.ci_low is None
    assert interval.reason == "an interval needs 6 windows, there are 1"


def test_the_reference_is_rated_once(tmp_path: Path, run_fake: RunFake) -> None:
    """A second run finds what the first one kept."""
    path = write_scenario(tmp_path, "")
    records = []
    for _ in range(2):
        (workload,) = run_fake(path).record.workloads
        assert workload.quality is not None
        assert workload.quality.reference is not None
        records.append(workload.quality.reference)
    assert records[0].cached_windows == 0
    assert records[1].cached_windows == len(records[1].windows) > 5
    assert records[1].duration_s == 0
    assert records[0].windows == records[1].windows


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """What one variant rated stays; the other rates the same windows."""
    path = write_scenario(tmp_path, "name: quick", "name: slow, score_s: 0.05")
    process = subprocess.Popen(
        [sys.executable, "-m", "edgebench", "run", str(path), "--out", str(tmp_path / "out")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
        cwd=tmp_path,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "slow, window 2 of" in line:
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)
    assert process.returncode == ExitStatus.INTERRUPTED
    (folder,) = (tmp_path / "out" / "rated").iterdir()
    before = read_run(folder)
    # The slow one comes first, so that it is not asked for more than there is time for.
    assert [trial.variant for trial in before.trials] == []
    done = edgebench("run", "--resume", folder, "--json", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert sorted(trial.variant for trial in read_run(folder).trials) == ["quick", "slow"]


def test_a_finished_run_is_not_rated_again(tmp_path: Path) -> None:
    """To go on with a run that has all its texts costs no rating, and changes no figure."""
    path = write_scenario(tmp_path, "name: one", "name: two, probabilities: skewed")
    assert edgebench("run", path, "--out", "out", cwd=tmp_path).returncode == ExitStatus.DONE
    (folder,) = (tmp_path / "out" / "rated").iterdir()
    before = read_run(folder)
    lines = (folder / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    (folder / "trials.jsonl").write_text(
        "".join(f"{line}\n" for line in lines if json.loads(line)["variant"] == "one"),
        encoding="utf-8",
    )
    done = edgebench("run", "--resume", folder, cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    after = read_run(folder)
    assert [trial.variant for trial in after.trials] == ["one", "two"]
    assert [each.metrics["perplexity"] for each in after.record.cells] == [
        each.metrics["perplexity"] for each in before.record.cells
    ]


def test_json_has_the_protocol_beside_the_figures(tmp_path: Path) -> None:
    """A script that reads a perplexity can tell what it was computed on."""
    path = write_scenario(tmp_path, "")
    done = edgebench("run", path, "--json", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    shown = json.loads(done.stdout)
    quality = shown["quality"]["text"]
    assert quality["text"] == "path:text.txt"
    assert (quality["window"], quality["stride"], quality["score_from"]) == (16, 8, 8)
    assert len(quality["text_sha256"]) == 64
    (only,) = shown["cells"]
    assert only["metrics"]["perplexity"]["median"] == pytest.approx(VOCABULARY)
