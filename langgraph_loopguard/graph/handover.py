"""Hands an escalation to a queue when its run is about to wait for a person.

Not before: the record is in the checkpoint by then, so that a queue that is down costs a warning and not the run
(`reconcile` brings the record in later). Not when the run is resumed: the asking node runs again from its start, but
`interrupt()` finds the answer and raises nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.errors import GraphInterrupt

from langgraph_loopguard.graph.escalation import AskNode

logger = logging.getLogger("langgraph_loopguard")


@runtime_checkable
class EscalationSink(Protocol):
    """Takes escalations: an `EscalationQueue`, or anything with these two methods."""

    def put(self, record: Mapping[str, Any], /) -> Any:
        """Take a record; the same one may come again."""

    async def aput(self, record: Mapping[str, Any], /) -> Any:
        """See `put`; for graphs that run on an event loop."""


class QueuedAskNode(AskNode):
    """Asks a person, and puts the question into the guard's queue while nobody has answered."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """See `AskNode.invoke`."""
        try:
            return super().invoke(input, config, **kwargs)
        except GraphInterrupt as asking:
            for sink, record in self._unanswered(asking):
                try:
                    sink.put(record)
                except Exception as error:  # whatever befalls the queue, the run waits with its record
                    _warn(record, error)
            raise

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """See `AskNode.ainvoke`."""
        try:
            # Before Python 3.11 a task has no context of its own, and `interrupt` would find no config.
            with set_config_context(config or {}) as context:
                return context.run(AskNode.invoke, self, input, config, **kwargs)
        except GraphInterrupt as asking:
            for sink, record in self._unanswered(asking):
                try:
                    await sink.aput(record)
                except Exception as error:  # as above
                    _warn(record, error)
            raise

    def _unanswered(self, asking: GraphInterrupt) -> Iterator[tuple[EscalationSink, Mapping[str, Any]]]:
        for interrupt in asking.args[0]:
            record = interrupt.value["escalation"]
            guard = self.guard(record["loop"])
            if guard is not None and guard.queue is not None:
                yield guard.queue, record


def _warn(record: Mapping[str, Any], error: Exception) -> None:
    logger.warning(
        "escalation %s of thread %s is not in the queue, the run waits all the same; reconcile brings it in: %s: %s",
        record["id"],
        record["thread_id"],
        type(error).__name__,
        error,
    )
