"""Node caching beside a guard: the node's body is cached as before, and every pass is counted and judged."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import CachePolicy, Command, Send
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop
from tests.graph.graphs import plain, thread


class State(TypedDict, total=False):
    topic: str
    review: str
    patch: str


def cached_pair(
    calls: list[str],
    *,
    forward: str = "plain",
    back: str = "plain",
    defaults: bool = False,
    is_async: bool = False,
    **settings: Any,
) -> tuple[Any, Any]:
    """A pair that says the same at every visit, both nodes cached."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    policy = None if defaults else CachePolicy()
    if defaults:
        builder.set_node_defaults(cache_policy=CachePolicy())

    def body(name: str, key: str, other: str, edge: str) -> Any:
        def node(state: State) -> Any:
            calls.append(name)
            update = {key: f"about {state['topic']}"}
            return Command(update=update, goto=other) if edge == "command" else update

        async def anode(state: State) -> Any:
            return node(state)

        return anode if is_async else node

    for name, key, other, edge in (("reviewer", "review", "fixer", forward), ("fixer", "patch", "reviewer", back)):
        builder.add_node(name, body(name, key, other, edge), cache_policy=policy)
        if edge == "plain":
            builder.add_edge(name, other)
        elif edge == "routed":
            builder.add_conditional_edges(name, lambda state, other=other: other, [other, END])
        elif edge == "send":
            builder.add_conditional_edges(
                name,
                lambda state, other=other: [Send(other, {key: state[key] for key in ("topic", "review")})],
                [other],
            )
    builder.add_edge(START, "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", **settings)
    return builder.compile(checkpointer=InMemorySaver(), cache=InMemoryCache()), guard


def named(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}, "recursion_limit": 60}


@pytest.mark.parametrize("back", ["plain", "routed", "command"])
@pytest.mark.parametrize("forward", ["plain", "routed", "command", "send"])
@pytest.mark.parametrize("defaults", [False, True])
def test_the_cap_holds_when_every_visit_is_a_hit(forward: str, back: str, defaults: bool) -> None:
    """A cached pair is counted and judged at each pass."""
    app, guard = cached_pair([], forward=forward, back=back, defaults=defaults, max_cycles=3)
    result = app.invoke({"topic": "None"}, named("one"))
    assert "escalated" == result["outcome"]
    ledger = guard.ledger(app.get_state(named("one")))
    assert (3, 3) == (ledger.cycles, ledger.handoffs["reviewer->fixer"])
    assert (4, 3) == (len(result["escalation"]["reviews"]), len(result["escalation"]["fixes"]))


@pytest.mark.parametrize("back", ["plain", "routed", "command"])
@pytest.mark.parametrize("forward", ["plain", "routed", "command", "send"])
def test_a_loop_does_not_live_off_its_cache(forward: str, back: str) -> None:
    """A hit would pass the gate unjudged, so each pass of one loop is run, though its input is as before."""
    calls: list[str] = []
    app, _ = cached_pair(calls, forward=forward, back=back, max_cycles=5)
    app.invoke({"topic": "None"}, named("one"))
    assert (6, 5) == (calls.count("reviewer"), calls.count("fixer"))


@pytest.mark.parametrize("forward", ["plain", "routed", "command", "send"])
def test_threads_share_a_cache_and_no_count(forward: str) -> None:
    """Each thread has its own count and record, however much of its work comes from the cache."""
    calls: list[str] = []
    app, guard = cached_pair(calls, forward=forward, max_cycles=2)
    for name in ("one", "two", "three"):
        result = app.invoke({"topic": "None"}, named(name))
        assert ("escalated", 2) == (result["outcome"], result["escalation"]["cycles"])
        assert name == result["escalation"]["thread_id"]
        assert {"reviewer->fixer": 2, "fixer->reviewer": 2} == guard.ledger(app.get_state(named(name))).handoffs
        assert (3, 2) == (len(result["escalation"]["reviews"]), len(result["escalation"]["fixes"]))
        if name == "one":
            first = len(calls)
    # What a `Send` carries comes without the ledgers, so it is never taken from the cache.
    again = 2 * 2 if forward == "send" else 0
    assert first + again == len(calls), "the second and third thread find all in the cache"


