"""What a person answers: every shape, checked before it counts, applied once, renewing only what it names."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Sequence
from datetime import date
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import is_invalid_resume
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send
from pydantic import BaseModel, SecretStr, ValidationError
from typing_extensions import TypedDict

from langgraph_loopguard import Decision, LoopGuard, MaxCycles, RepeatedPayload, TimeBudget, TokenBudget, guard_loop
from tests.graph.pairs import State, answer, builder_of, is_json, pair, records, thread

RETRY = {"action": "retry", "extra_cycles": 1}


async def door(app: Any, name: str, given: Any) -> None:
    """Run by `invoke` or `ainvoke`, `stream` or `astream`."""
    match name:
        case "invoke":
            app.invoke(given, thread())
        case "ainvoke":
            await app.ainvoke(given, thread())
        case "stream":
            list(app.stream(given, thread()))
        case _:
            async for _ in app.astream(given, thread()):
                pass


DOORS = ("invoke", "ainvoke", "stream", "astream")


def tripped(**settings: Any) -> tuple[Any, LoopGuard]:
    """A pair that waits for a person."""
    app, guard = pair(**{"max_cycles": 2, "artifact": "patch", **settings})
    assert "__interrupt__" in app.invoke({}, thread())
    return app, guard


def crossings(app: Any, guard: LoopGuard) -> int:
    return guard.ledger(app.get_state(thread())).handoffs.get("reviewer->fixer", 0)


# -- shapes --------------------------------------------------------------------------------------------------

SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "accept": ({"action": "accept"}, {"action": "accept"}),
    "accept a fix": ({"action": "accept", "fix": 1}, {"action": "accept", "fix": 1}),
    "reject": ({"action": "reject", "note": "no"}, {"action": "reject", "note": "no"}),
    "edit": ({"action": "edit", "artifact": "mine"}, {"action": "edit", "artifact": "mine"}),
    "retry": ({**RETRY, "guidance": "go"}, {"action": "retry", "extra_cycles": 1, "guidance": "go"}),
    "model": (Decision(action="accept", decided_by="ada"), {"action": "accept", "decided_by": "ada"}),
    "hitl approve": ({"decisions": [{"type": "approve"}]}, {"action": "accept"}),
    "hitl reject": ({"decisions": [{"type": "reject", "message": "no"}]}, {"action": "reject", "note": "no"}),
    "hitl respond": (
        {"decisions": [{"type": "respond", "message": "go"}]},
        {"action": "retry", "guidance": "go", "extra_cycles": 1},
    ),
    "hitl edit of the action": (
        {
            "decisions": [
                {
                    "type": "edit",
                    "edited_action": {
                        "name": "reviewer-fixer escalation",
                        "args": {"action": "retry", "fix": None, "artifact": None, "guidance": "go", "extra_cycles": 2},
                    },
                }
            ]
        },
        {"action": "retry", "guidance": "go", "extra_cycles": 2},
    ),
    "hitl edit of the artifact": (
        {"decisions": [{"type": "edit", "edited_action": {"name": "x", "args": {"artifact": "mine"}}}]},
        {"action": "edit", "artifact": "mine"},
    ),
    "inbox accept": ([{"type": "accept", "args": None}], {"action": "accept"}),
    "inbox ignore": ([{"type": "ignore", "args": None}], {"action": "reject"}),
    "inbox response": (
        [{"type": "response", "args": "go"}],
        {"action": "retry", "guidance": "go", "extra_cycles": 1},
    ),
    "inbox edit": (
        [{"type": "edit", "args": {"action": "x", "args": {"action": "edit", "artifact": "mine"}}}],
        {"action": "edit", "artifact": "mine"},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", DOORS)
async def test_every_shape_of_answer_is_understood(shape: str, how: str) -> None:
    """The contract's dicts, LangChain's `HITLResponse` and the Agent Inbox list, through every door."""
    app, _ = tripped()
    given, expected = SHAPES[shape]
    await door(app, how, Command(resume=given))
    first, *more = records(app)
    assert expected == {key: first["decision"][key] for key in expected}
    assert first["id"] == first["decision"]["escalation_id"]
    assert first["decision"]["decided_at"]
    assert Decision(**first["decision"]).action == expected["action"]
    assert (expected["action"] == "retry") == bool(more)


def test_an_answer_may_name_its_escalation() -> None:
    """By `escalation_id`, or by `id`."""
    for name in ("escalation_id", "id"):
        app, _ = tripped()
        (record,) = records(app)
        assert "accept" == answer(app, {"action": "accept", name: record["id"]})["escalation"]["decision"]["action"]


def test_an_answer_may_be_addressed_to_the_interrupt() -> None:
    """`Command(resume={interrupt id: answer})`."""
    app, _ = tripped()
    (interrupt,) = app.get_state(thread()).interrupts
    answer(app, {interrupt.id: {"action": "reject"}})
    assert "reject" == records(app)[0]["decision"]["action"]


# -- refused answers -----------------------------------------------------------------------------------------

BAD: dict[str, Any] = {
    "text": "accept",
    "number": 1,
    "false": False,
    "empty text": "",
    "empty list": [],
    "no action": {"guidance": "x"},
    "unknown action": {"action": "merge"},
    "action is a list": {"action": ["accept"]},
    "action is null": {"action": None},
    "unknown key": {"action": "accept", "approve": True},
    "key is no text": {"action": "accept", 1: 2},
    "contract and hitl at once": {"action": "accept", "decisions": [{"type": "reject"}]},
    "fix is a text": {"action": "accept", "fix": "best"},
    "fix is true": {"action": "accept", "fix": True},
    "fix is zero": {"action": "accept", "fix": 0},
    "fix is negative": {"action": "accept", "fix": -1},
    "fix is a fraction": {"action": "accept", "fix": 1.5},
    "fix is past the last": {"action": "accept", "fix": 3},
    "fix to reject": {"action": "reject", "fix": 1},
    "edit without artifact": {"action": "edit"},
    "edit with NUL": {"action": "edit", "artifact": "a\x00b"},
    "edit with a lone surrogate": {"action": "edit", "artifact": "a\ud800b"},
    "retry without cycles": {"action": "retry"},
    "retry with another budget": {"action": "retry", "extra_tokens": 5, "extra_seconds": 5},
    "cycles are zero": {"action": "retry", "extra_cycles": 0},
    "cycles are negative": {"action": "retry", "extra_cycles": -1},
    "cycles are true": {"action": "retry", "extra_cycles": True},
    "cycles are many": {"action": "retry", "extra_cycles": 2**70},
    "tokens are many": {**RETRY, "extra_tokens": 2**62},
    "seconds are many": {**RETRY, "extra_seconds": 1e308},
    "seconds are infinite": {**RETRY, "extra_seconds": float("inf")},
    "seconds are no number": {**RETRY, "extra_seconds": float("nan")},
    "cycles without retry": {"action": "accept", "extra_cycles": 1},
    "guidance is a list": {**RETRY, "guidance": ["x"]},
    "decided_by is a number": {"action": "accept", "decided_by": 7},
    "another escalation": {"action": "accept", "escalation_id": "0" * 32},
    "escalation is a number": {"action": "accept", "escalation_id": 0},
    "a later version": {"action": "accept", "schema_version": 99},
    "hitl without decisions": {"decisions": []},
    "hitl with two": {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    "hitl no list": {"decisions": {"type": "approve"}},
    "hitl unknown type": {"decisions": [{"type": "merge"}]},
    "hitl type is a list": {"decisions": [{"type": ["approve"]}]},
    "hitl no dict": {"decisions": ["approve"]},
    "hitl edit of nothing": {"decisions": [{"type": "edit", "edited_action": {"name": "x", "args": {}}}]},
    "hitl edit without action": {"decisions": [{"type": "edit"}]},
    "hitl message is a dict": {"decisions": [{"type": "respond", "message": {"a": 1}}]},
    "hitl respond without a message": {"decisions": [{"type": "respond"}]},
    "hitl respond of nothing": {"decisions": [{"type": "respond", "message": ""}]},
    "inbox response is a dict": [{"type": "response", "args": {"text": "go"}}],
    "inbox ignore is a list": [{"type": "ignore", "args": ["no"]}],
    "inbox with two": [{"type": "accept"}, {"type": "accept"}],
    "inbox type alone": {"type": "accept"},
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("how", DOORS)
async def test_a_bad_answer_is_refused_and_the_question_stays_open(name: str, how: str) -> None:
    """A `ValidationError` that LangGraph knows as an invalid resume; nothing changes; the right answer still goes."""
    app, guard = tripped()
    before = app.get_state(thread())
    with pytest.raises(ValidationError) as caught:
        await door(app, how, Command(resume=BAD[name]))
    assert is_invalid_resume(caught.value)
    after = app.get_state(thread())
    assert (before.values, before.next, before.interrupts) == (after.values, after.next, after.interrupts)
    answer(app, RETRY)
    assert 3 == crossings(app, guard)


def test_an_edit_is_refused_where_no_key_can_take_it() -> None:
    """Without a state key for the work product an edit would be lost."""
    for artifact in (None, lambda state: state.get("patch")):
        app, _ = tripped(artifact=artifact)
        with pytest.raises(ValidationError, match="action"):
            answer(app, {"action": "edit", "artifact": "mine"})
        assert records(app)[0]["decision"] is None


def test_a_fix_cannot_be_accepted_where_there_is_none() -> None:
    """A trip before the first attempt has no attempt to accept."""
    app, _ = tripped(stop_when=lambda ledger: "stop")
    with pytest.raises(ValidationError, match="fix"):
        answer(app, {"action": "accept", "fix": 1})


ANSWERS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["accept", "retry", "approve"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["action", "fix", "type", "decisions", "args", "extra_cycles", "id", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(given_answer=ANSWERS.filter(lambda value: value is not None and value != {}))
def test_any_answer_is_taken_or_refused(given_answer: Any) -> None:
    """Property: an answer either decides or leaves everything as it was; nothing else happens."""
    app, _ = tripped(max_cycles=1)
    before = app.get_state(thread())
    try:
        answer(app, given_answer)
    except ValidationError:
        assert before.values == app.get_state(thread()).values
        answer(app, {"action": "accept"})
    assert records(app)[0]["decision"]["action"] in ("accept", "reject", "edit", "retry")


# -- retry ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", DOORS)
async def test_a_retry_grants_exactly_what_it_names(how: str) -> None:
    """Two more cycles are two more crossings, then it asks again; grants add up."""
    app, guard = tripped()
    for extra, total in ((2, 4), (1, 5), (3, 8)):
        await door(app, how, Command(resume={"action": "retry", "extra_cycles": extra}))
        assert total == crossings(app, guard)
        assert (total, total + 1) == tuple(records(app)[-1]["reason"][key] for key in ("threshold", "observed"))


def test_a_retry_renews_only_the_budget_that_it_names() -> None:
    """Cycles granted leave the tokens spent: the next trip is the token budget's."""

    def review(n: int) -> dict[str, Any]:
        usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
        return {"log": [AIMessage(f"remark {n}", usage_metadata=usage)]}

    app, guard = tripped(review=review, stop_when=TokenBudget(40))
    answer(app, {"action": "retry", "extra_cycles": 5})
    second = records(app)[-1]
    assert ("TokenBudget", 40, 40) == tuple(second["reason"][key] for key in ("condition", "threshold", "observed"))
    with pytest.raises(ValidationError, match="extra_tokens"):
        answer(app, {"action": "retry", "extra_cycles": 5})
    answer(app, {"action": "retry", "extra_tokens": 20})
    third = records(app)[-1]
    assert ("TokenBudget", 60) == (third["reason"]["condition"], third["reason"]["threshold"])
    assert 60 == third["spent"]["tokens"]
    assert 5 == crossings(app, guard)


