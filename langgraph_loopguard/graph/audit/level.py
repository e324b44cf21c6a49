"""From what is declared and what the code says to edges: the part that live graphs and source have in common."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from langgraph_loopguard.graph.audit.facts import facts_of
from langgraph_loopguard.graph.audit.targets import ENDS, Gotos, Targets, command_gotos, router_targets
from langgraph_loopguard.graph.audit.values import Code
from langgraph_loopguard.graph.audit.wiring import Edge, Facts, Form, Guard, Place, Wiring

END = ENDS["END"]

UNREAD = "?"
"""Stands for the nodes whose names cannot be read."""


@dataclass(slots=True)
class Function:
    """Something that runs, as far as it can be read."""

    code: Code | None = None
    may_command: bool = False
    """Whether `Command` is named in what it runs."""
    hands_to: tuple[str, ...] = ()
    """Of a handoff tool that is known by its maker: the nodes of the graph around that it hands over to."""

    def gotos(self) -> Gotos:
        """Where its `Command`s go."""
        if self.hands_to:
            return Gotos(parent=Targets(dict.fromkeys(self.hands_to)), always_parent=True)
        return command_gotos(self.code, may_command=self.may_command)


@dataclass(slots=True)
class Branch:
    """A conditional edge."""

    source: str
    name: str
    router: Function
    ends: tuple[str, ...] | None = None
    """Where its map leads; `None` without one."""
    gates: tuple[str, ...] = ()
    """Names of the guards whose gate is in it."""
    fixed: bool = False
    """It stands for plain edges: there is no router."""
    partial: bool = False
    """Some of where its map leads cannot be read."""


@dataclass(slots=True)
class Node:
    """A node of a level."""

    function: Function = field(default_factory=Function)
    ends: tuple[str, ...] = ()
    """Where its `Command`s go, as declared."""
    gates: tuple[str, ...] = ()
    """Names of the guards that its `Command`s pass."""
    tools: tuple[Function, ...] | None = None
    """Of a node that calls tools: the tools."""
    facts: Facts = field(default_factory=Facts)
    """What is known of it beside its code."""
    place: Place | None = None
    inner: list[Level] = field(default_factory=list)
    """Compiled graphs that it is, or calls."""
    handler: str | None = None
    """Node that handles its errors."""
    opaque: bool = False
    """Its code is not at hand, and nothing else says where it goes."""


@dataclass(slots=True)
class Level:
    """One level of a graph, as it is declared."""

    name: str
    place: Place | None = None
    nodes: dict[str, Node] = field(default_factory=dict)
    plain: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """Source, target, and the guards whose gate it passes."""
    joins: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = field(default_factory=list)
    branches: list[Branch] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    recursion_limit: int | None = None
    notes: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Nodes and edges that source adds under names that cannot be read."""


def wire(level: Level) -> Wiring:
    """Return the edges of a level, and of all inside it."""
    return _Wirer(level).wire()


