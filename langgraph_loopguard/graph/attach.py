"""Puts a guard on a builder, and refuses a guard that could not work there."""

from __future__ import annotations

import copy
import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph_loopguard.graph.caching import cache_inside
from langgraph_loopguard.graph.commands import may_command
from langgraph_loopguard.graph.edges import (
    ANYWHERE,
    Builder,
    declared_edges,
    gate_branches,
    gate_joins,
    gate_plain_edges,
    mark_last,
)
from langgraph_loopguard.graph.gate import ESCALATE
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.nodes import add_nodes, guards_of
from langgraph_loopguard.graph.recorder import Recorder
from langgraph_loopguard.graph.state import Shape
from langgraph_loopguard.graph.wiring import RECORDER, GatedPath, RecordedNode


def attach(builder: Builder, guard: LoopGuard) -> None:
    """Put the recorder on the loop's nodes, the gate on its edges, and the escalation nodes into the graph.

    Raises:
        ValueError: A node is unknown, no edge joins the nodes, or a guard of this name is there already.
    """
    check_fits(builder, guard)
    shape = Shape.of(builder)
    check_selectors(guard, shape)
    add_nodes(builder, guard, shape)
    for node in guard.nodes:
        gate_plain_edges(builder, guard, node, shape)
        gate_branches(builder, guard, node, shape)
    gate_joins(builder, guard, shape)
    for node in guard.nodes:
        _record(builder, guard, node, shape)


def add_guard(builder: Builder, guard: LoopGuard) -> None:
    """Add the escalation nodes and the channels for a guard whose nodes and edges were wired by hand.

    Raises:
        ValueError: As `attach`; or a node is not recorded, or an edge of the loop has no gate.
    """
    check_fits(builder, guard)
    _check_wired(builder, guard)
    shape = Shape.of(builder)
    check_selectors(guard, shape)
    add_nodes(builder, guard, shape)
    for node in guard.nodes:
        recorder = recorder_of(builder, node)
        if recorder is not None:
            recorder.shape, recorder.gated = shape, _is_gated(builder, node)
        for branch in builder.branches.get(node, {}).values():
            if isinstance(branch.path, GatedPath):
                branch.path.shape = shape
        mark_last(builder, node)


def check_fits(builder: Builder, guard: LoopGuard) -> None:
    """Refuse a guard that does not fit the builder.

    Raises:
        ValueError: With the parameter, its value, and what there is instead.
    """
    for parameter, node in [("nodes", node) for node in guard.nodes] + [("escalate_to", guard.escalate_to)]:
        if node is not None and node not in builder.nodes:
            names = ", ".join(sorted(_own_nodes(builder)))
            msg = f"{parameter}: there is no node {node!r}; the nodes are {names}"
            raise ValueError(msg)
    if any(known.name == guard.name for known in guards_of(builder)):
        msg = f"name: a guard named {guard.name!r} is on this graph already"
        raise ValueError(msg)
    edges = declared_edges(builder)
    if not any(_may_go(builder, edges, a, b) for a in guard.nodes for b in guard.nodes if a != b):
        listed = ", ".join(f"{source}->{target}" for source, target in sorted(edges))
        msg = f"nodes: there is no edge between {', '.join(guard.nodes)}; the edges are {listed}"
        raise ValueError(msg)


def check_selectors(guard: LoopGuard, shape: Shape) -> None:
    """Refuse selectors that name no key of the state (a scope key may stand in the argument of a `Send` only).

    Raises:
        ValueError: With the parameter, its value, and the keys there are.
    """
    for parameter, selector in (("artifact", guard.artifact), ("measure", guard.measure)):
        if isinstance(selector, str) and selector not in shape.channels:
            msg = f"{parameter}={selector!r} is no key of the state; its keys are {', '.join(sorted(shape.keys))}"
            raise ValueError(msg)


def _own_nodes(builder: Builder) -> Iterable[str]:
    return (
        name for name, spec in builder.nodes.items() if not name.startswith("loopguard_") and not spec.is_error_handler
    )


