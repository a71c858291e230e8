"""A ``gh`` that keeps comments in a file, for tests of what writes comments.

``$GH_STATE`` names the file: ``comments``, a list as GitHub has it; ``login``, whose token it is,
or null for a workflow's own, which may not ask; ``refuses``, what it says to whoever writes;
``per_page``, after how many comments a new page begins.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any


def main(arguments: list[str]) -> int:
    path = Path(os.environ["GH_STATE"])
    state: dict[str, Any] = json.loads(path.read_text("utf-8"))
    assert arguments[0] == "api"
    assert os.environ["GH_TOKEN"]
    address, rest = arguments[1], arguments[2:]
    if address == "user":
        if not state["login"]:
            sys.stderr.write("gh: Resource not accessible by integration (HTTP 403)\n")
            return 1
        sys.stdout.write(json.dumps({"login": state["login"]}))
        return 0
    if "--method" not in rest:
        listed = re.fullmatch(r"repos/o/r/issues/7/comments\?per_page=100", address)
        assert listed, address
        assert rest == ["--paginate"]
        size, found = state["per_page"], state["comments"]
        for at in range(0, max(len(found), 1), size):
            sys.stdout.write(json.dumps(found[at : at + size]))
        return 0
    if state["refuses"]:
        sys.stderr.write(f"gh: {state['refuses']}\n")
        return 1
    assert rest[2:] == ["-F", "body=@-"]
    body = sys.stdin.read()
    if rest[1] == "POST":
        assert address == "repos/o/r/issues/7/comments"
        user = {"login": state["login"] or "github-actions[bot]",
                "type": "User" if state["login"] else "Bot"}  # fmt: skip
        state["comments"].append({"id": 100 + len(state["comments"]), "user": user, "body": body})
    else:
        assert rest[1] == "PATCH"
        (wanted,) = re.fullmatch(r"repos/o/r/issues/comments/(\d+)", address).groups()  # type: ignore[union-attr]
        (comment,) = [each for each in state["comments"] if each["id"] == int(wanted)]
        comment["body"] = body
    path.write_text(json.dumps(state), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
