"""A Hugging Face folder as llama.cpp's file: what llama.cpp says of it, and what transformers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tiny_models import LLAMA3, TEXT, log_likelihoods, tiny_folder

from edgebench.models.canonical import open_model
from edgebench.runners.base import (
    ConvertRequest,
    GenerateRequest,
    LoadRequest,
    RunnerFailure,
    ScoreRequest,
)
from edgebench.runners.gguf_write import exact_type, interleave, write_gguf
from edgebench.runners.llama_cpp import LlamaCppRunner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.llama_cpp, pytest.mark.transformers]

EXACT = {
    "threads": 1,
    "flash_attention": "off",
    "kv_cache_type_k": "f32",
    "kv_cache_type_v": "f32",
}
LINEAR = {"rope_type": "linear", "factor": 4.0}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, tied, every bias": (
        "llama",
        {"tie_word_embeddings": True, "attention_bias": True, "mlp_bias": True},
    ),
    "llama, llama3 rope": ("llama", {"rope": LLAMA3}),
    "llama, linear rope": ("llama", {"rope": LINEAR}),
    "mistral": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {"rope": LINEAR}),
    "qwen3": ("qwen3", {"head_dim": 32}),
}


def scores(path: Path, ids: list[int]) -> list[float]:
    runner = LlamaCppRunner()
    runner.load(LoadRequest(str(path), 256, EXACT))
    try:
        return list(runner.score(ScoreRequest(ids)).log_likelihoods)
    finally:
        runner.close()


@pytest.mark.parametrize("case", CASES)
def test_llama_cpp_rates_a_folder_as_transformers_does(case: str, tmp_path: Path) -> None:
    """Order of queries and keys, biases, norms and frequencies arrive as they were."""
    family, changes = CASES[case]
    oracle = tiny_folder(tmp_path / "model", family, **changes)
    model = open_model(tmp_path / "model")
    ids = model.tokenizer.encode(TEXT)[:100]
    write_gguf(model, str(tmp_path / "model.gguf"), "F32")
    assert scores(tmp_path / "model.gguf", ids) == pytest.approx(
        log_likelihoods(oracle, ids), abs=1e-4
    )


def test_the_tokenizer_arrives(tmp_path: Path) -> None:
    """llama.cpp makes the same ids of a text, special tokens included, as the folder's own."""
    tiny_folder(tmp_path / "model", "llama")
    model = open_model(tmp_path / "model")
    write_gguf(model, str(tmp_path / "model.gguf"), "F32")
    runner = LlamaCppRunner()
    loaded = runner.load(LoadRequest(str(tmp_path / "model.gguf"), 1, vocab_only=True))
    text = f"<|start|>{TEXT}\n\n  x = 12345;\t日本 🙂<|end|> and on"
    assert runner.tokenize(text) == model.tokenizer.encode(text)
    assert loaded.eos_text == "<|end|>"
    runner.close()


@pytest.mark.parametrize("quantization", ["F32", "F16", "BF16", "Q8_0"])
def test_the_runner_makes_its_file_of_a_folder(quantization: str, tmp_path: Path) -> None:
    """A folder is as good a source as a file, for every quantisation, and leaves nothing else."""
    oracle = tiny_folder(tmp_path / "model", "llama", dtype="bfloat16")
    target = tmp_path / "made" / "out.gguf"
    target.parent.mkdir()
    runner = LlamaCppRunner()
    made = runner.convert(ConvertRequest(str(tmp_path / "model"), quantization, str(target)))
    assert [path.name for path in target.parent.iterdir()] == ["out.gguf"]
    assert "edgebench" in made["tool"]
    assert "lost" not in made.get("note", "")  # the source was not quantised
    runner.load(LoadRequest(str(target), 256, EXACT))
    ids = open_model(tmp_path / "model").tokenizer.encode(TEXT)[:60]
    found = runner.score(ScoreRequest(ids)).log_likelihoods
    # Activations are rounded to the type of the weights, in 8 bits at the most.
    wrong = np.abs(np.subtract(found, log_likelihoods(oracle, ids)))
    assert wrong.max() < (1e-4 if quantization == "F32" else 0.5)
    assert len(runner.generate(GenerateRequest(ids, 3)).token_ids) == 3
    runner.close()


def test_a_disk_too_small_for_the_file_between_is_noticed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Says how much is needed and free; nothing is written."""
    tiny_folder(tmp_path / "model", "llama")
    (tmp_path / "made").mkdir()
    full = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    request = ConvertRequest(str(tmp_path / "model"), "Q8_0", str(tmp_path / "made" / "out.gguf"))
    with pytest.raises(RunnerFailure, match=r"not enough disk space.*F32.*free"):
        LlamaCppRunner().convert(request)
    assert not list((tmp_path / "made").iterdir())


def test_frequencies_that_the_file_cannot_hold_are_refused(tmp_path: Path) -> None:
    """A scaling that llama.cpp computes in its own way is named, not approximated."""
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
    tiny_folder(tmp_path / "model", "qwen2", rope=rope)
    with pytest.raises(RunnerFailure, match=r"yarn scaling.*convert_hf_to_gguf") as caught:
        write_gguf(open_model(tmp_path / "model"), str(tmp_path / "model.gguf"), "F32")
    assert caught.value.reason == "unsupported"


@pytest.mark.parametrize(("dtype", "kind"), [("float32", "F32"), ("bfloat16", "BF16")])
def test_no_bits_are_lost_and_none_are_wasted(dtype: str, kind: str, tmp_path: Path) -> None:
    """The file between a folder and a quantisation keeps the weights as they were stored."""
    tiny_folder(tmp_path / "model", "llama", dtype=dtype)
    assert exact_type(open_model(tmp_path / "model")) == kind


def test_the_halves_of_a_head_are_interleaved() -> None:
    """Row 0 of each head is followed by the first row of its second half."""
    rows = np.arange(8, dtype=np.float32)[:, None]
    assert interleave(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