def test_a_time_budget_must_be_renewed_by_name() -> None:
    """A retry of a spent `TimeBudget` names seconds."""
    app, _ = tripped(stop_when=TimeBudget(1e-9))
    assert "extra_seconds" in records(app)[0]["options"][-1]["description"]
    with pytest.raises(ValidationError, match="extra_seconds"):
        answer(app, RETRY)
    answer(app, {"action": "retry", "extra_seconds": 3600})
    assert "MaxCycles" == records(app)[-1]["reason"]["condition"]


def test_a_retry_of_a_stalled_loop_needs_no_budget_and_clears_the_windows() -> None:
    """What was repeated is forgotten, what was counted is not."""
    app, guard = tripped(
        review=lambda n: {"review": "same"}, max_cycles=20, stop_when=RepeatedPayload(3, node="reviewer")
    )
    assert 2 == crossings(app, guard)
    answer(app, {"action": "retry", "guidance": "say something new"})
    assert 4 + 1 == crossings(app, guard), "the crossing that was shut, and two more until three are alike again"
    assert 2 == len(records(app))


def test_a_retry_clears_only_its_own_loops_windows() -> None:
    """Another guard on the same nodes keeps what it has seen."""
    builder = builder_of(review=lambda n: {"review": "same"})
    one = guard_loop(builder, "reviewer", "fixer", max_cycles=2, name="one")
    two = guard_loop(
        builder, "reviewer", "fixer", max_cycles=9, name="two", stop_when=RepeatedPayload(4, node="reviewer")
    )
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    answer(app, {"action": "retry", "extra_cycles": 5})
    state = app.get_state(thread())
    first, second = records(app)
    assert ("one", "two") == (first["loop"], second["loop"])
    assert 4 == second["reason"]["observed"], "the retry of `one` has not made `two` forget"
    assert 4 == len(two.ledger(state).window("reviewer"))
    assert len(one.ledger(state).window("reviewer")) < 4


