"""The command that reaches a board, and the first program there."""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import re
import shlex
import subprocess
import sys
import zipfile
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.errors import UsageError
from edgebench.harness.session import worker_file
from edgebench.harness.ssh.command import BOOT, Remote, first_step, ssh_words

if TYPE_CHECKING:
    from pathlib import Path

AGENT = ("session", "20")


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    path = tmp_path / "worker-0.pyz"
    path.write_bytes(b"PK")
    return path


def test_the_host_key_must_be_known(worker: Path, tmp_path: Path) -> None:
    """Strict checking is asked for on the command line, which comes before any configuration."""
    words = Remote("pi@board").command(tmp_path / "log", worker, AGENT)
    options = {words[at + 1] for at, word in enumerate(words) if word == "-o"}
    assert {"StrictHostKeyChecking=yes", "BatchMode=yes"} <= options
    assert not any("no" in option for option in options if option.startswith("StrictHost"))
    assert any(option.startswith("ServerAliveInterval=") for option in options)
    assert words[words.index("--") + 1] == "pi@board"


@pytest.mark.parametrize("folder", ["~/my models", "/data/it's", 'a"b $HOME `x`'])
def test_a_shell_there_gives_each_word_as_it_was(worker: Path, tmp_path: Path, folder: str) -> None:
    """Blanks, quotes and what shells expand come through, by way of a real shell."""
    there = Remote("b", python="echo", folder=folder).command(tmp_path / "log", worker, AGENT)[-1]
    assert "\n" not in there
    code = "import json, sys; print(json.dumps(sys.argv[1:]))"
    shown = there.replace("exec echo", f"exec {shlex.quote(sys.executable)} -c {shlex.quote(code)}")
    done = subprocess.run(["/bin/sh", "-c", shown], capture_output=True, text=True, check=True)
    words = ast.literal_eval(done.stdout)
    assert words[:2] == ["-c", BOOT]
    assert words[3:6] == [folder, "worker-0.pyz", "2"]
    assert words[-2:] == list(AGENT)


def test_the_home_folder_is_that_of_the_board(worker: Path, tmp_path: Path) -> None:
    """A ~ before the interpreter is not expanded here, and is not a folder of that name there."""
    there = Remote("b", python="~/my venv/python").command(tmp_path / "log", worker, AGENT)[-1]
    assert there.startswith("exec \"$HOME\"/'my venv/python' -c ")


