"""Scope keys, observe mode and a node of the user's own for trips."""

from __future__ import annotations

import logging
import operator
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import MaxCycles, guard_loop
from tests.graph.pairs import answer, builder_of, pair, records, thread


def limited(steps: int) -> dict[str, Any]:
    """The config of the thread with a recursion limit."""
    return {**thread(), "recursion_limit": steps}


# -- scope keys -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["pr", lambda state: state["pr"], lambda state: ("pull", state["pr"])])
def test_each_scope_key_has_its_own_budget(key: Any) -> None:
    """A second pull request in the same thread begins at zero; the first one is still at its end."""
    app, guard = pair(max_cycles=2, key=key, ask_human=False)
    for number in (1, 2, 1):
        result = app.invoke({"pr": number, "n": 0}, thread())
        assert "escalated" == result["outcome"]
    found = guard.report(app.get_state(thread()))
    assert [2, 2] == [ledger.cycles for ledger in found.values()]
    assert 2 == len(records(app))


@pytest.mark.parametrize(
    ("one", "other"), [(7, "7"), (1, True), (None, "null"), ("a", "b"), (1, 1.5), ([1], "[1]"), ({}, [])]
)
def test_keys_of_different_kinds_are_different(one: Any, other: Any) -> None:
    """`7` and `"7"`, `1` and `True`, nothing and `"null"` are two budgets each."""
    app, guard = pair(rounds=1, key="pr")
    for key in (one, other):
        app.invoke({"pr": key, "n": 0}, thread())
    state = app.get_state(thread())
    assert [1, 1] == [guard.ledger(state, one).cycles, guard.ledger(state, other).cycles]
    assert 2 == len(guard.report(state))


def test_dicts_of_another_order_are_one_key() -> None:
    """A key is its content."""
    app, guard = pair(rounds=1, key="pr")
    for key in ({"a": 1, "b": 2}, {"b": 2, "a": 1}):
        app.invoke({"pr": key, "n": 0}, thread())
    assert [2] == [ledger.cycles for ledger in guard.report(app.get_state(thread())).values()]


@given(
    key=st.recursive(
        st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=6,
    )
)
def test_any_json_is_a_key(key: Any) -> None:
    """Property: whatever JSON the key is, its ledger is found by it."""
    app, guard = pair(rounds=1, key=lambda state: state.get("pr"))
    app.invoke({"pr": key, "n": 0}, thread())
    assert 1 == guard.ledger(app.get_state(thread()), key).cycles


class Opaque:
    """An object whose `repr` holds its address."""


@pytest.mark.parametrize(
    "key", [lambda state: object(), lambda state: Opaque(), lambda state: [Opaque()], lambda state: lambda: 0]
)
@pytest.mark.parametrize("saver", ["memory", None])
def test_a_key_without_a_stable_form_blocks(key: Any, saver: Any) -> None:
    """It would be a new budget at each handoff: the loop ends in `blocked`, with the error in the record."""
    app, _ = pair(key=key, saver=saver)
    result = app.invoke({}, limited(60))
    assert "blocked" == result["outcome"]
    reason = result["escalation"]["reason"]
    assert ("broken", "FingerprintError") == (reason["kind"], reason["observed"])
    assert "key" in reason["message"]


@pytest.mark.parametrize("key", [lambda state: state["nothing"], lambda state: 1 / 0, "not_a_key"])
def test_a_key_that_raises_blocks(key: Any) -> None:
    """The error stands in the record, and the work is kept."""
    app, _ = pair(key=key)
    result = app.invoke({}, thread())
    assert ("blocked", "broken") == (result["outcome"], result["escalation"]["reason"]["kind"])
    assert "remark 1" == app.get_state(thread()).values["review"]


def test_a_record_holds_its_own_scope_only() -> None:
    """Reviews and fixes of another pull request are not in it."""
    app, _ = pair(max_cycles=1, key="pr", ask_human=False)
    for number in (1, 2):
        app.invoke({"pr": number, "n": 10 * number}, thread())
    for record in records(app):
        number = record["scope_key"]
        assert [f"remark {10 * number + n}" for n in (1, 2)] == [one["content"]["review"] for one in record["reviews"]]
        assert 1 == len(record["fixes"])


