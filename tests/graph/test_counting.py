"""Laws 1, 2 and 7: each handoff counts once and each trip makes one record, however many tasks and gates see it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from langgraph_loopguard import LoopGuard, guard_loop
from tests.graph.graphs import last, thread


class State(TypedDict, total=False):
    n: Annotated[int, operator.add]
    file: Annotated[str, last]
    log: Annotated[list[str], operator.add]


Builder = StateGraph[Any, Any, Any, Any]


def named(name: str, function: Any) -> Any:
    """Give a router a name of its own: two of one name cannot leave one node."""
    function.__name__ = name
    return function


def waiting(app: Any) -> list[dict[str, Any]]:
    """Records of the questions that wait."""
    return [one.value["escalation"] for one in app.get_state(thread()).interrupts]


def entered(app: Any, node: str) -> int:
    """How often a node has been run, by the log."""
    return app.get_state(thread()).values["log"].count(node)


# -- several tasks in one superstep -----------------------------------------------------------------------------------


def fan(tasks: int, *, key: Any = None, by: str = "command", cap: int = 1) -> tuple[Any, LoopGuard]:
    """`plan` sends to some reviewers, each of which sends its file to the fixer, which sends all back to `plan`."""
    builder: Builder = StateGraph(State)
    files = [f"file {number}" for number in range(tasks)]
    builder.add_node("plan", lambda state: {"log": ["plan"]})
    builder.add_conditional_edges(
        "plan", lambda state: [Send("reviewer", {"file": name}) for name in files], ["reviewer"]
    )

    def reviewer(state: State) -> Any:
        update = {"log": ["reviewer"], "file": state["file"]}
        if by == "command":
            return Command(update=update, goto=Send("fixer", {"file": state["file"]}))
        return update

    builder.add_node("reviewer", reviewer)
    if by == "router":
        builder.add_conditional_edges("reviewer", lambda state: Send("fixer", {"file": state["file"]}), ["fixer"])
    builder.add_node("fixer", lambda state: {"log": ["fixer", state["file"]]})
    builder.add_edge("fixer", "plan")
    builder.add_edge(START, "plan")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=cap, key=key)
    return builder.compile(checkpointer=InMemorySaver()), guard


@pytest.mark.parametrize("by", ["command", "router"])
@pytest.mark.parametrize("tasks", [1, 3])
def test_tasks_of_one_superstep_trip_as_one(by: str, tasks: int) -> None:
    """Several reviewers reach the cap side by side: one cycle, one record, one question; a retry sends all of them."""
    app, guard = fan(tasks, by=by)
    app.invoke({"log": []}, thread())
    (record,) = waiting(app)
    assert 1 == len(app.get_state(thread()).values["escalations"])
    assert 1 == record["cycles"] == guard.ledger(app.get_state(thread())).handoffs["reviewer->fixer"]
    assert tasks == entered(app, "fixer")
    assert 2 * tasks == len(record["reviews"])
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    assert 2 * tasks == entered(app, "fixer")
    log = app.get_state(thread()).values["log"]
    assert [2] * tasks == [log.count(f"file {number}") for number in range(tasks)]
    assert 2 == guard.ledger(app.get_state(thread())).handoffs["reviewer->fixer"]
    assert 1 == len(waiting(app))
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    assert 3 * tasks == entered(app, "fixer"), "what a retry has sent is not sent again"


@pytest.mark.parametrize("by", ["command", "router"])
def test_tasks_with_keys_of_their_own_trip_apart(by: str) -> None:
    """With `key="file"` each file has a count, a record and a question; one answer does not open another's."""
    app, guard = fan(3, by=by, key="file")
    app.invoke({"log": []}, thread())
    assert {f"file {n}" for n in range(3)} == {record["scope_key"] for record in waiting(app)}
    assert [1, 1, 1] == [guard.ledger(app.get_state(thread()), f"file {n}").cycles for n in range(3)]
    answers = {
        one.id: {"action": "retry", "extra_cycles": 1}
        if one.value["escalation"]["scope_key"] == "file 1"
        else {"action": "reject"}
        for one in app.get_state(thread()).interrupts
    }
    app.invoke(Command(resume=answers), thread())
    log = app.get_state(thread()).values["log"]
    assert [1, 2, 1] == [log.count(f"file {n}") for n in range(3)]


