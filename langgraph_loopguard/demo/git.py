"""Git, run in a way that does not depend on whose machine it runs on: no user config, no hooks, no signing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from langgraph_loopguard.demo.errors import DemoError, first_line

NAME = "loopguard demo"
EMAIL = "demo@loopguard.invalid"

SETTINGS = {
    "core.autocrlf": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "commit.gpgSign": "false",
    "diff.noprefix": "false",
    "gc.auto": "0",
    "user.name": NAME,
    "user.email": EMAIL,
}


def environment(path: Path) -> dict[str, str]:
    """Return the process's environment, with git bound to one work tree and to nobody's config.

    A work tree without a repository is an error then: git would else look for one further up, and find the user's.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    nowhere = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    here = {"GIT_DIR": str(path / ".git"), "GIT_WORK_TREE": str(path)}
    return kept | nowhere | here | {"LC_ALL": "C"}


class Git:
    """One repository.

    Args:
        path: Its work tree; it need not exist before `init`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._prefix = ["git", *(part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}"))]

    def run(self, *args: str) -> str:
        """Run one git command in the work tree and return what it prints.

        Raises:
            DemoError: Git is not installed, or the command failed; with git's own words.
        """
        try:
            done = subprocess.run(
                [*self._prefix, *args],
                cwd=self.path,
                env=environment(self.path),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
            )
        except OSError as error:
            msg = f"the demo needs git, and it cannot be started: {first_line(error)}"
            raise DemoError(msg) from None
        if done.returncode:
            msg = f"git {args[0]} failed in {self.path}: {first_line(done.stderr)}"
            raise DemoError(msg)
        return done.stdout

    def init(self) -> None:
        """Make the repository, with `main` as its branch and without anybody's template."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.run("init", "--quiet", "--template=", ".")
        self.run("symbolic-ref", "HEAD", "refs/heads/main")

    def checkout(self, branch: str, start: str) -> None:
        """Go to a branch that begins anew at `start`, dropping what is not committed."""
        self.run("checkout", "--quiet", "--force", "-B", branch, start)

    def commit(self, message: str, paths: Sequence[str]) -> str | None:
        """Commit these paths as they are; return the new commit, or `None` when nothing has changed."""
        self.run("add", "--", *paths)
        if not self.run("diff", "--cached", "--name-only"):
            return None
        self.run("commit", "--quiet", "--no-verify", "--message", message)
        return self.run("rev-parse", "--short", "HEAD").strip()

    def diff(self, base: str, path: str) -> str:
        """Return the unified diff of one path between a commit and the work tree."""
        return self.run("diff", "--no-color", "--no-ext-diff", "--no-textconv", base, "--", path)

    def committers(self) -> set[str]:
        """Return the e-mail addresses of all who have committed to any branch."""
        return set(self.run("log", "--all", "--format=%ce").split())
