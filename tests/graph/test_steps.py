"""`StepReserve`: a guarded loop hands over before LangGraph's recursion limit strikes, and never ends a run too early."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import StepReserve, guard_loop
from tests.graph.graphs import thread


class State(TypedDict, total=False):
    n: int
    log: Annotated[list[str], operator.add]


def long_loop(between: int, after: int, rounds: int, *, before: int = 0) -> StateGraph[Any, Any, Any, Any]:
    """A pair with unguarded nodes on both ways and before it, which ends by itself after `rounds` fixes."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    def chain(start: str, end: str, count: int, name: str) -> None:
        last = start
        for number in range(count):
            builder.add_node(f"{name}{number}", lambda state: {})
            builder.add_edge(last, f"{name}{number}")
            last = f"{name}{number}"
        builder.add_edge(last, end)

    builder.add_node("reviewer", lambda state: {"n": (state.get("n") or 0) + 1, "log": ["reviewer"]})
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_node("relay", lambda state: {"log": ["relay"]})
    builder.add_conditional_edges("reviewer", lambda state: "fixer" if state["n"] <= rounds else END, ["fixer", END])
    chain(START, "reviewer", before, "before")
    chain("fixer", "relay", between, "between")
    chain("relay", "reviewer", after, "after")
    return builder


def supersteps(between: int, after: int, rounds: int, before: int) -> int:
    """How many supersteps the loop needs when nobody stops it."""
    return before + 1 + rounds * (3 + between + after)


@given(
    between=st.integers(0, 12),
    after=st.integers(0, 12),
    before=st.integers(0, 2),
    limit=st.integers(5, 60),
    rounds=st.integers(1, 30),
    saver=st.booleans(),
    ring=st.booleans(),
)
def test_the_recursion_limit_is_never_met(
    between: int, after: int, before: int, limit: int, rounds: int, saver: bool, ring: bool
) -> None:
    """Property: whatever lies between the gates, a run hands over or ends by itself, and a short run ends by itself."""
    nodes = ("reviewer", "fixer", "relay") if ring else ("reviewer", "fixer")
    if before + between + after + 6 > limit:
        return  # one round and a handover do not fit
    bare = long_loop(between, after, rounds, before=before).compile()
    builder = long_loop(between, after, rounds, before=before)
    guard_loop(builder, *nodes, max_cycles=1000)
    app = builder.compile(checkpointer=InMemorySaver() if saver else None)
    result = app.invoke({"log": []}, thread(recursion_limit=limit))
    needed = supersteps(between, after, rounds, before)
    if "outcome" in result:
        assert "StepReserve" == result["escalation"]["reason"]["condition"]
        assert needed + 2 * (3 + between + after) > limit, f"{needed} supersteps fit well within {limit}"
    else:
        assert bare.invoke({"log": []}, {"recursion_limit": limit})["log"] == result["log"]
    assert bool(saver and "outcome" in result) == ("__interrupt__" in result)


@pytest.mark.parametrize("limit", range(30, 120, 3))
@pytest.mark.parametrize("more", [1, 2, 3])
def test_rounds_that_grow_are_handed_over_in_time(more: int, limit: int) -> None:
    """Each round takes some supersteps more than the one before."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    def works(state: State) -> Command[Any]:
        done = state["log"][::-1].index("fixer")
        again = done < more * state["log"].count("fixer")
        return Command(update={"log": ["works"]}, goto="works" if again else "reviewer")

    builder.add_node("reviewer", lambda state: {"log": ["reviewer"]})
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_node("works", works, destinations=("works", "reviewer"))
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "works")
    guard_loop(builder, "reviewer", "fixer", max_cycles=1000)
    result = builder.compile().invoke({"log": []}, {"recursion_limit": limit})
    assert "StepReserve" == result["escalation"]["reason"]["condition"]


@pytest.mark.parametrize("saver", [False, True])
@pytest.mark.parametrize("limit", [5, 6, 7, 8, 10, 25])
def test_a_bare_pair_hands_over_under_a_small_limit(limit: int, saver: bool) -> None:
    """A pair without anything between, under LangGraph's smallest useful limits."""
    builder = long_loop(0, 0, 10**6)
    guard_loop(builder, "reviewer", "fixer", max_cycles=1000)
    app = builder.compile(checkpointer=InMemorySaver() if saver else None)
    result = app.invoke({"log": []}, thread(recursion_limit=limit))
    reason = result["escalation"]["reason"]
    assert ("StepReserve", "exhausted", "escalated") == (reason["condition"], reason["kind"], result["outcome"])


def test_each_resume_has_the_whole_limit_again() -> None:
    """LangGraph renews its limit with every run, so a retry without more cycles goes as far again."""
    builder = long_loop(1, 1, 10**6)
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=1000)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread(recursion_limit=25))
    cycles = [guard.ledger(app.get_state(thread())).cycles]
    for _ in range(3):
        app.invoke(Command(resume={"action": "retry"}), thread(recursion_limit=25))
        assert app.get_state(thread()).interrupts
        cycles.append(guard.ledger(app.get_state(thread())).cycles)
    assert all(later - earlier >= 2 for earlier, later in zip(cycles, cycles[1:], strict=False)), cycles


def test_without_the_guard_the_limit_ends_in_an_exception() -> None:
    """What the condition saves from: the same graph, unguarded."""
    with pytest.raises(GraphRecursionError):
        long_loop(1, 1, 10**6).compile().invoke({"log": []}, {"recursion_limit": 25})


def test_a_larger_reserve_leaves_more() -> None:
    """`StepReserve(n)` keeps `n` supersteps for what the user does after the trip."""
    builder = long_loop(0, 0, 10**6)
    builder.add_node("summary", lambda state: {})
    for name, end in (("one", "two"), ("two", "three"), ("three", "four"), ("four", END)):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
        builder.add_edge(name, end)
    builder.add_edge("summary", "one")
    guard_loop(builder, "reviewer", "fixer", max_cycles=1000, stop_when=StepReserve(8), escalate_to="summary")
    result = builder.compile().invoke({"log": []}, {"recursion_limit": 40})
    assert ["one", "two", "three", "four"] == result["log"][-4:]
