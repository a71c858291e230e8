"""Plays llama-bench, llm_bench and litert_lm_main on a phone that tests play.

It prints what the real tools printed, from `tests/data/adb`, with the lengths that it is asked for;
``tool.json`` in ``$PHONE`` says how it fails.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

RECORDED = Path(os.environ["RECORDED"])
PHONE = Path(os.environ["PHONE"])


def main(arguments: list[str]) -> int:
    name = Path(sys.argv[0]).name
    with (PHONE / "started.txt").open("a", encoding="utf-8") as started:
        started.write(json.dumps([name, *arguments]) + "\n")
    state: dict[str, Any] = json.loads((PHONE / "tool.json").read_text("utf-8"))
    if name in state.get("only", [name]):
        misbehave(state)
    text = {"llama-bench": llama, "-llama-bench": llama, "llm_bench": mnn}.get(name, litert)(
        arguments
    )
    if name in state.get("only", [name]):
        for before, after in state.get("replace", {}).items():
            text = text.replace(before, after)
    sys.stdout.write(text)
    return 0


def misbehave(state: dict[str, Any]) -> None:
    if says := state.get("says"):
        sys.stdout.write(says + "\n")
        sys.stdout.flush()
    if state.get("unplugs"):
        (PHONE / "tool.json").write_text("{}", encoding="utf-8")
        (PHONE / "pid").write_text(str(os.getpid()), encoding="utf-8")
        (PHONE / "away").write_text(str(state["unplugs"]), encoding="utf-8")
        time.sleep(60)
    if behind := state.get("leaves_behind"):
        # One in the background: in a session of its own, with the tool's output or without.
        output = None if behind == "with output" else subprocess.DEVNULL
        left = subprocess.Popen(
            ["sleep", "60"], stdout=output, stderr=output, start_new_session=True
        )
        (PHONE / "pid").write_text(str(left.pid), encoding="utf-8")
    if state.get("endless"):
        while True:
            sys.stdout.write("x" * 65536)
    if state.get("hangs"):
        (PHONE / "pid").write_text(str(os.getpid()), encoding="utf-8")
        time.sleep(60)
    if state.get("dies_by"):
        os.kill(os.getpid(), getattr(signal, state["dies_by"]))
    if state.get("leaves"):
        sys.exit(state["leaves"])


def after(arguments: list[str], flag: str, default: str = "") -> str:
    return arguments[arguments.index(flag) + 1] if flag in arguments else default


def llama(arguments: list[str]) -> str:
    if "--help" in arguments:
        return (RECORDED / "llama-bench-help.txt").read_text("utf-8")
    known = {"-m", "-r", "-o", "-p", "-n", "-d", "-t", "-b", "-ub", "-ctk", "-ctv", "-fa", "-ngl"}
    known |= {"-mmp", "--load-mode"}
    unknown = [each for each in arguments[::2] if each not in known]
    if unknown or "," in after(arguments, "-m"):
        sys.stdout.write(f"error: invalid parameter for argument: {unknown or arguments}\n")
        sys.exit(1)
    prompt, made = int(after(arguments, "-p")), int(after(arguments, "-n"))
    noise, *records = (RECORDED / "llama-bench.jsonl").read_text("utf-8").splitlines()
    record = json.loads(records[0 if prompt else 1])
    count = int(after(arguments, "-r"))
    record["n_prompt"], record["n_gen"] = prompt, made
    record["n_depth"] = int(after(arguments, "-d", "0"))
    record["n_threads"] = int(after(arguments, "-t", "4"))
    record["model_filename"] = after(arguments, "-m")
    # Of a model of a few bytes: 4 bits a weight.
    record["model_n_params"] = 2 * Path(after(arguments, "-m")).stat().st_size
    record["samples_ns"] = (record["samples_ns"] * count)[:count]
    record["samples_ts"] = [(prompt + made) * 1e9 / each for each in record["samples_ns"]]
    return f"{noise}\n{json.dumps(record)}\n"


def mnn(arguments: list[str]) -> str:
    text = (RECORDED / "llm_bench.txt").read_text("utf-8")
    asked = f"prompt={after(arguments, '-p')}<br>decode={after(arguments, '-n')}"
    text = text.replace("Qwen2.5-0.5B-Instruct", Path(after(arguments, "-m")).parent.name)
    return re.sub(r"prompt=\d+<br>decode=\d+", asked, text)


def litert(arguments: list[str]) -> str:
    given = dict(each.removeprefix("--").partition("=")[::2] for each in arguments)
    text = (RECORDED / "litert_lm_main.txt").read_text("utf-8")
    for turn, flag in (("Prefill", "prefill"), ("Decode", "decode")):
        count = given[f"benchmark_{flag}_tokens"]
        took = re.search(rf"{turn} Turn 1: Processed \d+ tokens in ([\d.]+)s", text)
        assert took is not None
        text = re.sub(rf"({turn} Turn 1: Processed) \d+", rf"\1 {count}", text)
        speed = int(count) / float(took[1])
        text = re.sub(rf"({turn} Speed:) [\d.]+", rf"\1 {speed:.2f}", text)
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
