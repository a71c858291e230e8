"""The runner where MLC's own package is installed, here a stand-in with MLC's names and signatures.

These tests show which engine and which compiler is taken, and how results name it, not MLC: its
package is not on PyPI. See tests/support/mlc_llm_stand_in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mlc_damage import forget_library_sum
from mlc_llm_call import STAND_IN, VERSION, call
from tiny_models import VOCABULARY, log_likelihoods

from edgebench.harness import wire
from edgebench.harness.errors import RunnerRefusedError
from edgebench.harness.results.run import read_run
from edgebench.harness.session import Launch, Session
from edgebench.runners.base import (
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    ScoreRequest,
    to_wire,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

PROMPT = [5, 11, 3, 8, 2, 9]
LIMIT_S = 120.0
ENVIRONMENT = {"PYTHONPATH": str(STAND_IN)}

SCENARIO = """\
schema_version: 1
name: mlc
model: {name: mine, source: 'path:artifact'}
variants:
  - {runner: mlc, quantization: source}
workloads:
  - {name: plain, prompt_tokens: 12, generate_tokens: 6, text: synthetic}
measure: {warmup: {min: 0, max: 0}, repetitions: {min: 1, max: 1}, timeout_s: 60}
"""


@pytest.fixture
def by_mlc(artifact: Path) -> Path:
    """A model whose library does not say that edgebench built it."""
    library = artifact / "lib.so"
    library.write_bytes(library.read_bytes().replace(b'"edgebench": {', b'"otherkind": {'))
    forget_library_sum(artifact)
    return artifact


@pytest.fixture
def session(tmp_path: Path) -> Callable[[], Any]:
    """A runner's process that finds the stand-in."""

    @contextmanager
    def opened() -> Iterator[Session]:
        with Session(Launch("mlc", tmp_path / "mlc.log", environment=ENVIRONMENT)) as each:
            yield each

    return opened


def load(session: Session, path: Path, context: int = 64, **options: Any) -> Any:
    request = LoadRequest(str(path), context, options)
    return wire.loaded_model(session.call("load", to_wire(request), timeout_s=LIMIT_S))[0]


def stand_in_tokens(prompt: list[int], count: int) -> list[int]:
    """What the stand-in makes of a prompt."""
    ids = list(prompt)
    for _ in range(count):
        ids.append((31 * ids[-1] + 17 * (len(ids) - 1) + 5) % VOCABULARY)
    return ids[len(prompt) :]


def test_mlcs_engine_generates_and_tvm_scores(
    by_mlc: Path, tiny: Any, session: Callable[[], Any]
) -> None:
    """Without being asked for, the engine is MLC's; it gives no logits, so TVM runs the library."""
    with session() as each:
        told = wire.probe(each.call("probe", {}, timeout_s=LIMIT_S)).description
        assert (told.engine, told.engine_version) == ("MLC LLM", VERSION)
        model = load(each, by_mlc, threads=1)
        assert (model.engine, model.engine_version) == ("MLC LLM", VERSION)
        options = model.effective_options
        assert (options["engine"], options["compiler"]) == ("mlc_llm", "mlc_llm")
        assert (options["prefix_cache"], options["threads"]) == ("disable", 1)
        assert model.vocabulary_size == VOCABULARY
        request = GenerateRequest(PROMPT, 7)
        answer = each.call("generate", to_wire(request), timeout_s=LIMIT_S)
        made = wire.generation(answer, request, VOCABULARY)
        assert made.token_ids == stand_in_tokens(PROMPT, 7)
        wanted = ScoreRequest(PROMPT)
        scored = each.call("score", to_wire(wanted), timeout_s=LIMIT_S)
        rated = wire.scores(scored, wanted, VOCABULARY).log_likelihoods
        assert rated == pytest.approx(log_likelihoods(tiny.model, PROMPT), abs=1e-4)


WATCH = """
import os
imported = []
def watch(event, given):
    if event == "exec":
        path = Path(getattr(given[0], "co_filename", ""))
        if path.name == "__init__.py" and path.parent.name in ("mlc_llm", "tvm"):
            imported.append([path.parent.name, os.environ.get("TVM_NUM_THREADS")])
sys.addaudithook(watch)
from edgebench.runners.base import LoadRequest
from edgebench.runners.mlc import MlcRunner
request = LoadRequest(given["model"], 64, {"engine": given["engine"], "threads": 2})
runner = MlcRunner()
answer = {"engine": runner.describe().engine, "described": [*imported]}
if given["prepares"]:
    runner.prepare(request)
answer["prepared"] = [*imported]
answer["loaded"] = runner.load(request).engine
answer["imported"] = imported
runner.close()
"""


