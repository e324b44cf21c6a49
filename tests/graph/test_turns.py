"""Turns, resumes, edits of the state and forks: what renews a budget, and that nothing is counted twice or lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from langgraph_loopguard import GuardedState, LoopGuard, guard_loop
from tests.graph.pairs import State, answer, records, thread

FORWARD, BACK = "reviewer->fixer", "fixer->reviewer"


def looping(
    *, interrupts: bool = False, saver: Any = None, plain: bool = False, **settings: Any
) -> tuple[Any, LoopGuard]:
    """A pair whose input says how many rounds it goes (`pr`), with a log of every visit that was committed."""
    builder = StateGraph(State)

    def reviewer(state: State) -> dict[str, Any]:
        n = (state.get("n") or 0) + 1
        return {"n": n, "review": f"remark {n}", "log": ["review"]}

    def fixer(state: State) -> dict[str, Any]:
        if interrupts:
            interrupt("may I?")
        return {"patch": f"patch {state['n']}", "log": ["fix"]}

    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", fixer)
    builder.add_edge(START, "reviewer")
    if plain:
        builder.add_edge("reviewer", "fixer")
    else:
        builder.add_conditional_edges(
            "reviewer", lambda state: "fixer" if state["n"] <= state.get("pr", 99) else END, ["fixer", END]
        )
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", **settings)
    return builder.compile(checkpointer=saver or InMemorySaver()), guard


def fixes(app: Any, config: Any = None) -> int:
    """Visits of the fixer on the branch of history that a config names."""
    return app.get_state(config or thread()).values.get("log", []).count("fix")


def counted(app: Any, guard: LoopGuard, config: Any = None) -> dict[str, int]:
    return guard.ledger(app.get_state(config or thread())).handoffs


# -- turns ---------------------------------------------------------------------------------------------------


def test_a_budget_per_thread_spans_the_inputs() -> None:
    """Three inputs of one cycle each spend a cap of three; the fourth trips, and the reason says why."""
    app, guard = looping(max_cycles=3)
    for n in range(1, 4):
        assert "outcome" not in app.invoke({"n": 0, "pr": 1}, thread())
        assert n == counted(app, guard)[FORWARD]
    result = app.invoke({"n": 0, "pr": 1}, thread())
    assert (3, 3) == (fixes(app), counted(app, guard)[FORWARD])
    assert "all inputs of the thread" in result["escalation"]["reason"]["message"]
    assert 0 == guard.ledger(app.get_state(thread())).turns


def test_the_reason_speaks_of_inputs_only_where_there_are_several() -> None:
    """Without a checkpointer, and in a subgraph that begins anew at each call, nothing is counted over inputs."""

    def message(inner_saver: Any, saver: Any, *, nested: bool) -> str:
        class Inner(State, GuardedState, total=False):
            pass

        inner = StateGraph(Inner)
        inner.add_node("reviewer", lambda state: {"n": (state.get("n") or 0) + 1})
        inner.add_node("fixer", lambda state: {"patch": "x"})
        for source, target in ((START, "reviewer"), ("reviewer", "fixer"), ("fixer", "reviewer")):
            inner.add_edge(source, target)
        guard_loop(inner, "reviewer", "fixer", max_cycles=1, ask_human=False)
        if not nested:
            found = inner.compile(checkpointer=saver).invoke({}, thread())
        else:
            outer = StateGraph(Inner)
            outer.add_node("loop", inner.compile(checkpointer=inner_saver))
            outer.add_edge(START, "loop")
            found = outer.compile(checkpointer=saver).invoke({}, thread())
        text: str = found["escalation"]["reason"]["message"]
        return text

    spans = "counted over all inputs"
    assert spans in message(None, InMemorySaver(), nested=False)
    assert spans not in message(None, None, nested=False)
    assert spans not in message(None, InMemorySaver(), nested=True)
    assert spans in message(True, InMemorySaver(), nested=True)


@pytest.mark.parametrize("how", ["invoke", "ainvoke", "stream", "batch"])
async def test_a_budget_per_turn_is_new_for_each_input(how: str) -> None:
    """Ten inputs of three cycles each pass a cap of three; one of four trips at three."""
    app, guard = looping(max_cycles=3, per="turn")

    async def enter(rounds: int) -> None:
        given = {"n": 0, "pr": rounds}
        if how == "ainvoke":
            await app.ainvoke(given, thread())
        elif how == "stream":
            list(app.stream(given, thread()))
        elif how == "batch":
            app.batch([given], thread())
        else:
            app.invoke(given, thread())

    for turn in range(10):
        await enter(3)
        assert (3, turn) == (counted(app, guard)[FORWARD], guard.ledger(app.get_state(thread())).turns)
    assert 30 == fixes(app)
    assert [] == records(app)
    await enter(4)
    assert 33 == fixes(app)
    (record,) = records(app)
    assert 3 == record["cycles"]
    assert "all inputs" not in record["reason"]["message"]


def test_a_record_per_turn_holds_this_turn() -> None:
    """Reviews and fixes of earlier inputs are not this trip's."""
    app, _ = looping(max_cycles=2, per="turn", artifact="patch")
    app.invoke({"n": 50, "pr": 52}, thread())
    app.invoke({"n": 0}, thread())
    (record,) = records(app)
    assert ["remark 1", "remark 2", "remark 3"] == [one["content"]["review"] for one in record["reviews"]]
    assert ["patch 1", "patch 2"] == [one["content"]["patch"] for one in record["fixes"]]


