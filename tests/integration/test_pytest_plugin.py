"""The pytest plugin, in sessions of its users' own: real runs of the fake runner."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from command_line import outside_ci

from edgebench.harness.compare.baselines import read_baseline, save_baseline

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """\
schema_version: 1
name: fake
model: {{name: tiny, source: "path:model.bin"}}
variants:
  - {{runner: fake, name: one, token_s: {token_s}, jitter: 0.004, virtual_clock: true}}
  - {{runner: fake, name: two, token_s: 0.02, virtual_clock: true, threads: [1, 2]}}
  - {{runner: fake, name: dead, fail: crash}}
workloads:
  - {{name: short, prompt: hello, generate_tokens: 4}}
  - {{name: long, prompt: hello, generate_tokens: 8}}
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 5, max: 5}}, timeout_s: 20}}
"""

SPEED = """\
import pytest

pytestmark = pytest.mark.edgebench(scenario="fake.yaml", workload="short", worse_by="5%")

@pytest.mark.edgebench(variant="one")
def test_one(edgebench):
    cell = edgebench.run()
    assert 60 < cell.metrics["decode_rate"].median < 120
    cell.assert_not_worse("decode_rate")

@pytest.mark.edgebench(variant="two *")
def test_both(edgebench):
    cells = edgebench.run_all()
    assert [cell.variant for cell in cells] == ["two threads=1", "two threads=2"]
    cells.assert_not_worse("decode_rate", worse_by=0.1)
"""

INI = "[pytest]\naddopts = --strict-markers -p no:cacheprovider\nfilterwarnings = error\n"


def session(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A pytest session in `folder`, strict about markers and warnings; no traceback is allowed."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *arguments],
        capture_output=True, text=True, check=False, cwd=folder,
        env={
            **outside_ci(), "NO_COLOR": "1", "COLUMNS": "80",
            "EDGEBENCH_CACHE": str(folder / "cache"), "EDGEBENCH_CONFIG": str(folder / "none.toml"),
            **environment,
        },
    )  # fmt: skip
    assert "Traceback" not in done.stdout + done.stderr
    assert "INTERNALERROR" not in done.stdout + done.stderr
    return done


def project(folder: Path, tests: str = SPEED, token_s: float = 0.01) -> Path:
    """A folder with a scenario, its model and a test file."""
    folder.mkdir(exist_ok=True)
    (folder / "model.bin").write_bytes(b"weights")
    (folder / "none.toml").touch()
    (folder / "pytest.ini").write_text(INI, encoding="utf-8")
    (folder / "fake.yaml").write_text(SCENARIO.format(token_s=token_s), encoding="utf-8")
    (folder / "test_speed.py").write_text(tests, encoding="utf-8")
    return folder


def runs(folder: Path) -> list[Path]:
    return sorted(each.parent for each in folder.glob("results/pytest/*/*/run.json"))


def words(text: str) -> str:
    """A text that was broken into lines, as one line."""
    return " ".join(text.split())


def failures(path: Path) -> dict[str, str]:
    """By the name of the test, what a JUnit file says of it; nothing where it passed."""
    return {
        str(case.get("name")): words("".join(str(part.text) for part in case if part.text))
        for case in ET.parse(path).iter("testcase")
    }


@pytest.fixture(scope="module", name="first")
def saved_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose baselines one session saved."""
    folder = project(tmp_path_factory.mktemp("first") / "project")
    done = session(folder, "--edgebench-save")
    assert done.returncode == 0, done.stdout
    assert "saved: one / short: in baselines/fake/" in words(done.stdout)
    return folder


@pytest.fixture
def saved(first: Path, tmp_path: Path) -> Path:
    """A copy of that project, which a test may change."""
    return shutil.copytree(first, tmp_path / "project")


def test_a_missing_baseline_fails_and_says_how_to_save_one(tmp_path: Path) -> None:
    """Both ways: what was measured now, which is named, and another session."""
    folder = project(tmp_path / "new")
    done = session(folder, "-k", "test_one")
    assert done.returncode == 1
    (run,) = runs(folder)
    assert "There is no baseline of fake in " in done.stdout
    assert f"edgebench baseline save {run.relative_to(folder)} --dir baselines" in done.stdout
    assert "pytest --edgebench-save" in done.stdout


