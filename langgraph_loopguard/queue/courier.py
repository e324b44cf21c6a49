"""Carries decisions from the database to a graph, and records from a graph to the database.

One courier at a time per thread, by a lease in the database that is renewed while the graph runs: a courier that is
killed leaves a lease that runs out, and the next one finds out from the graph how far it had come.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from langgraph_loopguard.people.text import visible
from langgraph_loopguard.queue import statements
from langgraph_loopguard.queue.database import MICROS, Database
from langgraph_loopguard.queue.delivery import (
    Compared,
    Comparison,
    Delivery,
    Talk,
    comparison,
    conversation,
)
from langgraph_loopguard.queue.errors import QueueUnavailableError
from langgraph_loopguard.queue.rows import QueuedEscalation
from langgraph_loopguard.queue.target import Target

logger = logging.getLogger("langgraph_loopguard")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a comparison of queue and graph has changed."""

    threads: int
    """Threads looked at."""
    added: tuple[str, ...]
    """Escalations that waited in the graph and were not in the queue."""
    superseded: tuple[str, ...]
    """Escalations that were open in the queue and wait no longer in the graph."""

    def __add__(self, other: Reconciled) -> Reconciled:
        return Reconciled(self.threads + other.threads, self.added + other.added, self.superseded + other.superseded)


class Courier:
    """Delivers to one graph and reconciles with it."""

    def __init__(self, database: Database, target: Target, *, graph: str, lease: float) -> None:
        if not 1 <= lease <= 86_400:
            msg = f"lease must be a number of seconds from 1 to 86400, got {lease!r}"
            raise ValueError(msg)
        self.database = database
        self.target = target
        self.graph = graph
        self.lease = lease
        self.holder = uuid.uuid4().hex

    def due(self, ids: Sequence[str] | None, limit: int) -> tuple[str, ...]:
        """Return the threads with something to deliver."""
        with self.database.reading() as connection:
            now = self.database.now(connection)
            return statements.due_threads(connection, self.graph, self.target.loops, ids=ids, limit=limit, now=now)

    def deliver(self, thread_id: str) -> tuple[Delivery, ...]:
        """Deliver what is decided for a thread; nothing when somebody else does."""
        begun = self.begin(thread_id)
        if begun is None:
            return ()
        rows, talk = begun
        try:
            with self.renewing(thread_id):
                try:
                    deliveries = self.target.drive(talk, thread_id)
                except Exception as error:  # the checkpointer, say: it is noted, and the next thread may fare better
                    deliveries = _failed(rows, error)
                self.settle(deliveries)
        finally:
            self.end(thread_id)
        return deliveries

    async def adeliver(self, thread_id: str) -> tuple[Delivery, ...]:
        """See `deliver`."""
        begun = await asyncio.to_thread(self.begin, thread_id)
        if begun is None:
            return ()
        rows, talk = begun
        try:
            with self.renewing(thread_id):
                try:
                    deliveries = await self.target.adrive(talk, thread_id)
                except Exception as error:  # as above
                    deliveries = _failed(rows, error)
                await asyncio.to_thread(self.settle, deliveries)
        finally:
            await asyncio.to_thread(self.end, thread_id)
        return deliveries

    def begin(self, thread_id: str) -> tuple[tuple[QueuedEscalation, ...], Talk] | None:
        """Take the lease on a thread, and note that a try begins."""
        with self.database.writing() as connection:
            now = self.database.now(connection)
            until = now + int(self.lease * MICROS)
            if not statements.hold(connection, self.graph, thread_id, self.holder, now=now, until=until):
                return None
            rows = statements.rows_of_thread(connection, self.graph, thread_id, self.target.loops, "decided")
            if not rows:
                statements.let_go(connection, self.graph, thread_id, self.holder)
                return None
            statements.begin_try(connection, rows, now)
        return rows, conversation(rows, now=statements.moment(now), pauses=self.target.pauses)

    def settle(self, deliveries: Iterable[Delivery]) -> None:
        """Write down what became of decisions."""
        with self.database.writing() as connection:
            now = self.database.now(connection)
            for one in deliveries:
                statements.settle(connection, one, now)
        for one in deliveries:
            level = logging.INFO if one.outcome == "applied" and one.detail is None else logging.WARNING
            logger.log(level, "escalation %s of thread %s: %s", one.id, visible(one.thread_id), one.outcome)

    def end(self, thread_id: str) -> None:
        """Give the lease back."""
        try:
            with self.database.writing() as connection:
                statements.let_go(connection, self.graph, thread_id, self.holder)
        except QueueUnavailableError as error:
            logger.warning("the lease on thread %s runs out by itself: %s", visible(thread_id), error)

    @contextmanager
    def renewing(self, thread_id: str) -> Iterator[None]:
        """Keep the lease while a graph runs, however long that takes."""
        done = threading.Event()

        def renew() -> None:
            while not done.wait(self.lease / 3):
                try:
                    with self.database.writing() as connection:
                        now = self.database.now(connection)
                        until = now + int(self.lease * MICROS)
                        kept = statements.hold(connection, self.graph, thread_id, self.holder, now=now, until=until)
                except QueueUnavailableError as error:
                    logger.warning("the lease on thread %s could not be renewed yet: %s", visible(thread_id), error)
                    continue
                if not kept:
                    logger.error("the lease on thread %s was lost: another process delivers", visible(thread_id))
                    return

        thread = threading.Thread(target=renew, name="loopguard-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def reconcile(self, thread_id: str, put: Callable[[Mapping[str, Any]], bool]) -> Reconciled:
        """Compare a thread with the queue, and put right what the queue does not know."""
        rows, talk = self.compare(thread_id)
        return self.put_right(rows, self.target.drive(talk, thread_id), put)

    async def areconcile(self, thread_id: str, put: Callable[[Mapping[str, Any]], bool]) -> Reconciled:
        """See `reconcile`."""
        rows, talk = await asyncio.to_thread(self.compare, thread_id)
        return await asyncio.to_thread(self.put_right, rows, await self.target.adrive(talk, thread_id), put)

    def open_threads(self) -> tuple[str, ...]:
        """Return the threads with open rows."""
        with self.database.reading() as connection:
            return statements.open_threads(connection, self.graph, self.target.loops)

    def compare(self, thread_id: str) -> tuple[tuple[QueuedEscalation, ...], Comparison]:
        """Return a thread's open rows, and the conversation that compares them with the graph."""
        with self.database.reading() as connection:
            rows = statements.rows_of_thread(connection, self.graph, thread_id, self.target.loops, "open")
            now = statements.moment(self.database.now(connection))
        return rows, comparison(rows, now)

    def put_right(
        self, rows: Sequence[QueuedEscalation], found: Compared, put: Callable[[Mapping[str, Any]], bool]
    ) -> Reconciled:
        """Put in what the queue has missed, and close what waits no longer."""
        asking, standing = found
        added = tuple(record["id"] for record in asking if put(record))
        gone = [row.id for row in rows if standing[row.id].kind in ("other", "gone")]
        if gone:
            with self.database.writing() as connection:
                now = self.database.now(connection)
                gone = [one for one in gone if statements.supersede(connection, one, standing[one], now)]
        return Reconciled(1, added, tuple(gone))


def _failed(rows: Sequence[QueuedEscalation], error: Exception) -> tuple[Delivery, ...]:
    why = f"{type(error).__name__}: {error}"
    return tuple(Delivery(row.id, str(row.thread_id), "failed", why) for row in rows)
