"""What this machine prepares a run with, wherever that runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from edgebench.harness.fit import Room

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from edgebench.harness.observer import Observer
    from edgebench.harness.store.store import ModelStore


@dataclass(frozen=True, slots=True)
class Workshop:
    """What every preparation needs.

    Attributes:
        store: where models are kept.
        logs: folder for the runners' logs.
        observer: told of each step.
        pythons: interpreters by runner from the user's configuration.
        room: what must fit into the board's memory; nothing is refused where that is not known.
    """

    store: ModelStore
    logs: Path
    observer: Observer
    pythons: Mapping[str, str] = field(default_factory=dict)
    room: Room = field(default_factory=Room)
