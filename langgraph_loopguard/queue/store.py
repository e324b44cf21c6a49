"""`EscalationQueue`: escalations in a database, SQLite by default and PostgreSQL by URL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langgraph_loopguard.people.redact import Redact, redact_credentials
from langgraph_loopguard.queue import statements
from langgraph_loopguard.queue.base import LEASE, Queue, check_claim, check_page, page_mark, the_only
from langgraph_loopguard.queue.courier import Courier, Reconciled
from langgraph_loopguard.queue.database import MICROS, Database
from langgraph_loopguard.queue.decisions import checked_decision, refused
from langgraph_loopguard.queue.delivery import Delivery
from langgraph_loopguard.queue.errors import UnknownEscalationError
from langgraph_loopguard.queue.rows import Filter, Health, Page, QueuedEscalation
from langgraph_loopguard.queue.target import Configure, Target

DELIVERY_LEASE = 60.0
"""Seconds after which another process takes over from one that is gone. It is renewed while the graph runs."""

LONGEST_ID = 64

EXPORT_PAGE = 50
"""Records that an export holds at a time."""


class EscalationQueue(Queue):
    """Escalations that wait for a person, in a database. Safe to share among threads and processes.

    A guard puts each escalation in by itself: `guard_loop(..., queue=EscalationQueue(url))`.

    Example:
        ```python
        import tempfile
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import START, StateGraph
        from typing_extensions import TypedDict
        from langgraph_loopguard import guard_loop
        from langgraph_loopguard.queue import EscalationQueue

        class State(TypedDict, total=False):
            review: str
            patch: str

        builder = StateGraph(State)
        builder.add_node("reviewer", lambda state: {"review": "Please handle None."})
        builder.add_node("fixer", lambda state: {"patch": "if x is None: return"})
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "fixer")
        builder.add_edge("fixer", "reviewer")

        with tempfile.TemporaryDirectory() as folder:
            queue = EscalationQueue(f"sqlite:///{folder}/queue.db")
            guard_loop(builder, "reviewer", "fixer", queue=queue)
            graph = builder.compile(checkpointer=InMemorySaver())
            graph.invoke({}, {"configurable": {"thread_id": "pr-17"}})

            (row,) = queue.list().rows
            queue.decide(row.id, {"action": "accept", "fix": 2}, by="ada")
            (delivery,) = queue.deliver(graph)
            assert delivery.outcome == "applied"
            queue.close()
        ```
    """

    def __init__(
        self,
        url: str,
        *,
        graph: str = "",
        redact: Redact | None = redact_credentials,
        migrate: bool = True,
    ) -> None:
        """Name the database. Nothing is opened before the first use.

        Args:
            url: `sqlite:///queue.db` (a file) or `postgresql://user@host/database`.
            graph: A label for the graph whose escalations this object puts and delivers. Give one to each graph where
                several share a database and may have equal thread ids.
            redact: What runs over a record before anything is stored; `None` stores it as it is.
            migrate: Whether tables that are missing or old are brought to this version at the first use.

        Raises:
            ValueError: `url` is of another kind.
            ImportError: The extra `queue` is not installed.
        """
        self.database = Database(url, migrate=migrate)
        self.graph = graph
        self.redact = redact

    def __repr__(self) -> str:
        return f"EscalationQueue({self.database.name!r})"

    def put(self, record: Mapping[str, Any]) -> bool:
        """Put a record in, once: of an id that is there already, decided or not, nothing is changed.

        Args:
            record: An escalation's record.

        Returns:
            Whether it is new.

        Raises:
            ValueError: The record has no id of 1 to 64 characters.
            QueueUnavailableError: The database cannot be reached.
        """
        found = record.get("id")
        if not _is_id(found):
            msg = f"record must have an id of 1 to {LONGEST_ID} characters, got {found!r}"
            raise ValueError(msg)
        stored = dict(record) if self.redact is None else self.redact(dict(record))
        with self.database.writing() as connection:
            now = self.database.now(connection)
            return statements.insert_new(connection, stored, graph=self.graph, now=now)

    async def aput(self, record: Mapping[str, Any]) -> bool:
        """See `put`."""
        return await asyncio.to_thread(self.put, record)

    def list(self, where: Filter | None = None, *, limit: int = 50, after: str | None = None) -> Page:
        """See `Queue.list`."""
        return self._page(where or Filter(), limit, after, whole=False)

    def export(self, where: Filter | None = None) -> Iterator[QueuedEscalation]:
        """See `Queue.export`."""
        after: str | None = None
        while True:
            page = self._page(where or Filter(state=None), EXPORT_PAGE, after, whole=True)
            yield from page.rows
            if page.next is None:
                return
            after = page.next

    def show(self, escalation_id: str) -> QueuedEscalation:
        """See `Queue.show`."""
        row = None
        if _is_id(escalation_id):
            with self.database.reading() as connection:
                row = statements.read_one(connection, escalation_id)
        if row is None:
            raise UnknownEscalationError(escalation_id)
        return row

    def find(self, start: str) -> str:
        """See `Queue.find`."""
        if not _is_id(start):
            raise UnknownEscalationError(start)
        with self.database.reading() as connection:
            return the_only(start, statements.ids_from(connection, start))

    def claim(self, escalation_id: str, by: str, *, lease: float = LEASE) -> QueuedEscalation:
        """See `Queue.claim`."""
        check_claim(by, lease)
        row = self.show(escalation_id)
        with self.database.writing() as connection:
            now = self.database.now(connection)
            done = statements.claim(connection, row.id, by, now=now, until=now + int(lease * MICROS))
        row = self.show(row.id)
        if not done:
            raise refused(row)
        return row

    def release(self, escalation_id: str, by: str) -> QueuedEscalation:
        """See `Queue.release`."""
        row = self.show(escalation_id)
        with self.database.writing() as connection:
            statements.release(connection, row.id, by)
        return self.show(row.id)

    def decide(self, escalation_id: str, answer: Any, *, by: str | None = None) -> QueuedEscalation:
        """See `Queue.decide`. It reaches the graph by `deliver`."""
        row = self.show(escalation_id)
        if row.state != "open":
            raise refused(row)
        decision = checked_decision(answer, row, by)
        with self.database.writing() as connection:
            now = self.database.now(connection)
            decision["decided_at"] = statements.moment(now).isoformat()
            done = statements.decide(connection, row.id, decision, by=decision["decided_by"], now=now)
        row = self.show(row.id)
        if not done:
            raise refused(row)
        return row

    def deliver(
        self,
        graph: Any,
        *,
        ids: Sequence[str] | None = None,
        limit: int = 100,
        config: Configure = None,
        context: Any = None,
        lease: float = DELIVERY_LEASE,
    ) -> tuple[Delivery, ...]:
        """Resume the threads whose escalations are decided. The graph runs here, thread by thread, to its next stop.

        A decision is applied once: whether it stands is asked of the graph. What a killed process has begun is gone on
        with when its lease has run out. Run it by cron or in several processes; each thread is served by one of them.

        Args:
            graph: The compiled graph, with the checkpointer that its threads are in.
            ids: Only these, also those that wait for their next try after a failure.
            limit: Threads, at most.
            config: Config for the runs, or a function of the thread's id that returns it.
            context: The graph's `context`.
            lease: Seconds until others take over from a process that is gone.

        Returns:
            What became of each decision.

        Raises:
            ValueError: The graph has no guard or no checkpointer.
            QueueUnavailableError: The database cannot be reached. What was resumed is found out at the next call.
        """
        courier = self._courier(graph, config, context, lease)
        return tuple(one for thread in courier.due(ids, limit) for one in courier.deliver(thread))

    async def adeliver(
        self,
        graph: Any,
        *,
        ids: Sequence[str] | None = None,
        limit: int = 100,
        config: Configure = None,
        context: Any = None,
        lease: float = DELIVERY_LEASE,
    ) -> tuple[Delivery, ...]:
        """See `deliver`; for graphs with async nodes or an async checkpointer."""
        courier = self._courier(graph, config, context, lease)
        threads = await asyncio.to_thread(courier.due, ids, limit)
        return tuple([one for thread in threads for one in await courier.adeliver(thread)])

    def reconcile(self, graph: Any, *, threads: Sequence[str] | None = None, config: Configure = None) -> Reconciled:
        """Bring in what waits in the graph and is not in the queue; close what is open and waits no longer.

        Args:
            graph: The compiled graph, with the checkpointer that its threads are in.
            threads: Their ids. Default: all that the checkpointer has, for which it reads every checkpoint.
            config: As in `deliver`.

        Raises:
            ValueError: The graph has no guard or no checkpointer.
            QueueUnavailableError: The database cannot be reached.
        """
        courier = self._courier(graph, config, None, DELIVERY_LEASE)
        known = courier.target.threads() + courier.open_threads() if threads is None else threads
        results = [courier.reconcile(thread, self.put) for thread in dict.fromkeys(known)]
        return sum(results, Reconciled(0, (), ()))

    async def areconcile(
        self, graph: Any, *, threads: Sequence[str] | None = None, config: Configure = None
    ) -> Reconciled:
        """See `reconcile`."""
        courier = self._courier(graph, config, None, DELIVERY_LEASE)
        known = threads
        if known is None:
            known = await courier.target.athreads() + await asyncio.to_thread(courier.open_threads)
        results = [await courier.areconcile(thread, self.put) for thread in dict.fromkeys(known)]
        return sum(results, Reconciled(0, (), ()))

    def health(self) -> Health:
        """See `Queue.health`."""
        with self.database.reading() as connection:
            return statements.health(connection, self.database.now(connection))

    def migrate(self) -> None:
        """Bring the tables to this version; for `migrate=False`.

        Raises:
            QueueUnavailableError: The database cannot be reached, or its tables are newer.
        """
        self.database.migrate()

    def close(self) -> None:
        """See `Queue.close`."""
        self.database.close()

    def _page(self, where: Filter, limit: int, after: str | None, *, whole: bool) -> Page:
        start = check_page(limit, after)
        with self.database.reading() as connection:
            now = self.database.now(connection)
            rows = statements.read_page(connection, where, after=start, limit=limit + 1, now=now, whole=whole)
        shown = rows[:limit]
        return Page(shown, page_mark(shown[-1]) if len(rows) > limit else None)

    def _courier(self, graph: Any, config: Configure, context: Any, lease: float) -> Courier:
        return Courier(self.database, Target(graph, config, context), graph=self.graph, lease=lease)


def _is_id(escalation_id: Any) -> bool:
    return isinstance(escalation_id, str) and 1 <= len(escalation_id) <= LONGEST_ID and "\0" not in escalation_id
