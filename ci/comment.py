"""Put a gate's Markdown under a pull request: one comment, renewed each time.

The comment is found by its first line, a marker that nobody sees. ``gh`` asks GitHub, with the
token in ``$GH_TOKEN``. What goes wrong here is said and fails nothing: pull requests from forks
have a token that may only read, and the gate's outcome does not hang on a comment.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

_MARKER = re.compile(r"<!-- edgebench-gate: [A-Za-z0-9._/-]+ -->")


class NoCommentError(Exception):
    """Why there is no comment, in a sentence."""


def main() -> int:
    """Write or renew the comment; always 0."""
    try:
        said = _comment()
    except NoCommentError as error:
        said = f"::warning title=edgebench::No comment was written: {_escaped(str(error))}"
    sys.stdout.write(f"{said}\n")
    return 0


def _comment() -> str:
    path = Path(os.environ.get("EDGEBENCH_ACTION_MARKDOWN", ""))
    if not path.is_file():
        return "edgebench: the gate wrote nothing to comment"
    number = _pull_request()
    if number is None:
        return "edgebench: no pull request, so no comment"
    text = path.read_text("utf-8")
    marker = text.partition("\n")[0]
    if not _MARKER.fullmatch(marker):
        msg = f"{path.name} does not begin with the marker of a gate"
        raise NoCommentError(msg)
    repository = os.environ.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        msg = "GITHUB_REPOSITORY does not name a repository"
        raise NoCommentError(msg)
    key = re.sub(r"[^A-Za-z0-9._]+", "-", os.environ.get("EDGEBENCH_ACTION_COMMENT_KEY", ""))
    keyed = marker.replace(" -->", f"/{key} -->") if key else marker
    body = keyed + text[len(marker) :]
    there = _find(repository, number, keyed)
    if there is None:
        _write(f"repos/{repository}/issues/{number}/comments", "POST", body)
        return f"edgebench: wrote a comment under pull request {number}"
    _write(f"repos/{repository}/issues/comments/{there}", "PATCH", body)
    return f"edgebench: renewed the comment under pull request {number}"


def _pull_request() -> int | None:
    """The number of the pull request that the event is about; None where it is about none."""
    path = os.environ.get("GITHUB_EVENT_PATH", "")
    if not path or not Path(path).is_file():
        return None
    try:
        event = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        msg = f"the event's file {path} can't be read as JSON"
        raise NoCommentError(msg) from error
    if not isinstance(event, dict):
        msg = f"the event's file {path} holds no event"
        raise NoCommentError(msg)
    issue = event.get("issue") or {}
    asked = event.get("pull_request") or (issue if issue.get("pull_request") else {})
    number = asked.get("number")
    return number if isinstance(number, int) else None


def _find(repository: str, number: int, marker: str) -> int | None:
    """Our comment of the last time. Another's that begins alike is not ours to overwrite."""
    me = _who_we_are()
    address = f"repos/{repository}/issues/{number}/comments?per_page=100"
    for comment in _pages(_gh(address, "--paginate")):
        user = comment.get("user") or {}
        ours = user.get("login") == me if me else user.get("type") == "Bot"
        if ours and str(comment.get("body") or "").partition("\n")[0].rstrip("\r") == marker:
            found = comment.get("id")
            if isinstance(found, int):
                return found
    return None


def _who_we_are() -> str:
    """The token's user; empty for a workflow's own token, which may not ask, and is a bot's."""
    try:
        return str(json.loads(_gh("user")).get("login") or "")
    except (NoCommentError, ValueError):
        return ""


def _pages(text: str) -> list[dict[str, Any]]:
    """All comments. Some releases of `gh` write a list for each page, one behind the other."""
    decoder = json.JSONDecoder()
    found: list[dict[str, Any]] = []
    rest = text.strip()
    while rest:
        try:
            page, end = decoder.raw_decode(rest)
        except ValueError as error:
            msg = "the list of comments can't be read"
            raise NoCommentError(msg) from error
        found += page
        rest = rest[end:].lstrip()
    return found


def _write(address: str, method: str, body: str) -> None:
    _gh(address, "--method", method, "-F", "body=@-", text=body)


def _gh(*arguments: str, text: str = "") -> str:
    try:
        done = subprocess.run(
            ["gh", "api", *arguments],
            input=text, capture_output=True, encoding="utf-8", check=False, timeout=120,
        )  # fmt: skip
    except FileNotFoundError as error:
        msg = "gh, GitHub's command line, is not installed on this runner"
        raise NoCommentError(msg) from error
    except subprocess.TimeoutExpired as error:
        msg = "GitHub did not answer within two minutes"
        raise NoCommentError(msg) from error
    if done.returncode:
        said = " ".join(done.stderr.split())[:300].rstrip(".")
        msg = (
            f"{said or 'gh failed'}. The job needs `permissions: pull-requests: write`, which pull "
            "requests from forks do not get; the same text stands in the job's summary"
        )
        raise NoCommentError(msg)
    return done.stdout


def _escaped(message: str) -> str:
    return message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    sys.exit(main())
