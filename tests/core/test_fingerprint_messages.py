"""Messages count by role, text and tool calls; what a transport or a model adds to them does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import add_messages

from langgraph_loopguard import Fingerprinter
from tests.core.payloads import JSON, TEXTS

fingerprint = Fingerprinter().fingerprint
exact = Fingerprinter(scrub=False).fingerprint


def call(name: str = "grep", args: dict[str, Any] | None = None, id: str = "call_1") -> dict[str, Any]:
    return {"name": name, "args": {"p": "foo"} if args is None else args, "id": id, "type": "tool_call"}


def invalid(args: str = "{'p': ", id: str = "call_1", error: str | None = "no JSON") -> dict[str, Any]:
    return {"name": "grep", "args": args, "id": id, "error": error, "type": "invalid_tool_call"}


def image(data: str) -> dict[str, Any]:
    return {"type": "image", "base64": data, "mime_type": "image/png"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (AIMessage("x", id="1"), AIMessage("x", id="2")),
        (AIMessage("x", id="run-1"), AIMessage("x")),
        (
            AIMessage("x", usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
            AIMessage("x", usage_metadata={"input_tokens": 9, "output_tokens": 2, "total_tokens": 11}),
        ),
        (AIMessage("x", response_metadata={"model": "a", "at": 1}), AIMessage("x", response_metadata={"model": "b"})),
        (AIMessage("x", additional_kwargs={"refusal": None}), AIMessage("x")),
        (AIMessage("x", name="reviewer"), AIMessage("x")),
        (AIMessage("x"), AIMessage([{"type": "text", "text": "x"}])),
        (AIMessage("x"), AIMessage([{"type": "text", "text": "x", "id": "msg_1", "index": 0, "annotations": []}])),
        (AIMessage("xy"), AIMessage(["x", {"type": "text", "text": "y"}])),
        (AIMessage("x"), AIMessage([{"type": "thinking", "thinking": "hm", "signature": "s1"}, "x"])),
        (AIMessage("x"), AIMessage([{"type": "redacted_thinking", "data": "abc"}, "x"])),
        (AIMessage("x"), AIMessage([{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "x"}])),
        (AIMessage("x"), AIMessage([{"type": "reasoning_content", "reasoning_content": {"text": "hm"}}, "x"])),
        (AIMessage("", tool_calls=[call(id="call_1")]), AIMessage("", tool_calls=[call(id="call_2")])),
        (
            AIMessage("", tool_calls=[call(args={"a": 1, "b": [2]})]),
            AIMessage("", tool_calls=[call(args={"b": (2,), "a": 1.0})]),
        ),
        (
            AIMessage("", tool_calls=[call()]),
            AIMessage([{"type": "tool_use", "name": "grep", "input": {"p": "foo"}, "id": "t"}], tool_calls=[call()]),
        ),
        (
            AIMessage("", invalid_tool_calls=[invalid(id="call_1", error="a")]),
            AIMessage("", invalid_tool_calls=[invalid(id="call_2", error="b")]),
        ),
        (ToolMessage("x", tool_call_id="call_1"), ToolMessage("x", tool_call_id="call_2")),
        (ToolMessage("x", tool_call_id="1", artifact=[1]), ToolMessage("x", tool_call_id="1", artifact=[2])),
        (AIMessage("x"), AIMessageChunk("x")),
        (AIMessage("x"), AIMessageChunk("x", chunk_position="last")),
        (HumanMessage([image("aa")]), HumanMessage([{**image("aa"), "id": "b1", "index": 3}])),
        (AIMessage("caf\u00e9\r\n"), AIMessage("cafe\u0301")),
        (AIMessage("at 2026-01-01T00:00:00Z"), AIMessage("at 2026-02-02T00:00:00Z")),
    ],
)
def test_what_does_not_count(one: BaseMessage, other: BaseMessage) -> None:
    """Ids, usage, metadata, names, thoughts, and the form in which the same content comes."""
    assert fingerprint(one) == fingerprint(other)
    assert fingerprint({"messages": [one]}) == fingerprint({"messages": (other,)})


DIFFERENT: list[Any] = [
    AIMessage("x"),
    AIMessage("y"),
    AIMessage(""),
    HumanMessage("x"),
    SystemMessage("x"),
    ToolMessage("x", tool_call_id="1"),
    ChatMessage("x", role="reviewer"),
    ChatMessage("x", role="fixer"),
    AIMessage("x", tool_calls=[call()]),
    AIMessage("", tool_calls=[call()]),
    AIMessage("", tool_calls=[call("sed")]),
    AIMessage("", tool_calls=[call(args={"p": "bar"})]),
    AIMessage("", tool_calls=[call(args={"p": 1})]),
    AIMessage("", tool_calls=[call(args={"p": "1"})]),
    AIMessage("", tool_calls=[call(), call()]),
    AIMessage("", tool_calls=[call(), call("sed")]),
    AIMessage("", tool_calls=[call("sed"), call()]),
    AIMessage("", invalid_tool_calls=[invalid()]),
    AIMessage("", invalid_tool_calls=[invalid("{'p': 2")]),
    HumanMessage([image("aa")]),
    HumanMessage([image("bb")]),
    HumanMessage([image("aa"), image("bb")]),
    HumanMessage([image("bb"), image("aa")]),
    HumanMessage(["x", image("aa")]),
    [AIMessage("x"), AIMessage("y")],
    [AIMessage("y"), AIMessage("x")],
    [AIMessage("x")],
    "x",
]


def test_what_counts() -> None:
    """Role, text, calls in their order with their arguments, malformed calls, and blocks that are no text."""
    assert len(DIFFERENT) == len({fingerprint(item) for item in DIFFERENT})


@given(
    TEXTS,
    st.lists(st.tuples(TEXTS, st.dictionaries(TEXTS, JSON, max_size=2)), max_size=2),
    st.sampled_from(["str", "blocks"]),
    st.booleans(),
)
def test_messages_count_alike_after_add_messages_and_a_checkpoint(
    text: str, calls: list[tuple[str, dict[str, Any]]], form: str, chunk: bool
) -> None:
    """The reducer gives each message an id and the saver takes it to bytes: it is the same handoff all the while."""
    kind = AIMessageChunk if chunk else AIMessage
    message = kind(
        text if form == "str" else [{"type": "text", "text": text}],
        tool_calls=[call(name, args, f"call_{number}") for number, (name, args) in enumerate(calls)],
    )
    found = exact([message])
    added = add_messages([], [message])
    serializer = JsonPlusSerializer()
    assert found == exact(added)
    assert found == exact(serializer.loads_typed(serializer.dumps_typed(added)))
