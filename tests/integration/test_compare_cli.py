"""``edgebench compare``: real runs of the fake runner, handmade ones, and everything wrong."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pytest
from command_line import edgebench
from sample_run import handmade, sample

from edgebench.cli.main import run_command_line
from edgebench.harness.errors import ExitStatus

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """\
schema_version: 1
name: demo
model: {{name: tiny, source: 'path:model.bin'}}
variants: [{{runner: fake, token_s: {token_s}, prefill_s: 0.5, jitter: 0.01, virtual_clock: true}}]
workloads: [{{name: short, prompt: hello, generate_tokens: 6}}]
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 8, max: 8}}, timeout_s: 20}}
"""

RATES = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8]


class Compare(Protocol):
    """Runs the command."""

    def __call__(self, *arguments: str | Path) -> Done: ...


def _run(folder: Path, token_s: float, *more: str) -> list[Path]:
    """Run the scenario in `folder`; the run folders that it made."""
    (folder / "model.bin").write_bytes(b"weights")
    scenario = folder / f"{token_s}.yaml"
    scenario.write_text(SCENARIO.format(token_s=token_s), encoding="utf-8")
    before = set(folder.glob("results/demo/*"))
    done = edgebench("run", scenario, "--format", "json", *more, cwd=folder)
    assert done.returncode == ExitStatus.DONE, done.stderr
    return sorted(set(folder.glob("results/demo/*")) - before)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Real runs: one, the same again, one with tokens 10 % slower, and a slower one interleaved."""
    folder = tmp_path_factory.mktemp("real")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDGEBENCH_CACHE", str(folder / "cache"))
        (one,) = _run(folder, 0.25)
        (again,) = _run(folder, 0.25)
        (slower,) = _run(folder, 0.275)
        baseline, candidate = _run(folder, 0.275, "--against", "token_s=0.25")
    return {
        "one": one,
        "again": again,
        "slower": slower,
        "baseline": baseline,
        "candidate": candidate,
    }


def _verdicts(compare: Compare, *arguments: str | Path) -> dict[str, str]:
    done = compare(*arguments, "--json")
    assert done.returncode == ExitStatus.DONE, done.stderr
    return {each["metric"]: each["verdict"] for each in json.loads(done.stdout)["rows"]}


