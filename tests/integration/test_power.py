"""Power through the command line: an external meter's command, an estimate, and wrong use."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench

from edgebench.harness.results.run import read_run

if TYPE_CHECKING:
    from pathlib import Path

METER = """
import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid()))
begun = time.monotonic()
print("# seconds,watts")
while True:
    print(f"{time.monotonic() - begun:.4f},12", flush=True)
    time.sleep(0.01)
"""


def scenario(tmp_path: Path, power: str) -> Path:
    (tmp_path / "model.bin").write_bytes(b"weights")
    path = tmp_path / "power.yaml"
    path.write_text(
        "schema_version: 1\nname: power\nmodel: {name: tiny, source: 'path:model.bin'}\n"
        "variants: [{runner: fake, prefill_s: 0.4, token_s: 0.05}]\n"
        "workloads: [{name: short, prompt: hello, generate_tokens: 11}]\n"
        "measure: {warmup: {min: 1, max: 1}, repetitions: {min: 2, max: 2}}\n"
        f"power: {power}\n"
    )
    return path


def run(tmp_path: Path, power: str):
    done = edgebench("run", scenario(tmp_path, power), "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "out/power").iterdir()
    return read_run(folder), done


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_external_meter_is_read_and_ended(tmp_path: Path) -> None:
    """Its 12 W are the mean and the idle power, its name is in the record, and it is gone."""
    meter = tmp_path / "meter.py"
    meter.write_text(METER)
    words = [sys.executable, "-u", str(meter), str(tmp_path / "pid")]
    made, _done = run(tmp_path, json.dumps({"command": shlex.join(words)}))

    name = made.record.meters[0].name
    assert name.startswith("external:python")
    assert not is_running(int((tmp_path / "pid").read_text()))
    (cell,) = made.record.cells
    medians = {key: each.median for key, each in cell.metrics.items()}
    assert medians["mean_power_w"] == pytest.approx(12, rel=0.001)
    assert medians["idle_power_w"] == pytest.approx(12, rel=0.001)
    assert medians["power_above_idle_w"] == pytest.approx(0, abs=0.02)
    prefill = cell.metrics["prefill_energy_j"]
    if prefill.median is None:  # a busy machine: lines that came late make 0.4 s too short
        assert "too short" in (prefill.reason or "")
    else:
        assert prefill.median == pytest.approx(12 * medians["ttft_s"], rel=0.005)
    assert cell.metrics["mean_power_w"].source == "observed"
    powers = [trial.power[0] for trial in made.trials if trial.kind == "generate"]
    assert {each.meter for each in powers} == {name}
    assert all(each.decode_j is not None for each in powers)


def test_estimate_says_what_it_is(tmp_path: Path) -> None:
    """A meter that can't be had is estimated where that is asked, and labelled from the start."""
    made, done = run(tmp_path, "{meter: pi_pmic, estimate: tdp, tdp_w: 40}")

    assert [(each.name, each.source) for each in made.record.meters] == [
        ("estimate:tdp", "estimated")
    ]
    assert made.record.no_meter_reasons[0].startswith("pi_pmic: no such meter can be used")
    assert "power is estimated" in done.stdout + done.stderr
    (cell,) = made.record.cells
    for key in ("mean_power_w", "energy_per_token_j", "idle_power_w", "rate_per_watt"):
        assert cell.metrics[key].source == "estimated", key
    mean = cell.metrics["mean_power_w"].median
    assert mean is not None
    assert 0 <= mean <= 41


def test_broken_command_costs_the_power_only(tmp_path: Path) -> None:
    """The run goes on without power, says so at its start, and each null has the reason."""
    made, done = run(tmp_path, "{command: no-such-meter --port 3}")

    said = " ".join((done.stdout + done.stderr).split())
    assert "external: no-such-meter can't be started" in said
    (cell,) = made.record.cells
    power = cell.metrics["mean_power_w"]
    if not made.record.meters:
        assert power.median is None
        assert "no-such-meter can't be started" in (power.reason or "")
    assert cell.metrics["decode_rate"].median is not None


@pytest.mark.parametrize(
    ("power", "said"),
    [
        ("{estimate: tdp}", "power.estimate: it needs the thermal design power: set tdp_w"),
        ("{tdp_w: 0}", "power.tdp_w"),
        ("{estimate: tdp, tdp_w: 0}", "power.tdp_w"),
        ("{estimate: guess}", "power.estimate"),
        ('{command: "read \'port"}', "power.command: it can't be split: no closing quotation"),
        ("{meter: rapl, command: plug}", "power.command: the command is the meter 'external'"),
        ("{meter: external}", "power.meter: an external meter is a command that prints its"),
        ("{meter: 'external:plug'}", "power.meter: an external meter is a command that prints"),
        ("{meter: rappl}", "power.meter: no meter is a 'rappl'; did you mean 'rapl'?"),
        ("{meter: android}", "power.meter: no meter is a 'android'; allowed: battery, external,"),
        ("{watts: 5}", "power.watts"),
    ],
)
def test_wrong_power_is_refused_before_anything_runs(tmp_path: Path, power: str, said: str) -> None:
    """Each wrong key is named with its line, and nothing is written."""
    done = edgebench("run", scenario(tmp_path, power), "--out", tmp_path / "out")

    assert done.returncode == 2
    assert ":7:" in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


DYING = """
import sys, time
begun = time.monotonic()
while time.monotonic() - begun < float(sys.argv[1]):
    print(f"{time.monotonic() - begun:.4f},12", flush=True)
    time.sleep(0.02)
raise SystemExit("unplugged")
"""


def test_meter_that_dies_is_told_once(tmp_path: Path) -> None:
    """When a meter goes in the middle, the terminal says so, once, with its last words."""
    meter = tmp_path / "meter.py"
    meter.write_text(DYING)
    words = [sys.executable, "-u", str(meter), "4.5"]
    made, done = run(tmp_path, json.dumps({"command": shlex.join(words)}))

    said = " ".join((done.stdout + done.stderr).split())
    name = made.record.meters[0].name
    assert said.count(f"power: {name} can't be read any more: ") == 1


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_meter_ends_when_the_run_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """A terminal that is closed, or a CI that ends the job, leaves no silent meter behind."""
    meter = tmp_path / "meter.py"
    meter.write_text(
        METER.replace(
            "time.sleep(0.01)", "time.sleep(0.01 if time.monotonic() - begun < 3 else 600)"
        )
    )
    words = [sys.executable, "-u", str(meter), str(tmp_path / "pid")]
    path = scenario(tmp_path, json.dumps({"command": shlex.join(words)}))
    path.write_text(path.read_text().replace("generate_tokens: 11", "generate_tokens: 6000"))
    command = [sys.executable, "-m", "edgebench", "run", str(path), "--out", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            # Only once a trial is there does the run keep what was finished.
            until_s = time.monotonic() + 60
            while time.monotonic() < until_s and not any(
                each.stat().st_size for each in (tmp_path / "out").rglob("trials.jsonl")
            ):
                time.sleep(0.05)
            pid = int((tmp_path / "pid").read_text())
            assert is_running(pid)
            process.send_signal(number)
            process.wait(60)
        finally:
            process.kill()
    assert process.returncode != 0
    assert not is_running(pid)
