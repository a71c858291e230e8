"""The comment under a merge request, against a GitLab that is made up on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).parents[2] / "ci" / "gitlab_comment.py"
MARKER = "<!-- edgebench-gate: smoke -->"
NOTES = "/api/v4/projects/12/merge_requests/7/notes"


@dataclass
class GitLab:
    """A server with the notes of one merge request; `me` is whose token asks."""

    me: int = 1
    refuses: int = 0
    notes: list[dict[str, Any]] = field(default_factory=list)
    port: int = 0

    def note(self, author: int, body: str) -> None:
        self.notes.append({"id": len(self.notes) + 1, "author": {"id": author}, "body": body})


@pytest.fixture
def gitlab() -> Iterator[GitLab]:
    state = GitLab()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def _answer(self, value: object, status: int = 200) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _handle(self) -> None:
            url = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            sent = json.loads(self.rfile.read(length) or b"{}")
            if state.refuses or self.headers["PRIVATE-TOKEN"] != "secret":
                self._answer({}, state.refuses or 401)
            elif url.path == "/api/v4/user":
                self._answer({"id": state.me})
            elif self.command == "GET" and url.path == NOTES:
                query = parse_qs(url.query)
                size, page = int(query["per_page"][0]), int(query["page"][0])
                self._answer(state.notes[size * (page - 1) : size * page])
            elif self.command == "POST" and url.path == NOTES:
                state.note(state.me, sent["body"])
                self._answer(state.notes[-1], 201)
            elif self.command == "PUT" and url.path.startswith(f"{NOTES}/"):
                state.notes[int(url.path.rpartition("/")[2]) - 1]["body"] = sent["body"]
                self._answer({})
            else:
                self._answer({}, 404)

        do_GET = do_POST = do_PUT = _handle  # noqa: N815 - as the library calls them

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.port = server.server_port
        Thread(target=server.serve_forever, daemon=True).start()
        yield state
        server.shutdown()


def comment(folder: Path, gitlab: GitLab, text: str | None, **variables: str) -> str:
    if text is not None:
        (folder / "gate.md").write_text(text, encoding="utf-8")
    given = {
        "CI_API_V4_URL": f"http://127.0.0.1:{gitlab.port}/api/v4",
        "CI_PROJECT_ID": "12",
        "CI_MERGE_REQUEST_IID": "7",
        "EDGEBENCH_TOKEN": "secret",
    }
    done = subprocess.run(
        [sys.executable, SCRIPT, "gate.md"],
        cwd=folder, env=given | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "secret" not in done.stdout
    return done.stdout


def test_a_comment_is_written_once_and_then_renewed(tmp_path: Path, gitlab: GitLab) -> None:
    """The second push renews it, though a hundred notes came before and others after."""
    for number in range(120):
        gitlab.note(2, f"note {number}")
    assert "wrote a comment" in comment(tmp_path, gitlab, f"{MARKER}\nfailed: 5 % — slower\n")
    gitlab.note(2, "later")
    assert "renewed" in comment(tmp_path, gitlab, f"{MARKER}\npassed\n")
    assert len(gitlab.notes) == 122
    assert gitlab.notes[120]["body"] == f"{MARKER}\npassed\n"


def test_anothers_comment_and_another_gates_stay(tmp_path: Path, gitlab: GitLab) -> None:
    """A person's note that begins with the marker, and the gate of another scenario."""
    gitlab.note(2, f"{MARKER}\nforged")
    gitlab.note(1, "<!-- edgebench-gate: other -->\nours, of another scenario")
    before = [dict(each) for each in gitlab.notes]
    assert "wrote a comment" in comment(tmp_path, gitlab, f"{MARKER}\npassed\n")
    assert gitlab.notes[:2] == before


@pytest.mark.parametrize(
    ("variables", "text", "refuses", "said"),
    [
        ({"CI_MERGE_REQUEST_IID": ""}, f"{MARKER}\n", 0, "no merge request"),
        ({"EDGEBENCH_TOKEN": ""}, f"{MARKER}\n", 0, "$EDGEBENCH_TOKEN is not set"),
        ({}, f"{MARKER}\n", 403, "GitLab answered 403"),
        ({}, "no marker\n", 0, "does not begin with the marker"),
        ({}, None, 0, "nothing to comment"),
        ({"CI_API_V4_URL": "file:///etc"}, f"{MARKER}\n", 0, "is no address of a GitLab"),
        ({"CI_API_V4_URL": "http://127.0.0.1:9"}, f"{MARKER}\n", 0, "could not be asked"),
    ],
    ids=["push", "token", "refused", "marker", "missing", "scheme", "down"],
)
def test_what_goes_wrong_is_said_and_fails_nothing(
    variables: dict[str, str], text: str | None, refuses: int, said: str,
    tmp_path: Path, gitlab: GitLab,
) -> None:  # fmt: skip
    """The gate's status is the job's, whatever becomes of the comment."""
    gitlab.refuses = refuses
    assert said in comment(tmp_path, gitlab, text, **variables)
    assert gitlab.notes == []
