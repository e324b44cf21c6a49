"""What an audit looks at: one level of a graph as nodes and edges, read from a live graph or from source alike."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, ConfigDict

Form = Literal["plain", "join", "conditional", "command", "handoff", "escalation"]
"""How an edge is written.

- `plain`: `add_edge`; `join`: `add_edge` with several sources, which fires when all of them are done;
- `conditional`: a router, `Send` included; `command`: `Command(goto=...)` of the node itself;
- `handoff`: a `Command` to the parent, by a tool or a node inside the node;
- `escalation`: a guard's way to the `escalate_to` node.
"""


class Place(BaseModel):
    """Where something is written."""

    model_config = ConfigDict(frozen=True)

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Edge(BaseModel):
    """One way from a node to another. There may be several between the same two nodes."""

    model_config = ConfigDict(frozen=True)

    source: str
    target: str
    form: Form
    declared: bool = True
    """False where only the code says so: a router without a map, a `Command` without declared destinations."""
    guards: tuple[str, ...] = ()
    """Names of the enforcing guards whose gate the edge passes."""
    observers: tuple[str, ...] = ()
    """Names of the guards that only observe it."""
    starts: tuple[str, ...] = ()
    """Of a join: all the sources."""
    branch: str | None = None
    """Of a conditional edge: the name of its router."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What the code of a node or of a router says about bounds. Keys are keys of the state."""

    counts_up: frozenset[str] = frozenset()
    """Keys that it writes one higher than it has read them."""
    in_place: frozenset[str] = frozenset()
    """Keys that it changes in the state that it was given. A router's changes are lost."""
    compared: frozenset[str] = frozenset()
    """Keys whose value it compares."""
    measured: frozenset[str] = frozenset()
    """Keys of which it compares the length."""
    steps_left: bool = False
    """It looks at the steps that the recursion limit leaves."""
    asks_person: bool = False
    """It calls `interrupt()`."""
    asks_model: bool = False
    """It calls a model, or looks for tool calls in what one has said."""
    limit: str | None = None
    """A limit of LangChain's own: the name of its middleware."""

    @classmethod
    def of(cls, many: Iterable[Facts]) -> Facts:
        """Return what several say together."""
        each = list(many)
        return cls(
            frozenset().union(*(facts.counts_up for facts in each)),
            frozenset().union(*(facts.in_place for facts in each)),
            frozenset().union(*(facts.compared for facts in each)),
            frozenset().union(*(facts.measured for facts in each)),
            any(facts.steps_left for facts in each),
            any(facts.asks_person for facts in each),
            any(facts.asks_model for facts in each),
            next((facts.limit for facts in each if facts.limit is not None), None),
        )

    def __or__(self, other: Facts) -> Facts:
        return Facts.of((self, other))


@dataclass(slots=True)
class Guard:
    """A guard as the audit knows it."""

    name: str
    nodes: tuple[str, ...]
    observes: bool = False
    escalate_to: str | None = None
    inside: frozenset[str] = field(init=False)
    """The nodes, for quick answers: a loop may have thousands."""

    def __post_init__(self) -> None:
        self.inside = frozenset(self.nodes)

    def covers(self, source: str, target: str) -> bool:
        """Whether an edge lies inside the loop (a node's way to itself does not)."""
        return source != target and source in self.inside and target in self.inside


@dataclass(slots=True)
class Wiring:
    """One level of a graph: the graph itself, or a compiled graph inside one of its nodes."""

    name: str
    """The graph's name; of an inner level, with the nodes that it is in: `graph/reviewer`."""
    place: Place | None = None
    nodes: dict[str, Facts] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    routers: dict[tuple[str, str], Facts] = field(default_factory=dict)
    """Facts of the routers, by source and branch."""
    guards: list[Guard] = field(default_factory=list)
    unknown: dict[str, str] = field(default_factory=dict)
    """Nodes whose targets cannot be read, and why."""
    recursion_limit: int | None = None
    notes: list[str] = field(default_factory=list)
    inner: list[Wiring] = field(default_factory=list)

    def levels(self) -> list[Wiring]:
        """This level and all inside it."""
        return [self, *(level for inner in self.inner for level in inner.levels())]

    def gates(self, guards: Collection[str], source: str, target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of those guards that keep an edge, and of those that only observe it."""
        found = [guard for guard in self.guards if guard.name in guards and guard.covers(source, target)]
        return (
            tuple(guard.name for guard in found if not guard.observes),
            tuple(guard.name for guard in found if guard.observes),
        )
