"""One form for all models, lazy: nothing but its description is in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from edgebench.models.errors import ModelFormatError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from edgebench.models.architecture import Architecture
    from edgebench.models.tokenizer import Tokenizer
    from edgebench.models.weights import Weights

EXACT_TYPES = frozenset({"F32", "F16", "BF16"})


@dataclass(frozen=True)
class CanonicalModel:
    """A model that every framework's artifact can be made from.

    Attributes:
        path: the GGUF file or the Hugging Face folder.
        architecture: what its forward pass is.
        weights: every tensor of `Architecture.tensor_shapes`, by Hugging Face name. Queries and
            keys are in Hugging Face's order (halves are rotated, not neighbours).
        read_tokenizer: makes the tokenizer; use `tokenizer`, which does it once.
    """

    path: Path
    architecture: Architecture
    weights: Weights
    read_tokenizer: Callable[[], Tokenizer]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The model's tokenizer, read when first asked for."""
        return self.read_tokenizer()

    @property
    def lossy_types(self) -> tuple[str, ...]:
        """The quantised types that its source keeps weights in, most weights first."""
        counts: dict[str, int] = {}
        for tensor in self.weights.values():
            size = 1
            for length in tensor.shape:
                size *= length
            counts[tensor.stored_as] = counts.get(tensor.stored_as, 0) + size
        ordered = sorted(counts, key=lambda name: -counts[name])
        return tuple(name for name in ordered if name not in EXACT_TYPES)


def open_model(path: Path) -> CanonicalModel:
    """Open a GGUF file, or a folder in Hugging Face's layout.

    Raises:
        ModelFormatError: it can't be read.
        UnsupportedModelError: it holds something that is not understood, which is named.
    """
    from edgebench.models.gguf_file import is_gguf, open_gguf  # noqa: PLC0415 - as needed
    from edgebench.models.hf_folder import open_folder  # noqa: PLC0415

    if path.is_dir():
        return open_folder(path)
    if is_gguf(path):
        return open_gguf(path)
    msg = (
        f"{path} is neither a GGUF file nor a folder with config.json, tokenizer.json and "
        "*.safetensors, which is what frameworks' models are made from"
    )
    raise ModelFormatError(msg)
