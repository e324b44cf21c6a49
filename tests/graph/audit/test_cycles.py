"""Which cycles there are: against a search that tries every walk, on small random graphs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_loopguard import LoopGuard, audit, guard_loop
from langgraph_loopguard.graph.audit.cycles import find_cycles
from langgraph_loopguard.graph.audit.wiring import Edge

NAMES = tuple("abcde")
FORMS = ("plain", "map", "no_map", "command", "send")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[StateGraph, set[tuple[str, str]], list[tuple[tuple[str, ...], str]], Any]:
    """A random builder, its single edges, its joins, and the loop of a guard on it (or `None`)."""
    names = NAMES[: draw(st.integers(2, 5))]
    pairs = list(itertools.product(names, names))
    edges = draw(st.dictionaries(st.sampled_from(pairs), st.sampled_from(FORMS), max_size=9))
    join = st.tuples(st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True), st.sampled_from(names))
    joins = [(tuple(starts), end) for starts, end in draw(st.lists(join, max_size=2))]
    builder = StateGraph(MessagesState)
    for name in names:
        commanded = tuple(target for (source, target), form in edges.items() if source == name and form == "command")
        builder.add_node(name, lambda state: {}, destinations=commanded or None)
    for (source, target), form in edges.items():
        if form == "plain":
            builder.add_edge(source, target)
        elif form != "command":
            _route(builder, source, target, form)
    for starts, end in joins:
        builder.add_edge(list(starts), end)
    for name in names:
        builder.add_edge(START, name)
    loop = draw(st.none() | st.lists(st.sampled_from(names), min_size=2, max_size=3, unique=True))
    return builder, set(edges), joins, loop


def _route(builder: StateGraph, source: str, target: str, form: str) -> None:
    from langgraph.types import Send

    def route(state: Any) -> Any:
        return [Send(target, state)] if form == "send" else target

    route.__name__ = f"to_{target}"
    builder.add_conditional_edges(source, route, [target] if form == "map" else None)


def all_cycles(edges: set[tuple[str, str]]) -> set[tuple[str, ...]]:
    """Every simple cycle, by trying every order of every choice of nodes."""
    names = sorted({name for edge in edges for name in edge})
    return {
        nodes
        for size in range(1, len(names) + 1)
        for nodes in itertools.permutations(names, size)
        if nodes[0] == min(nodes) and all(pair in edges for pair in itertools.pairwise((*nodes, nodes[0])))
    }


def lasting(edges: set[tuple[str, str]], joins: list[tuple[tuple[str, ...], str]]) -> set[tuple[str, str]]:
    """The edges that may be crossed without end: the largest set of nodes each of which is entered from the set again."""
    names = {name for edge in edges for name in edge} | {name for starts, end in joins for name in (*starts, end)}
    alive = set(names)
    while True:
        kept = {
            name
            for name in alive
            if any(source in alive for source, target in edges if target == name)
            or any(alive.issuperset(starts) for starts, end in joins if end == name)
        }
        if kept == alive:
            break
        alive = kept
    return edges | {(start, end) for starts, end in joins if alive.issuperset(starts) for start in starts}


@given(graphs())
def test_no_cycle_is_missed_and_none_invented(drawn: Any) -> None:
    """The listed cycles are all there are, and the open ones those that no guarded edge cuts."""
    builder, edges, joins, loop = drawn
    guarded: set[tuple[str, str]] = set()
    if loop is not None:
        try:
            guard_loop(builder, *loop)
        except ValueError:  # no edge of it lies in the loop
            loop = None
        else:
            guarded = {(source, target) for source, target in itertools.permutations(loop, 2)}
    report = audit(builder)
    # A join is gated as a whole: once its guard is on it, it holds for all its sources.
    held_joins = [(starts, end) for starts, end in joins if any((start, end) in guarded for start in starts)]
    free_joins = [join for join in joins if join not in held_joins]
    assert all_cycles(lasting(edges - guarded, free_joins)) == {cycle.nodes for cycle in report.open}
    everything = all_cycles(lasting(edges, joins))
    assert everything == {cycle.nodes for cycle in report.cycles}
    assert [True] == [graph.complete for graph in report.graphs]


def dense(size: int) -> list[Edge]:
    names = [f"n{i}" for i in range(size)]
    return [Edge(source=a, target=b, form="plain") for a in names for b in names if a != b]


def test_a_bounded_list_still_names_every_node() -> None:
    """A dense graph has more cycles than anyone reads: the list is cut, and says so, and leaves no node out."""
    edges = dense(12)
    found = find_cycles(edges, [f"n{i}" for i in range(12)], limit=20)
    assert not found.complete
    assert len(found.cycles) <= 20
    assert {edge.source for edge in edges} == {node for cycle in found.cycles for node in cycle}
    assert {2} == {len(cycle) for cycle in found.cycles}


def test_a_bounded_list_has_something_of_every_component() -> None:
    """However many cycles the first part of a graph has, the open one in the last part is listed."""
    edges = [*dense(8), Edge(source="x", target="y", form="plain"), Edge(source="y", target="x", form="plain")]
    found = find_cycles(edges, [*(f"n{i}" for i in range(8)), "x", "y"], limit=1)
    assert ("x", "y") in found.cycles
    assert not found.complete


def test_a_big_graph_is_audited_whole() -> None:
    """Two thousand nodes in one ring with a way back from each: found, bounded, and open though all but one edge is guarded."""
    builder = StateGraph(MessagesState)
    names = [f"n{i}" for i in range(2000)]
    for name in names:
        builder.add_node(name, lambda state: {})
    for a, b in itertools.pairwise(names):
        builder.add_edge(a, b)
        builder.add_edge(b, a)
    builder.add_edge(names[-1], names[0])
    report = audit(builder)
    assert not report.ok
    assert not report.graphs[0].complete


def test_what_a_missing_library_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the error names it."""
    monkeypatch.setitem(__import__("sys").modules, "rustworkx", None)
    with pytest.raises(ImportError, match=r"langgraph-loopguard\[audit\]"):
        find_cycles(dense(2), ["n0", "n1"])


def test_guards_in_pieces_count_as_well() -> None:
    """`guard.node`, `guard.edge` and `guard.add_to` guard like the one line."""
    guard = LoopGuard("a", "b")
    builder = StateGraph(MessagesState)
    builder.add_node("a", guard.node("a", lambda state: {}))
    builder.add_node("b", guard.node("b", lambda state: {}))
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", *guard.edge("a", "b"))
    builder.add_conditional_edges("b", *guard.edge("b", "a"))
    assert not audit(builder).ok  # gates alone have nowhere to send a trip
    guard.add_to(builder)
    assert audit(builder).ok
