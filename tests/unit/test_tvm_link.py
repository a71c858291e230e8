"""Which linker is taken, and what is said of one that can't be."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from edgebench.runners.base import RunnerFailure
from edgebench.runners.tvm_link import link_command, linker

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv("CC", raising=False)


def test_variables_come_before_what_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With their options, and CXX before CC."""
    monkeypatch.setenv("CC", "env -i")
    assert linker() == ["env", "-i"]
    monkeypatch.setenv("CXX", "env 'A=b c'")
    assert linker() == ["env", "A=b c"]


@pytest.mark.parametrize("variable", ["CC", "CXX"])
def test_a_quote_that_is_never_closed_is_told(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the variable's name, with what it holds."""
    monkeypatch.setenv(variable, "gcc '-O2")
    words = f"{variable} can't be read as a command .No closing quotation.: gcc '-O2; correct or"
    with pytest.raises(RunnerFailure, match=words) as failure:
        linker()
    assert failure.value.reason == "unavailable"


def test_a_command_that_is_not_there_is_told_with_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is made; one that the system can't run, when it is to run."""
    monkeypatch.setenv("CC", f"{tmp_path}/nothing -v")
    with pytest.raises(RunnerFailure, match=r"CC names .*/nothing, which can't be run: correct or"):
        linker()
    command = tmp_path / "linker"
    command.write_bytes(b"\0\1\2\3")
    command.chmod(0o755)
    monkeypatch.setenv("CC", str(command))
    with pytest.raises(RunnerFailure, match=r"/linker \(CC\) can't be run: Exec format") as failure:
        link_command(linker())(str(tmp_path / "lib.so"), [])
    assert failure.value.reason == "unavailable"


@pytest.mark.skipif(shutil.which("true") is None, reason="takes a command that does nothing")
def test_a_linker_that_makes_nothing_has_failed(tmp_path: Path) -> None:
    """Whatever its status is."""
    with pytest.raises(RunnerFailure, match=r"the linker true failed .*: no word of why"):
        link_command(["true"])(str(tmp_path / "lib.so"), [])
