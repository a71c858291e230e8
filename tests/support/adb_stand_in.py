"""An ``adb`` that plays phones, for tests of what uses it.

``$PHONE`` is a folder. Its ``phone.json`` says what is attached and how it answers; its ``bin`` has
the phone's own programs, and the shell of this machine is the phone's shell, so that files, pipes
and processes are real ones. While there is a file ``away``, the phone is unplugged: a number in it
counts down with each look at the list of devices, and at zero the phone is back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, Any

GONE = 255


def main(arguments: list[str]) -> int:
    phone = Path(os.environ["PHONE"])
    state: dict[str, Any] = json.loads((phone / "phone.json").read_text("utf-8"))
    with (phone / "calls.txt").open("a", encoding="utf-8") as calls:
        calls.write(json.dumps(arguments) + "\n")
    if state.get("hangs"):
        time.sleep(60)
    if arguments[:1] == ["devices"]:
        return devices(phone, state, long=arguments == ["devices", "-l"])
    assert arguments[0] == "-s"
    serial, command, rest = arguments[1], arguments[2], arguments[3:]
    if problem := unreachable(phone, state, serial):
        sys.stderr.write(problem)
        return 1
    if command == "push":
        return push(state, *rest)
    assert command == "shell"
    (script,) = rest
    return shell(phone, script)


def devices(phone: Path, state: dict[str, Any], *, long: bool) -> int:
    """With ``-l`` in columns, without it with a tab between."""
    sys.stdout.write("* daemon not running; starting now at tcp:5037\n")
    sys.stdout.write("* daemon started successfully\n")
    sys.stdout.write("List of devices attached\n")
    away = phone / "away"
    if away.exists():
        left = int(away.read_text("utf-8")) - (not long)
        away.write_text(str(left), encoding="utf-8")
        if left:
            sys.stdout.write("\n")
            return 0
        away.unlink()
    for serial, kind, model in state["devices"]:
        more = f" product:p model:{model} device:d transport_id:1" if model else " usb:1-1"
        sys.stdout.write(f"{serial:<22} {kind}{more}\n" if long else f"{serial}\t{kind}\n")
    sys.stdout.write("\n")
    return 0


def unreachable(phone: Path, state: dict[str, Any], serial: str) -> str:
    known = {each[0]: each[1] for each in state["devices"]}
    if (phone / "away").exists() or serial not in known:
        return f"adb: device '{serial}' not found\n"
    if known[serial] == "unauthorized":
        return "error: device unauthorized.\nThis adb server's $ADB_VENDOR_KEYS is not set\n"
    return "" if known[serial] == "device" else f"error: device {known[serial]}\n"


def push(state: dict[str, Any], *words: str) -> int:
    if options := [word for word in words if word.startswith("-")]:
        sys.stderr.write(f"adb: usage: unrecognized option '{options[0]}'\n")
        return 1
    source, target = words
    if why := state.get("push_fails"):
        Path(target).write_bytes(Path(source).read_bytes()[:100])
        failed = f"adb: error: failed to copy '{source}' to '{target}': remote {why}\n"
        sys.stderr.write(failed)
        return 1
    shutil.copyfile(source, target)
    if state.get("damages"):
        Path(target).write_bytes(b"damaged")
    size = Path(target).stat().st_size
    sys.stdout.write(f"{source}: 1 file pushed, 0 skipped. 38.1 MB/s ({size} bytes in 0.001s)\n")
    return 0


def shell(phone: Path, script: str) -> int:
    """The phone goes away in the middle where one of its programs says so."""
    path = f"{phone / 'bin'}:{os.environ['PATH']}"
    started = subprocess.Popen(
        ["sh", "-c", script],
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    relay = threading.Thread(target=pass_on, args=(started.stdout,), daemon=True)
    relay.start()
    while started.poll() is None:
        if (phone / "away").exists():
            sys.stderr.write("error: closed\n")
            sys.stderr.flush()
            os._exit(GONE)  # what ran goes on running there
        time.sleep(0.01)
    relay.join()
    return started.returncode


def pass_on(output: IO[bytes]) -> None:
    while data := output.read(1 << 16):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