def both_ways(first: str, second: str, cap: int = 1) -> tuple[Any, LoopGuard]:
    """Two nodes that run side by side and hand over to each other in one superstep; the ring's third is idle."""
    builder: Builder = StateGraph(State)
    builder.add_node("start", lambda state: {})
    for node, other, kind in (("a", "b", first), ("b", "a", second)):

        def body(state: State, node: str = node, other: str = other, kind: str = kind) -> Any:
            update = {"log": [node]}
            if kind == "command":
                return Command(update=update, goto=other)
            if kind == "command_send":
                return Command(update=update, goto=Send(other, {"file": node}))
            return update

        builder.add_node(node, body)
        if kind == "plain":
            builder.add_edge(node, other)
        elif kind == "send":
            builder.add_conditional_edges(
                node, lambda state, node=node, other=other: Send(other, {"file": node}), [other]
            )
    builder.add_edge(START, "start")
    builder.add_edge("start", "a")
    builder.add_edge("start", "b")
    guard = guard_loop(builder, "a", "b", max_cycles=cap)
    return builder.compile(checkpointer=InMemorySaver()), guard


KINDS = ("plain", "command", "send", "command_send")


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_two_edges_that_trip_in_one_superstep_are_one_trip(first: str, second: str) -> None:
    """One record and one question for the loop; a retry enters what both edges held back."""
    app, _ = both_ways(first, second)
    app.invoke({"log": []}, thread())
    (record,) = waiting(app)
    assert [record["id"]] == list(app.get_state(thread()).values["escalations"])
    before = [entered(app, node) for node in "ab"]
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    after = [entered(app, node) for node in "ab"]
    assert all(now > was for now, was in zip(after, before, strict=True)), f"{before} {after}"
    assert 1 == len(waiting(app))


# -- joined edges -----------------------------------------------------------------------------------------------------


def joined(caps: Sequence[int], saver: Any = None) -> tuple[Any, list[LoopGuard]]:
    """`a` and `b` are done before `c` begins, and `c` hands back to both."""
    builder: Builder = StateGraph(State)
    for node in "abc":
        builder.add_node(node, lambda state, node=node: {"log": [node]})
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge(["a", "b"], "c")
    builder.add_edge("c", "a")
    builder.add_edge("c", "b")
    guards = [
        guard_loop(builder, *pair, max_cycles=cap) for pair, cap in zip((("a", "c"), ("b", "c")), caps, strict=True)
    ]
    return builder.compile(checkpointer=saver or InMemorySaver()), guards


@pytest.mark.parametrize("caps", [(2, 9), (9, 2), (3, 3)])
def test_two_guards_on_one_joined_edge_both_guard_it(caps: tuple[int, int]) -> None:
    """The lower cap decides, each guard counts, and the one that is not at its end has no record."""
    app, guards = joined(caps)
    app.invoke({"log": []}, thread(recursion_limit=50))
    least = min(caps)
    assert least == entered(app, "c")
    state = app.get_state(thread())
    assert {guard.name for guard, cap in zip(guards, caps, strict=True) if cap == least} == {
        record["loop"] for record in waiting(app)
    }
    again = {one.id: {"action": "retry", "extra_cycles": 1} for one in state.interrupts}
    app.invoke(Command(resume=again), thread(recursion_limit=50))
    assert least + 1 == entered(app, "c")
    state = app.get_state(thread())
    for guard, cap, node in zip(guards, caps, "ab", strict=True):
        if cap == least:
            assert guard.ledger(state).handoffs[f"{node}->c"] == least + 1


