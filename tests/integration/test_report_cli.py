"""``edgebench report``: one run, several runs, each form, and what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from sample_run import sample

from edgebench.harness.errors import ExitStatus

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of one scenario, a day apart."""
    days = ("2025-01-14", "2025-01-15")
    one, two = (
        sample(blocks=1, changes={"id": day, "created_at": f"{day}T10:15:00Z"}).write(
            tmp_path / day
        )
        for day in days
    )
    return one, two


def test_one_run_is_written_into_its_own_folder(folders: tuple[Path, Path]) -> None:
    """The forms that are asked for, each path printed."""
    folder, _ = folders
    done = edgebench("report", folder, "--format", "csv,latex")
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert done.stdout.split() == [str(folder / "report.csv"), str(folder / "report.tex")]
    assert not (folder / "report.html").exists()


def test_several_runs_make_one_report(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """It names both, and the runs' own folders stay as they were."""
    out = tmp_path / "both"
    done = edgebench("report", *folders, "--format", "md,json", "--out", out)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert done.stdout.split() == [str(out / "report.md"), str(out / "report.json")]
    found = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert [each["label"] for each in found["runs"]] == ["2025-01-14", "2025-01-15"]
    assert "This report combines 2 runs" in (out / "report.md").read_text(encoding="utf-8")
    assert {each.name for each in folders[0].iterdir()} == {"run.json", "trials.jsonl"}


def test_each_run_has_its_own_report_where_asked(folders: tuple[Path, Path]) -> None:
    """Beside each run, in the language that is asked for."""
    done = edgebench("report", *folders, "--each", "--format", "md", "--lang", "zh")
    assert done.returncode == ExitStatus.DONE, done.stderr
    for folder in folders:
        assert "## 推荐" in (folder / "report.zh.md").read_text(encoding="utf-8")
    both = edgebench("report", *folders, "--each", "--out", "anywhere")
    assert both.returncode == ExitStatus.USAGE


def test_runs_that_must_not_be_mixed_are_named(folders: tuple[Path, Path], tmp_path: Path) -> None:
    """Both folders, what differs, and what to do; nothing is written."""
    quick = sample(blocks=1, changes={"id": "quick", "quick": True}).write(tmp_path / "quick")
    out = tmp_path / "out"
    done = edgebench("report", folders[0], quick, "--out", out)
    assert done.returncode == ExitStatus.USAGE
    assert f"{folders[0]}: in full" in done.stderr
    assert f"{quick}: quick" in done.stderr
    assert "again without --quick" in done.stderr
    assert not out.exists()


def test_an_unknown_format_lists_the_known_ones(folders: tuple[Path, Path]) -> None:
    """Before anything is read."""
    done = edgebench("report", folders[0], "--format", "html,pdf")
    assert done.returncode == ExitStatus.USAGE
    assert "'pdf'" in done.stderr
    assert "md, html, csv, json, latex" in done.stderr
