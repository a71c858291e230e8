"""Runs on an Android device: what tools tell becomes results as any."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from command_line import edgebench
from phone import SERIAL, elf

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from conftest import Runs
    from phone import PlayedPhone

SOURCE = {"quantization": "source", "threads": 4}


def values(run: object, key: str, *, phase: str = "measured") -> list[tuple[float | None, str]]:
    return [
        (trial.metrics[key].value, trial.metrics[key].source)
        for trial in run.trials  # type: ignore[attr-defined]
        if trial.kind == "generate" and trial.phase == phase
    ]


def test_llama_bench_gives_a_trial_a_repetition(run: Runs, phone: PlayedPhone) -> None:
    """Each sample is a trial; the first ones warm up, as the scenario asks."""
    measure = {"warmup": {"min": 2, "max": 2}, "repetitions": {"min": 3, "max": 3}, "per_block": 3}
    made = run(measure=measure)
    # By hand, of the recorded samples_ns: 8 tokens in 3.320475363 s, and so on.
    rates = [8 / 3.320475363, 8 / 3.340468957, 8 / 3.301456769]
    assert values(made, "decode_rate") == [(pytest.approx(each), "engine") for each in rates]
    warm = [16 / 0.232482552, 16 / 0.247277500]
    found = values(made, "prefill_rate", phase="warmup")
    assert found == [(pytest.approx(each), "engine") for each in warm]
    prompt, generation = phone.started()
    assert prompt[prompt.index("-p") :] == ["-p", "16", "-n", "0"]
    assert generation[generation.index("-p") :] == ["-p", "0", "-n", "8", "-d", "16"]
    assert "-r 5 " in f"{' '.join(prompt)} "


def test_what_a_tool_does_not_tell_is_null(run: Runs) -> None:
    """No latency is made up of a mean rate."""
    made = run()
    (trial,) = [each for each in made.trials if each.kind == "generate"]
    for key in ("ttft_s", "itl_p50_s", "itl_p99_s", "e2e_rate", "first_token_s"):
        assert trial.metrics[key].value is None
        assert trial.metrics[key].reason == "llama-bench tells no time of single tokens"
    assert trial.tokens is None


def test_the_device_and_the_engine_are_named(run: Runs) -> None:
    """The machine is the phone, and the version is what the tool printed."""
    record = run().record
    assert record.machine.cpu_model == "QTI SM8750 (samsung SM-S938B)"
    assert record.machine.system == "Android 15"
    assert record.device is not None
    assert (record.device.reach, record.device.address) == ("adb", SERIAL)
    (variant,) = record.variants
    assert (variant.engine, variant.engine_version) == ("llama.cpp", "b11469 (ad2156533)")
    assert variant.effective_options["devices"] == "HTP0"
    assert variant.effective_options["threads"] == 4
    (workload,) = record.workloads
    assert (workload.prompt_tokens, workload.prompt_sha256) == (16, None)


def test_memory_is_the_kernels_own_figure(run: Runs, phone: PlayedPhone) -> None:
    """520168 KiB by `time -v`; null with the reason where the phone has no such program."""
    assert values(run(), "peak_rss_bytes") == [(520168 * 1024, "observed")]
    phone.files(toybox="cat grep sha256sum")
    trial = run().trials[-1]
    assert trial.metrics["peak_rss_bytes"].value is None
    assert "time -v" in str(trial.metrics["peak_rss_bytes"].reason)


def test_mnn_and_litert_are_read_too(run: Runs, tmp_path: Path) -> None:
    """Their rates are the engine's; only LiteRT-LM tells a time to first token, and the load."""
    folder = tmp_path / "tiny-mnn"
    folder.mkdir()
    (folder / "config.json").write_text("{}", encoding="utf-8")
    made = run(
        model={"name": "tiny", "source": "path:tiny-mnn"},
        variants=[{"runner": "mnn", **SOURCE}, {"runner": "mediapipe", **SOURCE}],
    )
    by_variant = {trial.variant: trial.metrics for trial in made.trials if trial.kind == "generate"}
    mnn, litert = by_variant["mnn source threads=4"], by_variant["mediapipe source threads=4"]
    assert (mnn["prefill_rate"].value, mnn["decode_rate"].value) == (626.40, 54.53)
    assert mnn["ttft_s"].value is None
    assert litert["ttft_s"].value == 2.40
    assert litert["ttft_s"].source == "engine"
    assert litert["decode_rate"].value == pytest.approx(8 / 5.53092314)
    loads = {
        trial.variant: trial.metrics["load_s"].value
        for trial in made.trials
        if trial.kind == "load"
    }
    assert loads == {
        "mnn source threads=4": None,
        "mediapipe source threads=4": pytest.approx(0.91125),
    }
    # What a reader must know is told, and kept with the results.
    for caveat in ("divides by the tokens that were asked for", "adds 8 to dynamic_option"):
        assert any(caveat in note for note in run.notes)
        assert any(caveat in note for note in made.record.notes)


