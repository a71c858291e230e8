"""``edgebench gate`` as a CI runs it: real runs of the fake runner, and all that goes wrong."""

from __future__ import annotations

import io
import json
import re
import shutil
import xml.etree.ElementTree as ET
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from command_line import edgebench
from sample_run import handmade

from edgebench.cli.main import run_command_line
from edgebench.harness.execute import execute
from edgebench.harness.records import Settings
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

SCENARIO = """\
schema_version: 1
name: gated
model: {{name: tiny, source: 'path:model.bin'}}
variants:
  - {{runner: fake, name: one, virtual_clock: true, prefill_s: 0.2, token_s: {token_s},
     jitter: 0.01}}
workloads: [{{name: short, prompt: hello, generate_tokens: 8}}]
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 9, max: 9}}, per_block: 1}}
"""

Values = dict[str, dict[str, list[float | None]]]
Metrics: TypeAlias = "Mapping[str, Sequence[float | None]]"


@dataclass(frozen=True)
class Result:
    """What a process left."""

    status: int
    out: str
    err: str


def gate(*arguments: str | Path, **environment: str) -> Result:
    """The command in this process, which is far faster than one of its own."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"GITHUB_ACTIONS": "", **environment}.items():
            patch.setenv(name, value)
        status = run_command_line(["gate", *map(str, arguments)])
    return _checked(Result(status, out.getvalue(), err.getvalue()))


def gate_process(*arguments: str | Path) -> Result:
    """The command in a process of its own."""
    process = edgebench("gate", *arguments, GITHUB_ACTIONS="")
    return _checked(Result(process.returncode, process.stdout, process.stderr))


def _checked(found: Result) -> Result:
    assert "Traceback" not in found.out + found.err
    if not found.out.startswith("{"):
        assert not re.search(r"\b(nan|inf)\b", found.out, re.IGNORECASE)
        lines = [line for line in found.out.splitlines() if not line.startswith("::")]
        # A path is not broken, so that it can be copied.
        assert max((len(line) for line in lines if "/tmp" not in line), default=0) <= 80
    return found


def save(run: Path, folder: Path) -> None:
    """`edgebench baseline save`."""
    with redirect_stdout(io.StringIO()):
        assert run_command_line(["baseline", "save", str(run), "--dir", str(folder)]) == 0


@pytest.fixture(scope="module")
def fake_run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Runs the scenario for real, with a time per token; each call is another run."""
    base = tmp_path_factory.mktemp("fake")
    (base / "model.bin").write_bytes(b"weights")

    def run(token_s: float) -> Path:
        path = base / "gated.yaml"
        path.write_text(SCENARIO.format(token_s=token_s), encoding="utf-8")
        folder = base / f"run-{len(list(base.glob('run-*')))}"
        scenario = load_scenario(path, runners=runner_classes())
        execute(scenario, Settings(folder=folder, base=base, store=ModelStore(base / "store")))
        return folder

    return run


@pytest.fixture(scope="module")
def baseline(fake_run: Callable[..., Path]) -> Path:
    return fake_run(0.02)


