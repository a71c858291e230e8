"""Folders that MLC's runner refuses, each in one sentence, and before TVM could crash on them."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from mlc_damage import CONFIG, INDEX, SHARD, change, change_shard, cut, refused

from edgebench.runners.base import (
    LoadRequest,
    RunnerFailure,
)
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.mlc, pytest.mark.transformers]


def test_models_of_others_are_told_apart(tiny: Any, tmp_path: Path) -> None:
    """A GGUF file and a folder of Hugging Face's get the way out: a quantization."""
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF")
    for path in (file, tiny.source, tmp_path / "nothing"):
        failure = refused(path)
        assert "is no folder of MLC's" in str(failure)
        assert "choose quantization q0f32, q0f16, q4f32_1, q4f16_1 or q3f16_1" in str(failure)
        assert failure.reason == "invalid"


@pytest.mark.parametrize("name", [CONFIG, INDEX])
def test_json_that_is_cut_off_is_named(artifact: Path, name: str) -> None:
    """The file and where it breaks are told, and what to do."""
    cut(artifact / name, 30)
    said = str(refused(artifact))
    assert f"{name} can't be read (" in said
    assert "copy or convert the model again" in said


@pytest.mark.parametrize("text", ["[]", '{"records": 3}', '{"records": [{"dataPath": "x"}]}'])
def test_json_of_something_else_is_no_index(artifact: Path, text: str) -> None:
    """Whatever it holds."""
    (artifact / INDEX).write_text(text, encoding="utf-8")
    assert INDEX in str(refused(artifact))


def test_a_configuration_without_the_essentials_is_none(artifact: Path) -> None:
    """Vocabulary, quantization and model type are needed."""
    model = json.loads((artifact / CONFIG).read_text("utf-8"))["model_config"]
    del model["vocab_size"]
    change(artifact / CONFIG, vocab_size=None, model_config=model)
    assert "lacks model_type, quantization or vocab_size" in str(refused(artifact))


def test_a_folder_without_weights_is_refused(artifact: Path) -> None:
    """The index of either name is missing."""
    (artifact / INDEX).unlink()
    assert "has no tensor-cache.json" in str(refused(artifact))


def test_a_folder_without_a_library_tells_the_option(artifact: Path) -> None:
    """MLC's own folders have none; two more ways to one are told."""
    (artifact / "lib.so").unlink()
    said = str(refused(artifact))
    assert "has no lib.so: set the option library" in said
    assert f"`mlc_llm compile {artifact} --device cpu -o {artifact / 'lib.so'}`" in said
    assert "let edgebench make the folder, from the source model" in said


def test_a_missing_shard_is_named(artifact: Path) -> None:
    """TVM would name it after it had loaded the others."""
    (artifact / SHARD).unlink()
    assert f"{SHARD} is missing" in str(refused(artifact))


def test_a_shard_that_was_cut_off_is_named(artifact: Path) -> None:
    """By its size."""
    size = (artifact / SHARD).stat().st_size
    cut(artifact / SHARD, 4)
    assert f"{SHARD} has {size - 4} bytes instead of {size}" in str(refused(artifact))


@pytest.mark.parametrize("method", ["prepare", "load"])
def test_a_damaged_shard_is_seen_by_its_checksum(artifact: Path, method: str) -> None:
    """Before a measured load, and in one that nothing came before."""
    with (artifact / SHARD).open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)[0]
        file.seek(1000)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(RunnerFailure, match=f"{SHARD} is damaged: its checksum is") as caught:
        getattr(MlcRunner(), method)(LoadRequest(str(artifact), 64))
    assert caught.value.reason == "invalid"


def test_checksums_that_were_compared_are_not_compared_again(artifact: Path) -> None:
    """Unless a file has changed meanwhile: what `prepare` did is no part of the measured load."""
    runner, request = MlcRunner(), LoadRequest(str(artifact), 64)
    runner.prepare(request)
    path = artifact / SHARD
    times = path.stat()
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    runner.load(request)
    path.write_bytes(data)
    with pytest.raises(RunnerFailure, match="is damaged"):
        runner.load(request)


@pytest.mark.parametrize(
    "values", [{"byteOffset": 1 << 40}, {"byteOffset": -4}, {"nbytes": 12}, {"shape": [1 << 40]}]
)
def test_a_tensor_beyond_its_shard_is_refused(artifact: Path, values: dict[str, Any]) -> None:
    """TVM reads whatever is in memory there."""
    change_shard(artifact, **values)
    assert "can't be right" in str(refused(artifact))


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"model_type": "qwen2"}, "model_type is qwen2 in its configuration and llama in the"),
        ({"quantization": "q4f16_1"}, "quantization is q4f16_1 in its configuration and q0f32 in"),
        ({"context_window_size": 512}, "context_window_size is 512 in its configuration and 256"),
        ({"vocab_size": 319}, "vocab_size is 319 in its configuration and 320"),
    ],
)
def test_a_configuration_that_disagrees_with_the_library_is_refused(
    artifact: Path, values: dict[str, Any], says: str
) -> None:
    """What disagrees is told with both values."""
    change(artifact / CONFIG, **values)
    failure = refused(artifact)
    assert says in str(failure)
    assert failure.reason == "invalid"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"name": "another"}, "tensor-cache.json has no model.embed_tokens.weight"),
        ({"shape": [64, 320]}, "is 64 x 320 float32 in tensor-cache.json and 320 x 64 float32"),
        ({"dtype": "uint32"}, "is 320 x 64 uint32 in tensor-cache.json and 320 x 64 float32"),
    ],
)
def test_weights_that_the_library_does_not_take_are_refused(
    artifact: Path, values: dict[str, Any], says: str
) -> None:
    """A name, a shape or a type that differs."""
    index = json.loads((artifact / INDEX).read_text("utf-8"))
    names = [each["name"] for each in index["records"][0]["records"]]
    change_shard(artifact, names.index("model.embed_tokens.weight"), **values)
    assert says in str(refused(artifact))