def test_models_and_tools_are_copied_once(run: Runs, phone: PlayedPhone, tmp_path: Path) -> None:
    """By the hash of their content, with the libraries that lie beside a tool."""
    library = tmp_path / "tools" / "libllama.so"
    library.write_bytes(elf(183))
    run()
    pushed = {call[-1].rpartition("/")[2] for call in phone.calls("push")}
    assert pushed == {"tiny.gguf.part", "llama-bench.part", "libllama.so.part"}
    sha256 = hashlib.sha256((tmp_path / "tiny.gguf").read_bytes()).hexdigest()
    assert (phone.folder / "models" / sha256[:16] / "tiny.gguf").exists()
    run()
    assert len(phone.calls("push")) == 3
    # A library that was taken away is not beside the tool that is started.
    library.unlink()
    run()
    names = [{each.name for each in folder.iterdir()} for folder in phone.folder.glob("tools/*")]
    assert sorted(names, key=len) == [{"llama-bench"}, {"llama-bench", "libllama.so"}]
    assert [call[-1].rpartition("/")[2] for call in phone.calls("push")][3:] == ["llama-bench.part"]


def test_a_damaged_copy_is_copied_again(run: Runs, phone: PlayedPhone) -> None:
    """What is on the phone is trusted by its content, not by its name."""
    run()
    (model,) = phone.folder.glob("models/*/tiny.gguf")
    model.write_bytes(b"something else")
    run()
    assert [call[-1].rpartition("/")[2] for call in phone.calls("push")].count(
        "tiny.gguf.part"
    ) == 2


def test_other_workloads_are_rows_with_their_reason(run: Runs) -> None:
    """A prompt of one's own, a task, sustained work: tools can't, and say so in the results."""
    made = run(
        workloads=[
            {"name": "short", "prompt_tokens": 16, "generate_tokens": 8},
            {"name": "own", "prompt": "Hello", "generate_tokens": 8},
            {"name": "long", "prompt_tokens": 16, "generate_tokens": 8, "sustained": "2m"},
            {"name": "task", "task": "text-summarizer", "prompt": "A text."},
        ],
    )
    cells = {cell.workload: cell for cell in made.record.cells}
    assert cells["short"].status == "ok"
    for name in ("own", "long", "task"):
        assert cells[name].status == "failed"
        assert cells[name].failure is not None
        assert cells[name].failure.kind == "unsupported"


def test_the_battery_cools_the_phone_down(run: Runs, phone: PlayedPhone) -> None:
    """Each block begins as cool as the first; the battery's temperature is kept."""
    made = run(
        measure={
            "warmup": {"min": 0, "max": 0},
            "repetitions": {"min": 2, "max": 2},
            "cooldown": {"within_celsius": 3, "at_most_s": 5},
        }
    )
    loads = [trial for trial in made.trials if trial.kind == "load"]
    found = [trial.metrics["start_temperature_celsius"].value for trial in loads]
    assert found == [28.0, 28.0]
    assert ["shell", 'dumpsys battery\necho "edgebench: exit $?"'] in [
        call[2:] for call in phone.calls("shell")
    ]


def test_the_one_that_is_attached_is_found(run: Runs, scenario: Mapping[str, object]) -> None:
    """`adb: any` needs no serial number where there is one phone."""
    device = scenario["device"]
    assert isinstance(device, dict)
    record = run(device={**device, "adb": "any"}).record
    assert record.cells[0].status == "ok"
    assert record.device is not None
    assert record.device.address == SERIAL


def test_the_command_line_runs_it(
    scenario: Mapping[str, object], tmp_path: Path, phone: PlayedPhone
) -> None:
    """A table, and a report whose rates are the engine's."""
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps(scenario), encoding="utf-8")
    cache = str(tmp_path / "cache")
    done = edgebench(
        "run", path, "--out", tmp_path / "out", XDG_CACHE_HOME=cache, **phone.environment
    )
    assert done.returncode == 0, done.stderr
    assert "llama.cpp source" in done.stdout
    assert "2.42 engine" in done.stdout  # 8 tokens in 3.312565207 s
    assert "engine: the framework's own tool told it" in done.stdout
    (report,) = (tmp_path / "out").glob("*/*/report.md")
    text = report.read_text("utf-8")
    assert "engine (decode" in text
    assert "makes up a prompt of exactly the stated length" in text
    assert "the same token ids" not in text
    assert "QTI SM8750 (samsung SM-S938B)" in text


def test_a_result_after_a_bar_of_progress_is_read(run: Runs, phone: PlayedPhone) -> None:
    """A tool that writes its progress over itself ends it with a carriage return alone."""
    phone.tool(replace={'{"build_commit"': 'loading... 100 %\r{"build_commit"'})
    assert values(run(), "decode_rate")[0][1] == "engine"
