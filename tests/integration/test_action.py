"""The GitHub action: its steps run for real, on a runner that is made up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from action_steps import ROOT, Job, action

SCENARIO = """\
schema_version: 1
name: smoke
model: {name: made-up, source: "path:model.gguf"}
variants:
  - {runner: fake, token_s: 0.0105, prefill_s: 0.05, virtual_clock: true}
workloads:
  - {name: chat, prompt_tokens: 16, generate_tokens: 4}
measure: {warmup: {min: 1, max: 1}, repetitions: {min: 8, max: 8}, per_block: 1}
"""
WIDE = "schema_version: 1\nlimits: {decode_rate: {worse_by: 50%}}\n"


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, str]:
    """A job that measured a token's delay of 10.5 ms against one of 10 ms, and its log."""
    job = Job(tmp_path_factory.mktemp("job") / "home")
    (job.checkout / "smoke.yaml").write_text(SCENARIO)
    (job.checkout / "wide.yaml").write_text(WIDE)
    (job.checkout / "model.gguf").write_bytes(b"weights")
    done = job.step("Run and gate", {"scenario": "smoke.yaml", "against": "token_s=0.01\n"})
    assert done.returncode == 0, done.stderr
    return job, done.stdout


@pytest.fixture
def forge(tmp_path: Path) -> Path:
    """A pull request with a comment of a person, and the event that names it."""
    event = {"pull_request": {"number": 7}}
    (tmp_path / "event.json").write_text(json.dumps(event))
    save(tmp_path)
    return tmp_path


def save(forge: Path, **changes: object) -> None:
    state = {
        "login": None,
        "refuses": "",
        "per_page": 1,
        "comments": [comment(1, "somebody", "Looks good"), comment(2, "somebody", "Fine")],
    }
    (forge / "state.json").write_text(json.dumps(state | changes))


def comment(number: int, login: str, body: str, kind: str = "User") -> dict[str, Any]:
    return {"id": number, "user": {"login": login, "type": kind}, "body": body}


def comments(forge: Path) -> list[dict[str, Any]]:
    state = json.loads((forge / "state.json").read_text())
    found: list[dict[str, Any]] = state["comments"]
    return found


def write_comment(job: Job, forge: Path, key: str = "", **environment: str) -> str:
    done = job.step(
        "Comment",
        {"comment-key": key, "github-token": "secret"},
        GITHUB_EVENT_PATH=str(forge / "event.json"),
        GH_STATE=str(forge / "state.json"),
        **environment,
    )
    assert done.returncode == 0, done.stderr
    assert "secret" not in done.stdout + done.stderr
    return done.stdout


def test_every_input_is_used_and_every_name_is_known() -> None:
    """No input without effect, no expression that names what there is not."""
    described = action()
    text = (ROOT / "action.yml").read_text("utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(described["inputs"])
    ids = {each["id"] for each in described["runs"]["steps"] if "id" in each}
    assert set(re.findall(r"steps\.([\w-]+)\.", text)) <= ids
    for each in (*described["inputs"].values(), *described["outputs"].values()):
        assert each["description"]


def test_no_input_becomes_text_of_a_command() -> None:
    """Expressions stand in environments only; scripts that are called are there."""
    for step in action()["runs"]["steps"]:
        if "run" in step:
            assert "${{" not in step["run"]
            for script in re.findall(r"\$GITHUB_ACTION_PATH/([\w./]+)", step["run"]):
                assert (ROOT / script).is_file()
        else:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])


def test_scripts_read_what_the_action_sets() -> None:
    """Names of variables agree on both sides."""
    described = (ROOT / "action.yml").read_text("utf-8")
    given = set(re.findall(r"(EDGEBENCH_ACTION_\w+):", described))
    scripts = "".join(path.read_text("utf-8") for path in (ROOT / "ci").glob("*.py"))
    read = set(re.findall(r"(EDGEBENCH_ACTION_[A-Z_]+)", scripts))
    names = re.findall(r'_(?:read|each)\((?:"--[\w-]+", )?"([A-Z_]+)"', scripts)
    read |= {f"EDGEBENCH_ACTION_{name}" for name in names}
    assert given == read - {"EDGEBENCH_ACTION_COMMAND", "EDGEBENCH_ACTION_"}