def test_an_answer_opens_one_scope_only() -> None:
    """A retry for one key leaves the other one shut."""
    app, guard = pair(max_cycles=1, key="pr")
    for number in (1, 2):
        app.invoke({"pr": number, "n": 0}, thread())
    waiting = {one.value["escalation"]["scope_key"]: one for one in app.get_state(thread()).interrupts}
    result = answer(app, {waiting[2].id: {"action": "retry", "extra_cycles": 1}})
    state = app.get_state(thread())
    assert [1, 2] == [guard.ledger(state, number).cycles for number in (1, 2)]
    assert "__interrupt__" in result


def test_threads_never_meet() -> None:
    """The same graph on two threads, turn about: each has a cap of its own."""
    app, guard = pair(max_cycles=2)
    for name in ("a", "b"):
        app.invoke({}, thread(name))
    answer(app, {"action": "retry", "extra_cycles": 3}, thread("a"))
    assert [5, 2] == [guard.ledger(app.get_state(thread(name))).cycles for name in ("a", "b")]
    assert [2, 1] == [len(records(app, thread(name))) for name in ("a", "b")]


# -- observe ----------------------------------------------------------------------------------------------------------


def test_observe_diverts_nothing_and_writes_what_it_would_have_done(caplog: pytest.LogCaptureFixture) -> None:
    """The run is the unguarded one; the ledger says that the cap was passed, and how often."""
    bare = builder_of(rounds=6).compile().invoke({})
    with caplog.at_level(logging.INFO, logger="langgraph_loopguard"):
        app, guard = pair(rounds=6, max_cycles=3, mode="observe")
        result = app.invoke({}, thread())
    assert bare == result
    assert "outcome" not in result
    assert not records(app)
    ledger = guard.ledger(app.get_state(thread()))
    assert (6, False) == (ledger.cycles, ledger.tripped)
    would = ledger.data["would_trip"]
    assert ("MaxCycles", 3, 4) == tuple(would["reason"][key] for key in ("condition", "threshold", "observed"))
    assert 3 <= would["count"] == sum("would have tripped" in message for message in caplog.messages)


def test_a_guard_that_enforces_goes_on_from_one_that_observed() -> None:
    """A thread of a trial run, then with the guard in force: the count spans both."""
    saver = InMemorySaver()
    app, _ = pair(rounds=2, max_cycles=3, mode="observe", saver=saver)
    app.invoke({}, thread())
    app, guard = pair(max_cycles=3, saver=saver)
    app.invoke({"n": 0}, thread())
    assert 3 == guard.ledger(app.get_state(thread())).cycles


# -- a node of the user's own -----------------------------------------------------------------------------------------


