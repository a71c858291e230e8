"""Which commit a run's record names: real repositories, and whatever keeps git from answering."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from edgebench.harness.commit import current_commit

if TYPE_CHECKING:
    from pathlib import Path

COMMITTED = "2025-03-02T11:30:00+01:00"
SHA = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Git without the settings of whoever runs the tests, and no CI around it."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(tmp_path),
    }


class Repository:
    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.folder = folder
        self._environ = environ
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=trunk")

    def git(self, *arguments: str) -> str:
        author = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"), ("DATE", COMMITTED))
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env={**self._environ, **author},
            check=True, capture_output=True, text=True,
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self) -> str:
        (self.folder / "file").write_text("one")
        self.git("add", "file")
        self.git("commit", "--quiet", "--message", "first")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Repository:
    return Repository(tmp_path / "repository", environ)


def test_the_commit_its_branch_and_its_date_are_told(
    repository: Repository, environ: dict[str, str]
) -> None:
    """Of a clean checkout: full name, branch, date in UTC; from a folder inside as well."""
    sha = repository.commit()
    inside = repository.folder / "inside"
    inside.mkdir()
    found = current_commit(inside, environ)
    assert found is not None
    assert found.model_dump() == {
        "sha": sha,
        "branch": "trunk",
        "committed_at": "2025-03-02T10:30:00+00:00",
        "dirty": False,
    }


def test_a_changed_file_makes_it_dirty_and_a_new_one_does_not(
    repository: Repository, environ: dict[str, str]
) -> None:
    """Results and build folders lie about untracked; what is tracked is what was measured."""
    repository.commit()
    (repository.folder / "results").write_text("untracked")
    clean = current_commit(repository.folder, environ)
    (repository.folder / "file").write_text("two")
    dirty = current_commit(repository.folder, environ)
    assert clean is not None
    assert dirty is not None
    assert (clean.dirty, dirty.dirty) == (False, True)


def test_a_detached_head_has_no_branch(repository: Repository, environ: dict[str, str]) -> None:
    """As a CI checks out: the commit is told, and no branch is made up."""
    sha = repository.commit()
    repository.git("checkout", "--quiet", "--detach")
    found = current_commit(repository.folder, environ)
    assert found is not None
    assert (found.sha, found.branch) == (sha, None)


def test_looking_writes_nothing(repository: Repository, environ: dict[str, str]) -> None:
    """Not even the index, which git would refresh on the way."""
    repository.commit()
    index = repository.folder / ".git" / "index"
    os.utime(repository.folder / "file")  # the index is out of date now
    before = index.read_bytes()
    current_commit(repository.folder, environ)
    assert index.read_bytes() == before


def test_without_a_commit_there_is_none(
    repository: Repository, environ: dict[str, str], tmp_path: Path
) -> None:
    """No repository, or one without a commit: null, and no failure."""
    assert current_commit(tmp_path, environ) is None
    assert current_commit(repository.folder, environ) is None


def test_git_that_is_missing_or_refuses_is_no_failure(
    repository: Repository, environ: dict[str, str], tmp_path: Path
) -> None:
    """Git may be absent, broken, or not trust a folder of somebody else's."""
    repository.commit()
    assert current_commit(repository.folder, {**environ, "PATH": str(tmp_path)}) is None
    # What git does where the folder belongs to another user, without being one.
    stranger = {**environ, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"}
    assert current_commit(repository.folder, stranger) is None
    (repository.folder / ".git" / "HEAD").write_text("nonsense")
    assert current_commit(repository.folder, environ) is None
    assert current_commit(tmp_path / "no such folder", environ) is None


@pytest.mark.parametrize(
    ("variables", "sha", "branch"),
    [
        ({"GITHUB_SHA": SHA, "GITHUB_REF_NAME": "7/merge"}, SHA, "7/merge"),
        ({"CI_COMMIT_SHA": SHA, "CI_COMMIT_REF_NAME": "trunk"}, SHA, "trunk"),
        ({"CI_COMMIT_SHA": SHA}, SHA, None),
        ({"EDGEBENCH_COMMIT": "v1.2", "GITHUB_SHA": SHA}, "v1.2", None),
        ({"EDGEBENCH_COMMIT": " abc , topic/x ", "CI_COMMIT_SHA": SHA}, "abc", "topic/x"),
        ({"EDGEBENCH_COMMIT": "", "GITHUB_SHA": SHA}, SHA, None),
    ],
)
def test_the_environment_names_a_commit(
    tmp_path: Path,
    environ: dict[str, str],
    variables: dict[str, str],
    sha: str,
    branch: str | None,
) -> None:
    """edgebench's own variable goes before GitHub's and GitLab's; an empty one is none."""
    found = current_commit(tmp_path, environ | variables)
    assert found is not None
    assert (found.sha, found.branch, found.committed_at, found.dirty) == (sha, branch, None, None)


def test_git_adds_what_it_knows_of_the_commit_that_is_named(
    repository: Repository, environ: dict[str, str]
) -> None:
    """The branch from the environment, the date from git; of another commit git knows nothing."""
    sha = repository.commit()
    named = {"EDGEBENCH_COMMIT": f"{sha[:12]}, release"}
    found = current_commit(repository.folder, environ | named)
    assert found is not None
    assert (found.sha, found.branch, found.dirty) == (sha, "release", False)
    assert found.committed_at == "2025-03-02T10:30:00+00:00"
    other = current_commit(repository.folder, environ | {"GITHUB_SHA": SHA})
    assert other is not None
    assert (other.sha, other.branch, other.committed_at) == (SHA, None, None)