@pytest.mark.parametrize("per", ["turn", "thread"])
def test_a_resume_is_no_turn(per: Any) -> None:
    """Interrupts inside the loop's nodes: the budget goes on over every resume, and no handoff is counted twice."""
    app, guard = looping(interrupts=True, max_cycles=3, per=per)
    result = app.invoke({"n": 0}, thread())
    for n in range(1, 4):
        assert "may I?" == result["__interrupt__"][0].value
        assert (n, n - 1) == (counted(app, guard)[FORWARD], fixes(app))
        app.invoke(None, thread())
        assert n == counted(app, guard)[FORWARD]
        result = answer(app, True)
    assert (3, 3) == (counted(app, guard)[FORWARD], fixes(app))
    assert "escalation" in result["__interrupt__"][0].value
    assert 0 == guard.ledger(app.get_state(thread())).turns


def test_an_answer_to_the_guard_is_no_turn() -> None:
    """A retry of one cycle is one cycle, and the earlier ones stay counted."""
    app, guard = looping(max_cycles=2, per="turn")
    app.invoke({"n": 0}, thread())
    for n in range(3, 6):
        answer(app, {"action": "retry", "extra_cycles": 1})
        assert (n, 0) == (counted(app, guard)[FORWARD], guard.ledger(app.get_state(thread())).turns)


@pytest.mark.parametrize("values", [{"review": "x"}, {"n": 1}])
def test_an_edit_of_the_state_is_no_turn(values: Any) -> None:
    """`update_state` between two runs renews nothing."""
    app, guard = looping(max_cycles=2, per="turn")
    app.invoke({"n": 0, "pr": 2}, thread())
    app.update_state(thread(), values, as_node="fixer")
    assert (2, 0) == (counted(app, guard)[FORWARD], guard.ledger(app.get_state(thread())).turns)
    app.invoke(None, thread())
    assert (2, 2) == (counted(app, guard)[FORWARD], fixes(app))


def test_a_command_that_is_given_as_input_is_no_turn() -> None:
    """`Command(goto=...)` goes on with the thread: only values that enter by `START` are a new input."""
    app, guard = looping(max_cycles=3, per="turn")
    app.invoke({"n": 0, "pr": 2}, thread())
    app.invoke(Command(update={"n": 0}, goto="reviewer"), thread())
    assert (0, 3) == (guard.ledger(app.get_state(thread())).turns, counted(app, guard)[FORWARD])


