"""The gate: counts, judges and routes at a guarded edge, inside the step of the edge's source.

It reads the ledger as it stands with the present task's writes, asks the condition what would be if the edge were
crossed, and writes the event into the same step. A shut edge is replaced by the way to the escalation node; nothing
is added, and nothing else of the routing is touched.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Send

from langgraph_loopguard.core.conditions import broken
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import EDGE, Ledger, fold
from langgraph_loopguard.core.verdict import Reason
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import HELD, HISTORY, LEDGERS, STEPS, Events, Ledgers
from langgraph_loopguard.graph.guard import NO_KEY, LoopGuard, scope_name
from langgraph_loopguard.graph.state import Selector, StateView

logger = logging.getLogger("langgraph_loopguard")

ESCALATE = "loopguard_escalate"
"""Name of the node that writes the record of a trip."""

Destination = str | Send
"""Where a router or a `Command` goes."""


def held_name(guard: str, scope: str) -> str:
    """Name under which the `Send`s that a shut loop holds back are kept."""
    return f"{guard}:{scope}"


def target_of(destination: Destination) -> str:
    """Name of the node that a destination enters."""
    return destination.node if isinstance(destination, Send) else destination


@dataclass(slots=True)
class _Crossing:
    """What one guard makes of the destinations with one scope key."""

    key: Any
    scope: str
    indexes: list[int]
    names: list[str]

    @property
    def targets(self) -> list[str]:
        """The nodes that it enters, each once."""
        return list(dict.fromkeys(self.names))

    def entered(self, denied: frozenset[int]) -> list[str]:
        """Targets that are still entered when some destinations are not."""
        left = [name for index, name in zip(self.indexes, self.names, strict=True) if index not in denied]
        return list(dict.fromkeys(left))


@dataclass(slots=True)
class _Judged:
    """What one guard says to one crossing."""

    guard: LoopGuard
    crossing: _Crossing
    before: Mapping[str, Any] | None
    prior: Sequence[dict[str, Any]]
    event: dict[str, Any]
    ledger: dict[str, Any]
    shut: bool

    def fold_again(self) -> None:
        """Fold the event anew after it was changed."""
        self.ledger = fold(self.before, (*self.prior, self.event), self.guard.ring)


def pass_gate(
    watches: Iterable[tuple[LoopGuard, str]],
    destinations: Sequence[Destination],
    view: StateView,
    config: RunnableConfig,
    *,
    last: bool = True,
) -> frozenset[int]:
    """Count and judge one pass of a node's routing; write the events into the present step.

    Args:
        watches: Each guard with the node that hands over, as that guard sees it.
        destinations: Where its routing goes.
        view: The state after the node's writes.
        config: The task's config.
        last: No other gate of the node comes after this one: it writes the visit even when no edge is crossed.

    Returns:
        Indexes of the destinations that must not be entered.
    """
    watches = tuple(watches)
    task = _pregel.task_id(config)
    near = task is not None and _pregel.steps_left_at_least(config) <= max([guard.steps for guard, _ in watches])
    keys = (LEDGERS, STEPS) if near else (LEDGERS,)
    note = _pregel.left(config)
    if note is None or note["task"] != task:
        found = _pregel.read(config, (*keys, HISTORY), fresh=True)
        visit = _own_visit(found.get(HISTORY), task) if task is not None else None
        note = new_note(task, visit)
        last = True
    else:
        found = _pregel.read(config, keys, fresh=False)
    before: Ledgers | None = found.get(LEDGERS)
    events: list[dict[str, Any]] = note["events"]
    judged: list[_Judged] = []
    for guard, source in watches:
        # The visit counts once, whichever of the node's gates comes to write it.
        counted = guard.name in note["counted"]
        visit = note["entry"]["visits"].get(guard.name) if note["entry"] is not None else None
        judge = _Judge(guard, source, visit, counted, found.get(STEPS), edit=task is None)
        scopes = (before or {}).get(guard.name) or {}
        for crossing in _crossings(guard, source, destinations, view, note["entry"]):
            if not crossing.targets and (not last or counted or visit is None):
                continue
            prior = [e for e in events if e["guard"] == guard.name and e["scope"] == crossing.scope]
            judged.append(judge.judge(crossing, scopes.get(crossing.scope), prior))
    denied = frozenset(index for one in judged if one.shut for index in one.crossing.indexes)
    if denied and len(watches) > 1:
        _take_back(judged, denied)
    for one in judged:
        events.append(one.event)
        note["after"][one.guard.name, one.crossing.scope] = one.ledger
        note["counted"].add(one.guard.name)
        sends = [d for i in one.crossing.indexes if one.shut and isinstance(d := destinations[i], Send)]
        if sends and "trip" in one.event:
            note["held"][held_name(one.guard.name, one.crossing.scope)] = sends
    if last and events:
        # One write per channel and task: a second one would turn the node's entry in the `updates` stream into a list.
        _pregel.write(config, [(LEDGERS, Events(events, before, _merged(before, note["after"])))])
    if last and note["held"]:
        _pregel.write(config, [(HELD, note["held"])])
    return denied


def _take_back(judged: Sequence[_Judged], denied: frozenset[int]) -> None:
    """Let no guard count what another one has stopped; the trip keeps what they are to count should it be entered."""
    for one in judged:
        if one.shut or denied.isdisjoint(one.crossing.indexes):
            continue
        targets = one.crossing.targets
        entered = one.crossing.entered(denied)
        waits = {**one.event, "visit": None, "cross": [target for target in targets if target not in entered]}
        waits.pop("would_trip", None)
        one.event["cross"] = entered
        if not entered:
            one.event.pop("would_trip", None)
        one.fold_again()
        for other in judged:
            if "trip" in other.event and not set(other.crossing.indexes).isdisjoint(one.crossing.indexes):
                other.event["trip"].setdefault("beside", []).append(waits)
                other.fold_again()


def new_note(task: str | None, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what the gates of one task share: the visit's history entry, and what they have judged so far."""
    return {"task": task, "entry": entry, "counted": set(), "events": [], "after": {}, "held": {}}


