"""Notes the model calls that a node makes, with their tokens, without a word in the node's code."""

from __future__ import annotations

from collections.abc import Iterable
from contextvars import ContextVar, Token
from threading import Lock
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tracers.context import register_configure_hook

from langgraph_loopguard.core.cost import Call


class UsageCounter(BaseCallbackHandler):
    """Notes the `usage_metadata` of every chat model call that is made while it is active.

    Attributes:
        calls: The calls so far.
    """

    run_inline = True

    def __init__(self, outer: UsageCounter | None = None) -> None:
        self.calls: list[Call] = []
        self._outer = outer
        self._lock = Lock()

    @property
    def tokens(self) -> int:
        """Input and output tokens so far."""
        return sum(call.tokens for call in self.calls)

    def add(self, calls: list[Call]) -> None:
        """Add calls, here and in the counter around this one."""
        with self._lock:
            self.calls += calls
        if self._outer is not None:
            self._outer.add(calls)

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        """Read the usage of one finished call."""
        for generations in response.generations:
            for generation in generations:
                if isinstance(generation, ChatGeneration):
                    self.add(calls_of([generation.message]))


_counter: ContextVar[UsageCounter | None] = ContextVar("langgraph_loopguard_usage", default=None)
register_configure_hook(_counter, inheritable=True)


def start_counting() -> tuple[UsageCounter, Token[UsageCounter | None]]:
    """Count the tokens of all model calls made in this context from here on, those of nested tasks and threads too."""
    counter = UsageCounter(_counter.get())
    return counter, _counter.set(counter)


def stop_counting(token: Token[UsageCounter | None]) -> None:
    """End what `start_counting` began."""
    _counter.reset(token)


def calls_of(messages: Iterable[Any]) -> list[Call]:
    """Return the model calls that messages tell of by their `usage_metadata`."""
    found = []
    for message in messages:
        usage = message.usage_metadata if isinstance(message, AIMessage) else None
        if usage:
            about = message.response_metadata
            model, provider = about.get("model_name") or about.get("model"), about.get("model_provider")
            found.append(Call(usage, model, provider))
    return found
