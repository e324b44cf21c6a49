"""Reads a live graph: a builder, or a compiled graph, and the compiled graphs inside its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol

from langgraph_loopguard.graph.attach import recorder_of
from langgraph_loopguard.graph.audit import live
from langgraph_loopguard.graph.audit.level import Branch, Function, Level, Node
from langgraph_loopguard.graph.audit.wiring import Facts, Guard
from langgraph_loopguard.graph.commands import may_command
from langgraph_loopguard.graph.edges import Builder, JoinGate
from langgraph_loopguard.graph.escalation import ASK
from langgraph_loopguard.graph.gate import ESCALATE
from langgraph_loopguard.graph.nodes import guards_of
from langgraph_loopguard.graph.wiring import GatedPath

LIMITS = ("ModelCallLimitMiddleware", "ToolCallLimitMiddleware")
"""LangChain's own limits. What they count per run starts again at every resume."""

NO_LIMIT = 9_999
"""A recursion limit from here on is none: LangGraph's default, and that of `create_agent`."""

Compiled = CompiledStateGraph[Any, Any, Any, Any]


def read_graph(graph: Any, name: str | None = None) -> Level:
    """Return what a builder or a compiled graph declares.

    Args:
        graph: A `StateGraph`, or what its `compile` returns.
        name: What the report calls it. Default: the compiled graph's name.

    Raises:
        TypeError: `graph` is neither.
    """
    if isinstance(graph, CompiledStateGraph):
        return _read(graph.builder, name or graph.get_name(), graph, frozenset())
    if isinstance(graph, StateGraph):
        return _read(graph, name or "graph", None, frozenset())
    msg = f"graph must be a StateGraph or a compiled one, got {type(graph).__name__}"
    raise TypeError(msg)


def _read(builder: Builder, name: str, compiled: Compiled | None, around: frozenset[int]) -> Level:
    level = Level(name)
    limit = (compiled.config or {}).get("recursion_limit") if compiled is not None else None
    level.recursion_limit = limit if limit is not None and limit < NO_LIMIT else None
    level.guards = [
        Guard(guard.name, guard.nodes, guard.mode == "observe", guard.escalate_to) for guard in guards_of(builder)
    ]
    joins = {node: spec.runnable for node, spec in builder.nodes.items() if isinstance(spec.runnable, JoinGate)}
    for node, spec in builder.nodes.items():
        if node not in (ESCALATE, ASK) and node not in joins:
            level.nodes[node] = _node(builder, node, spec, level, around | {id(builder)})
    if compiled is not None:
        for node in _asked(compiled, level):
            level.nodes[node].facts |= Facts(asks_person=True)
    level.plain = [(source, target, ()) for source, target in sorted(builder.edges) if target not in joins]
    level.joins = [(tuple(starts), end, ()) for starts, end in sorted(builder.waiting_edges) if end not in joins]
    for gate in joins.values():
        gates = tuple(guard.name for guard in gate.guards if gate.source_for(guard) is not None)
        level.joins.append((gate.starts, gate.target, gates))
    level.branches = [
        _branch(source, branch, spec)
        for source, branches in builder.branches.items()
        for branch, spec in branches.items()
    ]
    return level


def _asked(compiled: Compiled, level: Level) -> set[str]:
    """Nodes before or after which the graph stops for a person."""
    found: set[str] = set()
    for asked in (compiled.interrupt_before_nodes, compiled.interrupt_after_nodes):
        found |= set(level.nodes) if asked == "*" else set(asked) & set(level.nodes)
    return found


def _branch(source: str, name: str, spec: Any) -> Branch:
    path = spec.path
    gate = path if isinstance(path, GatedPath) else None
    code = None if live.is_library(path) else live.code_of(path)
    ends = tuple(end for end in spec.ends.values() if end != ESCALATE) if spec.ends is not None else None
    gates = tuple(guard.name for guard in gate.guards) if gate is not None else ()
    return Branch(source, name, Function(code), ends, gates, fixed=gate is not None and gate.path is None)


def _node(builder: Builder, name: str, spec: Any, level: Level, around: frozenset[int]) -> Node:
    runnable: Any = spec.runnable
    recorder = recorder_of(builder, name)
    tools = getattr(runnable, "tools_by_name", None)
    bound = next((bound for _, bound, _ in live.functions(runnable)), {})
    kinds = {type(value).__name__ for value in bound.values()}
    node = Node(
        ends=tuple(end for end in (spec.ends or ()) if end != ESCALATE),
        gates=tuple(guard.name for guard in recorder.guards) if recorder is not None else (),
        tools=tuple(_function(tool) for tool in tools.values()) if tools is not None else None,
        place=live.place_of(runnable),
        handler=spec.error_handler_node,
    )
    if live.is_library(runnable):
        node.facts = Facts(limit=next((limit for limit in LIMITS if limit in kinds), None), asks_model=True)
    else:
        node.function = _function(runnable)
    for graph in _graphs_in(runnable, level):
        if id(graph.builder) not in around:
            node.inner.append(_read(graph.builder, f"{level.name}/{name}", graph, around))
    return node


def _function(action: Any) -> Function:
    return Function(live.code_of(action), may_command=any(map(may_command, live.callables(action))))


def _graphs_in(runnable: Any, level: Level) -> Iterator[Compiled]:
    seen: set[int] = set()
    for value in live.agents_in(runnable):
        if isinstance(value, CompiledStateGraph):
            if id(value.builder) not in seen:
                seen.add(id(value.builder))
                yield value
        elif isinstance(value, PregelProtocol):
            level.notes.append(f"{type(value).__name__} is not a StateGraph: what it does is unknown")
