"""What goes wrong with Android devices: each has its own words, and the rest goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from phone import SERIAL, elf

from edgebench.harness.adb import board, running
from edgebench.harness.errors import BoardError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from conftest import Runs
    from phone import PlayedPhone

    from edgebench.harness.results.run import Run

BOTH = [
    {"runner": "llama.cpp", "quantization": "source", "threads": 4},
    {"runner": "mediapipe", "quantization": "source", "threads": 4},
]


def failures(run: Run) -> dict[str, str]:
    """By runner, why its cell failed; empty for one that did not."""
    return {
        cell.variant.partition(" ")[0]: cell.failure.message if cell.failure else ""
        for cell in run.record.cells
    }


def device(scenario: Mapping[str, object], **changes: object) -> dict[str, object]:
    given = scenario["device"]
    assert isinstance(given, dict)
    return {**given, **changes}


@pytest.mark.parametrize(
    ("attached", "message", "remedy"),
    [
        ([], "no Android device is attached", "USB debugging"),
        (
            [["ABC", "device", "Pixel_9"], ["emulator-5554", "offline", ""]],
            f"no Android device {SERIAL} is attached; there is ABC (Pixel_9), emulator",
            "device.adb",
        ),
        ([[SERIAL, "unauthorized", ""]], "does not trust this computer yet", "allow USB debugging"),
        ([[SERIAL, "offline", ""]], "does not answer (offline)", "Unplug it"),
        ([[SERIAL, "no permissions", ""]], "no permissions", "udev"),
        ([[SERIAL, "recovery", ""]], "is in the state 'recovery'", "Start it normally"),
    ],
)
def test_devices_that_can_not_be_used(
    attached: list[list[str]],
    message: str,
    remedy: str,
    run: Runs,
    phone: PlayedPhone,
    tmp_path: Path,
) -> None:
    """Each says what is wrong and what to do, before anything is written."""
    phone.state(devices=attached)
    with pytest.raises(BoardError) as caught:
        run()
    assert message in caught.value.message
    assert remedy in str(caught.value.remedy)
    assert not (tmp_path / "run-1").exists()


def test_two_devices_and_no_serial(
    run: Runs, phone: PlayedPhone, scenario: Mapping[str, object]
) -> None:
    """Which one is meant is not guessed: both are listed."""
    phone.state(devices=[["ABC", "device", "Pixel_9"], [SERIAL, "device", "SM_S938B"]])
    with pytest.raises(BoardError, match=rf"2 .* attached: ABC \(Pixel_9\), {SERIAL}"):
        run(device=device(scenario, adb="any"))


def test_adb_is_not_installed(run: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The message names the package; ANDROID_HOME is looked at too."""
    monkeypatch.delenv("EDGEBENCH_ADB")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path / "sdk"))
    with pytest.raises(BoardError) as caught:
        run()
    assert "adb was found neither in PATH nor below ANDROID_HOME" in caught.value.message
    assert "apt install adb" in str(caught.value.remedy)


