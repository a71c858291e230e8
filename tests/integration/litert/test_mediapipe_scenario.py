"""`edgebench run` with a bundle that its user brings."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from command_line import edgebench
from tiny_models import byte_level_tokenizer
from tokenizers import Tokenizer

from edgebench.harness.errors import RunnerError
from edgebench.harness.results.run import read_run
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import GenerateRequest, LoadRequest, to_wire

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mediapipe, pytest.mark.transformers]

SAID = "It was the best of times 1789"
SCENARIO = """\
schema_version: 1
name: brought
model: {{name: mine, source: 'path:{name}'}}
variants:
  - {{runner: mediapipe, quantization: source, threads: 1}}
workloads:
  - {{name: said, prompt: '{said}', generate_tokens: 6}}
  - {{name: long, prompt_tokens: 20, generate_tokens: 4, depth: 8}}
  - {{name: drawn, prompt_tokens: 12, generate_tokens: 4, text: synthetic}}
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 2, max: 2}}, timeout_s: 60}}
"""


def test_a_bundle_runs_as_it_is(tiny: Any, tmp_path: Path) -> None:
    """Prompts are made by its own tokenizer; ids that no text has are a failed row with why."""
    os.link(tiny.artifact, tmp_path / "mine.litertlm")
    (tmp_path / "s.yaml").write_text(
        SCENARIO.format(name="mine.litertlm", said=SAID), encoding="utf-8"
    )
    done = edgebench(
        "run", "s.yaml", "--json", cwd=tmp_path, EDGEBENCH_CACHE=str(tmp_path / "cache")
    )
    assert done.returncode == 3, done.stderr
    printed = json.loads(done.stdout)
    said, long, drawn = printed["cells"]
    assert (said["status"], long["status"], drawn["status"]) == ("ok", "ok", "failed")
    assert drawn["failure"]["kind"] == "unsupported"
    assert "LiteRT-LM takes text only" in drawn["failure"]["message"]
    run = read_run(tmp_path / printed["run_dir"])
    (variant,) = run.record.variants
    assert (variant.engine, variant.engine_version) == ("LiteRT-LM", "0.18.1")
    assert variant.effective_options["max_num_tokens"] == 33  # 8 + 20 + 4, and one beyond
    for trial in run.trials:
        if trial.tokens is None:
            continue
        if trial.workload == "said":
            ids = Tokenizer.from_str(byte_level_tokenizer()).encode(SAID).ids
            assert trial.tokens.generated_ids == tiny.greedy(ids, 6)
        assert trial.tokens.finish_reason == "length"
        assert trial.tokens.tokenized_ns is None
        # The engine's is made of rates, so it is never taken.
        assert trial.metrics["ttft_s"].source == "observed"


def test_a_process_that_is_killed_leaves_no_weights_behind(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither one that ran out of time nor one that died of a signal."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    request = LoadRequest(str(tiny.artifact), 64, {"cache": "cold", "threads": 1})
    for timeout_s in (60.0, 0.0):
        with suppress(RunnerError), Session(Launch("mediapipe", tmp_path / "log")) as session:
            session.call("load", to_wire(request), timeout_s=60)
            assert list(tmp_path.glob("edgebench-scratch-*"))
            if timeout_s:
                os.kill(session.pid, signal.SIGSEGV)
            session.call("generate", to_wire(GenerateRequest([5, 6], 8)), timeout_s=timeout_s)
            pytest.fail("it should have ended")
        assert not list(tmp_path.glob("edgebench-*"))


def test_what_is_no_bundle_is_named(tmp_path: Path) -> None:
    """A GGUF file given as it is: one sentence that says what to do, and no crash."""
    (tmp_path / "model.gguf").write_bytes(b"GGUF" + bytes(64))
    (tmp_path / "s.yaml").write_text(
        SCENARIO.format(name="model.gguf", said=SAID), encoding="utf-8"
    )
    done = edgebench("run", "s.yaml", cwd=tmp_path, EDGEBENCH_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 4
    text = " ".join((done.stdout + done.stderr).split())
    assert "model.gguf is a GGUF file" in text
    assert "Traceback" not in text
