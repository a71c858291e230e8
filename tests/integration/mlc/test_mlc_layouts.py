"""Folders and libraries as MLC has them, and others than edgebench makes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mlc_damage import forget_library_sum
from tiny_models import VOCABULARY, log_likelihoods

from edgebench.runners.base import GenerateRequest, LoadRequest, ScoreRequest
from edgebench.runners.mlc import MlcRunner
from edgebench.runners.tvm_module import Library

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]

IDS = [int(token) for token in np.random.default_rng(5).integers(2, VOCABULARY, 200)]

PROMPT = IDS[:30]


def test_a_library_of_another_compiler_is_mlcs(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """Without edgebench's entry in its metadata, here written over, it was compiled by MLC."""
    library = artifact / "lib.so"
    library.write_bytes(library.read_bytes().replace(b'"edgebench": {', b'"otherkind": {'))
    forget_library_sum(artifact)
    with open_model(artifact) as each:
        assert each.model.engine == "MLC LLM (library on TVM)"
        assert each.model.engine_version.startswith("TVM 0.27")
        assert each.model.effective_options["compiler"] == "mlc_llm"
        assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)


def test_an_index_of_the_older_name_is_read(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """TVM itself reads the newer name only; nothing is left in the folder."""
    (artifact / "tensor-cache.json").rename(artifact / "ndarray-cache.json")
    before = sorted(artifact.iterdir())
    with open_model(artifact) as each:
        assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)
    assert sorted(artifact.iterdir()) == before


def test_weights_that_mlc_shortened_to_bfloat16_are_read(
    artifact: Path, tiny: Any, open_model: Callable[..., Any]
) -> None:
    """The upper half of each float32, which is how MLC itself writes them."""
    import copy

    import torch

    shorten(artifact)
    model = copy.deepcopy(tiny.model)
    with torch.no_grad():
        for weight in model.parameters():
            bits = weight.numpy().view(np.uint32) & np.uint32(0xFFFF0000)
            weight.copy_(torch.from_numpy(bits.view(np.float32)))
    with open_model(artifact) as each:
        likelihoods = each.score(IDS).log_likelihoods
    expected = np.array(log_likelihoods(model, IDS))
    assert np.abs(np.array(likelihoods) - expected).max() < 1e-4


def shorten(folder: Path) -> None:
    """Rewrite a tensor cache as ``f32-to-bf16``."""
    index = json.loads((folder / "tensor-cache.json").read_text("utf-8"))
    for shard in index["records"]:
        path = folder / shard["dataPath"]
        words = np.fromfile(path, dtype=np.uint32) >> 16
        path.write_bytes(words.astype(np.uint16).tobytes())
        shard["nbytes"] //= 2
        del shard["md5sum"]
        for each in shard["records"]:
            each["format"] = "f32-to-bf16"
            each["nbytes"] //= 2
            each["byteOffset"] //= 2
    (folder / "tensor-cache.json").write_text(json.dumps(index), encoding="utf-8")


def test_a_library_elsewhere_is_named_by_the_option(
    artifact: Path, tiny: Any, open_model: Callable[..., Any], tmp_path: Path
) -> None:
    """MLC's users keep libraries apart from weights."""
    (artifact / "lib.so").rename(tmp_path / "llama-cpu.so")
    with open_model(artifact, library=str(tmp_path / "llama-cpu.so")) as each:
        assert each.generate(PROMPT, 6).token_ids == tiny.greedy(PROMPT, 6)


@pytest.mark.parametrize("library", ["other.so", "./other.so"])
def test_a_librarys_path_starts_in_the_models_folder(
    artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    """Wherever edgebench runs, and also where the model's folder is the current one."""
    (artifact / "lib.so").rename(artifact / "other.so")
    options = {"library": library}
    monkeypatch.chdir(tmp_path)
    wanted = str(artifact / "other.so")
    assert MlcRunner().prepare(LoadRequest("artifact", 64, options)) == [wanted]
    monkeypatch.chdir(artifact)
    assert MlcRunner().load(LoadRequest(".", 64, options)).architecture == "llama"


def test_a_folder_that_is_the_current_one_is_loaded(
    artifact: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dynamic linker looks for a bare ``lib.so`` among the system's."""
    monkeypatch.chdir(artifact)
    assert MlcRunner().load(LoadRequest(".", 64)).architecture == "llama"


def test_files_to_be_read_are_told_before_loading(artifact: Path, tmp_path: Path) -> None:
    """So that a cold load finds a library elsewhere cold, too."""
    (artifact / "lib.so").rename(tmp_path / "llama-cpu.so")
    library = str(tmp_path / "llama-cpu.so")
    request = LoadRequest(str(artifact), 256, {"library": library})
    assert MlcRunner().prepare(request) == [library]


class Lacking(Library):
    """A library without some of its functions, and with one of MLC's that edgebench's has not."""

    lacks: frozenset[str] = frozenset()

    def function(self, *names: str) -> Any:
        found = super().function(*(name for name in names if name not in self.lacks))
        if found is None and "batch_prefill" in names and "prefill" in self.lacks:
            return self._batch_prefill
        return found

    def _batch_prefill(self, hidden: Any, positions: Any, cache: Any, params: Any) -> Any:
        """As MLC's: it is told which positions' logits are wanted."""
        assert np.from_dlpack(positions).tolist() == [hidden.shape[1] - 1]
        assert str(positions.dtype) == "int32"
        prefill = super().function("prefill")
        assert prefill is not None
        return prefill(hidden, cache, params)


@pytest.fixture
def lacking(tiny: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., MlcRunner]:
    """Load the tiny model in this process, some of whose functions are not to be seen."""

    def load(*names: str) -> MlcRunner:
        monkeypatch.setattr(Lacking, "lacks", frozenset(names))
        monkeypatch.setattr("edgebench.runners.mlc.Library", Lacking)
        runner = MlcRunner()
        runner.load(LoadRequest(str(tiny.artifact), 256, {"prefill_chunk": 16}))
        return runner

    return load


def test_scores_come_token_by_token_where_a_library_gives_no_other(
    lacking: Callable[..., MlcRunner], tiny: Any
) -> None:
    """Without batch_verify each token is fed in turn."""
    scores = lacking("batch_verify").score(ScoreRequest(IDS[:60], 20))
    expected = np.array(log_likelihoods(tiny.model, IDS[:60]))
    assert np.abs(np.array(scores.log_likelihoods) - expected[19:]).max() < 1e-4


def test_a_library_may_have_functions_for_batches_only(
    lacking: Callable[..., MlcRunner], tiny: Any
) -> None:
    """Then it is told that the last position's logits are wanted, in each chunk."""
    made = lacking("prefill").generate(GenerateRequest(PROMPT, 8))
    assert made.token_ids == tiny.greedy(PROMPT, 8)


def test_a_chat_template_is_told(artifact: Path) -> None:
    """With the texts of the start and end tokens, as tokenizer_config.json has them."""
    path = artifact / "tokenizer_config.json"
    facts = {"chat_template": "{{ x }}", "bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    path.write_text(json.dumps(facts), encoding="utf-8")
    model = MlcRunner().load(LoadRequest(str(artifact), 64))
    assert (model.chat_template, model.bos_text, model.eos_text) == ("{{ x }}", "<s>", "</s>")