@pytest.mark.parametrize(
    "words",
    [
        ("ssh", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=no"),
        ("nice", "ssh", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=no"),
    ],
)
def test_ours_win_over_the_users_own_command(
    worker: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Asked of the real ssh, which prints what it would do: the first of two options holds."""
    config = tmp_path / "config"
    config.write_text(
        "Host *\n  StrictHostKeyChecking no\n  NoHostAuthenticationForLocalhost yes\n"
        "  StdinNull yes\n  SessionType none\n  ForkAfterAuthentication yes\n"
        "  RequestTTY force\n  ForwardAgent yes\n"
    )
    made = Remote("b", ssh=(*words, "-F", str(config))).command(tmp_path / "log", worker, AGENT)
    done = subprocess.run(
        [*made[: made.index("--")], "-G", "b"], capture_output=True, text=True, check=True
    )
    told = {
        "stricthostkeychecking true",
        "batchmode yes",
        "nohostauthenticationforlocalhost no",
        "requesttty false",
        "forwardagent no",
        "stdinnull no",
        "sessiontype default",
        "forkafterauthentication no",
    }
    assert told <= set(done.stdout.splitlines())


def test_an_old_ssh_is_not_given_what_it_does_not_know(worker: Path, tmp_path: Path) -> None:
    """OpenSSH before 8.7 ends at an unknown option; the others are given to it all the same."""
    old = tmp_path / "old" / "ssh"
    old.parent.mkdir()
    old.write_text('#!/bin/sh\ncase "$*" in *SessionType*) exit 255;; esac\n')
    old.chmod(0o755)
    made = " ".join(Remote("b", ssh=(str(old),)).command(tmp_path / "log", worker, AGENT)[:-1])
    assert not {"SessionType", "StdinNull", "ForkAfterAuthentication"} & set(
        re.findall(r"\w+(?==)", made)
    )
    assert "StrictHostKeyChecking=yes" in made


@pytest.mark.parametrize("address", ["pi@board", "LAB\\me@board", "[fe80::1%eth0]", "a.b-c", "ü@b"])
def test_an_address_may_be_what_ssh_takes(address: str) -> None:
    """Also a Windows domain's user, and an address of IPv6."""
    assert Remote(address).address == address


@pytest.mark.parametrize(
    "address",
    ["-oProxyCommand=x", "", "a b", " a", "-v", "user@-x", "a\x1b[2J", "a\x00", "b;id", "$(id)",
     "u`id`@b", "a|b", "@b", "u@", "a\nb", "u\\@b"],
)  # fmt: skip
def test_an_address_is_one_word_and_no_option(address: str) -> None:
    """ssh has options that run commands on this machine."""
    with pytest.raises(UsageError, match="no address"):
        Remote(address)


def test_another_ssh_may_be_named() -> None:
    """By words as a shell reads them; nothing set is ssh itself."""
    assert ssh_words({}) == ("ssh",)
    named = ssh_words({"EDGEBENCH_SSH": "ssh -F 'my config'"})
    assert named == ("ssh", "-F", "my config")


@pytest.mark.parametrize("text", ["", "  ", "ssh 'x"])
def test_an_ssh_that_is_no_command_is_refused(text: str) -> None:
    """It names the variable."""
    with pytest.raises(UsageError, match="EDGEBENCH_SSH"):
        ssh_words({"EDGEBENCH_SSH": text})


def test_an_old_python_understands_the_first_program() -> None:
    """So that it can say that it is old: the grammar of Python 3.5, and no module since."""
    source = resources.files("edgebench.harness.ssh").joinpath("first_step.py").read_text("utf-8")
    assert base64.b64decode(first_step()).decode("utf-8") == source
    tree = ast.parse(source, feature_version=(3, 5))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.Import)]
    imported = {alias.name for node in statements for alias in node.names}
    assert imported <= {"errno", "hashlib", "json", "os", "signal", "sys"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]


def test_the_worker_is_the_same_file_every_time() -> None:
    """Its name is that of its content, so a board that has it need not be sent it."""
    script = "from edgebench.harness.session import worker_file as w; print(w().name)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == worker_file().name


def test_the_worker_holds_what_runs_on_a_board() -> None:
    """Runners, what reads models, what reads a machine; and nothing of the host's side."""
    parts = {
        name.split("/")[1] for name in zipfile.ZipFile(worker_file()).namelist() if "/" in name
    }
    assert parts == {"__init__.py", "runners", "models", "devices"}


def first_step_there(folder: Path, worker: Path) -> None:
    """Run the first program as a board does, with the worker's file on its standard input."""
    content = worker.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    facts = [str(folder), worker.name, str(len(content)), digest]
    program = base64.b64decode(first_step()).decode()
    done = subprocess.run(
        [sys.executable, "-c", program, *facts], input=content, capture_output=True, check=False
    )
    # What it becomes in the end is no program here.
    assert b"worker-0.pyz" in done.stderr


def test_workers_of_other_versions_do_not_pile_up(worker: Path, tmp_path: Path) -> None:
    """One that nobody began to use for a day goes; one in use, a young one, and models stay."""
    folder, program = tmp_path / "there", "import time; time.sleep(600)"
    folder.mkdir()
    names = ["worker-old.pyz", "worker-old.pyz.123", "worker-used.pyz", "worker-young.pyz", "other"]
    for name in names:
        (folder / name).write_bytes(b"PK")
        if name != "worker-young.pyz":
            os.utime(folder / name, (1, 1))
    used = [sys.executable, "-c", program, str(folder / "worker-used.pyz")]
    with subprocess.Popen(used) as process:
        try:
            first_step_there(folder, worker)
        finally:
            process.kill()
    left = {"worker-0.pyz", "worker-used.pyz", "worker-young.pyz", "other"}
    assert {path.name for path in folder.iterdir()} == left


def test_a_worker_that_is_used_stays_young(worker: Path, tmp_path: Path) -> None:
    """So that no other version takes it for an old one."""
    folder = tmp_path / "there"
    first_step_there(folder, worker)
    os.utime(folder / worker.name, (1, 1))
    first_step_there(folder, worker)
    assert (folder / worker.name).stat().st_mtime > 1
