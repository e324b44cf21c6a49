"""The channels in which a guard keeps what it knows, and the schemas that bring them into a graph."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from langgraph.channels import DeltaChannel
from langgraph.channels.base import BaseChannel
from langgraph.errors import EmptyChannelError
from langgraph.managed import RemainingSteps
from typing_extensions import NotRequired, TypedDict

from langgraph_loopguard.core.ledger import VERSION, Ring, fold

logger = logging.getLogger("langgraph_loopguard")

LEDGERS = "loopguard"
HISTORY = "loopguard_history"
HELD = "loopguard_held"
STANDING = "loopguard_standing"
STEPS = "loopguard_steps_left"
ESCALATIONS = "escalations"
ESCALATION = "escalation"
OUTCOME = "outcome"

GUARD_KEYS = frozenset({LEDGERS, HISTORY, HELD, STANDING, STEPS, ESCALATIONS, ESCALATION, OUTCOME})
"""State keys that are the guard's own: they never count as something that a node wrote."""

BLOCK = 64
"""Entries per block of the history: an append copies one block and the list of blocks, not the history."""

Ledgers = dict[str, dict[str, dict[str, Any]]]
"""Ledgers by guard name and scope key."""


ChannelT = TypeVar("ChannelT", bound=BaseChannel[Any, Any, Any])


def _bare(kind: type[ChannelT]) -> ChannelT:
    """Return a channel without what its constructor looks into: copies are made at every read of a router."""
    return kind.__new__(kind)


class ValueChannel(BaseChannel[Any, Any, Any]):
    """Holds one JSON value that is never changed in place, only replaced by what `merge` makes of it.

    LangGraph copies every channel whenever a router reads the state, so a copy is only a new reference here. A channel
    rather than a reducer function also because it is handed all writes of a superstep at once.
    """

    __slots__ = ("merge", "value")

    def __init__(self, merge: Callable[[Any, Sequence[Any]], Any], typ: Any = dict, key: str = "") -> None:
        self.typ = typ
        self.key = key
        self.merge = merge
        self.value: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValueChannel) and other.merge is self.merge

    __hash__ = None  # type: ignore[assignment]  # mutable, like every channel

    @property
    def ValueType(self) -> Any:
        """See `BaseChannel.ValueType`."""
        return self.typ

    @property
    def UpdateType(self) -> Any:
        """See `BaseChannel.UpdateType`."""
        return self.typ

    def copy(self) -> ValueChannel:
        """Return a copy that shares the value."""
        channel = _bare(ValueChannel)
        channel.typ, channel.key, channel.merge, channel.value = self.typ, self.key, self.merge, self.value
        return channel

    def from_checkpoint(self, checkpoint: Any) -> ValueChannel:
        """Return a channel with a checkpoint's value; what is not of the channel's type is no value."""
        channel = ValueChannel(self.merge, self.typ, self.key)
        if isinstance(checkpoint, self.typ):
            channel.value = checkpoint if self.merge is not merge_events else known_ledgers(checkpoint)
        return channel

    def get(self) -> Any:
        """See `BaseChannel.get`."""
        if self.value is None:
            raise EmptyChannelError
        return self.value

    def is_available(self) -> bool:
        """See `BaseChannel.is_available`."""
        return self.value is not None

    def checkpoint(self) -> Any:
        """See `BaseChannel.checkpoint`."""
        return super().checkpoint() if self.value is None else self.value

    def update(self, values: Sequence[Any]) -> bool:
        """Merge one superstep's writes."""
        if not values:
            return False
        before = self.value
        self.value = self.merge(before, values)
        return self.value is not before


class Events(list[dict[str, Any]]):
    """One task's events, with what they make of the ledgers as the gate found them.

    The gate has folded them to judge; when nobody else writes in the superstep the channel need not do it again.
    Savers store a plain list.
    """

    __slots__ = ("after", "before")

    def __init__(self, events: Sequence[dict[str, Any]], before: Ledgers | None, after: Ledgers) -> None:
        super().__init__(events)
        self.before = before
        self.after = after


def merge_events(ledgers: Ledgers | None, writes: Sequence[Any]) -> Ledgers | None:
    """Fold one superstep's events. A whole state that comes back as an update changes nothing.

    However many tasks cross an edge in one superstep, it is one handoff.
    """
    if len(writes) == 1 and isinstance(writes[0], Events) and writes[0].before is ledgers:
        return writes[0].after
    events = [event for write in writes if isinstance(write, list) for event in write]
    return fold_ledgers(ledgers, events) if events else ledgers


