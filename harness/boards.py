"""Which board a scenario runs on, and how."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.board import LocalBoard
from edgebench.harness.conduct import ByRunners

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.devices.power import PowerSettings
    from edgebench.harness.board import Board
    from edgebench.harness.conduct import Conduct
    from edgebench.harness.scenario.device import Device


def board_of(device: Device | None, power: PowerSettings) -> Board:
    """The board of a scenario's device; nothing is connected before it is asked something.

    Args:
        device: as the scenario has it; None is this machine.
        power: which meters to use there.

    Raises:
        UsageError: its address is none.
        BoardError: adb is not installed, which reaches it.
    """
    if device is not None and device.adb is not None:
        # Late: most runs are on this machine.
        from edgebench.harness.adb.board import adb_board  # noqa: PLC0415

        return adb_board(device.adb, device.folder, power)
    if device is None or device.ssh is None:
        return LocalBoard(power)
    from edgebench.harness.ssh.board import SshBoard  # noqa: PLC0415
    from edgebench.harness.ssh.command import (  # noqa: PLC0415
        DEFAULT_FOLDER,
        DEFAULT_PYTHON,
        Remote,
        ssh_words,
    )

    python, folder = device.python or DEFAULT_PYTHON, device.folder or DEFAULT_FOLDER
    return SshBoard(Remote(device.ssh, python, folder, ssh_words()), power)


def conduct_on(board: Board, device: Device | None, base: Path) -> Conduct:
    """How a scenario is run on its board.

    Args:
        board: of `board_of`, or one of this machine.
        device: as the scenario has it.
        base: the folder that relative paths in it are relative to.
    """
    if device is None or device.adb is None:
        return ByRunners(board)
    from edgebench.harness.adb.board import AdbBoard  # noqa: PLC0415
    from edgebench.harness.adb.conduct import ByTools  # noqa: PLC0415

    assert isinstance(board, AdbBoard)
    return ByTools(board, device.tools, base)
