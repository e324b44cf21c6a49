"""The gate: counts, judges and routes at a guarded edge, inside the step of the edge's source.

It reads the ledger as it stands with the present task's writes, asks the condition what would be if the edge were
crossed, and writes the event into the same step. A shut edge is replaced by the way to the escalation node; nothing
is added, and nothing else of the routing is touched.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Send
from xxhash import xxh3_128_hexdigest

from langgraph_loopguard.core.conditions import broken
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import EDGE, Ledger, fold
from langgraph_loopguard.core.verdict import Reason
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import HELD, HISTORY, LEDGERS, STEPS
from langgraph_loopguard.graph.guard import LoopGuard, scope_name
from langgraph_loopguard.graph.state import StateView

logger = logging.getLogger("langgraph_loopguard")

ESCALATE = "loopguard_escalate"
"""Name of the node that writes the record of a trip."""

Destination = str | Send
"""Where a router or a `Command` goes."""


def target_of(destination: Destination) -> str:
    """Name of the node that a destination enters."""
    return destination.node if isinstance(destination, Send) else destination


@dataclass(slots=True)
class _Crossing:
    """What one guard makes of the destinations with one scope key."""

    key: Any
    indexes: list[int] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)


def pass_gate(
    guards: Sequence[LoopGuard],
    source: str,
    destinations: Sequence[Destination],
    view: StateView,
    config: RunnableConfig,
) -> frozenset[int]:
    """Count and judge one pass of a node's routing; write the events into the present step.

    Args:
        guards: The guards that watch edges of `source`.
        source: The node that hands over.
        destinations: Where its routing goes.
        view: The state after the node's writes.
        config: The task's config.

    Returns:
        Indexes of the destinations that must not be entered.
    """
    task = _pregel.task_id(config)
    note = _pregel.left(config)
    if note is not None and note["task"] == task:
        # The visit counts once: a second gate of the same task finds that the first has written already.
        found = _pregel.read(config, (LEDGERS, STEPS), fresh=note["counted"])
        visit = {**note["entry"], "visits": {}} if note["counted"] else note["entry"]
        note["counted"] = True
    else:
        found = _pregel.read(config, (LEDGERS, HISTORY, STEPS), fresh=True)
        visit = _own_visit(found.get(HISTORY), task) if task is not None else None
    ledgers: Mapping[str, Any] = found.get(LEDGERS) or {}
    steps_left = found.get(STEPS) if task is not None else None
    now = time.time()
    events: list[dict[str, Any]] = []
    held: dict[str, list[Send]] = {}
    denied: set[int] = set()
    for guard in guards:
        judge = _Judge(guard, source, ledgers.get(guard.name) or {}, visit, task, config, steps_left, now)
        for crossing in _crossings(guard, source, destinations, view, visit):
            event, shut = judge.judge(crossing)
            if event is not None:
                events.append(event)
            if shut:
                denied.update(crossing.indexes)
                sends = [d for i in crossing.indexes if isinstance(d := destinations[i], Send)]
                if event is not None and event.get("trip") and sends:
                    held[event["trip"]["id"]] = sends
    if events:
        _pregel.write(config, [(LEDGERS, events), *([(HELD, held)] if held else [])])
    return frozenset(denied)


def _own_visit(history: Any, task: str) -> Mapping[str, Any] | None:
    if not history or not history[-1]:
        return None
    entry: Mapping[str, Any] = history[-1][-1]
    return entry if entry.get("task") == task else None


def _crossings(
    guard: LoopGuard,
    source: str,
    destinations: Sequence[Destination],
    view: StateView,
    visit: Mapping[str, Any] | None,
) -> Iterable[_Crossing]:
    crossings: dict[str, _Crossing] = {}
    for index, destination in enumerate(destinations):
        target = target_of(destination)
        if target not in guard.nodes or target == source:
            continue
        key, scope = _scope(guard, view, visit, destination.arg if isinstance(destination, Send) else None)
        crossing = crossings.setdefault(scope, _Crossing(key))
        crossing.indexes.append(index)
        if target not in crossing.targets:
            crossing.targets.append(target)
    if not crossings:
        key, scope = _scope(guard, view, visit, None)
        crossings[scope] = _Crossing(key)
    return crossings.values()


class _BrokenKey:
    """Stands for the scope key when the selector raised."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def _scope(guard: LoopGuard, view: StateView, visit: Mapping[str, Any] | None, arg: Any) -> tuple[Any, str]:
    if guard.key is None:
        return None, scope_name(None)
    try:
        if visit is not None and guard.name in visit.get("scopes", {}) and not _names_key(guard, arg):
            key = visit["scopes"][guard.name]
        else:
            key = view.select(guard.key, arg)
        return key, scope_name(key)
    except Exception as error:
        return _BrokenKey(broken(error, f"key={guard.key!r}")), scope_name(None)


