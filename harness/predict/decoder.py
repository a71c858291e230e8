"""A model as predictions need it: the sizes of its matrices, and no weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from edgebench.harness.errors import ModelError, UsageError
from edgebench.harness.scenario.problems import quote, suggestion
from edgebench.models.shapes import SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.models.architecture import Architecture
    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.shapes import ModelShape

Role = Literal["embedding", "output", "q", "k", "v", "o", "gate", "up", "down"]
"""What a matrix does; quantisers treat some with more bits than others."""

ROLES: dict[str, Role] = {
    "q_proj": "q",
    "k_proj": "k",
    "v_proj": "v",
    "o_proj": "o",
    "gate_proj": "gate",
    "up_proj": "up",
    "down_proj": "down",
}


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """One matrix.

    Attributes:
        rows, columns: outputs and inputs of its layer; what is quantised together lies in a row.
        layer: which of the decoder's layers it is of; None outside of them.
    """

    role: Role
    rows: int
    columns: int
    layer: int | None = None

    @property
    def weights(self) -> int:
        """How many."""
        return self.rows * self.columns


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """What the weights of a model take.

    Attributes:
        total: all of them, bytes; a file has some more for its tokenizer.
        read: what decoding one token reads of them, each once: of the embedding a row.
    """

    total: int
    read: int


@dataclass(frozen=True, slots=True)
class Decoder:
    """A decoder's sizes.

    Attributes:
        name: to be shown.
        layer_vector_weights: norms and biases of one layer, in numbers of weights.
        tied: the output layer is the embedding.
        context_tokens: the longest context that it was trained for; None where not known.
        stored: of a model that exists as a file, what its weights take as they are; else None.
        stored_as: how that file keeps most of them.
        window, windowed_layers: so many layers look back to so many tokens; None where all see all.
    """

    name: str
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    layer_vector_weights: int
    tied: bool
    context_tokens: int | None = None
    stored: StoredBytes | None = None
    stored_as: str = ""
    window: int | None = None
    windowed_layers: int = 0

    def layer_matrices(self) -> Iterator[MatrixShape]:
        """The matrices of all layers, layer by layer."""
        queries, keys = self.heads * self.head_size, self.kv_heads * self.head_size
        for layer in range(self.layers):
            yield MatrixShape("q", queries, self.hidden, layer)
            yield MatrixShape("k", keys, self.hidden, layer)
            yield MatrixShape("v", keys, self.hidden, layer)
            yield MatrixShape("o", self.hidden, queries, layer)
            yield MatrixShape("gate", self.intermediate, self.hidden, layer)
            yield MatrixShape("up", self.intermediate, self.hidden, layer)
            yield MatrixShape("down", self.hidden, self.intermediate, layer)

    @property
    def embedding(self) -> MatrixShape:
        """The matrix that a token's row is taken from."""
        return MatrixShape("embedding", self.vocabulary, self.hidden)

    @property
    def output(self) -> MatrixShape:
        """The matrix that makes logits; where tied, it is the embedding."""
        return MatrixShape("output", self.vocabulary, self.hidden)

    @property
    def vector_weights(self) -> int:
        """Of all norms and biases."""
        return self.layers * self.layer_vector_weights + self.hidden

    @property
    def layer_weights(self) -> int:
        """Of the matrices of all layers."""
        return sum(each.weights for each in self.layer_matrices())

    @property
    def parameters(self) -> int:
        """All weights; tied embeddings count once."""
        outer = self.embedding.weights * (1 if self.tied else 2)
        return self.layer_weights + outer + self.vector_weights

    @property
    def read_weights(self) -> int:
        """Those that decoding one token reads: of an embedding that is kept apart, a row."""
        looked_up = 0 if self.tied else self.embedding.weights - self.hidden
        return self.parameters - looked_up


