"""One run of the whole demo, for all tests that look at its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.demo.playing import Played

for tool in ("rich", "ruff", "black", "isort", "yapf", "pycodestyle", "autopep8", "langgraph.checkpoint.sqlite"):
    pytest.importorskip(tool, reason="the demo extra is not installed")


@pytest.fixture(scope="session")
def played(tmp_path_factory: pytest.TempPathFactory) -> Played:
    """All twenty pull requests, unguarded and guarded."""
    from langgraph_loopguard.demo.agents import tool_agents
    from langgraph_loopguard.demo.batch import Settings, run_batch
    from langgraph_loopguard.demo.catalogue import CATALOGUE
    from langgraph_loopguard.demo.project import make_project
    from tests.demo.playing import BOUND, Played

    work, opened = make_project(tmp_path_factory.mktemp("demo") / "here", CATALOGUE)
    watched: list[tuple[str, str, int]] = []
    rows = run_batch(
        work,
        opened,
        tool_agents,
        Settings(bound=BOUND),
        lambda pull, run, cycle: watched.append((pull.name, run, cycle)),
    )
    return Played(work, opened, rows, watched)
