"""The tokenizer file that MNN reads: the parts of a ``tokenizer.json`` one by one, in binary.

MNN knows some kinds of each part. What it doesn't know is left out and named: edgebench hands
over token ids, so the file decides nothing but what MNN's own tools do with text.
"""

from __future__ import annotations

import json
import re
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.models.tokenizer import Tokenizer

    Part = Mapping[str, Any]

MAGIC, PIPELINE = 430, 4
"""The first line of the file, and which of MNN's tokenizers reads the rest."""

NOTHING = bytes([0])

SPLIT_BEHAVIOURS = {"Isolated": 0, "Removed": 1, "MergedWithPrevious": 2}


def write_tokenizer(tokenizer: Tokenizer, path: Path) -> list[str]:
    """Write the tokenizer for MNN.

    Returns:
        What MNN can't do, in words; empty where its ids should be the same for any text.
    """
    parts = json.loads(tokenizer.json)
    lacks: list[str] = []
    body = b"".join(
        (
            _head(tokenizer, parts),
            _normalizer(parts.get("normalizer"), lacks),
            _splitter(parts.get("pre_tokenizer"), lacks),
            _model(parts, lacks),
            _decoder(parts.get("decoder"), lacks),
            _added(parts.get("added_tokens") or []),
            _template(tokenizer),
        )
    )
    with path.open("xb") as file:
        file.write(body)
    return lacks


def _head(tokenizer: Tokenizer, parts: Part) -> bytes:
    """Lines of text: tokens that are skipped in decoding, that end a text, that start a prompt."""
    special = [token["id"] for token in parts.get("added_tokens") or [] if token.get("special")]
    start = [] if tokenizer.start_id is None else [tokenizer.start_id]
    groups = (special, list(tokenizer.end_ids), start)
    counts = " ".join(str(len(group)) for group in groups)
    ids = " ".join(str(token) for group in groups for token in group)
    return f"{MAGIC} {PIPELINE}\n{counts}\n{ids}\n".encode()


def _normalizer(part: Part | None, lacks: list[str]) -> bytes:
    kind = part["type"] if part else None
    if part is None or kind == "NFC":
        if kind:
            # MNN's table of single characters would also turn joiners inside emoji into blanks.
            lacks.append("text that is not in Unicode's composed form (NFC) gets other ids")
        return NOTHING
    if kind == "Prepend":
        return bytes([2]) + _text(part["prepend"])
    if kind == "Replace" and "String" in part["pattern"]:
        return bytes([3]) + _text(part["pattern"]["String"]) + _text(part["content"])
    if kind == "Strip":
        return bytes([8, bool(part.get("strip_left")), bool(part.get("strip_right"))])
    if kind == "Sequence":
        children = [_normalizer(child, lacks) for child in part["normalizers"]]
        children = [child for child in children if child != NOTHING]
        return bytes([4]) + struct.pack("<I", len(children)) + b"".join(children)
    lacks.append(f"the normalizer {kind} is left out")
    return NOTHING


def _splitter(part: Part | None, lacks: list[str]) -> bytes:
    """What cuts a text into words."""
    kind = part["type"] if part else None
    if part is None:
        return NOTHING
    if kind == "ByteLevel":
        if part.get("add_prefix_space"):
            lacks.append("no blank is put in front of a text (ByteLevel add_prefix_space)")
        return bytes([1, bool(part.get("use_regex", True))])
    if kind == "Digits":
        # MNN's own part for digits knows those of ASCII, and nothing of runs of them.
        return _split(r"\p{N}" if part.get("individual_digits") else r"\p{N}+")
    if kind == "Split" and part.get("behavior", "Isolated") in SPLIT_BEHAVIOURS:
        pattern = part["pattern"]
        text = pattern["Regex"] if "Regex" in pattern else re.escape(pattern["String"])
        return _split(text, part.get("behavior", "Isolated"), invert=bool(part.get("invert")))
    if kind == "Sequence":
        children = [_splitter(child, lacks) for child in part["pretokenizers"]]
        children = [child for child in children if child != NOTHING]
        return bytes([6]) + struct.pack("<I", len(children)) + b"".join(children)
    return _metaspace(part, lacks)


def _metaspace(part: Part, lacks: list[str]) -> bytes:
    """Blanks as visible marks, or nothing for what MNN doesn't know."""
    if part["type"] != "Metaspace":
        lacks.append(f"the pre-tokenizer {part['type']} is left out")
        return NOTHING
    scheme = part.get("prepend_scheme", "always")
    if scheme == "first":
        lacks.append("text after a special token begins with a blank of its own (Metaspace)")
    if part.get("split", True):
        lacks.append("words are not cut apart at blanks (Metaspace)")
    return bytes([3]) + _text(part.get("replacement", "▁")) + bytes([scheme != "never"])


