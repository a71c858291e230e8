"""What a Hugging Face folder can't say is refused; the rest is proved against transformers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from edgebench.models.architecture import Architecture, Rope
from edgebench.models.canonical import CanonicalModel
from edgebench.models.errors import ModelFormatError, UnsupportedModelError
from edgebench.models.export import export_folder
from edgebench.models.hf_folder import open_folder
from edgebench.models.rope import default_rope, linear_rope, llama3_rope, yarn_rope
from edgebench.models.tokenizer import Tokenizer

if TYPE_CHECKING:
    from edgebench.models.weights import Floats


@dataclass(frozen=True)
class Constant:
    """A tensor of one number."""

    shape: tuple[int, ...]
    value: float
    stored_as: str = "F32"

    def read(self, start: int = 0, stop: int | None = None) -> Floats:
        rows = len(range(self.shape[0])[start:stop])
        return np.full((rows, *self.shape[1:]), self.value, dtype=np.float32)


TOKENIZER = Tokenizer(
    '{"model": {"type": "BPE", "vocab": {"a": 0, "<s>": 1}, "merges": []}}', end_ids=(1, 0)
)


def model(value: float = 1.0, **changes: Any) -> CanonicalModel:
    sizes: dict[str, Any] = {
        "family": "llama",
        "layers": 1,
        "hidden_size": 8,
        "intermediate_size": 6,
        "heads": 2,
        "kv_heads": 1,
        "head_size": 8,
        "vocabulary_size": 10,
        "context_tokens": 16,
        "norm_epsilon": 1e-5,
        "rope": default_rope(10000.0, 8),
    }
    architecture = Architecture(**(sizes | changes))
    weights = {name: Constant(shape, value) for name, shape in architecture.tensor_shapes().items()}
    return CanonicalModel(Path("m"), architecture, weights, lambda: TOKENIZER)


ROPES = [
    linear_rope(10000.0, 8, factor=4.0),
    llama3_rope(5e5, 8, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_context=8),
    yarn_rope(10000.0, 8, factor=2.0, original_context=8, attention_factor=1.5, truncate=False),
]


@pytest.mark.parametrize(
    "changes",
    [
        *({"rope": rope} for rope in ROPES),
        {"attention_bias": True, "output_bias": True, "mlp_bias": True, "tied_embeddings": True},
        {"family": "mistral", "context_tokens": 32768},
        {"family": "qwen2", "attention_bias": True},
        {"family": "qwen3", "qk_norm": True},
    ],
)
def test_an_export_opens_as_the_same_architecture(changes: dict[str, Any], tmp_path: Path) -> None:
    """Shape, biases and every kind of rotation survive the way out and in again."""
    exported = model(**changes)

    export_folder(exported, tmp_path / "out", "F32")
    again = open_folder(tmp_path / "out")

    assert again.architecture == exported.architecture
    assert again.weights["model.layers.0.mlp.up_proj.weight"].read().tolist() == [[1.0] * 8] * 6
    assert again.tokenizer.end_ids == (1, 0)
    assert again.tokenizer.encode("a") == [0]


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"attention_bias": True}, "llama model has no configuration .* attention output without"),
        ({"family": "qwen2"}, "qwen2 model .* q/k/v without bias"),
        ({"family": "qwen3", "qk_norm": True, "mlp_bias": True}, "MLP with bias"),
        ({"rope": Rope(10000.0, "llama3", (1.0,) * 4)}, "llama3.* known by its frequencies only"),
    ],
)
def test_what_a_configuration_can_not_say_is_refused(
    changes: dict[str, Any], named: str, tmp_path: Path
) -> None:
    """Nothing is written that would be read as another model."""
    with pytest.raises(UnsupportedModelError, match=named):
        export_folder(model(**changes), tmp_path / "out", "F32")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("value", "dtype"), [(65520.0, "F16"), (3.4e38, "BF16"), (float("nan"), "F16")]
)
def test_numbers_without_room_are_refused(value: float, dtype: Any, tmp_path: Path) -> None:
    """A weight that would become infinite is named, and the folder is left no model's."""
    with pytest.raises(ModelFormatError, match=f"numbers that {dtype} has no room for"):
        export_folder(model(value), tmp_path / "out", dtype)
    assert not (tmp_path / "out" / "config.json").exists()


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (1.0 + 2.0**-8, 1.0),  # half way: to the even one
        (1.0 + 3 * 2.0**-8, 1.0 + 2.0**-6),
        (1.0 + 2.0**-8 + 2.0**-20, 1.0 + 2.0**-7),
        (-1.0 - 2.0**-9, -1.0),
    ],
)
def test_bfloat16_is_rounded_to_nearest_even(value: float, rounded: float, tmp_path: Path) -> None:
    """Seven bits are kept behind the point, and halves go to the even neighbour."""
    export_folder(model(value), tmp_path / "out", "BF16")

    norm = open_folder(tmp_path / "out").weights["model.norm.weight"]
    assert norm.stored_as == "BF16"
    assert norm.read().tolist() == [rounded] * 8
