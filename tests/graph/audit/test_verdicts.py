"""What is said of each open cycle: what there is instead of a guard."""

from __future__ import annotations

import itertools
import operator
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ModelCallLimitMiddleware
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import interrupt

from langgraph_loopguard import assert_guarded, audit, guard_loop


class State(MessagesState, total=False):
    n: int
    laps: Annotated[int, operator.add]
    score: float
    verdict: str
    remaining_steps: RemainingSteps


def noop(state: State) -> dict[str, Any]:
    return {}


def ring(*names: str, router: Any = None, **nodes: Any) -> StateGraph:
    """Nodes in a ring; the last one's router may end it."""
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, nodes.get(name, noop))
    builder.add_edge(START, names[0])
    for source, target in itertools.pairwise(names):
        builder.add_edge(source, target)
    if router is None:
        builder.add_edge(names[-1], names[0])
    else:
        builder.add_conditional_edges(names[-1], router, [names[0], END])
    return builder


def one(graph: Any) -> tuple[str, str]:
    (cycle,) = audit(graph).open
    return cycle.verdict, cycle.reason


def count(state: State) -> dict[str, Any]:
    n = state.get("n", 0) + 1
    return {"n": n}


def up_to_three(state: State) -> str:
    return END if state["n"] >= 3 else "a"


def good_enough(state: State) -> str:
    return END if state["score"] >= 8 else "a"


def test_nothing_at_all() -> None:
    """Two nodes for ever."""
    assert ("missing", "nothing bounds it") == one(ring("a", "b"))


def test_a_score_is_no_bound() -> None:
    """A threshold on what somebody judges may never be reached."""
    assert "missing" == one(ring("a", "b", router=good_enough))[0]


def test_a_model_that_decides_is_no_bound() -> None:
    """Whether the last message has tool calls is up to the model."""

    def route(state: State) -> str:
        return "a" if state["messages"][-1].tool_calls else END  # type: ignore[union-attr]

    assert ("missing", "its exit is the model's decision, which is no bound") == one(ring("a", "b", router=route))


def test_a_counter_of_its_own_is_weak() -> None:
    """It bounds the cycle, and what it stops looks finished."""
    verdict, reason = one(ring("a", "b", router=up_to_three, a=count))
    assert "weak" == verdict
    assert "a counter of its own, n" in reason


def test_a_counter_that_flips_the_verdict_is_weak() -> None:
    """The node says "good" when it has had enough, and the router believes it."""

    def judge(state: State) -> dict[str, Any]:
        n = (state.get("n") or 0) + 1
        verdict = "good" if state["score"] > 7 or n >= 3 else "bad"
        return {"verdict": verdict, "n": n}

    def route(state: State) -> str:
        return END if state["verdict"] == "good" else "a"

    builder = ring("a", "b", router=route, b=judge)
    # The counter is compared under a name of its own, in the node that raises it.
    assert "weak" == one(builder)[0]


def test_a_message_count_is_weak() -> None:
    """It counts whatever else is said, and nothing when messages are taken out."""

    def route(state: State) -> str:
        return END if len(state["messages"]) > 6 else "a"

    verdict, reason = one(ring("a", "b", router=route))
    assert ("weak", True) == (verdict, "a length is compared, of messages" in reason)

    def by_helper(state: State) -> str:
        return END if _long(state["messages"]) else "a"

    def _long(messages: list[Any]) -> bool:
        return len(messages) > 6

    assert "missing" == one(ring("a", "b", router=by_helper))[0]  # the helper is handed a list, not the state


def test_the_recursion_limit_is_weak() -> None:
    """Set on the compiled graph, or asked for by a node."""
    graph = ring("a", "b").compile()
    assert "weak" == one(graph.with_config(recursion_limit=25))[0]
    assert "missing" == one(graph.with_config(recursion_limit=100_000))[0]

    def route(state: State) -> str:
        return END if state["remaining_steps"] < 3 else "a"

    verdict, reason = one(ring("a", "b", router=route))
    assert ("weak", True) == (verdict, "only the recursion limit" in reason)


def test_a_person_asked_each_time_is_weak() -> None:
    """Somebody answers, perhaps a program."""

    def ask(state: State) -> Any:
        return {"verdict": interrupt("go on?")}

    assert ("weak", "only a person who is asked each time round") == one(ring("a", "b", b=ask))


def test_a_breakpoint_is_weak() -> None:
    """The graph stops before a node of the cycle, each time."""
    for asked in (["a"], "*"):
        assert "weak" == one(ring("a", "b").compile(interrupt_before=asked))[0]
    assert "missing" == one(ring("a", "b").compile(interrupt_before=["elsewhere"][:0]))[0]


@tool
def look(path: str) -> str:
    """Look."""
    return path


def test_langchains_limit_is_weak() -> None:
    """It counts per run, and a resume is a new run."""
    agent = create_agent(
        GenericFakeChatModel(messages=iter([])), [look], middleware=[ModelCallLimitMiddleware(run_limit=3)]
    )
    assert {"weak"} == {cycle.verdict for cycle in audit(agent).open}
    assert all("ModelCallLimitMiddleware" in cycle.reason for cycle in audit(agent).open)


def test_a_counter_in_a_router_is_ineffective() -> None:
    """What a router changes is lost."""

    def route(state: State) -> str:
        state["n"] = state.get("n", 0) + 1
        return END if state["n"] >= 3 else "a"

    verdict, reason = one(ring("a", "b", router=route))
    assert ("ineffective", True) == (verdict, "a router changes n" in reason)

    def route_in_place(state: State) -> str:
        state["n"] += 1
        return END if state["n"] >= 3 else "a"

    assert "ineffective" == one(ring("a", "b", router=route_in_place))[0]