class Files(TypedDict, total=False):
    file: str
    log: Annotated[list[str], operator.add]
    rounds: Annotated[int, operator.add]


def by_file(max_cycles: int = 1, files: str = "ab", state: Any = Files, **settings: Any) -> tuple[Any, LoopGuard]:
    """Reviewer and Fixer for several files at once: what belongs to a file travels by `Send`."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)
    state_class = state

    def reviewer(state: Any) -> Command[Any]:
        name = state["file"]
        return Command(update={"log": [f"review {name}"]}, goto=Send("fixer", {"file": name, "note": f"for {name}"}))

    def fixer(state: Any) -> Command[Any]:
        name = state["file"]
        assert state["note"] == f"for {name}"
        patch = {"patch": f"fix {name}"} if state_class is Shared else {}
        return Command(update={"log": [f"fix {name}"], **patch}, goto=Send("reviewer", {"file": name}))

    builder.add_node("reviewer", reviewer, destinations=("fixer",))
    builder.add_node("fixer", fixer, destinations=("reviewer",))
    builder.add_conditional_edges(START, lambda state: [Send("reviewer", {"file": f}) for f in files], ["reviewer"])
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=max_cycles, key="file", **settings)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    return app, guard


def asked(app: Any) -> dict[Any, Any]:
    """Pending interrupts by scope key."""
    return {one.value["escalation"]["scope_key"]: one for one in app.get_state(thread()).interrupts}


def test_a_retry_sends_again_what_a_send_had_carried() -> None:
    """The target gets the very payload that the shut edge held back."""
    app, guard = by_file(files="a")
    assert ["review a", "fix a", "review a"] == app.get_state(thread()).values["log"]
    answer(app, {"action": "retry", "extra_cycles": 2})
    assert ["fix a", "review a"] * 2 == app.get_state(thread()).values["log"][3:]
    assert 3 == guard.ledger(app.get_state(thread()), "a").cycles


@pytest.mark.parametrize("order", ["ab", "ba", "at once"])
def test_several_questions_are_answered_by_interrupt_id(order: str) -> None:
    """In any order, or all at once; each scope key gets its own decision and nothing of the other's."""
    app, guard = by_file()
    found = asked(app)
    assert {"a", "b"} == found.keys()
    answers = {"a": {"action": "retry", "extra_cycles": 2}, "b": {"action": "reject"}}
    if order == "at once":
        answer(app, {found[name].id: answers[name] for name in "ab"})
    else:
        for name in order:
            answer(app, {found[name].id: answers[name]})
            left = asked(app)
            assert ({"a", "b"} - {name} == left.keys()) or name == order[1]
    state = app.get_state(thread())
    assert (3, 1) == (guard.ledger(state, "a").cycles, guard.ledger(state, "b").cycles)
    assert ["fix a", "review a"] * 2 == state.values["log"][6:]
    assert {"a"} == asked(app).keys()
    decided = {record["scope_key"]: record["decision"] for record in records(app) if record["decision"]}
    assert ("retry", "reject") == (decided["a"]["action"], decided["b"]["action"])


def test_a_bad_answer_among_several_spoils_none() -> None:
    """One refused answer leaves both questions open."""
    app, _ = by_file()
    found = asked(app)
    with pytest.raises(ValidationError):
        answer(app, {found["a"].id: {"action": "accept"}, found["b"].id: {"action": "what?"}})
    assert {"b"} <= asked(app).keys()
    answer(app, {one.id: {"action": "accept"} for one in asked(app).values()})
    assert ["accept", "accept"] == [record["decision"]["action"] for record in records(app)]


@pytest.mark.xfail(strict=True, reason="LangGraph drops what a superstep has done so far when a new input comes")
def test_an_input_between_two_answers_loses_none() -> None:
    """The first of two answers still stands when the second question is not answered but passed over."""
    app, _ = by_file()
    answer(app, {asked(app)["a"].id: {"action": "accept"}})
    assert ["accept", None] == [record["decision"] and record["decision"]["action"] for record in records(app)]
    app.invoke({"log": []}, thread())
    assert ["accept", None] == [record["decision"] and record["decision"]["action"] for record in records(app)][:2]


def test_a_plain_answer_cannot_decide_two_questions() -> None:
    """LangGraph wants the ids when several wait; nothing is decided without."""
    app, _ = by_file()
    with pytest.raises(RuntimeError, match="interrupt id"):
        answer(app, {"action": "accept"})
    assert [None, None] == [record["decision"] for record in records(app)]