def test_mlcs_package_is_imported_before_a_load_that_is_timed(by_mlc: Path) -> None:
    """Only where its engine runs, and when the number of threads is set."""
    told = call(WATCH, **watched(by_mlc, "auto")).value
    assert (told["engine"], told["loaded"]) == ("MLC LLM", "MLC LLM")
    assert told["described"] == []
    assert told["prepared"] == told["imported"] == [["mlc_llm", "2"]]
    unprepared = call(WATCH, **watched(by_mlc, "auto", prepares=False)).value
    assert unprepared["prepared"] == []
    assert unprepared["imported"] == [["mlc_llm", "2"]]


def test_tvm_alone_runs_a_model_where_mlcs_package_is_installed(by_mlc: Path, tiny: Any) -> None:
    """MLC's package would import all of TVM: several times the memory."""
    for path, engine in ((by_mlc, "tvm"), (tiny.artifact, "auto")):
        told = call(WATCH, **watched(path, engine)).value
        assert told["engine"] == "MLC LLM"
        assert "TVM" in told["loaded"]
        assert told["imported"] == []


def watched(path: Path, engine: str, *, prepares: bool = True) -> dict[str, Any]:
    return {"model": str(path), "engine": engine, "prepares": prepares}


def test_what_mlcs_engine_can_not_take_is_refused(
    tiny: Any, by_mlc: Path, session: Callable[[], Any]
) -> None:
    """What edgebench built is never MLC's, and runs on TVM by itself; a chunk is never cut."""
    with session() as each:
        model = load(each, tiny.artifact)
        assert model.engine == "TVM, built by edgebench"
        with pytest.raises(RunnerRefusedError, match=r"edgebench built .*`engine: tvm`"):
            load(each, tiny.artifact, engine="mlc_llm")
        # MLC would take the number as it is, beyond what memory was planned for.
        with pytest.raises(RunnerRefusedError, match="prefill_chunk"):
            load(each, by_mlc, prefill_chunk=100_000)


def test_results_name_the_engine_that_ran(by_mlc: Path, tmp_path: Path) -> None:
    """MLC's engine by name and version, and its own figures beside the observed ones."""
    assert by_mlc == tmp_path / "artifact"
    (tmp_path / "s.yaml").write_text(SCENARIO, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "edgebench", "run", "s.yaml", "--json"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, **ENVIRONMENT, "EDGEBENCH_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    run = read_run(tmp_path / json.loads(done.stdout)["run_dir"])
    (variant,) = run.record.variants
    assert (variant.engine, variant.engine_version) == ("MLC LLM", VERSION)
    assert variant.effective_options["engine"] == "mlc_llm"
    (trial,) = [each for each in run.trials if each.tokens is not None]
    assert trial.tokens is not None
    made = trial.tokens.generated_ids
    assert len(made) == 6
    assert made[1:] == [(31 * made[at] + 17 * (12 + at) + 5) % VOCABULARY for at in range(5)]
    assert trial.metrics["ttft_s"].source == "observed"
    assert trial.metrics["engine_ttft_s"].value == 0.25
    assert trial.metrics["engine_decode_rate"].value == 80.0
    assert trial.metrics["prefill_rate"].value is None


def test_mlcs_tools_make_the_folder_of_a_gguf_file(
    tiny: Any, tmp_path: Path, session: Callable[[], Any]
) -> None:
    """They read no GGUF: it is written out as Hugging Face's folder, exactly, and thrown away."""
    import numpy as np
    from safetensors.numpy import load_file

    from edgebench.models.canonical import open_model
    from edgebench.runners.gguf_write import write_gguf

    source, target = tmp_path / "model.gguf", tmp_path / "made"
    write_gguf(open_model(tiny.source), str(source), "F32")
    with session() as each:
        request = ConvertRequest(str(source), "q4f16_1", str(target), {"context_window": 99})
        made = each.call("convert", to_wire(request), timeout_s=LIMIT_S)["made"]
    assert made == {"tool": f"mlc_llm {VERSION}"}
    config = json.loads((target / "mlc-chat-config.json").read_text("utf-8"))
    assert config["given"]["context_window_size"] == 99
    # The stand-in's shard is a copy of the weights that it was given.
    (target / "params_shard_0.bin").rename(tmp_path / "given.safetensors")
    given = load_file(tmp_path / "given.safetensors")
    for name, weight in tiny.model.state_dict().items():
        np.testing.assert_array_equal(given[name], weight.numpy())
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"made"}