@dataclass(frozen=True)
class Done:
    """What a command did."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def compare(capsys: pytest.CaptureFixture[str]) -> Compare:
    """The command in this process, which starts sooner."""

    def run(*arguments: str | Path) -> Done:
        status = run_command_line(["compare", *map(str, arguments)])
        out, err = capsys.readouterr()
        return Done(status, out, err)

    return run


def _made(folder: Path, values: dict[str, list[float | None]], **changes: object) -> Path:
    """A handmade run of one variant, in a folder named after it."""
    day = 1 + sum(map(ord, folder.name)) % 27
    record, trials = handmade(
        {"v": values},
        **{"id": folder.name, "created_at": f"2025-01-{day:02}T10:00:00Z"} | changes,
    )
    folder.mkdir()
    (folder / "run.json").write_text(record.model_dump_json(), encoding="utf-8")
    (folder / "trials.jsonl").write_text(
        "".join(each.model_dump_json() + "\n" for each in trials), encoding="utf-8"
    )
    return folder


def test_the_same_thing_twice_is_not_worse(real: dict[str, Path], compare: Compare) -> None:
    """Two real runs of one scenario: no token is called slower."""
    found = _verdicts(compare, real["one"], real["again"], "--metric", "decode_rate")
    assert found in ({"decode_rate": "same"}, {"decode_rate": "cant_tell"})


def test_ten_percent_are_noticed(real: dict[str, Path], compare: Compare) -> None:
    """One way it is worse, the other way better."""
    pick = ("--metric", "decode_rate")
    assert _verdicts(compare, real["one"], real["slower"], *pick) == {"decode_rate": "worse"}
    assert _verdicts(compare, real["slower"], real["one"], *pick) == {"decode_rate": "better"}


def test_an_interleaved_run_finds_its_partner(real: dict[str, Path]) -> None:
    """From either side; the baseline is the baseline whichever is named."""
    for named in ("baseline", "candidate"):
        done = edgebench("compare", real[named], "--metric", "decode_rate")
        assert done.returncode == ExitStatus.DONE, done.stderr
        text = done.stdout
        assert "measured   in the same blocks" in text
        assert "differs    token_s: 0.25 → 0.275" in text
        assert "1 worse (95 % certain" in " ".join(text.split())
        assert all(len(line) <= 80 for line in text.splitlines() if "results" not in line)


def test_a_file_for_a_pull_request_is_written(
    real: dict[str, Path], tmp_path: Path, compare: Compare
) -> None:
    """Beside what is printed, into a folder that is made for it."""
    file = tmp_path / "new" / "comparison.md"
    done = compare(real["one"], real["slower"], "--markdown", file)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "| " in file.read_text(encoding="utf-8")
    assert "machine" in done.stdout


def test_everything_of_a_larger_run_fits_the_screen(tmp_path: Path, compare: Compare) -> None:
    """Several variants and workloads, a crash on both sides: at most 80 columns."""
    sample(blocks=6).write(tmp_path / "a")
    changed = {"id": "other", "created_at": "2025-01-16T10:00:00Z"}
    sample(blocks=6, seed=2, changes=changed).write(tmp_path / "b")
    done = compare(tmp_path / "a", tmp_path / "b")
    assert done.returncode == ExitStatus.DONE, done.stderr
    wide = [each for each in done.stdout.splitlines() if len(each) > 80]
    assert all(str(tmp_path) in each for each in wide)
    assert "no result on either side" in done.stdout
    # A load is one of its variant, not of each workload.
    assert sum(line.startswith("  load ") for line in done.stdout.splitlines()) == 5
    assert "\x1b" not in done.stdout


def test_a_folder_of_runs_is_a_side(tmp_path: Path, compare: Compare) -> None:
    """Its repetitions count together, and what is left out is told."""
    (tmp_path / "many").mkdir()
    _made(tmp_path / "many" / "a", {"decode_rate": list(RATES)})
    _made(tmp_path / "many" / "b", {"decode_rate": list(RATES)})
    _made(tmp_path / "many" / "c", {"decode_rate": list(RATES)}, quick=True)
    _made(tmp_path / "d", {"decode_rate": list(RATES)})
    done = compare(tmp_path / "many", tmp_path / "d")
    assert done.returncode == ExitStatus.DONE, done.stderr
    text = " ".join(done.stdout.split())
    assert "2 runs, the newest of" in text
    assert "c is left out: it is a quick look." in text


@pytest.mark.parametrize(
    ("baseline", "candidate", "said"),
    [
        ([0.0] * 7, RATES, "the baseline is 0, so no ratio can be made"),
        (RATES, [0.0] * 7, "1 worse"),
        ([0.0] * 7, [0.0] * 7, "1 same"),
        ([5.0] * 7, [5.0] * 7, "1 same"),
        ([5.0] * 7, [4.0] * 7, "1 worse"),
        ([5.0], [4.0], "one repetition says nothing about certainty"),
        (RATES, [None] * 7, "the candidate has none: no such sensor"),
        ([1e-300] * 7, [1e300] * 7, "1 better"),
    ],
)
def test_odd_samples_have_a_clear_verdict(
    baseline: list[float | None],
    candidate: list[float | None],
    said: str,
    tmp_path: Path,
    compare: Compare,
) -> None:
    """Nothing is divided by zero, and no number is inf or nan."""
    one = _made(tmp_path / "a", {"decode_rate": list(baseline)})
    other = _made(tmp_path / "b", {"decode_rate": list(candidate)})
    for more in ((), ("--json",)):
        done = compare(one, other, *more)
        assert done.returncode == ExitStatus.DONE, done.stderr
        assert done.stderr == ""
        assert not {"nan", "inf", "NaN", "Infinity"} & set(done.stdout.replace("%", " ").split())
    text = compare(one, other).stdout
    assert said in " ".join(text.split())


def test_units_that_differ_are_told(tmp_path: Path, compare: Compare) -> None:
    """Milliseconds are no seconds."""
    one = _made(tmp_path / "a", {"ttft_s": [1.0] * 7})
    other = _made(tmp_path / "b", {"ttft_s": [1.0] * 7}, units={"ttft_s": "ms"})
    done = compare(one, other)
    assert "the baseline's is in s, the candidate's in ms" in done.stdout


def test_a_line_with_nan_is_left_out_and_told(tmp_path: Path, compare: Compare) -> None:
    """The run is compared without that repetition."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    other = _made(tmp_path / "b", {"decode_rate": list(RATES)})
    file = other / "trials.jsonl"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"value":101.0', '"value":NaN', 1), encoding="utf-8")
    done = compare(one, other)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "candidate: 1 line of its trials could not be read" in done.stdout


def _truncate(folder: Path) -> None:
    file = folder / "run.json"
    file.write_bytes(file.read_bytes()[:500])