def test_two_guards_that_trip_together_are_decided_apart() -> None:
    """Each retry renews its own loop only."""
    builder = StateGraph(State)
    for name in ("a", "b", "c", "d"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in (("a", "b"), ("b", "a"), ("c", "d"), ("d", "c"), (START, "a"), (START, "c")):
        builder.add_edge(source, target)
    guards = {name: guard_loop(builder, *name.split("-"), max_cycles=1) for name in ("a-b", "c-d")}
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    found = {one.value["escalation"]["loop"]: one.id for one in app.get_state(thread()).interrupts}
    answer(app, {found["c-d"]: {"action": "retry", "extra_cycles": 3}})
    answer(app, {found["a-b"]: {"action": "accept"}})
    state = app.get_state(thread())
    assert (1, 4) == (guards["a-b"].ledger(state).cycles, guards["c-d"].ledger(state).cycles)


# -- guidance ------------------------------------------------------------------------------------------------


def test_guidance_reaches_the_messages_and_the_guidance_key() -> None:
    """Nodes read it where they look anyway."""

    class Chat(MessagesState, total=False):
        n: int
        review: Any
        patch: Any
        guidance: str

    app, _ = tripped(state=Chat)
    result = answer(app, {**RETRY, "guidance": "return 0 instead"})
    assert "return 0 instead" == result["guidance"]
    (message,) = result["messages"]
    assert (HumanMessage, "return 0 instead") == (type(message), message.content)


@pytest.mark.parametrize("kind", [Annotated[list[str], operator.add], list[str], Annotated[list, operator.add]])
def test_guidance_joins_a_list(kind: Any) -> None:
    """A `guidance` key that is a list takes it as an item."""
    state = TypedDict("State", {"n": int, "review": str, "patch": str, "guidance": kind}, total=False)
    app, _ = tripped(state=state)
    assert ["go"] == answer(app, {**RETRY, "guidance": "go"})["guidance"]


def test_guidance_joins_messages_that_are_texts() -> None:
    """Messages need not be message objects."""

    class Chat(TypedDict, total=False):
        n: int
        review: str
        patch: str
        messages: Annotated[list[str], operator.add]

    app, _ = tripped(state=Chat)
    assert ["go"] == answer(app, {**RETRY, "guidance": "go"})["messages"]


def test_guidance_without_a_place_stands_in_the_record() -> None:
    """A state with neither key goes on; what was said is in the record."""

    class Bare(TypedDict, total=False):
        n: int
        review: str
        patch: str

    app, guard = tripped(state=Bare)
    answer(app, {**RETRY, "guidance": "go"})
    assert ("go", 3) == (records(app)[0]["decision"]["guidance"], crossings(app, guard))


# -- tool calls that a trip leaves open ----------------------------------------------------------------------


def agent(**settings: Any) -> Any:
    """A model that calls one tool for ever, and refuses a thread with open tool calls, as chat models do."""

    def model(state: Any) -> dict[str, Any]:
        calls = [
            call["id"] for message in state["messages"] if isinstance(message, AIMessage) for call in message.tool_calls
        ]
        answered = [message.tool_call_id for message in state["messages"] if isinstance(message, ToolMessage)]
        assert calls == answered, "a chat model refuses open tool calls"
        n = len(calls)
        if isinstance(state["messages"][-1], HumanMessage) and state["messages"][-1].text == "stop":
            return {"messages": [AIMessage("done", id=f"done-{n}")]}
        call = {"name": "search", "args": {"q": n}, "id": f"call-{n}"}
        return {"messages": [AIMessage("", id=f"ai-{n}", tool_calls=[call])]}

    def tools(state: Any) -> dict[str, Any]:
        last = state["messages"][-1]
        return {"messages": [ToolMessage("nothing", tool_call_id=call["id"]) for call in last.tool_calls]}

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    builder.add_edge("tools", "model")
    guard_loop(builder, "model", "tools", max_cycles=2, **settings)
    return builder.compile(checkpointer=InMemorySaver())


@pytest.mark.parametrize("decision", [{"action": "accept"}, {"action": "reject"}])
def test_a_decision_answers_open_tool_calls(decision: Any) -> None:
    """The thread stays usable: a next input meets no open call."""
    app = agent()
    app.invoke({"messages": [HumanMessage("go")]}, thread())
    answer(app, decision)
    last = app.get_state(thread()).values["messages"][-1]
    assert (ToolMessage, "call-2", "error") == (type(last), last.tool_call_id, last.status)
    assert "done" == app.invoke({"messages": [HumanMessage("stop")]}, thread())["messages"][-1].text


def test_guidance_is_the_answer_to_open_tool_calls() -> None:
    """The agent reads what the person said and goes on; the shut edge is not entered."""
    app = agent()
    app.invoke({"messages": [HumanMessage("go")]}, thread())
    answer(app, {**RETRY, "guidance": "use the index"})
    texts = [message.text for message in app.get_state(thread()).values["messages"] if isinstance(message, ToolMessage)]
    assert 4 == len(texts)
    assert "use the index" in texts[2]


def test_a_retry_without_guidance_runs_the_open_tool_calls() -> None:
    """The shut edge is entered as it would have been."""
    app = agent()
    app.invoke({"messages": [HumanMessage("go")]}, thread())
    answer(app, RETRY)
    tools = [message for message in app.get_state(thread()).values["messages"] if isinstance(message, ToolMessage)]
    assert ["nothing"] * 3 == [message.text for message in tools]


def test_a_run_that_ends_at_the_escalation_answers_open_tool_calls() -> None:
    """With `ask_human=False` too."""
    app = agent(ask_human=False)
    result = app.invoke({"messages": [HumanMessage("go")]}, thread())
    assert "call-2" == result["messages"][-1].tool_call_id
    assert "done" == app.invoke({"messages": [HumanMessage("stop")]}, thread())["messages"][-1].text


@pytest.mark.parametrize("settings", [{}, {"per": "turn"}, {"ask_human": False}])
@pytest.mark.parametrize("times", [1, 2])
def test_a_new_input_while_a_question_waits_meets_no_open_call(settings: Any, times: int) -> None:
    """The agent goes on with the new input: the calls that the shut edge left are answered where they were made."""
    app = agent(**settings)
    app.invoke({"messages": [HumanMessage("go", id="go")]}, thread())
    for n in range(times):
        app.invoke({"messages": [HumanMessage("again", id=f"again-{n}")]}, thread())
    ends = app.invoke({"messages": [HumanMessage("stop", id="stop")]}, thread())["messages"]
    assert "done" == ends[-1].text
    assert in_order(ends)
    assert "new input" in first_error(ends) or settings == {"ask_human": False}


@pytest.mark.parametrize("decision", [{"action": "accept"}, {"action": "reject"}, {**RETRY, "guidance": "stop"}])
@pytest.mark.parametrize("kind", ["add_messages", "own reducer", "delta"])
def test_all_open_calls_are_answered_where_they_were_made(decision: Any, kind: str) -> None:
    """However many messages lie between, and with several calls of which some are answered."""
    channel: Any = {
        "add_messages": add_messages,
        "own reducer": join,
        "delta": DeltaChannel(lambda before, writes: [*before, *(one for write in writes for one in write)], list),
    }[kind]
    state: Any = TypedDict("state", {"messages": Annotated[list[AnyMessage], channel], "log": list})  # type: ignore[misc]
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)

    def call(name: str | None) -> Any:
        return {"name": "t", "args": {}, "id": name}

    def model(state: Any) -> dict[str, Any]:
        n = len(state["messages"])
        calls = [call(f"{n}-a"), call(f"{n}-b"), call(None)]
        answers = [ToolMessage("ok", id=f"tool-{n}", tool_call_id=f"{n}-a")]
        return {"messages": [AIMessage("", id=f"ai-{n}", tool_calls=calls), *answers, HumanMessage("hm", id=f"h-{n}")]}

    builder.add_node("model", model)
    builder.add_node("tools", lambda state: {"log": ["tools"]})
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    builder.add_edge("tools", "model")
    guard_loop(builder, "model", "tools", max_cycles=2)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"messages": []}, thread())
    found = answer(app, decision)["messages"][: 3 * 4]
    assert ["ai", "tool", "tool", "human"] * 3 == [message.type for message in found]
    assert ["0-a", "0-b", "3-a", "3-b", "6-a", "6-b"] == [one.tool_call_id for one in found if one.type == "tool"]
    assert in_order(found)


def in_order(messages: Sequence[AnyMessage]) -> bool:
    """Whether each call is answered once, right behind the message that made it."""
    for at, message in enumerate(messages):
        if isinstance(message, AIMessage):
            calls = {call["id"] for call in message.tool_calls if call["id"]}
            behind = [
                one.tool_call_id for one in messages[at + 1 : at + 1 + len(calls)] if isinstance(one, ToolMessage)
            ]
            if sorted(behind) != sorted(calls):
                return False
    answers = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    return len(answers) == len(set(answers))


# -- accept and edit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fix", [1, 2])
def test_accepting_a_fix_puts_it_into_the_state(fix: int) -> None:
    """Any attempt, not only the last."""
    app, _ = tripped()
    result = answer(app, {"action": "accept", "fix": fix})
    assert (f"line 0\nline {fix}\n", ()) == (result["patch"], app.get_state(thread()).next)