def _merged(before: Ledgers | None, after: Mapping[tuple[str, str], dict[str, Any]]) -> Ledgers:
    out: Ledgers = dict(before) if before else {}
    for (guard, scope), ledger in after.items():
        out[guard] = {**out.get(guard, {}), scope: ledger}
    return out


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
    """Sort the guarded destinations by scope key; a pass that crosses no guarded edge is one crossing to nowhere."""
    crossings: dict[str, _Crossing] = {}
    for index, destination in enumerate(destinations):
        arg = destination.arg if isinstance(destination, Send) else None
        target = destination.node if isinstance(destination, Send) else destination
        if target not in guard.nodes or target == source:
            continue
        if guard.key is None:
            key, scope = None, NO_KEY
        else:
            key, scope = _scope(guard, guard.key, view, visit, arg)
        crossing = crossings.get(scope)
        if crossing is None:
            crossing = crossings[scope] = _Crossing(key, scope, [], [])
        crossing.indexes.append(index)
        crossing.names.append(target)
    if crossings:
        return crossings.values()
    key, scope = (None, NO_KEY) if guard.key is None else _scope(guard, guard.key, view, visit, None)
    return (_Crossing(key, scope, [], []),)


class _BrokenKey:
    """Stands for the scope key when the selector raised."""

    def __init__(self, reason: Reason) -> None:
        self.reason = reason


def _scope(
    guard: LoopGuard, selector: Selector, view: StateView, visit: Mapping[str, Any] | None, arg: Any
) -> tuple[Any, str]:
    try:
        if visit is not None and guard.name in visit.get("scopes", ()) and not _names_key(selector, arg):
            key = visit["scopes"][guard.name]
        else:
            key = view.select(selector, arg)
        return key, scope_name(key)
    except Exception as error:
        return _BrokenKey(broken(error, f"key={selector!r}")), NO_KEY


def _names_key(selector: Selector, arg: Any) -> bool:
    return isinstance(arg, Mapping) and (callable(selector) or selector in arg)


@dataclass(slots=True)
class _Judge:
    """Judges what one pass makes of one guard's edges."""

    guard: LoopGuard
    source: str
    visit: Mapping[str, Any] | None
    counted: bool
    steps_left: int | None
    edit: bool

    def judge(self, crossing: _Crossing, before: Mapping[str, Any] | None, prior: Sequence[dict[str, Any]]) -> _Judged:
        """Return the event to write, the ledger after it, and whether the edge stays shut.

        Args:
            crossing: Where the pass goes.
            before: The ledger before the superstep.
            prior: Events of the same task and scope, by an earlier gate: they are of the same superstep.
        """
        guard, visit, targets = self.guard, self.visit, crossing.targets
        event: dict[str, Any] = {
            **guard.stamp,
            "event": "step",
            "scope": crossing.scope,
            "node": self.source,
            "visit": None if visit is None or self.counted or "error" in visit else visit,
            "cross": targets,
            "steps_left": self.steps_left,
        }
        if self.edit:
            event["edit"] = True
        judged = _Judged(guard, crossing, before, prior, event, {}, shut=False)
        now = fold(before, prior, guard.ring) if prior else before
        if targets and now is not None and now.get("tripped") is not None and guard.mode == "enforce":
            event["cross"] = []
            judged.shut = True
        judged.fold_again()
        if judged.shut or not targets:
            return judged
        reason = self._reason(guard, crossing, judged.ledger, visit)
        if reason is None:
            return judged
        if guard.mode == "observe":
            logger.info("guard %s would have tripped at %s: %s", guard.name, self.source, reason.message)
            event["would_trip"] = {"reason": reason.to_json()}
        else:
            event["cross"] = []
            event["trip"] = self._trip(guard, crossing, reason)
            judged.shut = True
        judged.fold_again()
        return judged

    def _reason(self, guard: LoopGuard, crossing: _Crossing, after: Mapping[str, Any], visit: Any) -> Reason | None:
        if isinstance(crossing.key, _BrokenKey):
            return crossing.key.reason
        if visit is not None and "error" in visit:
            return Reason.from_json(visit["error"])
        verdict = guard.check(Ledger(after))
        if verdict.warned and verdict.reason is not None:
            logger.warning("guard %s at %s: %s", guard.name, self.source, verdict.reason.message)
        return verdict.reason if verdict.tripped else None

    def _trip(self, guard: LoopGuard, crossing: _Crossing, reason: Reason) -> dict[str, Any]:
        key = None if isinstance(crossing.key, _BrokenKey) else to_jsonable(crossing.key)
        found = reason.to_json()
        if guard.per == "thread" and reason.kind == "exhausted" and "StepReserve" not in reason.condition:
            found["message"] += " (counted over all inputs of the thread)"
        return {
            "source": self.source,
            "to": crossing.targets,
            "edge": EDGE.join((self.source, crossing.targets[0])),
            "reason": to_jsonable(found),
            "scope_key": key,
            "at": time.time(),
        }
