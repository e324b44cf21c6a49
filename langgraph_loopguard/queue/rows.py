"""What a queue hands out: rows, pages of rows, and its health. The same for a database and a LangGraph Server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, Literal, get_args

State = Literal["open", "decided", "applied", "superseded"]
"""Where an escalation stands.

- `open`: waits for a person, claimed or not.
- `decided`: a person has decided; the graph does not have it yet.
- `applied`: the decision stands in the graph.
- `superseded`: its question is gone: answered past the queue, forked away, or the run went on from elsewhere.
"""

STATES: tuple[State, ...] = get_args(State)


@dataclass(frozen=True, slots=True)
class QueuedEscalation:
    """One escalation in a queue. All times are aware, in UTC."""

    id: str
    state: State
    thread_id: str | None
    loop: str
    edge: str
    outcome: str
    condition: str
    question: str
    created_at: datetime
    """When the guard tripped: what age is counted from."""
    graph: str = ""
    """Label of the graph that it came from."""
    scope_key: Any = None
    owner: str | None = None
    """Who has claimed it last, or decided it."""
    claimed_until: datetime | None = None
    """End of the claim's lease; `None` when nobody claims it."""
    decision: Mapping[str, Any] | None = None
    decided_at: datetime | None = None
    settled_at: datetime | None = None
    """When it was applied or superseded."""
    tries: int = 0
    """Deliveries begun."""
    error: str | None = None
    """Why the last delivery failed or was refused, what failed after it, or why it is superseded."""
    record: Mapping[str, Any] | None = field(default=None, repr=False)
    """The whole record; `None` in lists."""

    def is_claimed(self, now: datetime) -> bool:
        """Whether somebody's lease on it runs at a time."""
        return self.state == "open" and self.claimed_until is not None and self.claimed_until > now

    def age(self, now: datetime) -> timedelta:
        """How long ago the guard tripped."""
        return now - self.created_at

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain JSON; times are ISO 8601."""
        out: dict[str, Any] = {}
        for one in fields(self):
            value = getattr(self, one.name)
            out[one.name] = value.isoformat() if isinstance(value, datetime) else value
        if self.record is None:
            del out["record"]
        return out

    def without_record(self) -> QueuedEscalation:
        """Return the row as it stands in lists."""
        return replace(self, record=None)


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a listing."""

    rows: tuple[QueuedEscalation, ...]
    next: str | None
    """What to give as `after=` for the next page; `None` at the end."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which escalations a listing shows; `None` means any."""

    state: State | Sequence[State] | None = "open"
    loop: str | None = None
    owner: str | None = None
    graph: str | None = None
    thread_id: str | None = None
    claimed: bool | None = None
    """Whether somebody's lease on it runs."""
    min_age: float | None = None
    """Seconds since the trip, at least."""
    max_age: float | None = None
    """Seconds since the trip, at most."""
    text: str | None = None
    """A part of the question, the reason, the last review's beginning, loop, edge, thread or scope key; any case."""

    def __post_init__(self) -> None:
        for state in self.states or ():
            if state not in STATES:
                msg = f"state must be one of {', '.join(STATES)}, got {state!r}"
                raise ValueError(msg)
        for name in ("min_age", "max_age"):
            value = getattr(self, name)
            if value is not None and value < 0:
                msg = f"{name} must be a number of seconds, got {value!r}"
                raise ValueError(msg)

    @property
    def states(self) -> tuple[State, ...] | None:
        """The states as a tuple; `None` for any."""
        if self.state is None:
            return None
        return (self.state,) if isinstance(self.state, str) else tuple(self.state)


@dataclass(frozen=True, slots=True)
class Health:
    """Whether somebody clears the queue."""

    open: int
    claimed: int
    """How many of the open ones somebody works on."""
    oldest_open: timedelta | None
    """Age of the oldest open escalation."""
    undelivered: int
    """Decided, and not in the graph yet."""
    oldest_undelivered: timedelta | None
    """How long ago the oldest of these was decided."""
    failing: int
    """How many of these were tried and failed."""

    def problems(
        self, *, max_age: float | None = None, max_open: int | None = None, max_undelivered: float | None = None
    ) -> tuple[str, ...]:
        """Return what is over its limit, each in a few words; empty when all is well.

        Args:
            max_age: Seconds that the oldest open escalation may wait.
            max_open: How many may be open.
            max_undelivered: Seconds that a decision may take to arrive.
        """
        out: list[str] = []
        if max_age is not None and self.oldest_open is not None and self.oldest_open.total_seconds() > max_age:
            limit = short(timedelta(seconds=max_age))
            out.append(f"the oldest waits for {short(self.oldest_open)}, the limit is {limit}")
        if max_open is not None and self.open > max_open:
            out.append(f"{self.open} are open, the limit is {max_open}")
        late = self.oldest_undelivered
        if max_undelivered is not None and late is not None and late.total_seconds() > max_undelivered:
            limit = short(timedelta(seconds=max_undelivered))
            out.append(f"a decision is undelivered for {short(late)}, the limit is {limit}")
        return tuple(out)

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as plain JSON; ages in seconds."""
        values = ((one.name, getattr(self, one.name)) for one in fields(self))
        return {name: value.total_seconds() if isinstance(value, timedelta) else value for name, value in values}


def short(age: timedelta) -> str:
    """Return a length of time in its two largest units: `3d 4h`, `5m 10s`, `0s`."""
    left = max(0, int(age.total_seconds()))
    parts = []
    for unit, seconds in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"


SUMMARY = 600
"""Characters that a text filter looks at, per escalation."""


def summary(record: Mapping[str, Any]) -> str:
    """Return what a text filter looks at: see `Filter.text`."""
    reviews = record.get("reviews") or [{}]
    scope = record.get("scope_key")
    parts = [
        *(record.get(key) or "" for key in ("loop", "edge", "thread_id")),
        "" if scope is None else json.dumps(scope, ensure_ascii=False),
        record.get("question") or (record.get("reason") or {}).get("message") or "",
        json.dumps(reviews[-1].get("content"), ensure_ascii=False) if isinstance(reviews[-1], Mapping) else "",
    ]
    return " ".join(map(str, parts))[:SUMMARY].casefold()


def matches(row: QueuedEscalation, where: Filter, now: datetime) -> bool:
    """Whether a listing shows a row, as the database would say."""
    age = row.age(now).total_seconds()
    return (
        (where.states is None or row.state in where.states)
        and all(
            wanted is None or wanted == found
            for wanted, found in (
                (where.loop, row.loop),
                (where.owner, row.owner),
                (where.graph, row.graph),
                (where.thread_id, row.thread_id),
                (where.claimed, row.is_claimed(now)),
            )
        )
        and (where.min_age is None or age >= where.min_age)
        and (where.max_age is None or age <= where.max_age)
        and (not where.text or where.text.casefold() in summary(row.record or {}))
    )