def write(folder: Path, values: Values, *, name: str = "run", **changes: Any) -> Path:
    """A handmade run of one workload, with exactly these values."""
    changes = {"id": name, "status": "finished", **changes}
    record, trials = handmade(values, **changes)
    target = folder / name
    target.mkdir(parents=True)
    (target / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    lines = "".join(f"{trial.model_dump_json()}\n" for trial in trials)
    (target / "trials.jsonl").write_text(lines, encoding="utf-8")
    return target


def pair_of(folder: Path, one: Metrics, other: Metrics) -> tuple[Path, Path]:
    """Two handmade runs of the variant ``v``."""
    made = [
        write(folder, {"v": {key: list(each) for key, each in values.items()}}, name=name)
        for name, values in (("baseline", one), ("candidate", other))
    ]
    return made[0], made[1]


RATES = [100.0, 100.4, 99.7, 100.2, 99.9, 100.1, 99.8, 100.3]


def test_a_slower_token_fails_the_gate(baseline: Path, fake_run: Callable[..., Path]) -> None:
    """5 % more time a token, in runs at different times: exit status 1, and what is broken."""
    for _ in range(2):
        found = gate_process("--baseline", baseline, "--candidate", fake_run(0.021))
        assert found.status == 1
        assert found.out.startswith("FAILED     1 of 4 limits is broken")
        broken = found.out.partition("\nbroken\n")[2].partition("\n\n")[0]
        assert "one / short" in broken
        assert "Decode rate is 4" in broken or "Decode rate is 5" in broken
        assert "differs    token_s: 0.02 → 0.021" in found.out


def test_an_unchanged_run_passes(baseline: Path, fake_run: Callable[..., Path]) -> None:
    """The same again: exit status 0, and how small a change would have been noticed."""
    for _ in range(2):
        found = gate_process("--baseline", baseline, "--candidate", fake_run(0.02))
        assert (found.status, found.err) == (0, "")
        assert found.out.startswith("passed     No limit is broken")
        assert "would have been noticed" in " ".join(found.out.split())


def test_a_saved_baseline_of_this_machine_is_found(
    baseline: Path, fake_run: Callable[..., Path], tmp_path: Path
) -> None:
    """A folder of baselines, and the file itself, are as good as the run."""
    save(baseline, tmp_path / "baselines")
    (file,) = (tmp_path / "baselines").glob("*/*.json")
    slow = fake_run(0.021)
    for path in (tmp_path / "baselines", file.parent, file):
        assert gate("--baseline", path, "--candidate", slow).status == 1


def test_every_output_is_written_though_the_gate_fails(tmp_path: Path) -> None:
    """JSON, Markdown, JUnit, GitLab's metrics, annotations and the step's summary."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": [v / 2 for v in RATES]})
    out = tmp_path / "folder"
    out.mkdir()
    summary = tmp_path / "summary.md"
    summary.write_text("before\n", encoding="utf-8")
    found = gate(
        "--baseline", one, "--candidate", other,
        "--json", out / "gate.json", "--markdown", out / "gate.md",
        "--junit", out / "gate.xml", "--gitlab-metrics", out / "metrics.txt",
        GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    assert found.status == 1
    assert "\n::error title=" in found.out
    shown = json.loads((out / "gate.json").read_text(encoding="utf-8"))
    assert (shown["passed"], shown["counts"]["fail"]) == (False, 1)
    assert (out / "gate.md").read_text(encoding="utf-8").startswith("<!-- edgebench-gate")
    assert ET.parse(out / "gate.xml").getroot().tag in {"testsuites", "testsuite"}
    assert "decode_rate" in (out / "metrics.txt").read_text(encoding="utf-8")
    assert summary.read_text(encoding="utf-8").startswith("before\n")
    assert "broken" in summary.read_text(encoding="utf-8")


def test_json_on_standard_output_is_json_alone(tmp_path: Path) -> None:
    """Annotations go elsewhere, so that a program can read it."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": [v / 2 for v in RATES]})
    found = gate("--baseline", one, "--candidate", other, "--json", "-", "--github")
    assert json.loads(found.out)["passed"] is False
    assert found.err.startswith("::error")
    assert found.status == 1


