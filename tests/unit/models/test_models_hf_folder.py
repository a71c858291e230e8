"""Folders whose files don't go with each other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.models.canonical import open_model
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.fields import Fields
from edgebench.models.hf_config import parse_config

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 6,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 16,
    "rms_norm_eps": 1e-5,
    "vocab_size": 10,
}


def write_safetensors(path: Path, tensors: dict[str, Any]) -> None:
    header: dict[str, Any] = {}
    data = b""
    for name, array in tensors.items():
        raw = array.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": array.shape,
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def tensors(**config: Any) -> dict[str, Any]:
    shapes = parse_config(Fields("config.json", CONFIG | config)).architecture.tensor_shapes()
    return {
        name: np.full(shape, number, dtype=np.float32)
        for number, (name, shape) in enumerate(shapes.items())
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A sound model."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write_safetensors(tmp_path / "model.safetensors", tensors())
    return tmp_path


def test_a_folder_opens_without_reading_weights_or_tokenizer(folder: Path) -> None:
    """Weights and tokenizer are read when asked for; a missing tokenizer is told then."""
    model = open_model(folder)

    assert model.weights["model.norm.weight"].read(2, 4).tolist() == [19.0, 19.0]
    assert model.lossy_types == ()
    with pytest.raises(ModelFormatError, match=r"has no tokenizer\.json"):
        _ = model.tokenizer


def test_missing_tensors_are_named(folder: Path) -> None:
    """The first few of the missing tensors, and how many more, are in the message."""
    kept = {name: array for name, array in tensors().items() if "layers.1" not in name}
    write_safetensors(folder / "model.safetensors", kept)

    with pytest.raises(ModelFormatError, match=r"1\.input_layernorm\.weight.* and 5 more are"):
        open_model(folder)


def test_tensors_of_another_shape_are_named(folder: Path) -> None:
    """A weight whose shape is not what the configuration says is told with both shapes."""
    write_safetensors(folder / "model.safetensors", tensors(intermediate_size=12))

    with pytest.raises(ModelFormatError, match=r"\[12, 8\], but config.json wants \[6, 8\]"):
        open_model(folder)


def test_tensors_that_are_not_understood_are_named(folder: Path) -> None:
    """A bias that the configuration does not have may be part of the forward pass."""
    more = {"model.layers.0.self_attn.q_proj.bias": np.zeros(8)}
    write_safetensors(folder / "model.safetensors", tensors() | more)

    with pytest.raises(UnsupportedModelError, match=r"q_proj\.bias is not understood"):
        open_model(folder)


def test_old_buffers_are_no_matter(folder: Path) -> None:
    """Frequencies that old checkpoints kept beside the weights are passed over."""
    more = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.zeros(2)}
    write_safetensors(folder / "model.safetensors", tensors() | more)

    assert set(open_model(folder).weights) == set(tensors())


def test_an_output_layer_beside_tied_embeddings_must_be_their_copy(folder: Path) -> None:
    """A copy is passed over; another matrix says that the configuration is wrong."""
    (folder / "config.json").write_text(json.dumps(CONFIG | {"tie_word_embeddings": True}))
    weights = tensors()
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    write_safetensors(folder / "model.safetensors", weights)
    assert "lm_head.weight" not in open_model(folder).weights

    weights["lm_head.weight"] = weights["lm_head.weight"] + 1
    write_safetensors(folder / "model.safetensors", weights)
    with pytest.raises(ModelFormatError, match="set tie_word_embeddings to false"):
        open_model(folder)


def test_more_layers_than_tensors_are_refused_at_once(folder: Path) -> None:
    """A damaged number of layers asks for no time and no memory."""
    (folder / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 10**12}))

    with pytest.raises(ModelFormatError, match="1000000000000 layers"):
        open_model(folder)


def test_the_same_tensor_in_two_files_is_refused(folder: Path) -> None:
    """Without an index, nothing says which of the two counts."""
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    write_safetensors(folder / "b.safetensors", {"model.norm.weight": np.zeros(8)})

    with pytest.raises(ModelFormatError, match=r"both hold model\.norm\.weight"):
        open_model(folder)


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ({"model.norm.weight": "../other.safetensors"}, "which is no file's name"),
        ({"model.norm.weight": 3}, "which is no file's name"),
        ({"model.norm.weight": "lost.safetensors"}, "names lost.safetensors, which is missing"),
        ({"strange": "a.safetensors"}, "strange is in a.safetensors, which does not hold it"),
        (None, "has no weight_map"),
    ],
)
def test_an_index_that_is_wrong_is_told(places: Any, said: str, folder: Path) -> None:
    """An index leads to files of its own folder, which hold what it says."""
    (folder / "model.safetensors").rename(folder / "a.safetensors")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))

    with pytest.raises(ModelFormatError, match=said):
        open_model(folder)


def test_weights_that_can_run_programs_are_not_read(folder: Path) -> None:
    """A folder with torch's own files alone is refused with the way out."""
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")

    with pytest.raises(ModelFormatError, match="save it again with save_pretrained"):
        open_model(folder)


def test_an_adapter_is_refused_by_name(folder: Path) -> None:
    """A model whose weights are to be changed by an adapter is not the model."""
    (folder / "adapter_config.json").write_text("{}")

    with pytest.raises(UnsupportedModelError, match="merge it"):
        open_model(folder)


def test_what_is_no_model_is_told(tmp_path: Path) -> None:
    """A path that holds neither kind says which kinds there are."""
    (tmp_path / "x.bin").write_bytes(b"weights")

    with pytest.raises(ModelFormatError, match="neither a GGUF file nor a folder"):
        open_model(tmp_path / "x.bin")
    with pytest.raises(ModelFormatError, match="neither a GGUF file nor a folder"):
        open_model(tmp_path / "missing")
    with pytest.raises(ModelFormatError, match=r"has no config\.json"):
        open_model(tmp_path)
    (tmp_path / "config.json").write_bytes(b"\xff{")
    with pytest.raises(ModelFormatError, match="can't be read as JSON"):
        open_model(tmp_path)
