"""A real OpenSSH server on the loopback interface, with keys of its own: a board beside the tests.

It runs as the user who runs the tests. What it must not do for others, it does not do for them
either: it listens on 127.0.0.1 only, and one key, made for it, opens it.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

ALIAS = "board"
PATIENCE_S = 60.0


def sshd_program() -> str:
    """Where sshd is; it insists on being started by its absolute path."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which("sshd", path=path)
    assert found, "there is no sshd: install openssh-server (see CONTRIBUTING.md)"
    return found


def make_key(path: Path) -> str:
    """A key pair without a passphrase; the public half, as a line."""
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", str(path)], check=True
    )
    return path.with_name(path.name + ".pub").read_text(encoding="utf-8").strip()


def until(happened: Callable[[], bool], what: str) -> None:
    """Wait for what another process does.

    Raises:
        AssertionError: it does not do it.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not happened():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def until_gone(process: psutil.Process) -> None:
    """Wait for a process to end; whether its parent, which may be stopped, takes note or not."""

    def ended() -> bool:
        try:
            return bool(process.status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True

    until(ended, f"{process} outlived what started it")


class SshServer:
    """The server; a context manager.

    Args:
        folder: for its keys and configuration.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = _free_port()
        self.host_key = make_key(folder / "host_key")
        user_key = make_key(folder / "user_key")
        (folder / "authorized_keys").write_text(user_key + "\n", encoding="utf-8")
        self._known(self.host_key)
        self._process: subprocess.Popen[bytes] | None = None
        self._log = (folder / "sshd.log").open("wb")

    def __enter__(self) -> Self:
        folder = self.folder
        (folder / "sshd.conf").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host_key\n"
            f"PidFile none\nAuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\n"
            "UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\nMaxStartups 100\n",
            encoding="utf-8",
        )
        if os.geteuid() == 0:  # where its unprivileged part lives
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self._process = subprocess.Popen(
            [sshd_program(), "-f", str(folder / "sshd.conf"), "-D", "-e"],
            stderr=self._log,
            stdin=subprocess.DEVNULL,
        )
        until(self._answers, "sshd does not listen")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self.cut()
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def ssh(self, **settings: str) -> str:
        """The command that reaches it, for EDGEBENCH_SSH.

        Args:
            settings: of the client's configuration, in place of those that let it in.
        """
        chosen = {
            "HostName": "127.0.0.1",
            "Port": str(self.port),
            "User": getpass.getuser(),
            "IdentityFile": f"{self.folder}/user_key",
            "IdentitiesOnly": "yes",
            "UserKnownHostsFile": f"{self.folder}/known_hosts",
            "GlobalKnownHostsFile": "/dev/null",
            **settings,
        }
        lines = [f"Host {ALIAS}", *(f"  {name} {text}" for name, text in chosen.items())]
        path = self.folder / f"config-{abs(hash(tuple(lines)))}"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return f"ssh -F {path}"

    def known_as(self, public_key: str) -> Path:
        """A file of known hosts that has another key for it."""
        return self._known(public_key, "other_hosts")

    def links(self) -> list[psutil.Process]:
        """Its own process for each connection."""
        assert self._process is not None
        with contextlib.suppress(psutil.NoSuchProcess):
            return psutil.Process(self._process.pid).children()
        return []

    def agents(self) -> list[psutil.Process]:
        """The agents and runners that its connections have started, wherever they hang by now."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                # Theirs is a word of its own; ssh has a whole command line in one.
                if any(
                    part.startswith(str(self.folder.parent)) and part.endswith(".pyz")
                    for part in process.cmdline()
                ):
                    found.append(process)
        return found

    def cut(self, chosen: list[psutil.Process] | None = None) -> int:
        """Kill its processes of all connections, or of those chosen; how many there were."""
        links = self.links() if chosen is None else chosen
        for link in links:
            for process in [*_sshd_below(link), link]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        return len(links)

    def freeze(self, chosen: list[psutil.Process] | None = None) -> list[psutil.Process]:
        """Stop its processes, of all links or of those chosen: dead without having been closed."""
        links = self.links() if chosen is None else chosen
        frozen = [each for link in links for each in [*_sshd_below(link), link]]
        for process in frozen:
            process.suspend()
        return frozen

    def _known(self, public_key: str, name: str = "known_hosts") -> Path:
        path = self.folder / name
        kind, key = public_key.split()[:2]
        path.write_text(f"[127.0.0.1]:{self.port} {kind} {key}\n", encoding="utf-8")
        return path

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def _sshd_below(link: psutil.Process) -> list[psutil.Process]:
    """The unprivileged half that it may have; never what the session runs."""
    found = []
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in link.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name().startswith("sshd"):
                    found.append(process)
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def bare_python(folder: Path) -> Path:
    """A Python without any package, as a board has it."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return folder / "bin" / "python"