def test_a_policy_is_applied(tmp_path: Path) -> None:
    """A limit of a file, an allowance, and what met nothing."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": [v / 2 for v in RATES]})
    policy = tmp_path / "gate.yaml"
    policy.write_text(
        "schema_version: 1\nlimits: {decode_rate: {worse_by: 5%}, perplexity: {worse_by: 1%}}\n"
        "allow: [{cell: 'v*', worse_by: 60%, until: 9999-12-31, reason: a known fault}]\n",
        encoding="utf-8",
    )
    found = gate("--baseline", one, "--candidate", other, "--policy", policy)
    assert found.status == 0
    assert "allowed up to 60 % until 9999-12-31: a known fault" in found.out
    assert "limits.perplexity: no cell has that metric" in found.out
    policy.write_text("schema_version: 1\nlimits: {decode_rat: {}}\n", encoding="utf-8")
    found = gate("--baseline", one, "--candidate", other, "--policy", policy)
    assert found.status == 2
    assert f"{policy}:2:10: limits.decode_rat: unknown metric" in found.err


@pytest.mark.parametrize(
    ("one", "other", "status", "said"),
    [
        ([0.0] * 8, RATES, 0, "the baseline is 0, so no ratio can be made"),
        (RATES, [0.0] * 8, 1, "Decode rate has fallen to nothing"),
        ([0.0] * 8, [0.0] * 8, 0, "kept       1 of 1 limit"),
        ([100.0] * 8, [100.0] * 8, 0, "kept       1 of 1 limit"),
        ([100.0] * 8, [50.0] * 8, 1, "Decode rate is 50 % worse"),
        ([100.0], [50.0], 5, "At 99 % it takes 5 repetitions on each side at the very least"),
        (RATES, [None] * 8, 1, "Decode rate is not measured any more: no such sensor"),
        ([1e-300] * 8, [1e300] * 8, 0, "kept       1 of 1 limit"),
    ],
    ids=["0-before", "0-now", "0-both", "constant", "halved", "one", "lost", "huge"],
)
def test_odd_samples_have_a_clear_verdict(
    one: list[float | None], other: list[float | None], status: int, said: str, tmp_path: Path
) -> None:
    """Zeros, constants, one repetition and gaps: no traceback, no division by zero, no NaN."""
    paths = pair_of(tmp_path, {"decode_rate": one}, {"decode_rate": other})
    found = gate("--baseline", paths[0], "--candidate", paths[1])
    assert found.status == status
    assert said in " ".join(found.out.split()) or said in found.out


def test_units_that_differ_are_named(tmp_path: Path) -> None:
    """A time in milliseconds is not 1000 times as slow."""
    one = write(tmp_path, {"v": {"ttft_s": [1.0] * 8}}, name="a")
    record, trials = handmade(
        {"v": {"ttft_s": [1000.0] * 8}}, units={"ttft_s": "ms"}, id="b", status="finished"
    )
    other = tmp_path / "b"
    other.mkdir()
    (other / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    lines = "".join(f"{trial.model_dump_json()}\n" for trial in trials)
    (other / "trials.jsonl").write_text(lines, encoding="utf-8")
    found = gate("--baseline", one, "--candidate", other)
    assert found.status == 1
    assert "in s, the candidate's in ms" in " ".join(found.out.split())


def test_a_missing_baseline_is_status_5_and_says_how_to_get_one(
    baseline: Path, tmp_path: Path
) -> None:
    """Nothing named, or nothing there: 5, and the command that saves one."""
    (tmp_path / "empty").mkdir()
    for arguments, said in (
        ((), "was not interleaved with another run"),
        (("--baseline", tmp_path / "none"), "does not exist"),
        (("--baseline", tmp_path / "empty"), "holds no run and no baseline"),
    ):
        found = gate(*arguments, "--candidate", baseline)
        assert (found.status, found.out) == (5, "")
        assert said in found.err
        assert "edgebench baseline save" in found.err


def test_baselines_of_other_machines_are_named(baseline: Path, tmp_path: Path) -> None:
    """Which machines have one."""
    save(baseline, tmp_path / "bl")
    (file,) = (tmp_path / "bl").glob("*/*.json")
    other = file.read_text(encoding="utf-8").replace(file.stem, "0123456789abcdef")
    file.with_name("0123456789abcdef.json").write_text(other, encoding="utf-8")
    file.unlink()
    found = gate("--baseline", tmp_path / "bl", "--candidate", baseline)
    assert found.status == 5
    assert "holds no baseline of this machine" in found.err
    assert "0123456789abcdef.json" in found.err
    assert "edgebench baseline save" in found.err


@pytest.mark.parametrize("side", ["baseline", "candidate"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "run.json"),
        (lambda text: text.replace('"schema_version":1', '"schema_version":99', 1), "pgrade"),
        (lambda text: "[]", "run.json"),
    ],
    ids=["truncated", "newer", "other"],
)
def test_a_damaged_run_is_told(
    side: str, damage: Callable[[str], str], said: str, tmp_path: Path
) -> None:
    """A broken baseline is status 5, a broken candidate 2; the file is named."""
    paths = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": RATES})
    broken = paths[side == "candidate"] / "run.json"
    broken.write_text(damage(broken.read_text(encoding="utf-8")), encoding="utf-8")
    found = gate("--baseline", paths[0], "--candidate", paths[1])
    assert found.status == (5 if side == "baseline" else 2)
    assert said in found.err


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[: len(text) // 2], "baseline"),
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 99', 1), "pgrade"),
        (lambda text: "", "baseline"),
    ],
    ids=["truncated", "newer", "empty"],
)
def test_a_damaged_baseline_file_is_status_5(
    damage: Callable[[str], str], said: str, baseline: Path, tmp_path: Path
) -> None:
    """Truncated JSON, a newer format, an empty file."""
    save(baseline, tmp_path / "bl")
    (file,) = (tmp_path / "bl").glob("*/*.json")
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
    found = gate("--baseline", file, "--candidate", baseline)
    assert found.status == 5
    assert said in found.err


def test_a_line_that_is_no_number_is_left_out_and_told(tmp_path: Path) -> None:
    """NaN in a line of trials.jsonl: the line does not count, and the gate says so."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": RATES})
    file = other / "trials.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines()
    lines[3] = lines[3].replace('"value":100.2', '"value":NaN')
    assert "NaN" in lines[3]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found = gate("--baseline", one, "--candidate", other)
    assert found.status == 0
    assert "note" in found.out
    assert "line" in found.out.partition("note")[2]


