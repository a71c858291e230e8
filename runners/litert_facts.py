"""What stands in a bundle in words: the engine's settings, and edgebench's own facts."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeGuard

from edgebench.runners.base import RunnerFailure
from edgebench.runners.flatbuffer import FlatBufferError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from edgebench.runners.base import Scalar

FACTS_VERSION = 1
"""The newest one that is understood."""

# Fields of LlmMetadata, the engine's protobuf message, and of the messages in it.
START_TOKEN, STOP_TOKENS, MAX_TOKENS, TEMPLATE = 1, 2, 5, 7
TOKEN_IDS, TOKEN_TEXT = 1, 2
IDS = 1

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What the engine reads of a bundle.

    Attributes:
        start: what the engine puts before each text: its ids, or the text of a token.
        stops: what ends a generation, each as ids or as the text of a token.
        max_tokens: the most tokens, prompt and generated together; None where it is left open.
        template: for chats.
    """

    start: tuple[int, ...] | str | None
    stops: tuple[tuple[int, ...] | str, ...]
    max_tokens: int | None
    template: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """What edgebench wrote into a bundle that it made; what it did not know is None.

    Attributes:
        start_id: what a prompt begins with; the engine adds nothing to a prompt of such a bundle.
        stop_tokens: ``reserved``, where a generation has any length, or ``model``.
        shape: by the converter's options, what it was made with.
    """

    architecture: str | None
    parameters: int | None
    trained_context_tokens: int | None
    start_id: int | None
    start_text: str
    end_text: str
    stop_tokens: str | None
    shape: Mapping[str, Scalar]


def read_facts(text: str) -> Facts:
    """Parse what stands in a bundle's header.

    Raises:
        RunnerFailure: it is damaged (invalid) or of a newer edgebench (unsupported).
    """
    try:
        told = json.loads(text)
    except ValueError as error:
        msg = f"what edgebench wrote into this bundle is damaged: {error}"
        raise RunnerFailure(msg, reason="invalid") from error
    if not _is_object(told):
        msg = "what edgebench wrote into this bundle is damaged: it is no JSON object"
        raise RunnerFailure(msg, reason="invalid")
    version = told.get("facts_version")
    if version != FACTS_VERSION:
        msg = (
            f"this bundle was made by another edgebench: its facts have version {version}, and "
            f"this one reads {FACTS_VERSION}; have it made anew"
        )
        raise RunnerFailure(msg, reason="unsupported")
    return Facts(
        architecture=_text(told.get("architecture")),
        parameters=_whole(told.get("parameters")),
        trained_context_tokens=_whole(told.get("trained_context_tokens")),
        start_id=_whole(told.get("start_id")),
        start_text=_text(told.get("start_text")) or "",
        end_text=_text(told.get("end_text")) or "",
        stop_tokens=_text(told.get("stop_tokens")),
        shape=_shape(told),
    )


def _shape(told: dict[str, object]) -> dict[str, Scalar]:
    lengths = told.get("prefill_lengths")
    shape = {
        "cache_length": _whole(told.get("cache_length")),
        "prefill_lengths": ",".join(map(str, lengths)) if isinstance(lengths, list) else None,
        "block_size": _whole(told.get("block_size")),
        "output_quantization": _text(told.get("output_quantization")),
    }
    return {name: value for name, value in shape.items() if value is not None}


def read_settings(message: bytes) -> ModelSettings:
    """Parse the engine's settings, a protobuf message.

    Raises:
        FlatBufferError: the message is damaged.
    """
    start: tuple[int, ...] | str | None = None
    stops: list[tuple[int, ...] | str] = []
    max_tokens, template = 0, ""
    for number, value in fields(message):
        if isinstance(value, int):
            max_tokens = value if number == MAX_TOKENS else max_tokens
        elif number == START_TOKEN:
            start = _token(value)
        elif number == STOP_TOKENS:
            stops.append(_token(value))
        elif number == TEMPLATE:
            template = value.decode()
    return ModelSettings(start or None, tuple(stops), max_tokens or None, template or None)


def _token(message: bytes) -> tuple[int, ...] | str:
    """Ids, or the text of a token."""
    for number, value in fields(message):
        if isinstance(value, bytes) and number == TOKEN_TEXT:
            return value.decode()
        if isinstance(value, bytes) and number == TOKEN_IDS:
            ids: list[int] = []
            for place, each in fields(value):
                if place == IDS:
                    ids.extend([each] if isinstance(each, int) else _varints(each))
            return tuple(ids)
    return ()


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message: each one's number, and a whole number or bytes.

    Raises:
        FlatBufferError: it is no whole message.
    """
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        size = {FIXED64: 8, FIXED32: 4}.get(kind)
        if kind == LENGTH:
            size, at = _varint(message, at)
        if size is None or at + size > len(message):
            msg = f"a message in it is damaged at byte {at} of {len(message)}"
            raise FlatBufferError(msg)
        yield tag >> 3, message[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:  # noqa: PLR2004 - the bit that says that more follows
            return value, at
    msg = f"a number in it is damaged at byte {at}"
    raise FlatBufferError(msg)


def _is_object(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
