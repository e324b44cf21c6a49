"""Puts a guard on a builder or a compiled graph, and refuses a guard that could not work there."""

from __future__ import annotations

import copy
import dataclasses
import logging
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import END, START
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from typing_extensions import TypedDict, get_type_hints

from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import (
    ESCALATION,
    HISTORY,
    LEDGERS,
    OUTCOME,
    GuardChannels,
    GuardedState,
    flatten,
)
from langgraph_loopguard.graph.escalation import ASK, AskNode, EscalationNode
from langgraph_loopguard.graph.gate import ESCALATE, pass_gate
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.recorder import Recorder
from langgraph_loopguard.graph.state import Shape, StateView
from langgraph_loopguard.graph.wiring import RECORDER, GatedPath, RecordedNode

Builder = StateGraph[Any, Any, Any, Any]

BRANCH = "loopguard"
"""Name of the conditional edge that stands for a node's guarded plain edges."""

TURN = "loopguard_turn"

typed_dict: Any = TypedDict
"""`TypedDict` as a function: the checker allows it only with literals."""

logger = logging.getLogger("langgraph_loopguard")


def attach(builder: Builder, guard: LoopGuard) -> None:
    """Put the recorder on the loop's nodes, the gate on its edges, and the escalation nodes into the graph.

    Raises:
        ValueError: A node is unknown, no edge joins the nodes, or a guard of this name is there already.
    """
    check_fits(builder, guard)
    shape = Shape.of(builder)
    _check_selectors(guard, shape)
    _add_nodes(builder, guard, shape)
    for node in guard.nodes:
        _gate_plain_edges(builder, guard, node, shape)
        _gate_branches(builder, guard, node, shape)
    _gate_joins(builder, guard, shape)
    for node in guard.nodes:
        _record(builder, guard, node, shape)


def add_guard(builder: Builder, guard: LoopGuard) -> None:
    """Add the escalation nodes and the channels for a guard whose nodes and edges were wired by hand."""
    check_fits(builder, guard)
    shape = Shape.of(builder)
    _check_selectors(guard, shape)
    _add_nodes(builder, guard, shape)
    recorded = [node for node in guard.nodes if (r := _recorder(builder, node)) is not None and guard in r.guards]
    gated = {
        node: any(isinstance(b.path, GatedPath) and guard in b.path.guards for b in builder.branches[node].values())
        for node in guard.nodes
        if node in builder.branches
    }
    if missing := [node for node in guard.nodes if node not in recorded]:
        msg = f"nodes {missing!r} are not recorded: add_node(name, guard.node(name, action)), then guard.add_to(builder)"
        raise ValueError(msg)
    for node in guard.nodes:
        recorder = cast("Recorder", _recorder(builder, node))
        recorder.shape, recorder.gated = shape, gated.get(node, False)
        for branch in builder.branches.get(node, {}).values():
            if isinstance(branch.path, GatedPath):
                branch.path.shape = shape


def check_fits(builder: Builder, guard: LoopGuard) -> None:
    """Refuse a guard that does not fit the builder.

    Raises:
        ValueError: With the parameter, its value, and what there is instead.
    """
    for node in guard.nodes:
        if node not in builder.nodes:
            msg = f"nodes: there is no node {node!r}; the nodes are {', '.join(sorted(_own_nodes(builder)))}"
            raise ValueError(msg)
    if guard.escalate_to is not None and guard.escalate_to not in builder.nodes:
        msg = f"escalate_to: there is no node {guard.escalate_to!r}; the nodes are {', '.join(sorted(_own_nodes(builder)))}"
        raise ValueError(msg)
    if any(known.name == guard.name for known in guards_of(builder)):
        msg = f"name: a guard named {guard.name!r} is on this graph already"
        raise ValueError(msg)
    if not any(
        _may_go(builder, source, target) for source in guard.nodes for target in guard.nodes if source != target
    ):
        edges = ", ".join(f"{source}->{target}" for source, target in sorted(declared_edges(builder)))
        msg = f"nodes: there is no edge between {', '.join(guard.nodes)}; the edges are {edges}"
        raise ValueError(msg)


def guards_of(builder: Builder) -> tuple[LoopGuard, ...]:
    """Return the guards on a builder."""
    spec = builder.nodes.get(ESCALATE)
    return spec.runnable.guards if spec is not None and isinstance(spec.runnable, EscalationNode) else ()


def declared_edges(builder: Builder) -> set[tuple[str, str]]:
    """Return the edges that a builder declares, of whatever form; `"*"` stands for a router without a map."""
    edges = set(builder.edges)
    edges |= {(start, end) for starts, end in builder.waiting_edges for start in starts}
    for source, branches in builder.branches.items():
        for branch in branches.values():
            edges |= {(source, end) for end in (branch.ends.values() if branch.ends is not None else ["*"])}
    for name, spec in builder.nodes.items():
        edges |= {(name, end) for end in (spec.ends or ())}
    return {(source, end) for source, end in edges if ESCALATE not in (source, end) and source != ASK}


