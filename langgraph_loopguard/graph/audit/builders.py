"""Reads the wiring of a live graph: a builder, or a compiled graph, and the compiled graphs inside its nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from langgraph.constants import END
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.pregel.protocol import PregelProtocol

from langgraph_loopguard.graph.attach import recorder_of
from langgraph_loopguard.graph.audit import live
from langgraph_loopguard.graph.audit.facts import facts_of
from langgraph_loopguard.graph.audit.targets import Gotos, Targets, command_gotos, router_targets
from langgraph_loopguard.graph.audit.values import Code
from langgraph_loopguard.graph.audit.wiring import Edge, Facts, Guard, Wiring
from langgraph_loopguard.graph.edges import Builder, JoinGate
from langgraph_loopguard.graph.escalation import ASK
from langgraph_loopguard.graph.gate import ESCALATE
from langgraph_loopguard.graph.nodes import guards_of
from langgraph_loopguard.graph.wiring import GatedPath

LIMITS = ("ModelCallLimitMiddleware", "ToolCallLimitMiddleware")
"""LangChain's own limits. What they count per run starts again at every resume."""

NO_LIMIT = 9_999
"""A recursion limit from here on is none: LangGraph's default, and that of `create_agent`."""


def read_graph(graph: Any, name: str | None = None) -> Wiring:
    """Return the wiring of a builder or of a compiled graph.

    Args:
        graph: A `StateGraph`, or what its `compile` returns.
        name: What the report calls it. Default: the compiled graph's name.

    Raises:
        TypeError: `graph` is neither.
    """
    if isinstance(graph, CompiledStateGraph):
        return _Reader(graph.builder, name or graph.get_name(), graph, frozenset()).read()
    if isinstance(graph, StateGraph):
        return _Reader(graph, name or "graph", None, frozenset()).read()
    msg = f"graph must be a StateGraph or a compiled one, got {type(graph).__name__}"
    raise TypeError(msg)