def _names_key(guard: LoopGuard, arg: Any) -> bool:
    return isinstance(arg, Mapping) and (callable(guard.key) or guard.key in arg)


@dataclass(frozen=True, slots=True)
class _Judge:
    guard: LoopGuard
    source: str
    ledgers: Mapping[str, Any]
    visit: Mapping[str, Any] | None
    task: str | None
    config: RunnableConfig
    steps_left: int | None
    now: float

    def judge(self, crossing: _Crossing) -> tuple[dict[str, Any] | None, bool]:
        """Return the event to write (None when there is nothing to say) and whether the edge stays shut."""
        guard = self.guard
        scope = scope_name(None if isinstance(crossing.key, _BrokenKey) else crossing.key)
        before = self.ledgers.get(scope)
        visit = (self.visit or {}).get("visits", {}).get(guard.name)
        event: dict[str, Any] = {
            "guard": guard.name,
            "scope": scope,
            "ring": list(guard.ring.nodes),
            "window": guard.ring.window,
            "event": "step",
            "node": self.source,
            "visit": None if visit is None or "error" in visit else visit,
            "cross": crossing.targets,
            "steps_left": self.steps_left,
        }
        if not crossing.targets:
            return (event if visit is not None else None), False
        if before is not None and before.get("tripped") is not None and guard.mode == "enforce":
            return {**event, "cross": []}, True
        reason = self._reason(crossing, before, event, visit)
        if reason is None:
            return event, False
        if guard.mode == "observe":
            logger.info("guard %s would have tripped at %s: %s", guard.name, self.source, reason.message)
            return {**event, "would_trip": {"reason": reason.to_json()}}, False
        trip = self._trip(crossing, scope, before, reason)
        return {**event, "cross": [], "trip": trip}, True

    def _reason(
        self, crossing: _Crossing, before: Mapping[str, Any] | None, event: Mapping[str, Any], visit: Any
    ) -> Reason | None:
        if isinstance(crossing.key, _BrokenKey):
            return crossing.key.reason
        if visit is not None and "error" in visit:
            return Reason.from_json(visit["error"])
        verdict = self.guard.check(Ledger(fold(before, [event], self.guard.ring)))
        if verdict.warned and verdict.reason is not None:
            logger.warning("guard %s at %s: %s", self.guard.name, self.source, verdict.reason.message)
        return verdict.reason if verdict.tripped else None

    def _trip(
        self, crossing: _Crossing, scope: str, before: Mapping[str, Any] | None, reason: Reason
    ) -> dict[str, Any]:
        guard = self.guard
        thread = self.config["configurable"].get("thread_id")
        place = self.task or f"update:{self.config['configurable'].get('checkpoint_id')}:{(before or {}).get('trips')}"
        key = None if isinstance(crossing.key, _BrokenKey) else to_jsonable(crossing.key)
        found = reason.to_json()
        if guard.per == "thread" and reason.kind == "exhausted":
            found["message"] += " (counted over the whole thread, all its inputs together)"
        return {
            "id": xxh3_128_hexdigest(f"{thread}|{place}|{guard.name}|{scope}".encode("utf-8", "replace")),
            "source": self.source,
            "to": crossing.targets,
            "edge": EDGE.join((self.source, crossing.targets[0])),
            "reason": to_jsonable(found),
            "scope_key": key,
            "thread_id": None if thread is None else str(thread),
            "at": self.now,
        }
