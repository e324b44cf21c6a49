"""`resume` and `aresume`: an answer to one escalation, by its id; a stale or doubled one is refused."""

from __future__ import annotations

import contextvars
import dataclasses
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from langgraph_loopguard import Decision, StaleDecisionError, aresume, guard_loop, resume
from tests.graph.pairs import State, answer, builder_of, pair, records, thread

RETRY = {"action": "retry", "extra_cycles": 1}


async def by(how: str, app: Any, decision: Any, **named: Any) -> Any:
    if how == "aresume":
        return await aresume(app, thread(), decision, **named)
    return resume(app, thread(), decision, **named)


def tripped(**settings: Any) -> Any:
    app, _ = pair(**{"max_cycles": 1, "artifact": "patch", **settings})
    app.invoke({}, thread())
    return app


NAMED: dict[str, Callable[[str], tuple[Any, dict[str, Any]]]] = {
    "argument": lambda name: ({**RETRY}, {"escalation_id": name}),
    "field": lambda name: ({**RETRY, "escalation_id": name}, {}),
    "id": lambda name: ({**RETRY, "id": name}, {}),
    "model": lambda name: (Decision(**RETRY, escalation_id=name), {}),
    "not at all": lambda name: (RETRY, {}),
    "hitl": lambda name: ({"decisions": [{"type": "respond", "message": "go"}]}, {"escalation_id": name}),
    "inbox": lambda name: ([{"type": "response", "args": "go"}], {}),
}

BOTH = pytest.mark.parametrize("how", ["resume", "aresume"])


@BOTH
@pytest.mark.parametrize("name", NAMED)
async def test_an_answer_reaches_the_escalation_that_it_names(how: str, name: str) -> None:
    """However it names it, and in every shape; what comes back is what `invoke` returns."""
    app = tripped()
    (record,) = records(app)
    decision, named = NAMED[name](record["id"])
    result = await by(how, app, decision, **named)
    assert ("escalated", 2) == (result["outcome"], result["escalation"]["cycles"])
    assert record["id"] == records(app)[0]["decision"]["escalation_id"]
    assert "retry" == records(app)[0]["decision"]["action"]


@BOTH
@pytest.mark.parametrize("name", ["argument", "field", "id", "model"])
async def test_an_answer_of_an_earlier_round_is_refused(how: str, name: str) -> None:
    """The error names the escalation, what was decided and what waits; nothing changes, and the right answer goes."""
    app = tripped()
    (first,) = records(app)
    decision, named = NAMED[name](first["id"])
    await by(how, app, decision, **named)
    before = app.get_state(thread())
    with pytest.raises(StaleDecisionError, match=first["id"]) as caught:
        await by(how, app, decision, **named)
    assert "decided already: retry" in str(caught.value)
    assert records(app)[1]["id"] in str(caught.value)
    after = app.get_state(thread())
    assert (before.values, before.next, before.interrupts) == (after.values, after.next, after.interrupts)
    assert "mine" == (await by(how, app, {"action": "edit", "artifact": "mine"}))["patch"]


@BOTH
@pytest.mark.parametrize("named", [True, False])
async def test_an_answer_after_the_end_is_refused(how: str, named: bool) -> None:
    """Where `Command(resume=...)` finds nothing to do and says nothing."""
    app = tripped()
    (record,) = records(app)
    await by(how, app, {"action": "accept"})
    before = app.get_state(thread())
    words = {"escalation_id": record["id"]} if named else {}
    with pytest.raises(StaleDecisionError, match="decided already: accept" if named else "no escalation"):
        await by(how, app, RETRY, **words)
    assert before.values == app.get_state(thread()).values


@pytest.mark.parametrize("name", ["0" * 32, "", "\ud800", "x" * 100_000, "👩‍👩‍👧"])
def test_an_unknown_escalation_is_refused(name: str) -> None:
    """Whatever the name."""
    app = tripped()
    with pytest.raises(StaleDecisionError, match="unknown"):
        resume(app, thread(), RETRY, escalation_id=name)
    assert [None] == [record["decision"] for record in records(app)]


@pytest.mark.parametrize("named", [7, ["x"], {"a": 1}, True])
def test_a_name_that_is_no_text_is_refused(named: Any) -> None:
    """As a field of the answer, too."""
    app = tripped()
    with pytest.raises((ValueError, TypeError)):
        resume(app, thread(), {**RETRY, "escalation_id": named})
    assert [None] == [record["decision"] for record in records(app)]


def test_an_argument_and_a_field_that_differ_are_refused() -> None:
    """The decision is not about what it is sent to."""
    app = tripped()
    (record,) = records(app)
    with pytest.raises(StaleDecisionError, match="0000"):
        resume(app, thread(), {**RETRY, "escalation_id": "0000"}, escalation_id=record["id"])


def test_an_escalation_that_was_passed_over_is_not_asked_about() -> None:
    """An input that did not reach the edge took the question away; the error says what to wait for."""
    app = tripped(rounds=4)
    (record,) = records(app)
    app.invoke({"n": 90}, thread())
    with pytest.raises(StaleDecisionError, match="not asked about at present"):
        resume(app, thread(), RETRY, escalation_id=record["id"])


@pytest.mark.parametrize("bad", [None, "accept", {}, {"action": "merge"}, {"action": "accept", "fix": 9}, [1, 2]])
def test_a_bad_answer_is_refused_before_anything_runs(bad: Any) -> None:
    """A `ValueError`, and the question stays open."""
    app = tripped()
    before = app.get_state(thread())
    with pytest.raises(ValueError, match="."):
        resume(app, thread(), bad)
    after = app.get_state(thread())
    assert (before.config, before.values) == (after.config, after.values)


