"""The CPU time that control groups allow, version 1 and 2."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from edgebench.devices.files import read_int, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def cpu_quota(procfs: Path, sysfs: Path) -> float | None:
    """How many CPUs' time this process may use, or None where nothing limits it.

    The limit of every group above counts too, so the least of them holds.
    """
    quotas = [
        quota
        for folder in _groups(procfs, sysfs / "fs/cgroup")
        if (quota := _quota_v2(folder) or _quota_v1(folder)) is not None
    ]
    return min(quotas, default=None)


def _groups(procfs: Path, mount: Path) -> Iterator[Path]:
    for line in (read_text(procfs / "self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        # Version 2 is mounted at the top, or at "unified" beside version 1.
        for root in [mount / controllers] if controllers else [mount, mount / "unified"]:
            group = PurePosixPath(path)
            # In a container the path may be the host's; the top of the mount is then its own group.
            for ancestor in (group, *group.parents):
                yield root / str(ancestor).lstrip("/")


def _quota_v2(folder: Path) -> float | None:
    match (read_text(folder / "cpu.max") or "").split():
        case [quota, period] if quota.isdecimal() and period.isdecimal() and int(period):
            return int(quota) / int(period)
        case _:
            return None


def _quota_v1(folder: Path) -> float | None:
    quota, period = read_int(folder / "cpu.cfs_quota_us"), read_int(folder / "cpu.cfs_period_us")
    # -1 means no limit.
    return quota / period if quota is not None and period and quota > 0 else None