def test_different_inputs_are_no_hits() -> None:
    """The key is the node's own input, as without a guard."""
    calls: list[str] = []
    app, _ = cached_pair(calls, max_cycles=1)
    app.invoke({"topic": "a"}, named("one"))
    before = len(calls)
    result = app.invoke({"topic": "b"}, named("two"))
    assert len(calls) > before
    assert "about b" == result["escalation"]["fixes"][0]["content"]["patch"]


def test_a_decision_counts_on_a_cached_thread() -> None:
    """After a retry with two more cycles, two more are made, cached or not."""
    app, guard = cached_pair([], max_cycles=2)
    app.invoke({"topic": "None"}, named("one"))
    result = app.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), named("one"))
    assert 4 == result["escalation"]["cycles"]
    assert 4 == guard.ledger(app.get_state(named("one"))).handoffs["reviewer->fixer"]


def test_clear_cache_empties_it() -> None:
    """After `clear_cache` the bodies run again."""
    calls: list[str] = []
    app, _ = cached_pair(calls, max_cycles=1)
    app.invoke({"topic": "None"}, named("one"))
    first = len(calls)
    app.clear_cache()
    app.invoke({"topic": "None"}, named("two"))
    assert 2 * first == len(calls)
    app.clear_cache(["reviewer"])
    app.invoke({"topic": "None"}, named("three"))
    assert 2 * first + first - calls[:first].count("fixer") == len(calls)


async def test_async_nodes_are_cached_and_counted() -> None:
    """The same through the asynchronous doors."""
    calls: list[str] = []
    app, _ = cached_pair(calls, is_async=True, max_cycles=3)
    for name in ("one", "two"):
        result = await app.ainvoke({"topic": "None"}, named(name))
        assert ("escalated", 3) == (result["outcome"], result["escalation"]["cycles"])
        if name == "one":
            first = len(calls)
    assert first == len(calls)
    await app.aclear_cache()
    await app.ainvoke({"topic": "None"}, named("three"))
    assert 2 * first == len(calls)


def test_a_cached_pair_that_does_not_trip_streams_as_without_a_guard() -> None:
    """Same updates, marks of cached nodes too, when the same input is run in two threads."""
    seen: list[list[Any]] = []
    for guarded in (False, True):
        builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
        builder.add_node("reviewer", lambda state: {"review": "x"}, cache_policy=CachePolicy())
        builder.add_node("fixer", lambda state: {"patch": "y"}, cache_policy=CachePolicy())
        builder.add_edge(START, "reviewer")
        builder.add_conditional_edges("reviewer", lambda state: END if "patch" in state else "fixer", ["fixer", END])
        builder.add_edge("fixer", "reviewer")
        if guarded:
            guard_loop(builder, "reviewer", "fixer")
        app = builder.compile(checkpointer=InMemorySaver(), cache=InMemoryCache())
        runs = [list(app.stream({"topic": "a"}, named(name), stream_mode="updates")) for name in ("one", "two")]
        seen.append([[plain(chunk) for chunk in run] for run in runs])
    assert seen[0] == seen[1]


def test_a_cached_node_sees_its_own_input_only() -> None:
    """No key of the guard's is in what the node is handed."""
    inputs: list[Any] = []
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("reviewer", lambda state: inputs.append(set(state)) or {"review": "x"}, cache_policy=CachePolicy())
    builder.add_node("fixer", lambda state: {"patch": "y"})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=2)
    builder.compile(cache=InMemoryCache()).invoke({"topic": "a"}, thread())
    assert all(keys <= {"topic", "review", "patch"} for keys in inputs)