def test_a_slowdown_fails_at_the_end(failed: tuple[Job, str]) -> None:
    """The step itself goes on, so that the report is uploaded; the last one has the status."""
    job, log = failed
    assert job.outputs["status"] == "1"
    assert "\n::error title=" in log
    assert "edgebench gate failed: smoke" in job.summary
    assert not job.summary.startswith("<!--")
    report = job.home / "temp" / job.outputs["report"].rpartition("/")[2]
    assert {path.name for path in report.iterdir()} == {
        "results", "gate.md", "gate.xml", "gate.json"
    }  # fmt: skip
    assert job.outputs["candidate"].endswith("-candidate")
    assert json.loads((report / "gate.json").read_text())["passed"] is False
    assert job.step("The gate's exit status").returncode == 1


def test_a_run_that_is_there_is_gated_by_a_policy(failed: tuple[Job, str], tmp_path: Path) -> None:
    """A candidate in place of a scenario; what the policy allows passes, and the status is 0."""
    before, _ = failed
    job = Job(tmp_path / "home")
    inputs = {
        "candidate": before.outputs["candidate"],
        "policy": str(before.checkout / "wide.yaml"),
    }
    done = job.step("Run and gate", inputs)
    assert done.returncode == 0, done.stderr
    assert job.outputs["status"] == "0"
    assert "::error" not in done.stdout
    assert job.step("The gate's exit status").returncode == 0


def test_a_comment_is_written_once_and_then_renewed(failed: tuple[Job, str], forge: Path) -> None:
    """The second outcome stands where the first one stood; others' comments stay."""
    job, _ = failed
    assert "wrote a comment" in write_comment(job, forge)
    assert [each["id"] for each in comments(forge)] == [1, 2, 102]
    assert comments(forge)[-1]["body"].startswith("<!-- edgebench-gate: smoke -->\n### edgebench")
    before = comments(forge)
    old = before[2]["body"].replace("\n", "\r\n")[:200]
    stale = [*before[:2], before[2] | {"body": old}]
    save(forge, comments=stale)
    assert "renewed the comment" in write_comment(job, forge)
    assert comments(forge) == before


def test_gates_of_one_scenario_have_comments_of_their_own(
    failed: tuple[Job, str], forge: Path
) -> None:
    """A key tells them apart, whatever is in it."""
    job, _ = failed
    for key in ("", "arm -->", "", "arm -->"):
        write_comment(job, forge, key)
    firsts = [each["body"].partition("\n")[0] for each in comments(forge)[2:]]
    assert firsts == ["<!-- edgebench-gate: smoke -->", "<!-- edgebench-gate: smoke/arm- -->"]


def test_anothers_comment_is_not_overwritten(failed: tuple[Job, str], forge: Path) -> None:
    """A person's comment that begins with the marker is theirs; a token's user knows their own."""
    job, _ = failed
    forged = "<!-- edgebench-gate: smoke -->\nNothing to see"
    save(forge, comments=[comment(1, "somebody", forged)])
    write_comment(job, forge)
    assert [each["id"] for each in comments(forge)] == [1, 101]
    assert comments(forge)[0]["body"] == forged
    save(forge, login="me", comments=[comment(1, "you", forged), comment(2, "me", forged)])
    assert "renewed" in write_comment(job, forge)
    assert comments(forge)[0]["body"] == forged
    assert comments(forge)[1]["body"] != forged


def test_a_token_that_may_only_read_fails_nothing(failed: tuple[Job, str], forge: Path) -> None:
    """Pull requests from forks: a warning says why there is no comment, and what is needed."""
    job, _ = failed
    save(forge, refuses="Resource not accessible by integration (HTTP 403) 100%")
    said = write_comment(job, forge)
    assert said.startswith("::warning title=edgebench::No comment was written: gh: Resource not")
    assert "100%25" in said
    assert "pull-requests: write" in said
    assert len(comments(forge)) == 2


def test_without_a_pull_request_or_gh_there_is_no_comment(
    failed: tuple[Job, str], forge: Path, tmp_path: Path
) -> None:
    """A push has no pull request, and a runner may have no gh: neither fails the job."""
    job, _ = failed
    (forge / "event.json").write_text('{"ref": "refs/heads/main"}')
    assert "no pull request" in write_comment(job, forge)
    (forge / "event.json").write_text('{"issue": {"number": 7, "pull_request": {}}}')
    bare = Job(tmp_path / "bare", with_gh=False, outputs=dict(job.outputs))
    (forge / "event.json").write_text('{"pull_request": {"number": 7}}')
    # Only what this runner has: /usr/bin may hold a gh.
    said = write_comment(bare, forge, PATH=str(bare.home / "bin"))
    assert "gh, GitHub's command line, is not installed" in said
    assert "nothing to comment" in write_comment(Job(tmp_path / "empty"), forge)


