"""A person's part in a loop, in a process that may be killed at any moment: begin, answer what waits, go on.

The first question is answered with two more cycles, the second one is accepted. The same answer is sent again whenever
its question still waits, as anybody would do who does not know whether it has arrived.
"""

from __future__ import annotations

import os
import time
from typing import Any

from langgraph.types import Command

from tests.graph.pairs import pair
from tests.integration.loop_worker import saver

CAP, EXTRA = 2, 2


def build(checkpointer: Any, log: str | None = None) -> tuple[Any, Any]:
    """Compile the loop; return the graph and its guard."""

    def note(line: str) -> None:
        if log is not None:
            descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(descriptor, f"{line}\n".encode())
            os.close(descriptor)
            time.sleep(0.003)

    def review(n: int) -> dict[str, Any]:
        note(f"review {n}")
        return {"review": f"remark {n}"}

    def fix(n: int) -> dict[str, Any]:
        note(f"fix {n}")
        return {"patch": f"line {n}\n", "log": [f"fix {n}"]}

    return pair(review, fix, saver=checkpointer, max_cycles=CAP, artifact="patch")


def work(url: str, thread: str, log: str, durability: Any) -> None:
    """Do what there is to do, until both questions are decided."""
    with saver(url) as checkpointer:
        graph, _ = build(checkpointer, log)
        config = {"configurable": {"thread_id": thread}}
        while True:
            state = graph.get_state(config)
            records = list(state.values.get("escalations", {}).values()) if state.values else []
            if len(records) == 2 and records[1]["decision"]:
                return
            given: Any = None if state.created_at else {"n": 0}
            if state.interrupts:
                record = state.interrupts[0].value["escalation"]
                first = record["cycles"] == CAP
                given = {"action": "retry", "extra_cycles": EXTRA} if first else {"action": "accept", "fix": 1}
                given = Command(resume={**given, "escalation_id": record["id"]})
            graph.invoke(given, config, durability=durability)
