"""Streams of handoffs as they were reported from real agents, made anew in a small form, and how to play them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langgraph_loopguard import LoopGuard, Verdict

Event = tuple[str, Any]
"""A node and what it wrote."""


def play(guard: LoopGuard, events: Iterable[Event], ledger: Any = None) -> tuple[Any, list[Verdict]]:
    """Observe all events; the ledger goes through JSON text between any two of them, as it does in a database."""
    verdicts = []
    for node, payload in events:
        ledger, verdict = guard.observe(json.loads(json.dumps(ledger)), node, payload)
        verdicts.append(verdict)
    return ledger, verdicts


def trip_of(guard: LoopGuard, events: Iterable[Event]) -> tuple[int, str, str] | None:
    """At which event the guard trips, for which condition and of what kind; `None` when it never does."""
    _, verdicts = play(guard, events)
    for number, verdict in enumerate(verdicts, 1):
        if verdict.tripped and verdict.reason is not None:
            return number, verdict.reason.condition, verdict.reason.kind
    return None


def call(name: str, result: str | None = None, **args: Any) -> dict[str, Any]:
    """A tool call as a payload, with its result where the stream has one."""
    return {"name": name, "args": args} | ({} if result is None else {"result": result})