def _split(pattern: str, behaviour: str = "Isolated", *, invert: bool = False) -> bytes:
    return bytes([4]) + _text(pattern) + bytes([invert, SPLIT_BEHAVIOURS[behaviour]])


def _kinds(part: Part | None, children: str) -> set[str]:
    """The kinds of a part and of those in it, if it is a sequence."""
    if part is None:
        return set()
    inside: set[str] = set().union(*(_kinds(child, children) for child in part.get(children, ())))
    return inside | {part["type"]}


def _model(parts: Part, lacks: list[str]) -> bytes:
    """The vocabulary and its merges: by text and by pair of ids, as MNN searches them."""
    model = parts["model"]
    if model.get("type", "BPE") != "BPE":
        lacks.append(f"it is no byte-pair encoding but {model['type']}: MNN can't encode any text")
    vocabulary: dict[str, int] = model["vocab"] if isinstance(model["vocab"], dict) else {}
    if model.get("ignore_merges"):
        lacks.append("tokens that no merges lead to are never found (ignore_merges)")
    in_words = "ByteLevel" in _kinds(parts.get("pre_tokenizer"), "pretokenizers")
    bytes_later = not in_words and "ByteLevel" in _kinds(parts.get("decoder"), "decoders")
    texts = {number: text for text, number in vocabulary.items()}
    for token in parts.get("added_tokens") or ():
        texts.setdefault(token["id"], token["content"])
    # MNN keeps the texts in a table as long as the vocabulary: a hole would lie beyond its end.
    for number in range(max(texts, default=-1) + 1):
        texts.setdefault(number, f"<unused token {number}>")
    ordered = sorted((text.encode(), number) for number, text in texts.items())
    merges = sorted(
        (vocabulary[left] << 32 | vocabulary[right], rank)
        for rank, (left, right) in enumerate(map(_pair, model.get("merges") or ()))
        if left in vocabulary and right in vocabulary
    )
    flags = bytes([bool(model.get("byte_fallback")), bytes_later])
    return b"".join(
        (
            bytes([0]),
            struct.pack("<I", len(ordered)),
            flags,
            struct.pack("<I", len(merges)),
            *(_text(text) + struct.pack("<I", number) for text, number in ordered),
            *(struct.pack("<III", key >> 32, key & 0xFFFFFFFF, rank) for key, rank in merges),
        )
    )


def _pair(merge: str | list[str]) -> tuple[str, str]:
    left, right = merge.split(" ") if isinstance(merge, str) else merge
    return left, right


def _decoder(part: Part | None, lacks: list[str]) -> bytes:
    kind = part["type"] if part else "Fuse"  # tokens are put together as they are
    if part is None or kind in ("ByteLevel", "ByteFallback", "Fuse"):
        return bytes([{"ByteLevel": 0, "ByteFallback": 1, "Fuse": 4}[kind]])
    if kind == "Metaspace":
        scheme = part.get("prepend_scheme", "always")
        return bytes([2]) + _text(part.get("replacement", "▁")) + bytes([scheme != "never"])
    if kind == "Replace" and "String" in part["pattern"]:
        return bytes([5]) + _text(part["pattern"]["String"]) + _text(part["content"])
    if kind == "Strip":
        lengths = struct.pack("<II", part.get("start", 0), part.get("stop", 0))
        return bytes([6]) + _text(part.get("content", " ")) + lengths
    if kind == "Sequence":
        children = [_decoder(child, lacks) for child in part["decoders"]]
        return bytes([7]) + struct.pack("<I", len(children)) + b"".join(children)
    lacks.append(f"the decoder {kind} is left out")
    return bytes([4])


def _added(tokens: list[Part]) -> bytes:
    """Tokens that are found in a text before anything else is done with it."""
    found = [struct.pack("<I", len(tokens))]
    for token in tokens:
        flags = (bool(token.get(name)) for name in ("special", "lstrip", "rstrip"))
        found.append(struct.pack("<I", token["id"]) + bytes(flags) + _text(token["content"]))
    return b"".join(found)


def _template(tokenizer: Tokenizer) -> bytes:
    """The chat template, the texts that it may ask for, and no clean-up of blanks."""
    template = (tokenizer.chat_template or "").encode()
    nothing_after = struct.pack("<H", 0)
    return b"".join(
        (
            struct.pack("<I", len(template)),
            template,
            _text(tokenizer.end_text),
            bytes([0]),
            _text(tokenizer.start_text),
            nothing_after,
        )
    )


def _text(text: str | bytes) -> bytes:
    data = text.encode() if isinstance(text, str) else text
    return struct.pack("<H", len(data)) + data