def test_a_plain_command_with_an_earlier_escalation_is_refused_too() -> None:
    """LangGraph's own way: a `ValidationError` whose cause is the same; the question stays open."""
    app = tripped()
    named = {**RETRY, "escalation_id": records(app)[0]["id"]}
    answer(app, named)
    before = app.get_state(thread())
    with pytest.raises(ValidationError) as caught:
        answer(app, named)
    assert isinstance(caught.value.errors()[0]["ctx"]["error"], StaleDecisionError)
    after = app.get_state(thread())
    assert (before.values, before.interrupts) == (after.values, after.interrupts)


def test_of_several_one_is_named() -> None:
    """Without a name nothing is decided; each is answered in turn, beside a question of the user's own."""
    builder = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), (START, "a"), (START, "c")):
        builder.add_edge(source, target)
    builder.add_node("mine", lambda state: interrupt({"escalation": "of my own"}) and None)
    way = [START, "one", "two", "three", "four", "mine"]
    for source, target in pairwise(way):
        if target != "mine":
            builder.add_node(target, lambda state: {"log": ["on the way"]})
        builder.add_edge(source, target)
    for nodes in (("a", "b"), ("c", "d")):
        guard_loop(builder, *nodes, max_cycles=1)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    first, second = records(app)
    assert 3 == len(app.get_state(thread()).interrupts)
    with pytest.raises(ValueError, match=f"{first['id']}, {second['id']}"):
        resume(app, thread(), {"action": "accept"})
    resume(app, thread(), {"action": "accept"}, escalation_id=second["id"])
    with pytest.raises(StaleDecisionError, match="decided already"):
        resume(app, thread(), {"action": "accept"}, escalation_id=second["id"])
    resume(app, thread(), {"action": "reject"})
    assert ["reject", "accept"] == [record["decision"]["action"] for record in records(app)]


def test_a_loop_in_a_subgraph_is_answered_by_the_parent() -> None:
    """The question is the parent's too."""
    inner = builder_of()
    guard_loop(inner, "reviewer", "fixer", max_cycles=1, artifact="patch")
    outer = StateGraph(State)
    outer.add_node("loop", inner.compile())
    outer.add_edge(START, "loop")
    outer.add_edge("loop", END)
    app = outer.compile(checkpointer=InMemorySaver())
    record = app.invoke({"log": []}, thread())["__interrupt__"][0].value["escalation"]
    assert "mine" == resume(app, thread(), {"action": "edit", "artifact": "mine"}, escalation_id=record["id"])["patch"]
    with pytest.raises(StaleDecisionError, match=record["id"]):
        resume(app, thread(), {"action": "accept"}, escalation_id=record["id"])


def test_arguments_of_invoke_are_handed_on() -> None:
    """For example the version of the output."""
    app = tripped()
    output = resume(app, thread(), {"action": "accept"}, version="v2", durability="sync")
    assert "escalated" == output.value["outcome"]


def test_of_two_answers_at_once_one_is_told_that_it_was_too_late() -> None:
    """Another process decides between the look and the answer."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        app = tripped(saver=saver)
        (record,) = records(app)
        once = threading.Lock()

        class Late:
            """The graph, with somebody quicker in between."""

            get_state = staticmethod(app.get_state)

            @staticmethod
            def invoke(*args: Any, **kwargs: Any) -> Any:
                if once.acquire(blocking=False):
                    answer(app, {"action": "reject", "escalation_id": record["id"]})
                return app.invoke(*args, **kwargs)

        late: Any = Late()
        with pytest.raises(StaleDecisionError, match="someone else meanwhile: reject"):
            resume(late, thread(), {"action": "accept"}, escalation_id=record["id"])
        assert ["reject"] == [one["decision"]["action"] for one in records(app)]


# -- without a context ---------------------------------------------------------------------------------------


class Outside(Runnable[Any, Any]):
    """Runs a node as Python 3.10 does in async code: the task's context has no config of LangGraph's."""

    name = "outside"

    def __init__(self, inner: Runnable[Any, Any]) -> None:
        self.inner = inner

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        raise AssertionError("async code calls `ainvoke`")

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Drive the node's coroutine in an empty context."""
        steps = self.inner.ainvoke(input, config, **kwargs)
        empty = contextvars.Context()
        try:
            while True:
                empty.run(steps.send, None)
        except StopIteration as done:
            return done.value


@pytest.mark.parametrize("decision", [RETRY, {"action": "accept", "fix": 1}, {"action": "edit", "artifact": "mine"}])
async def test_the_question_needs_no_context(decision: Any) -> None:
    """`interrupt()` finds its config although nobody has set one; the answer too."""
    builder = builder_of()
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, artifact="patch")
    for node in ("loopguard_escalate", "loopguard_ask"):
        spec = builder.nodes[node]
        builder.nodes[node] = dataclasses.replace(spec, runnable=Outside(spec.runnable))
    app = builder.compile(checkpointer=InMemorySaver())
    result = await app.ainvoke({}, thread())
    assert 1 == len(result["__interrupt__"])
    with pytest.raises(ValidationError):
        await app.ainvoke(Command(resume={"action": "merge"}), thread())
    await app.ainvoke(Command(resume=decision), thread())
    assert decision["action"] == records(app)[0]["decision"]["action"]