def test_a_turn_renews_every_scope_key() -> None:
    """With a key, an input renews the budgets of all of them."""
    app, guard = _by_review(max_cycles=2)
    for _ in range(3):
        for file in ("a", "b"):
            app.invoke({"n": 0, "pr": 2, "review": file}, thread())
    assert [] == records(app)
    assert {'"a"', '"b"'} == guard.report(app.get_state(thread())).keys()
    assert 0 == guard.ledger(app.get_state(thread()), "a").cycles
    assert 2 == guard.ledger(app.get_state(thread()), "b").cycles


def _by_review(**settings: Any) -> tuple[Any, LoopGuard]:
    builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"n": state["n"] + 1})
    builder.add_node("fixer", lambda state: {"patch": f"patch {state['n']}", "log": ["fix"]})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges(
        "reviewer", lambda state: "fixer" if state["n"] <= state["pr"] else END, ["fixer", END]
    )
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", per="turn", key="review", **settings)
    return builder.compile(checkpointer=InMemorySaver()), guard


def test_two_guards_of_one_graph_may_differ() -> None:
    """One budget per turn beside one per thread: each counts by its own rule."""
    builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"n": state["n"] + 1})
    builder.add_node("fixer", lambda state: {"log": ["fix"]})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda state: "fixer" if state["n"] <= 2 else END, ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    turn = guard_loop(builder, "reviewer", "fixer", max_cycles=2, per="turn", name="turn")
    whole = guard_loop(builder, "reviewer", "fixer", max_cycles=5, name="whole")
    app = builder.compile(checkpointer=InMemorySaver())
    for _ in range(2):
        app.invoke({"n": 0}, thread())
    state = app.get_state(thread())
    assert (2, 4) == (turn.ledger(state).cycles, whole.ledger(state).cycles)
    app.invoke({"n": 0}, thread())
    assert ["whole"] == [record["loop"] for record in records(app)]
    assert 5 == fixes(app)


def test_a_new_turn_opens_what_the_last_one_left_shut() -> None:
    """`per="turn"`: the input renews the budget, so the edge is open; the old record stays, undecided."""
    app, guard = looping(max_cycles=1, per="turn")
    app.invoke({"n": 0}, thread())
    app.invoke({"n": 0, "pr": 1}, thread())
    assert ((), 2) == (app.get_state(thread()).next, fixes(app))
    app.invoke({"n": 0, "pr": 9}, thread())
    assert [None, None] == [record["decision"] for record in records(app)]
    assert 1 == len(app.get_state(thread()).interrupts)
    answer(app, {"action": "retry", "extra_cycles": 1, "escalation_id": records(app)[1]["id"]})
    assert (4, 2) == (fixes(app), counted(app, guard)[FORWARD])


def test_a_retry_sends_only_what_its_own_trip_held_back() -> None:
    """The payloads of a turn that was given up are gone with it."""
    builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"n": state["n"] + 1})
    builder.add_node("fixer", lambda state: {"log": [f"fix {state['n']}"]})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda state: [Send("fixer", {"n": state["n"]})], ["fixer"])
    builder.add_edge("fixer", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, per="turn")
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"n": 0}, thread())
    app.invoke({"n": 10}, thread())
    answer(app, {"action": "retry", "extra_cycles": 1})
    assert ["fix 1", "fix 11", "fix 12"] == app.get_state(thread()).values["log"]


def test_the_turns_of_a_persistent_subgraph_are_its_own() -> None:
    """A subgraph with a memory of its own: each call is an input, and renews a budget per turn, not one per thread."""

    def outer(per: Any) -> int:
        class Inner(State, GuardedState, total=False):
            pass

        inner = StateGraph(Inner)
        inner.add_node("reviewer", lambda state: {"n": state["n"] + 1})
        inner.add_node("fixer", lambda state: {"patch": "x", "log": ["fix"]})
        inner.add_edge(START, "reviewer")
        inner.add_conditional_edges("reviewer", lambda state: "fixer" if state["n"] <= 2 else END, ["fixer", END])
        inner.add_edge("fixer", "reviewer")
        guard_loop(inner, "reviewer", "fixer", max_cycles=2, per=per)
        graph = StateGraph(State)
        graph.add_node("loop", inner.compile(checkpointer=True))
        graph.add_edge(START, "loop")
        app = graph.compile(checkpointer=InMemorySaver())
        for call in range(3):
            if "__interrupt__" in app.invoke({"n": 0, "log": []}, thread()):
                return call
        return 3

    assert (3, 1) == (outer("turn"), outer("thread"))


