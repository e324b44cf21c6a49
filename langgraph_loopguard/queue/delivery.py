"""From "decided" to "applied": what the graph says about a decision, and what to do about it.

A decision is delivered by resuming its own interrupt. Whether it has arrived is asked of the graph, before and after:
a deliverer that was killed in between is found out by the next one, which goes on where the run was left and does not
resume again. Sync and async deliverers are two drivers of the same `conversation`.
"""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.errors import is_invalid_resume
from langgraph.types import Command, Interrupt, StateSnapshot

from langgraph_loopguard.graph.channels import ESCALATIONS
from langgraph_loopguard.people.view import decision_sentence
from langgraph_loopguard.queue.rows import QueuedEscalation

logger = logging.getLogger("langgraph_loopguard")

Outcome = Literal["applied", "superseded", "refused", "waiting", "failed"]
"""How one delivery ended.

- `applied`: the decision stands in the graph.
- `superseded`: it never will: the question is gone.
- `refused`: the graph says that it does not fit; the question is still open, and so is the escalation again.
- `waiting`: the graph does not ask yet, or does not know the thread; it is tried again.
- `failed`: the run ended before the graph took it; it is tried again.
"""

GRACE = timedelta(seconds=60)
"""How young an escalation may be whose question is not found yet: it is queued a moment before its run waits."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """What became of one decision."""

    id: str
    thread_id: str
    outcome: Outcome
    detail: str | None = None
    """Why it is not applied; or what the run did after it was."""


@dataclass(frozen=True, slots=True)
class ReadState:
    """Asks for the thread's latest state."""


@dataclass(frozen=True, slots=True)
class ReadCheckpoints:
    """Asks for all checkpoints of the thread, of subgraphs too."""


@dataclass(frozen=True, slots=True)
class Run:
    """Asks to run the graph; the answer is the exception that it ended with, or `None`."""

    input: Any


Request = ReadState | ReadCheckpoints | Run
Talk = Generator[Request, Any, "tuple[Delivery, ...]"]


@dataclass(frozen=True, slots=True)
class Standing:
    """What a graph says about one escalation."""

    kind: Literal["asked", "ours", "other", "gone", "not_yet", "unknown"]
    interrupt_id: str = ""
    decision: Mapping[str, Any] | None = None
    """The decision that stands there, when it is another one."""


Compared = tuple[tuple[dict[str, Any], ...], dict[str, Standing]]
Comparison = Generator[Request, Any, Compared]


def conversation(rows: Sequence[QueuedEscalation], *, now: datetime, pauses: bool) -> Talk:
    """Deliver the decisions of one thread, asking for what is needed.

    Args:
        rows: Its decided rows.
        now: The queue's time.
        pauses: Whether the graph has breakpoints of its own: then a run that stands still may be meant to.
    """
    state: StateSnapshot = yield ReadState()
    before = yield from _look(state, rows, now)
    asked = {before[row.id].interrupt_id: dict(row.decision or {}) for row in rows if before[row.id].kind == "asked"}
    if any(row.tries for row in rows):  # one by one, so that one that is refused does not keep the others back
        asked = dict(tuple(asked.items())[:1])
    alone = len(asked) == 1
    failure: Exception | None = None
    if asked:
        failure = yield Run(Command(resume=asked))
    elif any(found.kind == "ours" for found in before.values()) and state.next and not state.interrupts and not pauses:
        # A deliverer was killed after its decision had arrived: the run that it has begun goes on.
        failure = yield Run(None)
    else:
        return tuple(_delivery(row, before[row.id], None, alone=True) for row in rows)
    state = yield ReadState()
    after = yield from _look(state, rows, now)
    tried = [row for row in rows if before[row.id].kind != "asked" or before[row.id].interrupt_id in asked]
    return tuple(_delivery(row, after[row.id], failure, alone=alone) for row in tried)


def comparison(rows: Sequence[QueuedEscalation], now: datetime) -> Comparison:
    """Compare a thread's open rows with its graph: return the records that ask, and the standing of each row."""
    state: StateSnapshot = yield ReadState()
    asking = tuple(record for _, record in asked_in(state))
    return asking, (yield from _look(state, rows, now))


