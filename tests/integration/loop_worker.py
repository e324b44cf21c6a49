"""A guarded loop that a test may kill at any moment: `python loop_worker.py SAVER-URL THREAD LOG`.

Each visit appends a line to LOG before it returns, so that the test knows what ran, committed or not. The process ends
with status 0 when the run has come to its end (an escalation).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop

CAP = 5


class State(TypedDict, total=False):
    """What the two nodes pass on."""

    review: str
    patch: str
    round: int


@contextmanager
def saver(url: str) -> Iterator[Any]:
    """A checkpointer by URL: that of a PostgreSQL database with its tables, or the path of an SQLite file."""
    if url.startswith("postgresql:"):
        from langgraph.checkpoint.postgres import PostgresSaver

        with PostgresSaver.from_conn_string(url) as opened:
            yield opened
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with SqliteSaver.from_conn_string(url) as opened:
            yield opened


def build(checkpointer: Any, log: str | None = None) -> tuple[Any, Any]:
    """Compile the loop; return the graph and its guard."""

    def visit(name: str) -> None:
        if log is not None:
            descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, f"{name}\n".encode())
            os.close(descriptor)
            time.sleep(0.004)

    def reviewer(state: State) -> State:
        visit("reviewer")
        return {"review": f"remark {state.get('round', 0)}"}

    def fixer(state: State) -> State:
        visit("fixer")
        number = state.get("round", 0) + 1
        return {"patch": f"fix {number}\n", "round": number}

    builder = StateGraph(State)
    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", fixer)
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda state: "fixer", ["fixer"])
    builder.add_edge("fixer", "reviewer")
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=CAP, artifact="patch")
    return builder.compile(checkpointer=checkpointer), guard


def main() -> None:
    """Begin the thread, or go on where it was."""
    url, thread, log = sys.argv[1:4]
    with saver(url) as checkpointer:
        graph, _ = build(checkpointer, log)
        config = {"configurable": {"thread_id": thread}}
        begun = graph.get_state(config).created_at is not None
        graph.invoke(None if begun else {"round": 0}, config, durability="sync")


if __name__ == "__main__":
    main()
