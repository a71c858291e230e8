"""``edgebench validate`` and ``edgebench schema``."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from edgebench.cli.schema import schema
from edgebench.cli.validate import validate
from edgebench.harness.errors import ScenarioError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _narrow_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns, and no configuration of whoever runs the tests."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("EDGEBENCH_CONFIG", raising=False)


def test_validate_says_what_would_run() -> None:
    """The shipped scenario's variants, workloads and limits are printed within 80 columns."""
    result = CliRunner().invoke(validate, ["smollm2-135m"], catch_exceptions=False)
    assert result.exit_code == 0
    for expected in (
        "SmolLM2-135M-Instruct",
        "Apache-2.0",
        "llama.cpp source threads=2",
        "llama.cpp Q8_0 threads=2",
        "mnn int4",
        "mediapipe int8",
        "mlc q4f32_1 threads=2",
        "pp512-tg128",
        "512 tokens, natural",
        "5 to 20, until the median is known to ±2 %",
        "780 s in all, 120 s a load or generation",
        "every variant and each framework's most exact artifact",
        "valid: 6 variants on 3 workloads, 18 cells",
    ):
        assert expected in result.output
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("2GiB", "2GiB"),
        ("4GB", "4GB"),
        ("1.5GiB", "1536MiB"),
        ("2147483648", "2GiB"),
        ("1001", "1001B"),
    ],
)
def test_validate_prints_needs_as_people_write_them(
    written: str, shown: str, tmp_path: Path
) -> None:
    """A size has its unit and loses nothing; a whole number has no decimals."""
    path = tmp_path / "s.yaml"
    path.write_text(
        f"""\
schema_version: 1
name: x
model: {{name: M, source: "path:model.bin"}}
variants: [{{runner: fake, quantization: source}}]
workloads: [{{name: w, prompt: Why?, generate_tokens: 4}}]
requirements:
  max_memory_bytes: {written}
  min_decode_rate: 60
  max_ttft_s: 0.25
  weights: {{decode_rate: 2}}
"""
    )
    printed = CliRunner().invoke(validate, [str(path)], catch_exceptions=False).output.split()
    needs = dict(pairwise(printed))
    assert needs["max_memory_bytes"] == shown
    assert needs["min_decode_rate"] == "60"
    assert needs["max_ttft_s"] == "0.25"
    assert needs["weights.decode_rate"] == "2"


def test_validate_prints_json() -> None:
    """With --json the scenario with its defaults and its variants written out are one object."""
    result = CliRunner().invoke(validate, ["llama2-7b", "--json"], catch_exceptions=False)
    printed = json.loads(result.output)
    assert [variant["id"] for variant in printed["variants"]] == [
        "llama.cpp source threads=2",
        "llama.cpp source threads=4",
        "mnn int4 block_size=32 output_quantization=int8 threads=2",
        "mnn int4 block_size=32 output_quantization=int8 threads=4",
        "mediapipe int4 cache_length=768 threads=2",
        "mediapipe int4 cache_length=768 threads=4",
        "mlc q4f32_1 threads=2",
        "mlc q4f32_1 threads=4",
    ]
    assert printed["variants"][0]["sweep"] == "llama.cpp source"
    assert printed["cells"] == 24
    assert printed["scenario"]["measure"]["seed"] == 1


def test_validate_leaves_problems_to_the_command_line(tmp_path: Path) -> None:
    """A wrong scenario is the error that the command line prints and exits with."""
    path = tmp_path / "s.yaml"
    path.write_text("schema_version: 1\nname: x\nvariants: [{runner: fake, thread: 1}]\n")
    with pytest.raises(ScenarioError) as caught:
        CliRunner().invoke(validate, [str(path)], catch_exceptions=False)
    assert caught.value.message.split("\n") == [
        f"{path}:1:1: model: this key is missing: the model that every variant runs",
        f"{path}:1:1: workloads: this key is missing: on what it is compared",
        f"{path}:3:27: variants[0].thread: fake has no such option; did you mean 'threads'?",
    ]


def test_validate_takes_runners_of_the_configuration(tmp_path: Path) -> None:
    """A runner that the configuration gives an interpreter is not called unknown."""
    config = tmp_path / ".config" / "edgebench" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('[runners.mine]\npython = "/opt/mine/bin/python"\n')
    path = tmp_path / "s.yaml"
    path.write_text(
        "schema_version: 1\nname: x\nmodel: {name: m, source: 'path:m'}\n"
        "variants: [{runner: mine, name: ours}]\n"
        'workloads: [{name: a, prompt: "\\e[31m[bold]x", generate_tokens: 2}]\n'
    )
    result = CliRunner().invoke(validate, [str(path)], catch_exceptions=False)
    assert "mine source" in result.output
    assert "valid: 1 variant on 1 workload, 1 cell" in result.output
    # What the file holds is shown, not obeyed by the terminal or taken for markup.
    assert "\x1b" not in result.output
    assert "[31m[bold]x" in result.output


@pytest.mark.parametrize("what", ["scenario", "run", "trial"])
def test_schema_prints_a_schema(what: str) -> None:
    """The printed schema is JSON and says what it is of."""
    result = CliRunner().invoke(schema, [what], catch_exceptions=False)
    assert json.loads(result.output)["title"] == f"edgebench {what}"


def test_schema_prints_the_scenario_s_by_default() -> None:
    """Without a name, the schema of what people write is printed."""
    result = CliRunner().invoke(schema, [], catch_exceptions=False)
    assert json.loads(result.output)["title"] == "edgebench scenario"


def test_validate_shows_the_device_and_what_tools_do_there() -> None:
    """How it is reached, its profile and tools; nothing of our own prompts and warm-ups."""
    result = CliRunner().invoke(validate, ["android-phone"], catch_exceptions=False)
    assert result.exit_code == 0
    for expected in (
        "Android over adb, the one that is attached",
        "snapdragon-8-elite",
        "~/llama.cpp/build-android/bin/llama-bench",
        "128 tokens, made up by the tool",
        "1 in each block",
        "qwen2.5-0.5b, with --synthetic-weights",
    ):
        assert expected in result.output
    assert "natural" not in result.output
    assert "until stable" not in result.output
    board = CliRunner().invoke(validate, ["raspberry-pi-5"], catch_exceptions=False).output
    for expected in ("over SSH, pi@raspberrypi.local", "~/edgebench/bin/python", "natural"):
        assert expected in board
    assert max(map(len, (result.output + board).splitlines())) <= 80


def test_validate_says_what_tools_can_not_do(tmp_path: Path) -> None:
    """A prompt of one's own and sustained work are rows with the reason, which is said before."""
    path = tmp_path / "s.yaml"
    path.write_text(
        "schema_version: 1\nname: s\ndevice: {adb: any, tools: {llama.cpp: t}}\n"
        "model: {name: m, source: 'path:m.gguf'}\n"
        "variants: [{runner: llama.cpp, quantization: source}]\n"
        "workloads:\n  - {name: own, prompt: Hello, generate_tokens: 8}\n"
        "  - {name: long, prompt_tokens: 8, generate_tokens: 8, sustained: 2m}\n"
    )
    shown = CliRunner().invoke(validate, [str(path)], catch_exceptions=False).output
    assert " ".join(shown.split()).count("can't be done by tools on an Android device") >= 2
    assert "“Hello”" not in shown