class _Wirer:
    def __init__(self, level: Level, facts: dict[int, Facts] | None = None) -> None:
        self.level = level
        self.facts = facts if facts is not None else {}
        self.handed_up = Targets()
        """`Command`s to the parent, of this level's nodes and tools."""
        self.left = {source for source, _, _ in level.plain} | {branch.source for branch in level.branches}
        self.left |= {start for starts, _, _ in level.joins for start in starts}
        """Nodes that an edge leaves, to the end too."""
        self.wiring = Wiring(level.name, level.place)

    def wire(self) -> Wiring:
        level, wiring = self.level, self.wiring
        wiring.guards, wiring.recursion_limit = level.guards, level.recursion_limit
        wiring.notes += level.notes
        for name, node in level.nodes.items():
            wiring.nodes[name] = self._read(node.function.code) | node.facts
            if node.place is not None:
                wiring.places[name] = node.place
        for source, target, gates in level.plain:
            self._add(source, target, gates, "plain")
        for starts, target, gates in level.joins:
            self._join(starts, target, gates)
        for branch in level.branches:
            self._branch(branch)
        for name, node in level.nodes.items():
            self._commands(name, node)
        self._errors()
        self._escalations()
        if level.unread:
            wiring.nodes[UNREAD] = Facts()
            wiring.unknown[UNREAD] = ", ".join(dict.fromkeys(level.unread))
        wiring.edges = list(dict.fromkeys(edge for edge in wiring.edges if edge.target in level.nodes))
        return wiring

    def _join(self, starts: tuple[str, ...], target: str, gates: tuple[str, ...]) -> None:
        """A join is passed once for all its sources: whoever watches it watches each of them."""
        observers = {guard.name for guard in self.level.guards if guard.observes}
        held = tuple(name for name in gates if name not in observers)
        seen = tuple(name for name in gates if name in observers)
        for start in starts:
            edge = Edge(source=start, target=target, form="join", starts=starts, guards=held, observers=seen)
            self.wiring.edges.append(edge)

    def _branch(self, branch: Branch) -> None:
        if branch.source not in self.level.nodes:
            return
        found = Targets()
        if not branch.fixed:
            self.wiring.routers[branch.source, branch.name] = self._read(branch.router.code)
            found = router_targets(branch.router.code)
        declared = dict.fromkeys(branch.ends or ())
        if branch.ends is not None:  # what a map does not name, a router does not reach but by a `Send`
            found.names, found.complete = {name: None for name in found.sent if name not in declared}, True
        for target in declared:
            self._add(branch.source, target, branch.gates, "conditional", branch=branch.name)
        for target in found.names:
            self._add(branch.source, target, branch.gates, "conditional", declared=False, branch=branch.name)
        if branch.partial or not found.complete:
            what = "a map that cannot be read" if branch.partial else "no map"
            why = f"its router {branch.name} has {what}, and where it goes is known at run time only"
            self._unknown(branch.source, branch.gates, why)

    def _commands(self, name: str, node: Node) -> None:
        for target in node.ends:
            self._add(name, target, node.gates, "command")
        gotos = self._gotos(name, node)
        self.handed_up.merge(gotos.parent)
        self._found(name, node, gotos.here, "command", "where its Command goes is known at run time only")
        for level in node.inner:
            inner = _Wirer(level, self.facts)
            self.wiring.inner.append(inner.wire())
            why = "where an agent inside it hands over to is known at run time only"
            self._found(name, node, inner.handed_up, "handoff", why)
        if node.opaque and not node.ends and not node.inner and name not in self.left:
            self._unknown(name, node.gates, "its code is not at hand, and no edge leaves it")

    def _gotos(self, name: str, node: Node) -> Gotos:
        if node.tools is None:
            return node.function.gotos()
        found = Gotos()
        each = [tool.gotos() for tool in node.tools]
        for gotos in each:
            found.merge(gotos)
        if each and all(gotos.always_parent for gotos in each):
            self.wiring.edges = [edge for edge in self.wiring.edges if edge.source != name]
            note = f"all tools of {name} hand over to the graph around: the way back is not counted, which only a call "
            self.wiring.notes.append(note + "of a tool that does not exist takes")
        return found

    def _found(self, name: str, node: Node, targets: Targets, form: Form, why: str) -> None:
        for target in targets.names:
            if target not in node.ends:
                self._add(name, target, node.gates, form, declared=False)
        if not targets.complete and not node.ends:
            self._unknown(name, node.gates, why)

    def _errors(self) -> None:
        """A node that fails may be followed by its error handler, and that one by wherever its `Command` goes."""
        sources = {edge.source for edge in self.wiring.edges}
        for name, node in self.level.nodes.items():
            if node.handler is not None and node.handler in sources:
                self.wiring.edges.append(Edge(source=name, target=node.handler, form="command"))

    def _escalations(self) -> None:
        """A trip goes to the node of the user, if there is one: once until a decision, so that way is guarded too."""
        for guard in self.level.guards:
            if guard.escalate_to is not None and not guard.observes:
                for node in guard.nodes:
                    edge = Edge(source=node, target=guard.escalate_to, form="escalation", guards=(guard.name,))
                    self.wiring.edges.append(edge)

    def _add(
        self,
        source: str,
        target: str,
        gates: Sequence[str],
        form: Form,
        *,
        declared: bool = True,
        branch: str | None = None,
    ) -> None:
        if source not in self.level.nodes or target == END:
            return
        held, seen = self.wiring.gates(gates, source, target)
        edge = Edge(
            source=source, target=target, form=form, declared=declared, guards=held, observers=seen, branch=branch
        )
        self.wiring.edges.append(edge)

    def _unknown(self, source: str, gates: Sequence[str], why: str) -> None:
        watching = [guard.name for guard in self.level.guards if guard.name in gates and not guard.observes]
        if watching:
            names = ", ".join(dict.fromkeys(watching))
            note = f"{source}: {why}; its ways into the loop pass the guard {names}, others are unknown"
            self.wiring.notes.append(note)
        else:
            self.wiring.unknown.setdefault(source, why)

    def _read(self, code: Code | None) -> Facts:
        """What a function says; many nodes share one."""
        key = id(code.node) if code is not None else 0
        if key not in self.facts:
            self.facts[key] = facts_of(code)
        return self.facts[key]


def names_command(node: ast.AST) -> bool:
    """Whether `Command` is named in some code."""
    return any(
        "Command" in name
        for part in ast.walk(node)
        for name in (
            (part.id,) if isinstance(part, ast.Name) else (part.attr,) if isinstance(part, ast.Attribute) else ()
        )
    )
