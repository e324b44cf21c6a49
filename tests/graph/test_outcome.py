"""`outcome` and `escalation` speak of the present run; `escalations` keeps every record."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from langgraph_loopguard import GuardedState, guard_loop
from tests.graph.pairs import State, answer, builder_of, pair, records, thread

RETRY = {"action": "retry", "extra_cycles": 1}


class Mixed(State, GuardedState, total=False):
    pass


async def run(app: Any, given: Any, how: str) -> dict[str, Any]:
    """Return what a caller sees by one of the doors."""
    match how:
        case "ainvoke":
            result: dict[str, Any] = await app.ainvoke(given, thread())
        case "v2":
            result = dict(app.invoke(given, thread(), version="v2").value)
        case "stream":
            *_, result = app.stream(given, thread(), stream_mode="values")
        case _:
            result = app.invoke(given, thread())
    return result


HOW = ("invoke", "ainvoke", "stream", "v2")


@pytest.mark.parametrize("state", [State, Mixed])
@pytest.mark.parametrize("how", HOW)
async def test_a_retry_that_ends_well_has_no_outcome(state: Any, how: str) -> None:
    """The trip is decided and the loop came to its end: nothing says `escalated`, the record says what was decided."""
    app, _ = pair(max_cycles=2, rounds=3, state=state)
    assert "escalated" == (await run(app, {}, how))["outcome"]
    result = await run(app, Command(resume=RETRY), how)
    assert "outcome" not in result
    assert "retry" == result["escalation"]["decision"]["action"]
    assert ["retry"] == [record["decision"]["action"] for record in records(app)]
    assert "outcome" not in app.get_state(thread()).values


@pytest.mark.parametrize("how", HOW)
async def test_a_retry_that_trips_again_has_the_new_outcome(how: str) -> None:
    """The second trip is the present one."""
    app, _ = pair(max_cycles=1)
    await run(app, {}, how)
    result = await run(app, Command(resume=RETRY), how)
    assert ("escalated", None) == (result["outcome"], result["escalation"]["decision"])
    assert records(app)[1] == result["escalation"]


@pytest.mark.parametrize("decision", ["accept", "reject", "edit"])
def test_other_decisions_leave_the_outcome(decision: str) -> None:
    """How the automatic part ended is not rewritten by a person."""
    app, _ = pair(max_cycles=1, artifact="patch")
    app.invoke({}, thread())
    result = answer(app, {"action": decision, "artifact": "mine" if decision == "edit" else None})
    assert ("escalated", decision) == (result["outcome"], result["escalation"]["decision"]["action"])
    assert "escalated" == app.invoke(None, thread())["outcome"]


@pytest.mark.parametrize("state", [State, Mixed])
@pytest.mark.parametrize("per", ["turn", "thread"])
@pytest.mark.parametrize("decision", [None, {"action": "accept"}, {**RETRY, "extra_cycles": 50}])
@pytest.mark.parametrize("how", HOW)
async def test_a_later_input_that_is_healthy_returns_what_it_did_without_a_guard(
    state: Any, per: Any, decision: Any, how: str
) -> None:
    """An earlier trip, decided or not, is not this run's; its record is kept."""
    app, _ = pair(max_cycles=2, rounds=3, per=per, state=state)
    await run(app, {}, how)
    if decision is not None:
        await run(app, Command(resume=decision), how)
    before = records(app)
    result = await run(app, {"n": 90}, how)
    assert not {"outcome", "escalation"} & result.keys()
    if how != "stream":  # streamed values hold all channels of a graph
        assert {"n", "review", "patch", "log"} >= result.keys()
    assert before == records(app)
    assert not {"outcome", "escalation"} & app.get_state(thread()).values.keys()


@pytest.mark.parametrize("how", HOW)
async def test_an_input_that_meets_a_shut_edge_shows_its_record(how: str) -> None:
    """The question is asked again in this run, so it is this run's outcome."""
    app, _ = pair(max_cycles=1)
    first = await run(app, {}, how)
    again = await run(app, {"n": 0}, how)
    assert ("escalated", first["escalation"]) == (again["outcome"], again["escalation"])
    assert [first["escalation"]] == records(app)
    assert "outcome" not in await run(app, {"n": 99}, how)


def test_an_old_result_that_is_handed_in_again_brings_no_outcome_along() -> None:
    """A caller that gives back the whole result as the next input."""
    app, _ = pair(max_cycles=1, state=Mixed)
    result = app.invoke({}, thread())
    result.pop("__interrupt__")
    for name in ("thread", "another"):
        assert not {"outcome", "escalation"} & app.invoke({**result, "n": 99}, thread(name)).keys()


def test_a_resume_keeps_the_outcome_of_its_run() -> None:
    """`invoke(None)` and a step by step run are no new input."""
    app, _ = pair(max_cycles=1)
    app.invoke({}, thread())
    for _ in range(2):
        assert "escalated" == app.invoke(None, thread())["outcome"]