def test_adb_of_the_sdk_is_found(
    run: Runs, phone: PlayedPhone, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without adb in PATH, that below ANDROID_HOME runs it all."""
    tools = tmp_path / "sdk" / "platform-tools"
    tools.mkdir(parents=True)
    (tools / "adb").symlink_to(phone.environment["EDGEBENCH_ADB"])
    monkeypatch.delenv("EDGEBENCH_ADB")
    monkeypatch.setenv("ANDROID_HOME", str(tmp_path / "sdk"))
    # Without any adb that this machine has.
    here = [each for each in os.environ["PATH"].split(":") if not (Path(each) / "adb").exists()]
    monkeypatch.setenv("PATH", ":".join(here))
    assert run().record.cells[0].status == "ok"


def test_tools_that_can_not_be_used(
    run: Runs, scenario: Mapping[str, object], phone: PlayedPhone, tmp_path: Path
) -> None:
    """One that is missing, one for another processor, one that is no program, one not named."""
    (tmp_path / "tools" / "x86").write_bytes(elf(62))
    (tmp_path / "tools" / "text").write_text("hello", encoding="utf-8")
    tools = {"llama.cpp": "tools/none", "mnn": "tools/x86", "mediapipe": "tools/text"}
    variants = [{"runner": name, "quantization": "source"} for name in (*tools, "mlc")]
    made = run(device=device(scenario, tools=tools), variants=variants)
    found = failures(made)
    assert f"there is no tool {tmp_path / 'tools/none'}" in found["llama.cpp"]
    assert "x86 is built for x86_64, and the device runs arm64-v8a" in found["mnn"]
    assert "text is no program" in found["mediapipe"]
    assert "there is no tool for mlc" in found["mlc"]
    assert not phone.started()
    again = run(device=device(scenario, tools={}))
    assert (
        "device.tools names no tool for llama.cpp. Build llama-bench"
        in failures(again)["llama.cpp"]
    )


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            {
                "says": "/system/bin/sh: ./llama-bench: not executable: 64-bit ELF file",
                "leaves": 126,
            },
            "llama-bench is not executable on the device",
        ),
        (
            {
                "says": 'CANNOT LINK EXECUTABLE "./llama-bench": library "libllama.so" not found: '
                "needed by main executable",
                "leaves": 1,
            },
            "llama-bench needs the library libllama.so, which is not on the device",
        ),
        (
            {"says": "failed to set the priority: Permission denied", "dies_by": "SIGSEGV"},
            "llama-bench was ended by SIGSEGV on the device",
        ),
        ({"dies_by": "SIGKILL"}, "Android ends what takes too much memory"),
        (
            {"says": "error: failed to load model 'tiny.gguf'", "leaves": 1},
            "llama-bench left with status 1 on the device: error: failed to load model 'tiny.gguf'",
        ),
        ({"says": "\x1b[31mhello", "leaves": 0, "replace": {"samples_ns": "x"}}, "with samples_ns"),
        ({"replace": {'"n_prompt": 16': '"n_prompt": 17'}}, "measured another test"),
        ({"replace": {"232482552": "-1"}}, "tells samples_ns of -1 ns, which can't be"),
    ],
)
def test_tools_that_fail_are_rows_and_the_others_go_on(
    fault: dict[str, object], message: str, run: Runs, phone: PlayedPhone, tmp_path: Path
) -> None:
    """What the tool said is quoted, without its control characters; its log is kept."""
    phone.tool(**fault, only=["llama-bench"])
    made = run(variants=BOTH)
    found = failures(made)
    assert message in found["llama.cpp"]
    assert "\x1b" not in found["llama.cpp"]
    assert found["mediapipe"] == ""
    (cell,) = [each for each in made.record.cells if each.variant.startswith("llama.cpp")]
    assert cell.failure is not None
    log = tmp_path / "run-1" / str(cell.failure.log)
    assert "edgebench: llama-bench -m " in log.read_text("utf-8", "replace")


def test_a_tool_without_its_interpreter_is_no_crash(
    run: Runs, phone: PlayedPhone, tmp_path: Path
) -> None:
    """The shell leaves with 127, and says which."""
    (tmp_path / "tools" / "llama-bench").write_text("#!/no/such/shell\n", encoding="utf-8")
    found = failures(run())["llama.cpp"]
    assert "llama-bench can't be started on the device: " in found
    assert "interpreter" in found
    assert not phone.started()


def test_a_signal_is_kept(run: Runs, phone: PlayedPhone) -> None:
    """The row names it, as of a runner's process."""
    phone.tool(dies_by="SIGSEGV")
    (trial, *_) = run().trials
    assert trial.failure is not None
    assert (trial.failure.kind, trial.failure.signal) == ("crash", "SIGSEGV")


@pytest.mark.parametrize("tool", ["llm_bench", "litert_lm_main"])
def test_rates_that_can_not_be_are_refused(tool: str, run: Runs, phone: PlayedPhone) -> None:
    """An infinite rate, and a text that ended early, are no results."""
    runner = {"llm_bench": "mnn", "litert_lm_main": "mediapipe"}[tool]
    phone.tool(
        replace={
            "54.53 ± 0.00": "inf ± nan",
            "Decode Turn 1: Processed 8": "Decode Turn 1: Processed 5",
        }
    )
    made = run(variants=[{"runner": runner, "quantization": "source"}])
    wanted = {"mnn": "tells a rate of inf", "mediapipe": "processed 5 tokens of 8"}[runner]
    assert wanted in failures(made)[runner]
    assert made.trials[0].failure is not None
    assert made.trials[0].failure.kind == "invalid_result"


def test_a_tool_that_hangs_is_ended_on_the_device(run: Runs, phone: PlayedPhone) -> None:
    """After its deadline the process is gone, and the row says how long it had."""
    phone.tool(hangs=True, only=["llama-bench"])
    measure = {
        "timeout_s": 0.5,
        "repetitions": {"min": 1, "max": 1},
        "warmup": {"min": 0, "max": 0},
    }
    made = run(measure=measure)
    assert "llama-bench did not end within 1.5 s on the device" in failures(made)["llama.cpp"]
    assert is_gone(int((phone.root / "pid").read_text("utf-8")))


def test_a_phone_that_is_unplugged_comes_back(
    run: Runs, phone: PlayedPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ran is a failure of the connection; the next cell runs, and nothing of before does."""
    monkeypatch.setattr(board, "POLL_S", 0.01)
    phone.tool(unplugs=3, only=["llama-bench", "litert_lm_main"])
    made = run(variants=BOTH)
    first, *others = [trial for trial in made.trials if trial.kind == "generate"]
    assert first.failure is not None
    assert first.failure.kind == "connection"
    assert f"the link to the Android device {SERIAL} broke" in first.failure.message
    assert [trial.status for trial in others] == ["ok", "ok"]
    assert is_gone(int((phone.root / "pid").read_text("utf-8")))


def test_a_phone_that_stays_away_ends_the_run(
    run: Runs, phone: PlayedPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each cell is a row, and the run has an end."""
    monkeypatch.setattr(board, "POLL_S", 0.01)
    monkeypatch.setattr(
        board.AdbBoard.__init__, "__kwdefaults__", {"away_s": 0.05, "sleep": time.sleep}
    )
    phone.tool(unplugs=10_000, only=["llama-bench", "litert_lm_main"])
    made = run(variants=BOTH)
    assert {cell.status for cell in made.record.cells} == {"failed"}
    assert {each.failure.kind for each in made.trials if each.failure} == {"connection"}


def test_no_space_is_told_before_copying(run: Runs, phone: PlayedPhone) -> None:
    """With the numbers; nothing is copied."""
    phone.files(free_kib="100")
    found = failures(run())
    assert "are free in" in found["llama.cpp"]
    assert not phone.calls("push")


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"push_fails": "No space left on device"}, "no space is left on the Android device"),
        ({"push_fails": "couldn't create file: Permission denied"}, "can't be written to"),
        ({"damages": True}, "was damaged on its way"),
    ],
)
def test_copies_that_fail(
    state: dict[str, object], message: str, run: Runs, phone: PlayedPhone
) -> None:
    """Each is a row with its reason, and no half of a file takes space there."""
    phone.state(**state)
    assert message in failures(run())["llama.cpp"]
    assert not list(phone.folder.rglob("*.part"))


