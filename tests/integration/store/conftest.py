"""What the store's tests share: processes that use a store, wheels, a small disk."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

# Prints every report and the result or error as one JSON line each. Before the half-made file of
# "derive", or of the half-made folder of "derive folder", is finished, the process waits for a line
# on its standard input.
SCRIPT = """
import json, sys
from pathlib import Path
from edgebench.harness.errors import EdgebenchError
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore

def say(**what):
    print(json.dumps(what), flush=True)

def make(path):
    with path.open("wb") as file:
        file.write(b"wei")
        file.flush()
        say(making=str(path))
        sys.stdin.readline()
        file.write(b"ghts")
    return {"tool": "quantizer 1"}

def make_folder(path):
    path.mkdir()
    (path / "config.json").write_bytes(b"{}")
    return make(path / "weights.bin")

root, source, sha256 = sys.argv[1:]
store = ModelStore(Path(root))
report = lambda what, done, total: say(what=what, done=done, total=total)
try:
    if source == "derive":
        stored = store.derive({"of": "x"}, "x.gguf", make, needed_bytes=7, progress=report)
    elif source == "derive folder":
        stored = store.derive({"of": "x"}, "x", make_folder, needed_bytes=9, progress=report)
    else:
        stored = store.fetch(parse_source(source), sha256=sha256 or None, progress=report)
except EdgebenchError as error:
    say(error=type(error).__name__, text=str(error))
else:
    say(path=str(stored.path), sha256=stored.sha256, bytes=stored.bytes, name=stored.name)
"""

Line = dict[str, Any]


class StoreProcess:
    """Another process that fetches or makes one file."""

    def __init__(self, root: Path, source: str, sha256: str, environ: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", SCRIPT, str(root), source, sha256],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environ},
        )

    def lines(self) -> Iterator[Line]:
        """Its lines from here on, each as soon as it is there."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield json.loads(line)

    def until(self, found: Callable[[Line], bool]) -> Line:
        """Read up to the first line that `found` accepts."""
        for line in self.lines():
            if found(line):
                return line
        msg = f"the process ended with {self.process.wait()} before it said so"
        raise AssertionError(msg)

    def go_on(self) -> None:
        """Let it finish the file that it is making."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def result(self) -> Line:
        """Its last line, when it has ended by itself."""
        *_, last = self.lines()
        assert self.process.wait() == 0
        return last

    def close(self) -> None:
        """End it, however far it is."""
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., StoreProcess]]:
    """Start a process on the test's store."""
    started: list[StoreProcess] = []

    def start_one(
        source: str,
        *,
        sha256: str = "",
        environ: Mapping[str, str] | None = None,
        root: Path = tmp_path / "store",
    ) -> StoreProcess:
        started.append(StoreProcess(root, source, sha256, environ or {}))
        return started[-1]

    yield start_one
    for process in started:
        process.close()


@dataclass(frozen=True)
class Wheels:
    """A folder of wheels that pip finds, and no index."""

    folder: Path

    def add(
        self,
        package: str,
        members: Mapping[str, bytes],
        *,
        recorded: Mapping[str, str] | None = None,
    ) -> Path:
        """Write a wheel by the binary distribution format.

        Args:
            package: its name; its version is 1.0.
            members: its files.
            recorded: what RECORD says of a member's hash instead of the truth.
        """
        info = f"{package}-1.0.dist-info"
        path = self.folder / f"{package}-1.0-py3-none-any.whl"
        files = {
            **members,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n".encode(),
            f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        rows = [f"{info}/RECORD,,"]
        for name, content in files.items():
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            told = (recorded or {}).get(name, f"sha256={digest.decode()}")
            rows.append(f"{name},{told},{len(content)}")
        files[f"{info}/RECORD"] = "\n".join(rows).encode()
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        return path


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheels:
    """An empty folder that the user's pip configuration names, and nothing else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return Wheels(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with one MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip(f"mounting a small tmpfs is not permitted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def leftovers() -> Callable[[Path], list[str]]:
    """The names of all files of a store but its locks and its tag."""

    def list_files(root: Path) -> list[str]:
        return sorted(
            path.name
            for path in root.rglob("*")
            if path.is_file() and path.suffix != ".lock" and path.name != "CACHEDIR.TAG"
        )

    return list_files
