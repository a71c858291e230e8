"""``edgebench devices``, profiles in scenarios, and models that a device has no room for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.devices.machine import describe_machine
from edgebench.devices.power import PowerSettings
from edgebench.harness.bandwidth import keep_bandwidth
from edgebench.harness.board import LocalBoard
from edgebench.harness.device_profiles import builtin_profiles, load_profile
from edgebench.harness.execute import execute
from edgebench.harness.observer import Silent
from edgebench.harness.records import Settings, utc_now
from edgebench.harness.results.device import BandwidthRecord
from edgebench.harness.results.run import read_run
from edgebench.harness.scenario.loader import load_scenario
from edgebench.harness.store.store import ModelStore
from edgebench.runners.registry import runner_classes

if TYPE_CHECKING:
    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.store import StoredFile


def test_all_profiles_are_listed_at_80_columns() -> None:
    """Each name on a line of its own, none wider than a terminal."""
    shown = edgebench("devices", "list")
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    named = {line.split()[0] for line in lines[1:] if line.strip()}
    assert named >= set(builtin_profiles())
    assert [line for line in lines if line != line.rstrip()] == []
    (pi,) = [line for line in lines if line.startswith("raspberry-pi-5")]
    assert pi.split()[-3:] == ["2–16", "17.1", "12"]


def test_a_profile_is_shown_with_a_source_for_each_figure() -> None:
    """Value and source at 80 columns; what is assumed, derived or not known says so."""
    shown = edgebench("devices", "show", "snapdragon-8-elite:16GiB")
    assert shown.returncode == 0, shown.stderr
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert not [line for line in shown.stdout.splitlines() if line != line.rstrip()]
    text = " ".join(shown.stdout.split())
    assert "16 GiB (of 8, 12, 16, Assumed, since the phone's maker" in text
    assert "84.8 GB/s derived: The most that the chip takes: 5300 MHz" in text
    assert "TDP – no figure of Qualcomm's is known" in text


def test_scripts_get_all_figures_with_their_sources() -> None:
    """The profile in the units of its keys, and the derived peaks beside."""
    one = json.loads(edgebench("devices", "show", "raspberry-pi-5", "--json").stdout)
    assert one["memory"]["bandwidth_bytes_per_s"]["value"] == 17_100_000_000
    assert one["compute"]["fp32_flops"]["value"] == 4 * 2_400_000_000 * 16
    assert one["power"]["tdp_w"] == {
        "source": None, "basis": "maker", "reason": "the maker publishes none", "value": None,
    }  # fmt: skip
    assert len(json.loads(edgebench("devices", "list", "--json").stdout)) == len(builtin_profiles())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["show", "raspberry-pi5"], "did you mean 'raspberry-pi-5'?"),
        (["show", "raspberry-pi-5:3GiB"], "is not sold with '3GiB' of memory"),
        (["show", "no/such.yaml"], "no/such.yaml:1:1: profile: there is no such file"),
        (["show", "."], "there is no device profile '.'"),
        (["show", "./"], "this is a folder; name a device profile's file in it"),
        (["show"], "Missing argument 'NAME'"),
        (["probe", "--key", "vm"], "the name of a profile that edgebench ships"),
        (["probe", "--out", __file__], "is there already"),
        (["probe", "--key", "my board"], "letters, digits, '.', '_' and '-'"),
        (["probe", "--out", "/proc/nowhere/x.yaml"], "can't be written"),
        (["lists"], "No such command 'lists'"),
    ],
)
def test_wrong_uses_say_what_to_do(arguments: list[str], said: str) -> None:
    """A sentence on standard error, the status of a wrong command line, and no traceback."""
    shown = edgebench("devices", *arguments)
    assert shown.returncode == 2
    assert said in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""


def test_a_file_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    """Escape sequences in a profile's texts are refused as YAML, or shown as what they are."""
    shipped = Path(__file__).parents[2] / "devices/profiles/vm.yaml"
    text = shipped.read_text(encoding="utf-8")
    mine = tmp_path / "mine.yaml"
    text = text.replace("key: vm\n", "key: mine\n")
    mine.write_text(text.replace('"Assumed: usual sizes"', r'"a book\e[31m [bold]red"'), "utf-8")
    shown = edgebench("devices", "show", mine)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    assert "[bold]red" in shown.stdout


def test_this_machine_is_probed_and_read_back(tmp_path: Path) -> None:
    """What is printed is a profile; what the machine does not tell has its reason in it."""
    out = tmp_path / "folder" / "here.yaml"
    shown = edgebench("devices", "probe", "--key", "here", "--out", out)
    assert (shown.returncode, shown.stdout) == (0, f"profile  {out}\n"), shown.stderr
    profile = load_profile(out)
    machine = describe_machine()
    assert profile.key == "here"
    assert profile.ram_bytes.value == machine.memory_bytes
    assert profile.soc.value == machine.cpu_model
    assert sum(each.count for each in profile.cores) in {
        machine.physical_cpus, machine.logical_cpus,
    }  # fmt: skip
    assert "edgebench probe bandwidth" in str(profile.memory.bandwidth_bytes_per_s.reason)
    assert out.read_text(encoding="utf-8") == edgebench("devices", "probe", "--key", "here").stdout