def test_accepting_without_a_fix_leaves_the_work_as_it_is() -> None:
    """The work stays as the last attempt left it."""
    app, _ = tripped()
    assert "line 0\nline 2\n" == answer(app, {"action": "accept"})["patch"]


def test_rejecting_ends_the_run_and_changes_nothing() -> None:
    """The work stays in the state, the decision says that it is not accepted."""
    app, _ = tripped()
    before = app.get_state(thread()).values
    result = answer(app, {"action": "reject", "note": "start anew"})
    assert before["patch"] == result["patch"]
    assert ("reject", "start anew") == (
        result["escalation"]["decision"]["action"],
        result["escalation"]["decision"]["note"],
    )
    assert () == app.get_state(thread()).next


@pytest.mark.parametrize(
    "artifact",
    ["mine\r\n\x1b[2K", "", 0, False, [], {"a": [1, None]}, {"__overwrite__": 1}, b"\xff\x00", {1, 2}, float("nan")],
)
def test_an_edit_puts_the_persons_own_work_into_the_state(artifact: Any) -> None:
    """Whatever it is, byte for byte; in the record it stands as JSON."""
    app, _ = tripped()
    result = answer(app, {"action": "edit", "artifact": artifact})
    assert repr(artifact) == repr(result["patch"])
    assert is_json(result["escalation"])
    assert result["escalation"]["decision"]["artifact"] is not None
    assert () == app.get_state(thread()).next


def test_an_answer_that_no_saver_keeps_leaves_the_question_open() -> None:
    """LangGraph refuses to store it; the right answer still goes."""
    app, _ = tripped()
    for artifact in (object(), 2**70):
        with pytest.raises((TypeError, ValueError)):
            answer(app, {"action": "edit", "artifact": artifact})
        assert [None] == [record["decision"] for record in records(app)]
    assert "mine" == answer(app, {"action": "edit", "artifact": "mine"})["patch"]


def keep_longest(before: str | None, after: str) -> str:
    return max(before or "", after, key=len)


class Longest(TypedDict, total=False):
    n: int
    review: str
    patch: Annotated[str, keep_longest]


def test_accept_and_edit_set_a_key_with_a_reducer() -> None:
    """The person's choice stands, whatever the reducer would make of it."""
    for decision, expected in (({"action": "edit", "artifact": "x"}, "x"), ({"action": "accept", "fix": 1}, "a" * 9)):
        app, _ = tripped(state=Longest, fix=lambda n: {"patch": "a" * (9 * n)})
        assert expected == answer(app, decision)["patch"]


def test_accepting_a_fix_of_a_key_that_adds_up_restores_the_whole_value() -> None:
    """The work product after the attempt, not only what the attempt added."""
    app, _ = pair(fix=lambda n: {"log": [f"step {n}"]}, artifact="log", max_cycles=2)
    app.invoke({"log": ["start"]}, thread())
    assert ["start", "step 1"] == answer(app, {"action": "accept", "fix": 1})["log"]


@pytest.mark.parametrize("fix", [1, 2])
@pytest.mark.parametrize("reviews", [False, True])
def test_an_attempt_of_messages_is_restored_whole(fix: int, reviews: bool) -> None:
    """Messages have a reducer that knows them by id: what came after the attempt is gone again, and types are kept."""

    class Chat(MessagesState, total=False):
        n: int
        review: Any

    def review(n: int) -> dict[str, Any]:
        return {"messages": [HumanMessage(f"no {n}", id=f"r{n}")]} if reviews else {"review": n}

    app, _ = pair(review, lambda n: {"messages": [AIMessage(f"try {n}", id=f"f{n}")]}, state=Chat,
                  artifact="messages", max_cycles=2)  # fmt: skip
    app.invoke({"messages": [HumanMessage("go", id="go")]}, thread())
    found = answer(app, {"action": "accept", "fix": fix})["messages"]
    expected = ["go", "r1", "f1", "r2", "f2"][: 1 + 2 * fix] if reviews else ["go", "f1", "f2"][: 1 + fix]
    assert expected == [message.id for message in found]
    assert all(isinstance(message, (HumanMessage, AIMessage)) for message in found)


class Report(BaseModel):
    title: str
    lines: list[int] = []
    when: date = date(2026, 1, 1)
    token: SecretStr = SecretStr("hunter2")


@dataclasses.dataclass
class Note:
    text: str
    more: Report | None = None


class Typed(TypedDict, total=False):
    n: int
    review: Any
    patch: Report
    note: Note | None
    notes: Annotated[list[Note], operator.add]


def test_an_attempt_with_a_type_is_restored_with_it() -> None:
    """A model, a dataclass and a list of them come back as what they were, not as dicts."""
    made: dict[str, tuple[Callable[[int], Any], Callable[[int], Any]]] = {
        "patch": (lambda n: Report(title=str(n), lines=[n], when=date(2026, 1, n), token=SecretStr("**********")),) * 2,
        "note": (lambda n: Note(str(n)),) * 2,
        "notes": (lambda n: [Note(str(n))], lambda n: [Note(str(m)) for m in range(1, n + 1)]),
    }
    for key, (write, whole) in made.items():
        for fix in (1, 2):
            app, _ = pair(fix=lambda n, key=key, write=write: {key: write(n)}, state=Typed, artifact=key, max_cycles=2)
            app.invoke({}, thread())
            assert whole(fix) == answer(app, {"action": "accept", "fix": fix})[key]


def test_the_latest_attempt_stays_the_very_object() -> None:
    """What the record cannot show (a secret) is not lost by accepting what is in the state already."""
    app, _ = pair(fix=lambda n: {"patch": Report(title=str(n))}, state=Typed, artifact="patch", max_cycles=2)
    app.invoke({}, thread())
    assert "hunter2" == answer(app, {"action": "accept", "fix": 2})["patch"].token.get_secret_value()


def test_an_edit_of_a_type_is_checked_by_it() -> None:
    """A person's JSON becomes the state's type; what does not fit is refused and the question stays open."""
    app, _ = pair(fix=lambda n: {"patch": Report(title=str(n))}, state=Typed, artifact="patch", max_cycles=2)
    app.invoke({}, thread())
    for wrong in ({"title": 7}, {"lines": []}, "text", [1]):
        with pytest.raises(ValidationError, match="artifact cannot be put into the state key 'patch'"):
            answer(app, {"action": "edit", "artifact": wrong})
    assert [None] == [record["decision"] for record in records(app)]
    right = {"title": "mine", "lines": [1], "when": "2026-02-03", "token": "**********"}
    patch = answer(app, {"action": "edit", "artifact": right})["patch"]
    assert ("mine", date(2026, 2, 3)) == (patch.title, patch.when)
    for short in ({"title": "mine"}, Report(title="mine")):
        app, _ = pair(fix=lambda n: {"patch": Report(title=str(n))}, state=Typed, artifact="patch", max_cycles=2)
        app.invoke({}, thread())
        assert Report(title="mine") == answer(app, {"action": "edit", "artifact": short})["patch"]


