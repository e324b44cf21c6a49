"""The cycles among the edges of one level, by rustworkx: exact on whether there are any, bounded in its list."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langgraph_loopguard.graph.audit.wiring import Edge

if TYPE_CHECKING:
    from types import ModuleType

LIMIT = 100
"""Cycles listed of one level, each of the open and of the guarded ones."""


@dataclass(frozen=True, slots=True)
class Found:
    """Cycles as sequences of nodes."""

    cycles: tuple[tuple[str, ...], ...]
    complete: bool
    """False when there are more than are listed; every node that is in a cycle is in one of those then."""


def find_cycles(edges: Collection[Edge], nodes: Sequence[str], limit: int = LIMIT) -> Found:
    """Return the simple cycles among some edges.

    Args:
        edges: The edges.
        nodes: All nodes, in the order in which cycles are to begin.
        limit: How many to list. The search itself takes time in proportion to the edges.

    Raises:
        ImportError: rustworkx is not installed; names the extra.
    """
    rx = _rustworkx()
    number = {node: index for index, node in enumerate(nodes)}
    live = live_edges(edges)
    graph = rx.PyDiGraph(multigraph=False)
    graph.add_nodes_from(list(nodes))
    graph.add_edges_from_no_data([(number[edge.source], number[edge.target]) for edge in live])
    listed: list[tuple[int, ...]] = []
    complete = True
    for component in rx.strongly_connected_components(graph):
        if len(component) == 1 and not graph.has_edge(component[0], component[0]):
            continue
        part = graph.subgraph(sorted(component), preserve_attrs=False)
        back = sorted(component)
        room = limit - len(listed)
        found = [tuple(back[i] for i in cycle) for cycle in itertools.islice(rx.simple_cycles(part), max(room, 0) + 1)]
        if len(found) > max(room, 0):
            complete = False
            found = _cover(rx, part, back, max(room, 1))
        listed += found
    names = [tuple(nodes[i] for i in _from_first(cycle)) for cycle in listed]
    return Found(tuple(sorted(names, key=lambda cycle: (len(cycle), [number[node] for node in cycle]))), complete)


def live_edges(edges: Iterable[Edge]) -> list[Edge]:
    """Return the edges that may be crossed again and again.

    A join fires when all its sources are done. When one of them cannot run again and again, neither can the join, and
    a way through it is no cycle.
    """
    rx = _rustworkx()
    kept = list(dict.fromkeys(edges))
    while any(edge.form == "join" for edge in kept):
        names = sorted({name for edge in kept for name in (edge.source, edge.target)})
        number = {name: index for index, name in enumerate(names)}
        graph = rx.PyDiGraph(multigraph=False)
        graph.add_nodes_from(names)
        graph.add_edges_from_no_data([(number[edge.source], number[edge.target]) for edge in kept])
        again: set[int] = set()
        for component in rx.strongly_connected_components(graph):
            first = component[0]
            if first not in again and (len(component) > 1 or graph.has_edge(first, first)):
                again |= {*component, *rx.descendants(graph, first)}
        lasting = [edge for edge in kept if all(number.get(start) in again for start in edge.starts)]
        if len(lasting) == len(kept):
            break
        kept = lasting
    return kept


def _from_first(cycle: Sequence[int]) -> tuple[int, ...]:
    start = cycle.index(min(cycle))
    return (*cycle[start:], *cycle[:start])


def _cover(rx: Any, part: Any, back: Sequence[int], limit: int) -> list[tuple[int, ...]]:
    """Return a shortest cycle through each node that none of the earlier ones passes."""
    seen: set[int] = set()
    found: list[tuple[int, ...]] = []
    for node in part.node_indices():
        if node in seen or len(found) >= limit:
            continue
        # The shortest way from a node back to itself: to each predecessor, and one step more.
        ways = rx.digraph_dijkstra_shortest_paths(part, node, default_weight=1.0)
        ends = [(len(ways[last]), last) for last in part.predecessor_indices(node) if last in ways]
        cycle = (node,) if part.has_edge(node, node) else tuple(ways[min(ends)[1]])
        seen.update(cycle)
        found.append(tuple(back[i] for i in cycle))
    return found


def _rustworkx() -> ModuleType:
    try:
        import rustworkx
    except ImportError as error:
        msg = 'the audit needs rustworkx: pip install "langgraph-loopguard[audit]"'
        raise ImportError(msg) from error
    return rustworkx