def is_ledger(data: Any) -> bool:
    """Whether a stored value is a ledger of the shape that this version writes."""
    if not isinstance(data, dict) or data.get("v") != VERSION:
        return False
    numbers = (
        data.get(key, 0) for key in ("cycles", "seconds", "tokens", "trips", "decisions", "turns", "history_from")
    )
    granted = data.get("granted", {})
    if isinstance(granted, dict):
        granted = {what: extra for what, extra in granted.items() if what != "usd"}  # dollars stand as exact text
    counts = data.get("handoffs", {}), granted
    measures = data.get("measures", {})
    tripped, artifact, measure = data.get("tripped"), data.get("artifact"), data.get("measure")
    return (
        all(isinstance(number, (int, float)) for number in numbers)
        and all(isinstance(one, dict) and all(isinstance(n, (int, float)) for n in one.values()) for one in counts)
        and isinstance(data.get("nodes", {}), dict)
        and all(_has(node, visits=int, moved=list, window=list) for node in data.get("nodes", {}).values())
        and all(
            _has(entry, n=int, cycle=int, keys=dict)
            for node in data.get("nodes", {}).values()
            for entry in node["window"]
        )
        and (tripped is None or (_has(tripped, source=str, to=list, edge=str, at=float, reason=dict)))
        and (tripped is None or _has(tripped["reason"], condition=str, kind=str, message=str, evidence=list))
        and (
            artifact is None
            or (_has(artifact, seen=list, unchanged=int, by=list, wrote=list) and artifact["seen"] != [])
        )
        and (measure is None or _has(measure, best=(int, float), last=(int, float), cycle=int))
        and isinstance(measures, dict)
        and all(_has(one, best=(int, float), last=(int, float), cycle=int) for one in measures.values())
        and isinstance(data.get("usd", ""), str)
        and isinstance(data.get("unpriced", 0), int)
    )


def is_history(blocks: Any) -> bool:
    """Whether a stored value is a history of the shape that this version writes."""
    return isinstance(blocks, list) and all(
        isinstance(block, list)
        and all(_has(entry, node=str, at=(int, float), content=dict, visits=dict) for entry in block)
        for block in blocks
    )


def _has(value: Any, **kinds: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), kind) for key, kind in kinds.items())


def known_ledgers(stored: Mapping[str, Any]) -> Ledgers:
    """Return the stored ledgers that have a shape this version knows; the others begin anew, and the log says so."""
    out: Ledgers = {}
    for guard, scopes in stored.items():
        kept = {
            scope: ledger for scope, ledger in (scopes.items() if isinstance(scopes, dict) else ()) if is_ledger(ledger)
        }
        if not isinstance(scopes, dict) or len(kept) < len(scopes):
            logger.warning("the thread holds a ledger of guard %r in a shape that is not known: it begins anew", guard)
        out[str(guard)] = kept
    return out


def fold_ledgers(ledgers: Mapping[str, Any] | None, events: Sequence[Mapping[str, Any]]) -> Ledgers:
    """Return the ledgers after one superstep's events."""
    out: Ledgers = dict(ledgers or {})
    for name in dict.fromkeys(event["guard"] for event in events):
        scopes = dict(out.get(name, {}))
        own = [event for event in events if event["guard"] == name]
        ring = Ring(tuple(own[0]["ring"]), own[0]["window"])
        for scope in [*scopes] if any(event["scope"] is None for event in own) else []:
            scopes[scope] = fold(scopes[scope], [event for event in own if event["scope"] is None], ring)
        for scope in dict.fromkeys(event["scope"] for event in own if event["scope"] is not None):
            scopes[scope] = fold(scopes.get(scope), [event for event in own if event["scope"] == scope], ring)
        out[name] = scopes
    return out


def append_blocks(blocks: Sequence[list[Any]], writes: Sequence[list[Any]]) -> list[list[Any]]:
    """Append entries to a list of blocks. Shares all full blocks with the old list, and is batching-invariant."""
    out = list(blocks)
    for entries in writes:
        for entry in entries:
            if out and len(out[-1]) < BLOCK:
                out[-1] = [*out[-1], entry]
            else:
                out.append([entry])
    return out


def flatten(blocks: Any) -> list[dict[str, Any]]:
    """Return the entries of a history in order; a history of unknown shape is empty."""
    if not isinstance(blocks, list):
        return []
    return [entry for block in blocks if isinstance(block, list) for entry in block]


