"""How many bytes of weights a library of MLC's reads to decode a token, by the index of weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.runners.mlc_folder import ITEM_BYTES

if TYPE_CHECKING:
    from edgebench.runners.mlc_folder import Folder, Stored
    from edgebench.runners.mlc_library import Metadata

EMBEDDINGS = ("embed", "wte.")
"""What stands in the names of the parameters that rows are looked up in."""

EXPERTS = ("expert", "moe.")
"""What stands in the names of parameters of which a token takes some."""


def weight_bytes_per_token(folder: Folder, metadata: Metadata) -> int | None:
    """Bytes of weights and scales that decoding a token reads, each once, as they are loaded.

    Args:
        folder: the model's.
        metadata: of the library, which names the parameters that it takes.

    Returns:
        None where it can't be told: no embedding is found by its name, or a token takes some
        parts of the weights only.
    """
    stored = folder.tensors
    found = [stored[name] for name, _, _ in metadata.parameters if name in stored]
    if len(found) != len(metadata.parameters):
        return None
    if any(part in each.name for each in found for part in EXPERTS):
        return None
    looked_up = [each for each in found if any(part in each.name for part in EMBEDDINGS)]
    if not looked_up or not all(each.shape for each in looked_up):
        return None
    rows = {each.shape[0] for each in looked_up}
    others = [each for each in found if each not in looked_up]
    untied = any(_is_output(each, rows) for each in others)
    total = sum(map(_nbytes, others))
    return total + sum(_nbytes(each) // (each.shape[0] if untied else 1) for each in looked_up)


def _is_output(stored: Stored, rows: set[int]) -> bool:
    """Whether it is an output layer: of no numbered layer, and with as many outputs as rows.

    In some layouts of MLC's the outputs come last.
    """
    numbered = any(part.isdigit() for part in stored.name.split("."))
    return not numbered and len(stored.shape) > 1 and bool(rows & set(stored.shape))


def _nbytes(stored: Stored) -> int:
    """In memory: where the file has bfloat16 for float32, that is made of it as it is loaded."""
    size = ITEM_BYTES[stored.dtype]
    for length in stored.shape:
        size *= length
    return size