def test_other_machines_and_models_are_refused(tmp_path: Path) -> None:
    """Status 5 with what differs; --across-machines compares, and labels it."""
    one = write(tmp_path, {"v": {"decode_rate": list(RATES)}}, name="a")
    machine = json.loads((one / "run.json").read_text(encoding="utf-8"))["machine"]
    other = write(
        tmp_path, {"v": {"decode_rate": list(RATES)}}, name="b",
        machine=machine | {"fingerprint": "another", "cpu_model": "Another CPU"},
    )  # fmt: skip
    found = gate("--baseline", one, "--candidate", other)
    assert found.status == 5
    assert "Another CPU" in found.err
    assert "--across-machines" in found.err
    found = gate("--baseline", one, "--candidate", other, "--across-machines")
    assert found.status == 0
    assert "machines   " in found.out


def test_a_run_against_itself_is_refused(baseline: Path) -> None:
    """Nothing is learnt from it."""
    found = gate("--baseline", baseline, "--candidate", baseline)
    assert found.status == 5
    assert "the same run is on both sides" in found.err


def test_a_cell_that_vanished_fails(tmp_path: Path) -> None:
    """A scenario that lost a variant does not pass by that."""
    one = write(tmp_path, {v: {"decode_rate": list(RATES)} for v in ("v", "w")}, name="a")
    other = write(tmp_path, {"v": {"decode_rate": list(RATES)}}, name="b")
    found = gate("--baseline", one, "--candidate", other)
    assert found.status == 1
    assert "w / w\n    is in the baseline and not in the candidate" in found.out


def test_what_can_not_be_written_is_told_after_the_outcome(tmp_path: Path) -> None:
    """The result is on the screen and in the other files; the status says that one is missing."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": RATES})
    taken, junit = tmp_path / ("x" * 300), tmp_path / "gate.xml"
    found = gate("--baseline", one, "--candidate", other, "--json", taken, "--junit", junit)
    assert found.status == 2
    assert found.out.startswith("passed")
    assert "can't be written" in found.err
    assert junit.exists()


def test_no_folder_is_made_at_a_typing_error(tmp_path: Path) -> None:
    """A folder that is not there is told before anything is compared."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": RATES})
    found = gate("--baseline", one, "--candidate", other, "--junit", tmp_path / "no" / "g.xml")
    assert (found.status, found.out) == (2, "")
    assert "no is no folder" in found.err
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize(
    ("option", "begins"),
    [
        ("--json", "{"),
        ("--markdown", "<!-- edgebench"),
        ("--junit", "<?xml"),
        ("--gitlab-metrics", "#"),
    ],
)
def test_one_file_can_be_printed_in_place_of_the_text(
    option: str, begins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A - means standard output for each of them, and is no file's name."""
    monkeypatch.chdir(tmp_path)
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": RATES})
    out, err = io.StringIO(), io.StringIO()
    arguments = ["gate", "--baseline", str(one), "--candidate", str(other), option, "-"]
    with redirect_stdout(out), redirect_stderr(err):
        assert run_command_line(arguments) == 0
    assert out.getvalue().startswith(begins)
    assert not (tmp_path / "-").exists()
    found = gate(*arguments[1:], "--json" if option != "--json" else "--junit", "-")
    assert found.status == 2
    assert "Only one of" in found.err


def test_a_pattern_that_the_shell_took_apart_is_named(tmp_path: Path) -> None:
    """`--candidate results/*` with two runs gives a word too many: what to write is told."""
    found = gate("--baseline", "a", "--candidate", "b", "c")
    assert (found.status, found.out) == (2, "")
    assert "repeat the option for each path" in found.err


def test_a_gate_of_too_few_repetitions_is_no_pass(tmp_path: Path) -> None:
    """Status 5 with what it takes, and every output says so."""
    one, other = pair_of(tmp_path, {"decode_rate": [100.0]}, {"decode_rate": [100.0]})
    names = {"--json": "g.json", "--markdown": "g.md", "--junit": "g.xml"}
    files = [part for key, name in names.items() for part in (key, tmp_path / name)]
    found = gate("--baseline", one, "--candidate", other, *files, "--github")
    assert found.status == 5
    assert found.out.startswith("UNDECIDED")
    assert "`edgebench run SCENARIO --repetitions 10`" in " ".join(found.out.split())
    assert "::error title=edgebench gate could not decide::" in found.out
    shown = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))
    assert (shown["outcome"], shown["passed"]) == ("undecided", False)
    assert "### edgebench gate could not decide: " in (tmp_path / "g.md").read_text("utf-8")
    (suite,) = ET.parse(tmp_path / "g.xml").getroot()
    assert (suite.attrib["errors"], suite.attrib["failures"]) == ("1", "0")


