"""Runs the tools as processes of their own, and counts them: every tool run in the table was one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from langgraph_loopguard.demo.errors import DemoError, first_line
from langgraph_loopguard.demo.findings import Finding
from langgraph_loopguard.demo.tools import Check, Command

WORKERS = min(4, os.cpu_count() or 1)
"""Checks of one review that run at the same time."""

DROPPED = ("FORCE_COLOR", "CLICOLOR_FORCE", "PYTHONWARNINGS")


class Shell:
    """Runs tools in one directory.

    Attributes:
        cwd: The directory.
        runs: Processes started so far.
    """

    def __init__(self, cwd: Path) -> None:
        self.cwd = cwd
        self.runs = 0

    def find(self, checks: Sequence[Check], files: Sequence[str]) -> list[Finding]:
        """Run checks, side by side, and return what they find, in the order of the checks.

        Raises:
            DemoError: A tool failed: it went wrong and found nothing.
        """
        self.runs += len(checks)
        with ThreadPoolExecutor(max_workers=WORKERS) as pool:
            results = list(pool.map(lambda check: self._run(check.command, files), checks))
        found: list[Finding] = []
        for check, done in zip(checks, results, strict=True):
            own = check.read(done.stdout)
            if done.returncode and not own:
                raise _failed(check.command, files, done)
            found += own
        return found

    def fix(self, command: Command, files: Sequence[str]) -> None:
        """Run a command that changes files. A linter that leaves findings behind has not failed.

        Raises:
            DemoError: The tool failed.
        """
        self.runs += 1
        done = self._run(command, files)
        if done.returncode and (done.returncode != 1 or "Traceback" in done.stderr):
            raise _failed(command, files, done)

    def _run(self, command: Command, files: Sequence[str]) -> subprocess.CompletedProcess[str]:
        env = {key: value for key, value in os.environ.items() if key not in DROPPED}
        # Black's cache would answer for a file it has seen; it goes where it is deleted with the repository.
        env |= {"PYTHONUTF8": "1", "NO_COLOR": "1", "BLACK_CACHE_DIR": str(self.cwd / ".git" / "black-cache")}
        return subprocess.run(
            [sys.executable, "-W", "ignore", "-m", *command, *files],
            cwd=self.cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )


def _failed(command: Command, files: Sequence[str], done: subprocess.CompletedProcess[str]) -> DemoError:
    lines = done.stderr.strip().splitlines() or ["it said nothing"]
    why = first_line(lines[-1] if lines[0].startswith("Traceback") else lines[0])
    return DemoError(f"{command[0]} failed on {' '.join(files)} (exit {done.returncode}): {why}")
