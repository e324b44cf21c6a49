"""A graph as source draws it: what each call on a builder, and each guard, does to its level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from langgraph_loopguard.graph.audit.level import END, Branch, Function, Level, Node
from langgraph_loopguard.graph.audit.values import Instance
from langgraph_loopguard.graph.audit.wiring import Facts, Guard, Place


@dataclass(slots=True, eq=False)
class Drawing:
    """A builder or a compiled graph (to the audit they are one) while its source is read."""

    level: Level
    file: str
    name: str | None = None
    """The first name that it is given."""
    agent: str | None = None
    """Of an agent: the name that it says it has."""
    part: bool = False
    """It is a node of another graph, or was replaced by a guarded copy: it is not reported for itself."""

    def add_guard(self, guard: Guard) -> None:
        """Put a guard on all edges of its loop that are there by now, as `guard_loop` does."""
        level, name = self.level, guard.name
        level.guards.append(guard)
        level.plain = [(a, b, (*gates, name)) if guard.covers(a, b) else (a, b, gates) for a, b, gates in level.plain]
        level.joins = [
            (starts, end, (*gates, name) if any(guard.covers(start, end) for start in starts) else gates)
            for starts, end, gates in level.joins
        ]
        for branch in level.branches:
            if branch.source in guard.nodes:
                branch.gates = (*branch.gates, name)
        for node in guard.nodes:
            if node in level.nodes:
                level.nodes[node].gates = (*level.nodes[node].gates, name)

    def copy(self) -> Drawing:
        """Return one that can be guarded without changing this one."""
        level = replace(
            self.level,
            nodes={name: replace(node) for name, node in self.level.nodes.items()},
            plain=list(self.level.plain),
            joins=list(self.level.joins),
            branches=[replace(branch) for branch in self.level.branches],
            guards=list(self.level.guards),
            notes=list(self.level.notes),
            unread=list(self.level.unread),
        )
        return Drawing(level, self.file, self.name, self.agent)

    def named(self, name: str, around: tuple[Level, ...] = ()) -> Level:
        """Return the level under its name, and those inside it under theirs."""
        return _named(self.level, name, around)


def _named(level: Level, name: str, around: tuple[Level, ...]) -> Level:
    around = (*around, level)
    nodes = {}
    for node, spec in level.nodes.items():
        inner = [
            _named(found, f"{name}/{node}", around) for found in spec.inner if not any(found is one for one in around)
        ]
        nodes[node] = replace(spec, inner=inner)
    return replace(level, name=name, nodes=nodes)


@dataclass(slots=True, eq=False)
class InPieces:
    """A `LoopGuard` that is wired by hand."""

    guard: Guard


@dataclass(slots=True, eq=False)
class Self:
    """An object whose attributes hold graphs."""

    of: Instance
    attributes: dict[str, object] = field(default_factory=dict)


def agent_level(
    place: Place, tools: Sequence[Function] | None, *, model: str, limit: str | None, inner: Sequence[Level]
) -> Level:
    """Return the level of an agent: a model that calls tools until it says that it is done."""
    level = Level("agent", place)
    level.nodes[model] = Node(facts=Facts(asks_model=True, limit=limit), place=place)
    if tools is None or tools:
        level.nodes["tools"] = Node(
            facts=Facts(asks_model=True), tools=tuple(tools or ()), place=place, inner=list(inner)
        )
        level.branches.append(Branch(model, "tools", Function(), ("tools", END), fixed=True))
        level.plain.append(("tools", model, ()))
    return level


def swarm_level(place: Place, agents: Sequence[Drawing]) -> Level:
    """Return the level of a swarm: its agents hand over to each other."""
    level = Level("swarm", place)
    for agent in agents:
        level.nodes[agent.agent or "agent"] = Node(inner=[agent.level], place=agent.level.place)
    return level


def supervisor_level(place: Place, agents: Sequence[Drawing], name: str) -> Level:
    """Return the level of a supervisor: it hands over to each agent, and each comes back."""
    level = swarm_level(place, agents)
    names = tuple(level.nodes)
    level.nodes[name] = Node(ends=(*names, END), facts=Facts(asks_model=True), place=place)
    level.plain += [(agent, name, ()) for agent in names]
    return level
