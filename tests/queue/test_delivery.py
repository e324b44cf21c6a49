"""From decided to applied: once, whatever happens in between; and nothing that waits is left out of the queue."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from sqlalchemy import text

from langgraph_loopguard import guard_loop
from langgraph_loopguard.queue import EscalationQueue, Filter, QueueUnavailableError
from langgraph_loopguard.queue.target import Target
from tests.graph.pairs import State, builder_of, pair, records, thread


def state_of(queue: EscalationQueue, escalation_id: str) -> str:
    """Where a row stands."""
    return queue.show(escalation_id).state


def only(queue: EscalationQueue, **where: Any) -> str:
    """Id of the one row."""
    (row,) = queue.list(Filter(**where)).rows
    return row.id


def aged(queue: EscalationQueue) -> None:
    """Let everything in a queue be an hour old."""
    with queue.database.writing() as connection:
        connection.execute(text("UPDATE loopguard_escalations SET created_at = created_at - 3600000000"))


def waiting(queue: EscalationQueue, name: str = "thread", **settings: Any) -> tuple[Any, str]:
    """A graph that waits on a thread; return it and the escalation's id."""
    app, _ = pair(queue=queue, artifact="patch", **{"max_cycles": 2, **settings})
    app.invoke({}, thread(name))
    return app, only(queue, thread_id=name)


@pytest.mark.parametrize(
    ("answer", "patch"),
    [
        ({"action": "accept", "fix": 1}, "line 0\nline 1\n"),
        ({"action": "reject"}, "line 0\nline 2\n"),
        ({"action": "edit", "artifact": "mine \u202e\x1b[0m\n"}, "mine \u202e\x1b[0m\n"),
    ],
)
def test_a_decision_arrives_as_it_was_made(queue: EscalationQueue, answer: dict[str, Any], patch: str) -> None:
    """The graph ends as decided, the record has who and when, and the row is applied."""
    app, one = waiting(queue)
    decided = queue.decide(one, answer, by="ada")
    (delivery,) = queue.deliver(app)
    assert ("applied", None, "thread") == (delivery.outcome, delivery.detail, delivery.thread_id)
    values = app.get_state(thread()).values
    assert patch == values["patch"]
    assert decided.decision == records(app)[0]["decision"]
    row = queue.show(one)
    assert ("applied", 1, None) == (row.state, row.tries, row.error)
    assert row.settled_at is not None
    assert () == queue.deliver(app)
    assert values == app.get_state(thread()).values


def test_a_retry_runs_to_the_next_question(queue: EscalationQueue) -> None:
    """The next trip is a row of its own; the budget is renewed once."""
    app, one = waiting(queue)
    queue.decide(one, {"action": "retry", "extra_cycles": 3, "guidance": "be brief"}, by="ada")
    assert ["applied"] == [found.outcome for found in queue.deliver(app)]
    assert () == queue.deliver(app)
    assert [2, 5] == [found["cycles"] for found in records(app)]
    assert records(app)[1]["id"] == only(queue)


def test_many_threads_are_delivered_to(queue: EscalationQueue) -> None:
    """Each its own decision; `limit` and `ids` say which."""
    app, _ = pair(queue=queue, max_cycles=1)
    names = [f"t{n}" for n in range(6)]
    for name in names:
        app.invoke({}, thread(name))
    rows = {row.thread_id: row.id for row in queue.list().rows}
    for n, name in enumerate(names):
        queue.decide(rows[name], {"action": "accept" if n % 2 else "reject"})
    assert ["t0", "t1"] == [found.thread_id for found in queue.deliver(app, limit=2)]
    assert ["t4"] == [found.thread_id for found in queue.deliver(app, ids=[rows["t4"]])]
    assert {"t2", "t3", "t5"} == {found.thread_id for found in queue.deliver(app)}
    for n, name in enumerate(names):
        assert ("accept" if n % 2 else "reject") == records(app, thread(name))[0]["decision"]["action"]


