"""A guard puts its escalations into a queue by itself, and its run does not depend on the queue."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from langgraph_loopguard import LoopGuard, guard_compiled, guard_loop
from langgraph_loopguard.queue import EscalationQueue, Filter
from tests.graph.pairs import State, answer, builder_of, pair, records, thread


class Counting:
    """Notes what is put, and by which door."""

    def __init__(self) -> None:
        self.put_ids: list[tuple[str, str]] = []

    def put(self, record: Mapping[str, Any], /) -> None:
        self.put_ids.append(("sync", record["id"]))

    async def aput(self, record: Mapping[str, Any], /) -> None:
        self.put_ids.append(("async", record["id"]))


def test_an_escalation_is_in_the_queue_when_its_run_waits(queue: EscalationQueue) -> None:
    """The record as the state has it; the next trip is a row of its own."""
    app, _ = pair(max_cycles=2, queue=queue)
    app.invoke({}, thread("a"))
    (row,) = queue.list().rows
    assert (queue.show(row.id).record or {})["reviews"] == records(app, thread("a"))[0]["reviews"]
    answer(app, {"action": "retry", "extra_cycles": 1}, thread("a"))
    assert [one["id"] for one in records(app, thread("a"))] == [one.id for one in queue.list().rows]


async def test_an_async_run_does_not_block_its_loop(queue: EscalationQueue) -> None:
    """It goes by the async door, and the row is there."""
    counting = Counting()
    app, _ = pair(max_cycles=1, queue=counting)
    await app.ainvoke({}, thread())
    assert [("async", records(app)[0]["id"])] == counting.put_ids
    app, _ = pair(max_cycles=1, queue=queue)
    await app.ainvoke({}, thread())
    assert records(app)[0]["id"] == queue.list().rows[0].id


def test_a_resume_does_not_put_again() -> None:
    """The asking node runs again from its start; a refused answer does not put either."""
    counting = Counting()
    app, _ = pair(max_cycles=1, queue=counting)
    app.invoke({}, thread())
    with pytest.raises(ValueError, match="extra_cycles"):
        answer(app, {"action": "retry"})
    answer(app, {"action": "reject"})
    assert [("sync", records(app)[0]["id"])] == counting.put_ids


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_run_survives_a_queue_that_is_down(asynchronous: bool, caplog: pytest.LogCaptureFixture) -> None:
    """A warning says so; the run waits with its record, and can be answered."""
    down = EscalationQueue("sqlite:////nowhere/that/exists/queue.db")
    app, _ = pair(max_cycles=1, queue=down)
    with caplog.at_level(logging.WARNING, "langgraph_loopguard"):
        await app.ainvoke({}, thread()) if asynchronous else app.invoke({}, thread())
    assert f"escalation {records(app)[0]['id']} of thread thread is not in the queue" in caplog.text
    assert "reconcile brings it in" in caplog.text
    assert 1 == len(app.get_state(thread()).interrupts)
    assert "accept" == answer(app, {"action": "accept"})["escalation"]["decision"]["action"]


def test_each_guard_has_its_own_queue(tmp_path: Any) -> None:
    """Of two loops in one graph one may have none."""
    counting = Counting()
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in ((START, "a"), ("a", "b"), ("b", "a"), (START, "c"), ("c", "d"), ("d", "c")):
        builder.add_edge(source, target)
    guard_loop(builder, "a", "b", max_cycles=1, queue=counting)
    guard_loop(builder, "c", "d", max_cycles=1)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    found = {record["loop"]: record["id"] for record in records(app)}
    assert {"a-b", "c-d"} == set(found)
    assert [("sync", found["a-b"])] == counting.put_ids


def test_a_guard_in_a_subgraph_puts_too(lite: EscalationQueue) -> None:
    """Its record names the thread, and the answer goes through the parent."""
    inner = builder_of()
    guard_loop(inner, "reviewer", "fixer", max_cycles=1, queue=lite)
    outer: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    outer.add_node("inner", inner.compile())
    outer.add_edge(START, "inner")
    app = outer.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread("outer"))
    assert ["outer"] == [row.thread_id for row in lite.list().rows]
    app.invoke(Command(resume={"action": "accept"}), thread("outer"))
    assert () == app.get_state(thread("outer")).next


def test_a_compiled_graph_takes_a_queue() -> None:
    """`guard_compiled` hands its settings on."""
    counting = Counting()
    app = guard_compiled(
        builder_of().compile(checkpointer=InMemorySaver()), "reviewer", "fixer", max_cycles=1, queue=counting
    )
    app.invoke({}, thread())
    assert 1 == len(counting.put_ids)


@pytest.mark.parametrize("settings", [{"ask_human": False}, {"saver": None}, {"mode": "observe", "rounds": 4}])
def test_what_does_not_wait_is_not_put(settings: dict[str, Any]) -> None:
    """Without a checkpointer, or without a trip, there is nothing to answer."""
    counting = Counting()
    if settings.get("ask_human") is False:
        with pytest.raises(ValueError, match="queue=.*ask_human=False nothing waits"):
            pair(queue=counting, **settings)
        return
    app, _ = pair(max_cycles=1, queue=counting, **settings)
    app.invoke({}, thread())
    assert [] == counting.put_ids


def test_settings_that_make_no_sense_are_refused() -> None:
    """With the parameter's name."""
    with pytest.raises(ValueError, match="queue must be an EscalationQueue"):
        LoopGuard("a", "b", queue="sqlite:///queue.db")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="queue=.*escalate_to='human'"):
        LoopGuard("a", "b", queue=Counting(), escalate_to="human")
    assert "queue=" in repr(LoopGuard("a", "b", queue=Counting()))
    assert "queue=" not in repr(LoopGuard("a", "b"))
    assert hash(LoopGuard("a", "b", queue=Counting()))
    assert Filter() == Filter(state="open")
