"""Real repositories for the tests of the review."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.review.repositories import Repo


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with one commit on `main`."""
    made = Repo(tmp_path / "repo")
    made.write({"a.py": "def f(x):\n    return x + 1\n", "docs/readme.md": "# Title\n"})
    made.commit("first")
    return made


@pytest.fixture
def make_repo(tmp_path: Path) -> Callable[[str], Repo]:
    """Makes an empty repository of a name."""
    return lambda name: Repo(tmp_path / name)
