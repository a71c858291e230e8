"""Which revision of a project a run measured: of the folder that it was started in."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from edgebench.harness.results.model import CommitRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN_VARIABLE: Final = "EDGEBENCH_COMMIT"
"""``SHA`` or ``SHA, BRANCH``: for whoever knows better, such as a job without a repository."""

CI_VARIABLES: Final = (
    ("GITHUB_SHA", "GITHUB_REF_NAME"),
    ("CI_COMMIT_SHA", "CI_COMMIT_REF_NAME"),
)
"""Where GitHub and GitLab name the commit and its branch: they check it out without a branch."""

TIMEOUT_S: Final = 5.0
"""For each question to git: a huge repository must not hold a run up."""


def current_commit(
    folder: Path | None = None, environ: Mapping[str, str] = os.environ
) -> CommitRecord | None:
    """The commit that is checked out.

    Args:
        folder: where to look; the working folder by default.
        environ: the environment; ``EDGEBENCH_COMMIT`` goes before what a CI sets, and that before
            git. Git adds the date, and whether files were changed, where it has the same commit.

    Returns:
        None where nothing names one, be it that there is no repository, no commit, no git, or a
        repository that git does not trust. Nothing is ever raised for it.
    """
    seen = _from_git(Path.cwd() if folder is None else folder, environ)
    named = _named(environ)
    if named is None:
        return seen
    sha, branch = named
    # A short name, as people write it, is of the same commit.
    if seen is not None and seen.sha.startswith(sha.lower()):
        return seen.model_copy(update={"branch": branch or seen.branch})
    return CommitRecord(sha=sha, branch=branch)


def _named(environ: Mapping[str, str]) -> tuple[str, str | None] | None:
    """What the environment names: commit and branch."""
    sha, _, branch = environ.get(OWN_VARIABLE, "").partition(",")
    if sha.strip():
        return sha.strip(), branch.strip() or None
    for sha_variable, branch_variable in CI_VARIABLES:
        if sha := environ.get(sha_variable, "").strip():
            return sha, environ.get(branch_variable, "").strip() or None
    return None


def _from_git(folder: Path, environ: Mapping[str, str]) -> CommitRecord | None:
    head = _git(folder, environ, "log", "-1", "--no-show-signature", "--format=%H%n%ct")
    try:
        sha, seconds = (head or "").split()
        committed = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):
        return None
    branch = _git(folder, environ, "symbolic-ref", "--quiet", "--short", "HEAD")
    changed = _git(folder, environ, "status", "--porcelain", "--untracked-files=no")
    return CommitRecord(
        sha=sha,
        branch=(branch or "").strip() or None,
        committed_at=committed.isoformat(timespec="seconds"),
        dirty=None if changed is None else bool(changed.strip()),
    )


def _git(folder: Path, environ: Mapping[str, str], *arguments: str) -> str | None:
    """What git says; None where it can't be asked, refuses, or takes too long."""
    try:
        done = subprocess.run(
            # A monitor of files would be started, and stay, for one question.
            ["git", "-c", "core.fsmonitor=false", *arguments],
            cwd=folder,
            # Looking must not write: not the index either.
            env={**environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None
