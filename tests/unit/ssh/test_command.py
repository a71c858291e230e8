"""The command that reaches a board, and the first program there."""

from __future__ import annotations

import ast
import base64
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


@pytest.mark.parametrize("address", ["-oProxyCommand=x", "", "a b", " a", "-v"])
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