def two_pairs(**settings: Any) -> Any:
    """Two loops side by side; `log` says who was entered."""
    builder = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in (("b", "a"), ("d", "c"), (START, "a"), (START, "c")):
        builder.add_edge(source, target)
    for source, target in (("a", "b"), ("c", "d")):
        builder.add_conditional_edges(
            source,
            lambda state, source=source, target=target: target if state["log"].count(source) < 3 else END,
            [target, END],
        )
    guard_loop(builder, "a", "b", max_cycles=1)
    guard_loop(builder, "c", "d", max_cycles=1, **settings)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [("retry", "retry", None), ("retry", "accept", "escalated"), ("accept", "retry", "escalated")],
)
@pytest.mark.parametrize("order", ["ac", "ca", "at once"])
def test_of_two_loops_one_that_is_ended_stands(first: str, second: str, outcome: Any, order: str) -> None:
    """A retry takes back its own trip only."""
    app = two_pairs()
    app.invoke({"log": []}, thread())
    found = {one.value["escalation"]["loop"][0]: one.id for one in app.get_state(thread()).interrupts}
    answers = {
        found[name]: {"action": action, "extra_cycles": 9 if action == "retry" else 0}
        for name, action in (("a", first), ("c", second))
    }
    if order == "at once":
        result = answer(app, answers)
    else:
        for name in order:
            result = answer(app, {found[name]: answers[found[name]]})
    assert outcome == result.get("outcome")
    assert () == app.get_state(thread()).next


def test_a_loop_that_nobody_is_asked_about_stands() -> None:
    """`ask_human=False` beside a loop that is retried: the run did end in an escalation."""
    app = two_pairs(ask_human=False)
    app.invoke({"log": []}, thread())
    assert "escalated" == answer(app, {**RETRY, "extra_cycles": 9})["outcome"]
    assert "outcome" not in app.invoke({"log": ["a", "c"] * 3}, thread())


def test_a_blocked_run_is_no_longer_blocked_after_a_retry() -> None:
    """The same for a guard that broke."""
    broken = [True]

    def measure(state: Any) -> int:
        if broken:
            raise RuntimeError("not yet")
        return 1

    app, _ = pair(max_cycles=2, rounds=1, measure=measure)
    assert "blocked" == app.invoke({}, thread())["outcome"]
    broken.clear()
    assert "outcome" not in answer(app, {"action": "retry"})


def test_it_holds_after_a_new_process() -> None:
    """What speaks of the run is in the checkpoint, not on objects."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        app, _ = pair(max_cycles=2, rounds=3, saver=saver)
        app.invoke({}, thread())
        app, _ = pair(max_cycles=2, rounds=3, saver=saver)
        assert "escalated" == app.get_state(thread()).values["outcome"]
        assert "outcome" not in answer(app, RETRY)
        app, _ = pair(max_cycles=2, rounds=3, saver=saver)
        assert "escalation" not in app.invoke({"n": 90}, thread())


def test_an_input_changes_nothing_where_nothing_has_tripped() -> None:
    """No write, no step and no checkpoint more than without a guard."""
    app, _ = pair(rounds=2, max_cycles=9)
    bare = builder_of(rounds=2).compile(checkpointer=InMemorySaver())
    for graph in (app, bare):
        graph.invoke({}, thread())
        graph.invoke({"n": 0}, thread())
    steps = [
        [(state.next, state.metadata["source"], state.metadata["step"]) for state in graph.get_state_history(thread())]
        for graph in (app, bare)
    ]
    assert steps[0] == steps[1]
    updates = [list(graph.stream({"n": 0}, thread(), stream_mode="updates")) for graph in (app, bare)]
    assert [chunk.keys() for chunk in updates[0]] == [chunk.keys() for chunk in updates[1]]


@pytest.mark.parametrize("early", [True, False])
def test_a_graph_that_nothing_enters_is_refused(early: bool) -> None:
    """The guard's own edge on `START` does not pass for an entrypoint; one that is added later does."""
    builder = builder_of(rounds=1)
    builder.edges.discard((START, "reviewer"))
    guard_loop(builder, "reviewer", "fixer")
    if early:
        with pytest.raises(ValueError, match="entrypoint"):
            builder.compile().invoke({})
    builder.add_edge(START, "reviewer")
    assert "line 0\nline 1\n" == builder.compile().invoke({})["patch"]


@pytest.mark.parametrize("decision", [{"action": "accept", "fix": 1}, RETRY])
def test_what_one_person_decides_is_done_in_the_step_that_writes_it_down(decision: Any) -> None:
    """Who sees the decision in the record sees the work in the state too: there is no moment in between."""
    app, _ = pair(max_cycles=2, artifact="patch")
    app.invoke({}, thread())
    answer(app, decision)
    decided = [
        state for state in app.get_state_history(thread())
        if any(record["decision"] for record in state.values.get("escalations", {}).values())
    ]  # fmt: skip
    first = decided[-1]
    if decision is RETRY:
        assert (("fixer",), False) == (first.next, "outcome" in first.values)
    else:
        assert ((), "line 0\nline 1\n") == (first.next, first.values["patch"])