class HistoryChannel(DeltaChannel[Any]):
    """Keeps every emission. Checkpoints hold what is new, not the whole: bytes grow with the run, not with its square.

    `DeltaChannel` writes the whole value now and then, so that a read need not go back to the start. Here this happens
    when the history has doubled (at a fixed pace the whole values alone would grow with the square).
    """

    __slots__ = ("_least",)

    @property
    def snapshot_frequency(self) -> int:
        """Updates until the next whole value."""
        blocks = self.value if isinstance(self.value, list) else []
        return max(self._least, (len(blocks) - 1) * BLOCK)

    @snapshot_frequency.setter
    def snapshot_frequency(self, value: int) -> None:
        self._least = value

    def from_checkpoint(self, checkpoint: Any) -> HistoryChannel:
        """See `DeltaChannel.from_checkpoint`; a history of a shape that is not known begins anew."""
        channel = super().from_checkpoint(checkpoint)
        if not is_history(channel.value):
            logger.warning("the thread holds a history in a shape that is not known: it begins anew")
            channel.value = []
        return channel

    def update(self, values: Sequence[Any]) -> bool:
        """See `DeltaChannel.update`; the guard's own writes are lists, and need not be looked into."""
        if len(values) != 1 or type(values[0]) is not list or type(self.value) is not list:
            return super().update(values)
        self.value = append_blocks(self.value, values)
        return True

    def copy(self) -> HistoryChannel:
        """Return a copy that shares the value: an append never changes it."""
        channel = _bare(HistoryChannel)
        channel.typ, channel.key, channel.reducer, channel.value = self.typ, self.key, self.reducer, self.value
        channel._least = self._least
        return channel

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HistoryChannel)

    __hash__ = None  # type: ignore[assignment]  # mutable, like every channel


NEW_INPUT = False
"""Written to what speaks of one run: a new input has come, and whatever it brings along is not of this run."""


def latest(before: Any, writes: Sequence[Any]) -> Any:
    """The last value stands; `None`, where there is no other, takes it away."""
    if any(write is NEW_INPUT for write in writes):
        return None
    return next((write for write in reversed(writes) if write is not None), None)


def merge_standing(before: Any, writes: Sequence[Any]) -> Any:
    """Outcomes of the trips that speak of the present run, by escalation id; `None` takes one away."""
    if any(write is NEW_INPUT for write in writes):
        return None
    out = {**(before or {}), **{key: outcome for write in writes for key, outcome in (write or {}).items()}}
    return {key: outcome for key, outcome in out.items() if outcome is not None} or None


def merge_escalations(before: Any, writes: Sequence[Any]) -> Any:
    """Records by id. A record is written once; after that only its decision is added, and only once."""
    out = dict(before or {})
    for records in writes:
        for key, record in (records or {}).items():
            known = out.get(key)
            if known is None or (known.get("decision") is None and record.get("decision") is not None):
                out[key] = record
    return out


def merge_held(before: Any, writes: Sequence[Any]) -> Any:
    """What shut loops hold back, by guard and scope key; `None` lets go of it.

    What several tasks of one superstep bring adds up. A trip of a later one begins with nothing: what an abandoned turn
    held back is of no use any more.
    """
    now: dict[str, list[Any] | None] = {}
    for held in writes:
        for key, sends in (held or {}).items():
            now[key] = None if sends is None else [*(now.get(key) or ()), *sends]
    return {key: sends for key, sends in {**(before or {}), **now}.items() if sends is not None}


class GuardedState(TypedDict, total=False):
    """Mix-in for state classes that want the escalation and the outcome among their own keys.

    Example:
        ```python
        from typing_extensions import TypedDict
        from langgraph_loopguard import GuardedState

        class State(GuardedState):
            patch: str
        ```
    """

    escalation: Annotated[dict[str, Any], ValueChannel(latest, dict)]
    """The latest record of this run (see `Escalation`), with its decision once there is one. A new input clears it."""
    outcome: Annotated[str, ValueChannel(latest, str)]
    """How the automatic part of this run ended: `"escalated"` or `"blocked"`.

    Absent while no guard has tripped, after a `retry` (the loop goes on), and from a new input on. Any other decision
    leaves it as it is.
    """


class GuardChannels(TypedDict):
    """All channels of the guard: the input of the escalation node, which brings them into the graph."""

    loopguard: NotRequired[Annotated[dict[str, Any], ValueChannel(merge_events)]]
    loopguard_history: NotRequired[Annotated[list[Any], HistoryChannel(append_blocks, list)]]
    loopguard_held: NotRequired[Annotated[dict[str, Any], ValueChannel(merge_held)]]
    loopguard_standing: NotRequired[Annotated[dict[str, Any], ValueChannel(merge_standing)]]
    loopguard_steps_left: RemainingSteps
    escalations: NotRequired[Annotated[dict[str, Any], ValueChannel(merge_escalations)]]
    escalation: NotRequired[Annotated[dict[str, Any], ValueChannel(latest, dict)]]
    outcome: NotRequired[Annotated[str, ValueChannel(latest, str)]]