def test_what_did_not_change_passes_and_says_what_would_have_been_noticed(saved: Path) -> None:
    """The summary has a sentence for each comparison; the JUnit file has the figures."""
    done = session(saved, "--junit-xml=junit.xml")
    assert done.returncode == 0, done.stdout
    summary = words(done.stdout)
    assert "test_speed.py::test_one pass: one / short: Decode rate is" in summary
    assert "the limit is 5 %" in summary
    assert "the limit is 10 %" in summary
    assert "would have been noticed" in summary
    found = {
        each.get("name"): each.get("value")
        for each in ET.parse(saved / "junit.xml").iter("property")
    }
    assert str(found["edgebench: one / short: decode_rate"]).endswith(" token/s")
    assert found["edgebench: two threads=1 / short: decode_rate"] == "50 token/s"
    assert str(found["edgebench"]).startswith("pass: ")


def test_a_slower_cell_fails_with_the_gates_own_words(saved: Path) -> None:
    """Each token takes a quarter longer, so the rate is a fifth lower; the others pass."""
    project(saved, token_s=0.0125)
    done = session(saved)
    assert done.returncode == 1
    shown = words(done.stdout)
    assert "1 failed, 1 passed" in shown
    assert "1 of 1 limit is broken" in shown
    assert "Decode rate is 20 % worse" in shown
    assert "token_s: 0.01 → 0.0125" in shown
    assert "fail: one / short: Decode rate is 20 % worse" in shown
    assert not [each for each in done.stdout.splitlines() if len(each) > 100]


def test_saving_some_cells_keeps_the_others(saved: Path) -> None:
    """One test's cell is replaced in the file; those of the other test stay, byte for byte."""
    (path,) = saved.glob("baselines/fake/*.json")
    before = {each["variant"]: each for each in json.loads(path.read_text("utf-8"))["cells"]}
    project(saved, token_s=0.012)
    assert session(saved, "-k", "test_one", "--edgebench-save").returncode == 0
    after = {each["variant"]: each for each in json.loads(path.read_text("utf-8"))["cells"]}
    assert set(after) == set(before) == {"one", "two threads=1", "two threads=2"}
    assert after["one"] != before["one"]
    assert after["two threads=1"] == before["two threads=1"]
    assert session(saved).returncode == 0


def test_cells_of_several_tests_are_measured_together_once(saved: Path) -> None:
    """Two tests, one run; with two processes of xdist too, in which each test has its own."""
    for arguments in ((), ("-n", "2")):
        shutil.rmtree(saved / "results")
        done = session(saved, *arguments)
        assert done.returncode == 0, done.stdout
        assert words(done.stdout).count("test_speed.py::test_one pass: one / short") == 1
        (run,) = runs(saved)
        cells = json.loads((run / "run.json").read_text("utf-8"))["cells"]
        assert [(each["variant"], each["workload"]) for each in cells] == [
            ("one", "short"),
            ("two threads=1", "short"),
            ("two threads=2", "short"),
        ]


NO_USE = """\
import pytest

pytestmark = pytest.mark.edgebench(
    scenario="fake.yaml", variant="one", workload="short", repetitions=1, worse_by="5%"
)

@pytest.mark.parametrize("name", ["cut.json", "empty.json", "newer.json", "elsewhere", "nowhere"])
def test_one(edgebench, name):
    edgebench.run(baseline=f"spoiled/{name}").assert_not_worse("decode_rate")
"""


