"""Runs with synthetic weights, and that every table says so."""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.results.run import Run

SAID = "synthetic weights"

SCENARIO = """\
schema_version: 1
name: made-up
model: {{name: SmolLM2-135M, source: "{source}"{more}}}
variants:
{variants}
workloads:
  - {{name: short, prompt_tokens: 24, generate_tokens: 4}}
  - {{name: prose, quality: {{text: "builtin:prose", window: 64, stride: 32, max_tokens: 64}}}}
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 2, max: 2}}, timeout_s: 60}}
verify: true
"""
FAKE = (
    "  - {runner: fake, virtual_clock: true, token_s: 0.01}\n"
    "  - {runner: fake, virtual_clock: true, token_s: 0.02}"
)

ONE_PROMPT = f"""\
schema_version: 1
name: made-up
model: {{name: SmolLM2-135M, source: "path:model.bin"}}
variants:
{FAKE}
workloads: [{{name: short, prompt_tokens: 24, generate_tokens: 4}}]
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 2, max: 2}}, timeout_s: 60}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("synthetic")


def written(folder: Path, name: str, source: str, more: str = "", variants: str = FAKE) -> Path:
    path = folder / name
    path.write_text(SCENARIO.format(source=source, more=more, variants=variants), encoding="utf-8")
    return path


def run(scenario: Path, *arguments: str) -> Run:
    out = scenario.parent / scenario.stem
    done = edgebench(
        "run", scenario, "--out", out, *arguments, EDGEBENCH_CACHE=str(scenario.parent / "cache")
    )
    assert done.returncode == 0, done.stderr
    assert SAID in done.stdout
    (found,) = (out / "made-up").iterdir()
    return read_run(found)


@pytest.fixture(scope="module")
def made_up(folder: Path) -> Run:
    scenario = written(
        folder, "real.yaml", "hf:a/b/c.gguf", ", synthetic: smollm2-135m, license: Its own"
    )
    return run(scenario, "--synthetic-weights", "--format", "md,html,csv,json,latex")


def test_the_record_says_what_was_run(made_up: Run) -> None:
    """The architecture, a name that says so everywhere, and no licence or hash of the real one."""
    model = made_up.record.scenario["model"]
    assert isinstance(model, dict)
    assert made_up.record.synthetic == "smollm2-135m"
    assert model["name"] == f"SmolLM2-135M ({SAID})"
    assert (model["source"], model["license"]) == ("synthetic:smollm2-135m", None)
    assert all(each.artifact and each.artifact.synthetic for each in made_up.record.variants)


def test_texts_are_not_rated_and_nothing_failed(made_up: Run) -> None:
    """Quality is null with the reason; speed is there; nothing was verified."""
    cells = {(each.variant, each.workload): each for each in made_up.record.cells}
    for (_, workload), cell in cells.items():
        if workload == "prose":
            assert (cell.status, cell.n, cell.failure) == ("not_run", 0, None)
            perplexity = cell.metrics["perplexity"]
            assert (perplexity.median, perplexity.reason) == (
                None,
                "synthetic weights: quality means nothing",
            )
        else:
            assert (cell.status, cell.n) == ("ok", 2)
    assert not [each for each in made_up.trials if each.kind == "quality"]
    assert made_up.record.reference is None


def test_every_table_with_figures_says_so(made_up: Run) -> None:
    """In Markdown, HTML, LaTeX, JSON and CSV; also the one of the text that was not rated."""
    report = made_up.path / "report.md"
    sections = re.split(r"\n(?=#+ )", report.read_text(encoding="utf-8"))
    measured = ("## Frameworks", "### short", "## Platforms", "### prose")
    found = [each for each in sections if each.startswith(measured) and "| ---" in each]
    assert len(found) == len(measured)
    assert all(SAID in each for each in found)
    tex = (made_up.path / "report.tex").read_text(encoding="utf-8")
    tables = re.split(r"\\begin\{(?:table|longtable)\}", tex)[1:]
    own = [each for each in tables if re.search(r"tab:(frameworks|comp|platf|quality)", each)]
    assert len(own) == len(measured)
    assert all(SAID in each for each in own)
    told = json.loads((made_up.path / "report.json").read_text(encoding="utf-8"))
    keys = {each["key"]: SAID in json.dumps(each) for each in told["tables"]}
    assert all(
        keys[key] for key in ("frameworks", "comparison-0", "platforms", "selection", "options")
    )
    assert told["runs"][0]["synthetic"] == "smollm2-135m"
    with (made_up.path / "report.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["weights"] for row in rows} == {SAID}
    page = (made_up.path / "report.html").read_text(encoding="utf-8")
    assert "Synthetic weights." in page
    assert page.count(SAID) > len(measured)


def test_chinese_says_so_as_well(made_up: Run) -> None:
    """The banner, and the reason of what was not rated."""
    assert edgebench("report", made_up.path, "--lang", "zh", "--format", "md").returncode == 0
    text = (made_up.path / "report.zh.md").read_text(encoding="utf-8")
    assert "合成权重。" in text
    assert "合成权重：质量没有意义" in text


def test_what_to_choose_warns_of_it(made_up: Run) -> None:
    """Before any recommendation."""
    told = edgebench("select", made_up.path)
    assert "Synthetic weights:" in told.stdout


def test_synthetic_and_real_runs_are_not_compared(made_up: Run, folder: Path) -> None:
    """Both are named, and which one has the synthetic weights."""
    (folder / "model.bin").write_bytes(b"weights")
    real = folder / "own.yaml"
    real.write_text(ONE_PROMPT, encoding="utf-8")
    out = folder / "own"
    assert edgebench("run", real, "--out", out).returncode == 0
    (other,) = (out / "made-up").iterdir()
    refused = edgebench("compare", made_up.path, other)
    assert refused.returncode == 5
    assert f"SmolLM2-135M ({SAID})" in refused.stderr


def test_a_comparison_and_a_history_say_so(made_up: Run, folder: Path) -> None:
    """Of both sides, and of every series."""
    again = run(written(folder, "again.yaml", "synthetic:smollm2-135m"))
    same = edgebench("compare", made_up.path, again.path)
    assert " ".join(same.stdout.split()).count(SAID) == 2
    told = edgebench("history", folder)
    assert f"({SAID})" in " ".join(told.stdout.split())


def test_a_scenario_must_say_what_stands_for_its_model(folder: Path) -> None:
    """The message says what to write, and which there are."""
    scenario = written(folder, "nothing.yaml", "hf:a/b/c.gguf")
    told = edgebench("run", scenario, "--synthetic-weights")
    assert told.returncode == 2
    assert "does not say what its synthetic weights are" in told.stderr
    assert "llama2-7b, tinyllama-1.1b" in " ".join(told.stderr.split())
    unknown = written(folder, "unknown.yaml", "hf:a/b/c.gguf", ", synthetic: gpt-5")
    told = edgebench("validate", unknown)
    assert told.returncode == 2
    assert "no architecture 'gpt-5' is known" in " ".join(told.stderr.split())


@pytest.mark.parametrize("command", ["validate", "run"])
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("synthetic:lama2-7b", "no architecture 'lama2-7b' is known; did you mean 'llama2-7b'?"),
        ("synthetic:nosuch", "known are: llama2-7b, tinyllama-1.1b"),
        ("synthetic:smollm2-135m@Q9", "not made as 'Q9'"),
        ("synthetic:smollm2-135m@q4_0", "did you mean 'Q4_0'?"),
    ],
)
def test_synthetic_weights_that_there_are_none_of(
    folder: Path, command: str, source: str, said: str
) -> None:
    """The check of the scenario says so with the place, before anything runs."""
    told = edgebench(command, written(folder, "none.yaml", source))
    assert told.returncode == 2
    words = " ".join(told.stderr.split())
    assert re.search(r"none\.yaml:3:\d+: model\.source: ", words)
    assert said in words


def test_synthetic_weights_are_not_verified(folder: Path) -> None:
    """The reference is not run on random numbers; the message says why not."""
    told = edgebench("verify", written(folder, "verified.yaml", "synthetic:smollm2-135m"))
    assert told.returncode == 2
    assert "nothing to verify" in " ".join(told.stderr.split())
    assert told.stdout == ""


@pytest.mark.parametrize(
    "variant",
    [
        pytest.param("{runner: llama.cpp}", marks=pytest.mark.llama_cpp),
        pytest.param("{runner: mnn, quantization: int4, block_size: 32}", marks=pytest.mark.mnn),
        pytest.param(
            "{runner: mediapipe, quantization: int4, cache_length: 128}",
            marks=pytest.mark.mediapipe,
        ),
    ],
)
def test_frameworks_run_them(folder: Path, variant: str) -> None:
    """The very prompts, and as many tokens as were asked for, from the same random weights."""
    name = re.sub(r"\W", "", variant)
    scenario = written(folder, f"{name}.yaml", "synthetic:smollm2-135m", variants=f"  - {variant}")
    found = run(scenario, "--quick")
    generated = [each for each in found.trials if each.kind == "generate"]
    assert generated
    assert all(each.status == "ok" and each.tokens for each in generated)
    assert {each.tokens.prompt_tokens for each in generated if each.tokens} == {24}
