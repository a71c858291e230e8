"""Put a gate's Markdown under a GitLab merge request: one comment, renewed each time.

    python gitlab_comment.py gate.md

The comment is found by its first line, a marker that nobody sees. It needs a token with the scope
``api`` in ``$EDGEBENCH_TOKEN``, and the variables that GitLab sets in the pipeline of a merge
request. The standard library is enough. What goes wrong here is said and fails nothing: the gate's
outcome does not hang on a comment.
"""

from __future__ import annotations

import json
import os
import re
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

_MARKER = re.compile(r"<!-- edgebench-gate: [A-Za-z0-9._/-]+ -->")
_PER_PAGE = 100
_MOST_PAGES = 50
_TIMEOUT_S = 60


class NoCommentError(Exception):
    """Why there is no comment, in a sentence."""


def main() -> int:
    """Write or renew the comment; always 0."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "gate.md")
    try:
        said = _comment(path)
    except NoCommentError as error:
        said = f"no comment was written: {error}"
    sys.stdout.write(f"edgebench: {said}\n")
    return 0


def _comment(path: Path) -> str:
    number = os.environ.get("CI_MERGE_REQUEST_IID", "")
    if not number:
        return "no merge request, so no comment"
    if not path.is_file():
        return f"{path} is not there, so there is nothing to comment"
    text = path.read_text("utf-8")
    marker = text.partition("\n")[0]
    if not _MARKER.fullmatch(marker):
        msg = f"{path.name} does not begin with the marker of a gate"
        raise NoCommentError(msg)
    project = urllib.parse.quote(_variable("CI_PROJECT_ID"), safe="")
    notes = (
        f"{_variable('CI_API_V4_URL').rstrip('/')}/projects/{project}"
        f"/merge_requests/{urllib.parse.quote(number, safe='')}/notes"
    )
    there = _find(notes, marker)
    if there is None:
        _ask("POST", notes, {"body": text})
        return f"wrote a comment under merge request {number}"
    _ask("PUT", f"{notes}/{there}", {"body": text})
    return f"renewed the comment under merge request {number}"


def _find(notes: str, marker: str) -> int | None:
    """Our comment of the last time. Another's that begins alike is not ours to overwrite."""
    base = _variable("CI_API_V4_URL").rstrip("/")
    me = _ask("GET", f"{base}/user").get("id")
    for page in range(1, _MOST_PAGES + 1):
        found = _ask("GET", f"{notes}?per_page={_PER_PAGE}&page={page}&sort=asc")
        for note in found:
            first = str(note.get("body") or "").partition("\n")[0].rstrip("\r")
            mine = (note.get("author") or {}).get("id") == me
            if mine and first == marker and isinstance(note.get("id"), int):
                return int(note["id"])
        if len(found) < _PER_PAGE:
            break
    return None


def _variable(name: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        msg = f"${name} is not set"
        raise NoCommentError(msg)
    return value


def _ask(method: str, address: str, fields: dict[str, str] | None = None) -> Any:  # noqa: ANN401 - what the server says
    if not address.startswith(("https://", "http://")):
        msg = "$CI_API_V4_URL is no address of a GitLab"
        raise NoCommentError(msg)
    request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
        address,
        method=method,
        data=None if fields is None else json.dumps(fields).encode(),
        headers={
            "PRIVATE-TOKEN": _variable("EDGEBENCH_TOKEN"),
            "Content-Type": "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            return json.load(answer)
    except urllib.error.HTTPError as error:
        msg = f"GitLab answered {error.code}; does the token have the scope api?"
        error.close()
        raise NoCommentError(msg) from error
    except (OSError, ValueError) as error:
        msg = f"GitLab could not be asked ({error})"
        raise NoCommentError(msg) from error


if __name__ == "__main__":
    sys.exit(main())
