"""What a Hugging Face hub says about a file or a model, and what to do where it says no."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgebench.harness.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from edgebench.harness.store.sources import HubSource

_FORBIDDEN = frozenset({401, 403})
_TIMEOUT_S = 30
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Published:
    """What the hub says about a file.

    Attributes:
        url: where its bytes are, at its commit, so that a branch that moves meanwhile does not
            mix two files.
        commit: the commit that the revision stands for at this moment.
        etag: stands for its content.
        bytes: its size, where the hub says so.
    """

    url: str
    commit: str
    etag: str
    bytes: int | None

    @property
    def sha256(self) -> str | None:
        """Large files (LFS) have their SHA-256 for an ETag."""
        return self.etag if _SHA256.fullmatch(self.etag) else None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a repository holds.

    Attributes:
        commit: the commit that the revision stands for at this moment.
        files: the size in bytes of each file by its path, None where the hub does not say.
    """

    commit: str
    files: dict[str, int | None]


def ask_hub(source: HubSource) -> Published:
    """Ask the hub for a file.

    Raises:
        ModelError: huggingface_hub is missing, the hub can't be reached, or it says no.
    """
    hub = _import_hub(source)
    with _explained(source, hub):
        url = hub.hf_hub_url(source.repo, source.file, revision=source.revision)
        found = hub.get_hf_file_metadata(url)
    if not found.commit_hash or not found.etag:
        raise _no_hub(hub)
    return Published(
        url=hub.hf_hub_url(source.repo, source.file, revision=found.commit_hash),
        commit=found.commit_hash,
        etag=found.etag,
        # Of a redirect, huggingface_hub 1.0 tells the length of the redirect itself: nothing.
        bytes=found.size or None,
    )


def list_hub(source: HubSource) -> Listing:
    """Ask the hub what a repository holds.

    Raises:
        ModelError: huggingface_hub is missing, the hub can't be reached, or it says no.
    """
    hub = _import_hub(source)
    with _explained(source, hub):
        found = hub.HfApi().model_info(
            source.repo, revision=source.revision, files_metadata=True, timeout=_TIMEOUT_S
        )
    if not found.sha or found.siblings is None:
        raise _no_hub(hub)
    return Listing(found.sha, {file.rfilename: file.size for file in found.siblings})


def _import_hub(source: HubSource) -> Any:  # noqa: ANN401 - a package that may be absent
    try:
        import huggingface_hub.constants  # noqa: PLC0415
        import huggingface_hub.errors  # noqa: PLC0415 - the package gives neither by itself
    except ImportError as error:
        msg = f"{source} needs the package huggingface_hub, which can't be imported: {error}"
        raise ModelError(msg, remedy="pip install 'edgebench[hf]'") from error
    return huggingface_hub


def _no_hub(hub: Any) -> ModelError:  # noqa: ANN401
    msg = f"{hub.constants.ENDPOINT} does not answer like a Hugging Face hub"
    return ModelError(msg, remedy="Check HF_ENDPOINT, and any proxy on the way.")


@contextmanager
def _explained(source: HubSource, hub: Any) -> Iterator[None]:  # noqa: ANN401
    """Turn what huggingface_hub raises into what a person can do about it."""
    errors, endpoint = hub.errors, hub.constants.ENDPOINT
    page = f"{endpoint}/{source.repo}"
    revision = "" if source.revision == "main" else f" --revision {source.revision}"
    file, place = (f" {source.file}", f"/{source.file}") if source.file else ("", "")
    elsewhere = (
        f"Or get it where there is a network, `hf download {source.repo}{file}{revision} "
        f"--local-dir FOLDER`, and write 'source: path:FOLDER{place}' in the scenario."
    )
    try:
        yield
    except errors.GatedRepoError as error:
        msg = f"the model {source.repo} is gated: its authors ask for a consent first"
        raise ModelError(
            msg, remedy=f"Accept the licence at {page} and set HF_TOKEN to a token of that account."
        ) from error
    except errors.RevisionNotFoundError as error:
        msg = f"the model {source.repo} has no revision {source.revision!r}"
        raise ModelError(msg, remedy=f"Its branches, tags and commits are at {page}.") from error
    except errors.EntryNotFoundError as error:
        msg = f"the model {source.repo} has no file {source.file!r} at {source.revision}"
        raise ModelError(msg, remedy=f"Its files are at {page}/tree/{source.revision}.") from error
    except errors.RepositoryNotFoundError as error:
        msg = f"there is no model {source.repo}, or it is private ({page})"
        raise ModelError(
            msg,
            remedy="Check the name; for a private model, set HF_TOKEN to a token that may read it.",
        ) from error
    except errors.OfflineModeIsEnabled as error:
        msg = f"{source} is not in the model store, and HF_HUB_OFFLINE forbids fetching it"
        raise ModelError(msg, remedy=f"Unset HF_HUB_OFFLINE once. {elsewhere}") from error
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        forbidden = status in _FORBIDDEN
        verb = "may not be read" if forbidden else "can't be fetched"
        msg = f"{source} {verb}: {endpoint} answers with HTTP status {status}"
        remedy = "Check HF_TOKEN: it is not accepted." if forbidden else "Try again later."
        raise ModelError(msg, remedy=f"{remedy} {elsewhere}") from error
    except Exception as error:
        # Of the HTTP library underneath, which is another one in each of the hub's versions.
        msg = f"{source} can't be fetched from {endpoint}: {error}"
        raise ModelError(msg, remedy=f"Check the network. {elsewhere}") from error
