"""The gate: counts, judges and routes at a guarded edge, inside the step of the edge's source.

It reads the ledger as it stands with the present task's writes, asks the condition what would be if the edge were
crossed, and writes the event into the same step. A shut edge is replaced by the way to the escalation node; nothing
is added, and nothing else of the routing is touched.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import Send

from langgraph_loopguard.core.conditions import broken
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import EDGE, Ledger, fold
from langgraph_loopguard.core.verdict import PROCEED, Reason
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import HELD, HISTORY, LEDGERS, STEPS, Events, Ledgers
from langgraph_loopguard.graph.guard import NO_KEY, LoopGuard, scope_name
from langgraph_loopguard.graph.state import Selector, StateView

logger = logging.getLogger("langgraph_loopguard")

ESCALATE = "loopguard_escalate"
"""Name of the node that writes the record of a trip."""

Destination = str | Send
"""Where a router or a `Command` goes."""


NONE: frozenset[int] = frozenset()


def held_name(guard: str, scope: str) -> str:
    """Name under which the `Send`s that a shut loop holds back are kept."""
    return f"{guard}:{scope}"


def target_of(destination: Destination) -> str:
    """Name of the node that a destination enters."""
    return destination.node if isinstance(destination, Send) else destination


class _Pass:
    """What one guard makes of the destinations with one scope key, and what it says to them.

    Attributes:
        guard: The guard.
        source: The node that hands over.
        key: The scope key, or a `_BrokenKey`.
        scope: Name of the scope key's ledger.
        indexes: Which destinations these are.
        targets: The nodes that they enter, each once.
        event: What is written.
        ledger: What the ledger is after it.
        shut: They must not be entered.
        warned: What is near, though they may be entered.
    """

    __slots__ = (
        *("before", "event", "guard", "indexes", "key", "ledger", "prior", "scope", "shut", "source", "targets"),
        "warned",
    )

    def __init__(self, guard: LoopGuard, source: str, key: Any, scope: str) -> None:
        self.guard = guard
        self.source = source
        self.key = key
        self.scope = scope
        self.indexes: list[int] = []
        self.targets: list[str] = []
        self.shut = False
        self.warned: Reason | None = None

    def fold(self) -> None:
        """Fold the event into the ledger from before the superstep."""
        self.ledger: dict[str, Any] = fold(self.before, (*self.prior, self.event), self.guard.ring)

    def judge(
        self,
        before: Mapping[str, Any] | None,
        prior: Sequence[dict[str, Any]],
        visit: Mapping[str, Any] | None,
        *,
        counted: bool,
        steps_left: int | None,
        edit: bool,
    ) -> None:
        """Make the event, and the ledger after it.

        Args:
            before: The ledger before the superstep.
            prior: Events of the same task and scope, by an earlier gate: they are of the same superstep.
            visit: The node's visit, as its recorder left it.
            counted: An earlier gate of the task has written the visit.
            steps_left: Supersteps that the recursion limit still allows; `None` while there are plenty.
            edit: No task runs: a person changes the state as this node.
        """
        guard, targets = self.guard, self.targets
        self.before, self.prior = before, prior
        failed = visit["error"] if visit is not None and "error" in visit else None
        event: dict[str, Any] = {
            **guard.stamp,
            "event": "step",
            "scope": self.scope,
            "node": self.source,
            "visit": None if counted or failed is not None else visit,
            "cross": targets,
            "steps_left": steps_left,
        }
        if edit:
            event["edit"] = True
        self.event = event
        enforced = guard.mode == "enforce"
        now = fold(before, prior, guard.ring) if prior else before
        if enforced and targets and now is not None and now.get("tripped") is not None:
            event["cross"] = []
            self.shut = True
        self.fold()
        if self.shut or not targets:
            return
        reason = self._reason(failed)
        if reason is None:
            return
        if enforced:
            event["cross"] = []
            event["trip"] = self._trip(reason)
            self.shut = True
        else:
            logger.info("guard %s would have tripped at %s: %s", guard.name, self.source, reason.message)
            event["would_trip"] = {"reason": reason.to_json()}
        self.fold()

    def _reason(self, failed: dict[str, Any] | None) -> Reason | None:
        if type(self.key) is _BrokenKey:
            return self.key.reason
        if failed is not None:
            return Reason.from_json(failed)
        verdict = self.guard.check(Ledger(self.ledger))
        if verdict is PROCEED:
            return None
        if verdict.warned and verdict.reason is not None:
            logger.warning("guard %s at %s: %s", self.guard.name, self.source, verdict.reason.message)
            self.warned = verdict.reason
        return verdict.reason if verdict.tripped else None

    def _trip(self, reason: Reason) -> dict[str, Any]:
        key = None if type(self.key) is _BrokenKey else to_jsonable(self.key)
        return {
            "source": self.source,
            "to": self.targets,
            "edge": EDGE.join((self.source, self.targets[0])),
            "reason": to_jsonable(reason.to_json()),
            "scope_key": key,
            "at": time.time(),
        }


def pass_gate(
    watches: Sequence[tuple[LoopGuard, str]],
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
    entry, events = note["entry"], note["events"]
    passes: list[_Pass] = []
    shut = False
    for guard, source in watches:
        # The visit counts once, whichever of the node's gates comes to write it.
        counted = guard.name in note["counted"]
        visit = entry["visits"].get(guard.name) if entry is not None else None
        scopes = (before or {}).get(guard.name) or {}
        for one in _passes(guard, source, destinations, view, entry):
            if not one.targets and (not last or counted or visit is None):
                continue
            prior = [e for e in events if e["guard"] == guard.name and e["scope"] == one.scope] if events else ()
            one.judge(
                scopes.get(one.scope),
                prior,
                visit,
                counted=counted,
                steps_left=found.get(STEPS) if near else None,
                edit=task is None,
            )
            passes.append(one)
            shut |= one.shut
    denied = frozenset(index for one in passes if one.shut for index in one.indexes) if shut else NONE
    if shut and len(watches) > 1:
        _take_back(passes, denied, destinations)
    for one in passes:
        events.append(one.event)
        note["after"][one.guard.name, one.scope] = one.ledger
        note["counted"].add(one.guard.name)
        if entry is not None and one.event["visit"] is not None and not one.shut:
            one.guard.tell_defeat(one.ledger, one.source, entry["content"])
        if one.warned is not None:
            warning = {"guard": one.guard.name, "node": one.source, "warning": one.warned.to_json()}
            _pregel.stream(config, {"loopguard": warning})
        if one.shut and "trip" in one.event:
            sends = [d for i in one.indexes if isinstance(d := destinations[i], Send)]
            if sends:
                note["held"][held_name(one.guard.name, one.scope)] = sends
    if last and events:
        # One write per channel and task: a second one would turn the node's entry in the `updates` stream into a list.
        _pregel.write(config, [(LEDGERS, Events(events, before, _merged(before, note["after"])))])
    if last and note["held"]:
        _pregel.write(config, [(HELD, note["held"])])
    return denied


def _take_back(passes: Sequence[_Pass], denied: frozenset[int], destinations: Sequence[Destination]) -> None:
    """Let no guard count what another one has stopped; the trip keeps what they are to count should it be entered."""
    for one in passes:
        if one.shut or denied.isdisjoint(one.indexes):
            continue
        entered = list(dict.fromkeys(target_of(destinations[i]) for i in one.indexes if i not in denied))
        waits = {**one.event, "visit": None, "cross": [target for target in one.targets if target not in entered]}
        waits.pop("would_trip", None)
        one.event["cross"] = entered
        if not entered:
            one.event.pop("would_trip", None)
        one.fold()
        for other in passes:
            if "trip" in other.event and not set(other.indexes).isdisjoint(one.indexes):
                other.event["trip"].setdefault("beside", []).append(waits)
                other.fold()


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


def _passes(
    guard: LoopGuard,
    source: str,
    destinations: Sequence[Destination],
    view: StateView,
    visit: Mapping[str, Any] | None,
) -> Iterable[_Pass]:
    """Sort the guarded destinations by scope key; a pass that crosses no guarded edge is one to nowhere."""
    passes: dict[str, _Pass] = {}
    for index, destination in enumerate(destinations):
        arg = destination.arg if isinstance(destination, Send) else None
        target = destination.node if isinstance(destination, Send) else destination
        if target not in guard.nodes or target == source:
            continue
        if guard.key is None:
            key, scope = None, NO_KEY
        else:
            key, scope = _scope(guard, guard.key, view, visit, arg)
        one = passes.get(scope)
        if one is None:
            one = passes[scope] = _Pass(guard, source, key, scope)
        one.indexes.append(index)
        if target not in one.targets:
            one.targets.append(target)
    if passes:
        return passes.values()
    key, scope = (None, NO_KEY) if guard.key is None else _scope(guard, guard.key, view, visit, None)
    return (_Pass(guard, source, key, scope),)


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
