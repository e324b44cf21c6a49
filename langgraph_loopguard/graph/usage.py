"""Counts the tokens that a node's model calls use, without a word in the node's code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextvars import ContextVar, Token
from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook


class UsageCounter(BaseCallbackHandler):
    """Sums the `usage_metadata` of every chat model call that is made while it is active.

    Attributes:
        tokens: Input and output tokens so far.
    """

    run_inline = True

    def __init__(self, outer: UsageCounter | None = None) -> None:
        self.tokens = 0
        self._outer = outer
        self._lock = Lock()

    def add(self, tokens: int) -> None:
        """Add tokens, here and in the counter around this one."""
        with self._lock:
            self.tokens += tokens
        if self._outer is not None:
            self._outer.add(tokens)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Read the usage of one finished call."""
        for generations in response.generations:
            for generation in generations:
                if isinstance(generation, ChatGeneration):
                    self.add(message_tokens([generation.message]))


_counter: ContextVar[UsageCounter | None] = ContextVar("langgraph_loopguard_usage", default=None)
register_configure_hook(_counter, inheritable=True)


def start_counting() -> tuple[UsageCounter, Token[UsageCounter | None]]:
    """Count the tokens of all model calls made in this context from here on, those of nested tasks and threads too."""
    counter = UsageCounter(_counter.get())
    return counter, _counter.set(counter)


def stop_counting(token: Token[UsageCounter | None]) -> None:
    """End what `start_counting` began."""
    _counter.reset(token)


def message_tokens(messages: Iterable[Any]) -> int:
    """Sum the tokens that messages carry as `usage_metadata`."""
    total = 0
    for message in messages:
        usage: Mapping[str, Any] | None = message.usage_metadata if isinstance(message, AIMessage) else None
        if usage:
            total += usage.get("total_tokens") or ((usage.get("input_tokens") or 0) + (usage.get("output_tokens") or 0))
    return total