def _may_go(builder: Builder, source: str, target: str) -> bool:
    """Whether a node may hand over to another. One that declares no way at all may route by `Command`."""
    out = {end for start, end in declared_edges(builder) if start == source}
    return target in out or "*" in out or not out or _has_graph(builder.nodes[source].runnable)


def _has_graph(runnable: Any) -> bool:
    inner = runnable.inner if isinstance(runnable, RecordedNode) else runnable
    return isinstance(inner, CompiledStateGraph)


def _own_nodes(builder: Builder) -> Iterable[str]:
    return (name for name, spec in builder.nodes.items() if not name.startswith("loopguard_") and not spec.is_error_handler)


def _check_selectors(guard: LoopGuard, shape: Shape) -> None:
    for parameter, selector in (("key", guard.key), ("artifact", guard.artifact), ("measure", guard.measure)):
        if not isinstance(selector, str) or selector in shape.channels:
            continue
        if parameter == "key":
            continue  # it may stand in the argument of a Send only
        msg = f"{parameter}={selector!r} is no key of the state; its keys are {', '.join(sorted(shape.keys))}"
        raise ValueError(msg)


# -- nodes and channels -------------------------------------------------------------------------------------------


def _add_nodes(builder: Builder, guard: LoopGuard, shape: Shape) -> None:
    guards = (*guards_of(builder), guard)
    if len(guards) == 1:
        for node in (ESCALATE, ASK):
            if node in builder.nodes:
                msg = f"the node name {node!r} is the guard's own, and taken"
                raise ValueError(msg)
        channels = _channels_beside(builder)
        builder.add_node(ESCALATE, EscalationNode(ESCALATE, guards, shape), input_schema=channels)
        builder.add_node(ASK, AskNode(ASK, guards, shape), input_schema=channels)
        _join_output(builder)
    ways = {guard.escalate_to for guard in guards if guard.escalate_to is not None}
    nodes = {node for guard in guards for node in guard.nodes}
    for name, kind, ends in (
        (ESCALATE, EscalationNode, {ASK, END} | ways),
        (ASK, AskNode, {END} | nodes),
    ):
        spec = builder.nodes[name]
        builder.nodes[name] = dataclasses.replace(
            spec, runnable=kind(name, guards, shape), ends=tuple(sorted(ends))
        )
    if guard.per == "turn":
        known = builder.branches[START].pop(TURN, None)
        turning = (*(known.path.guards if known is not None else ()), guard)  # type: ignore[attr-defined]
        builder.add_conditional_edges(START, TurnGate(turning), {})


def _channels_beside(builder: Builder) -> type[Any]:
    """Return the guard's channels, less those that the state declares itself (by `GuardedState` or as plain keys)."""
    hints = get_type_hints(GuardChannels, include_extras=True)
    taken = [key for key in (ESCALATION, OUTCOME, "escalations") if key in builder.channels]
    if not taken:
        return GuardChannels
    return cast(
        "type[Any]",
        typed_dict("GuardChannels", {key: hint for key, hint in hints.items() if key not in taken}),
    )


def _join_output(builder: Builder) -> None:
    """Let `escalation` and `outcome` stand in what `invoke` returns, for states that are dicts."""
    output = builder.output_schema
    if not (isinstance(output, type) and issubclass(output, dict)):
        return
    schema = builder.schemas[output]
    missing = [key for key in (ESCALATION, OUTCOME) if key not in schema]
    if not missing:
        return
    hints = get_type_hints(output, include_extras=True)
    extra = get_type_hints(GuardedState, include_extras=True)
    joined = typed_dict(output.__name__, {**hints, **{key: extra[key] for key in missing}}, total=False)
    builder.schemas[joined] = {**schema, **{key: builder.channels[key] for key in missing}}
    builder.output_schema = joined


class TurnGate(Runnable[Any, Any]):
    """A conditional edge on `START` that leads nowhere: it runs for new inputs only, and renews budgets per turn."""

    name = TURN

    def __init__(self, guards: tuple[LoopGuard, ...]) -> None:
        self.guards = guards

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[str]:
        """Write the turn; go nowhere."""
        if config is not None:
            found = _pregel.read(config, (LEDGERS, HISTORY), fresh=False)
            start = len(flatten(found.get(HISTORY)))
            events = [
                {
                    **guard.stamp,
                    "scope": None,
                    "event": "turn",
                    "history_from": start,
                }
                for guard in self.guards
                if (found.get(LEDGERS) or {}).get(guard.name)
            ]
            if events:
                _pregel.write(config, [(LEDGERS, events)])
        return []

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> list[str]:
        """The same as `invoke`."""
        return self.invoke(input, config)


# -- edges --------------------------------------------------------------------------------------------------------


