"""The files of an MLC model: its settings, which tensor lies where, and the compiled library."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgebench.runners.base import RunnerFailure
from edgebench.runners.mlc_names import CONFIG, INDEXES, LIBRARY
from edgebench.runners.mlc_settings import QUANTIZATIONS
from edgebench.runners.scratch import scratch_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ITEM_BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "uint32": 4, "uint16": 2}
ITEM_BYTES |= {"float16": 2, "bfloat16": 2, "int16": 2, "int8": 1, "uint8": 1}
HALVED = "f32-to-bf16"
"""The format of float32 that is kept as bfloat16."""

PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor in a shard.

    Attributes:
        shape: lengths of its axes.
        dtype: of its elements once loaded.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of weights.

    Attributes:
        md5: in hexadecimal digits, or None where the index has none.
    """

    path: Path
    nbytes: int
    md5: str | None
    tensors: tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Config:
    """What ``mlc-chat-config.json`` says, as far as it matters here.

    Attributes:
        model: the nested ``model_config``, as it stands there.
        context_tokens: the most tokens, or None where a sliding window takes their place.
        library_sha256: of the library that edgebench made with it, in hexadecimal digits; None in
            a folder of MLC's compiler.
    """

    model_type: str
    quantization: str
    vocabulary_size: int
    context_tokens: int | None
    model: Mapping[str, Any]
    library_sha256: str | None


@dataclass(frozen=True, slots=True)
class Folder:
    """A model's folder.

    Attributes:
        index: the tensor cache's file.
        library: the compiled library, absolute, which may be elsewhere.
        parameters: weights before they were quantised, or None where the index does not tell.
    """

    path: Path
    config: Config
    index: Path
    shards: tuple[Shard, ...]
    parameters: int | None
    library: Path

    @property
    def tensors(self) -> dict[str, Stored]:
        """All tensors by their names."""
        return {each.name: each for shard in self.shards for each in shard.tensors}

    @property
    def library_sha256(self) -> str | None:
        """The checksum of the library, where it is the one that edgebench made with the folder."""
        own = self.library == (self.path / LIBRARY).absolute()
        return self.config.library_sha256 if own else None


def read_folder(path: str, library: str | None = None) -> Folder:
    """Read a model's settings and index, and check that its files are there, whole by their size.

    Args:
        path: the folder.
        library: of the compiled library; in the folder where None.

    Raises:
        RunnerFailure: it is none of MLC's, or something is missing, cut off or no JSON (invalid).
    """
    folder = Path(path)
    if not (folder / CONFIG).is_file():
        first = ", ".join(QUANTIZATIONS[:-1])
        msg = (
            f"{path} is no folder of MLC's: it has no {CONFIG}; choose quantization {first} or "
            f"{QUANTIZATIONS[-1]} to have one made"
        )
        raise _invalid(msg)
    config = _config(folder / CONFIG)
    index = next((folder / name for name in INDEXES if (folder / name).is_file()), None)
    if index is None:
        msg = (
            f"{path} has no {INDEXES[0]}: MLC's weights are missing; copy or convert the model "
            "again"
        )
        raise _invalid(msg)
    shards, parameters = _index(index)
    for shard in shards:
        _check_size(shard)
    return Folder(folder, config, index, shards, parameters, _library(folder, library))


@contextlib.contextmanager
def index_named(folder: Folder, name: str) -> Iterator[Path]:
    """A folder in which the index has this name, one of `INDEXES`: the model's own, or links to it.

    Raises:
        RunnerFailure: no links can be made there.
    """
    if folder.index.name == name:
        yield folder.index.parent
        return
    with contextlib.ExitStack() as cleanup:
        try:
            place = cleanup.enter_context(scratch_folder())
            (place / name).symlink_to(folder.index.absolute())
            for shard in folder.shards:
                (place / shard.path.name).symlink_to(shard.path.absolute())
        except OSError as error:
            msg = f"no links to {folder.path} can be made ({error}): name its index {name}"
            raise RunnerFailure(msg) from None
        yield place


def check_sums(folder: Folder) -> None:
    """Compare shards and library with their checksums, where they have one; reads all of them once.

    Raises:
        RunnerFailure: one differs (invalid).
    """
    for shard in folder.shards:
        if shard.md5 is not None:
            found = _digest(shard.path, hashlib.md5(usedforsecurity=False))
            _compare(shard.path, found, shard.md5, folder.index.name)
    if (expected := folder.library_sha256) is not None:
        _compare(folder.library, library_digest(folder.library), expected, CONFIG)


