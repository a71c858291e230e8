"""The first program on a board: takes the worker's file where it is not there yet, and starts it.

It is sent as text, and also old Pythons must understand it well enough to say that they are old.
Its arguments: the folder, the file's name, size and SHA-256, then those of the agent.
"""
# How old Pythons want it:
# ruff: noqa: E402, PTH103, PTH104, PTH108, PTH110, PTH111, PTH116, PTH118, PTH123, PTH208
# ruff: noqa: RUF005, S606, UP032, UP036

import sys

sys.path[:1] = []  # not the folder that the session began in, whatever lies there

import errno
import hashlib
import json
import os
import signal

PATIENCE_S = 120
OLD_S = 24 * 60 * 60


def say(method: str, **facts: object) -> None:
    """A message to the host, as a line."""
    message = {"jsonrpc": "2.0", "method": "first." + method, "params": facts}
    os.write(1, json.dumps(message).encode() + b"\n")


def give_up(kind: str, text: str) -> None:
    """Say why it can't go on, and leave."""
    say("problem", kind=kind, text=text)
    os._exit(3)


def is_whole(path: str, digest: str) -> bool:
    """Whether the file is there, as it was sent."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == digest
    except OSError:
        return False


def take(path: str, size: int, digest: str) -> None:
    """Read the file from the host, under another name until it is whole."""
    part = path + "." + str(os.getpid())
    signal.alarm(PATIENCE_S)  # a link that is dead at one end only
    try:
        with open(part, "wb") as file:
            left = size
            while left:
                data = os.read(0, min(left, 1 << 16))
                if not data:
                    os.unlink(part)
                    os._exit(3)
                file.write(data)
                left -= len(data)
            file.flush()
            os.fsync(file.fileno())
        if is_whole(part, digest):
            os.rename(part, path)
        else:
            os.unlink(part)
            give_up("damaged", path)
    except OSError:
        if os.path.exists(part):
            os.unlink(part)
        raise
    signal.alarm(0)


def in_use(name: str) -> bool:
    """Whether a process here was started from a file of this name; where none can tell, it was."""
    try:
        numbers = [each for each in os.listdir("/proc") if each.isdigit()]
    except OSError:
        return True
    for each in numbers:
        try:
            with open("/proc/" + each + "/cmdline", "rb") as file:
                if name.encode() in file.read():
                    return True
        except OSError:
            continue
    return not numbers


def remove_old(folder: str, name: str) -> None:
    """Remove the workers of other versions that nobody has begun to use for a day."""
    now = os.stat(os.path.join(folder, name)).st_mtime
    for other in os.listdir(folder):
        path = os.path.join(folder, other)
        if other != name and other.startswith("worker-") and ".pyz" in other:
            try:
                if now - os.stat(path).st_mtime > OLD_S and not in_use(other):
                    os.unlink(path)
            except OSError:
                continue


def main(folder: str, name: str, size: str, digest: str, arguments: "list[str]") -> None:
    """Check, take what is missing, and become the agent."""
    if sys.version_info < (3, 11):
        give_up("python", ".".join(map(str, sys.version_info[:3])))
    folder = os.path.expanduser(folder)
    path = os.path.join(folder, name)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if is_whole(path, digest):
            os.utime(path)  # it is in use, and not to be removed as an old one
        else:
            say("want")
            take(path, int(size), digest)
            remove_old(folder, name)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
        text = "{}: {}".format(error.strerror, error.filename or folder)
        give_up("space" if full else "folder", text)
    os.execv(sys.executable, [sys.executable, path, "board"] + arguments)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:])