def _newer(folder: Path) -> None:
    file = folder / "run.json"
    value = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(value | {"schema_version": 99}), encoding="utf-8")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (_truncate, "is not the record of a run"),
        (_newer, "was written by a newer edgebench"),
        (shutil.rmtree, "does not exist"),
    ],
)
def test_what_can_not_be_read_is_refused_by_name(
    damage: object, said: str, tmp_path: Path, compare: Compare
) -> None:
    """A baseline that is broken is missing, 5; a candidate is a wrong command line, 2."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    other = _made(tmp_path / "b", {"decode_rate": list(RATES)})
    damage(one)  # type: ignore[operator]
    for arguments, status in (((one, other), 5), ((other, one), 2)):
        done = compare(*arguments)
        assert done.returncode == status
        assert said in done.stderr
        assert str(one) in done.stderr
        assert "Traceback" not in done.stderr
        assert done.stdout == ""


def test_what_does_not_compare_is_refused(tmp_path: Path, compare: Compare) -> None:
    """5, with both names and what to do."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    record, _ = handmade({"v": {"decode_rate": list(RATES)}})
    machine = record.machine.model_dump() | {"fingerprint": "0" * 16, "kernel": "7.0"}
    other = _made(tmp_path / "b", {"decode_rate": list(RATES)}, machine=machine)
    done = compare(one, other)
    assert done.returncode == ExitStatus.NOT_COMPARABLE
    assert f"{other}: kernel 7.0" in done.stderr
    assert "--across-machines" in done.stderr
    allowed = compare(one, other, "--across-machines")
    assert allowed.returncode == ExitStatus.DONE, allowed.stderr
    assert "across machines:" in allowed.stdout
    itself = compare(one, one)
    assert itself.returncode == ExitStatus.NOT_COMPARABLE
    assert "the same run is on both sides" in itself.stderr
    alone = compare(one)
    assert alone.returncode == ExitStatus.NOT_COMPARABLE
    assert "was not interleaved with another run" in alone.stderr


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--confidence", "200%", "'200%' is no share from 50% to 99.9%"),
        ("--margin", "many", "'many' is no share from 0% to 100%"),
        ("--noise-floor", "nan", "'nan' is no share"),
        ("--metric", "decode", "no cell and metric that both patterns ask about has a value"),
        ("--cell", "x*", "Cells: v / w."),
    ],
)
def test_wrong_options_are_refused_with_what_is_right(
    option: str, value: str, said: str, tmp_path: Path, compare: Compare
) -> None:
    """2, and the names that there are."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    other = _made(tmp_path / "b", {"decode_rate": list(RATES)})
    done = compare(one, other, option, value)
    assert done.returncode == ExitStatus.USAGE
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_more_certainty_than_the_draws_can_tell_is_refused(
    tmp_path: Path, compare: Compare
) -> None:
    """With that reason."""
    done = compare(tmp_path, tmp_path, "--confidence", "99.99%")
    assert done.returncode == ExitStatus.USAGE
    assert "random draws" in done.stderr


def test_shares_are_written_in_two_ways(tmp_path: Path, compare: Compare) -> None:
    """0.5% and 0.005 are one."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    other = _made(tmp_path / "b", {"decode_rate": list(RATES)})
    texts = [compare(one, other, "--margin", each).stdout for each in ("0.5%", "0.005")]
    (text,) = set(texts)
    assert "a change within 0.5 % counts" in " ".join(text.split())


def test_names_from_a_file_do_nothing_to_the_terminal(tmp_path: Path, compare: Compare) -> None:
    """Escape sequences and line ends of a variant's name are shown or dropped."""
    for name in ("a", "b"):
        folder = _made(tmp_path / name, {"decode_rate": list(RATES)})
        for file in ("run.json", "trials.jsonl"):
            path = folder / file
            text = path.read_text(encoding="utf-8")
            evil = '"v\\u001b[31mred\\n\\u202eX"'
            for key in ("id", "variant"):
                text = text.replace(f'"{key}":"v"', f'"{key}":{evil}')
            path.write_text(text, encoding="utf-8")
    done = compare(tmp_path / "a", tmp_path / "b")
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "\x1b" not in done.stdout
    assert "\u202e" not in done.stdout