def _gate_plain_edges(builder: Builder, guard: LoopGuard, source: str, shape: Shape) -> None:
    targets = sorted(end for start, end in builder.edges if start == source and end in guard.nodes and end != source)
    if not targets:
        return
    for target in targets:
        builder.edges.discard((source, target))
    known = builder.branches[source].pop(BRANCH, None)
    guards: tuple[LoopGuard, ...] = ()
    if known is not None and isinstance(known.path, GatedPath):
        guards = known.path.guards
        targets = sorted({*known.path.targets, *targets})
    ends: dict[Hashable, str] = {**{target: target for target in targets}, ESCALATE: ESCALATE}
    path = GatedPath(guards, source, None, targets=targets, ends=ends, shape=shape, name=BRANCH)
    builder.add_conditional_edges(source, path, cast("Any", ends))
    builder.branches[source][BRANCH] = _pregel.without_reader(builder.branches[source][BRANCH])


def _gate_branches(builder: Builder, guard: LoopGuard, source: str, shape: Shape) -> None:
    for name, branch in list(builder.branches.get(source, {}).items()):
        known = branch.path if isinstance(branch.path, GatedPath) else None
        path = GatedPath(
            (*(known.guards if known else ()), guard),
            source,
            known.path if known else branch.path,
            targets=known.targets if known else (),
            ends=branch.ends,
            shape=shape,
            name=name,
        )
        ends = {**branch.ends, ESCALATE: ESCALATE} if branch.ends is not None else None
        path.ends = ends
        builder.branches[source][name] = branch._replace(path=path, ends=ends)


def _gate_joins(builder: Builder, guard: LoopGuard, shape: Shape) -> None:
    """Gate edges that join several sources.

    Such an edge fires when the last source is done, which no source's own step can know: so the gate is a node here,
    between the join and its target.
    """
    for starts, target in sorted(builder.waiting_edges):
        sources = [start for start in starts if start in guard.nodes and start != target]
        if target not in guard.nodes or not sources:
            continue
        name = f"loopguard_join_{target}_{len(builder.nodes)}"
        builder.waiting_edges.discard((starts, target))
        builder.add_node(name, JoinGate(name, guard, sources[0], target, shape), destinations=(target, ESCALATE))
        builder.add_edge(list(starts), name)


class JoinGate(Runnable[Any, Any]):
    """The gate of an edge that joins several sources, as a node."""

    def __init__(self, name: str, guard: LoopGuard, source: str, target: str, shape: Shape) -> None:
        self.name = name
        self.guard = guard
        self.source = source
        self.target = target
        self.shape = shape

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Judge, and go to the target or to the escalation."""
        if config is None:
            msg = "a gate runs in a graph only"
            raise ValueError(msg)
        view = StateView(config, self.shape, input)
        denied = pass_gate((self.guard,), self.source, [self.target], view, config)
        return Command(goto=ESCALATE if denied else self.target)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same as `invoke`."""
        return self.invoke(input, config)


def _recorder(builder: Builder, node: str) -> Recorder | None:
    runnable = builder.nodes[node].runnable
    if isinstance(runnable, RecordedNode):
        return runnable.recorder
    found = getattr(runnable, "func", None) or getattr(runnable, "afunc", None)
    return getattr(found, RECORDER, None)


def _record(builder: Builder, guard: LoopGuard, node: str, shape: Shape) -> None:
    spec = builder.nodes[node]
    known = _recorder(builder, node)
    gated = any(isinstance(branch.path, GatedPath) for branch in builder.branches.get(node, {}).values())
    guards = (*(known.guards if known is not None else ()), guard)
    inner: Any = spec.runnable.inner if isinstance(spec.runnable, RecordedNode) else spec.runnable
    runnable = RecordedNode(inner, Recorder(node, guards, shape, gated))
    ends = spec.ends
    if ends and any(end in guard.nodes for end in ends):
        ends = {**ends, ESCALATE: ""} if isinstance(ends, Mapping) else (*ends, ESCALATE)
        ends = ends if isinstance(ends, dict) else tuple(dict.fromkeys(ends))
    builder.nodes[node] = dataclasses.replace(spec, runnable=runnable, ends=ends)


# -- compiled graphs ----------------------------------------------------------------------------------------------


def copy_builder(builder: Builder) -> Builder:
    """Return a builder that can be changed without changing the given one."""
    out = copy.copy(builder)
    out.nodes = {name: dataclasses.replace(spec) for name, spec in builder.nodes.items()}
    out.edges = set(builder.edges)
    out.branches = defaultdict(dict, {source: dict(found) for source, found in builder.branches.items()})
    out.waiting_edges = set(builder.waiting_edges)
    out.channels, out.managed, out.schemas = dict(builder.channels), dict(builder.managed), dict(builder.schemas)
    out.compiled = False
    return out


def forget_compilation(builder: Builder) -> None:
    """Take out of a copied builder what `compile` has put in: the default error handler can be added only once."""
    added = "__default_error_handler__"
    if builder.nodes.pop(added, None) is not None:
        for spec in builder.nodes.values():
            if spec.error_handler_node == added:
                spec.error_handler_node = None


__all__ = ["Builder", "add_guard", "attach", "check_fits", "copy_builder", "declared_edges", "forget_compilation", "guards_of"]