@pytest.mark.parametrize("form", ["plain", "joined"])
@pytest.mark.parametrize("action", ["accept", "retry"])
def test_a_handoff_that_one_guard_stops_is_counted_by_none(form: str, action: str) -> None:
    """Two guards on one edge: whatever the nearer one stops, the other has counted what was entered."""
    if form == "joined":
        app, (_, other) = joined((2, 50))
        source, target = "b", "c"
    else:
        builder: Builder = StateGraph(State)
        for node in "ab":
            builder.add_node(node, lambda state, node=node: {"log": [node]})
        for start, end in ((START, "a"), ("a", "b"), ("b", "a")):
            builder.add_edge(start, end)
        guard_loop(builder, "a", "b", max_cycles=2, name="near")
        other = guard_loop(builder, "a", "b", max_cycles=50, name="far")
        app = builder.compile(checkpointer=InMemorySaver())
        source, target = "a", "b"
    app.invoke({"log": []}, thread())
    for _ in range(3):
        decision = {"action": action, **({"extra_cycles": 1} if action == "retry" else {})}
        app.invoke(Command(resume=decision), thread())
        if action == "accept":
            app.invoke({"log": []}, thread())
    assert entered(app, target) == other.ledger(app.get_state(thread())).handoffs[f"{source}->{target}"]


@pytest.mark.parametrize("outer", ["plain", "router", "command"])
def test_a_ring_of_three_over_a_join_counts_a_round_as_one_cycle(outer: str) -> None:
    """One real round of a ring with a fan-out and a join is one cycle: `writer` to two critics, joined at `editor`."""
    builder: Builder = StateGraph(State)

    def editor(state: State) -> Any:
        return Command(update={"log": ["editor"]}, goto="writer") if outer == "command" else {"log": ["editor"]}

    for node in ("writer", "critic", "checker"):
        builder.add_node(node, lambda state, node=node: {"log": [node]})
    builder.add_node("editor", editor)
    builder.add_edge(START, "writer")
    builder.add_edge("writer", "critic")
    builder.add_edge("writer", "checker")
    builder.add_edge(["critic", "checker"], "editor")
    if outer == "plain":
        builder.add_edge("editor", "writer")
    elif outer == "router":
        builder.add_conditional_edges("editor", lambda state: "writer", ["writer", END])
    guard = guard_loop(builder, "writer", "critic", "editor", max_cycles=4)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread(recursion_limit=60))
    (record,) = waiting(app)
    assert ("MaxCycles", 4) == (record["reason"]["condition"], record["cycles"])
    assert (5, 4, 4) == tuple(entered(app, node) for node in ("writer", "critic", "editor"))
    handoffs = guard.ledger(app.get_state(thread())).handoffs
    assert {"writer->critic": 4, "critic->editor": 4, "editor->writer": 4} == handoffs


@pytest.mark.parametrize("names", [("a", "b", "c"), ("b", "c", "a"), ("c", "a", "b")])
def test_a_joined_ring_of_all_its_nodes_counts_rounds(names: tuple[str, str, str]) -> None:
    """`a` fans out to `b` and `c`, which join at `a`; whatever node the ring begins with, a round is a cycle."""
    builder: Builder = StateGraph(State)
    for node in "abc":
        builder.add_node(node, lambda state, node=node: {"log": [node]})
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("a", "c")
    builder.add_edge(["b", "c"], "a")
    guard = guard_loop(builder, *names, max_cycles=3)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread(recursion_limit=60))
    rounds = entered(app, "b")
    assert rounds in (3, 4), f"{rounds} rounds with a cap of 3"
    assert 3 == guard.ledger(app.get_state(thread())).cycles
    assert waiting(app)


