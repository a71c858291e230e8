"""The weights of a model as transformers has them: what a token reads of each, counted by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class Read(NamedTuple):
    """A parameter that is read whole for each token.

    Attributes:
        name: transformers'.
        rows, columns: of a matrix; a vector has one row.
        last: makes logits.
    """

    name: str
    rows: int
    columns: int
    last: bool

    @property
    def vector(self) -> bool:
        return self.rows == 1


def read_whole(model: Any) -> Iterator[Read]:
    """All parameters but an embedding that is not the output layer as well."""
    tied = model.config.tie_word_embeddings
    for name, weight in model.named_parameters():
        embedding = "embed_tokens" in name
        if embedding and not tied:
            continue
        shape = tuple(weight.shape)
        rows, columns = shape if len(shape) > 1 else (1, *shape)
        yield Read(name, rows, columns, embedding or "lm_head" in name)
