"""Models of the Hugging Face hub, or of whatever speaks its protocol at HF_ENDPOINT.

The bytes are taken here with the session of ``huggingface_hub`` (its proxies, certificates and
tokens), and not with its ``hf_hub_download``, which since version 2 throws away what it has when
its process ends: on the links that boards have, 4 GB must be able to arrive in pieces.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from edgebench.harness.errors import ModelError
from edgebench.harness.store.hashing import check_sha256, sha256_file
from edgebench.harness.store.hub_lookup import ask_hub, list_hub
from edgebench.harness.store.space import is_full, no_space, require_space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from edgebench.harness.store.hub_lookup import Published
    from edgebench.harness.store.layout import Layout
    from edgebench.harness.store.progress import Progress
    from edgebench.harness.store.sources import HubSource

_CHUNK_BYTES = 1 << 18
_TIMEOUT_S = 30
_ATTEMPTS = 5
_PARTIAL_CONTENT = 206
_RANGE_NOT_SATISFIABLE = 416
_WORTH_ANOTHER_TRY = frozenset({408, 429, 500, 502, 503, 504})
_BESIDE_WEIGHTS = frozenset(
    {
        "config.json",
        "generation_config.json",
        "model.safetensors.index.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "special_tokens_map.json",
        "added_tokens.json",
        "chat_template.jinja",
        "chat_template.json",
        "vocab.json",
        "merges.txt",
        "tokenizer.model",
    }
)
_COMMIT = re.compile(r"[0-9a-f]{40}")


class _InterruptedError(Exception):
    """The download ended early, and another try may get further."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A downloaded file, its SHA-256, and the commit that it is from."""

    path: Path
    sha256: str
    commit: str


def is_fixed(source: HubSource) -> bool:
    """Whether the source names a commit, and not a branch or tag that may move."""
    return _COMMIT.fullmatch(source.revision) is not None