# -- several routers on one node --------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["router", "plain", "two routers", "router into the loop"])
@pytest.mark.parametrize("forward", ["plain", "router"])
def test_two_gated_branches_count_a_visit_once(forward: str, side: str) -> None:
    """An edge into the loop beside a conditional edge elsewhere: one visit each, and `updates` has dicts."""
    builder: Builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"n": 1, "log": ["reviewer"]})
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_node("notes", lambda state: {"log": ["notes"]})
    builder.add_edge(START, "reviewer")
    if forward == "plain":
        builder.add_edge("reviewer", "fixer")
    else:
        builder.add_conditional_edges("reviewer", lambda state: "fixer", ["fixer", END])
    if side == "plain":
        builder.add_edge("reviewer", "notes")
    elif side == "router into the loop":
        route = named("second", lambda state: "fixer" if state["n"] % 2 else END)
        builder.add_conditional_edges("reviewer", route, ["fixer", END])
    else:
        for number in range(1 + (side == "two routers")):
            builder.add_conditional_edges("reviewer", named(f"side {number}", lambda state: "notes"), ["notes", END])
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=3)
    app = builder.compile(checkpointer=InMemorySaver())
    for chunk in app.stream({"log": []}, thread(), stream_mode="updates"):
        for node, update in chunk.items():
            assert node == "__interrupt__" or isinstance(update, dict), f"{node}: {update!r}"
    ledger = guard.ledger(app.get_state(thread()))
    assert {"reviewer": 4, "fixer": 3} == ledger.visits
    assert {"reviewer->fixer": 3, "fixer->reviewer": 3} == ledger.handoffs
    assert 3 == ledger.cycles
    (record,) = waiting(app)
    assert (4, 3) == (len(record["reviews"]), len(record["fixes"]))


@given(
    branches=st.lists(st.sampled_from(["fixer", "notes", "end", "send"]), min_size=1, max_size=4),
    flaky=st.booleans(),
    guards=st.integers(1, 2),
)
def test_any_number_of_branches_counts_once(branches: list[str], flaky: bool, guards: int) -> None:
    """Property: however many routers and guards a node has, a pass is one visit and at most one handoff per edge."""
    builder: Builder = StateGraph(State)
    failed: list[str] = []
    retry = RetryPolicy(initial_interval=0.0, backoff_factor=1.0, jitter=False, max_attempts=9)
    builder.add_node("reviewer", lambda state: {"n": 1}, retry_policy=retry)
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_node("notes", lambda state: {"log": ["notes"]})
    builder.add_edge(START, "reviewer")
    builder.add_edge("fixer", "reviewer")
    for number, target in enumerate(branches):

        def route(state: Any, target: str = target, number: int = number) -> Any:
            if flaky and len(failed) < 2:
                failed.append(target)
                raise ConnectionError
            if state["n"] > 2:
                return END
            return {"end": END, "send": Send("fixer", dict(state))}.get(target, target)

        builder.add_conditional_edges("reviewer", named(f"router {number}", route), ["fixer", "notes", END])
    made = [guard_loop(builder, "reviewer", "fixer", max_cycles=5, name=f"g{number}") for number in range(guards)]
    app = builder.compile(checkpointer=InMemorySaver())
    for chunk in app.stream({"n": 0, "log": []}, thread(), stream_mode="updates"):
        assert all(isinstance(update, dict) for update in chunk.values())
    crossings = 2 if {"fixer", "send"} & set(branches) else 0
    for guard in made:
        ledger = guard.ledger(app.get_state(thread()))
        assert crossings == ledger.handoffs.get("reviewer->fixer", 0) == ledger.cycles
        assert (1 + crossings) == ledger.visits["reviewer"]