def test_threads_that_run_turn_about_never_meet() -> None:
    """Two threads and two loops on one compiled graph, step by step."""
    app, guard = looping(max_cycles=3, interrupts=True)
    for name in ("a", "b"):
        app.invoke({"n": 0}, thread(name))
    for _ in range(2):
        for name in ("a", "b"):
            answer(app, True, thread(name))
    answer(app, True, thread("a"))
    assert ([1, 0], [3, 2]) == (
        [len(records(app, thread(name))) for name in ("a", "b")],
        [fixes(app, thread(name)) for name in ("a", "b")],
    )
    assert [3, 3] == [counted(app, guard, thread(name))[FORWARD] for name in ("a", "b")]


# -- edits of the state --------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("as_node", ["reviewer", None])
def test_an_edit_before_the_handoff_is_taken_up_counts_nothing(plain: bool, as_node: Any) -> None:
    """A person corrects the review before the fixer reads it: the routing runs again, the fixer is entered once."""
    app, guard = looping(max_cycles=2, plain=plain)
    app.invoke({"n": 0}, thread(), interrupt_before=["fixer"])
    for word in ("one", "two", "three"):
        app.update_state(thread(), {"review": word}, as_node=as_node)
        assert (1, ("fixer",)) == (counted(app, guard)[FORWARD], app.get_state(thread()).next)
    app.invoke(None, thread())
    assert (2, 2) == (fixes(app), counted(app, guard)[FORWARD])


def test_an_edit_of_the_way_back_counts_nothing() -> None:
    """The same at the other edge of the pair."""
    app, guard = looping(max_cycles=5)
    app.invoke({"n": 0}, thread(), interrupt_before=["reviewer"], interrupt_after=["fixer"])
    app.invoke(None, thread(), interrupt_after=["fixer"])
    before = counted(app, guard)
    for _ in range(3):
        app.update_state(thread(), {"patch": "mine"}, as_node="fixer")
    assert before == counted(app, guard)
    app.invoke(None, thread())
    assert 5 == fixes(app)


def test_an_edit_that_stands_for_a_visit_counts_its_handoff() -> None:
    """A person reviews in place of the reviewer: that is a handoff as any other."""
    app, guard = looping(max_cycles=2)
    app.invoke({"n": 0}, thread(), interrupt_after=["fixer"])
    assert ("reviewer",) == app.get_state(thread()).next
    app.update_state(thread(), {"review": "mine", "n": 2}, as_node="reviewer")
    assert (2, ("fixer",)) == (counted(app, guard)[FORWARD], app.get_state(thread()).next)
    app.invoke(None, thread())
    assert (2, 2) == (fixes(app), counted(app, guard)[FORWARD])
    assert 1 == len(app.get_state(thread()).interrupts)


def test_an_edit_cannot_pass_a_spent_budget() -> None:
    """Standing in for the reviewer does not open the edge: the routing goes to the escalation."""
    app, guard = looping(max_cycles=1)
    app.invoke({"n": 0}, thread(), interrupt_after=["fixer"])
    app.update_state(thread(), {"review": "mine", "n": 2}, as_node="reviewer")
    assert ("loopguard_escalate",) == app.get_state(thread()).next
    app.invoke(None, thread())
    assert (1, 1, 1) == (fixes(app), counted(app, guard)[FORWARD], len(app.get_state(thread()).interrupts))


