"""What a bundle for LiteRT-LM says of itself, looked at before the engine gets to see it.

Two kinds of files hold the same parts: a ``.litertlm`` file, whose header is a FlatBuffer with the
place of each, and MediaPipe's older ``.task`` file, which is a zip file. Only the standard library
is used: where a model runs, the packages that make bundles need not be.
"""

from __future__ import annotations

import mmap
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from edgebench.runners.base import RunnerFailure
from edgebench.runners.flatbuffer import FlatBuffer, FlatBufferError
from edgebench.runners.litert_facts import Facts, ModelSettings, read_facts, read_settings

MAGIC, ZIP, GGUF = b"LITERTLM", b"PK\x03\x04", b"GGUF"
MAJOR_VERSION = 1
"""Of the format that is read here; a higher one may have its parts in other places."""

HEADER_SIZE_AT, HEADER_AT = 24, 32
"""Where the place of the header's end stands, and where the header begins: after the magic bytes
and three numbers of the format's version."""

# The tables of a .litertlm file's header: fields by their place in its schema.
SYSTEM_METADATA, SECTIONS = 0, 1
ENTRIES, OBJECTS = 0, 0
KEY, VALUE_KIND, VALUE = 0, 1, 2
ITEMS, BEGIN, END, KIND = 0, 1, 2, 3
STRING_VALUE = 9

GRAPH, SP_TOKENIZER, SETTINGS, HF_TOKENIZER = 3, 4, 5, 6
"""Kinds of sections. The last one is packed by zlib, after 8 bytes with its unpacked size."""

DECODER = "tf_lite_prefill_decode"
EMBEDDERS = ("tf_lite_embedder", "tf_lite_per_layer_embedder")
"""Graphs of their own that look up what the decoder then takes for tokens."""

TASK_PARTS = {
    "TF_LITE_PREFILL_DECODE": GRAPH,
    "TOKENIZER_MODEL": SP_TOKENIZER,
    "METADATA": SETTINGS,
}

FACTS = "edgebench"
WAY_OUT = (
    "choose quantization fp32, fp16, int8, int8_weight_only or int4 to have a bundle made from "
    "the model"
)