def decoder_of(model: str) -> Decoder:
    """The model that somebody named.

    Args:
        model: a key of `SHAPES`; a GGUF file, or a folder in Hugging Face's layout; or a source as
            scenarios write it, ``synthetic:KEY`` or ``path:FILE``.

    Raises:
        UsageError: there is no such model.
        ModelError: the file or folder can't be read.
    """
    key = model.removeprefix("synthetic:")
    if key in SHAPES:
        return of_shape(SHAPES[key])
    if not model.removeprefix("path:").strip():
        msg = "no model is named"
        raise UsageError(msg, remedy=f"Known by name: {', '.join(SHAPES)}. Or name a file.")
    path = Path(model.removeprefix("path:")).expanduser()
    if path.exists():
        return _of_path(path)
    near = suggestion(key, SHAPES)
    known = f"Known by name: {', '.join(SHAPES)}. Or name a GGUF file or a Hugging Face folder."
    if model.startswith(("hf:", "pypi:")):
        msg = f"{quote(model)} is not read from the net for a prediction"
        raise UsageError(msg, remedy=f"Download it and name the file. {known}")
    msg = f"there is no model {quote(model)}, neither by that name nor as a file"
    raise UsageError(msg, remedy=f"Did you mean {near}? {known}" if near else known)


def of_shape(shape: ModelShape) -> Decoder:
    """A well-known model."""
    return Decoder(
        name=shape.title,
        layers=shape.layers,
        hidden=shape.hidden,
        intermediate=shape.intermediate,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_size=shape.head_size,
        vocabulary=shape.vocabulary,
        layer_vector_weights=shape.layer_vector_weights,
        tied=shape.tied,
        context_tokens=shape.context_tokens,
        window=shape.window,
        windowed_layers=shape.windowed_layers,
    )


def _of_path(path: Path) -> Decoder:
    try:
        from edgebench.models.canonical import open_model  # noqa: PLC0415 - needs packages
        from edgebench.models.errors import (  # noqa: PLC0415
            ModelFormatError,
            UnsupportedModelError,
        )
    except ImportError as error:
        msg = f"{quote(str(path))} can't be read: {error}"
        raise ModelError(msg, remedy="Install: pip install 'edgebench[convert]'.") from error
    try:
        return of_model(open_model(path))
    except ImportError as error:
        msg = f"{quote(str(path))} can't be read: {error}"
        raise ModelError(msg, remedy="Install: pip install 'edgebench[convert]'.") from error
    except (ModelFormatError, UnsupportedModelError) as error:
        msg = f"{error}"
        raise ModelError(msg) from error


def of_model(model: CanonicalModel) -> Decoder:
    """A model that is there, with the bytes of its tensors as they are stored."""
    shape = model.architecture
    return Decoder(
        name=model.path.stem if model.path.is_file() else model.path.name,
        layers=shape.layers,
        hidden=shape.hidden_size,
        intermediate=shape.intermediate_size,
        heads=shape.heads,
        kv_heads=shape.kv_heads,
        head_size=shape.head_size,
        vocabulary=shape.vocabulary_size,
        layer_vector_weights=_layer_vector_weights(shape),
        tied=shape.tied_embeddings,
        context_tokens=shape.context_tokens,
        stored=_stored(model),
        stored_as=_mostly(model),
    )


def _layer_vector_weights(shape: Architecture) -> int:
    vectors = (
        math.prod(each)
        for name, each in shape.tensor_shapes().items()
        if name.startswith("model.layers.0.") and len(each) == 1
    )
    return sum(vectors)


def _stored(model: CanonicalModel) -> StoredBytes:
    from edgebench.harness.predict.gguf_types import row_bytes  # noqa: PLC0415 - it imports this

    total = read = 0
    for name, tensor in model.weights.items():
        *rows, columns = tensor.shape
        nbytes = math.prod(rows) * row_bytes(tensor.stored_as, columns)
        total += nbytes
        looked_up = name == "model.embed_tokens.weight" and not model.architecture.tied_embeddings
        read += nbytes // tensor.shape[0] if looked_up else nbytes
    return StoredBytes(total, read)


def _mostly(model: CanonicalModel) -> str:
    counts: dict[str, int] = {}
    for tensor in model.weights.values():
        counts[tensor.stored_as] = counts.get(tensor.stored_as, 0) + math.prod(tensor.shape)
    return max(counts, key=counts.__getitem__)
