"""Which LiteRT-LM another package has inside of it: the engine is made to say so itself.

No metadata of the MediaPipe wheel names its engine's version. But the engine warns of a bundle that
wants a newer engine, and names its own version in the warning, before it looks for the model in
the bundle. So it gets a bundle of 16 KiB that wants version 9999 and holds no model; it refuses it.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from edgebench.runners.console import Console

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK: Final = 16384
"""Sections of a bundle begin at a multiple of it."""

LLM_METADATA: Final = 5
"""The kind of a section that holds `SETTINGS`, in the header's schema."""

SETTINGS: Final = bytes((0x12, 5, 0x0A, 3, 0x0A, 1, 0, 0x28, 8, 0x32, 2, 0x0A, 0)) + bytes(
    (0x72, 8)
)
"""LlmMetadata up to the version that it wants, as a protobuf message: a stop token (field 2: ids,
0), at most 8 tokens (field 5), a generic model (field 6), the length of field 14."""

WANTED: Final = b"9999.0.0"
SAID: Final = re.compile(r"current runtime version is (\d[\w.+-]*?)\.?(\s|$)")


def embedded_version(load: Callable[[str], object]) -> str | None:
    """The version of the LiteRT-LM that `load` drives.

    Args:
        load: makes the engine load a bundle, with warnings on standard error; raises what it likes.

    Returns:
        The version, such as ``0.20.0``; None where the engine did not say it.
    """
    console = Console()
    with tempfile.TemporaryDirectory(prefix="edgebench-") as folder:
        path = Path(folder, "empty.litertlm")
        path.write_bytes(empty_bundle())
        with contextlib.suppress(Exception):  # it is made to fail; how, is the framework's choice
            load(str(path))
    found = (SAID.search(line) for line in console.lines())
    return next((match[1] for match in found if match), None)


def empty_bundle() -> bytes:
    """A bundle without a model that wants a newer engine."""
    settings = SETTINGS + WANTED
    header = _header(BLOCK, BLOCK + len(settings))
    # Three numbers of the format's version, four bytes of padding, the place of the header's end.
    start = b"LITERTLM" + b"".join(n.to_bytes(4, "little") for n in (1, 7, 0, 0))
    end = (len(start) + 8 + len(header)).to_bytes(8, "little")
    return (start + end + header).ljust(BLOCK, b"\0") + settings


def _header(begin: int, end: int) -> bytes:
    """The header's FlatBuffer: no metadata of the system, one section."""
    # A dependency of the MediaPipe wheel itself; its types are not told.
    flatbuffers: Any = importlib.import_module("flatbuffers")
    builder = flatbuffers.Builder(128)
    builder.StartVector(4, 0, 4)
    nothing = builder.EndVector()
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, nothing, 0)
    system = builder.EndObject()
    builder.StartObject(4)
    builder.PrependUint64Slot(1, begin, 0)
    builder.PrependUint64Slot(2, end, 0)
    builder.PrependUint8Slot(3, LLM_METADATA, 0)
    section = builder.EndObject()
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(section)
    objects = builder.EndVector()
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, objects, 0)
    sections = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, system, 0)
    builder.PrependUOffsetTRelativeSlot(1, sections, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())