def test_a_folder_of_baselines_has_that_of_the_machine(tmp_path: Path, compare: Compare) -> None:
    """Another machine's only will do where that is asked for."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    saved = tmp_path / "baselines"
    assert run_command_line(["baseline", "save", str(one), "--dir", str(saved)]) == ExitStatus.DONE
    other = _made(tmp_path / "b", {"decode_rate": [0.8 * each for each in RATES]})
    done = compare(saved, other)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "1 worse" in done.stdout
    record, _ = handmade({"v": {"decode_rate": list(RATES)}})
    machine = record.machine.model_dump() | {"fingerprint": "0" * 16, "kernel": "7.0"}
    away = _made(tmp_path / "c", {"decode_rate": list(RATES)}, machine=machine)
    refused = compare(saved, away)
    assert refused.returncode == ExitStatus.NOT_COMPARABLE
    assert "no baseline of this machine" in refused.stderr
    allowed = compare(saved, away, "--across-machines")
    assert allowed.returncode == ExitStatus.DONE, allowed.stderr
    assert "across machines:" in allowed.stdout


def test_several_runs_on_each_side_are_named_by_options(tmp_path: Path, compare: Compare) -> None:
    """Two of the baseline count together; what is named in both ways is refused."""
    one, two, three = (_made(tmp_path / name, {"decode_rate": list(RATES)}) for name in "abc")
    done = compare("--baseline", one, "--baseline", two, "--candidate", three)
    assert done.returncode == ExitStatus.DONE, done.stderr
    assert "2 runs, the newest of" in " ".join(done.stdout.split())
    for wrong in (("--baseline", one), ("--candidate", one), (one, "--candidate", two)):
        done = compare(*wrong)
        assert done.returncode == ExitStatus.USAGE
        assert "--baseline" in done.stderr
        assert "--candidate" in done.stderr


def test_a_pattern_that_the_shell_expanded_is_recognized(tmp_path: Path, compare: Compare) -> None:
    """Three paths are no two sides, and how to name several is told."""
    done = compare(*(_made(tmp_path / name, {"decode_rate": list(RATES)}) for name in "abc"))
    assert done.returncode == ExitStatus.USAGE
    assert "3 were named, as where the shell puts all that match" in done.stderr
    assert "--baseline PATH for each of one" in done.stderr


def test_a_baseline_without_a_measurement_is_none(tmp_path: Path, compare: Compare) -> None:
    """Its trials are gone: nothing can be compared with it, whichever command asks."""
    one, other = (_made(tmp_path / name, {"decode_rate": list(RATES)}) for name in "ab")
    (one / "trials.jsonl").write_bytes(b"")
    done = compare(one, other)
    assert done.returncode == ExitStatus.NOT_COMPARABLE
    assert "holds no measurement" in done.stderr
    gated = edgebench("gate", "--baseline", one, "--candidate", other)
    assert gated.returncode == ExitStatus.NOT_COMPARABLE, gated.stdout


def test_a_damaged_candidate_is_no_fault_of_the_baseline(tmp_path: Path, compare: Compare) -> None:
    """The same file is one on the one side, and a wrong command line on the other."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    damaged = tmp_path / "saved.json"
    damaged.write_text('{"format": "edgebench baseline", "schema_version": true}', encoding="utf-8")
    timed = tmp_path / "timed.json"
    timed.write_text(
        '{"machine_info": {}, "benchmarks": [{"name": "t", "stats": {"data": ["1"]}}]}',
        encoding="utf-8",
    )
    for wrong in (damaged, timed):
        done = compare(one, wrong)
        assert (done.returncode, str(wrong) in done.stderr) == (ExitStatus.USAGE, True)
        done = compare(wrong, one)
        assert (done.returncode, str(wrong) in done.stderr) == (ExitStatus.NOT_COMPARABLE, True)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le"])
def test_a_baseline_may_be_in_whatever_encoding_an_editor_chose(
    encoding: str, tmp_path: Path
) -> None:
    """Show, compare and gate read the same file."""
    one, other = (_made(tmp_path / name, {"decode_rate": list(RATES)}) for name in "ab")
    edgebench("baseline", "save", one, "--name", "x", cwd=tmp_path)
    (saved,) = tmp_path.glob("baselines/x/*.json")
    saved.write_bytes(saved.read_text(encoding="utf-8").encode(encoding))
    for command in (
        ("baseline", "show", saved),
        ("compare", saved, other),
        ("gate", "--baseline", saved, "--candidate", other),
    ):
        done = edgebench(*command, cwd=tmp_path)
        assert done.returncode == ExitStatus.DONE, done.stderr


def test_a_folder_of_one_interleaved_run_names_its_candidate(real: dict[str, Path]) -> None:
    """What to name is told with its path."""
    folder = real["candidate"].parent
    done = edgebench("compare", folder)
    assert done.returncode == ExitStatus.NOT_COMPARABLE
    assert f"Name {real['candidate']}." in done.stderr


def test_the_name_that_a_list_prints_is_found(tmp_path: Path) -> None:
    """A baseline's name alone is no path, and the path is told."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    edgebench("baseline", "save", one, "--name", "x", cwd=tmp_path)
    done = edgebench("compare", "x", one, cwd=tmp_path)
    assert done.returncode == ExitStatus.NOT_COMPARABLE
    assert "Name baselines/x, which is a saved baseline." in done.stderr


def test_a_refusal_says_each_side_once_and_whose_message_it_is(
    tmp_path: Path, compare: Compare
) -> None:
    """Lines of one sentence are indented below it."""
    one = _made(tmp_path / "a", {"decode_rate": list(RATES)})
    done = compare(one, one)
    first, second, third = done.stderr.splitlines()
    assert first == "edgebench: These can't be compared: the same run is on both sides."
    assert second == f"  {one}: a"
    assert third.startswith("edgebench: Name another run")