def fetch_hub_file(
    source: HubSource,
    folder: Path,
    layout: Layout,
    key: str,
    progress: Progress,
    *,
    wanted: str | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> HubFile:
    """Download a file, going on where an earlier try of this or another process was cut off.

    Args:
        source: which file of which repository.
        folder: an empty folder of the store for the finished file.
        layout: the store; what a cut-off download has got so far stays in its ``partials``.
        key: the request, whose lock is held.
        progress: told how far it is.
        wanted: the SHA-256 that it must have; where the hub tells another one, nothing is fetched.
        wait: called with seconds between tries that got nothing.

    Raises:
        ModelError: huggingface_hub is missing, the hub can't be reached, has no such file or
            asks for a licence; or the file's hash is not the wanted one, or not what the hub says.
        StoreError: there is no space for it.
    """
    published = ask_hub(source)
    check_sha256(str(source), published.sha256, wanted)
    partial, sha256 = _download(source, published, layout, key, progress, wait)
    target = folder / PurePosixPath(source.file).name
    return HubFile(partial.replace(target), sha256, published.commit)


def _download(
    source: HubSource,
    published: Published,
    layout: Layout,
    key: str,
    progress: Progress,
    wait: Callable[[float], None],
) -> tuple[Path, str]:
    """Fetch what is missing of a file; gives its place among the partial ones, and its SHA-256."""
    name = PurePosixPath(source.file).name
    # Named for its content too, so that a branch that moved does not continue another file.
    tag = hashlib.sha256(f"{published.etag} {source.file}".encode()).hexdigest()[:16]
    partial = layout.partials / f"{key}-{tag}.part"
    partial.parent.mkdir(parents=True, exist_ok=True)
    try:
        _complete(source, published, partial, layout.root, progress=progress, wait=wait)
        partial.touch()  # of an empty file, nothing was written
    except OSError as error:
        if not is_full(error):
            raise
        partial.unlink(missing_ok=True)
        raise no_space(layout.root, f"downloading {name}", published.bytes) from error
    sha256 = sha256_file(partial, f"checking {name}", progress)
    if published.sha256 not in {None, sha256}:
        partial.unlink()
        msg = f"{source} arrived damaged: its SHA-256 is {sha256}, the hub says {published.sha256}"
        raise ModelError(msg, remedy="Try again; if it repeats, a proxy may be changing the file.")
    return partial, sha256


def fetch_hub_folder(
    source: HubSource,
    folder: Path,
    layout: Layout,
    key: str,
    progress: Progress,
    *,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[Path, str]:
    """Download what makes a repository a model, and nothing else of it.

    Args:
        source: which repository.
        folder: an empty folder of the store, in which a folder of the repository's name is made.
        layout: the store; see `fetch_hub_file`.
        key: the request, whose lock is held.
        progress: told how far it is.
        wait: called with seconds between tries that got nothing.

    Returns:
        The folder, and the commit that it is from.

    Raises:
        ModelError: as `fetch_hub_file`; or the repository holds no model in Hugging Face's layout.
        StoreError: there is no space for it.
    """
    listing = list_hub(source)
    files = model_files(listing.files)
    if not files:
        others = [name for name in listing.files if name.endswith(".gguf")]
        example = f", such as {source}/{others[0]}" if others else ""
        msg = f"{source} has no config.json with *.safetensors, which makes a folder a model"
        raise ModelError(msg, remedy=f"Name one file of it{example}.")
    known = sum(listing.files[name] or 0 for name in files)
    require_space(layout.root, f"downloading {source}", known)
    made = folder / source.repo.rpartition("/")[2]
    made.mkdir()
    # None is moved away before all are there: what a killed process had got of them stays.
    whole = []
    for name in files:
        file = replace(source, revision=listing.commit, file=name)
        partial, _ = _download(file, ask_hub(file), layout, key, progress, wait)
        whole.append((partial, made / name))
    for partial, target in whole:
        partial.replace(target)
    return made, listing.commit


def model_files(names: Iterable[str]) -> list[str]:
    """What of a repository's files is the model; nothing where there is none.

    Weights in other formats, or once more for other programs (``consolidated.safetensors``), are
    left out.
    """
    there = sorted(name for name in names if "/" not in name)
    weights = [name for name in there if name.endswith(".safetensors")]
    weights = [name for name in weights if name.startswith("model")] or weights
    if not weights or "config.json" not in there:
        return []
    return [name for name in there if name in _BESIDE_WEIGHTS] + weights


def _complete(
    source: HubSource,
    published: Published,
    partial: Path,
    root: Path,
    *,
    progress: Progress,
    wait: Callable[[float], None],
) -> None:
    """Try until `partial` is whole, or several tries in a row got nothing."""
    fruitless = 0
    what = f"downloading {PurePosixPath(source.file).name}"
    while True:
        before = _size(partial)
        if published.bytes is not None:
            if before == published.bytes:
                return
            require_space(root, what, published.bytes - before)
        try:
            _transfer(published, partial, what, progress)
        except _InterruptedError as error:
            fruitless = 0 if _size(partial) > before else fruitless + 1
            if fruitless == _ATTEMPTS:
                got = _size(partial)
                msg = f"{source} can't be fetched: {error}"
                raise ModelError(
                    msg, remedy=f"Try again later; {got} bytes are kept, and it goes on from there."
                ) from error
            if fruitless:
                wait(2.0 ** (fruitless - 1))
        else:
            return


def _transfer(published: Published, partial: Path, what: str, progress: Progress) -> None:
    """Append to `partial` what it lacks, as far as one connection gets."""
    from huggingface_hub import get_session  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, HTTPError  # noqa: PLC0415
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # noqa: PLC0415

    have = _size(partial)
    # Compressed on the way, bytes could not be counted. The session drops the token on its own
    # where it is sent on to another host.
    headers: dict[str, str] = {**build_hf_headers(), "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    session: Any = get_session()
    try:
        with session.stream("GET", published.url, headers=headers, timeout=_TIMEOUT_S) as response:
            status = int(response.status_code)
            if status in _WORTH_ANOTHER_TRY:
                msg = f"the hub answers with HTTP status {status}"
                raise _InterruptedError(msg)
            if status == _RANGE_NOT_SATISFIABLE:
                partial.unlink(missing_ok=True)
                msg = "the hub does not know the part that is asked for"
                raise _InterruptedError(msg)
            hf_raise_for_status(response)
            if status != _PARTIAL_CONTENT:
                have = 0
            with partial.open("ab") as file:
                file.truncate(have)
                for chunk in response.iter_bytes(_CHUNK_BYTES):
                    file.write(chunk)
                    have += len(chunk)
                    progress(what, have, published.bytes)
    except HfHubHTTPError as error:
        msg = f"the hub refuses {published.url}: {error}"
        raise ModelError(msg) from error
    except HTTPError as error:  # the base of the errors of the hub's HTTP library
        msg = f"the connection to the hub broke: {error or type(error).__name__}"
        raise _InterruptedError(msg) from error
    if published.bytes is not None and have != published.bytes:
        if have > published.bytes:
            partial.unlink()
        msg = f"the hub sent {have} of {published.bytes} bytes"
        raise _InterruptedError(msg)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