def test_a_probe_takes_the_bandwidth_that_was_measured(tmp_path: Path) -> None:
    """Of several numbers of threads the fastest, named as measured."""
    fingerprint = describe_machine().fingerprint
    for threads, rate in ((1, 11e9), (2, 19.5e9)):
        keep_bandwidth(
            BandwidthRecord(
                bytes_per_s=rate, samples=[rate, rate + 1e9], threads=threads, array_bytes=1,
                reader="memchr",
                measured_at=utc_now(), fingerprint=fingerprint,
            )
        )  # fmt: skip
    out = tmp_path / "here.yaml"
    assert edgebench("devices", "probe", "--out", out).returncode == 0
    figure = load_profile(out).memory.bandwidth_bytes_per_s
    # The fastest repetition, which is as much as was ever seen.
    assert (figure.value, figure.basis) == (20.5e9, "measured")
    assert edgebench("devices", "probe", "--out", out).returncode == 2
    assert edgebench("devices", "probe", "--out", out, "--force").returncode == 0
    assert "2 threads, read by memchr" in str(figure.source)


@pytest.mark.parametrize("command", ["validate", "run"])
def test_an_unknown_profile_is_an_error_of_the_scenario(tmp_path: Path, command: str) -> None:
    """The line and column of the name, what was meant, and nothing is done."""
    (tmp_path / "model.gguf").write_bytes(b"x")
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(profile="raspbery-pi-5"), encoding="utf-8")
    shown = edgebench(command, path, cwd=tmp_path)
    assert shown.returncode == 2
    assert f"{path}:7:19: device.profile: there is no device profile 'raspbery-pi-5'" in (
        shown.stderr
    )
    assert "did you mean 'raspberry-pi-5'?" in shown.stderr
    assert sorted(each.name for each in tmp_path.iterdir() if each.suffix) == [
        "config.toml", "model.gguf", "s.yaml",
    ]  # fmt: skip


def test_a_wrong_profiles_file_is_an_error_of_the_scenario(tmp_path: Path) -> None:
    """The place in the scenario, and behind it the place in the profile."""
    (tmp_path / "model.gguf").write_bytes(b"x")
    (tmp_path / "mine.yaml").write_text("schema_version: 1\nkind: toaster\n", encoding="utf-8")
    path = tmp_path / "s.yaml"
    path.write_text(SCENARIO.format(profile="mine.yaml"), encoding="utf-8")
    shown = edgebench("validate", path)
    assert shown.returncode == 2
    (line,) = shown.stderr.splitlines()
    assert line.startswith(f"{path}:7:19: device.profile: {tmp_path / 'mine.yaml'}:1:1: cores: ")
    assert " more)" in line


class Watched(LocalBoard):
    """This machine, which remembers what was copied to it."""

    def __init__(self) -> None:
        super().__init__(PowerSettings())
        self.placed: list[str] = []

    def place(self, file: StoredFile, tell: Progress) -> str:
        self.placed.append(file.name)
        return super().place(file, tell)


class Listening(Silent):
    """Remembers the steps and the notes."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.notes: list[str] = []

    def preparing(self, what: str) -> None:
        self.steps.append(what)

    def note(self, text: str) -> None:
        self.notes.append(text)


SCENARIO = """\
schema_version: 1
name: too-large
model: {{name: m, source: "path:model.gguf"}}
variants: [{{runner: fake, virtual_clock: true}}]
workloads: [{{name: short, prompt: hello, generate_tokens: 4}}]
measure: {{warmup: {{min: 1, max: 1}}, repetitions: {{min: 1, max: 1}}, bandwidth: false}}
device: {{profile: {profile}}}
"""


@pytest.mark.parametrize(("profile", "copied"), [("small.yaml", False), ("vm:2GiB", True)])
def test_a_profile_with_less_memory_than_the_model_needs_refuses_before_copying(
    tmp_path: Path, profile: str, copied: bool
) -> None:
    """A row with both numbers and what to do; the model is copied nowhere, and nothing started."""
    with (tmp_path / "model.gguf").open("wb") as file:
        file.truncate(100_000_000)
    shipped = Path(__file__).parents[2] / "devices/profiles/vm.yaml"
    small = shipped.read_text(encoding="utf-8").replace("value: 8GiB\n", "value: 256MiB\n")
    small = small.replace("key: vm\n", "key: small\n")
    small = small.replace("  choices: [2GiB, 4GiB, 8GiB, 16GiB, 32GiB, 64GiB]\n", "")
    (tmp_path / "small.yaml").write_text(small, encoding="utf-8")
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(profile=profile), encoding="utf-8")
    scenario = load_scenario(path, runners=runner_classes())
    board, observer, folder = Watched(), Listening(), tmp_path / "run"
    settings = Settings(folder, tmp_path, store=ModelStore(tmp_path / "store"), board=board)
    execute(scenario, settings, observer)
    run = read_run(folder)
    assert bool(board.placed) is copied
    assert run.record.device is not None
    assert (run.record.device.reach, run.record.device.profile) == (
        "local",
        "vm:2GiB" if copied else "small",
    )
    (cell,) = run.record.cells
    if copied:
        assert cell.status == "ok"
        return
    assert cell.failure is not None
    assert cell.failure.kind == "model"
    assert "the model's 95.4 MiB do not fit" in cell.failure.message
    assert "256.0 MiB by the profile small" in cell.failure.message
    assert "Choose a smaller model" in cell.failure.message
    assert not any("fetching" in each for each in observer.steps)
    (note,) = [each for each in observer.notes if "right profile" in each]
    assert note in run.record.notes
    assert note.startswith("the profile small says 256.0 MiB of memory, and the machine says ")
