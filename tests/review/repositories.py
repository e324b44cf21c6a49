"""A git repository, driven as a person would drive it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

ENV = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "ada",
    "GIT_AUTHOR_EMAIL": "ada@example.invalid",
    "GIT_COMMITTER_NAME": "ada",
    "GIT_COMMITTER_EMAIL": "ada@example.invalid",
}


class Repo:
    """One repository."""

    def __init__(self, path: Path, *init: str) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main", *init)

    def git(self, *args: str, **env: str) -> str:
        """Run git and return what it prints."""
        done = subprocess.run(
            ["git", "-c", "protocol.file.allow=always", *args],
            cwd=self.path,
            env=os.environ | ENV | env,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files."""
        for name, content in files.items():
            path = self.path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def commit(self, message: str = "a change", files: Mapping[str, str | bytes] | None = None) -> str:
        """Commit everything (after writing files) and return the commit."""
        self.write(files or {})
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")
