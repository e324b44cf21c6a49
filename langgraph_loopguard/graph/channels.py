"""The channels in which a guard keeps what it knows, and the schemas that bring them into a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from langgraph.channels import DeltaChannel
from langgraph.channels.base import BaseChannel
from langgraph.errors import EmptyChannelError
from langgraph.managed import RemainingSteps
from typing_extensions import NotRequired, TypedDict

from langgraph_loopguard.core.ledger import Ring, fold

LEDGERS = "loopguard"
HISTORY = "loopguard_history"
HELD = "loopguard_held"
STEPS = "loopguard_steps_left"
ESCALATIONS = "escalations"
ESCALATION = "escalation"
OUTCOME = "outcome"

GUARD_KEYS = frozenset({LEDGERS, HISTORY, HELD, STEPS, ESCALATIONS, ESCALATION, OUTCOME})
"""State keys that are the guard's own: they never count as something that a node wrote."""

BLOCK = 64
"""Entries per block of the history: an append copies one block and the list of blocks, not the history."""

Ledgers = dict[str, dict[str, dict[str, Any]]]
"""Ledgers by guard name and scope key."""


class LedgerChannel(BaseChannel[Any, Any, Any]):
    """Holds the ledgers and folds one superstep's events into them.

    A channel rather than a reducer, because it is handed all writes of a superstep at once: however many tasks cross an
    edge in it, it is one handoff. An update is a list of events, each with its `guard`, `scope`, `ring` and `window`.
    """

    __slots__ = ("value",)

    def __init__(self, typ: Any = dict, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Ledgers | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LedgerChannel)

    __hash__ = None  # type: ignore[assignment]  # mutable, like every channel

    @property
    def ValueType(self) -> Any:
        """See `BaseChannel.ValueType`."""
        return dict

    @property
    def UpdateType(self) -> Any:
        """See `BaseChannel.UpdateType`."""
        return list

    def copy(self) -> LedgerChannel:
        """Return a copy that shares the value: a fold never changes it."""
        return self.from_checkpoint(self.value)

    def from_checkpoint(self, checkpoint: Any) -> LedgerChannel:
        """See `BaseChannel.from_checkpoint`; anything that is no mapping is an empty channel."""
        channel = LedgerChannel(self.typ, self.key)
        channel.value = checkpoint if isinstance(checkpoint, dict) else None
        return channel

    def get(self) -> Ledgers:
        """See `BaseChannel.get`."""
        if self.value is None:
            raise EmptyChannelError
        return self.value

    def is_available(self) -> bool:
        """See `BaseChannel.is_available`."""
        return self.value is not None

    def update(self, values: Sequence[Any]) -> bool:
        """Fold one superstep's events. A whole state that comes back as an update changes nothing."""
        events = [event for value in values if isinstance(value, list) for event in value]
        if not events:
            return False
        self.value = fold_ledgers(self.value, events)
        return True


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

    @property  # type: ignore[override]
    def snapshot_frequency(self) -> int:
        """Updates until the next whole value."""
        blocks = self.value if isinstance(self.value, list) else []
        return max(self._least, (len(blocks) - 1) * BLOCK // 2)

    @snapshot_frequency.setter
    def snapshot_frequency(self, value: int) -> None:
        self._least = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HistoryChannel)

    __hash__ = None  # type: ignore[assignment]  # mutable, like every channel


def latest(left: Any, right: Any) -> Any:
    """Reducer: the later value stands."""
    return right


def merge_escalations(left: Any, right: Any) -> Any:
    """Reducer: records by id. A record is written once; after that only its decision is added, and only once."""
    out = dict(left or {})
    for key, record in (right or {}).items():
        known = out.get(key)
        if known is None or (known.get("decision") is None and record.get("decision") is not None):
            out[key] = record
    return out


def merge_held(left: Any, right: Any) -> Any:
    """Reducer: what a shut edge holds back, by escalation; `None` lets go of it."""
    merged = {**(left or {}), **(right or {})}
    return {key: value for key, value in merged.items() if value is not None}


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

    escalation: Annotated[dict[str, Any] | None, latest]
    """The latest escalation's record (see `Escalation`)."""
    outcome: Annotated[str | None, latest]
    """How the automatic part ended: `"escalated"` or `"blocked"`; absent while no guard has tripped."""


class GuardChannels(TypedDict):
    """All channels of the guard: the input of the escalation node, which brings them into the graph."""

    loopguard: NotRequired[Annotated[dict[str, Any], LedgerChannel(dict)]]
    loopguard_history: NotRequired[Annotated[list[Any], HistoryChannel(append_blocks, list)]]
    loopguard_held: NotRequired[Annotated[dict[str, Any] | None, merge_held]]
    loopguard_steps_left: RemainingSteps
    escalations: NotRequired[Annotated[dict[str, Any] | None, merge_escalations]]
    escalation: NotRequired[Annotated[dict[str, Any] | None, latest]]
    outcome: NotRequired[Annotated[str | None, latest]]
