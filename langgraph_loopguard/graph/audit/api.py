"""`audit` and `assert_guarded`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from langgraph_loopguard.graph.audit.builders import read_graph
from langgraph_loopguard.graph.audit.cycles import LIMIT
from langgraph_loopguard.graph.audit.level import wire
from langgraph_loopguard.graph.audit.report import AuditReport
from langgraph_loopguard.graph.audit.verdict import judge


def audit(graph: Any, *, name: str | None = None, limit: int = LIMIT) -> AuditReport:
    """Find the cycles of a graph and say of each whether a guard cuts it.

    Edges are read from the graph and, where it does not declare them, from the code of its routers and nodes; nothing
    of it is run. Compiled graphs inside nodes, agents included, are looked into at any depth. A graph is guarded when
    what is left without its guarded edges has no cycle.

    Args:
        graph: A `StateGraph`, or a compiled one.
        name: What the report calls it. Default: the compiled graph's name.
        limit: Cycles to list of each graph, of the open and of the guarded ones. Whether any is open is exact anyway.

    Returns:
        The report: `report.ok`, `report.open`, `report.cycles`; `print(report)`.

    Raises:
        TypeError: `graph` is neither a `StateGraph` nor a compiled one.
        ValueError: `limit` is below 1.
        ImportError: The extra `audit` is not installed.

    Example:
        ```python
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph_loopguard import audit

        builder = StateGraph(MessagesState)
        builder.add_node("model", lambda state: {})
        builder.add_node("tools", lambda state: {})
        builder.add_edge(START, "model")
        builder.add_conditional_edges("model", lambda state: "tools", ["tools", "__end__"])
        builder.add_edge("tools", "model")

        (cycle,) = audit(builder).open
        assert str(cycle) == "model -> tools -> model"
        assert cycle.verdict == "missing"
        ```
    """
    if limit < 1:
        msg = f"limit must be at least 1, got {limit}"
        raise ValueError(msg)
    return AuditReport(graphs=tuple(judge(level, limit) for level in wire(read_graph(graph, name)).levels()))


def assert_guarded(graph: Any, *, allow: Iterable[str | Collection[str]] = ()) -> None:
    """Fail when a cycle of a graph is open, for tests.

    Args:
        graph: As in `audit`.
        allow: Cycles that are known and meant, each by the names of its nodes: `"model -> tools"` or
            `("model", "tools")`. A graph's name before a slash makes it the cycle of that graph only.

    Raises:
        AssertionError: A cycle is open that is not allowed; with the report.
        ValueError: An entry of `allow` is no open cycle (any more).

    Example:
        ```python
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph_loopguard import assert_guarded, guard_loop

        builder = StateGraph(MessagesState)
        builder.add_node("reviewer", lambda state: {})
        builder.add_node("fixer", lambda state: {})
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "fixer")
        builder.add_edge("fixer", "reviewer")
        guard_loop(builder, "reviewer", "fixer")

        assert_guarded(builder)
        ```
    """
    report = audit(graph).without(allow)
    if not report.ok:
        raise AssertionError(f"the graph has open cycles\n{report}")