@pytest.mark.parametrize("where", ["before", "after", "inside"])
def test_a_killed_deliverer_is_taken_over_from(
    queue: EscalationQueue, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the resume, within the run that it begins, or before the row is settled: the next one brings it to its end.

    Each of the three extra cycles runs once.
    """
    visits: list[int] = []
    dies = [True]

    def fix(n: int) -> dict[str, Any]:
        if where == "inside" and n == 4 and dies:
            dies.clear()
            raise KeyboardInterrupt  # no exception of the run's own, as with a signal
        visits.append(n)
        return {"patch": f"line {n}\n"}

    app, one = waiting(queue, fix=fix)
    queue.decide(one, {"action": "retry", "extra_cycles": 3}, by="ada")
    if where == "before":
        monkeypatch.setattr(Target, "drive", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    if where == "after":
        monkeypatch.setattr("langgraph_loopguard.queue.courier.Courier.settle", lambda *_: [][0])
    with pytest.raises((KeyboardInterrupt, IndexError)):
        queue.deliver(app)
    monkeypatch.undo()
    assert "decided" == state_of(queue, one)
    (delivery,) = queue.deliver(app, ids=[one])
    assert ("applied", None) == (delivery.outcome, delivery.detail)
    assert [1, 2, 3, 4, 5] == visits
    assert [2, 5] == [found["cycles"] for found in records(app)]
    assert 2 == queue.show(one).tries


def test_a_run_that_fails_after_the_decision_is_not_run_again(queue: EscalationQueue) -> None:
    """The decision stands; what failed after it is the graph's own, and is told."""
    calls: list[int] = []

    def fix(n: int) -> dict[str, Any]:
        calls.append(n)
        if n == 3:
            raise RuntimeError("the model is down")
        return {"patch": n}

    app, one = waiting(queue, fix=fix)
    queue.decide(one, {"action": "retry", "extra_cycles": 1})
    (delivery,) = queue.deliver(app)
    assert "applied" == delivery.outcome
    assert "the run failed after it: RuntimeError: the model is down" == delivery.detail
    assert delivery.detail == queue.show(one).error
    assert () == queue.deliver(app)
    assert [1, 2, 3] == calls


def test_a_breakpoint_of_the_users_own_is_not_passed(queue: EscalationQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a run may stand still by design, nobody goes on with it."""
    builder = builder_of()
    guard_loop(builder, "reviewer", "fixer", max_cycles=2, queue=queue)
    app = builder.compile(checkpointer=InMemorySaver(), interrupt_before=["fixer"])
    given: Any = {}
    while not app.get_state(thread()).interrupts:
        app.invoke(given, thread())
        given = None
    one = only(queue)
    queue.decide(one, {"action": "retry", "extra_cycles": 1})
    monkeypatch.setattr("langgraph_loopguard.queue.courier.Courier.settle", lambda *_: [][0])
    with pytest.raises(IndexError):
        queue.deliver(app)
    monkeypatch.undo()
    before = app.get_state(thread())
    assert ("fixer",) == before.next
    assert ["applied"] == [found.outcome for found in queue.deliver(app, ids=[one])]
    assert before.config == app.get_state(thread()).config


def test_what_was_answered_past_the_queue_is_superseded(queue: EscalationQueue) -> None:
    """Decided in the queue or not: the row says what stands in the graph."""
    app, one = waiting(queue, "a")
    app.invoke({}, thread("b"))
    two = only(queue, thread_id="b")
    app.invoke(Command(resume={"action": "reject", "decided_by": "eve"}), thread("a"))
    queue.decide(one, {"action": "accept"}, by="ada")
    (delivery,) = queue.deliver(app)
    assert "superseded" == delivery.outcome
    assert "decided past the queue: reject by eve" in str(delivery.detail)
    assert "superseded" == state_of(queue, one)
    assert "reject" == records(app, thread("a"))[0]["decision"]["action"]
    assert "open" == state_of(queue, two)


def test_an_open_row_that_was_answered_elsewhere_is_closed_by_reconcile(queue: EscalationQueue) -> None:
    """With the decision that stands; others stay open."""
    app, _ = pair(queue=queue, max_cycles=1)
    for name in ("a", "b"):
        app.invoke({}, thread(name))
    one, two = (only(queue, thread_id=name) for name in ("a", "b"))
    app.invoke(Command(resume={"action": "accept", "decided_by": "eve"}), thread("a"))
    done = queue.reconcile(app)
    assert ((), (one,), 2) == (done.added, done.superseded, done.threads)
    row = queue.show(one)
    assert "superseded" == row.state
    assert "eve" == (row.decision or {})["decided_by"]
    assert "open" == state_of(queue, two)
    assert ((), ()) == (queue.reconcile(app).added, queue.reconcile(app).superseded)


def test_a_fork_that_leaves_the_question_behind_supersedes_it(queue: EscalationQueue) -> None:
    """The thread went on from an earlier checkpoint: the old question is nobody's."""
    app, one = waiting(queue)
    early = [state for state in app.get_state_history(thread()) if state.next == ("fixer",)][-1]
    app.update_state(early.config, {"n": 50}, as_node="fixer")
    app.invoke(None, thread())
    two = next(row.id for row in queue.list().rows if row.id != one)
    queue.decide(one, {"action": "accept"})
    aged(queue)
    assert [("superseded", one)] == [(found.outcome, found.id) for found in queue.deliver(app)]
    assert "gone" in str(queue.show(one).error)
    queue.decide(two, {"action": "accept"})
    assert ["applied"] == [found.outcome for found in queue.deliver(app)]


def test_a_thread_that_is_unknown_is_tried_again(queue: EscalationQueue) -> None:
    """Another checkpointer, or not written yet: nothing is lost, and health shows it."""
    app, one = waiting(queue)
    queue.decide(one, {"action": "accept"})
    aged(queue)
    other, _ = pair(max_cycles=1)
    (delivery,) = queue.deliver(other)
    assert ("waiting", "the graph's checkpointer does not know the thread") == (delivery.outcome, delivery.detail)
    assert (1, 1) == (queue.health().undelivered, queue.health().failing)
    assert ["applied"] == [found.outcome for found in queue.deliver(app, ids=[one])]


def test_a_question_that_is_not_asked_yet_is_waited_for(lite: EscalationQueue) -> None:
    """It is queued a moment before its run waits: a quick decision is not taken for one that is too late."""
    found: list[Any] = []

    class Quick:
        def put(self, given: Any, /) -> None:
            lite.put(given)
            lite.decide(given["id"], {"action": "accept"})
            found.extend(lite.deliver(app))

        async def aput(self, given: Any, /) -> None:
            raise NotImplementedError

    app, _ = pair(max_cycles=1, queue=Quick())
    app.invoke({}, thread())
    assert ["waiting"] == [one.outcome for one in found]
    assert ["applied"] == [one.outcome for one in lite.deliver(app, ids=[found[0].id])]


def two_loops(queue: EscalationQueue, saver: Any) -> Any:
    """Two loops that trip in one superstep."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in ((START, "a"), ("a", "b"), ("b", "a"), (START, "c"), ("c", "d"), ("d", "c")):
        builder.add_edge(source, target)
    guard_loop(builder, "a", "b", max_cycles=1, queue=queue)
    guard_loop(builder, "c", "d", max_cycles=1, queue=queue)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("together", [True, False])
def test_two_questions_of_one_superstep(queue: EscalationQueue, together: bool) -> None:
    """Answered at once or one after the other: each decision is applied to its own loop, once."""
    app = two_loops(queue, InMemorySaver())
    app.invoke({}, thread())
    rows = {row.loop: row.id for row in queue.list().rows}
    outcomes = []
    for loop, extra in (("a-b", 1), ("c-d", 2)):
        queue.decide(rows[loop], {"action": "retry", "extra_cycles": extra})
        if not together:
            outcomes += [found.outcome for found in queue.deliver(app)]
            assert () == queue.deliver(app)
    outcomes += [found.outcome for found in queue.deliver(app)]
    assert ["applied", "applied"] == outcomes
    state = app.get_state(thread())
    assert {"a-b": 1 + 1, "c-d": 1 + 2} == {
        loop: ledgers["null"]["cycles"] for loop, ledgers in state.values["loopguard"].items()
    }


def test_a_question_of_the_users_own_stays_open(queue: EscalationQueue) -> None:
    """Only the escalation is answered; the other interrupt of the superstep waits on."""
    builder = builder_of()
    builder.add_node("own", lambda state: {"log": [interrupt("mine?")]})
    builder.add_edge(START, "own")
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, queue=queue)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    app.invoke(None, thread())
    if not queue.list().rows:  # LangGraph goes on with the loop when the other question is answered
        app.invoke(Command(resume="yes"), thread())
    one = only(queue)
    queue.decide(one, {"action": "accept"})
    assert ["applied"] == [found.outcome for found in queue.deliver(app)]
    assert "accept" == records(app)[0]["decision"]["action"]


def nested(queue: EscalationQueue, fix: Any = None) -> Any:
    """A guarded loop in a subgraph, and a node after it."""
    inner = builder_of(fix=fix or (lambda n: {"patch": n}))
    guard_loop(inner, "reviewer", "fixer", max_cycles=1, queue=queue)
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_node("after", lambda state: {"log": ["after"]})
    outer.add_edge(START, "inner")
    outer.add_edge("inner", "after")
    return outer.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("crash", [False, True])
def test_a_guard_in_a_subgraph_is_delivered_to(
    queue: EscalationQueue, crash: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through the parent; and a row that was not settled is found applied in the subgraph's own checkpoints."""
    app = nested(queue)
    app.invoke({}, thread())
    one = only(queue)
    queue.decide(one, {"action": "accept"}, by="ada")
    if crash:
        monkeypatch.setattr("langgraph_loopguard.queue.courier.Courier.settle", lambda *_: [][0])
        with pytest.raises(IndexError):
            queue.deliver(app)
        monkeypatch.undo()
    aged(queue)
    assert ["applied"] == [found.outcome for found in queue.deliver(app, ids=[one])]
    assert ["after"] == app.get_state(thread()).values["log"]


def test_a_deliverer_killed_within_a_subgraph(queue: EscalationQueue) -> None:
    """The parent still shows the question as open; the answer is not applied a second time."""
    visits: list[int] = []
    dies = [True]

    def fix(n: int) -> dict[str, Any]:
        if n == 3 and dies:
            dies.clear()
            raise KeyboardInterrupt
        visits.append(n)
        return {"patch": n}

    app = nested(queue, fix)
    app.invoke({}, thread())
    one = only(queue)
    queue.decide(one, {"action": "retry", "extra_cycles": 3}, by="ada")
    with pytest.raises(KeyboardInterrupt):
        queue.deliver(app)
    assert ["applied"] == [found.outcome for found in queue.deliver(app, ids=[one])]
    assert [1, 2, 3, 4] == visits
    assert 4 == (queue.show(only(queue)).record or {})["cycles"]


def test_an_answer_that_the_graph_refuses_opens_the_escalation_again(queue: EscalationQueue) -> None:
    """A queue that checks less than the graph (an older version, say): the question is open in both."""
    app, one = waiting(queue)
    queue.decide(one, {"action": "accept"}, by="ada")
    with queue.database.writing() as connection:
        connection.execute(
            text("UPDATE loopguard_escalations SET decision = :bad"),
            {"bad": '{"action": "retry", "decided_by": "ada"}'},
        )
    (delivery,) = queue.deliver(app)
    assert "refused" == delivery.outcome
    row = queue.show(one)
    assert ("open", None, None) == (row.state, row.owner, row.decision)
    assert "extra_cycles" in str(row.error)
    assert 1 == len(app.get_state(thread()).interrupts)
    queue.decide(one, {"action": "accept"}, by="bob")
    assert ["applied"] == [found.outcome for found in queue.deliver(app)]
    assert "bob" == records(app)[0]["decision"]["decided_by"]


def test_an_answer_to_an_earlier_round_is_refused_by_name(queue: EscalationQueue) -> None:
    """At the queue, before anything is written."""
    app, one = waiting(queue)
    queue.decide(one, {"action": "retry", "extra_cycles": 1})
    queue.deliver(app)
    two = only(queue)
    with pytest.raises(ValueError, match=one):
        queue.decide(two, {"action": "accept", "escalation_id": one})
    assert "open" == state_of(queue, two)


def test_a_thread_is_served_by_one_deliverer(url: str) -> None:
    """While one runs the graph, longer than its lease, the other finds nothing to do."""
    queue = EscalationQueue(url)
    inside, go_on = threading.Event(), threading.Event()
    found: list[Any] = []

    def fix(n: int) -> dict[str, Any]:
        if n == 3:
            inside.set()
            assert go_on.wait(30)
        return {"patch": n}

    app, one = waiting(queue, fix=fix)
    queue.decide(one, {"action": "retry", "extra_cycles": 1})
    worker = threading.Thread(target=lambda: found.extend(queue.deliver(app, lease=1)))
    worker.start()
    assert inside.wait(30)
    other = EscalationQueue(url)
    threading.Event().wait(1.3)
    assert () == other.deliver(app, ids=[one])
    go_on.set()
    worker.join()
    assert ["applied"] == [delivery.outcome for delivery in found]
    assert () == other.deliver(app, ids=[one])
    other.close()
    queue.close()


async def test_async_graphs_are_delivered_to(queue: EscalationQueue) -> None:
    """Nodes that only run on an event loop; reconcile too."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    async def reviewer(state: Any) -> dict[str, Any]:
        return {"n": (state.get("n") or 0) + 1}

    async def fixer(state: Any) -> dict[str, Any]:
        return {"patch": state["n"]}

    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", fixer)
    for source, target in ((START, "reviewer"), ("reviewer", "fixer"), ("fixer", "reviewer")):
        builder.add_edge(source, target)
    guard_loop(builder, "reviewer", "fixer", max_cycles=1)
    app = builder.compile(checkpointer=InMemorySaver())
    await app.ainvoke({}, thread())
    done = await queue.areconcile(app)
    assert 1 == len(done.added)
    await queue.adecide(done.added[0], {"action": "retry", "extra_cycles": 2})
    assert ["applied"] == [found.outcome for found in await queue.adeliver(app)]
    assert () == await queue.adeliver(app)
    assert [1, 3] == [found["cycles"] for found in records(app)]
    assert 1 == len((await queue.areconcile(app, threads=["thread"])).added)


def test_config_and_context_reach_the_run(lite: EscalationQueue) -> None:
    """A function of the thread's id, or one config for all."""
    seen: list[Any] = []

    def fix(n: int) -> dict[str, Any]:
        from langgraph.config import get_config

        seen.append(get_config()["configurable"].get("tenant"))
        return {"patch": n}

    app, one = waiting(lite, fix=fix)
    lite.decide(one, {"action": "retry", "extra_cycles": 1})
    lite.deliver(app, config=lambda name: {"configurable": {"tenant": f"of {name}"}})
    lite.decide(only(lite), {"action": "retry", "extra_cycles": 1})
    lite.deliver(app, config={"configurable": {"tenant": "one"}})
    assert [None, None, "of thread", "one"] == seen


def test_labels_keep_graphs_apart(url: str) -> None:
    """Two graphs with equal loops and threads in one database: each gets its own decisions."""
    queues = [EscalationQueue(url, graph=label) for label in ("one", "two")]
    app_one, _ = waiting(queues[0])
    app_two, _ = pair(queue=queues[1], max_cycles=2)
    app_two.invoke({}, thread())
    rows = {row.graph: row.id for row in queues[0].list().rows}
    assert {"one", "two"} == set(rows)
    queues[0].decide(rows["two"], {"action": "accept"})
    assert () == queues[0].deliver(app_one)
    assert ["applied"] == [found.outcome for found in queues[1].deliver(app_two)]
    for queue in queues:
        queue.close()


def test_reconcile_brings_in_what_the_queue_has_missed(queue: EscalationQueue) -> None:
    """Runs that waited before there was a queue; named threads only, or all of them."""
    app, _ = pair(max_cycles=1)
    for name in ("a", "b", "c"):
        app.invoke({}, thread(name))
    app.invoke({}, thread("d"))
    app.invoke(Command(resume={"action": "accept"}), thread("d"))
    assert 1 == len(queue.reconcile(app, threads=["b"]).added)
    assert 2 == len(queue.reconcile(app).added)
    assert ["a", "b", "c"] == sorted(str(row.thread_id) for row in queue.list().rows)


@pytest.mark.parametrize("bad", [{"lease": 0}, {"lease": 10**9}])
def test_settings_that_make_no_sense_are_refused(lite: EscalationQueue, bad: dict[str, Any]) -> None:
    """With the parameter's name; graphs that cannot be delivered to as well."""
    app, _ = pair()
    with pytest.raises(ValueError, match="lease must be"):
        lite.deliver(app, **bad)
    with pytest.raises(ValueError, match="compiled with a checkpointer"):
        lite.deliver(pair(saver=None)[0])
    with pytest.raises(ValueError, match="must have a guard"):
        lite.deliver(builder_of().compile(checkpointer=InMemorySaver()))
    with pytest.raises(TypeError, match="graph must be a compiled StateGraph, got StateGraph"):
        lite.deliver(builder_of())


def test_a_checkpointer_that_fails_keeps_nobody_else_waiting(lite: EscalationQueue) -> None:
    """The error is noted; the next thread is delivered to."""
    app, _ = pair(queue=lite, max_cycles=1)
    for name in ("a", "b"):
        app.invoke({}, thread(name))
    for row in lite.list().rows:
        lite.decide(row.id, {"action": "accept"})

    def config(name: str) -> Any:
        if name == "a":
            raise RuntimeError("no config for a")
        return {}

    outcomes = {found.thread_id: (found.outcome, found.detail) for found in lite.deliver(app, config=config)}
    assert {"a": ("failed", "RuntimeError: no config for a"), "b": ("applied", None)} == outcomes
    assert ["applied"] == [found.outcome for found in lite.deliver(app, ids=[only(lite, state="decided")])]


def test_a_queue_that_goes_down_while_the_graph_runs(lite: EscalationQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is clear; the next delivery finds the decision in the graph, and runs nothing."""
    app, one = waiting(lite)
    lite.decide(one, {"action": "retry", "extra_cycles": 1})
    real = lite.database.writing
    calls: list[int] = []

    def writing() -> Any:
        calls.append(1)
        if len(calls) in (3, 4):
            raise QueueUnavailableError("down")
        return real()

    monkeypatch.setattr(lite.database, "writing", writing)
    with pytest.raises(QueueUnavailableError, match="down"):
        lite.deliver(app)
    monkeypatch.undo()
    with lite.database.writing() as connection:
        connection.execute(text("UPDATE loopguard_deliveries SET until = 0"))
    visits = app.get_state(thread()).values["n"]
    assert ["applied"] == [found.outcome for found in lite.deliver(app, ids=[one])]
    assert visits == app.get_state(thread()).values["n"]
