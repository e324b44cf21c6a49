"""Helpers for testing a guarded graph: agents that follow a script, and assertions that say what was there instead.

Nothing here calls a model or reads a clock, so a test of a loop is the same at every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Optional

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from langgraph_loopguard.graph.guard import LoopGuard

__all__ = ["ScriptedChatModel", "ScriptedNode", "assert_escalated", "assert_handoffs", "assert_not_tripped"]


class ScriptedNode:
    """A node that does the next thing of its script at each visit, and the last one for ever.

    Each thread follows the script from its beginning.

    Args:
        *script: What the node returns: an update, a `Command`, an exception that it raises, or a function of the state
            that says so.
        name: Name for `add_node`.

    Attributes:
        visits: Visits so far, by thread id (`None` for runs without one).

    Raises:
        ValueError: The script is empty.

    Example:
        ```python
        from langgraph_loopguard.testing import ScriptedNode

        reviewer = ScriptedNode({"review": "Handle None."}, {"review": "LGTM"}, name="reviewer")
        assert [reviewer({}) for _ in range(3)] == [{"review": "Handle None."}, {"review": "LGTM"}, {"review": "LGTM"}]
        ```
    """

    def __init__(self, *script: Any, name: str = "scripted") -> None:
        if not script:
            msg = "script must hold at least one thing to do, got nothing"
            raise ValueError(msg)
        self.script = script
        self.__name__ = name
        self.visits: dict[str | None, int] = {}

    def __call__(self, state: Any, config: Optional[RunnableConfig] = None) -> Any:  # noqa: UP045 - LangGraph reads it
        """Do the next thing of the script."""
        thread = ((config or {}).get("configurable") or {}).get("thread_id")
        number = self.visits[thread] = self.visits.get(thread, 0) + 1
        step = self.script[min(number, len(self.script)) - 1]
        if isinstance(step, BaseException):
            raise step
        return step(state) if callable(step) else step


class ScriptedChatModel(GenericFakeChatModel):
    """A chat model that says its lines in order and takes any tools: LangChain's own fake, fit for agents.

    Args:
        messages: An iterator of `AIMessage`s or texts. See `ScriptedChatModel.of`.

    Example:
        ```python
        from langgraph_loopguard.testing import ScriptedChatModel

        model = ScriptedChatModel.of("Please handle None.", "LGTM", tokens=120)
        assert model.invoke("Review this.").content == "Please handle None."
        assert model.invoke("And now?").usage_metadata["total_tokens"] == 120
        ```
    """

    @classmethod
    def of(cls, *lines: str | AIMessage, tokens: int = 0) -> ScriptedChatModel:
        """Return a model that says these lines, and the last one for ever.

        Args:
            *lines: What it says, one per call.
            tokens: Tokens that each call is said to use; 0 says nothing.

        Raises:
            ValueError: There is no line.
        """
        if not lines:
            msg = "lines must hold at least one line to say, got nothing"
            raise ValueError(msg)
        return cls(messages=_said(lines, tokens))

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ScriptedChatModel:
        """Return the model itself: its lines say which tools are called."""
        return self


def _said(lines: Iterable[str | AIMessage], tokens: int) -> Iterator[AIMessage]:
    *first, last = lines
    for line in chain(first, repeat(last)):
        message = AIMessage(line) if isinstance(line, str) else line.model_copy()
        if tokens:
            message.usage_metadata = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
        yield message


def assert_escalated(state: Any, condition: str | None = None, *, loop: str | None = None) -> dict[str, Any]:
    """Assert that a loop was stopped and that its record waits or stands in the state; return the record.

    Args:
        state: What `graph.get_state(config)` returns, its values, or what `invoke` returned.
        condition: Name of the condition that must have tripped, e.g. `"MaxCycles"`; `None`: any.
        loop: Name of the guard that must have tripped; `None`: any.

    Raises:
        AssertionError: No such record, with those that there are.
    """
    found = _records(state)
    fitting = [
        record
        for record in found
        if (condition is None or record["reason"]["condition"] == condition)
        and (loop is None or record["loop"] == loop)
    ]
    if fitting:
        return fitting[-1]
    wanted = " ".join(["an escalation", *([f"by {condition}"] * bool(condition)), *([f"of {loop}"] * bool(loop))])
    listed = "; ".join(f"{one['loop']}: {one['reason']['condition']}: {one['reason']['message']}" for one in found)
    msg = f"expected {wanted}, found {listed or 'none'}"
    raise AssertionError(msg)


def assert_not_tripped(state: Any) -> None:
    """Assert that no guard has stopped anything.

    Args:
        state: See `assert_escalated`.

    Raises:
        AssertionError: A guard has, with its reason.
    """
    if found := _records(state):
        msg = f"expected no trip, but {found[-1]['loop']} stopped {found[-1]['edge']}: {found[-1]['reason']['message']}"
        raise AssertionError(msg)


def assert_handoffs(guard: LoopGuard, state: Any, expected: Mapping[str, int], *, key: Any = None) -> None:
    """Assert how often each guarded edge was crossed.

    Args:
        guard: The guard.
        state: What `graph.get_state(config)` returns, or its values.
        expected: Crossings by `"source->target"`; edges that are not named must not have been crossed.
        key: The scope key, for guards that have one.

    Raises:
        AssertionError: The counts are others.
    """
    found = guard.ledger(state, key).handoffs
    if found != dict(expected):
        msg = f"expected the handoffs {dict(expected)}, found {found}"
        raise AssertionError(msg)


def _records(state: Any) -> list[dict[str, Any]]:
    values = state if isinstance(state, Mapping) else state.values
    found: dict[str, dict[str, Any]] = dict(values.get("escalations") or {})
    if latest := values.get("escalation"):
        found[latest["id"]] = latest
    return list(found.values())
