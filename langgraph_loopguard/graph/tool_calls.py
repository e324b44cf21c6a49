"""Answers the tool calls that a shut edge left open: a chat model refuses a thread with open ones.

Providers want the answers right behind the message that made the calls, so where other messages have come since, the
list is written anew.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.types import Overwrite

from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.state import Shape

MESSAGES = "messages"

REDUCED = (BinaryOperatorAggregate, DeltaChannel)
"""Channels that add a write to what they hold."""


def answer_tool_calls(shape: Shape, config: RunnableConfig, text: str, *, fresh: bool = False) -> dict[str, Any]:
    """Return the update that answers every open tool call; empty when there is none.

    Args:
        shape: What is known of the state.
        config: The present task's config.
        text: Why the calls were not run, or what a person says to the agent instead.
        fresh: Look at the messages as they are after the present task's own writes.
    """
    if not isinstance(shape.channels.get(MESSAGES), REDUCED):
        return {}
    messages = _pregel.read(config, (MESSAGES,), fresh=fresh).get(MESSAGES)
    if not isinstance(messages, list):
        return {}
    whole, added = _answered(messages, f"Not run: {text}.")
    if not added:
        return {}
    if whole[-len(added) :] == added:
        return {MESSAGES: added}  # only added to: other tasks of the superstep may write messages too
    return {MESSAGES: Overwrite(whole)}


def _answered(messages: list[Any], text: str) -> tuple[list[Any], list[Any]]:
    """Return the messages with an answer to each call that has none, and the answers alone."""
    known = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    whole: list[Any] = []
    added: list[Any] = []
    waiting: list[ToolMessage] = []
    for message in messages:
        if waiting and not isinstance(message, ToolMessage):
            whole += waiting
            waiting = []
        whole.append(message)
        if isinstance(message, AIMessage):
            waiting = [_answer(call, text) for call in message.tool_calls if call["id"] and call["id"] not in known]
            added += waiting
    return whole + waiting, added


def _answer(call: ToolCall, text: str) -> ToolMessage:
    # The id makes two answers to one call, by two guards in one superstep, into one message.
    name = f"loopguard-{call['id']}"
    return ToolMessage(text, id=name, tool_call_id=call["id"], name=call["name"], status="error")
