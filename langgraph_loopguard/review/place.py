"""Where a review keeps what it remembers: one folder per repository and change, outside the repository."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from langgraph_loopguard.review.errors import ReviewError


@dataclass(frozen=True)
class Desk:
    """The folder of one change.

    Attributes:
        folder: The folder.
    """

    folder: Path

    @property
    def store(self) -> Path:
        """The SQLite file."""
        return self.folder / "review.sqlite"

    @property
    def lock(self) -> Path:
        """The lock's file."""
        return self.folder / "lock"

    @property
    def work(self) -> Path:
        """The clone in which the review works."""
        return self.folder / "work"


def home() -> Path:
    """Return where reviews are kept: `LOOPGUARD_HOME`, else a folder of the user's state directory."""
    if found := os.environ.get("LOOPGUARD_HOME"):
        return Path(found)
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "langgraph-loopguard"


def desk(repository: Path, change: str, *, top: Path, root: Path | None = None) -> Desk:
    """Return the folder of a change.

    Args:
        repository: What tells one repository from another: its common git directory, or the folder itself.
        change: The change's name.
        top: The top of the work tree, which must not hold the folder.
        root: Where reviews are kept. Default: `home()`.

    Raises:
        ReviewError: The folder would lie inside the repository.
    """
    root = (root or home()).resolve()
    repository = repository.resolve()
    main = repository.parent if repository.name == ".git" else repository
    for inside in (top.resolve(), main):
        if root == inside or inside in root.parents:
            msg = f"reviews are kept outside the repository, and {str(root)!r} is inside it"
            raise ReviewError(msg)
    digest = hashlib.sha256(f"{repository}\0{change}".encode("utf-8", "surrogateescape")).hexdigest()[:12]
    names = (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:40] for name in (main.name, change))
    return Desk(root / "reviews" / "-".join([*filter(None, names), digest]))
