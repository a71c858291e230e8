"""Made-up runs of one scenario over some days, for tests of the history. Nothing was measured."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from sample_run import handmade

from edgebench.harness.results.model import CommitRecord
from edgebench.harness.results.summary import summarize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

START = datetime(2025, 1, 14, 10, 15, tzinfo=UTC)
BLOCKS = 5


def sha(number: int) -> str:
    """The commit of the run with this number."""
    return f"{number:04x}" + "c" * 36


def write_run(
    results: Path,
    number: int,
    rate: float,
    *,
    scenario: str = "made-up",
    commit: bool = True,
    trials: bool = False,
    variant: str = "a",
    **changes: object,
) -> Path:
    """One run, on its own day, of one variant on one workload.

    Args:
        results: the folder of results.
        number: of the day.
        rate: the decode rate, with a spread of 1 in 1000 within the run; the TTFT is 2 / rate.
        scenario: its name.
        commit: whether a commit is recorded.
        trials: whether they are written too.
        variant: its id.
        changes: fields of the record.
    """
    when = (START + timedelta(days=number)).isoformat().replace("+00:00", "Z")
    spread = [rate * (1 + 0.0005 * (block - BLOCKS // 2)) for block in range(BLOCKS)]
    fields: dict[str, object] = {
        "id": f"run-{number:03}",
        "created_at": when,
        "scenario_name": scenario,
    }
    if commit:
        fields["commit"] = CommitRecord(
            sha=sha(number), branch="main", committed_at=when, dirty=False
        )
    record, made = handmade(
        {variant: {"decode_rate": list(spread), "ttft_s": [2 / each for each in spread]}},
        **(fields | changes),
    )
    record = record.model_copy(update={"cells": summarize(record, made)})
    folder = results / scenario / f"run-{number:03}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    if trials:
        lines = "".join(each.model_dump_json() + "\n" for each in made)
        (folder / "trials.jsonl").write_text(lines, encoding="utf-8")
    return folder


def write_runs(results: Path, rates: Sequence[float], **changes: object) -> Path:
    """A run for each rate, on successive days; the last one with its trials. Returns its folder."""
    last = len(rates) - 1
    folders = [
        write_run(results, number, rate, trials=number == last, **changes)
        for number, rate in enumerate(rates)
    ]
    return folders[-1]


def change(folder: Path, **fields: object) -> None:
    """Overwrite fields of a run's record."""
    file = folder / "run.json"
    record = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(record | fields), encoding="utf-8")
