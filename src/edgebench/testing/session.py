"""What the tests of one session share."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import EdgebenchError
from edgebench.testing.marker import MARKER, read_marks
from edgebench.testing.picking import load, pick
from edgebench.testing.runs import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from edgebench.testing.marker import Asked
    from edgebench.testing.picking import Loaded, Picked
    from edgebench.testing.runs import Key, Runs


@dataclass(slots=True)
class Session:
    """What the tests of one session share.

    Attributes:
        config: pytest's.
        runs: what was measured.
    """

    config: pytest.Config
    runs: Runs
    _loaded: dict[tuple[str, Path], Loaded] = field(default_factory=dict)
    _plan: dict[Key, list[Picked]] | None = None

    def load(self, asked: Asked, item: pytest.Item) -> Loaded:
        """The scenario that a test asks for, read once."""
        found = (asked.scenario, item.path.parent)
        if found not in self._loaded:
            self._loaded[found] = load(asked, [item.path.parent, self.config.rootpath])
        return self._loaded[found]

    def others(self, key: Key, session: pytest.Session) -> Sequence[Picked]:
        """What all tests of the session pick of runs that are measured alike."""
        if self._plan is None:
            self._plan = {}
            for item in session.items:
                marks = list(item.iter_markers(MARKER))
                if not marks or MARKER not in getattr(item, "fixturenames", ()):
                    continue
                try:
                    asked = read_marks(marks)
                    loaded = self.load(asked, item)
                    picked = pick(asked, loaded.scenario)
                except EdgebenchError:
                    continue  # its own test will say so
                self._plan.setdefault(key_of(asked, loaded), []).append(picked)
        return self._plan.get(key, ())


@contextmanager
def failing() -> Iterator[None]:
    """An error of edgebench's own fails the test with its message; a traceback tells no more."""
    try:
        yield
    except EdgebenchError as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
