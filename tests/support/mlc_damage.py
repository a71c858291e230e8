"""Damaging MLC's folders, and what the runner says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from edgebench.runners.base import (
    LoadRequest,
    RunnerFailure,
)
from edgebench.runners.mlc import MlcRunner

if TYPE_CHECKING:
    from pathlib import Path

CONFIG, INDEX, SHARD = "mlc-chat-config.json", "tensor-cache.json", "params_shard_0.bin"


def refused(path: Path, *, context: int = 64, **options: Any) -> RunnerFailure:
    """What the runner says where it does not load."""
    with pytest.raises(RunnerFailure) as caught:
        MlcRunner().load(LoadRequest(str(path), context, options))
    text = str(caught.value)
    assert "\n" not in text
    assert "Traceback" not in text
    return caught.value


def change(path: Path, **values: Any) -> None:
    """Change entries of a file of JSON; None takes one away."""
    facts = json.loads(path.read_text("utf-8")) | values
    kept = {key: value for key, value in facts.items() if value is not None}
    path.write_text(json.dumps(kept), encoding="utf-8")


def change_shard(folder: Path, number: int = 0, **values: Any) -> None:
    """Change what the index says of one tensor of the first shard."""
    index = json.loads((folder / INDEX).read_text("utf-8"))
    index["records"][0]["records"][number] |= values
    (folder / INDEX).write_text(json.dumps(index), encoding="utf-8")


def cut(path: Path, count: int) -> None:
    """Take bytes from the end of a file."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - count)


def forget_library_sum(folder: Path) -> None:
    """As MLC's own folders: nothing is said of the library."""
    change(folder / CONFIG, edgebench=None)
