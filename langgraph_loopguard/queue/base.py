"""What every queue can do, and the async door to it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from langgraph_loopguard.people.text import one_line
from langgraph_loopguard.queue.errors import UnknownEscalationError
from langgraph_loopguard.queue.rows import Filter, Health, Page, QueuedEscalation

LEASE = 900.0
"""Seconds that a claim holds by default."""


class Queue(ABC):
    """Escalations that wait for a person, wherever they are kept.

    Each method has an async twin (`alist`, `ashow`, ...) that runs it in a thread: what the caller awaits may be
    cancelled, the operation then still comes to its end.
    """

    @abstractmethod
    def list(self, where: Filter | None = None, *, limit: int = 50, after: str | None = None) -> Page:
        """Return a page of escalations, the oldest first.

        Pages are cut by age and id, which never change: while rows move between states, none is shown twice and none
        that stays is left out.

        Args:
            where: Which ones. Default: the open ones.
            limit: Rows per page, 1 to 1,000.
            after: `next` of the page before.
        """

    @abstractmethod
    def show(self, escalation_id: str) -> QueuedEscalation:
        """Return one escalation with its record.

        Raises:
            UnknownEscalationError: There is none of this id.
        """

    @abstractmethod
    def find(self, start: str) -> str:
        """Return the whole id of the escalation whose id begins so.

        Raises:
            UnknownEscalationError: There is none.
            ValueError: There are several.
        """

    @abstractmethod
    def claim(self, escalation_id: str, by: str, *, lease: float = LEASE) -> QueuedEscalation:
        """Reserve an escalation for a person; again by the same person renews the lease.

        Args:
            escalation_id: Which one.
            by: The person.
            lease: Seconds after which others may claim it.

        Raises:
            ClaimedError: Somebody else has it.
            AlreadyDecidedError: It is decided.
            SupersededError: It waits no longer.
            UnknownEscalationError: There is none of this id.
        """

    @abstractmethod
    def release(self, escalation_id: str, by: str) -> QueuedEscalation:
        """Give up a claim of one's own; without one, nothing happens.

        Raises:
            UnknownEscalationError: There is none of this id.
        """

    @abstractmethod
    def decide(self, escalation_id: str, answer: Any, *, by: str | None = None) -> QueuedEscalation:
        """Write a decision down. There is one winner, ever.

        Args:
            escalation_id: Which one.
            answer: A `Decision`, its dict, or another shape that an escalation's interrupt takes.
            by: The person; else the answer's `decided_by`.

        Raises:
            ValueError: The answer does not fit this escalation; the question stays open.
            AlreadyDecidedError: Somebody was faster; the error tells who decided what and when.
            ClaimedError: Somebody else has claimed it.
            SupersededError: It waits no longer.
            UnknownEscalationError: There is none of this id.
        """

    @abstractmethod
    def health(self) -> Health:
        """Return how many wait, for how long, and how many decisions have not arrived."""

    @abstractmethod
    def export(self, where: Filter | None = None) -> Iterator[QueuedEscalation]:
        """Yield escalations with their records, the oldest first. Default: all of them.

        Args:
            where: Which ones.
        """

    @abstractmethod
    def close(self) -> None:
        """Close all connections."""

    async def alist(self, where: Filter | None = None, *, limit: int = 50, after: str | None = None) -> Page:
        """See `list`."""
        return await asyncio.to_thread(self.list, where, limit=limit, after=after)

    async def ashow(self, escalation_id: str) -> QueuedEscalation:
        """See `show`."""
        return await asyncio.to_thread(self.show, escalation_id)

    async def aclaim(self, escalation_id: str, by: str, *, lease: float = LEASE) -> QueuedEscalation:
        """See `claim`."""
        return await asyncio.to_thread(self.claim, escalation_id, by, lease=lease)

    async def arelease(self, escalation_id: str, by: str) -> QueuedEscalation:
        """See `release`."""
        return await asyncio.to_thread(self.release, escalation_id, by)

    async def adecide(self, escalation_id: str, answer: Any, *, by: str | None = None) -> QueuedEscalation:
        """See `decide`."""
        return await asyncio.to_thread(self.decide, escalation_id, answer, by=by)

    async def ahealth(self) -> Health:
        """See `health`."""
        return await asyncio.to_thread(self.health)


def the_only(start: str, found: Sequence[str]) -> str:
    """Return the one id that was found.

    Raises:
        UnknownEscalationError: There is none.
        ValueError: There are several.
    """
    if not found:
        raise UnknownEscalationError(start)
    if len(found) > 1 and start not in found:
        msg = f"escalation {one_line(start)!r} is the beginning of several ids"
        raise ValueError(msg)
    return start if start in found else found[0]


def check_page(limit: int, after: str | None) -> tuple[int, str] | None:
    """Return where a page begins: the microseconds and the id of the last row before it.

    Raises:
        ValueError: `limit` or `after` makes no sense.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 1_000:
        msg = f"limit must be a whole number from 1 to 1000, got {limit!r}"
        raise ValueError(msg)
    if after is None:
        return None
    micros, dot, escalation_id = after.partition(".")
    if not dot or not micros.removeprefix("-").isdecimal() or len(micros) > 19:
        msg = f"after must be the `next` of a page, got {after!r}"
        raise ValueError(msg)
    return int(micros), escalation_id


def check_claim(by: str, lease: float) -> None:
    """Refuse a claim that makes no sense.

    Raises:
        ValueError: With the parameter and its value.
    """
    if not isinstance(by, str) or not by.strip():
        msg = f"by must name a person, got {by!r}"
        raise ValueError(msg)
    if not 0 < lease <= 365 * 86_400:
        msg = f"lease must be a positive number of seconds, at most a year, got {lease!r}"
        raise ValueError(msg)


def page_mark(row: QueuedEscalation) -> str:
    """Return `after` for the page that begins behind a row."""
    return f"{micros_of(row.created_at)}.{row.id}"


def micros_of(time: datetime) -> int:
    """Return microseconds since the epoch, exactly (a float has not enough digits)."""
    return int(time.timestamp()) * 1_000_000 + time.microsecond
