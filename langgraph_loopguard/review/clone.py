"""The review's own clone: the reviewed repository is read once, and never written to."""

from __future__ import annotations

import shutil
from pathlib import Path

from langgraph_loopguard.review.errors import SourceError
from langgraph_loopguard.review.git import Git
from langgraph_loopguard.review.repository import Repository

BASE_REF = "refs/loopguard/base"
HEAD_REF = "refs/loopguard/head"
NEXT_REF = "refs/loopguard/next"
"""A head that is fetched and not yet checked out."""


def prepare(repository: Repository, work: Path, base: str, head: str) -> None:
    """Bring two commits into the clone and check the head out.

    What a fixer has changed in the clone stays as long as the head is the same: it waits for acceptance.

    Args:
        repository: The repository that is reviewed.
        work: The clone's folder; it is made when it is not there.
        base: The base's commit.
        head: The head's commit.

    Raises:
        SourceError: Git cannot do it.
    """
    git = Git(work / ".git", work)
    if not _is_ours(git, repository):
        shutil.rmtree(work, ignore_errors=True)
        _make(work, repository)
    _settle(work, repository)
    source = str(repository.git_dir if repository.bare else repository.common)
    specs = (f"+{base}:{BASE_REF}", f"+{head}:{NEXT_REF}")
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow", "--no-auto-maintenance")
    git.run(*fetch, source, *specs, local=True)
    if _reviewed_head(git) != head:
        git.run("checkout", "--quiet", "--force", "--detach", head)
        git.run("clean", "-ffdxq")
        git.run("update-ref", HEAD_REF, head)


def _reviewed_head(git: Git) -> str | None:
    """Return the head that was checked out here; a fixer may have committed on top of it."""
    try:
        git.resolve("HEAD")
        return git.resolve(HEAD_REF)
    except SourceError:
        return None


def _is_ours(git: Git, repository: Repository) -> bool:
    """Whether the clone is there and whole: a run may have been killed while it was made."""
    assert git.git_dir is not None
    if not (git.git_dir / "loopguard").is_file():
        return False
    try:
        return git.run("rev-parse", "--show-object-format").decode().strip() == repository.hash_name
    except SourceError:
        return False


def _make(work: Path, repository: Repository) -> None:
    work.mkdir(parents=True, mode=0o700)
    Git(None, cwd=work).run("init", "--quiet", "--template=", f"--object-format={repository.hash_name}", ".")
    (work / ".git" / "loopguard").write_text("made by loopguard review\n")


def _settle(work: Path, repository: Repository) -> None:
    """Write the clone's config anew: checks run the repository's code, and that may have changed it."""
    extended = repository.hash_name != "sha1"
    extension = f"[extensions]\n\tobjectFormat = {repository.hash_name}\n" if extended else ""
    folder = work / ".git"
    (folder / "config").write_text(
        f"[core]\n\trepositoryformatversion = {int(extended)}\n\tbare = false\n\tlogallrefupdates = false\n{extension}"
    )
    for name in ("index.lock", "HEAD.lock", "config.worktree", "info/attributes"):
        (folder / name).unlink(missing_ok=True)