def test_an_edit_while_a_question_waits_opens_nothing() -> None:
    """The shut edge stays shut, and its record is the one that is asked about."""
    app, guard = looping(max_cycles=1)
    app.invoke({"n": 0}, thread())
    (record,) = records(app)
    app.update_state(thread(), {"review": "mine"}, as_node="reviewer")
    app.invoke(None, thread())
    assert (1, [record]) == (fixes(app), records(app))
    answer(app, {"action": "retry", "extra_cycles": 1, "escalation_id": record["id"]})
    assert (2, 2) == (fixes(app), counted(app, guard)[FORWARD])


def test_an_edit_of_a_reducer_key_leaves_the_guard_alone() -> None:
    """Values written back whole (`update_state(config, state.values)`) change no ledger, history or record."""
    app, guard = looping(max_cycles=1)
    app.invoke({"n": 0}, thread())
    before = app.get_state(thread())
    app.update_state(thread(), dict(before.values), as_node="loopguard_escalate")
    after = app.get_state(thread())
    for key in ("loopguard", "escalations"):
        assert before.values[key] == after.values[key]
    assert guard.ledger(after).tripped


# -- forks ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "sqlite"])
def saver(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A checkpointer of each kind that needs no server."""
    if request.param == "memory":
        yield InMemorySaver()
    else:
        with SqliteSaver.from_conn_string(":memory:") as opened:
            yield opened


def remembered(app: Any, guard: LoopGuard, config: Any) -> Any:
    """Ledger and records without times and ids, which differ from run to run."""
    state = app.get_state(config)
    ledger = {
        k: v
        for k, v in guard.ledger(state).data.items()
        if k not in ("seconds", "at", "tripped", "steps_left", "stride")
    }
    found = [
        {
            **{k: record[k] for k in ("cycles", "diff", "edge", "best_fix", "outcome")},
            **{k: [(one["n"], one["cycle"], one["content"]) for one in record[k]] for k in ("reviews", "fixes")},
        }
        for record in state.values.get("escalations", {}).values()
    ]
    return ledger, found


def test_every_checkpoint_holds_the_count_of_its_own_time(saver: Any) -> None:
    """Going back in history, the ledger is what it was then."""
    app, guard = looping(max_cycles=4, saver=saver)
    app.invoke({"n": 0}, thread())
    for state in app.get_state_history(thread()):
        pending = "fixer" in state.next
        assert guard.ledger(state).handoffs.get(FORWARD, 0) == state.values.get("log", []).count("fix") + pending


def test_a_fork_at_any_checkpoint_ends_as_the_first_run(saver: Any) -> None:
    """Replay from each checkpoint: the same counts, the same whole record, and the first history stays as it was."""
    app, guard = looping(max_cycles=3, saver=saver, artifact="patch")
    app.invoke({"n": 0}, thread())
    head = app.get_state(thread()).config
    expected = remembered(app, guard, head)
    for state in list(app.get_state_history(thread())):
        if state.metadata["source"] == "input" and state.metadata["step"] < 0 and not state.values:
            continue
        app.invoke(None, state.config)
        assert expected == remembered(app, guard, thread())
        assert (3, 3) == (fixes(app), counted(app, guard)[FORWARD])
        assert expected == remembered(app, guard, head)


def test_a_fork_with_another_input_counts_from_there(saver: Any) -> None:
    """A new input at an older checkpoint finds the count of that checkpoint."""
    app, guard = looping(max_cycles=5, saver=saver)
    app.invoke({"n": 0, "pr": 3}, thread())
    for state in list(app.get_state_history(thread())):
        if state.next != ("fixer",):
            continue
        before = guard.ledger(state).handoffs[FORWARD]
        app.invoke({"n": 0, "pr": 1}, state.config)
        # The handoff that was counted and never taken up stays counted: it may cost a cycle, it never gives one.
        assert before + 1 == counted(app, guard)[FORWARD]


def test_an_edited_fork_keeps_the_history_right(saver: Any) -> None:
    """`update_state` on an older checkpoint, then on: the record has the edited branch and nothing of the other."""
    app, _ = looping(max_cycles=3, saver=saver, artifact="patch")
    app.invoke({"n": 0}, thread())
    state = next(
        state for state in app.get_state_history(thread()) if state.next == ("reviewer",) and state.values["n"] == 1
    )
    fork = app.update_state(state.config, {"patch": "patch of a person", "n": 40}, as_node="fixer")
    app.invoke(None, fork)
    (record,) = records(app)
    assert ["remark 1", "remark 41", "remark 42"] == [one["content"]["review"] for one in record["reviews"]][:3]
    assert ["patch 1", "patch 41", "patch 42"] == [one["content"]["patch"] for one in record["fixes"]][:3]
    assert fixes(app) == len(record["fixes"])


def test_forks_of_a_long_history_are_whole(saver: Any) -> None:
    """Over many blocks and snapshots of the history channel: each fork's record has every emission of its branch."""
    app, _ = looping(max_cycles=90, saver=saver)
    app.invoke({"n": 0}, thread())
    states = [state for state in app.get_state_history(thread()) if state.next == ("fixer",)]
    for state in (states[0], states[30], states[75], states[-1]):
        app.invoke(None, state.config)
        record = records(app)[-1]
        assert [f"remark {n}" for n in range(1, 92)] == [one["content"]["review"] for one in record["reviews"]]
        assert [f"patch {n}" for n in range(1, 91)] == [one["content"]["patch"] for one in record["fixes"]]


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(1, 4)),
        st.tuples(st.just("fork"), st.integers(0, 30)),
        st.tuples(st.just("input"), st.just(0)),
        st.tuples(st.just("retry"), st.integers(1, 2)),
        st.tuples(st.just("stand in"), st.just(0)),
        st.tuples(st.just("edit"), st.just(0)),
    ),
    max_size=15,
)