def test_a_profile_that_is_too_small_refuses_before_copying(
    run: Runs, scenario: Mapping[str, object], phone: PlayedPhone, tmp_path: Path
) -> None:
    """A sparse file of 3 GiB does not fit into a Raspberry Pi of 2 GiB: nothing is copied."""
    with (tmp_path / "tiny.gguf").open("ab") as file:
        file.truncate(3 << 30)
    made = run(device=device(scenario, profile="raspberry-pi-5:2GiB"))
    assert "do not fit into the device's memory" in failures(made)["llama.cpp"]
    assert not phone.calls("push")


def test_options_that_a_tool_lacks_are_refused(run: Runs, phone: PlayedPhone) -> None:
    """They are not left out silently: what is measured is what was asked for."""
    made = run(variants=[{"runner": "llama.cpp", "quantization": "source", "threads_batch": 2}])
    assert "llama-bench takes none of threads_batch" in failures(made)["llama.cpp"]
    assert not phone.started()


def test_adb_that_hangs_is_given_up(
    run: Runs, phone: PlayedPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not answer has its own message."""
    monkeypatch.setattr("edgebench.harness.adb.client.START_S", 0.5)
    phone.state(hangs=True)
    with pytest.raises(BoardError, match=r"did not answer within 0\.5 s"):
        run()


@pytest.mark.parametrize("behind", ["with output", "without"])
def test_what_a_tool_leaves_behind_is_ended(behind: str, run: Runs, phone: PlayedPhone) -> None:
    """A process in the background would be measured beside the next; whose it is, is known."""
    phone.tool(leaves_behind=behind, only=["llama-bench"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "LAST_S", 0.2)
        made = run()
    assert is_gone(int((phone.root / "pid").read_text("utf-8")))
    expected = "left something running on the device" if behind == "with output" else ""
    assert expected in failures(made)["llama.cpp"]


@pytest.mark.parametrize(
    "says", ["edgebench: over", "edgebench: exit 0", "edgebench: exit 0\n\nedgebench: over\n"]
)
def test_a_tool_that_prints_as_we_do_is_not_over(says: str, run: Runs, phone: PlayedPhone) -> None:
    """Our marks have a word of their own in each start: it is waited for, and ended."""
    phone.tool(says=says, hangs=True, only=["llama-bench"])
    measure = {
        "timeout_s": 0.5,
        "repetitions": {"min": 1, "max": 1},
        "warmup": {"min": 0, "max": 0},
    }
    made = run(measure=measure)
    assert "did not end within" in failures(made)["llama.cpp"]
    assert is_gone(int((phone.root / "pid").read_text("utf-8")))


def test_output_without_an_end_is_ended(
    run: Runs, phone: PlayedPhone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool that prints without end, and without an end of line, fills no memory."""
    monkeypatch.setattr(running, "MOST_BYTES", 4 << 20)
    phone.tool(endless=True, only=["llama-bench"])
    assert "llama-bench printed more than 4 MiB" in failures(run())["llama.cpp"]


def test_output_that_no_tool_prints_is_one_failed_row(run: Runs, phone: PlayedPhone) -> None:
    """Numbers of hundreds of digits, and JSON of any depth."""
    for strange in ("9" * 400, "9" * 5000, "[" * 100_000):
        phone.tool(replace={"232482552": strange}, only=["llama-bench"])
        made = run(variants=BOTH)
        assert failures(made)["llama.cpp"]
        assert failures(made)["mediapipe"] == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_ends_its_tool(
    number: signal.Signals, scenario: Mapping[str, object], phone: PlayedPhone, tmp_path: Path
) -> None:
    """A terminal that is closed, or a CI that ends the job, leaves nothing running there."""
    phone.tool(hangs=True)
    (tmp_path / "s.yaml").write_text(json.dumps(scenario), encoding="utf-8")
    words = [sys.executable, "-m", "edgebench", "run", "s.yaml", "--out", "out"]
    environment = {**os.environ, **phone.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    started = subprocess.Popen(
        words, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    pid = phone.root / "pid"
    while not (pid.exists() and pid.read_text("utf-8")):
        assert started.poll() is None
        time.sleep(0.05)
    started.send_signal(number)
    assert started.wait(60) == 130
    assert is_gone(int(pid.read_text("utf-8")))


def test_paths_that_look_like_options_are_none(
    run: Runs,
    scenario: Mapping[str, object],
    phone: PlayedPhone,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """A tool and a model that begin with a dash, or have a comma, are files all the same."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools" / "llama-bench").rename(tmp_path / "-llama-bench")
    (tmp_path / "tiny.gguf").rename(tmp_path / "a,b.gguf")
    made = run(
        device=device(scenario, tools={"llama.cpp": "./-llama-bench"}),
        model={"name": "tiny", "source": "path:a,b.gguf"},
    )
    assert failures(made)["llama.cpp"] == ""
    (first, *_) = phone.started()
    assert first[2].endswith("/a_b.gguf")


def test_a_phone_whose_time_is_an_old_one(run: Runs, phone: PlayedPhone) -> None:
    """The peak of memory is null, with the reason; all else is measured."""
    phone.files(**{"short-time": ""})
    made = run()
    (trial,) = [each for each in made.trials if each.kind == "generate"]
    assert trial.status == "ok"
    peak = trial.metrics["peak_rss_bytes"]
    assert peak.value is None
    assert "no `time -v`" in str(peak.reason)


def test_mmap_is_asked_for_as_the_tool_knows_it(run: Runs, phone: PlayedPhone) -> None:
    """The device's own tool says which name it has."""
    run(variants=[{"runner": "llama.cpp", "quantization": "source", "mmap": False}])
    usage, first, *_ = phone.started()
    assert usage[1:] == ["--help"]
    assert first[first.index("--load-mode") + 1] == "none"


def is_gone(pid: int) -> bool:
    """Whether a process ended; one that is ending has a moment for it."""
    status = Path(f"/proc/{pid}/stat")
    for _ in range(200):
        try:
            if status.read_text("utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False