@pytest.mark.parametrize(
    ("inputs", "status", "said"),
    [
        ({}, "2", "name either a scenario"),
        ({"scenario": "a", "candidate": "b"}, "2", "name either a scenario"),
        ({"scenario": '"; touch pwned; $(touch pwned) `touch pwned`'}, "2", ""),
        ({"candidate": "nowhere; touch pwned"}, "2", ""),
        ({"scenario": "--help"}, "2", ""),
    ],
)
def test_wrong_inputs_are_refused_and_never_run(
    tmp_path: Path, inputs: dict[str, str], status: str, said: str
) -> None:
    """What an input holds is a value: the status says that it is wrong, and nothing is run."""
    job = Job(tmp_path / "home")
    done = job.step("Run and gate", inputs)
    assert done.returncode == 0
    assert job.outputs["status"] == status
    assert job.outputs["markdown"] == ""
    assert said in done.stdout
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("pwned"))
    assert job.step("The gate's exit status").returncode == int(status)


def test_a_missing_baseline_has_its_own_status(failed: tuple[Job, str], tmp_path: Path) -> None:
    """5, with the message that says how to save one; not a regression."""
    before, _ = failed
    job = Job(tmp_path / "home")
    inputs = {"candidate": before.outputs["candidate"], "baseline": "baselines/smoke"}
    done = job.step("Run and gate", inputs)
    assert job.outputs["status"] == "5"
    assert "baseline" in done.stderr


def test_a_baseline_is_looked_for_before_anything_is_measured(tmp_path: Path) -> None:
    """Half an hour of measuring for a path with a typing error in it helps nobody."""
    job = Job(tmp_path / "home")
    done = job.step("Run and gate", {"scenario": "smoke.yaml", "baseline": "baselines/smok\n"})
    assert job.outputs["status"] == "5"
    assert "::error title=edgebench::there is no baseline baselines/smok" in done.stdout
    assert done.stderr == ""
    head, *_ = Path(job.outputs["markdown"]).read_text("utf-8").splitlines()
    assert head == "<!-- edgebench-gate: smoke -->"  # so that an earlier comment is renewed
    assert job.step("The gate's exit status").returncode == 5


def test_a_refused_gate_renews_the_comment(
    failed: tuple[Job, str], forge: Path, tmp_path: Path
) -> None:
    """What an earlier push was told does not stand there as if it still held."""
    before, _ = failed
    write_comment(before, forge)
    job = Job(tmp_path / "home")
    inputs = {"candidate": before.outputs["candidate"], "baseline": "baselines/smoke"}
    job.step("Run and gate", inputs)
    assert "renewed the comment" in write_comment(job, forge)
    assert "### edgebench gate could not compare: smoke" in comments(forge)[2]["body"]


@pytest.mark.parametrize("text", ["no JSON", "[]", ""])
def test_an_event_that_can_not_be_read_fails_nothing(
    text: str, failed: tuple[Job, str], forge: Path
) -> None:
    """A warning in place of a traceback."""
    job, _ = failed
    (forge / "event.json").write_text(text)
    said = write_comment(job, forge)
    assert said.startswith("::warning title=edgebench::No comment was written: the event's file")


def test_an_output_cannot_add_others(failed: tuple[Job, str], tmp_path: Path) -> None:
    """A folder's name with line ends in it stays one output."""
    job = Job(tmp_path / "home")
    job.step("Run and gate", {"candidate": "a\nstatus=0\nstatus<<x\n0\nx"})
    assert job.outputs["status"] == "2"


@pytest.mark.install
def test_edgebench_is_installed_beside_the_job(tmp_path: Path) -> None:
    """A virtual environment of its own; later steps find the command, and no other program."""
    job = Job(tmp_path / "home")
    done = job.step("Install edgebench", {"extras": "convert"}, PIP_NO_DEPS="1")
    assert done.returncode == 0, done.stderr
    folder = (job.home / "path").read_text().strip()
    assert [path.name for path in (tmp_path / folder).iterdir()] == ["edgebench"]
    refused = job.step("Install edgebench", {"extras": "x; touch pwned"})
    assert refused.returncode == 2
    assert "extras are names" in refused.stdout
