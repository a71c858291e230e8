"""``edgebench noise`` as its users have it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from command_line import edgebench

from edgebench.harness.gate.policy_file import parse_policy
from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import MakeScenario

CLOCKED = "virtual_clock: true, prefill_s: 0.5, token_s: 0.25, jitter: 0.03"


def test_a_scenario_runs_against_itself_and_tells_its_noise(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Two run folders and what was found beside them; a table at 80 columns; a policy."""
    path = make_scenario(CLOCKED)
    done = edgebench("noise", path, "--repetitions", "10", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.split("results  ")[0].splitlines())) <= 80
    assert "same blocks" in done.stdout
    assert "separate runs" in done.stdout
    folder = tmp_path / "results" / "fake"
    first, second, file = sorted(folder.iterdir())
    assert file.name == first.name.replace("-baseline", "-noise.json")
    found = json.loads(file.read_text())
    assert {row["metric"] for row in found["noise"]} == {
        "decode_rate", "ttft_s", "peak_rss_bytes",
    }  # fmt: skip
    assert all(row["pairs"] == 10 for row in found["noise"])
    assert parse_policy(found["suggestion"]["policy"], filename="gate.yaml").limits
    records = [read_run(each).record for each in (first, second)]
    assert [record.interleaved.side for record in records if record.interleaved] == [
        "baseline", "candidate",
    ]  # fmt: skip
    assert records[0].scenario == records[1].scenario


def test_a_run_that_was_made_before_is_told_again(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """By either side, in the same words; two sides that differ are no noise."""
    done = edgebench("noise", make_scenario(CLOCKED), "--repetitions", "3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results" / "fake"
    for side in ("baseline", "candidate"):
        (run,) = folder.glob(f"*-{side}")
        again = edgebench("noise", "--of", run.relative_to(tmp_path), cwd=tmp_path)
        assert (again.returncode, again.stdout) == (0, done.stdout)
    assert edgebench("noise", "--of", run, "--repetitions", "3").returncode == 2
    assert edgebench("noise", cwd=tmp_path).returncode == 2

    other = edgebench(
        "run", make_scenario(CLOCKED), "--against", "token_s=0.2", "--repetitions", "2",
        "--out", "other", "--format", "md", cwd=tmp_path,
    )  # fmt: skip
    assert other.returncode == 0, other.stderr
    (run,) = (tmp_path / "other" / "fake").glob("*-candidate")
    refused = edgebench("noise", "--of", run)
    assert refused.returncode == 2
    assert "its sides differ (token_s=0.2)" in refused.stderr


def test_the_suggested_policy_passes_the_run_that_it_was_made_of(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """A gate with it, on the two sides that do not differ."""
    done = edgebench("noise", make_scenario(CLOCKED), "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    policy = tmp_path / "gate.yaml"
    policy.write_text(found["suggestion"]["policy"])
    gate = edgebench("gate", "--candidate", found["candidate"], "--policy", policy, cwd=tmp_path)
    assert gate.returncode == 0, gate.stdout + gate.stderr


def test_json_is_what_the_file_holds(make_scenario: MakeScenario, tmp_path: Path) -> None:
    """One object for a script, with finite figures only."""
    done = edgebench("noise", make_scenario(), "--repetitions", "3", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = (tmp_path / "results" / "fake").glob("*-noise.json")
    assert done.stdout == file.read_text()
    json.loads(done.stdout, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))


def test_what_can_not_run_and_what_is_wrong_is_told(
    make_scenario: MakeScenario, tmp_path: Path
) -> None:
    """Status 4 with the reason of each cell; status 2 for a wrong option."""
    done = edgebench("noise", make_scenario("fail: load"), "--repetitions", "2", cwd=tmp_path)
    assert done.returncode == 4
    assert "baseline · fake source fail=load · short: failed" in done.stderr
    assert edgebench("noise", make_scenario(), "--repetitions", "1").returncode == 2
    assert edgebench("noise", make_scenario(), "--runners", "fka").returncode == 2
    assert edgebench("noise", "nothing.yaml").returncode == 2
