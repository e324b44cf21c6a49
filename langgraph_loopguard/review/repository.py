"""Where a work tree's git data lies, and what its commits hold."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from langgraph_loopguard.review import git as git_
from langgraph_loopguard.review.errors import SourceError
from langgraph_loopguard.review.git import Git

GITLINK = "160000"
"""Mode of a submodule's entry."""

SYMLINK = "120000"


class Entry(NamedTuple):
    """One file: its name as bytes, its git mode, and git's hash of its content."""

    raw: bytes
    mode: str
    oid: str


@dataclass(frozen=True)
class Repository:
    """A repository as found from a folder.

    Attributes:
        top: The work tree's top; for a bare repository, the git directory.
        git_dir: The git directory of this work tree.
        objects: The object directory, which worktrees share.
        common: The git directory that all worktrees share; it tells one repository from another.
        hash_name: `"sha1"` or `"sha256"`.
        bare: Whether there is no work tree.
    """

    top: Path
    git_dir: Path
    objects: Path
    common: Path
    hash_name: str
    bare: bool

    @classmethod
    def find(cls, path: Path) -> Repository | None:
        """Return the repository that a folder belongs to; `None` when it belongs to none.

        Raises:
            SourceError: The folder does not exist, or git refuses its repository.
        """
        if not path.is_dir():
            msg = f"{str(path)!r} is not a folder"
            raise SourceError(msg)
        path = path.resolve()
        top = next((folder for folder in (path, *path.parents) if os.path.lexists(folder / ".git")), None)
        bare = top is None and (path / "HEAD").is_file() and (path / "objects").is_dir()
        if top is None and not bare:
            return None
        where = top or path
        places = Git(None, cwd=where).run(
            "rev-parse", "--absolute-git-dir", "--git-path", "objects", "--git-common-dir", "--show-object-format"
        )
        git_dir, objects, common, hash_name = os.fsdecode(places).splitlines()[:4]
        return cls(where, Path(git_dir), (where / objects).resolve(), (where / common).resolve(), hash_name, bare=bare)

    @property
    def git(self) -> Git:
        """Git on the repository itself: for `rev-parse` and `ls-files` only."""
        return Git(self.git_dir, None if self.bare else self.top)

    def head(self) -> str | None:
        """Return the commit that is checked out; `None` before the first."""
        try:
            return self.git.resolve("HEAD")
        except SourceError:
            return None

    def branch(self) -> str | None:
        """Return the name of the branch that is checked out; `None` when it is a bare commit."""
        try:
            name = self.git.run("rev-parse", "--symbolic-full-name", "HEAD").decode("utf-8", "replace").strip()
        except SourceError:
            return None
        return name.removeprefix("refs/heads/") if name.startswith("refs/heads/") else None

    @contextmanager
    def reader(self) -> Iterator[Git]:
        """Yield git on the repository's objects with nothing of its config."""
        with git_.private(self.objects, self.hash_name) as git:
            yield git


def tree_entries(git: Git, treeish: str) -> list[Entry]:
    """Return the files of a tree, folders walked through.

    Raises:
        SourceError: There is no such tree.
    """
    out: list[Entry] = []
    for line in git.run("ls-tree", "-r", "-z", "--full-tree", treeish).split(b"\0"):
        if line:
            meta, _, raw = line.partition(b"\t")
            mode, _, oid = meta.decode("ascii").split(" ")
            out.append(Entry(raw, mode, oid))
    return out
