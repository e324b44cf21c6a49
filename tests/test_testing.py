"""The helpers that users test their own graphs with."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop
from langgraph_loopguard.testing import (
    ScriptedChatModel,
    ScriptedNode,
    assert_escalated,
    assert_handoffs,
    assert_not_tripped,
)


class State(TypedDict, total=False):
    review: str
    patch: str


def config(name: str = "1") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def loop(*script: Any, cap: int = 3, saver: bool = True) -> tuple[Any, Any]:
    """A reviewer with a script, and a fixer."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("reviewer", ScriptedNode(*script, name="reviewer"))
    builder.add_node("fixer", ScriptedNode({"patch": "p1"}, {"patch": "p2"}))
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges(
        "reviewer", lambda state: END if state["review"] == "LGTM" else "fixer", ["fixer", END]
    )
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=cap)
    return builder.compile(checkpointer=InMemorySaver() if saver else None), guard


def test_a_script_is_followed_to_its_end_by_each_thread() -> None:
    """The last step is done for ever; another thread begins anew."""
    app, guard = loop({"review": "no"}, {"review": "no"}, {"review": "LGTM"})
    for name in "ab":
        assert "LGTM" == app.invoke({}, config(name))["review"]
        state = app.get_state(config(name))
        assert_handoffs(guard, state, {"reviewer->fixer": 2, "fixer->reviewer": 2})
        assert_not_tripped(state)


async def test_a_script_runs_in_an_async_graph() -> None:
    """The same node serves both."""
    app, guard = loop({"review": "no"}, {"review": "LGTM"})
    await app.ainvoke({}, config())
    assert_handoffs(guard, app.get_state(config()), {"reviewer->fixer": 1, "fixer->reviewer": 1})


def test_a_script_may_raise_compute_and_command() -> None:
    """Exceptions are raised, functions are asked with the state, anything else is returned."""
    error = RuntimeError("down")
    node = ScriptedNode(error, lambda state: {"review": state["patch"] * 2}, Command(goto=END))
    with pytest.raises(RuntimeError, match="down"):
        node({})
    assert {"review": "abab"} == node({"patch": "ab"})
    assert Command(goto=END) == node({})
    assert {None: 3} == node.visits


def test_nothing_to_follow_is_refused() -> None:
    """With the parameter's name."""
    with pytest.raises(ValueError, match="script must hold"):
        ScriptedNode()
    with pytest.raises(ValueError, match="lines must hold"):
        ScriptedChatModel.of()


def test_a_scripted_model_takes_tools_and_says_what_it_used() -> None:
    """Lines are texts or messages; the last one is said for ever, each time as a message of its own."""
    call = {"name": "fix", "args": {}, "id": "1", "type": "tool_call"}
    line = AIMessage("I fix it.", tool_calls=[call])
    model = ScriptedChatModel.of("Look.", line, "Done.", tokens=7).bind_tools([])
    said = [model.invoke("?") for _ in range(4)]
    assert ["Look.", "I fix it.", "Done.", "Done."] == [one.content for one in said]
    assert [call] == said[1].tool_calls
    assert [7] * 4 == [one.usage_metadata["total_tokens"] for one in said if one.usage_metadata]
    assert line.usage_metadata is None, "the script itself stays as it was"
    assert None is ScriptedChatModel.of("Look.").invoke("?").usage_metadata


@pytest.mark.parametrize("saver", [False, True])
def test_an_escalation_is_found_and_described(saver: bool) -> None:
    """In what `invoke` returns, in a snapshot, and in its values."""
    app, guard = loop({"review": "no"}, cap=2, saver=saver)
    result = app.invoke({}, config())
    states = [result, *([app.get_state(config()), app.get_state(config()).values] if saver else [])]
    for state in states:
        record = assert_escalated(state, "MaxCycles", loop="reviewer-fixer")
        assert "reviewer->fixer" == record["edge"]
        with pytest.raises(AssertionError, match="TokenBudget of other, found reviewer-fixer: MaxCycles: cycle 3"):
            assert_escalated(state, "TokenBudget", loop="other")
        with pytest.raises(AssertionError, match="no trip, but reviewer-fixer stopped reviewer->fixer: cycle 3"):
            assert_not_tripped(state)
    if saver:
        with pytest.raises(AssertionError, match=r"'reviewer->fixer': 9.*found .*'reviewer->fixer': 2"):
            assert_handoffs(guard, states[1], {"reviewer->fixer": 9})


def test_no_escalation_says_so() -> None:
    """A run that ended well has none."""
    app, _ = loop({"review": "LGTM"})
    with pytest.raises(AssertionError, match="expected an escalation, found none"):
        assert_escalated(app.invoke({}, config()))
