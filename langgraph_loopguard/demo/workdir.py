"""The demo's directory. It is cleared by what the demo wrote down about itself, so nothing else can be lost."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from langgraph_loopguard.demo.errors import DemoError, first_line
from langgraph_loopguard.demo.git import EMAIL, Git

MARKER = ".loopguard-demo.json"
"""File that says: the demo made this directory, and these files in it."""

REPOSITORY = "repo"
DATABASE = "escalations.sqlite"
DATABASE_FILES = (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm")


@dataclass(frozen=True, slots=True)
class WorkDir:
    """Where the demo keeps its repository and its SQLite file."""

    root: Path

    @property
    def repository(self) -> Path:
        """The git repository's work tree."""
        return self.root / REPOSITORY

    @property
    def database(self) -> Path:
        """The SQLite file with the guarded runs and their escalations."""
        return self.root / DATABASE

    @property
    def marker(self) -> Path:
        """See `MARKER`."""
        return self.root / MARKER


def start_afresh(root: Path, files: Sequence[str]) -> WorkDir:
    """Make the directory, or clear it of an earlier run, and write down which files the demo will put into it.

    Args:
        root: The directory (`--dir`).
        files: The files to be made in the repository, relative to its work tree.

    Raises:
        DemoError: The directory holds something that the demo did not make and would have to replace.
    """
    work = WorkDir(root)
    try:
        if work.marker.exists():
            _clear(work)
        made = [f"{REPOSITORY}/{name}" for name in files] + list(DATABASE_FILES)
        obstacle = _obstacle(root, [f"{REPOSITORY}/.git", *made])
        if obstacle:
            msg = f"--dir {root}: {obstacle} is there, and the demo did not make it; choose another directory"
            raise DemoError(msg)
        root.mkdir(parents=True, exist_ok=True)
        work.marker.write_text(json.dumps({"made_by": "loopguard demo", "files": made}, indent=2) + "\n")
    except OSError as error:
        msg = f"--dir {root}: {first_line(error)}"
        raise DemoError(msg) from error
    return work


def find_existing(root: Path) -> WorkDir:
    """Return the directory of an earlier run.

    Raises:
        DemoError: There was none.
    """
    work = WorkDir(root)
    if not work.database.is_file():
        msg = f"--dir {root}: no {DATABASE} there; run `loopguard demo` first"
        raise DemoError(msg)
    return work


def _clear(work: WorkDir) -> None:
    """Delete what the marker lists, and the repository's history when the demo alone has written it."""
    git = work.repository / ".git"
    if git.is_dir() and not work.repository.is_symlink():
        strangers = Git(work.repository).committers() - {EMAIL}
        if strangers:
            msg = f"--dir {work.root}: {REPOSITORY} has commits by {min(strangers)}; choose another directory"
            raise DemoError(msg)
        shutil.rmtree(git)
    for name in _listed(work):
        (work.root / name).unlink(missing_ok=True)
    for path in sorted(work.repository.glob("*/"), reverse=True):
        _drop_if_empty(path)
    _drop_if_empty(work.repository)


def _listed(work: WorkDir) -> list[str]:
    try:
        names: list[str] = json.loads(work.marker.read_text())["files"]
        paths = [PurePosixPath(name) for name in names]
    except (ValueError, KeyError, TypeError) as error:
        msg = f"--dir {work.root}: {MARKER} cannot be read ({first_line(error)}); choose another directory"
        raise DemoError(msg) from error
    # A link on the way could lead out of the directory: what is behind one was not made by the demo.
    return [
        str(path)
        for path in paths
        if not path.is_absolute()
        and ".." not in path.parts
        and not any((work.root / part).is_symlink() for part in path.parents)
    ]


def _drop_if_empty(path: Path) -> None:
    if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
        path.rmdir()


def _obstacle(root: Path, names: Sequence[str]) -> str | None:
    """Return what stands where the demo would write: a file, or a link or a file in place of a directory."""
    for name in names:
        parents = [str(part) for part in PurePosixPath(name).parents if str(part) != "."]
        for part in reversed(parents):
            if (root / part).is_symlink() or (root / part).is_file():
                return part
        if os.path.lexists(root / name):
            return name
    return None
