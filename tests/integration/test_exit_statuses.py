"""What a command found is told by its status, whoever reads along and whatever goes wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import edgebench
from sample_run import handmade

from edgebench.cli.main import cli, run_command_line
from edgebench.harness.errors import ExitStatus, OutputError
from edgebench.harness.results.writer import write_atomically

FULL = Path("/dev/full")
RATES = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.0]


def _made(folder: Path, factor: float) -> Path:
    values: list[float | None] = [factor * each for each in RATES]
    record, trials = handmade({"v": {"decode_rate": values}}, id=folder.name)
    folder.mkdir()
    (folder / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    (folder / "trials.jsonl").write_text(
        "".join(each.model_dump_json() + "\n" for each in trials), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize(
    ("factor", "status"), [(1.0, ExitStatus.DONE), (0.5, ExitStatus.REGRESSION)]
)
def test_a_reader_that_leaves_changes_no_outcome(
    factor: float, status: ExitStatus, tmp_path: Path
) -> None:
    """`edgebench gate … | head -0` passes where the gate passes, and fails where it fails."""
    one, other = _made(tmp_path / "a", 1.0), _made(tmp_path / "b", factor)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "edgebench", "gate", "--baseline", one, "--candidate", other],
            stdout=writing, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (status, "")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
def test_output_that_has_no_room_is_told(tmp_path: Path) -> None:
    """It is neither a regression nor done."""
    one, other = _made(tmp_path / "a", 1.0), _made(tmp_path / "b", 1.0)
    with FULL.open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "edgebench", "compare", one, other],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == ExitStatus.NOTHING_RAN
    assert done.stderr.startswith("edgebench: standard output can't be written (")
    assert "Traceback" not in done.stderr


def test_a_fault_of_edgebench_is_no_regression(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has a status of its own, and its traceback is kept for whoever mends it."""

    def broken(*_: object, **__: object) -> None:
        msg = "something nobody thought of"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr(cli, "invoke", broken)
    status = run_command_line(["runners"])
    told = capsys.readouterr().err
    assert status == 70
    assert "ZeroDivisionError: something nobody thought of" in told
    assert told.splitlines()[-1].startswith("edgebench: this is a fault of edgebench itself")


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    """Nor can the half-written file be removed there; that is no second failure."""
    inside_a_file = tmp_path / "file"
    inside_a_file.write_bytes(b"")
    with pytest.raises(OutputError, match="can't be written"):
        write_atomically(inside_a_file / "name.json", b"{}")
    with pytest.raises(OutputError, match="can't be written"):
        write_atomically(tmp_path / "none" / "name.json", b"{}")
    done = edgebench("export", _made(tmp_path / "a", 1.0), "--format", "pytest-benchmark")
    assert done.returncode == ExitStatus.USAGE  # rates are no times
    assert "Traceback" not in done.stderr
