"""Artifacts and prompts in whole runs: options of converting, failures, no tokenizer.

The second runner is one of another package, as far as edgebench can tell: it is the fake one,
without its tokenizer.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pytest

from edgebench.harness.execute import execute
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.models.architecture import Architecture, Rope
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario, RunFake

    from edgebench.harness.results.run import Run

MUTE = '''
from dataclasses import replace

from edgebench.runners.fake import FakeRunner


class MuteRunner:
    """The fake runner without its tokenizer, and with formats named as those of MNN."""

    OPTIONS = FakeRunner.OPTIONS
    QUANTIZATIONS = ("int4",)
    PIP = "mute"

    def __init__(self):
        self._fake = FakeRunner()

    def describe(self):
        made = self._fake.describe()
        able = replace(made.capabilities, tokenizer=False)
        return replace(made, engine="Mute", engine_version="1.0", capabilities=able)

    def load(self, request):
        return self._fake.load(request)

    def generate(self, request):
        return self._fake.generate(replace(request, prompt_text=None))

    def convert(self, request):
        self._fake.convert(replace(request, quantization="copy"))
        return {"tool": "mute 1.0"}

    def close(self):
        self._fake.close()
'''

TEMPLATE = "{% for turn in messages %}[{{ turn.content }}]{% endfor %}"
SHAPE = Architecture(
    family="llama",
    layers=1,
    hidden_size=8,
    intermediate_size=8,
    heads=2,
    kv_heads=1,
    head_size=4,
    vocabulary_size=259,
    context_tokens=64,
    norm_epsilon=1e-5,
    rope=Rope(1e4, "default", (1.0, 0.01)),
)
CONFIG = {
    "model_type": "llama",
    "vocab_size": SHAPE.vocabulary_size,
    "hidden_size": 8,
    "intermediate_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 1e4,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
}


@pytest.fixture
def mute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with the runner `mute`, as pip would leave it."""
    site = tmp_path / "site"
    info = site / "mute-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "mute_runner.py").write_text(MUTE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mute\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[edgebench.runners]\nmute = mute_runner:MuteRunner\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in Hugging Face's layout whose token 3 + n is the n-th byte in GPT-2's order."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    path = tmp_path / "tiny-hf"
    path.mkdir()
    (path / "config.json").write_text(json.dumps(CONFIG))
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<pad>": 0, "<s>": 1, "</s>": 2, **{c: 3 + n for n, c in enumerate(alphabet)}}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    entries, data = {}, b""
    for name, shape in SHAPE.tensor_shapes().items():
        part = np.zeros(shape, dtype="<f4").tobytes()
        place = [len(data), len(data) + len(part)]
        entries[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": place}
        data += part
    header = json.dumps(entries).encode()
    (path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + data)
    return path


class RunTwo(Protocol):
    """Runs variants, as YAML with their runner, on a source."""

    def __call__(
        self, source: str, *variants: str, workloads: str = ..., measure: str = ...
    ) -> Run: ...


@pytest.fixture
def run_two(tmp_path: Path, mute: None) -> RunTwo:
    number = 0

    def run(
        source: str,
        *variants: str,
        workloads: str = "[{name: chat, prompt: ab, chat_template: true, generate_tokens: 3}]",
        measure: str = "{warmup: {min: 0, max: 0}, repetitions: {min: 1, max: 1}, timeout_s: 20}",
    ) -> Run:
        nonlocal number
        number += 1
        listed = "".join(f"  - {{{variant}}}\n" for variant in variants)
        path = tmp_path / "two.yaml"
        path.write_text(
            "schema_version: 1\nname: two\n"
            f"model: {{name: tiny, source: 'path:{source}'}}\n"
            f"variants:\n{listed}workloads: {workloads}\nmeasure: {measure}\n"
        )
        scenario = load_scenario(path, runners=runner_classes())
        target = tmp_path / "results" / str(number)
        store = ModelStore(tmp_path / "store")
        execute(scenario, Settings(folder=target, base=tmp_path, store=store))
        return read_run(target)

    return run


# Converting ---------------------------------------------------------------------------------------


def test_an_option_of_converting_shapes_the_artifact_and_is_not_loaded(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """Each value is an artifact with a name of its own; the fake runner refuses it at load."""
    path = make_scenario("quantization: copy, makes: [file, folder]", "quantization: copy")
    first, second = run_fake(path), run_fake(path)
    for run in (first, second):
        assert [cell.status for cell in run.record.cells] == ["ok"] * 3
        artifacts = [variant.artifact for variant in run.record.variants]
        assert [artifact and artifact.name for artifact in artifacts] == [
            "model-copy-makes=file-fake",
            "model-copy-makes=folder-fake",
            "model-copy-fake",
        ]
        # b"weights", and b"{}" of the folder's config.json.
        assert [artifact and artifact.bytes for artifact in artifacts] == [7, 9, 7]
        assert [dict(variant.options) for variant in run.record.variants] == [
            {"makes": "file"}, {"makes": "folder"}, {},
        ]  # fmt: skip
    assert first.record.variants[1].artifact == second.record.variants[1].artifact
    assert (first.path / "logs" / "convert-fake.log").exists()
    assert not (second.path / "logs" / "convert-fake.log").exists()


def test_a_folder_is_loaded_and_weighed_as_one_model(
    make_scenario: MakeScenario, run_fake: RunFake
) -> None:
    """Its bytes are those of its files, at every load, and cold ones find no page of it."""
    path = make_scenario(
        "quantization: copy, makes: folder",
        measure="{warmup: {min: 0, max: 0}, repetitions: {min: 2, max: 2}, cold_load: true}",
    )
    loads = [trial for trial in run_fake(path).trials if trial.kind == "load"]
    assert [trial.metrics["model_bytes"].value for trial in loads] == [9, 9]
    assert [trial.parameters for trial in loads] == [9, 9]
    cold = loads[1].metrics["load_cold_s"]
    assert cold.value is not None or cold.reason


@pytest.mark.parametrize(
    ("makes", "kind", "words"),
    [
        ("refusal", "unsupported", "told to refuse this source"),
        ("crash", "crash", "SIGKILL"),
        ("half", "out_of_memory", "out of memory"),
        ("nothing", "model", "fake 1 wrote no file"),
    ],
)
def test_a_failed_conversion_is_a_failed_cell_beside_a_good_one(
    make_scenario: MakeScenario, run_fake: RunFake, makes: str, kind: str, words: str
) -> None:
    """Whatever stops one artifact from being made, the others are measured."""
    run = run_fake(make_scenario(f"quantization: copy, makes: {makes}", "quantization: copy"))
    bad, good = run.record.cells
    assert (bad.status, good.status, good.n) == ("failed", "ok", 2)
    assert bad.failure is not None
    assert bad.failure.kind == kind
    assert words in bad.failure.message
    assert run.record.variants[0].artifact is None


def test_an_option_that_shapes_nothing_is_a_failed_cell(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """A runner whose options are not known here tells of it before anything is measured."""
    scenario = load_scenario(make_scenario("makes: folder", "threads: 1"))  # without its classes
    target = tmp_path / "run"
    execute(scenario, Settings(folder=target, base=tmp_path, store=ModelStore(tmp_path / "s")))
    bad, good = read_run(target).record.cells
    assert (bad.status, good.status) == ("failed", "ok")
    assert bad.failure is not None
    assert bad.failure.kind == "invalid"
    assert "makes: options of converting" in bad.failure.message


def test_what_does_not_fit_on_the_disk_is_a_failed_cell(
    make_scenario: MakeScenario, run_fake: RunFake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too little space for one artifact says how much it needs; others are measured."""
    monkeypatch.setattr("edgebench.harness.artifacts.expected_bytes", lambda *_, **__: 1 << 60)
    bad, good = run_fake(make_scenario("quantization: copy", "threads: 1")).record.cells
    assert (bad.status, good.status) == ("failed", "ok")
    assert bad.failure is not None
    assert "making model-copy-fake needs 1048576.0 TiB" in bad.failure.message
    assert "edgebench models prune" in bad.failure.message


# Prompts ------------------------------------------------------------------------------------------


def test_without_a_runners_tokenizer_the_models_own_is_used(run_two: RunTwo, folder: Path) -> None:
    """The prompt goes through the template and the tokenizer of the model's files."""
    run = run_two(str(folder), "runner: mute, quantization: int4, makes: folder")
    (cell,) = run.record.cells
    assert (cell.status, cell.n) == ("ok", 1)
    assert run.record.variants[0].artifact is not None
    assert run.record.variants[0].artifact.name == "tiny-hf-int4-makes=folder-mute"
    (workload,) = run.record.workloads
    assert workload.prompt_text == "[ab]"
    (trial,) = [trial for trial in run.trials if trial.tokens]
    assert trial.tokens is not None
    # One a byte: the alphabet begins at "!", which is 33 and has the id 3. No start token.
    ids = [ord(character) - 33 + 3 for character in "[ab]"]
    assert trial.tokens.prompt_tokens == len(ids)
    assert workload.prompt_sha256 == hashlib.sha256(",".join(map(str, ids)).encode()).hexdigest()


def test_an_architecture_need_not_be_known_for_its_tokenizer(run_two: RunTwo, folder: Path) -> None:
    """What only the framework's own exporter understands is tokenized like any other model."""
    for config in (CONFIG | {"model_type": "other"}, {"text_config": CONFIG, "model_type": "o"}):
        (folder / "config.json").write_text(json.dumps(config))
        run = run_two(str(folder), "runner: mute, quantization: int4")
        assert [cell.status for cell in run.record.cells] == ["ok"]
        assert run.record.workloads[0].prompt_tokens == 4


def test_prompts_are_the_same_with_and_without_a_runners_tokenizer(
    run_two: RunTwo, folder: Path
) -> None:
    """One variant with a tokenizer makes the ids of all, wherever it stands."""
    both = run_two(
        str(folder), "runner: mute, quantization: int4", "runner: fake",
        workloads="[{name: a, prompt_tokens: 9, generate_tokens: 3}]",
    )  # fmt: skip
    assert [cell.status for cell in both.record.cells] == ["ok", "ok"]
    assert both.record.variants[0].artifact is not None
    # The fake tokenizer puts a start token first, the model's own does not.
    alone = run_two(
        str(folder), "runner: mute, quantization: int4",
        workloads="[{name: a, prompt_tokens: 9, generate_tokens: 3}]",
    )  # fmt: skip
    assert both.record.workloads[0].prompt_tokens == alone.record.workloads[0].prompt_tokens == 9
    assert both.record.workloads[0].prompt_sha256 != alone.record.workloads[0].prompt_sha256


def test_two_runners_take_turns_in_every_block(run_two: RunTwo, folder: Path) -> None:
    """Interleaving mixes frameworks: each block starts each once, in an order of its own."""
    run = run_two(
        str(folder), "runner: mute, quantization: int4", "runner: fake",
        measure="{warmup: {min: 0, max: 0}, repetitions: {min: 6, max: 6}, per_block: 1}",
    )  # fmt: skip
    loads = [trial for trial in run.trials if trial.kind == "load"]
    orders = [tuple(each.variant for each in loads if each.block == block) for block in range(6)]
    assert {frozenset(order) for order in orders} == {frozenset({"mute int4", "fake source"})}
    assert len(set(orders)) == 2
    assert [cell.n for cell in run.record.cells] == [6, 6]
    assert set(run.record.runners) == {"mute", "fake"}


def test_one_framework_fails_beside_another_that_is_measured(run_two: RunTwo, folder: Path) -> None:
    """A conversion of one framework that fails leaves the other's cells as they would have been."""
    run = run_two(
        str(folder), "runner: mute, quantization: int4, makes: crash", "runner: fake",
        "runner: mute, quantization: int4, fail: crash",
    )  # fmt: skip
    crashed, good, dead = run.record.cells
    assert (crashed.status, good.status, dead.status) == ("failed", "ok", "failed")
    assert crashed.failure is not None
    assert dead.failure is not None
    assert (crashed.failure.kind, crashed.failure.signal) == ("crash", "SIGKILL")
    assert (dead.failure.kind, dead.failure.signal) == ("crash", "SIGSEGV")


def test_without_any_tokenizer_random_ids_still_make_a_prompt(
    run_two: RunTwo, tmp_path: Path
) -> None:
    """Where nobody can tokenize, that workload fails and says why; synthetic ones are measured."""
    (tmp_path / "model.bin").write_bytes(b"weights")
    run = run_two(
        "model.bin", "runner: mute, quantization: int4",
        workloads="[{name: words, prompt: hello, generate_tokens: 2},"
        " {name: drawn, prompt_tokens: 5, text: synthetic, generate_tokens: 2}]",
    )  # fmt: skip
    words, drawn = run.record.cells
    assert (words.status, drawn.status) == ("failed", "ok")
    assert words.failure is not None
    assert "no framework here tells its tokenizer's ids" in words.failure.message
    assert "is neither a GGUF file nor a folder" in words.failure.message


def test_a_damaged_tokenizer_is_a_failed_cell(run_two: RunTwo, folder: Path) -> None:
    """A tokenizer that only turns out to be damaged when it is built is told like any other."""
    file = folder / "tokenizer.json"
    file.write_text(file.read_text().replace('"merges"', '"nerges"'))
    (cell,) = run_two(str(folder), "runner: mute, quantization: int4").record.cells
    assert cell.status == "failed"
    assert cell.failure is not None
    assert "merges" in cell.failure.message
