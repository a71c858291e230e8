"""Which board a scenario runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edgebench.harness.board import LocalBoard

if TYPE_CHECKING:
    from edgebench.devices.power import PowerSettings
    from edgebench.harness.board import Board
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