def test_a_gate_that_is_refused_renews_what_an_earlier_one_wrote(tmp_path: Path) -> None:
    """No file says passed any more; the comment keeps its marker, so that it is found."""
    one, other = pair_of(tmp_path, {"decode_rate": RATES}, {"decode_rate": RATES})
    names = {"--json": "g.json", "--markdown": "g.md", "--junit": "g.xml", "--gitlab-metrics": "m"}
    files = [part for key, name in names.items() for part in (key, tmp_path / name)]
    assert gate("--baseline", one, "--candidate", other, *files).status == 0
    marker = (tmp_path / "g.md").read_text("utf-8").partition("\n")[0]
    summary = tmp_path / "summary.md"
    missing = tmp_path / "none"
    found = gate(
        "--baseline", missing, "--candidate", other, *files,
        GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary),
    )  # fmt: skip
    assert found.status == 5
    assert found.out.startswith("::error title=edgebench gate could not compare::")
    shown = json.loads((tmp_path / "g.json").read_text(encoding="utf-8"))
    assert (shown["outcome"], shown["passed"]) == ("not_compared", False)
    assert "none" in shown["message"]
    text = (tmp_path / "g.md").read_text("utf-8")
    assert text.startswith(f"{marker}\n### edgebench gate could not compare: ")
    assert "edgebench baseline save" in text
    assert text.partition("\n")[2] == summary.read_text("utf-8")
    (suite,) = ET.parse(tmp_path / "g.xml").getroot()
    assert [each.tag for each in suite.iter()] == ["testsuite", "testcase", "error"]
    assert (tmp_path / "m").read_text("utf-8") == "# EOF\n"


def test_a_run_that_broke_off_is_told_at_the_top(tmp_path: Path) -> None:
    """What is missing of it can't be seen otherwise."""
    one = write(tmp_path, {"v": {"decode_rate": list(RATES)}}, name="a")
    other = write(tmp_path, {"v": {"decode_rate": list(RATES)}}, name="b", status="interrupted")
    found = gate("--baseline", one, "--candidate", other)
    assert found.out.splitlines()[1].startswith("careful    The candidate's run b is not finished")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Missing option '--candidate'"),
        (("--candidate", "none"), "none does not exist"),
        (("--candidate", "x", "--policy", "none.yaml"), "none.yaml:1:1: policy: there is no such"),
        (("--candidate", "x", "--frob"), "No such option"),
    ],
)
def test_a_wrong_command_line_is_status_2(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is wrong, and nothing on standard output."""
    monkeypatch.chdir(tmp_path)
    found = gate(*arguments)
    assert (found.status, found.out) == (2, "")
    assert said in found.err


def test_a_run_that_was_interleaved_needs_no_baseline(baseline: Path, tmp_path: Path) -> None:
    """Its partner is the baseline, and equal blocks are pairs; the baseline's side is refused."""
    folders = []
    for side, token in (("baseline", "x"), ("candidate", "y")):
        folder = tmp_path / side
        shutil.copytree(baseline, folder)
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        partner = {"baseline": "candidate", "candidate": "baseline"}[side]
        record["id"] = token
        record["interleaved"] = {"session": "s", "side": side, "partner": partner}
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
        folders.append(folder)
    found = gate("--candidate", folders[1], "--json", "-")
    assert found.status == 0
    rows = json.loads(found.out)["comparison"]["rows"]
    assert {row["paired"] for row in rows if row["metric"] == "decode_rate"} == {True}
    found = gate("--candidate", folders[0])
    assert found.status == 5
    assert "is the baseline side" in found.err
