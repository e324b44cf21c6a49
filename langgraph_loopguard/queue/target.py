"""The graph that decisions are delivered to: its loops, its threads, and the two ways to run it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from langgraph_loopguard.graph.nodes import guards_of
from langgraph_loopguard.queue.delivery import ReadCheckpoints, ReadState, Request, Run

Configure = RunnableConfig | Callable[[str], RunnableConfig] | None
"""Config for the runs of a delivery, or a function of the thread's id that gives it; the thread's id is added."""

T = TypeVar("T")


class Target:
    """A compiled graph with guards and a checkpointer."""

    def __init__(self, graph: Any, config: Configure = None, context: Any = None) -> None:
        if not isinstance(graph, CompiledStateGraph):
            msg = f"graph must be a compiled StateGraph, got {type(graph).__name__}"
            raise TypeError(msg)
        if not isinstance(graph.checkpointer, BaseCheckpointSaver):
            msg = "graph must be compiled with a checkpointer: what waits is there"
            raise ValueError(msg)
        self.graph = graph
        self.checkpointer: BaseCheckpointSaver[Any] = graph.checkpointer
        self.loops = tuple(dict.fromkeys(_loops(graph)))
        if not self.loops:
            msg = "graph must have a guard (guard_loop): it has none, nor has a subgraph"
            raise ValueError(msg)
        self.pauses = bool(graph.interrupt_before_nodes or graph.interrupt_after_nodes)
        self._config = config
        self._options: dict[str, Any] = {"durability": "sync"} | ({} if context is None else {"context": context})

    def config(self, thread_id: str) -> RunnableConfig:
        """Return the config of a thread's runs."""
        given: Any = self._config(thread_id) if callable(self._config) else self._config
        given = dict(given or {})
        return {**given, "configurable": {**given.get("configurable", {}), "thread_id": thread_id}}  # type: ignore[typeddict-item]

    def threads(self) -> tuple[str, ...]:
        """Return the ids of all threads. A checkpointer has no index of them: all checkpoints are read."""
        found = (one.config["configurable"]["thread_id"] for one in self.checkpointer.list(None))
        return tuple(dict.fromkeys(found))

    async def athreads(self) -> tuple[str, ...]:
        """See `threads`."""
        found = [one.config["configurable"]["thread_id"] async for one in self.checkpointer.alist(None)]
        return tuple(dict.fromkeys(found))

    def drive(self, talk: Generator[Request, Any, T], thread_id: str) -> T:
        """Hold a conversation with the graph; return what it comes to."""
        config = self.config(thread_id)
        answer: Any = None
        while True:
            try:
                request = talk.send(answer)
            except StopIteration as done:
                result: T = done.value
                return result
            match request:
                case ReadState():
                    answer = self.graph.get_state(config)
                case ReadCheckpoints():
                    answer = list(self.checkpointer.list(_whole_thread(thread_id)))
                case Run():
                    try:
                        self.graph.invoke(request.input, config, **self._options)
                        answer = None
                    except Exception as error:  # the user's nodes may fail in any way; it is told, not swallowed
                        answer = error

    async def adrive(self, talk: Generator[Request, Any, T], thread_id: str) -> T:
        """See `drive`."""
        config = self.config(thread_id)
        answer: Any = None
        while True:
            try:
                request = talk.send(answer)
            except StopIteration as done:
                result: T = done.value
                return result
            match request:
                case ReadState():
                    answer = await self.graph.aget_state(config)
                case ReadCheckpoints():
                    answer = [one async for one in self.checkpointer.alist(_whole_thread(thread_id))]
                case Run():
                    try:
                        await self.graph.ainvoke(request.input, config, **self._options)
                        answer = None
                    except Exception as error:  # as above
                        answer = error


def _whole_thread(thread_id: str) -> RunnableConfig:
    """A config that names no namespace: the checkpoints of subgraphs, too."""
    return {"configurable": {"thread_id": thread_id}}


def _loops(graph: Any) -> list[str]:
    found = [guard.name for guard in guards_of(graph.builder)]
    for _, subgraph in graph.get_subgraphs(recurse=True):
        if isinstance(subgraph, CompiledStateGraph):
            found += [guard.name for guard in guards_of(subgraph.builder)]
    return found
