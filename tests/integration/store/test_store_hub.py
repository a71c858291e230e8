"""Models of a hub, through the real huggingface_hub, from a small server that speaks its protocol.

The address of a hub is read when huggingface_hub is imported, so that each download runs in a
process of its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from command_line import edgebench

from edgebench.harness.errors import ExitStatus
from edgebench.harness.store.sources import parse_source
from edgebench.harness.store.store import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMMIT = "c0ffee00c0ffee00c0ffee00c0ffee00c0ffee00"
NEXT_COMMIT = "decade00decade00decade00decade00decade00"
WEIGHTS = random.Random(1).randbytes(3_000_000)
WEIGHTS_SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
HALF = 1_500_000


@dataclass
class Published:
    """What the hub has at org/model, and how its lines behave.

    Attributes:
        content: the bytes of m.gguf, of every revision.
        etag: what the hub says that their SHA-256 is.
        cuts: after how many bytes each next answer breaks off.
        stall: what an answer waits for at half its way, once it has told `stalled`.
        refusals: HTTP status and X-Error-Code by repository.
        busy: how many answers are 503 first.
        gets: the Range of each download that was asked for.
        tokens: the Authorization of each request.
        elsewhere: another host, with its port, that large files are redirected to.
        tells_size: whether the hub says how large they are.
        tokens_elsewhere: the Authorization of each request there.
        files: what org/whole has, of every revision.
        stalling: which of these waits for `stall`, and then breaks off.
    """

    content: bytes = WEIGHTS
    etag: str = WEIGHTS_SHA256
    commit: str = COMMIT
    cuts: list[int] = field(default_factory=list)
    stall: threading.Event | None = None
    stalled: threading.Event = field(default_factory=threading.Event)
    refusals: dict[str, tuple[int, str]] = field(default_factory=dict)
    busy: int = 0
    ignores_range: bool = False
    gets: list[str] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    elsewhere: str = ""
    tells_size: bool = True
    tokens_elsewhere: set[str] = field(default_factory=set)
    files: dict[str, bytes] = field(default_factory=dict)
    stalling: str = ""


class HubHandler(BaseHTTPRequestHandler):
    """HEAD and GET of /ORG/NAME/resolve/REVISION/FILE, and what a repository holds."""

    protocol_version = "HTTP/1.1"
    published: ClassVar[Published]

    def do_HEAD(self) -> None:
        if self.path == "/signed":
            self.published.tokens_elsewhere.add(self.headers.get("Authorization", ""))
            self.send_content()
            return
        self.published.tokens.add(self.headers.get("Authorization", ""))
        if self.path.startswith("/api/models/org/whole/revision/main"):
            siblings = [{"rfilename": n, "size": len(b)} for n, b in self.published.files.items()]
            self.send_whole(
                json.dumps({"id": "org/whole", "sha": COMMIT, "siblings": siblings}).encode()
            )
            return
        found = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", self.path)
        if found is None:
            self.refuse(404, "")
            return
        repository, revision, file = found.groups()
        if repository in self.published.refusals:
            self.refuse(*self.published.refusals[repository])
        elif repository == "org/whole" and revision == COMMIT:
            self.send_whole(self.published.files[file])
        elif repository != "org/model":
            self.refuse(404, "RepoNotFound")
        elif revision not in {"main", COMMIT, NEXT_COMMIT}:
            self.refuse(404, "RevisionNotFound")
        elif file != "sub/m.gguf":
            self.refuse(404, "EntryNotFound")
        elif self.published.elsewhere:
            self.redirect()
        elif self.command == "GET":
            self.send_content()
        else:
            self.describe(200, len(self.published.content))
            self.end_headers()

    do_GET = do_HEAD  # noqa: N815  # the name that http.server calls

    def send_whole(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.published.gets.append(self.path)
            if self.published.stall is not None and self.path.endswith(self.published.stalling):
                self.published.stalled.set()
                self.published.stall.wait(60)
                self.close_connection = True
                return
            self.wfile.write(content)

    def refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def redirect(self) -> None:
        """Large files come from a content network; the hub tells their hash and size itself."""
        self.send_response(302)
        self.send_header("Location", f"http://{self.published.elsewhere}/signed")
        self.send_header("X-Repo-Commit", self.published.commit)
        self.send_header("X-Linked-ETag", f'"{self.published.etag}"')
        if self.published.tells_size:
            self.send_header("X-Linked-Size", str(len(self.published.content)))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def describe(self, status: int, length: int) -> None:
        self.send_response(status)
        self.send_header("X-Repo-Commit", self.published.commit)
        self.send_header("ETag", f'"{self.published.etag}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))

    def send_content(self) -> None:
        hub = self.published
        asked = self.headers.get("Range", "")
        hub.gets.append(asked)
        if hub.busy:
            hub.busy -= 1
            self.refuse(503, "")
            return
        first = int(asked.removeprefix("bytes=").removesuffix("-") or 0)
        total = len(hub.content)
        if asked and not hub.ignores_range:
            if first >= total:
                self.refuse(416, "")
                return
            self.describe(206, total - first)
            self.send_header("Content-Range", f"bytes {first}-{total - 1}/{total}")
        else:
            first = 0
            self.describe(200, total)
        self.end_headers()
        end = min(total, first + hub.cuts.pop(0)) if hub.cuts else total
        if hub.stall is not None:
            self.wfile.write(hub.content[first:HALF])
            hub.stalled.set()
            hub.stall.wait(60)
            first = HALF
        self.wfile.write(hub.content[first:end])
        if end < total:
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


class HubServer(ThreadingHTTPServer):
    """A server whose clients may go away in the middle of an answer."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Clients that were killed are what is tested here."""


