"""`AuditReport`: what an audit has found, in the forms that people and machines read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict

from langgraph_loopguard.graph.audit.wiring import Edge, Place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rich.console import Group

Verdict = Literal["guarded", "missing", "weak", "ineffective", "bypassed", "unknown"]
"""What is to be said about one cycle.

- `guarded`: a guard cuts it;
- `missing`: nothing bounds it (an exit that a model decides is no bound);
- `weak`: only something bounds it that is not of the loop, or that ends it like a success: the recursion limit, a
  message count, a counter of its own, a limit of LangChain's that a resume renews;
- `ineffective`: there is a counter, and it does not count here: in a router, or on another way;
- `bypassed`: it goes round a guard;
- `unknown`: where a node goes cannot be read, so there may be one.
"""


class Cycle(BaseModel):
    """One cycle and the verdict on it."""

    model_config = ConfigDict(frozen=True)

    graph: str
    """The graph, and the nodes that it is inside of: `graph/agent`."""
    nodes: tuple[str, ...]
    verdict: Verdict
    reason: str
    guards: tuple[str, ...] = ()
    """Names of the guards that cut it."""
    place: Place | None = None
    """Where its first node is written."""

    @property
    def open(self) -> bool:
        """Whether no guard cuts it."""
        return self.verdict != "guarded"

    def __str__(self) -> str:
        ways = [*self.nodes, "?" if self.verdict == "unknown" else self.nodes[0]]
        return " -> ".join(ways)


class AuditedGraph(BaseModel):
    """One level of a graph: its nodes and edges, without the guards' own, and its cycles."""

    model_config = ConfigDict(frozen=True)

    name: str
    place: Place | None = None
    nodes: tuple[str, ...]
    edges: tuple[Edge, ...]
    cycles: tuple[Cycle, ...]
    complete: bool = True
    """False when there are more cycles than are listed."""
    notes: tuple[str, ...] = ()

    @property
    def open(self) -> tuple[Cycle, ...]:
        """The cycles that no guard cuts."""
        return tuple(cycle for cycle in self.cycles if cycle.open)


class AuditReport(BaseModel):
    """The cycles of one or more graphs, with a verdict each.

    Example:
        ```python
        from langgraph.graph import START, MessagesState, StateGraph
        from langgraph_loopguard import audit, guard_loop

        builder = StateGraph(MessagesState)
        builder.add_node("reviewer", lambda state: {})
        builder.add_node("fixer", lambda state: {})
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "fixer")
        builder.add_edge("fixer", "reviewer")
        assert not audit(builder).ok

        guard_loop(builder, "reviewer", "fixer")
        assert audit(builder).ok
        ```
    """

    model_config = ConfigDict(frozen=True)

    schema_version: Literal[1] = 1
    graphs: tuple[AuditedGraph, ...]
    """Each graph, and each compiled graph inside one of its nodes."""
    notes: tuple[str, ...] = ()

    @property
    def cycles(self) -> tuple[Cycle, ...]:
        """All cycles of all graphs."""
        return tuple(cycle for graph in self.graphs for cycle in graph.cycles)

    @property
    def open(self) -> tuple[Cycle, ...]:
        """The cycles that no guard cuts, those that are only possible (`unknown`) among them."""
        return tuple(cycle for cycle in self.cycles if cycle.open)

    @property
    def ok(self) -> bool:
        """Whether no cycle is open."""
        return not self.open

    def without(self, allow: Iterable[str | Collection[str]]) -> AuditReport:
        """Return the report without some cycles that are known and meant.

        Args:
            allow: Cycles, each by the names of its nodes: `"model -> tools"`, or `("model", "tools")`. A graph's name
                before a slash makes it the cycle of that graph only: `"graph/agent/model -> tools"`.

        Raises:
            ValueError: An entry is no open cycle of this report (any more).
        """
        from langgraph_loopguard.graph.audit.allow import without

        return without(self, allow)

    def to_json(self) -> str:
        """Return the report as JSON."""
        return json.dumps({"ok": self.ok, **self.model_dump(mode="json")}, indent=2)

    def to_mermaid(self) -> str:
        """Return all graphs as one Mermaid flowchart: open cycles in red, guarded edges in green."""
        from langgraph_loopguard.graph.audit.mermaid import to_mermaid

        return to_mermaid(self)

    def to_sarif(self) -> dict[str, Any]:
        """Return the open cycles as a SARIF 2.1.0 log, for code hosts that show it beside the code."""
        from langgraph_loopguard.graph.audit.sarif import to_sarif

        return to_sarif(self)

    def to_text(self) -> str:
        """Return the report as plain text."""
        from langgraph_loopguard.graph.audit.text import to_text

        return to_text(self)

    def __rich__(self) -> Group:
        from langgraph_loopguard.graph.audit.text import to_rich

        return to_rich(self)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        from langgraph_loopguard.graph.audit.html import to_html

        return to_html(self)