@given(moves=MOVES)
@example(moves=[("input", 0), ("fork", 1), ("stand in", 0)])
@example(moves=[("input", 0), ("step", 1), ("fork", 2), ("stand in", 0)])
def test_any_walk_through_history_counts_its_branch(moves: list[tuple[str, int]]) -> None:
    """Property: single steps, forks, inputs, retries and edits: the count is that of the visits on the branch.

    A handoff that an input or an edit gave up before the fixer took it stays counted; the state's `open` counts those.
    """
    saver, cap = InMemorySaver(), 3
    app, guard = looping(max_cycles=cap, saver=saver)
    app.invoke({"n": 0, "open": 0}, thread(), interrupt_after="*")
    config: Any = thread()
    for move, n in moves:
        app, guard = looping(max_cycles=cap, saver=saver)  # nothing is kept on objects
        state = app.get_state(config)
        given_up = state.values["open"] + (state.next == ("fixer",))
        if move == "fork":
            states = [found for found in app.get_state_history(thread()) if found.metadata["source"] != "input"]
            states = [found for found in states if found.values["log"]]
            config = states[min(n, len(states) - 1)].config
        elif move == "input":
            app.invoke({"n": 0, "open": given_up}, config, interrupt_after="*")
        elif move == "retry" and state.interrupts:
            decision = {"action": "retry", "extra_cycles": n}
            app.invoke(Command(resume=decision), config, interrupt_after="*")
        elif move == "stand in" and state.next == ("reviewer",):
            app.update_state(config, {"n": 1, "log": ["review"]}, as_node="reviewer")
        elif move == "edit":
            app.update_state(config, {"patch": "edited", "open": given_up}, as_node="loopguard_ask")
        elif move == "step":
            for _ in range(n):
                app.invoke(None, config, interrupt_after="*")
                config = thread()
        config = config if move == "fork" else thread()
        state = app.get_state(config)
        ledger = guard.ledger(state)
        entered = state.values["log"].count("fix") + (state.next == ("fixer",)) + state.values["open"]
        assert entered == ledger.handoffs.get(FORWARD, 0)
        assert entered <= cap + ledger.granted("cycles")
