"""The run that a run was interleaved with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sample_run import handmade
from side_sample import interleaved

from edgebench.harness.compare.partner import interleaved_pair, partner_of
from edgebench.harness.errors import BaselineError

if TYPE_CHECKING:
    from pathlib import Path


def _write(folder: Path, told: dict[str, object] | None) -> Path:
    record, _ = handmade({"v": {"decode_rate": [1.0]}}, interleaved=told)
    folder.mkdir()
    (folder / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    return folder


def test_either_side_finds_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline first; also from inside the folder."""
    baseline = _write(tmp_path / "a", interleaved("s", "baseline", "b"))
    candidate = _write(tmp_path / "b", interleaved("s", "candidate", "a"))
    assert interleaved_pair(baseline) == (baseline, candidate)
    assert interleaved_pair(candidate) == (baseline, candidate)
    assert partner_of(candidate) == baseline
    monkeypatch.chdir(candidate)
    here = type(candidate)()
    found, _ = interleaved_pair(here)
    assert found.resolve() == baseline.resolve()


def test_the_baseline_has_no_baseline(tmp_path: Path) -> None:
    """Who gates the wrong side is told which one is right."""
    baseline = _write(tmp_path / "a", interleaved("s", "baseline", "b"))
    _write(tmp_path / "b", interleaved("s", "candidate", "a"))
    with pytest.raises(BaselineError, match="is the baseline side") as caught:
        partner_of(baseline)
    assert str(tmp_path / "b") in str(caught.value.remedy)


def test_a_run_that_was_alone_has_none(tmp_path: Path) -> None:
    """With what makes such runs."""
    with pytest.raises(BaselineError, match="was not interleaved") as caught:
        partner_of(_write(tmp_path / "a", None))
    assert "--against" in str(caught.value.remedy)


def test_a_partner_that_is_gone_is_named(tmp_path: Path) -> None:
    """Where it should be."""
    candidate = _write(tmp_path / "b", interleaved("s", "candidate", "a"))
    with pytest.raises(BaselineError, match="which is not there") as caught:
        partner_of(candidate)
    assert str(tmp_path / "a") in caught.value.message


def test_a_record_leads_nowhere_else(tmp_path: Path) -> None:
    """Only a name beside the run counts, whatever path stands in the file."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "runs").mkdir()
    candidate = _write(tmp_path / "runs" / "b", interleaved("s", "candidate", "../elsewhere"))
    with pytest.raises(BaselineError, match="which is not there"):
        partner_of(candidate)