# -- a shut edge ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_a_shut_edge_is_shut_only_until_the_decision(action: str) -> None:
    """After `accept` or `reject` a new input trips again at once: the budget is still spent, and the record is new."""
    app, guard = both_ways("plain", "plain")
    app.invoke({"log": []}, thread())
    app.invoke(Command(resume={"action": action}), thread())
    assert not waiting(app)
    app.invoke({"log": []}, thread())
    assert 1 == len(waiting(app))
    assert 2 == len(app.get_state(thread()).values["escalations"])
    assert 1 == guard.ledger(app.get_state(thread())).cycles


def test_a_shut_edge_makes_one_record_however_often_it_is_asked() -> None:
    """New inputs on an undecided thread find the edge shut, and the record that is there."""
    app, _ = both_ways("plain", "plain")
    app.invoke({"log": []}, thread())
    (record,) = waiting(app)
    for _ in range(3):
        app.invoke({"log": []}, thread())
        assert [record["id"]] == list(app.get_state(thread()).values["escalations"])
        assert [record["id"]] == [one["id"] for one in waiting(app)]


# -- runs that stop and go on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("stop", ["router", "before fixer", "after reviewer", "before reviewer", "everywhere"])
def test_a_run_that_stops_in_the_middle_counts_each_handoff_once(stop: str, durability: Any) -> None:
    """An interrupt in the router itself, or at the node's door: the step counts when it is done, and only then."""
    builder: Builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"n": 1, "log": ["reviewer"]})
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_edge(START, "reviewer")

    def route(state: State) -> str:
        if stop in ("router", "everywhere"):
            interrupt("may I?")
        return "fixer"

    builder.add_conditional_edges("reviewer", route, ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=3)
    places: dict[str, Any] = {
        "before fixer": {"interrupt_before": ["fixer"]},
        "after reviewer": {"interrupt_after": ["reviewer"]},
        "before reviewer": {"interrupt_before": ["reviewer"]},
        "everywhere": {"interrupt_before": "*", "interrupt_after": "*"},
    }
    app = builder.compile(checkpointer=InMemorySaver(), **places.get(stop, {}))
    given: Any = {"log": []}
    for _ in range(60):
        app.invoke(given, thread(), durability=durability)
        snapshot = app.get_state(thread())
        ledger = guard.ledger(snapshot)
        assert snapshot.values["log"].count("fixer") <= ledger.handoffs.get("reviewer->fixer", 0)
        asked = [one.value for one in snapshot.interrupts]
        if any(isinstance(value, dict) for value in asked):
            break
        given = Command(resume=True) if asked else None
    assert {"reviewer->fixer": 3, "fixer->reviewer": 3} == ledger.handoffs
    assert {"reviewer": 4, "fixer": 3} == ledger.visits
    assert (4, 3) == (snapshot.values["log"].count("reviewer"), snapshot.values["log"].count("fixer"))


def test_a_loop_inside_a_loop_has_a_budget_per_run_of_the_inner_one() -> None:
    """A guarded graph that a guarded node calls: neither takes the other's visits for its own."""
    inner: Builder = StateGraph(State)
    for node in ("a", "b"):
        inner.add_node(node, lambda state, node=node: {"log": [node]})
    inner.add_edge(START, "a")
    inner.add_conditional_edges("a", lambda state: "b" if state["log"].count("a") < 3 else END, ["b", END])
    inner.add_edge("b", "a")
    guard_loop(inner, "a", "b", max_cycles=2)
    sub = inner.compile()
    outer: Builder = StateGraph(State)
    outer.add_node("a", lambda state: {"log": [",".join(sub.invoke({"log": []})["log"])]})
    outer.add_node("b", lambda state: {"log": ["outer b"]})
    outer.add_edge(START, "a")
    outer.add_edge("a", "b")
    outer.add_edge("b", "a")
    guard = guard_loop(outer, "a", "b", max_cycles=3)
    app = outer.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    state = app.get_state(thread())
    assert ["a,b,a,b,a", "outer b"] * 3 + ["a,b,a,b,a"] == state.values["log"]
    assert {"a": 4, "b": 3} == guard.ledger(state).visits
