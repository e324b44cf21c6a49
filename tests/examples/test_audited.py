"""Every example is guarded, as a graph and as source, and no longer is when its guard is taken out."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import warnings
from pathlib import Path
from typing import Any

import pytest

import langgraph_loopguard
from langgraph_loopguard import assert_guarded, audit
from langgraph_loopguard.graph.audit.source import audit_source

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = [*sorted(EXAMPLES.glob("*.py")), EXAMPLES / "server" / "graph.py"]
WITHOUT_A_GRAPH = {"functional_api"}
GUARDS = re.compile(r"^.*(guard_loop\(builder|guard_compiled\(agent|guard\.add_to\(builder).*$", re.MULTILINE)

GRAPHS = [file for file in FILES if file.stem not in WITHOUT_A_GRAPH]


@pytest.mark.parametrize("file", GRAPHS, ids=lambda file: file.stem)
def test_the_graph_is_clean_and_red_without_its_guard(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example runs; its graph is looked at before its guard and after."""
    before: list[bool] = []
    after: list[Any] = []

    def guard_loop(builder: Any, *nodes: str, **settings: Any) -> Any:
        before.append(audit(builder).ok)
        after.append(builder)
        return langgraph_loopguard.graph.api.guard_loop(builder, *nodes, **settings)

    def guard_compiled(graph: Any, *nodes: str, **settings: Any) -> Any:
        before.append(audit(graph).ok)
        after.append(langgraph_loopguard.graph.api.guard_compiled(graph, *nodes, **settings))
        return after[-1]

    add_to = langgraph_loopguard.LoopGuard.add_to

    def add(self: Any, builder: Any) -> Any:
        before.append(audit(builder).ok)
        after.append(builder)
        return add_to(self, builder)

    monkeypatch.setattr(langgraph_loopguard, "guard_loop", guard_loop)
    monkeypatch.setattr(langgraph_loopguard, "guard_compiled", guard_compiled)
    monkeypatch.setattr(langgraph_loopguard.LoopGuard, "add_to", add)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # langgraph-supervisor stands on a deprecated function
        runpy.run_path(str(file))
    assert [False] == before
    assert_guarded(after[0])


@pytest.mark.parametrize("file", GRAPHS, ids=lambda file: file.stem)
def test_the_source_is_clean_and_red_without_its_guard(file: Path, tmp_path: Path) -> None:
    """The same by reading: the guard's line is taken out of the text."""
    report = audit_source(file)
    assert report.cycles
    assert report.ok, report
    text, times = GUARDS.subn("", file.read_text())
    assert 1 == times
    (tmp_path / file.name).write_text(text)
    assert not audit_source(tmp_path / file.name).ok


def test_what_has_no_graph_has_no_cycle() -> None:
    """The functional API has no edges to audit."""
    for file in FILES:
        if file.stem in WITHOUT_A_GRAPH:
            assert () == audit_source(file).graphs