def test_a_baseline_that_is_no_use_fails_with_its_reason(saved: Path) -> None:
    """Truncated, empty, of the future, of another machine, not there; measured once for all."""
    (path,) = saved.glob("baselines/fake/*.json")
    text = path.read_text("utf-8")
    spoiled = saved / "spoiled"
    spoiled.mkdir()
    side = read_baseline(path)
    elsewhere = side.machine.model_copy(update={"fingerprint": "0123456789abcdef"})
    moved = replace(side, runs=tuple(replace(run, machine=elsewhere) for run in side.runs))
    save_baseline(moved, spoiled / "elsewhere" / "0123456789abcdef.json")
    (spoiled / "cut.json").write_text(text[: len(text) // 2], encoding="utf-8")
    (spoiled / "empty.json").touch()
    newer = text.replace('"schema_version": 1', '"schema_version": 99', 1)
    (spoiled / "newer.json").write_text(newer, encoding="utf-8")
    shutil.rmtree(saved / "results")
    (saved / "test_speed.py").write_text(NO_USE, encoding="utf-8")
    done = session(saved, "--junit-xml=junit.xml")
    found = failures(saved / "junit.xml")
    assert done.returncode == 1
    assert len(runs(saved)) == 1
    assert "it is cut off or damaged" in found["test_one[cut.json]"]
    assert "it is cut off or damaged" in found["test_one[empty.json]"]
    assert "saved by a newer edgebench, in format 99" in found["test_one[newer.json]"]
    assert "holds no baseline of this machine" in found["test_one[elsewhere]"]
    assert "There is no baseline of fake in " in found["test_one[nowhere]"]


ONCE = """\
import pytest

pytestmark = pytest.mark.edgebench(
    scenario="fake.yaml", variant="one", workload="short", repetitions=1
)

def test_one(edgebench):
    edgebench.assert_not_worse("decode_rate", worse_by="5%")

def test_nothing(edgebench):
    edgebench.assert_not_worse("energy_per_token_j", worse_by="5%")

def test_sum(benchmark):
    assert benchmark(sum, range(9)) == 36
"""


def test_another_model_is_not_compared(saved: Path) -> None:
    """The weights are others; the message says so, and how to go on if that is meant."""
    (saved / "test_speed.py").write_text(ONCE, encoding="utf-8")
    (saved / "model.bin").write_bytes(b"other weights")
    done = session(saved, "-k", "test_one")
    assert done.returncode == 1
    assert "can't be compared" in done.stdout
    assert "pytest --edgebench-save" in done.stdout


def test_one_repetition_is_undecided_and_said_to_be(saved: Path) -> None:
    """It fails and says how many it takes, and so does a metric without a value on either side.

    Both would otherwise never fail. A test of pytest-benchmark beside them does as ever.
    """
    (saved / "test_speed.py").write_text(ONCE, encoding="utf-8")
    done = session(saved)
    shown = words(done.stdout)
    assert "2 failed, 1 passed" in shown, done.stdout
    assert "UNDECIDED The limit could not be decided" in shown
    assert "At 99 % it takes 5 repetitions on each side at the very least" in shown
    assert "test_speed.py::test_one undecided: one / short: Decode rate" in shown
    assert "nothing was checked: neither side has a value of 'energy_per_token_j'" in shown


WRONG = """\
import pytest

mark = pytest.mark.edgebench
marked = mark(scenario="fake.yaml", variant="one", workload="short")

@mark(scenario="fake.yaml", varaint="one")
def test_argument(edgebench): pass

@mark(scenario="fake.yaml", variant="three*")
def test_variant(edgebench): pass

@mark(scenario="fake.yaml", workload="chat")
def test_workload(edgebench): pass

@mark(scenario="fakes.yaml")
def test_scenario(edgebench): pass

@mark(scenario="pytest.ini")
def test_no_scenario(edgebench): pass

@mark("fake.yaml")
def test_positional(edgebench): pass

def test_unmarked(edgebench): pass

@marked
def test_override(edgebench):
    edgebench.run(repetition=2)

@mark(scenario="fake.yaml", variant="two *")
def test_several(edgebench):
    edgebench.run()

@marked
def test_metric(edgebench):
    edgebench.assert_not_worse("decode_rat", worse_by="5%")

@marked
def test_unlimited(edgebench):
    edgebench.assert_not_worse("load_s")

@marked
def test_share(edgebench):
    edgebench.assert_not_worse("decode_rate", worse_by="5")

@marked
def test_policy(edgebench):
    edgebench.assert_not_worse(policy="gate.yaml")

@marked
def test_median(edgebench):
    edgebench.run().median("energy_per_token_j")

@mark(scenario="fake.yaml", variant="one", workload="short", against={"thraeds": 2})
def test_against(edgebench):
    edgebench.run()

@mark(scenario="fake.yaml", variant="dead", workload="short", repetitions=1)
def test_crash(edgebench):
    edgebench.run()

@marked
def test_right(edgebench):
    assert edgebench.run(repetitions=1).n == 1
"""

SAID = {
    "test_argument": "edgebench has no argument 'varaint'; did you mean 'variant'?",
    "test_variant": "variant='three*' meets none of the scenario's variants There are: one two",
    "test_workload": "workload='chat' meets none of the scenario's workloads There are: short long",
    "test_scenario": "there is no scenario 'fakes.yaml'",
    "test_no_scenario": "pytest.ini:",
    "test_positional": "takes arguments by name",
    "test_unmarked": "does not know which scenario to run",
    "test_override": "edgebench has no argument 'repetition'; did you mean 'repetitions'?",
    "test_several": "the patterns pick 4 cells, and run() measures one",
    "test_metric": "did you mean 'decode_rate'?",
    "test_unlimited": "the default policy has no limit for 'load_s'",
    "test_share": "must be a share such as 5% or 0.05",
    "test_policy": "gate.yaml:1:1: policy: there is no such file",
    "test_median": "one / short: no energy_per_token_j: ",
    "test_against": "did you mean 'threads'?",
    "test_crash": "dead / short has no result: crash (SIGSEGV): ",
}


def test_whatever_is_wrong_is_said_in_a_sentence(tmp_path: Path) -> None:
    """Each mistake fails its own test with its own message, and no other test."""
    folder = project(tmp_path / "wrong", WRONG)
    done = session(folder, "--junit-xml=junit.xml")
    found = failures(folder / "junit.xml")
    assert done.returncode == 1
    for name, message in SAID.items():
        assert message in found[name], name
    assert found["test_right"] == ""


AGAINST = """\
import pytest

@pytest.mark.edgebench(scenario="fake.yaml", variant="one", workload="short", repetitions=7)
@pytest.mark.parametrize("token_s", [0.008, 0.0101])
def test_change(edgebench, token_s):
    cell = edgebench.run(against={"token_s": token_s})
    assert cell.compare().matched.interleaved
    cell.assert_not_worse("decode_rate", worse_by="5%")
"""


def test_two_option_sets_are_interleaved_in_place_of_a_baseline(tmp_path: Path) -> None:
    """A fifth slower than the other fails, a hundredth faster passes; no baseline is needed."""
    folder = project(tmp_path / "against", AGAINST)
    done = session(folder)
    shown = words(done.stdout)
    assert "1 failed, 1 passed" in shown, done.stdout
    assert "token_s: 0.008 → 0.01" in shown
    assert "7 repetitions each" in shown
    assert "pass: one / short: Decode rate is" in shown
    assert [each.name.rpartition("-")[2] for each in runs(folder)] == ["baseline", "candidate"] * 2
    assert not (folder / "baselines").exists()


def test_measurements_can_be_skipped(tmp_path: Path) -> None:
    """By the option or the configuration; other tests run."""
    folder = project(tmp_path / "skipped", SPEED + "\n\ndef test_other():\n    pass\n")
    assert "1 passed, 2 skipped" in session(folder, "--edgebench-skip").stdout
    assert "1 passed, 2 skipped" in session(folder, "-o", "edgebench_skip=true").stdout
    assert not (folder / "results").exists()


def test_results_and_baselines_go_where_they_are_told(tmp_path: Path) -> None:
    """Options are relative to where pytest was started, and stand above what the marker names."""
    folder = project(tmp_path / "told", ONCE.replace("repetitions=1", "repetitions=5"))
    arguments = ("-k", "test_one", "--edgebench-out", "o", "--edgebench-baseline", "b")
    assert session(folder, *arguments, "--edgebench-save").returncode == 0
    assert session(folder, *arguments).returncode == 0
    assert len([*folder.glob("o/fake/*/run.json")]) == 2
    assert len([*folder.glob("b/fake/*.json")]) == 1
    assert not (folder / "results").exists()
    assert not (folder / "baselines").exists()


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    """Without the plugin its marker and its fixture are not there."""
    off = session(project(tmp_path / "off"), "-p", "no:edgebench")
    assert off.returncode != 0
    assert "'edgebench' not found in `markers` configuration option" in off.stdout


PLAIN = """\
import sys

def test_plain():
    print("imported:", *sorted(sys.modules))
"""


def test_a_session_that_measures_nothing_pays_nothing(tmp_path: Path) -> None:
    """Of edgebench, only the plugin's own module is imported, and nothing heavy for it."""
    folder = project(tmp_path / "plain", PLAIN)
    # Other plugins may import what they like.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = session(folder, "-s", "-p", "edgebench.pytest_plugin", **alone)
    (line,) = (each for each in done.stdout.splitlines() if each.startswith("imported:"))
    imported = line.split()
    assert [each for each in imported if each.split(".")[0] == "edgebench"] == [
        "edgebench",
        "edgebench.pytest_plugin",
    ]
    heavy = {"numpy", "scipy", "pydantic", "click", "rich", "pandas", "matplotlib", "filelock"}
    assert not heavy & set(imported)