@pytest.mark.parametrize("value", ["5", 5.5, [1], None, {"a": 1}])
def test_an_edit_of_a_plain_annotation_is_taken_as_it_is(value: Any) -> None:
    """LangGraph does not check it; nothing is made of it that the person did not say."""

    class Number(TypedDict, total=False):
        n: int
        review: str
        patch: int

    app, _ = pair(fix=lambda n: {"patch": n}, state=Number, artifact="patch", max_cycles=1)
    app.invoke({}, thread())
    if value is None:
        with pytest.raises(ValidationError, match="needs an artifact"):
            answer(app, {"action": "edit", "artifact": value})
    else:
        assert value == answer(app, {"action": "edit", "artifact": value})["patch"]


def test_an_attempt_without_a_work_product_cannot_be_accepted_by_number() -> None:
    """Nothing would be put into the state, and nobody would know."""
    app, _ = tripped(fix=lambda n: {"patch": "text"} if n > 1 else {})
    with pytest.raises(ValidationError, match="fix=1 holds no work product"):
        answer(app, {"action": "accept", "fix": 1})
    assert "text" == answer(app, {"action": "accept", "fix": 2})["patch"]


def test_an_edit_of_a_reduced_key_that_holds_nothing_yet() -> None:
    """LangGraph takes the first write of such a key as it is: it must be the work and not a wrapper around it."""

    class Empty(TypedDict, total=False):
        n: int
        review: str
        patch: Annotated[str | dict[str, Any], lambda before, after: after]

    app, _ = pair(fix=lambda n: {}, state=Empty, artifact="patch", max_cycles=1)
    app.invoke({}, thread())
    assert "mine" == answer(app, {"action": "edit", "artifact": "mine"})["patch"]


@pytest.mark.parametrize("artifact", [None, lambda state: state.get("patch")])
def test_a_fix_that_cannot_be_put_into_the_state_is_not_offered_and_refused(artifact: Any) -> None:
    """Where the work product is no state key there is none to set: accepting an attempt would do nothing."""
    app, _ = tripped(artifact=artifact)
    (record,) = records(app)
    (asking,) = app.get_state(thread()).interrupts
    assert "fix" not in record["options"][0]["description"]
    assert "fix" not in asking.value["action_requests"][0]["args"]
    assert not {"fix", "artifact"} & asking.response_schema["properties"].keys()
    for refused in (
        {"action": "accept", "fix": 1},
        {"decisions": [{"type": "edit", "edited_action": {"name": "x", "args": {"action": "accept", "fix": 1}}}]},
    ):
        with pytest.raises(ValidationError, match="fix=1 cannot be put into the state.*artifact="):
            answer(app, refused)
    assert "line 0\nline 2\n" == answer(app, {"action": "accept"})["patch"]


def test_the_question_shows_what_can_be_answered() -> None:
    """The form for a front end: the actions there are, the attempts there are, and no word about code."""
    app, _ = tripped()
    (asking,) = app.get_state(thread()).interrupts
    properties = asking.response_schema["properties"]
    assert ["accept", "reject", "edit", "retry"] == properties["action"]["enum"]
    assert {"type": "integer", "minimum": 1, "maximum": 2} == properties["fix"]["anyOf"][0]
    assert {"action", "fix", "artifact", "guidance", "extra_cycles"} == asking.value["action_requests"][0][
        "args"
    ].keys()
    text = repr(asking.response_schema)
    assert "Raises" not in text
    assert "pydantic" not in text
    assert records(app)[0]["question"] == asking.response_schema["description"]


# -- an answer in words only ---------------------------------------------------------------------------------


def spending(n: int) -> dict[str, Any]:
    usage = {"input_tokens": 9, "output_tokens": 1, "total_tokens": 10}
    return {"log": [AIMessage(f"remark {n}", usage_metadata=usage)]}


SPENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cycles": ({}, {"extra_cycles": 1}),
    "tokens": ({"review": spending, "stop_when": TokenBudget(40), "max_cycles": 20}, {"extra_tokens": 14}),
    "both": ({"review": spending, "stop_when": TokenBudget(30) & MaxCycles(2), "max_cycles": 9},
             {"extra_tokens": 15, "extra_cycles": 1}),
    "nothing": ({"review": lambda n: {"review": "same"}, "stop_when": RepeatedPayload(2, node="reviewer")}, {}),
}  # fmt: skip


@pytest.mark.parametrize("spent", SPENT)
@pytest.mark.parametrize("shape", [lambda text: {"decisions": [{"type": "respond", "message": text}]},
                                   lambda text: [{"type": "response", "args": text}]])  # fmt: skip
def test_a_respond_is_offered_and_renews_what_is_spent(spent: str, shape: Any) -> None:
    """An answer in words lets the loop go on for about a cycle, and no other budget is renewed."""
    settings, extra = SPENT[spent]
    app, guard = tripped(**settings)
    value = app.get_state(thread()).interrupts[0].value
    assert ["approve", "edit", "reject", "respond"] == value["review_configs"][0]["allowed_decisions"]
    before = crossings(app, guard)
    answer(app, shape("try the index"))
    decision = records(app)[0]["decision"]
    assert ("retry", "try the index") == (decision["action"], decision["guidance"])
    extras = ("extra_cycles", "extra_tokens", "extra_seconds")
    assert {name: extra.get(name, 0) for name in extras} == {name: decision[name] for name in extras}
    assert crossings(app, guard) > before


def test_a_respond_renews_seconds() -> None:
    """The overrun and the time of one more cycle."""
    app, _ = tripped(stop_when=TimeBudget(1e-9))
    (record,) = records(app)
    answer(app, {"decisions": [{"type": "respond", "message": "go on"}]})
    assert records(app)[0]["decision"]["extra_seconds"] >= record["spent"]["seconds"] - 1e-9
    assert record["options"][-1]["respond_with"] == {"extra_seconds": records(app)[0]["decision"]["extra_seconds"]}


@pytest.mark.parametrize(
    ("settings", "shown"),
    [
        ({}, "extra_cycles"),
        ({"review": spending, "stop_when": TokenBudget(40), "max_cycles": 20}, "extra_tokens"),
        ({"stop_when": TimeBudget(1e-9)}, "extra_seconds"),
        ({"review": lambda n: {"review": "same"}, "stop_when": RepeatedPayload(2, node="reviewer")}, "extra_cycles"),
    ],
)
def test_the_arguments_to_edit_name_the_budget_that_fits(settings: dict[str, Any], shown: str) -> None:
    """A front end that edits arguments can name what is spent."""
    app, guard = tripped(**settings)
    args = app.get_state(thread()).interrupts[0].value["action_requests"][0]["args"]
    assert [shown] == [name for name in args if name.startswith("extra_")]
    assert shown in records(app)[0]["options"][-1]["description"]
    before = crossings(app, guard)
    edited = {"name": "x", "args": {**args, "action": "retry", shown: 1000}}
    answer(app, {"decisions": [{"type": "edit", "edited_action": edited}]})
    assert crossings(app, guard) > before