def library_digest(path: Path) -> str:
    """The checksum of a library, as a folder that edgebench makes keeps it."""
    return _digest(path, hashlib.sha256())


def _digest(path: Path, digest: hashlib._Hash) -> str:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _compare(path: Path, found: str, expected: str, where: str) -> None:
    if found != expected:
        msg = (
            f"{path} is damaged: its checksum is {found} and {where} says {expected}; copy or "
            "convert the model again"
        )
        raise _invalid(msg)


def _config(path: Path) -> Config:
    facts = read_json(path)
    model = facts.get("model_config")
    model = model if isinstance(model, dict) else {}

    def number(name: str) -> int | None:
        value = facts.get(name, model.get(name))
        return value if isinstance(value, int) and value > 0 else None

    vocabulary = number("vocab_size")
    names = [facts.get(name) for name in ("model_type", "quantization")]
    if vocabulary is None or not all(isinstance(name, str) for name in names):
        msg = (
            f"{path} lacks model_type, quantization or vocab_size: it is no configuration of "
            "MLC's; copy or convert the model again"
        )
        raise _invalid(msg)
    own = facts.get("edgebench")
    digest = own.get("library_sha256") if isinstance(own, dict) else None
    return Config(
        model_type=str(names[0]),
        quantization=str(names[1]),
        vocabulary_size=vocabulary,
        context_tokens=number("context_window_size"),
        model=model,
        library_sha256=digest if isinstance(digest, str) else None,
    )


def _index(path: Path) -> tuple[tuple[Shard, ...], int | None]:
    facts = read_json(path)
    try:
        shards = tuple(_shard(path, record) for record in facts["records"])
        metadata = facts.get("metadata") or {}
        bits, nbytes = metadata.get("BitsPerParam"), metadata.get("ParamBytes")
        parameters = round(8 * nbytes / bits) if bits and nbytes else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = (
            f"{path} can't be understood as an index of weights ({type(error).__name__}: {error}): "
            "copy or convert the model again"
        )
        raise _invalid(msg) from None
    return shards, parameters


def _shard(index: Path, record: Mapping[str, Any]) -> Shard:
    path = index.parent / str(record["dataPath"])
    size = int(record["nbytes"])
    tensors = []
    for each in record["records"]:
        stored = Stored(str(each["name"]), tuple(map(int, each["shape"])), str(each["dtype"]))
        # TVM would read past the end of what it has.
        begin, length = int(each["byteOffset"]), int(each["nbytes"])
        if length != _nbytes(stored, str(each["format"])) or not 0 <= begin <= size - length:
            msg = (
                f"{index}: the place of {stored.name} in {path.name} can't be right; copy or "
                "convert the model again"
            )
            raise _invalid(msg)
        tensors.append(stored)
    return Shard(path, size, record.get("md5sum"), tuple(tensors))


def _nbytes(stored: Stored, kind: str) -> int:
    size = 2 if kind == HALVED and stored.dtype == "float32" else ITEM_BYTES[stored.dtype]
    for length in stored.shape:
        size *= length
    return size


def _check_size(shard: Shard) -> None:
    try:
        size = shard.path.stat().st_size
    except OSError:
        msg = f"{shard.path} is missing: copy or convert the model again"
        raise _invalid(msg) from None
    if size != shard.nbytes:
        msg = (
            f"{shard.path} has {size} bytes instead of {shard.nbytes}: copy or convert the model "
            "again"
        )
        raise _invalid(msg)


def _library(folder: Path, library: str | None) -> Path:
    """Absolute: the dynamic linker would look for a bare name in the system's folders."""
    path = (folder / Path(library or LIBRARY).expanduser()).absolute()
    if path.is_file():
        return path
    if library is not None:
        msg = (
            f"there is no model library {path}: correct the option library, a path within the "
            "model's folder or an absolute one"
        )
    else:
        msg = (
            f"{folder} has no {LIBRARY}: set the option library to where this model's library is, "
            f"or compile one (`mlc_llm compile {folder} --device cpu -o {folder / LIBRARY}`), or "
            "let edgebench make the folder, from the source model with a quantization"
        )
    raise _invalid(msg)


def read_json(path: Path) -> dict[str, Any]:
    """A file that holds a JSON object; raises `RunnerFailure` (invalid) where it does not."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path} can't be read ({error}): copy or convert the model again"
        raise _invalid(msg) from None
    if not isinstance(value, dict):
        msg = f"{path} holds no JSON object: copy or convert the model again"
        raise _invalid(msg)
    return value


def _invalid(message: str) -> RunnerFailure:
    return RunnerFailure(message, reason="invalid")
