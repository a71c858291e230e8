"""MLC's tensor cache, written front to back, some rows of a matrix at a time.

``params_shard_N.bin`` hold the tensors one after the other, ``tensor-cache.json`` says which lies
where, with a checksum of each shard. Shards are cut as TVM's own writer cuts them
(``tvm.contrib.tvmjs.dump_tensor_cache``). MLC keeps float32 as bfloat16 there (``f32-to-bf16``),
which loses precision; here everything is kept as it is computed with (``raw``).
"""

from __future__ import annotations

import hashlib
import json
import math
from typing import TYPE_CHECKING

from edgebench.runners.base import RunnerFailure
from edgebench.runners.checked_weights import HALF_LIMIT, checked_rows
from edgebench.runners.mlc_layout import parameters
from edgebench.runners.mlc_names import INDEXES
from edgebench.runners.mlc_quantize import quantize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from edgebench.models.canonical import CanonicalModel
    from edgebench.models.weights import Weights
    from edgebench.runners.mlc_layout import Entry, Parameter, Quantization

    Floats = NDArray[np.float32]

SHARD_BYTES = 32 << 20
"""A shard is smaller; a tensor of at least half of it has one for itself."""


class TensorCache:
    """Writes shards and their index.

    Args:
        folder: where they go; it is there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._waiting: list[dict[str, object]] = []
        self._bytes = bytearray()
        self._shards: list[dict[str, object]] = []
        self._tensors = 0
        self._nbytes = 0

    def add(self, entry: Entry, data: Iterable[memoryview]) -> None:
        """Append a tensor.

        Args:
            entry: which.
            data: its bytes, in order; a small tensor's are kept until its shard is full.

        Raises:
            OSError: the disk is full, or the folder can't be written.
        """
        self._tensors += 1
        self._nbytes += entry.nbytes
        if len(self._bytes) + entry.nbytes >= SHARD_BYTES:
            if 2 * entry.nbytes >= SHARD_BYTES:
                self._write(data, entry.nbytes, [_record(entry, 0)])
                return
            self._commit()
        self._waiting.append(_record(entry, len(self._bytes)))
        for part in data:
            self._bytes += part

    def finish(self, weights: int) -> None:
        """Write what is still kept, and the index.

        Args:
            weights: how many the model has, for the index.

        Raises:
            OSError: as for `add`.
        """
        self._commit()
        metadata = {
            "ParamSize": self._tensors,
            "ParamBytes": self._nbytes,
            "BitsPerParam": self._nbytes * 8.0 / weights,
        }
        index = {"metadata": metadata, "records": self._shards}
        (self._folder / INDEXES[0]).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")

    def _commit(self) -> None:
        if self._waiting:
            self._write([memoryview(self._bytes)], len(self._bytes), self._waiting)
            self._bytes, self._waiting = bytearray(), []

    def _write(
        self, data: Iterable[memoryview], nbytes: int, records: list[dict[str, object]]
    ) -> None:
        name = f"params_shard_{len(self._shards)}.bin"
        digest = hashlib.md5(usedforsecurity=False)
        path = self._folder / name
        with path.open("xb") as file:
            for part in data:
                file.write(part)
                digest.update(part)
        size = path.stat().st_size
        if size != nbytes:
            msg = f"{path} has {size} bytes where {nbytes} were written: is the disk full?"
            raise RunnerFailure(msg)
        self._shards.append(
            {
                "dataPath": name,
                "format": "raw-shard",
                "nbytes": nbytes,
                "records": records,
                "md5sum": digest.hexdigest(),
            }
        )


def _record(entry: Entry, offset: int) -> dict[str, object]:
    return {
        "name": entry.name,
        "shape": list(entry.shape),
        "dtype": entry.dtype,
        "format": "raw",
        "nbytes": entry.nbytes,
        "byteOffset": offset,
    }


def write_weights(model: CanonicalModel, quantization: Quantization, folder: Path) -> None:
    """Write every parameter of a model.

    Args:
        model: where weights are read from, some rows at a time.
        quantization: how they are kept.
        folder: where the shards and their index go.

    Raises:
        RunnerFailure: a weight is no number, or beyond what float16 can hold.
        ModelFormatError: the source can't be read.
        OSError: the disk is full, or the folder can't be written.
    """
    cache = TensorCache(folder)
    for parameter in parameters(model.architecture):
        entries = parameter.entries(quantization)
        if len(entries) == 1:
            cache.add(entries[0], _plain(parameter, model.weights, quantization))
        else:
            scales: list[Floats] = []
            cache.add(entries[0], _codes(parameter, model.weights, scales))
            cache.add(entries[1], (each.data.cast("B") for each in scales))
    cache.finish(model.architecture.parameters)


def _plain(
    parameter: Parameter, weights: Weights, quantization: Quantization
) -> Iterator[memoryview]:
    import numpy as np  # noqa: PLC0415 - only a conversion needs it

    half = quantization.dtype == "float16"
    limit = HALF_LIMIT if half else math.inf
    kind = np.dtype("<f2" if half else "<f4")
    for values in _rows(parameter, weights, limit, f"{quantization.name} can keep"):
        yield values.astype(kind, copy=False).data.cast("B")


def _codes(parameter: Parameter, weights: Weights, scales: list[Floats]) -> Iterator[memoryview]:
    """The words of a matrix; its scales are appended to `scales` meanwhile."""
    for values in _rows(parameter, weights, math.inf, ""):
        words, factors = quantize(values)
        scales.append(factors)
        yield words.data.cast("B")


def _rows(parameter: Parameter, weights: Weights, limit: float, kept_as: str) -> Iterator[Floats]:
    for source in parameter.sources:
        yield from checked_rows(source, weights[source], limit, kept_as, "q0f32")