def test_a_counter_that_the_cycle_does_not_pass_is_ineffective() -> None:
    """Raised on another way: here it stands still."""
    builder = ring("a", "b", router=up_to_three)
    builder.add_node("start", count)
    builder.add_edge(START, "start")
    builder.add_edge("start", "a")
    verdict, reason = one(builder)
    assert ("ineffective", "the counter n is compared here and raised elsewhere only") == (verdict, reason)


def test_a_counter_that_nobody_here_compares_is_ineffective() -> None:
    """Raised here, compared on another way out."""
    builder = ring("a", "b", a=count)
    builder.add_node("gate", noop)
    builder.add_edge("b", "gate")
    builder.add_conditional_edges("gate", up_to_three, ["a", END])
    verdicts = {cycle.nodes: cycle.verdict for cycle in audit(builder).open}
    assert {("a", "b"): "ineffective", ("a", "b", "gate"): "weak"} == verdicts


def test_a_guard_that_only_observes_is_ineffective() -> None:
    """`mode="observe"` diverts nothing."""
    builder = ring("a", "b")
    guard_loop(builder, "a", "b", mode="observe")
    assert ("ineffective", "the guard a-b only observes: it diverts nothing") == one(builder)


def test_a_way_round_a_guard() -> None:
    """An edge added after the guard, or nodes in between, go past it."""
    builder = ring("a", "b")
    guard_loop(builder, "a", "b")
    builder.add_edge("a", "b")
    builder.add_edge("b", "a")
    verdict, reason = one(builder)
    assert ("bypassed", "it passes a, b of the guard a-b and goes round its edges") == (verdict, reason)

    builder = ring("a", "x", "b", "y")
    builder.add_edge("a", "b")
    guard_loop(builder, "a", "b")
    assert "bypassed" == one(builder)[0]


def test_an_escalation_that_leads_back_is_guarded() -> None:
    """The node for trips sends the work round again, and finds the edge shut: a trip is escalated once."""
    visits: list[str] = []
    builder = ring(*"ab", **{name: lambda state, name=name: visits.append(name) for name in "ab"})
    builder.add_node("human", noop)
    builder.add_edge("human", "a")
    guard_loop(builder, "a", "b", max_cycles=2, escalate_to="human")
    assert {("a", "b"): "guarded", ("a", "human"): "guarded", ("a", "b", "human"): "guarded"} == {
        cycle.nodes: cycle.verdict for cycle in audit(builder).cycles
    }
    builder.compile().invoke({"messages": []})
    assert list("ababaa") == visits
    # A way of its own to that node is not the guard's.
    builder.add_edge("a", "human")
    assert [("a", "human")] == [cycle.nodes for cycle in audit(builder).open]


def test_a_cap_on_an_inner_cycle_does_not_cover_the_outer() -> None:
    """The outer one goes round without crossing the guarded pair; and a node's inner graph is not the node."""
    builder = ring("plan", "a", "b", "done")
    builder.add_edge("b", "a")
    builder.add_edge("a", "done")
    guard_loop(builder, "a", "b")
    (cycle,) = audit(builder).open
    assert ("missing", ("plan", "a", "done")) == (cycle.verdict, cycle.nodes)
    assert "the guard a-b bounds another cycle" in cycle.reason

    inner = ring("a", "b")
    guard_loop(inner, "a", "b")
    outer = ring("inner", "after", inner=inner.compile())
    assert "missing" == one(outer)[0]


def test_a_join_that_waits_for_a_guarded_loop() -> None:
    """The cycle through the join crosses no guarded edge, and goes round only as often as the guard lets the other."""
    builder = ring("a", "b")
    builder.add_node("c", noop)
    builder.add_edge(["b", "c"], "c")
    builder.add_edge(START, "c")
    guard_loop(builder, "a", "b")
    (held,) = [cycle for cycle in audit(builder).cycles if cycle.nodes == ("c",)]
    assert ("guarded", ("a-b",)) == (held.verdict, held.guards)
    assert held.reason.startswith("a join on it waits")


def test_two_guards_on_one_graph() -> None:
    """Each cuts its own cycle, and both are named."""
    builder = ring("a", "b")
    builder.add_node("c", noop)
    builder.add_edge("a", "c")
    builder.add_edge("c", "a")
    guard_loop(builder, "a", "b")
    assert [("missing", ("a", "c"))] == [(cycle.verdict, cycle.nodes) for cycle in audit(builder).open]
    guard_loop(builder, "a", "c")
    assert [("a-b",), ("a-c",)] == sorted(cycle.guards for cycle in audit(builder).cycles)
    assert_guarded(builder)


def test_assert_guarded_says_what_is_open() -> None:
    """The assertion holds the report."""
    with pytest.raises(AssertionError, match=r"missing +a -> b -> a"):
        assert_guarded(ring("a", "b"))


def test_allowed_cycles_are_named() -> None:
    """By nodes or by arrows, from whichever node on; what is not open cannot be allowed."""
    builder = ring("a", "b")
    for allow in (["a -> b"], "b->a->b", [("b", "a")], [["a", "b"]], ["graph/a -> b"]):
        assert_guarded(builder, allow=allow)
    with pytest.raises(ValueError, match="'a -> c' is no open cycle; the open cycles are: graph/a -> b -> a"):
        assert_guarded(builder, allow=["a -> c"])
    with pytest.raises(ValueError, match="'other/a -> b' is no open cycle"):
        assert_guarded(builder, allow=["other/a -> b"])
    guard_loop(builder, "a", "b")
    with pytest.raises(ValueError, match="the open cycles are: none"):
        assert_guarded(builder, allow=["a -> b"])