@pytest.fixture
def hub() -> Published:
    return Published()


@pytest.fixture
def environ(hub: Published, tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a process that uses the server as its hub."""
    handler = type("Handler", (HubHandler,), {"published": hub})
    with HubServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield {
            "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
            "HF_HOME": str(tmp_path / "hf-home"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_TOKEN": "",
            "NO_PROXY": "127.0.0.1",
        }
        if hub.stall is not None:
            hub.stall.set()
        server.shutdown()
        thread.join()


SOURCE = "hf:org/model/sub/m.gguf"


def test_a_hub_file_is_fetched_once(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path, leftovers: Callable
) -> None:
    """It arrives whole with its name and progress, and is not asked for again, even offline."""
    process = start(SOURCE, environ=environ, sha256=WEIGHTS_SHA256)
    *reports, stored = process.lines()
    assert (stored["sha256"], stored["bytes"], stored["name"]) == (
        WEIGHTS_SHA256,
        3_000_000,
        "m.gguf",
    )
    downloads = [line for line in reports if line["what"] == "downloading m.gguf"]
    assert downloads[-1]["done"] == downloads[-1]["total"] == 3_000_000
    offline = {**environ, "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert start(SOURCE, environ=offline).result() == stored
    assert hub.gets == [""]
    assert len(leftovers(tmp_path / "store")) == 2  # the model and its record
    (record,) = (tmp_path / "store/v1/records").iterdir()
    assert f'"revision": "{COMMIT}"' in record.read_text()


def test_a_dropped_connection_is_resumed_where_it_broke(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """Each further request asks for the rest only."""
    hub.cuts = [1_000_000, 500_000]
    assert start(SOURCE, environ=environ).result()["sha256"] == WEIGHTS_SHA256
    assert len(hub.gets) == 3
    firsts = [int(asked.removeprefix("bytes=").removesuffix("-") or 0) for asked in hub.gets]
    assert firsts[0] == 0
    assert 500_000 <= firsts[1] <= 1_000_000
    assert firsts[1] < firsts[2] <= firsts[1] + 500_000


def test_a_large_file_comes_from_another_host_without_the_token(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """The hub redirects, resuming works there too, and the token stays with the hub."""
    hub.elsewhere = environ["HF_ENDPOINT"].replace("http://127.0.0.1", "localhost")
    hub.cuts = [1_000_000]
    process = start(SOURCE, environ={**environ, "HF_TOKEN": "hf_abc", "NO_PROXY": "*"})
    assert process.result()["sha256"] == WEIGHTS_SHA256
    assert len(hub.gets) == 2
    assert hub.gets[1].startswith("bytes=")
    assert hub.tokens == {"Bearer hf_abc"}
    assert hub.tokens_elsewhere == {""}


def test_a_killed_download_is_resumed_by_the_next_process(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """Gigabytes that arrived before a kill -9 or a power cut are not fetched twice."""
    hub.stall = threading.Event()
    killed = start(SOURCE, environ=environ)
    killed.until(lambda line: line["what"] == "downloading m.gguf" and line["done"] > 1_000_000)
    killed.close()
    hub.stall.set()
    hub.stall = None
    assert start(SOURCE, environ=environ).result()["sha256"] == WEIGHTS_SHA256
    assert hub.gets[0] == ""
    assert int(hub.gets[1].removeprefix("bytes=").removesuffix("-")) > 700_000


def test_a_server_without_ranges_is_read_from_the_start(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """What was there is replaced, not appended to."""
    hub.ignores_range = True
    hub.cuts = [1_000_000]
    assert start(SOURCE, environ=environ).result()["sha256"] == WEIGHTS_SHA256
    assert len(hub.gets) == 2


def test_a_busy_hub_is_asked_again(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """A 503 is no failure yet."""
    hub.busy = 1
    assert start(SOURCE, environ=environ).result()["sha256"] == WEIGHTS_SHA256
    assert len(hub.gets) == 2


def test_two_processes_download_once(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """The second waits for the first one's file."""
    hub.stall = threading.Event()
    first = start(SOURCE, environ=environ)
    assert hub.stalled.wait(60)
    second = start(SOURCE, environ=environ)
    second.until(lambda line: "waiting for another" in line["what"])
    hub.stall.set()
    assert first.result() == second.result()
    assert hub.gets == [""]


def test_a_file_that_is_not_what_the_hub_says_is_refused(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path, leftovers: Callable
) -> None:
    """Both hashes are named, nothing is kept, and the next try starts anew."""
    hub.etag = "1" * 64
    failed = start(SOURCE, environ=environ).result()
    assert failed["error"] == "ModelError"
    assert WEIGHTS_SHA256 in failed["text"]
    assert "1" * 64 in failed["text"]
    assert leftovers(tmp_path / "store") == []


def test_a_wrong_hash_in_the_scenario_is_refused(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path, leftovers: Callable
) -> None:
    """Where the hub tells the hash, no gigabyte is fetched to find out."""
    failed = start(SOURCE, environ=environ, sha256="2" * 64).result()
    assert failed["error"] == "ModelError"
    assert WEIGHTS_SHA256 in failed["text"]
    assert "2" * 64 in failed["text"]
    assert hub.gets == []
    assert leftovers(tmp_path / "store") == []


def test_a_branch_that_moved_is_followed_only_where_asked(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """A stored file stays the same until the scenario's hash asks for the new one."""
    old = start(SOURCE, environ=environ).result()
    hub.content, hub.commit = b"new weights", NEXT_COMMIT
    hub.etag = hashlib.sha256(b"new weights").hexdigest()
    assert start(SOURCE, environ=environ).result() == old
    new = start(SOURCE, environ=environ, sha256=hub.etag).result()
    assert new["bytes"] == 11
    assert start(SOURCE, environ=environ).result() == new


def test_an_unknown_hash_is_checked_after_the_download(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path, leftovers: Callable
) -> None:
    """Small files have no SHA-256 for an ETag: theirs is computed, and a wrong one refused."""
    hub.etag = "3" * 40
    failed = start(SOURCE, environ=environ, sha256="2" * 64).result()
    assert failed["error"] == "ModelError"
    assert WEIGHTS_SHA256 in failed["text"]
    assert leftovers(tmp_path / "store") == []
    assert start(SOURCE, environ=environ).result()["sha256"] == WEIGHTS_SHA256


def test_a_token_is_sent(start: Callable, hub: Published, environ: dict[str, str]) -> None:
    """HF_TOKEN opens what is not public."""
    start(SOURCE, environ={**environ, "HF_TOKEN": "hf_abc"}).result()
    assert "Bearer hf_abc" in hub.tokens


@pytest.mark.parametrize(
    ("source", "refusal", "said"),
    [
        ("hf:org/model/no.gguf", None, ["no file 'no.gguf'", "/org/model/tree/main"]),
        ("hf:org/model@v9/sub/m.gguf", None, ["no revision 'v9'", "/org/model"]),
        ("hf:org/none/m.gguf", None, ["no model org/none", "HF_TOKEN"]),
        ("hf:org/gated/m.gguf", (403, "GatedRepo"), ["gated", "licence", "/org/gated", "HF_TOKEN"]),
        ("hf:org/secret/m.gguf", (401, ""), ["may not be read", "HTTP status 401", "HF_TOKEN"]),
        ("hf:org/sick/m.gguf", (500, ""), ["can't be fetched", "path:"]),
    ],
)
def test_what_the_hub_refuses_is_explained(
    start: Callable,
    hub: Published,
    environ: dict[str, str],
    source: str,
    refusal: tuple[int, str] | None,
    said: list[str],
) -> None:
    """Each refusal is one ModelError that says what to do."""
    if refusal is not None:
        hub.refusals[source.removeprefix("hf:").rpartition("/")[0]] = refusal
    failed = start(source, environ=environ).result()
    assert failed["error"] == "ModelError"
    for words in said:
        assert words in failed["text"]


@pytest.mark.parametrize(
    "offline", [{"HF_ENDPOINT": "http://127.0.0.1:9"}, {"HF_HUB_OFFLINE": "1"}]
)
def test_without_a_network_the_way_round_is_named(
    start: Callable, environ: dict[str, str], offline: dict[str, str]
) -> None:
    """The message names the file and how to use one that came in another way."""
    failed = start(SOURCE, environ={**environ, **offline}).result()
    assert failed["error"] == "ModelError"
    assert "hf:org/model@main/sub/m.gguf" in failed["text"]
    assert "`hf download org/model sub/m.gguf --local-dir FOLDER`" in failed["text"]
    assert "path:FOLDER/sub/m.gguf" in failed["text"]


def test_a_server_that_is_no_hub_is_named(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """A login page of some hotel is not taken for a model."""
    hub.commit = ""
    failed = start(SOURCE, environ=environ).result()
    assert "does not answer like a Hugging Face hub" in failed["text"]
    assert "HF_ENDPOINT" in failed["text"]


def test_what_does_not_fit_is_not_downloaded(
    start: Callable, hub: Published, environ: dict[str, str], small_disk: Path, leftovers: Callable
) -> None:
    """The hub's size is checked against the disk before the first byte."""
    failed = start(SOURCE, environ=environ, root=small_disk / "store").result()
    assert failed["error"] == "StoreError"
    assert "downloading m.gguf needs 2.9 MiB" in failed["text"]
    assert hub.gets == []
    assert leftovers(small_disk / "store") == []


def test_a_disk_that_fills_up_during_a_download_is_left_free(
    start: Callable, hub: Published, environ: dict[str, str], small_disk: Path, leftovers: Callable
) -> None:
    """Where the size was not known before, the error is the same and the half file goes."""
    hub.elsewhere = environ["HF_ENDPOINT"].replace("http://127.0.0.1", "localhost")
    hub.tells_size = False
    process = start(SOURCE, environ={**environ, "NO_PROXY": "*"}, root=small_disk / "store")
    failed = process.result()
    assert failed["error"] == "StoreError"
    assert "not enough disk space: downloading m.gguf needs more space" in failed["text"]
    assert hub.gets == [""]
    assert leftovers(small_disk / "store") == []


def test_an_empty_file_arrives_empty(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """Nothing is a size, too."""
    hub.content = b""
    hub.etag = hashlib.sha256(b"").hexdigest()
    assert start(SOURCE, environ=environ).result()["bytes"] == 0


def test_without_huggingface_hub_the_pip_command_is_named(
    start: Callable, environ: dict[str, str], tmp_path: Path
) -> None:
    """A missing extra is one sentence and one command."""
    (tmp_path / "huggingface_hub").mkdir()
    (tmp_path / "huggingface_hub/__init__.py").write_text("raise ImportError('not there')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    failed = start(SOURCE, environ={**environ, "PYTHONPATH": path}).result()
    assert failed["error"] == "ModelError"
    assert "pip install 'edgebench[hf]'" in failed["text"]


def test_a_cut_off_download_can_be_pruned(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path
) -> None:
    """What a killed download left is found by prune, and not touched while one is running."""
    hub.stall = threading.Event()
    running = start(SOURCE, environ=environ)
    running.until(lambda line: line["what"] == "downloading m.gguf" and line["done"] > 1_000_000)
    store = ModelStore(tmp_path / "store")
    assert store.prune().files == ()
    running.close()
    pruned = store.prune()
    assert any(path.suffix == ".part" for path in pruned.files)
    assert pruned.bytes > 700_000


WHOLE = {
    "config.json": b"{}",
    "model-00001-of-00002.safetensors": b"weights",
    "model-00002-of-00002.safetensors": b"more weights",
    "model.safetensors.index.json": b"{}",
    "tokenizer.json": b"{}",
    "consolidated.safetensors": b"the same once more",
    "pytorch_model.bin": b"and once more",
    "onnx/model.onnx": b"and again",
    "README.md": b"words",
}


def test_a_repository_is_fetched_as_a_folder_once(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path
) -> None:
    """What makes it a model comes at one commit, other copies of the weights do not."""
    hub.files = WHOLE
    stored = start("hf:org/whole", environ=environ).result()
    wanted = set(list(WHOLE)[:5])
    folder = Path(stored["path"])
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {
        name: WHOLE[name] for name in wanted
    }
    assert (stored["name"], stored["bytes"]) == ("whole", sum(len(WHOLE[name]) for name in wanted))
    asked = len(hub.gets)
    offline = {**environ, "HF_ENDPOINT": "http://127.0.0.1:9"}
    assert start("hf:org/whole", environ=offline).result() == stored
    assert len(hub.gets) == asked
    (record,) = (tmp_path / "store/v1/records").iterdir()
    assert f'"revision": "{COMMIT}"' in record.read_text()


def test_of_a_folder_that_was_cut_off_only_the_rest_is_fetched(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """Shards that arrived before a kill are not fetched again."""
    hub.files = {**WHOLE, "model-00002-of-00002.safetensors": b"x" * 100_000}
    hub.stalling = "model-00002-of-00002.safetensors"
    hub.stall = threading.Event()
    killed = start("hf:org/whole", environ=environ)
    assert hub.stalled.wait(60)
    killed.close()
    hub.stall.set()
    before, hub.stall, hub.gets = hub.gets, None, []
    stored = start("hf:org/whole", environ=environ).result()
    assert stored["bytes"] == 100_000 + 2 + 7 + 2 + 2
    fetched = [
        [path.rpartition("/")[2] for path in gets if "/resolve/" in path]
        for gets in (before, hub.gets)
    ]
    assert [len(names) for names in fetched] == [5, 1]
    assert fetched[1] == [hub.stalling]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"m.Q4.gguf": b"x", "config.json": b"{}"}, "such as hf:org/whole@main/m.Q4.gguf"),
        ({"model.safetensors": b"x"}, "has no config.json with *.safetensors"),
        ({}, "has no config.json with *.safetensors"),
    ],
)
def test_a_repository_that_is_no_model_says_what_to_name(
    start: Callable, hub: Published, environ: dict[str, str], files: dict[str, bytes], words: str
) -> None:
    """A repository of single files, as for llama.cpp, needs one of them named."""
    hub.files = files
    failed = start("hf:org/whole", environ=environ).result()
    assert failed["error"] == "ModelError"
    assert words in failed["text"]


def test_a_repository_that_is_not_there_is_named(
    start: Callable, hub: Published, environ: dict[str, str]
) -> None:
    """The hub's refusal of a whole repository is told as that of a file."""
    failed = start("hf:org/gone", environ=environ).result()
    assert failed["error"] == "ModelError"
    assert "org/gone" in failed["text"]


class Larger(bytes):
    """Bytes that are said to be as many as those of Llama 2 7B in Q4_0; none of them is sent."""

    def __len__(self) -> int:
        return 3_825_807_296


TOO_LARGE = """\
schema_version: 1
name: too-large
model: {{name: m, source: "{source}"}}
variants: [{{runner: fake, virtual_clock: true}}]
workloads: [{{name: short, prompt: hello, generate_tokens: 4}}]
measure: {{bandwidth: false}}
device: {{profile: "vm:2GiB"}}
"""


@pytest.mark.parametrize("source", [SOURCE, "hf:org/whole"])
def test_what_can_not_fit_is_not_fetched_from_a_hub(
    hub: Published, environ: dict[str, str], tmp_path: Path, source: str
) -> None:
    """The hub tells the size: 3.6 GiB do not fit into the 2 GiB of a profile; no byte is sent."""
    hub.content = Larger(b"")
    hub.files = {"config.json": b"{}", "model.safetensors": Larger(b"")}
    (tmp_path / "s.yaml").write_text(TOO_LARGE.format(source=source), encoding="utf-8")
    store = tmp_path / "store"
    done = edgebench(
        "run", "s.yaml", "--out", "out", cwd=tmp_path, EDGEBENCH_CACHE=str(store), **environ
    )
    assert done.returncode == ExitStatus.NOTHING_RAN, done.stderr
    said = " ".join(f"{done.stdout} {done.stderr}".split())
    assert "the model's 3.6 GiB do not fit into the device's memory, which is 2.0 GiB by" in said
    # What the repository holds is asked for, and no file.
    assert [each for each in hub.gets if not each.startswith("/api/")] == []


def test_the_size_of_what_is_in_the_store_is_not_asked_for(
    start: Callable, hub: Published, environ: dict[str, str], tmp_path: Path
) -> None:
    """No hub is needed to know how large a file is that was fetched before."""
    start(SOURCE, environ=environ).result()
    asked = list(hub.gets)
    told = ModelStore(tmp_path / "store").told_size(parse_source(SOURCE))
    assert told is not None
    assert (told.name, told.bytes) == ("m.gguf", 3_000_000)
    assert hub.gets == asked