# -- once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", DOORS)
async def test_an_answer_sent_again_after_the_end_changes_nothing(how: str) -> None:
    """The thread is over: the second answer finds nothing to decide."""
    app, _ = tripped()
    await door(app, how, Command(resume={"action": "accept", "fix": 1}))
    before = app.get_state(thread())
    await door(app, how, Command(resume={"action": "retry", "extra_cycles": 5}))
    after = app.get_state(thread())
    assert (before.values, ()) == (after.values, after.next)


@pytest.mark.parametrize("how", DOORS)
async def test_an_answer_sent_again_at_the_next_trip_changes_nothing(how: str) -> None:
    """An answer that names its escalation, or its interrupt, is not taken for another one."""
    app, guard = tripped()
    (interrupt,) = app.get_state(thread()).interrupts
    (record,) = records(app)
    named = {**RETRY, "escalation_id": record["id"]}
    await door(app, how, Command(resume={interrupt.id: named}))
    assert 3 == crossings(app, guard)
    before = app.get_state(thread()).values
    await door(app, how, Command(resume={interrupt.id: named}))
    await door(app, how, Command(resume={interrupt.id: RETRY}))
    with pytest.raises(ValidationError, match="escalation_id"):
        await door(app, how, Command(resume=named))
    assert before == app.get_state(thread()).values
    assert 1 == len(app.get_state(thread()).interrupts)
    answer(app, {"action": "accept"})
    assert ["retry", "accept"] == [one["decision"]["action"] for one in records(app)]


def test_resuming_without_an_answer_asks_again() -> None:
    """`invoke(None)` decides nothing."""
    app, guard = tripped()
    for _ in range(3):
        assert 1 == len(app.invoke(None, thread())["__interrupt__"])
    assert (2, [None]) == (crossings(app, guard), [record["decision"] for record in records(app)])


def test_a_new_input_while_a_question_waits_opens_nothing() -> None:
    """The edge stays shut, the question is asked again about the same record, and its answer counts."""
    app, guard = tripped()
    (record,) = records(app)
    for _ in range(2):
        result = app.invoke({"n": 0}, thread())
        assert record["id"] == result["__interrupt__"][0].value["escalation"]["id"]
    assert (2, 1) == (crossings(app, guard), len(records(app)))
    answer(app, {**RETRY, "escalation_id": record["id"]})
    assert 3 == crossings(app, guard)


def test_a_new_input_that_does_not_reach_the_edge_leaves_the_record_open() -> None:
    """The record waits although no interrupt does; the next try at the edge asks again."""
    app, guard = tripped(rounds=4)
    app.invoke({"n": 90}, thread())
    assert ((), [None]) == (app.get_state(thread()).next, [record["decision"] for record in records(app)])
    assert guard.ledger(app.get_state(thread())).tripped
    app.invoke({"n": 0}, thread())
    answer(app, {"action": "accept"})
    assert ["accept"] == [record["decision"]["action"] for record in records(app)]


def test_after_accept_the_edge_stays_counted() -> None:
    """Only a retry renews: a new input after `accept` trips at once, with a record of its own."""
    app, guard = tripped()
    answer(app, {"action": "accept"})
    app.invoke({"n": 0}, thread())
    assert (2, 2) == (crossings(app, guard), len(records(app)))
    assert "all inputs of the thread" in records(app)[-1]["reason"]["message"]


def test_a_retry_may_end_well() -> None:
    """When the pair agrees after a retry the run ends; the record says what was decided."""
    app, guard = tripped(rounds=3)
    result = answer(app, {"action": "retry", "extra_cycles": 9})
    assert (3, (), 1) == (crossings(app, guard), app.get_state(thread()).next, len(records(app)))
    assert "retry" == result["escalation"]["decision"]["action"]


def test_a_decision_is_taken_up_after_a_crash() -> None:
    """The answer is stored before it is applied: when the process dies in between, the next one applies it, once."""

    class Dying(InMemorySaver):
        dead = False

        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            found = checkpoint["channel_values"].get("escalations") or {}
            if not self.dead and any(record["decision"] for record in found.values()):
                self.dead = True
                raise OSError("killed")
            return super().put(config, checkpoint, metadata, new_versions)

    app, guard = pair(max_cycles=2, saver=Dying())
    app.invoke({}, thread())
    with pytest.raises(OSError, match="killed"):
        app.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), thread(), durability="sync")
    app.invoke(None, thread())
    assert 4 == crossings(app, guard)
    assert ["retry", None] == [record["decision"] and record["decision"]["action"] for record in records(app)]


@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize(
    "decision", [{"action": "edit", "artifact": {1, 2}}, {"action": "accept", "fix": 1}, {**RETRY, "guidance": "go"}]
)
def test_a_decision_is_carried_out_once_wherever_the_process_dies(nth: int, decision: dict[str, Any]) -> None:
    """Between the answer and what it means, too: the work, the guidance and the handoff are there once."""

    class Dying(InMemorySaver):
        puts = -1

        def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            if self.puts >= 0:
                self.puts += 1
                if self.puts == nth:
                    raise OSError("killed")
            return super().put(config, checkpoint, metadata, new_versions)

    saver = Dying()

    def fresh() -> tuple[Any, LoopGuard]:
        return pair(max_cycles=2, saver=saver, artifact="patch", rounds=3)

    app, _ = fresh()
    app.invoke({}, thread())
    saver.puts = 0
    try:
        app.invoke(Command(resume=decision), thread(), durability="sync")
    except OSError:
        app, _ = fresh()
        app.invoke(None, thread())
    app, guard = fresh()
    values = app.get_state(thread()).values
    assert [decision["action"]] == [record["decision"]["action"] for record in records(app)]
    assert () == app.get_state(thread()).next
    if decision["action"] == "retry":
        assert (3, "go", "line 0\nline 3\n") == (crossings(app, guard), values["guidance"], values["patch"])
    else:
        assert (2, decision.get("artifact", "line 0\nline 1\n")) == (crossings(app, guard), values["patch"])
    assert not [name for name in values.get("loopguard_held") or {} if name.startswith(":")]


def test_a_question_that_is_decided_keeps_its_decision() -> None:
    """Another answer to the same checkpoint, sent later, decides nothing anew."""
    app, guard = tripped()
    waiting = app.get_state(thread()).config
    answer(app, {"action": "accept"})
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), waiting)
    assert 2 == crossings(app, guard)
    assert ["accept"] == [record["decision"]["action"] for record in records(app)]