class _Reader:
    """Reads one level."""

    def __init__(
        self, builder: Builder, name: str, compiled: CompiledStateGraph[Any] | None, around: frozenset[int]
    ) -> None:
        self.builder = builder
        self.around = around | {id(builder)}
        self.wiring = Wiring(name)
        limit = (compiled.config or {}).get("recursion_limit") if compiled is not None else None
        self.wiring.recursion_limit = limit if limit is not None and limit < NO_LIMIT else None
        self.own = {
            node: spec
            for node, spec in builder.nodes.items()
            if node not in (ESCALATE, ASK) and not isinstance(spec.runnable, JoinGate)
        }
        self.facts: dict[int, Facts] = {}
        self.handed_up = Gotos()
        """`Command`s to the parent, of this level's nodes and tools."""
        self.only_handoffs: set[str] = set()

    def read(self) -> Wiring:
        wiring = self.wiring
        wiring.guards = [
            Guard(guard.name, guard.nodes, guard.mode == "observe", guard.escalate_to)
            for guard in guards_of(self.builder)
        ]
        for node, spec in self.own.items():
            runnable: Any = spec.runnable
            wiring.nodes[node] = self._facts(runnable, node)
            if (place := live.place_of(runnable)) is not None:
                wiring.places[node] = place
            self._commands(node, runnable)
        self._plain()
        for source, branches in self.builder.branches.items():
            for branch, branch_spec in branches.items():
                self._branch(source, branch, branch_spec)
        self._errors()
        self._escalations()
        for node in self.only_handoffs:
            wiring.edges = [edge for edge in wiring.edges if edge.source != node]
            wiring.notes.append(
                f"all tools of {node} hand over to the graph around: the way back is not counted, which only a call "
                "of a tool that does not exist takes"
            )
        wiring.edges = list(dict.fromkeys(edge for edge in wiring.edges if edge.target in self.own))
        return wiring

    # -- edges ----------------------------------------------------------------------------------------------------

    def _plain(self) -> None:
        for source, target in sorted(self.builder.edges):
            if source in self.own and not self._is_join(target):
                self.wiring.edges.append(Edge(source=source, target=target, form="plain"))
        for starts, target in sorted(self.builder.waiting_edges):
            if not self._is_join(target):
                self._join(starts, target, ())
        for spec in self.builder.nodes.values():
            if isinstance(join := spec.runnable, JoinGate):
                guards = tuple(guard.name for guard in join.guards if join.source_for(guard) is not None)
                self._join(join.starts, join.target, guards)

    def _is_join(self, node: str) -> bool:
        return node in self.builder.nodes and isinstance(self.builder.nodes[node].runnable, JoinGate)

    def _join(self, starts: tuple[str, ...], target: str, guards: tuple[str, ...]) -> None:
        """A join is passed once for all its sources: whoever watches it watches each of them."""
        observers = {guard.name for guard in self.wiring.guards if guard.observes}
        held = tuple(name for name in guards if name not in observers)
        seen = tuple(name for name in guards if name in observers)
        for start in starts:
            edge = Edge(source=start, target=target, form="join", starts=tuple(starts), guards=held, observers=seen)
            self.wiring.edges.append(edge)

    def _branch(self, source: str, branch: str, spec: Any) -> None:
        if source not in self.own:
            return
        path = spec.path
        code = None if live.is_library(path) else live.code_of(path)
        gate = path if isinstance(path, GatedPath) else None
        guards = [guard.name for guard in gate.guards] if gate is not None else []
        if gate is None or gate.path is not None:
            self.wiring.routers[source, branch] = self._read(code)
        declared = None
        if spec.ends is not None:
            declared = [end for end in spec.ends.values() if end != ESCALATE]
        found = Targets() if gate is not None and gate.path is None else router_targets(code)
        if declared is not None:
            found.names = {name: None for name in found.sent if name not in declared}
            found.complete = True  # what a map does not name, a router does not reach but by a `Send`
        for target in [*dict.fromkeys(declared or ()), *(name for name in found.names if name != END)]:
            self._add(source, target, guards, "conditional", declared=target in (declared or ()), branch=branch)
        if not found.complete:
            self._unknown(
                source, guards, f"its router {branch} has no map, and where it goes is known at run time only"
            )

    def _commands(self, node: str, runnable: Any) -> None:
        recorder = recorder_of(self.builder, node)
        guards = [guard.name for guard in recorder.guards] if recorder is not None else []
        declared = [end for end in (self.builder.nodes[node].ends or ()) if end != ESCALATE]
        for target in declared:
            self._add(node, target, guards, "command")
        gotos = self._gotos(node, runnable)
        self.handed_up.parent.merge(gotos.parent)
        for target in gotos.here.names:
            if target not in declared:
                self._add(node, target, guards, "command", declared=False)
        if not gotos.here.complete and not declared:
            self._unknown(node, guards, "where its Command goes is known at run time only")
        for graph in self._agents(runnable):
            inner = _Reader(graph.builder, f"{self.wiring.name}/{node}", graph, self.around)
            self.wiring.inner.append(inner.read())
            up = inner.handed_up.parent
            for target in up.names:
                if target not in declared:
                    self._add(node, target, guards, "handoff", declared=False)
            if not up.complete and not declared:
                self._unknown(node, guards, "where an agent inside it hands over to is known at run time only")

    def _gotos(self, node: str, runnable: Any) -> Gotos:
        tools = getattr(runnable, "tools_by_name", None)
        if tools is None:
            return Gotos() if live.is_library(runnable) else _gotos_of(runnable)
        found = Gotos()
        each = [_gotos_of(tool) for tool in tools.values()]
        for gotos in each:
            found.merge(gotos)
        if each and all(gotos.always_parent for gotos in each):
            self.only_handoffs.add(node)
        return found

    def _errors(self) -> None:
        """A node that fails may be followed by its error handler, and that one by wherever its `Command` goes."""
        for node, spec in self.own.items():
            handler = spec.error_handler_node
            if handler is not None and any(edge.source == handler for edge in self.wiring.edges):
                self.wiring.edges.append(Edge(source=node, target=handler, form="command"))

    def _escalations(self) -> None:
        """A trip goes to the user's own node, when there is one: a way back from there into the loop is no end."""
        for guard in self.wiring.guards:
            if guard.escalate_to is not None and not guard.observes:
                for node in guard.nodes:
                    self.wiring.edges.append(Edge(source=node, target=guard.escalate_to, form="escalation"))

    def _add(
        self,
        source: str,
        target: str,
        guards: list[str],
        form: Any,
        *,
        declared: bool = True,
        branch: str | None = None,
    ) -> None:
        held, seen = self.wiring.gates(guards, source, target)
        self.wiring.edges.append(
            Edge(source=source, target=target, form=form, declared=declared, guards=held, observers=seen, branch=branch)
        )

    def _unknown(self, source: str, guards: list[str], why: str) -> None:
        watched = [guard for guard in self.wiring.guards if guard.name in guards and not guard.observes]
        if watched:
            names = ", ".join(guard.name for guard in watched)
            note = f"{source}: {why}; its ways into the loop pass the guard {names}, others are unknown"
            self.wiring.notes.append(note)
        else:
            self.wiring.unknown.setdefault(source, why)

    # -- what is inside a node ------------------------------------------------------------------------------------

    def _facts(self, runnable: Any, node: str) -> Facts:
        owner = next((bound for _, bound, _ in live.functions(runnable)), {})
        names = {type(value).__name__ for value in owner.values()}
        limit = next((name for name in LIMITS if name in names), None)
        if live.is_library(runnable):
            return Facts(limit=limit, asks_model=True)
        return replace(self._read(live.code_of(runnable)), limit=limit)

    def _read(self, code: Code | None) -> Facts:
        """What a function says; many nodes share one."""
        key = id(code.node) if code is not None else 0
        if key not in self.facts:
            self.facts[key] = facts_of(code)
        return self.facts[key]

    def _agents(self, runnable: Any) -> Iterator[CompiledStateGraph[Any]]:
        seen: set[int] = set()
        for value in live.agents_in(runnable):
            if isinstance(value, CompiledStateGraph):
                if id(value.builder) not in seen | self.around:
                    seen.add(id(value.builder))
                    yield value
            elif isinstance(value, PregelProtocol):
                self.wiring.notes.append(
                    f"{value.name or type(value).__name__} is not a StateGraph: what it does is unknown"
                )


def _gotos_of(action: Any) -> Gotos:
    return command_gotos(live.code_of(action), may_command=_may_command(action))


def _may_command(action: Any) -> bool:
    return any("Command" in name for function, _, _ in live.functions(action) for name in live.names_in(function))