def asked_in(state: StateSnapshot) -> Iterable[tuple[Interrupt, dict[str, Any]]]:
    """Yield the interrupts of escalations that wait, subgraphs' too, with their records."""
    for interrupt in state.interrupts:
        value = interrupt.value
        record = value.get("escalation") if isinstance(value, Mapping) else None
        if isinstance(record, Mapping) and isinstance(record.get("id"), str):
            yield interrupt, dict(record)


def gone_because(standing: Standing) -> str:
    """Return why an escalation is superseded."""
    if standing.kind == "other":
        return f"it was decided past the queue: {decision_sentence(standing.decision)}"
    return "its interrupt is gone: the thread went on, or was forked, without it"


def _look(
    state: StateSnapshot, rows: Sequence[QueuedEscalation], now: datetime
) -> Generator[Request, Any, dict[str, Standing]]:
    found: dict[str, Standing] = {}
    waiting = {record["id"]: interrupt for interrupt, record in asked_in(state)}
    checkpoints: Sequence[CheckpointTuple] | None = None
    for row in rows:
        if row.id in waiting:
            found[row.id] = Standing("asked", waiting[row.id].id)
            continue
        if state.created_at is None:
            found[row.id] = Standing("unknown")
            continue
        record = _record(state.values, row.id)
        decision = (record or {}).get("decision")
        if decision is None:
            # A subgraph's records are its own, and an answer beside open questions waits in the checkpoint's writes.
            if checkpoints is None:
                checkpoints = yield ReadCheckpoints()
            decision = _decision_in(checkpoints, row)
        if decision is not None:
            found[row.id] = Standing("ours") if _same(row, decision) else Standing("other", decision=decision)
        elif _still_comes(state, row, record, now):
            found[row.id] = Standing("not_yet")
        else:
            found[row.id] = Standing("gone")
    return found


def _still_comes(state: StateSnapshot, row: QueuedEscalation, record: Mapping[str, Any] | None, now: datetime) -> bool:
    """Whether the question may be on its way: its run has not come to wait, or has only just queued it."""
    runs = bool(state.next) and not state.interrupts
    asks = any(name.startswith("loopguard_") for name in state.next)
    return (runs and (record is None or asks)) or now - row.created_at < GRACE


def _record(values: Any, escalation_id: str) -> Mapping[str, Any] | None:
    records = values.get(ESCALATIONS) if isinstance(values, Mapping) else None
    found = records.get(escalation_id) if isinstance(records, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _decision_in(checkpoints: Iterable[CheckpointTuple], row: QueuedEscalation) -> Mapping[str, Any] | None:
    """Return the decision on an escalation that stands anywhere in a thread: ours, if it does."""
    other: Mapping[str, Any] | None = None
    for one in checkpoints:
        written = [value for _, channel, value in one.pending_writes or () if channel == ESCALATIONS]
        for records in (one.checkpoint["channel_values"].get(ESCALATIONS), *written):
            decision = (_record({ESCALATIONS: records}, row.id) or {}).get("decision")
            if decision is not None and _same(row, decision):
                return dict(decision)
            other = other or decision
    return other


def _same(row: QueuedEscalation, decision: Mapping[str, Any]) -> bool:
    ours = row.decision or {}
    return all(ours.get(key) == decision.get(key) for key in ("action", "decided_at", "decided_by"))


def _delivery(row: QueuedEscalation, standing: Standing, failure: Exception | None, *, alone: bool) -> Delivery:
    thread = str(row.thread_id)
    why = None if failure is None else f"{type(failure).__name__}: {failure}"
    match standing.kind:
        case "ours":
            return Delivery(row.id, thread, "applied", None if why is None else f"the run failed after it: {why}")
        case "other" | "gone":
            return Delivery(row.id, thread, "superseded", gone_because(standing))
        case "not_yet":
            return Delivery(row.id, thread, "waiting", why or "its run does not ask yet")
        case "unknown":
            return Delivery(row.id, thread, "waiting", "the graph's checkpointer does not know the thread")
        case _ if failure is not None and alone and is_invalid_resume(failure):
            return Delivery(row.id, thread, "refused", why)
        case _:
            return Delivery(row.id, thread, "failed", why or "the run ended, and its question is still open")
