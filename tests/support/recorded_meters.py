"""What meters showed and printed somewhere, and clocks that let it change."""

from __future__ import annotations

import json
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "data" / "meters"


def recorded(name: str) -> str:
    """The text of one file."""
    return (FOLDER / name).read_text("utf-8")


def recorded_sysfs(machine: str) -> dict[str, str]:
    """The files of sysfs of one machine, by their path below its root."""
    files: dict[str, str] = json.loads(recorded("sysfs.json"))[machine]
    return {path: f"{text}\n" for path, text in files.items()}


class Living:
    """A clock of 5 ms a look, while which sensors go up by 1 every 20 ms and then down again.

    Args:
        sensors: the files.
    """

    STEP_NS = 5_000_000

    def __init__(self, *sensors: Path) -> None:
        self._resting = {path: int(path.read_text()) for path in sensors}
        self._added = 0
        self.now_ns = 0

    def __call__(self) -> int:
        self.now_ns += self.STEP_NS
        self.show(self.now_ns // 20_000_000 % 2)
        return self.now_ns

    def show(self, added: int) -> None:
        """Let all sensors say so much more than at first."""
        if added == self._added:
            return
        self._added = added
        for path, value in self._resting.items():
            path.write_text(f"{value + added}\n")

    def forget(self) -> None:
        """The sensors are gone."""
        self._resting.clear()

    def rest(self, seconds: float) -> None:
        """Let time pass."""
        self.now_ns += round(seconds * 1e9)
