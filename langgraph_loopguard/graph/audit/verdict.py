"""The verdict on each cycle of one level: whether a guard cuts it, and if none does, what there is instead."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from langgraph_loopguard.graph.audit.cycles import LIMIT, Found, find_cycles
from langgraph_loopguard.graph.audit.level import UNREAD
from langgraph_loopguard.graph.audit.report import AuditedGraph, Cycle, Verdict
from langgraph_loopguard.graph.audit.wiring import Edge, Facts, Wiring


def judge(wiring: Wiring, limit: int = LIMIT) -> AuditedGraph:
    """Return one level with its cycles and their verdicts.

    A level is guarded when what is left without its guarded edges has no cycle. That is decided over all edges; only
    the list of cycles is bounded.

    Args:
        wiring: The level.
        limit: Cycles to list, of the open and of the guarded ones.
    """
    judgement = _Judgement(wiring)
    opened = find_cycles([edge for edge in wiring.edges if not edge.guards], list(wiring.nodes), limit)
    guarded = judgement.guarded(opened, limit)
    cycles = [judgement.open(cycle) for cycle in opened.cycles]
    cycles += [judgement.held(cycle) for cycle in guarded.cycles]
    cycles += [judgement.unknown(source, why) for source, why in wiring.unknown.items()]
    return AuditedGraph(
        name=wiring.name,
        place=wiring.place,
        nodes=tuple(wiring.nodes),
        edges=tuple(wiring.edges),
        cycles=tuple(cycles),
        complete=opened.complete and guarded.complete,
        notes=tuple(wiring.notes),
    )


class _Judgement:
    """What is said of the cycles of one level."""

    def __init__(self, wiring: Wiring) -> None:
        self.wiring = wiring
        self.guards = [guard for guard in wiring.guards if not guard.observes]
        self.between: dict[tuple[str, str], list[Edge]] = {}
        for edge in wiring.edges:
            self.between.setdefault((edge.source, edge.target), []).append(edge)

    @cached_property
    def everywhere(self) -> Facts:
        """What all nodes and routers of the level say."""
        return Facts.of([*self.wiring.nodes.values(), *self.wiring.routers.values()])

    def steps(self, cycle: Sequence[str]) -> list[list[Edge]]:
        """The edges between each node of a cycle and the next, parallel ones together."""
        return [self.between[pair] for pair in pairwise((*cycle, cycle[0]))]

    def guarded(self, opened: Found, limit: int) -> Found:
        """The cycles that a guard cuts: those of all edges that are not among the open ones."""
        if not any(edge.guards for edge in self.wiring.edges):
            return Found((), complete=True)
        known = set(opened.cycles)
        found = find_cycles(self.wiring.edges, list(self.wiring.nodes), limit + len(known))
        held = [
            cycle for cycle in found.cycles if cycle not in known and (opened.complete or self._shut(self.steps(cycle)))
        ]
        return Found(tuple(held[:limit]), found.complete and len(held) <= limit)

    # -- one cycle ------------------------------------------------------------------------------------------------

    def held(self, cycle: Sequence[str]) -> Cycle:
        """A cycle that a guard cuts."""
        edges = self._shut(self.steps(cycle))
        if not edges:
            names = tuple(guard.name for guard in self.guards)
            reason = "a join on it waits for a node that only a guarded edge comes back to"
            return self._cycle(cycle, "guarded", reason, names)
        names = tuple(dict.fromkeys(name for edge in edges for name in edge.guards))
        crossed = ", ".join(dict.fromkeys(f"{edge.source}->{edge.target}" for edge in edges))
        return self._cycle(cycle, "guarded", f"cut at {crossed} by the guard {', '.join(names)}", names)

    def unknown(self, source: str, why: str) -> Cycle:
        """A node that may go anywhere."""
        what = "there may be a cycle" if source == UNREAD else f"every node that leads to {source} may be in a cycle"
        reason = f"{why}: {what}; name the targets"
        return self._cycle([source], "unknown", reason)

    def open(self, cycle: Sequence[str]) -> Cycle:
        """A cycle that no guard cuts."""
        edges = [edge for step in self.steps(cycle) for edge in step if not edge.guards]
        nodes = Facts.of(self.wiring.nodes[node] for node in cycle)
        passed = {(edge.source, edge.branch) for edge in edges if edge.branch is not None}
        routers = Facts.of(facts for place, facts in self.wiring.routers.items() if place in passed)
        found: tuple[tuple[Verdict, str], ...] = (
            ("ineffective", _observed(edges)),
            ("bypassed", self._way_round(cycle)),
            ("weak", self._weak(nodes, routers)),
            ("ineffective", self._idle(nodes, routers)),
            ("missing", self._nothing(cycle, nodes | routers)),
        )
        verdict, reason = next((verdict, reason) for verdict, reason in found if reason)
        return self._cycle(cycle, verdict, reason)

    def _cycle(self, cycle: Sequence[str], verdict: Verdict, reason: str, guards: tuple[str, ...] = ()) -> Cycle:
        places = (self.wiring.places[node] for node in cycle if node in self.wiring.places)
        place = next(places, self.wiring.place)
        graph = self.wiring.name
        return Cycle(graph=graph, nodes=tuple(cycle), verdict=verdict, reason=reason, guards=guards, place=place)

    @staticmethod
    def _shut(steps: Sequence[Sequence[Edge]]) -> list[Edge]:
        """The edges of those steps that cannot be taken without passing a gate."""
        return [edge for step in steps if all(edge.guards for edge in step) for edge in step]

    # -- reasons; empty when it is another one --------------------------------------------------------------------

    def _way_round(self, cycle: Sequence[str]) -> str:
        for guard in self.guards:
            shared = [node for node in cycle if node in guard.nodes]
            if len(shared) > 1:
                return f"it passes {', '.join(shared)} of the guard {guard.name} and goes round its edges"
        return ""

    def _weak(self, nodes: Facts, routers: Facts) -> str:
        both = nodes | routers
        reasons = []
        if counters := nodes.counts_up & both.compared:
            names = ", ".join(sorted(counters))
            reasons.append(f"only a counter of its own, {names}: what it stops ends like a success, without a record")
        if both.measured:
            names = ", ".join(sorted(both.measured))
            reasons.append(f"only a length is compared, of {names}, which counts other things too")
        if both.limit is not None:
            reasons.append(f"only {both.limit}, whose count per run starts again at every resume")
        if both.steps_left or self.wiring.recursion_limit is not None:
            reasons.append("only the recursion limit, which counts all steps and starts again at every resume")
        if both.asks_person:
            reasons.append("only a person who is asked each time round")
        return "; ".join(reasons)

    def _idle(self, nodes: Facts, routers: Facts) -> str:
        if lost := routers.in_place | routers.counts_up:
            return f"a router changes {', '.join(sorted(lost))} in the state that it was given, and that is lost"
        if stuck := (nodes.compared | routers.compared) & self.everywhere.counts_up:
            return f"the counter {', '.join(sorted(stuck))} is compared here and raised elsewhere only"
        if passed := nodes.counts_up & self.everywhere.compared:
            return f"the counter {', '.join(sorted(passed))} is raised here and compared elsewhere only"
        return ""

    def _nothing(self, cycle: Sequence[str], facts: Facts) -> str:
        reason = "its exit is the model's decision, which is no bound" if facts.asks_model else "nothing bounds it"
        shared = next((guard for guard in self.wiring.guards if set(guard.nodes) & set(cycle)), None)
        if shared is not None:
            reason += f"; the guard {shared.name} bounds another cycle that shares a node with it"
        return reason


def _observed(edges: Sequence[Edge]) -> str:
    names = sorted({name for edge in edges for name in edge.observers})
    return f"the guard {', '.join(names)} only observes: it diverts nothing" if names else ""