def test_the_decision_of_a_fork_is_its_own() -> None:
    """Going back to the question asks it again; another answer begins another history, the first stays as it was."""
    app, guard = tripped()
    waiting = app.get_state(thread()).config
    answer(app, {"action": "accept"})
    accepted = app.get_state(thread()).config
    app.invoke(None, waiting)
    answer(app, {"action": "retry", "extra_cycles": 2})
    assert 4 == crossings(app, guard)
    first = list(app.get_state(accepted).values["escalations"].values())
    assert ["accept"] == [record["decision"]["action"] for record in first]
    assert ["retry", None] == [record["decision"] and record["decision"]["action"] for record in records(app)]


# -- where the graph differs ---------------------------------------------------------------------------------


def test_a_decision_inside_a_subgraph() -> None:
    """A loop in a subgraph asks through the parent, and goes on there."""
    inner = builder_of()
    guard_loop(inner, "reviewer", "fixer", max_cycles=2, artifact="patch")
    outer = StateGraph(State)
    outer.add_node("loop", inner.compile())
    outer.add_node("after", lambda state: {"log": ["after"]})
    outer.add_edge(START, "loop")
    outer.add_edge("loop", "after")
    app = outer.compile(checkpointer=InMemorySaver())
    result = app.invoke({"log": []}, thread())
    record = result["__interrupt__"][0].value["escalation"]
    assert ("thread", 2) == (record["thread_id"], record["cycles"])
    result = answer(app, {**RETRY, "escalation_id": record["id"]})
    second = result["__interrupt__"][0].value["escalation"]
    assert (3, True) == (second["cycles"], second["id"] != record["id"])
    result = answer(app, {"action": "accept", "fix": 1})
    assert ("line 0\nline 1\n", ["after"]) == (result["patch"], result["log"][-1:])


def test_a_ring_goes_on_at_the_node_that_was_shut() -> None:
    """A retry enters the target of the shut edge, not the first node again."""
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    for source, target in ((START, "a"), ("a", "b"), ("b", "c"), ("c", "a")):
        builder.add_edge(source, target)
    guard_loop(
        builder, "a", "b", "c", max_cycles=1, stop_when=lambda ledger: ledger.last == "c" and not ledger.decisions
    )
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    assert ("c->a", "abc") == (records(app)[0]["edge"], "".join(app.get_state(thread()).values["log"]))
    answer(app, {"action": "retry"})
    assert "abca" == "".join(app.get_state(thread()).values["log"])


def test_a_record_of_a_guard_that_is_gone_ends_quietly(caplog: pytest.LogCaptureFixture) -> None:
    """A deploy without the guard, while its question waits: the run ends and says so in the log."""
    saver = InMemorySaver()
    app, _ = pair(max_cycles=1, saver=saver, name="old")
    app.invoke({}, thread())
    app, _ = pair(max_cycles=1, saver=saver, name="new")
    with caplog.at_level("WARNING"):
        answer(app, {"action": "accept"})
    assert [message for message in caplog.messages if "'old'" in message]


def test_several_targets_that_are_shut_are_all_entered_by_a_retry() -> None:
    """A router that goes to two loop nodes at once has both held back, and both entered again."""
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, lambda state, name=name: {"log": [name]})
    builder.add_edge(START, "a")
    builder.add_conditional_edges("a", lambda state: ["b", "c"], ["b", "c"])
    builder.add_edge("b", "a")
    builder.add_edge("c", "a")
    guard = guard_loop(builder, "a", "b", "c", max_cycles=1)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"log": []}, thread())
    before = "".join(app.get_state(thread()).values["log"])
    answer(app, RETRY)
    assert ["b", "c", "a"] == app.get_state(thread()).values["log"][len(before) :]
    assert 2 == guard.ledger(app.get_state(thread())).cycles


def first_error(found: Sequence[AnyMessage]) -> str:
    return next(message.text for message in found if isinstance(message, ToolMessage) and message.status == "error")


def join(before: list[AnyMessage], after: list[AnyMessage]) -> list[AnyMessage]:
    """A reducer of the user's own."""
    joined: list[AnyMessage] = add_messages(before, after)
    return joined


def test_messages_in_a_reducer_of_the_users_own_are_answered_too() -> None:
    """Any reducer that takes a list of messages will do."""

    class Own(TypedDict):
        messages: Annotated[list[AnyMessage], join]

    builder = StateGraph(Own)
    call = {"name": "t", "args": {}, "id": "c"}
    builder.add_node(
        "model", lambda state: {"messages": [AIMessage("", id=str(len(state["messages"])), tool_calls=[call])]}
    )
    builder.add_node("tools", lambda state: {"messages": [HumanMessage("again")]})
    builder.add_edge(START, "model")
    builder.add_edge("model", "tools")
    builder.add_edge("tools", "model")
    guard_loop(builder, "model", "tools", max_cycles=1)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({"messages": []}, thread())
    assert "a person said: reject" in first_error(answer(app, {"action": "reject"})["messages"])


# -- several decisions at once -------------------------------------------------------------------------------


class Shared(Files, total=False):
    patch: Annotated[Any, lambda before, after: after]
    guidance: str
    messages: Annotated[list[AnyMessage], add_messages]


@pytest.mark.parametrize("state", [Files, Shared])
@pytest.mark.parametrize(
    ("decision", "patch"),
    [
        ({"action": "edit", "artifact": "mine {}"}, "mine b"),
        ({"action": "accept", "fix": 1}, "fix b"),
        ({"action": "reject"}, "fix b"),
        ({**RETRY, "guidance": "for {}"}, "fix b"),
    ],
)
@pytest.mark.parametrize("how", DOORS)
async def test_decisions_about_two_files_do_not_stand_in_each_others_way(
    state: Any, decision: dict[str, Any], patch: str, how: str
) -> None:
    """Two answers in one superstep may mean the same state key: the later one stands, and neither is lost."""
    app, guard = by_file(state=state, artifact="patch" if state is Shared else "log")
    answers = {
        one.id: {key: text.format(name) if isinstance(text, str) else text for key, text in decision.items()}
        for name, one in asked(app).items()
    }
    await door(app, how, Command(resume=answers))
    decided = [record["decision"] and record["decision"]["action"] for record in records(app)]
    assert [decision["action"]] * 2 == decided[:2]
    values = app.get_state(thread()).values
    if state is Shared:
        assert patch == values["patch"]
    if decision["action"] == "retry":
        assert [2, 2] == [guard.ledger(app.get_state(thread()), name).cycles for name in "ab"]
        assert {"a", "b"} == asked(app).keys()
        if state is Shared:
            assert "for a\n\nfor b" == values["guidance"]
            assert ["for a", "for b"] == [message.text for message in values["messages"]]
    else:
        assert () == app.get_state(thread()).next
    assert {} == {name: held for name, held in (values.get("loopguard_held") or {}).items() if name.startswith(":")}
