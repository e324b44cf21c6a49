"""Runs a guarded pair in a process of its own, and prints what the guard remembers.

Usage: `python -m tests.graph.law_worker SQLITE_FILE begin|answer|retry`.
"""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from langgraph_loopguard import UnchangedArtifact, guard_loop
from tests.graph.pairs import builder_of, thread


class Warned(logging.Handler):
    """Keeps what LangGraph's serializer says."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def main(file: str, what: str) -> None:
    warned = Warned()
    logging.getLogger("langgraph.checkpoint").addHandler(warned)
    builder = builder_of(fix=lambda n: {"patch": f"x{n % 3}", "open": {"b", "a", f"c{n}"}})
    guard = guard_loop(
        builder,
        "reviewer",
        "fixer",
        max_cycles=3,
        artifact="patch",
        measure="open",
        stop_when=UnchangedArtifact(9),
        key="pr",
    )
    with SqliteSaver.from_conn_string(file) as saver:
        app = builder.compile(checkpointer=saver)
        start: dict[str, Any] = {"pr": {"z": 1, "a": "ü"}}
        answers = {"answer": {"action": "accept"}, "retry": {"action": "retry", "extra_cycles": 2}}
        result = app.invoke(start if what == "begin" else Command(resume=answers[what]), thread())
        values = app.get_state(thread()).values
    (ledger,) = guard.report(values).values()
    out = {
        "ledger": {key: value for key, value in ledger.data.items() if key != "seconds"},
        "records": list(values["escalations"].values()),
        "waiting": "__interrupt__" in result,
        "warned": warned.said,
    }
    out["ledger"]["tripped"] = {**(ledger.data.get("tripped") or {}), "at": None}
    print(json.dumps(out))  # noqa: T201 - the test reads it


if __name__ == "__main__":
    main(*sys.argv[1:])