@dataclass(frozen=True, slots=True)
class Part:
    """Where a part stands in the file, in bytes."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """What a file says of itself; what it does not say is None.

    Attributes:
        settings: the engine's own: what starts and ends a text, the chat template.
        facts: what edgebench wrote into a bundle of its own.
        tokenizer: where it stands, and whether it is one of Hugging Face's or SentencePiece's.
        cache_length: places of the KV cache, by the graph.
        vocabulary_size: logits that the graph gives.
        graphs: where the decoder stands, then graphs that look up what it takes.
    """

    path: Path
    settings: ModelSettings
    facts: Facts | None
    tokenizer: Part
    sentencepiece: bool
    cache_length: int | None
    vocabulary_size: int | None
    graphs: tuple[Part, ...]

    def read(self, part: Part) -> bytes:
        """The bytes of a part."""
        with self.path.open("rb") as file:
            file.seek(part.begin)
            return file.read(part.end - part.begin)


def read_bundle(path: str) -> Bundle:
    """Read what a bundle says of itself, once it is there and as long as it must be.

    Args:
        path: a ``.litertlm`` or ``.task`` file.

    Raises:
        RunnerFailure: it is none, or cut off, or a part is missing (invalid), or its format is
            newer than what is known (unsupported).
    """
    file = Path(path)
    if file.is_dir():
        _refuse(f"LiteRT-LM reads one file, a bundle, and {file.name} is a folder; {WAY_OUT}")
    if not file.is_file():
        _refuse(f"there is no file {file}")
    try:
        with file.open("rb") as opened:
            start = opened.read(HEADER_AT)
        if start.startswith(ZIP):
            return _read_task(file)
        _check_start(file, start)
        return _read_litertlm(file)
    except (FlatBufferError, zipfile.BadZipFile, UnicodeDecodeError, struct.error) as error:
        _refuse(f"{file.name} is no whole bundle for LiteRT-LM, it is damaged or cut off: {error}")
    except OSError as error:
        _refuse(f"{file} can't be read: {error}")


def _check_start(file: Path, start: bytes) -> None:
    if not start:
        _refuse(f"{file.name} is empty; copy or make it anew")
    if start.startswith(GGUF):
        _refuse(f"{file.name} is a GGUF file, and LiteRT-LM reads bundles of its own; {WAY_OUT}")
    if not (start.startswith(MAGIC) or MAGIC.startswith(start)):
        _refuse(f"{file.name} is no bundle for LiteRT-LM, neither .litertlm nor .task; {WAY_OUT}")
    if len(start) < HEADER_AT:
        _refuse(f"{file.name} is cut off: it has {len(start)} bytes")
    major = int.from_bytes(start[len(MAGIC) : len(MAGIC) + 4], "little")
    if major > MAJOR_VERSION:
        msg = (
            f"{file.name} has version {major} of the format and this edgebench reads "
            f"{MAJOR_VERSION}; a newer edgebench may read it"
        )
        raise RunnerFailure(msg, reason="unsupported")


def _read_litertlm(path: Path) -> Bundle:
    size = path.stat().st_size
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        (end,) = struct.unpack_from("<Q", mapped, HEADER_SIZE_AT)
        if not HEADER_AT < end <= size:
            _refuse(f"{path.name} is cut off: it has {size} bytes, and its header ends at {end}")
        header = FlatBuffer(mapped[HEADER_AT:end])
        root = header.root()
        parts, embedders = _sections(header, root)
        longest = max((part.end for part in (*parts.values(), *embedders)), default=0)
        if longest > size:
            _refuse(
                f"{path.name} is cut off: it has {size} bytes and needs {longest}; copy or make it "
                "anew"
            )
        told = _entries(header, header.field(root, SYSTEM_METADATA)).get(FACTS)
        facts = read_facts(told) if told else None
        return _bundle(path, memoryview(mapped), parts, embedders, facts)


def _sections(header: FlatBuffer, root: int) -> tuple[dict[int, Part], list[Part]]:
    """The sections that are used here, by their kind; of graphs the decoder, and the embedders."""
    found: dict[int, Part] = {}
    embedders: list[Part] = []
    place = header.field(root, SECTIONS)
    if not place:
        return found, embedders
    for each in header.tables(header.field(header.follow(place), OBJECTS)):
        begin, end, kind = (header.field(each, field) for field in (BEGIN, END, KIND))
        number = header.number("B", kind) if kind else 0
        part = Part(*(header.number("Q", at) if at else 0 for at in (begin, end)))
        if part.end < part.begin:
            msg = f"a part of it ends at {part.end}, before it begins"
            raise FlatBufferError(msg)
        items = _items(header, header.field(each, ITEMS))
        model = items.get("model_type", DECODER).lower()
        if number != GRAPH or model == DECODER:
            found[number] = part
        elif model in EMBEDDERS:
            embedders.append(part)
    return found, embedders


def _entries(header: FlatBuffer, place: int) -> dict[str, str]:
    return _items(header, header.field(header.follow(place), ENTRIES)) if place else {}


def _items(header: FlatBuffer, place: int) -> dict[str, str]:
    """The texts of a list of keys and values; values of other types are left out."""
    items = {}
    for each in header.tables(place):
        kind = header.field(each, VALUE_KIND)
        if kind and header.number("B", kind) == STRING_VALUE:
            value = header.follow(header.field(each, VALUE))
            key = header.text(header.field(each, KEY)).decode()
            items[key] = header.text(header.field(value, 0)).decode()
    return items


def _read_task(path: Path) -> Bundle:
    parts: dict[int, Part] = {}
    embedders: list[Part] = []
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for entry in archive.infolist():
            kind = TASK_PARTS.get(entry.filename)
            embeds = entry.filename.lower() in EMBEDDERS
            if kind is None and not embeds:
                continue
            if entry.compress_type != zipfile.ZIP_STORED:
                _refuse(
                    f"{entry.filename} of {path.name} is compressed, which the engine can't read; "
                    "pack it with method store"
                )
            # Name and extra field may be longer here than in the archive's list at its end.
            file.seek(entry.header_offset + 26)
            begin = entry.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
            part = Part(begin, begin + entry.file_size)
            if kind is None:
                embedders.append(part)
            else:
                parts[kind] = part
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
            return _bundle(path, memoryview(mapped), parts, embedders, None)


def _bundle(
    path: Path,
    data: memoryview,
    parts: dict[int, Part],
    embedders: list[Part],
    facts: Facts | None,
) -> Bundle:
    with data:
        graph, settings = parts.get(GRAPH), parts.get(SETTINGS)
        tokenizer = parts.get(HF_TOKENIZER) or parts.get(SP_TOKENIZER)
        for part, name in ((graph, "decoder"), (settings, "metadata"), (tokenizer, "tokenizer")):
            if part is None:
                _refuse(f"{path.name} is no bundle of a language model: it has no {name}")
        assert graph is not None
        assert settings is not None
        assert tokenizer is not None
        with data[graph.begin : graph.end] as model:
            cache_length, vocabulary_size = graph_shapes(model)
        return Bundle(
            path,
            read_settings(bytes(data[settings.begin : settings.end])),
            facts,
            tokenizer,
            HF_TOKENIZER not in parts,
            cache_length,
            vocabulary_size,
            (graph, *embedders),
        )


# The tables of a TFLite model, by their place in its schema.
SUBGRAPHS, SIGNATURES = 2, 7
TENSORS = 0
SHAPE = 0
INPUTS, OUTPUTS, SIGNATURE_KEY, SUBGRAPH = 0, 1, 2, 4
TENSOR_NAME, TENSOR_INDEX = 0, 1


def graph_shapes(model: memoryview | bytes) -> tuple[int | None, int | None]:
    """The places of the KV cache and the number of logits of a decoder.

    Args:
        model: a TFLite model with a signature ``decode``.

    Raises:
        FlatBufferError: it is no whole one.
    """
    graph = FlatBuffer(model)
    root = graph.root()
    subgraphs = graph.tables(graph.field(root, SUBGRAPHS))
    for signature in graph.tables(graph.field(root, SIGNATURES)):
        if graph.text(graph.field(signature, SIGNATURE_KEY)) != b"decode":
            continue
        at = graph.field(signature, SUBGRAPH)
        number = graph.number("I", at) if at else 0
        if number >= len(subgraphs):
            msg = f"it has no subgraph {number}"
            raise FlatBufferError(msg)
        tensors = graph.tables(graph.field(subgraphs[number], TENSORS))
        shapes = {
            name: _last_size(graph, tensors, each)
            for field in (INPUTS, OUTPUTS)
            for each in graph.tables(graph.field(signature, field))
            if (name := graph.text(graph.field(each, TENSOR_NAME))) in (b"mask", b"logits")
        }
        return shapes.get(b"mask"), shapes.get(b"logits")
    return None, None


def _last_size(graph: FlatBuffer, tensors: list[int], mapping: int) -> int | None:
    place = graph.field(mapping, TENSOR_INDEX)
    number = graph.number("I", place) if place else 0
    if number >= len(tensors):
        msg = f"it has no tensor {number}"
        raise FlatBufferError(msg)
    shape = graph.vector("i", graph.field(tensors[number], SHAPE))
    return shape[-1] if shape and shape[-1] > 1 else None


def _refuse(message: str) -> NoReturn:
    raise RunnerFailure(message, reason="invalid")
