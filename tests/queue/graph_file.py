"""Graphs that a test names on the command line: `graph_file.py:NAME`. The database is told by the environment."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph

from langgraph_loopguard import guard_loop
from tests.graph.pairs import State, pair

DATABASE = os.environ.get("LOOPGUARD_TEST_THREADS", "")


@contextmanager
def opened() -> Iterator[Any]:
    """A graph with a checkpointer that is opened and closed."""
    with SqliteSaver.from_conn_string(DATABASE) as saver:
        yield pair(saver=saver, max_cycles=1, artifact="patch")[0]


def awaited_builder() -> StateGraph[Any, Any, Any, Any]:
    """A loop whose nodes only run on an event loop."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)

    async def reviewer(state: Any) -> dict[str, Any]:
        return {"n": (state.get("n") or 0) + 1}

    async def fixer(state: Any) -> dict[str, Any]:
        return {"patch": f"line {state['n']}\n"}

    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", fixer)
    for source, target in ((START, "reviewer"), ("reviewer", "fixer"), ("fixer", "reviewer")):
        builder.add_edge(source, target)
    guard_loop(builder, "reviewer", "fixer", max_cycles=1, artifact="patch")
    return builder


@asynccontextmanager
async def aopened() -> AsyncIterator[Any]:
    """The same on an event loop."""
    async with AsyncSqliteSaver.from_conn_string(DATABASE) as saver:
        yield awaited_builder().compile(checkpointer=saver)


async def made() -> Any:
    """A graph that is made asynchronously."""
    return pair()[0]


bare = pair(saver=None)[0]
