"""The gate on each form of edge that a builder declares, and what those edges are."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import StateGraph
from langgraph.types import Command

from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.escalation import ASK
from langgraph_loopguard.graph.gate import ESCALATE, pass_gate
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.state import Shape, StateView
from langgraph_loopguard.graph.wiring import GatedPath

Builder = StateGraph[Any, Any, Any, Any]

BRANCH = "loopguard"
"""Name of the conditional edge that stands for a node's guarded plain edges."""

ANYWHERE = "*"
"""Stands for the target of a router without a map."""


def declared_edges(builder: Builder) -> set[tuple[str, str]]:
    """Return the edges that a builder declares, of whatever form, without the guard's own."""
    edges = set(builder.edges)
    edges |= {(start, end) for starts, end in builder.waiting_edges for start in starts}
    for source, branches in builder.branches.items():
        for branch in branches.values():
            edges |= {(source, end) for end in (branch.ends.values() if branch.ends is not None else [ANYWHERE])}
    for name, spec in builder.nodes.items():
        edges |= {(name, end) for end in (spec.ends or ())}
        if isinstance(spec.runnable, JoinGate):
            edges |= {(start, spec.runnable.target) for start in spec.runnable.starts}
    return {edge for edge in edges if not any(name in (ESCALATE, ASK) or _is_join(builder, name) for name in edge)}


def _is_join(builder: Builder, name: str) -> bool:
    return name in builder.nodes and isinstance(builder.nodes[name].runnable, JoinGate)


def gate_plain_edges(builder: Builder, guard: LoopGuard, source: str, shape: Shape) -> None:
    """Make the source's plain edges into the loop one conditional edge with the gate in it."""
    targets = {end for start, end in builder.edges if start == source and end in guard.nodes and end != source}
    if not targets:
        return
    for target in targets:
        builder.edges.discard((source, target))
    known = builder.branches[source].pop(BRANCH, None)
    guards: tuple[LoopGuard, ...] = ()
    if known is not None and isinstance(known.path, GatedPath):
        guards = known.path.guards
        targets |= set(known.path.targets)
    ends: dict[Hashable, str] = {**{target: target for target in sorted(targets)}, ESCALATE: ESCALATE}
    path = GatedPath(guards, source, None, targets=sorted(targets), ends=ends, shape=shape, name=BRANCH)
    builder.add_conditional_edges(source, path, cast("Any", ends))
    builder.branches[source][BRANCH] = _pregel.without_reader(builder.branches[source][BRANCH])


def gate_branches(builder: Builder, guard: LoopGuard, source: str, shape: Shape) -> None:
    """Put the gate into every conditional edge of the source: a router with a map may still return a `Send`."""
    branches = builder.branches.get(source, {})
    for name, branch in list(branches.items()):
        known = branch.path if isinstance(branch.path, GatedPath) else None
        ends = {**branch.ends, ESCALATE: ESCALATE} if branch.ends is not None else None
        path = GatedPath(
            (*(known.guards if known else ()), guard),
            source,
            known.path if known else branch.path,
            targets=known.targets if known else (),
            ends=ends,
            shape=shape,
            name=name,
        )
        branches[name] = branch._replace(path=path, ends=ends)
    mark_last(builder, source)


def mark_last(builder: Builder, source: str) -> None:
    """Let only the last gate of a node write a visit that crosses no edge: LangGraph runs them in this order."""
    gates = [branch.path for branch in builder.branches.get(source, {}).values() if isinstance(branch.path, GatedPath)]
    for gate in gates:
        gate.last = gate is gates[-1]


def gate_joins(builder: Builder, guard: LoopGuard, shape: Shape) -> None:
    """Gate edges that join several sources.

    Such an edge fires when the last source is done, which no source's own step can know: so the gate is a node here,
    between the join and its target.
    """
    for name, spec in list(builder.nodes.items()):
        join = spec.runnable
        if isinstance(join, JoinGate) and join.source_for(guard) is not None:
            more = JoinGate((*join.guards, guard), join.starts, join.target, shape)
            builder.nodes[name] = dataclasses.replace(spec, runnable=more)
    for starts, target in sorted(builder.waiting_edges):
        join = JoinGate((guard,), tuple(starts), target, shape)
        if join.source_for(guard) is None:
            continue
        builder.waiting_edges.discard((starts, target))
        name = f"loopguard_join_{len(builder.nodes)}"
        builder.add_node(name, join, destinations=(target, ESCALATE))
        builder.add_edge(list(starts), name)


class JoinGate(Runnable[Any, Any]):
    """The gate of an edge that joins several sources, as a node."""

    name = "loopguard_join"

    def __init__(self, guards: tuple[LoopGuard, ...], starts: tuple[str, ...], target: str, shape: Shape) -> None:
        self.guards = guards
        self.starts = starts
        self.target = target
        self.shape = shape

    def source_for(self, guard: LoopGuard) -> str | None:
        """The node of a guard's loop that hands over here; `None` when the edge is not in the loop."""
        if self.target not in guard.nodes:
            return None
        return next((start for start in self.starts if start in guard.nodes and start != self.target), None)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Judge, and go to the target or to the escalation."""
        if config is None:
            msg = "a gate runs in a graph only"
            raise ValueError(msg)
        view = StateView(config, self.shape, input)
        watches = [(guard, source) for guard in self.guards if (source := self.source_for(guard)) is not None]
        return Command(goto=ESCALATE if pass_gate(watches, [self.target], view, config) else self.target)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same as `invoke`."""
        return self.invoke(input, config)
