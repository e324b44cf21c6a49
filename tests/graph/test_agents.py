"""Agents as nodes: `create_agent`, a swarm, a supervisor, and handoffs from a subgraph to its parent."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from langgraph_loopguard import TokenBudget, guard_compiled, guard_loop
from langgraph_loopguard.testing import ScriptedChatModel
from tests.graph.drive import STREAMS, in_order, project
from tests.graph.graphs import plain, thread

Builder = StateGraph[Any, Any, Any, Any]
ASK = {"messages": [("user", "Why was I charged twice?")]}


def handing(other: str, times: int) -> Iterator[AIMessage]:
    """Hand over some times, then answer."""
    for number in count(1):
        if number > times:
            yield AIMessage("Solved.", id=f"solved-{other}-{number}")
            continue
        call = {"name": f"transfer_to_{other}", "args": {}, "id": f"to-{other}-{number}"}
        yield AIMessage("Not for me.", tool_calls=[call], id=f"hand-{other}-{number}")


def swarm(times: int = 99) -> Builder:
    """Two agents that hand over to each other."""
    agents = [
        create_agent(
            ScriptedChatModel(messages=handing(other, times)), [create_handoff_tool(agent_name=other)], name=name
        )
        for name, other in (("billing", "support"), ("support", "billing"))
    ]
    return create_swarm(agents, default_active_agent="billing")


def supervised(times: int = 99) -> Builder:
    """A supervisor that gives its worker the same task again and again."""

    def reports() -> Iterator[AIMessage]:
        for number in count(1):
            yield AIMessage(f"Report {number}", id=f"report-{number}")

    worker = create_agent(ScriptedChatModel(messages=reports()), name="worker")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # langgraph-supervisor itself calls what LangGraph has deprecated
        return create_supervisor([worker], model=ScriptedChatModel(messages=handing("worker", times)))


def open_calls(messages: list[Any]) -> set[str]:
    """Tool calls that nobody has answered: chat models refuse a thread with any."""
    asked = {call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls}
    return asked - {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_swarm_is_capped(door: str) -> None:
    """Handoff tools are edges: three cycles, one question, and the thread can go on."""
    builder = swarm()
    guard = guard_loop(builder, "billing", "support", max_cycles=3)
    app = builder.compile(checkpointer=InMemorySaver())
    result = app.invoke(ASK, thread()) if door == "invoke" else asyncio.run(app.ainvoke(ASK, thread()))
    assert "escalated" == result["outcome"]
    assert {"billing->support": 3, "support->billing": 3} == guard.ledger(app.get_state(thread())).handoffs
    assert 1 == len(result["__interrupt__"])
    assert not open_calls(result["messages"])
    result = app.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), thread())
    assert 5 == result["escalation"]["cycles"]
    result = app.invoke(Command(resume={"action": "reject"}), thread())
    assert not app.get_state(thread()).next
    assert not open_calls(result["messages"])


@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_a_supervisor_is_capped(door: str) -> None:
    """A handoff tool on one way, a plain edge on the other."""
    builder = supervised()
    guard_loop(builder, "supervisor", "worker", max_cycles=3)
    app = builder.compile()
    result = app.invoke(ASK) if door == "invoke" else asyncio.run(app.ainvoke(ASK))
    record = result["escalation"]
    assert ("escalated", 3, "supervisor->worker") == (result["outcome"], record["cycles"], record["edge"])
    assert 3 == len(record["fixes"])
    assert not open_calls(result["messages"])


TEAMS = {"swarm": (swarm, ("billing", "support")), "supervisor": (supervised, ("supervisor", "worker"))}


@pytest.mark.parametrize("team", TEAMS)
@pytest.mark.parametrize("mode", STREAMS)
@pytest.mark.parametrize("subgraphs", [False, True])
def test_a_team_that_does_not_trip_streams_as_without_a_guard(team: str, mode: Any, subgraphs: bool) -> None:
    """Every mode, with and without what happens inside the agents."""
    make, nodes = TEAMS[team]
    out = []
    for guarded in (False, True):
        builder = make(2)
        if guarded:
            guard_loop(builder, *nodes, max_cycles=3)
        app = builder.compile(checkpointer=InMemorySaver())
        chunks = list(app.stream(ASK, thread(), stream_mode=mode, subgraphs=subgraphs))
        datas = (
            [(len(path), project(mode, data)) for path, data in chunks]
            if subgraphs
            else [project(mode, c) for c in chunks]
        )
        out.append(in_order(datas))
    assert out[0] == out[1]


@pytest.mark.parametrize("mode", ["messages", "updates", "values"])
@pytest.mark.parametrize("kind", ["subgraph", "function"])
@pytest.mark.parametrize("subgraphs", [False, True])
def test_handoffs_with_messages_to_the_parent_stream_as_without_a_guard(mode: Any, kind: str, subgraphs: bool) -> None:
    """`Command(graph=PARENT, update={"messages": ...})` from a subgraph: no message is missing, none comes twice."""

    def make() -> Builder:
        builder: Builder = StateGraph(MessagesState)
        for name, other in (("a", "b"), ("b", "a")):
            inner: Builder = StateGraph(MessagesState)

            def act(state: Any, name: str = name, other: str = other) -> Any:
                number = len(state["messages"])
                message = AIMessage(f"{name} says {number}", id=f"{name}-{number}")
                goto = other if number < 6 else END
                return Command(update={"messages": [message]}, goto=goto, graph=Command.PARENT)

            inner.add_node("act", act)
            inner.add_edge(START, "act")
            sub = inner.compile()
            builder.add_node(
                name,
                sub if kind == "subgraph" else (lambda state, sub=sub: sub.invoke(state)),
                destinations=("a", "b", END),
            )
        builder.add_edge(START, "a")
        return builder

    out = []
    for guarded in (False, True):
        builder = make()
        if guarded:
            guard_loop(builder, "a", "b", max_cycles=9)
        app = builder.compile(checkpointer=InMemorySaver())
        start = {"messages": [HumanMessage("go", id="0")]}
        chunks = list(app.stream(start, thread(), stream_mode=mode, subgraphs=subgraphs))
        out.append([project(mode, chunk[1] if subgraphs else chunk) for chunk in chunks])
        texts = [message.text for message in app.get_state(thread()).values["messages"]]
        assert ["go", "a says 1", "b says 2", "a says 3", "b says 4", "a says 5", "b says 6"] == texts
    assert out[0] == out[1]


@tool
def run_tests(path: str) -> str:
    """Run the tests."""
    return "1 failed"


def calling(times: int) -> Iterator[AIMessage]:
    """Call one tool some times, then answer."""
    for number in count():
        if number < times:
            call = {"name": "run_tests", "args": {"path": "tests"}, "id": f"call-{number}"}
            yield AIMessage("Let me run the tests.", tool_calls=[call], id=f"call-{number}")
        else:
            yield AIMessage("Done.", id=f"done-{number}")


@pytest.mark.parametrize("saver", [True, False])
@pytest.mark.parametrize("door", ["invoke", "ainvoke"])
def test_an_agents_tool_loop_is_capped(saver: bool, door: str) -> None:
    """The edge between model and tools of `create_agent`; open calls are answered, so the thread can go on."""
    agent = create_agent(
        ScriptedChatModel(messages=calling(4)), [run_tests], checkpointer=InMemorySaver() if saver else None
    )
    app = guard_compiled(agent, "model", "tools", max_cycles=3, ask_human=False)
    result = app.invoke(ASK, thread()) if door == "invoke" else asyncio.run(app.ainvoke(ASK, thread()))
    assert ("escalated", 3) == (result["outcome"], result["escalation"]["cycles"])
    assert 3 == sum(message.text == "1 failed" for message in result["messages"])
    assert not open_calls(result["messages"])
    if saver:
        assert "Done." == app.invoke(ASK, thread())["messages"][-1].text


@pytest.mark.parametrize("mode", STREAMS)
def test_an_agent_that_does_not_trip_streams_as_without_a_guard(mode: Any) -> None:
    """Model and tools, in every mode."""
    out = []
    for guarded in (False, True):
        agent: Any = create_agent(ScriptedChatModel(messages=calling(2)), [run_tests])
        app = guard_compiled(agent, "model", "tools", max_cycles=3) if guarded else agent
        out.append(in_order([project(mode, chunk) for chunk in app.stream(ASK, thread(), stream_mode=mode)]))
    assert out[0] == out[1]


def test_guidance_answers_an_agents_open_calls() -> None:
    """A retry with guidance says it in place of the tool, and the model goes on."""
    agent = create_agent(ScriptedChatModel(messages=calling(2)), [run_tests], checkpointer=InMemorySaver())
    app = guard_compiled(agent, "model", "tools", max_cycles=1)
    app.invoke(ASK, thread())
    result = app.invoke(Command(resume={"action": "retry", "extra_cycles": 2, "guidance": "They pass now."}), thread())
    assert not open_calls(result["messages"])
    assert any("They pass now." in message.text for message in result["messages"])
    assert "Done." == result["messages"][-1].text


def test_agents_as_nodes_count_their_tokens() -> None:
    """Each model call's usage counts once, though an agent returns all messages each time."""

    def saying(text: str, tokens: int) -> Iterator[AIMessage]:
        for number in count(1):
            usage = {"input_tokens": tokens - 20, "output_tokens": 20, "total_tokens": tokens}
            yield AIMessage(f"{text} {number}", usage_metadata=usage, id=f"{text}-{number}")

    def build_pair() -> Builder:
        builder: Builder = StateGraph(MessagesState)
        builder.add_node("reviewer", create_agent(ScriptedChatModel(messages=saying("r", 400)), name="reviewer"))
        builder.add_node("fixer", create_agent(ScriptedChatModel(messages=saying("f", 600)), name="fixer"))
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "fixer")
        builder.add_edge("fixer", "reviewer")
        return builder

    builder = build_pair()
    guard_loop(builder, "reviewer", "fixer", max_cycles=3)
    record = builder.compile().invoke(ASK)["escalation"]
    assert 4 * 400 + 3 * 600 == record["spent"]["tokens"]
    assert [400] * 4 == [one["tokens"] for one in record["reviews"]]
    assert [600] * 3 == [one["tokens"] for one in record["fixes"]]
    assert [1] * 3 == [len(one["content"]["messages"]) for one in record["fixes"]]
    builder = build_pair()
    guard_loop(builder, "reviewer", "fixer", max_cycles=50, stop_when=TokenBudget(3000))
    reason = builder.compile().invoke(ASK)["escalation"]["reason"]
    assert ("TokenBudget", 3000) == (reason["condition"], reason["threshold"])


def test_a_swarm_s_state_is_as_without_a_guard() -> None:
    """Messages and active agent, over two turns of one thread."""
    out = []
    for guarded in (False, True):
        builder = swarm(1)
        if guarded:
            guard_loop(builder, "billing", "support", max_cycles=9)
        app = builder.compile(checkpointer=InMemorySaver())
        out.append([plain(app.invoke(ASK, thread())) for _ in range(2)])
    assert out[0] == out[1]