def to_own_node(seen: list[Any], *, back: bool = False, saver: Any = None, **settings: Any) -> tuple[Any, Any]:
    """A pair whose trips go to the user's own `lead`."""
    builder = builder_of()
    builder.add_node("lead", lambda state, config: seen.append(state.get("n")) or {"log": ["lead"]})
    if back:
        builder.add_edge("lead", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", escalate_to="lead", **settings)
    return builder.compile(checkpointer=saver), guard


def test_a_trip_goes_to_the_users_own_node() -> None:
    """It runs once, after the record is written, and the run ends as it says."""
    seen: list[Any] = []
    app, _ = to_own_node(seen, max_cycles=3)
    result = app.invoke({})
    assert ([4], ["lead"], "escalated") == (seen, result["log"], result["outcome"])
    assert 3 == result["escalation"]["cycles"]


def test_the_users_own_node_finds_the_record_in_the_state() -> None:
    """With `GuardedState` mixed in, `escalation` is among its keys."""
    from langgraph_loopguard import GuardedState
    from tests.graph.pairs import State

    class Seeing(State, GuardedState):
        pass

    found: list[Any] = []
    builder = builder_of(state=Seeing)
    builder.add_node("lead", lambda state: found.append(state["escalation"]) or {})
    guard_loop(builder, "reviewer", "fixer", escalate_to="lead", max_cycles=2)
    result = builder.compile().invoke({})
    assert [result["escalation"]] == found


@pytest.mark.parametrize("saver", [False, True])
def test_the_users_own_node_cannot_reopen_the_loop(saver: bool) -> None:
    """When it leads back into the loop, the edge is still shut: one record, one visit of the node, and the run ends."""
    seen: list[Any] = []
    app, guard = to_own_node(seen, back=True, saver=InMemorySaver() if saver else None, max_cycles=2)
    result = app.invoke({}, limited(40))
    assert 1 == len(seen)
    assert "escalated" == result["outcome"]
    assert 2 == result["escalation"]["cycles"]
    if saver:
        assert 1 == len(records(app))
        assert 2 == guard.ledger(app.get_state(thread())).handoffs["reviewer->fixer"]
        app.invoke({}, limited(40))
        assert (1, 1) == (len(records(app)), len(seen))


def test_the_users_own_node_may_ask_by_itself() -> None:
    """`interrupt()` in it works as in any node."""
    from langgraph.types import interrupt

    builder = builder_of()
    builder.add_node("lead", lambda state: {"log": [interrupt("what now?")]})
    guard_loop(builder, "reviewer", "fixer", escalate_to="lead", max_cycles=2)
    app = builder.compile(checkpointer=InMemorySaver())
    result = app.invoke({}, thread())
    assert ["what now?"] == [one.value for one in result["__interrupt__"]]
    assert ["stop"] == app.invoke(Command(resume="stop"), thread())["log"]


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


@pytest.mark.parametrize(("first", "second"), [("lead", None), (None, "lead"), ("lead", "boss")])
def test_two_guards_escalate_to_where_each_says(first: Any, second: Any) -> None:
    """A node of one's own for one guard, the built-in question or another node for the other."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(Log)
    for node in ("a", "b", "c", "lead", "boss"):
        builder.add_node(node, lambda state, node=node: {"log": [node]})
    for source, target in ((START, "a"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("lead", END), ("boss", END)):
        builder.add_edge(source, target)
    guard_loop(builder, "a", "b", max_cycles=2, escalate_to=first)
    guard_loop(builder, "b", "c", max_cycles=2, escalate_to=second)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, limited(40))
    state = app.get_state(thread())
    assert {"a-b", "b-c"} == {record["loop"] for record in records(app)}
    asked = {one.value["escalation"]["loop"] for one in state.interrupts}
    if state.interrupts:  # LangGraph commits what ran beside a question only when it is answered
        app.invoke(Command(resume={one.id: {"action": "reject"} for one in state.interrupts}), limited(40))
    log = app.get_state(thread()).values["log"]
    for guard, way in (("a-b", first), ("b-c", second)):
        assert (way is None) == (guard in asked)
        if way is not None:
            assert 1 == log.count(way)


# -- a thread that began before ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_thread_that_began_before_the_guard_goes_on(interrupted: bool) -> None:
    """Its state is kept, and the guard counts from where it was added."""
    saver = InMemorySaver()
    bare = builder_of().compile(checkpointer=saver, interrupt_before=["fixer"] if interrupted else None)
    if interrupted:
        bare.invoke({}, thread())
        bare.invoke(None, thread())
        assert ("fixer",) == bare.get_state(thread()).next
    else:
        with pytest.raises(Exception, match="[Rr]ecursion"):
            bare.invoke({}, limited(7))
    before = bare.get_state(thread()).values["n"]
    app, guard = pair(max_cycles=3, saver=saver)
    app.invoke(None, thread())
    values = app.get_state(thread()).values
    (record,) = records(app)
    assert (3, "MaxCycles") == (record["cycles"], record["reason"]["condition"])
    assert values["n"] in (before + 3, before + 4)
    assert 3 == guard.ledger(values).cycles


def test_a_thread_goes_on_after_its_guard_is_gone() -> None:
    """The unguarded graph reads a guarded thread: the guard's keys are left alone."""
    saver = InMemorySaver()
    app, _ = pair(rounds=2, saver=saver)
    app.invoke({}, thread())
    bare = builder_of(rounds=4).compile(checkpointer=saver)
    assert 5 == bare.invoke({}, thread())["n"]


def test_a_cap_can_be_changed_between_runs() -> None:
    """A thread under a new cap goes by the new one."""
    saver = InMemorySaver()
    app, _ = pair(rounds=2, max_cycles=5, saver=saver)
    app.invoke({}, thread())
    app, guard = pair(max_cycles=3, stop_when=MaxCycles(9), saver=saver)
    app.invoke({"n": 0}, thread())
    assert 3 == guard.ledger(app.get_state(thread())).cycles