def _may_go(builder: Builder, edges: set[tuple[str, str]], source: str, target: str) -> bool:
    """Whether a node may hand over to another: by an edge, or by a `Command` that nothing declares."""
    out = {end for start, end in edges if start == source}
    if target in out or ANYWHERE in out or not out:
        return True
    runnable: Any = builder.nodes[source].runnable
    if isinstance(runnable, RecordedNode):
        runnable = runnable.inner
    function = getattr(runnable, "func", None) or getattr(runnable, "afunc", None)
    return function is None or may_command(function)


def _check_wired(builder: Builder, guard: LoopGuard) -> None:
    for node in guard.nodes:
        recorder = recorder_of(builder, node)
        if recorder is None or guard not in recorder.guards:
            msg = (
                f"node {node!r} is not recorded: add_node({node!r}, guard.node({node!r}, ...)), then guard.add_to(...)"
            )
            raise ValueError(msg)
        open_ends = {end for start, end in builder.edges if start == node}
        open_ends |= {end for starts, end in builder.waiting_edges if node in starts}
        for branch in builder.branches.get(node, {}).values():
            if not (isinstance(branch.path, GatedPath) and guard in branch.path.guards):
                open_ends |= set(branch.ends.values()) if branch.ends is not None else set(guard.nodes)
        for end in sorted(open_ends & set(guard.nodes) - {node}):
            msg = (
                f"edge {node}->{end} has no gate: add_conditional_edges({node!r}, *guard.edge({node!r}, ...)), "
                "or let guard_loop find the edges"
            )
            raise ValueError(msg)


def recorder_of(builder: Builder, node: str) -> Recorder | None:
    """Return the recorder around a node, however it got there."""
    runnable = builder.nodes[node].runnable
    if isinstance(runnable, RecordedNode):
        return runnable.recorder
    function = getattr(runnable, "func", None) or getattr(runnable, "afunc", None)
    found: Recorder | None = getattr(function, RECORDER, None)
    return found


def _is_gated(builder: Builder, node: str) -> bool:
    return any(isinstance(branch.path, GatedPath) for branch in builder.branches.get(node, {}).values())


def _record(builder: Builder, guard: LoopGuard, node: str, shape: Shape) -> None:
    spec = builder.nodes[node]
    runnable: Any = spec.runnable
    known = recorder_of(builder, node)
    recorder = Recorder(node, (*(known.guards if known else ()), guard), shape, _is_gated(builder, node))
    if isinstance(runnable, RecordedNode):
        runnable = RecordedNode(runnable.inner, recorder, runnable.plain)
    elif known is not None:  # recorded by hand: the function around the node holds its recorder
        known.guards, known.shape, known.gated = recorder.guards, recorder.shape, recorder.gated
    else:
        runnable = RecordedNode(runnable, recorder)
    ends = spec.ends
    if ends and any(end in guard.nodes for end in ends):
        ends = {**ends, ESCALATE: ""} if isinstance(ends, Mapping) else tuple(dict.fromkeys((*ends, ESCALATE)))
    builder.nodes[node] = dataclasses.replace(spec, runnable=runnable, ends=ends)
    cache_inside(builder, node)


def copy_builder(builder: Builder) -> Builder:
    """Return a builder that can be guarded without changing the given one."""
    out = copy.copy(builder)
    out.nodes = {name: dataclasses.replace(spec) for name, spec in builder.nodes.items()}
    out.edges = set(builder.edges)
    out.branches = defaultdict(dict, {source: dict(found) for source, found in builder.branches.items()})
    out.waiting_edges = set(builder.waiting_edges)
    out.channels, out.managed, out.schemas = dict(builder.channels), dict(builder.managed), dict(builder.schemas)
    out.compiled = False
    # `compile` has put the default error handler in, and would refuse to find it there again.
    added = "__default_error_handler__"
    if out.nodes.pop(added, None) is not None:
        for spec in out.nodes.values():
            if spec.error_handler_node == added:
                spec.error_handler_node = None
    return out
