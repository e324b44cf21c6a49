"""What a process of its own does with a queue, in the tests that race and kill."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from langgraph_loopguard.queue import AlreadyDecidedError, EscalationQueue, Filter
from tests.graph.pairs import pair, thread
from tests.integration.loop_worker import saver


def note(path: Path, line: str) -> None:
    """Append a line, whole, whoever else does."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def graph(checkpointer: Any, queue: EscalationQueue | None = None) -> Any:
    """A loop that adds a line to its state for each fix: what is committed is counted there."""

    def fix(n: int) -> dict[str, Any]:
        time.sleep(0.004)
        return {"patch": f"line {n}\n", "log": [f"fix {n}"]}

    return pair(fix=fix, saver=checkpointer, max_cycles=1, artifact="patch", queue=queue)[0]


def decide_all(url: str, ids: list[str], name: str, barrier: Any, results: Path) -> None:
    """Decide every row, at the same time as the others; note who won, and who the losers were told."""
    queue = EscalationQueue(url)
    queue.health()
    for one in ids:
        barrier.wait()
        try:
            queue.decide(one, {"action": "accept", "fix": 1}, by=name)
        except AlreadyDecidedError as error:
            note(results, f"{one} lost {error.row.owner}")
        else:
            note(results, f"{one} won {name}")
    queue.close()


def escalate(url: str, threads: str, names: list[str]) -> None:
    """Run threads until they wait for a person."""
    queue = EscalationQueue(url)
    with saver(threads) as checkpointer:
        app = graph(checkpointer, queue)
        for name in names:
            app.invoke({}, thread(name), durability="sync")
    queue.close()


def deliver(url: str, threads: str) -> None:
    """Deliver until nothing is left to deliver."""
    queue = EscalationQueue(url)
    with saver(threads) as checkpointer:
        app = graph(checkpointer)
        while queue.list(Filter(state="decided"), limit=1).rows:
            queue.deliver(app, limit=3, lease=4)
            time.sleep(0.02)
    queue.close()


def decide_open(url: str, name: str, expected: int) -> None:
    """Decide whatever is open, as one of several, until so many have been."""
    queue = EscalationQueue(url)
    while len(queue.list(Filter(state=("decided", "applied")), limit=1000).rows) < expected:
        for row in queue.list().rows:
            try:
                queue.decide(row.id, {"action": "accept", "fix": 1}, by=name)
            except AlreadyDecidedError:
                continue
    queue.close()
