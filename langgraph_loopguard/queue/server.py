"""`ServerQueue`: the same operations on a LangGraph Server, whose interrupted threads are the truth.

Nothing is kept beside them. A decision is a run that resumes its interrupt by id; the server takes one run per thread
at a time, and the decision names its escalation, so that a late one is refused by the graph. Only claims are the
queue's own: they stand in the thread's metadata, which has no compare-and-swap, so two may claim at the same moment.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
from langgraph_sdk import get_sync_client
from langgraph_sdk.errors import ConflictError, LangGraphError, NotFoundError

from langgraph_loopguard.people.redact import Redact, redact_credentials
from langgraph_loopguard.queue.base import LEASE, Queue, check_claim, check_page, micros_of, page_mark, the_only
from langgraph_loopguard.queue.decisions import checked_decision, refused
from langgraph_loopguard.queue.errors import (
    AlreadyDecidedError,
    ClaimedError,
    QueueError,
    QueueUnavailableError,
    UnknownEscalationError,
)
from langgraph_loopguard.queue.rows import Filter, Health, Page, QueuedEscalation, State, matches

CLAIM = "loopguard_claim_"
"""Beginning of the metadata key that holds an escalation's claim; its id follows."""

BATCH = 100
"""Threads per search."""

FIELDS: Any = ("thread_id", "metadata", "interrupts")

PATIENCE = 60.0
"""Seconds that `decide` waits for the server to carry the decision to the graph."""


class ServerQueue(Queue):
    """Escalations on a LangGraph Server.

    The open ones are those of interrupted threads, in subgraphs too; the decided ones are found in the states of
    threads whose own graph has the guard.
    """

    def __init__(
        self,
        url: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        redact: Redact | None = redact_credentials,
    ) -> None:
        """Name the server. Nothing is asked of it before the first use.

        Args:
            url: Its address, `http://host:port`.
            api_key: Its key. Default: `LANGGRAPH_API_KEY`, `LANGSMITH_API_KEY` or `LANGCHAIN_API_KEY`.
            headers: More headers for each request.
            redact: What runs over a record before it is shown; `None` shows it as it is.
        """
        self.url = url
        self.redact = redact
        given: dict[str, Any] = {"url": url, "headers": dict(headers or {})}
        if api_key is not None:
            given["api_key"] = api_key
        self.client = get_sync_client(**given)

    def __repr__(self) -> str:
        return f"ServerQueue({self.url!r})"

    def list(self, where: Filter | None = None, *, limit: int = 50, after: str | None = None) -> Page:
        """See `Queue.list`. All waiting threads are read each time: a server's listing has no stable pages."""
        start = check_page(limit, after)
        rows = [row for row in self._matching(where or Filter()) if start is None or _place(row) > start]
        shown = tuple(row.without_record() for row in rows[:limit])
        return Page(shown, page_mark(shown[-1]) if len(rows) > limit else None)

    def show(self, escalation_id: str) -> QueuedEscalation:
        """See `Queue.show`."""
        return self._found(escalation_id)[0]

    def find(self, start: str) -> str:
        """See `Queue.find`. The beginning of an id is looked for among the open ones."""
        if not start:
            raise UnknownEscalationError(start)
        begins = [row.id for row, _ in self._waiting() if row.id.startswith(start)]
        return the_only(start, begins[:2]) if begins else self.show(start).id

    def claim(self, escalation_id: str, by: str, *, lease: float = LEASE) -> QueuedEscalation:
        """See `Queue.claim`; of two at the very same moment the later one stands."""
        check_claim(by, lease)
        row = self._free(escalation_id, by)
        until = datetime.now(timezone.utc) + timedelta(seconds=lease)
        self._note(row, {"by": by, "until": micros_of(until)})
        row = self.show(row.id)
        if row.owner != by:
            raise ClaimedError(row)
        return row

    def release(self, escalation_id: str, by: str) -> QueuedEscalation:
        """See `Queue.release`."""
        row = self.show(escalation_id)
        if row.owner == by and row.state == "open":
            self._note(row, {"by": by, "until": 0})
        return self.show(row.id)

    def decide(self, escalation_id: str, answer: Any, *, by: str | None = None) -> QueuedEscalation:
        """See `Queue.decide`. It returns when the decision stands in the graph, whose run goes on at the server.

        Raises:
            QueueError: The thread is busy with another run, or the run ended without the decision; with the reason.
        """
        row, interrupt_id = self._found(escalation_id)
        named = self._free(row.id, by)
        decision = checked_decision(answer, named, by)
        decision["decided_at"] = datetime.now(timezone.utc).isoformat()
        with self._reaching():
            thread = self.client.threads.get(str(row.thread_id))
            assistant = (thread["metadata"] or {}).get("assistant_id") or row.graph
            try:
                run = self.client.runs.create(
                    str(row.thread_id),
                    str(assistant),
                    command={"resume": {interrupt_id: decision}},
                    multitask_strategy="reject",
                )
            except ConflictError:
                return self._lost(row)
        return self._arrived(row, interrupt_id, decision, run["run_id"])

    def health(self) -> Health:
        """See `Queue.health`. Nothing is ever undelivered: the server runs what is decided."""
        now = datetime.now(timezone.utc)
        rows = [row for row, _ in self._waiting()]
        return Health(
            open=len(rows),
            claimed=sum(row.is_claimed(now) for row in rows),
            oldest_open=max((row.age(now) for row in rows), default=None),
            undelivered=0,
            oldest_undelivered=None,
            failing=0,
        )

    def export(self, where: Filter | None = None) -> Iterator[QueuedEscalation]:
        """See `Queue.export`."""
        yield from self._matching(where or Filter(state=None))

    def close(self) -> None:
        """See `Queue.close`."""
        self.client.close()

    def _matching(self, where: Filter) -> tuple[QueuedEscalation, ...]:
        now = datetime.now(timezone.utc)
        rows: dict[str, QueuedEscalation] = {}
        if where.states is None or "open" in where.states:
            rows |= {row.id: row for row, _ in self._waiting()}
        if where.states is None or "applied" in where.states:
            rows |= {row.id: row for row in self._applied()}
        return tuple(sorted((row for row in rows.values() if matches(row, where, now)), key=_place))

    def _waiting(self) -> Iterator[tuple[QueuedEscalation, str]]:
        """Yield the escalations that threads ask about, each with the id of its interrupt."""
        seen: set[str] = set()
        for thread in self._threads(status="interrupted", select=[*FIELDS]):
            for row, interrupt_id in self._asked(thread):
                if row.id not in seen:  # a thread that moves in the listing is met twice
                    seen.add(row.id)
                    yield row, interrupt_id

    def _asked(self, thread: Mapping[str, Any]) -> Iterator[tuple[QueuedEscalation, str]]:
        for interrupts in (thread.get("interrupts") or {}).values():
            for one in interrupts:
                value = one.get("value")
                record = value.get("escalation") if isinstance(value, Mapping) else None
                if isinstance(record, Mapping) and isinstance(record.get("id"), str):
                    yield self._row(thread, record, "open"), str(one.get("id"))

    def _applied(self, escalation_id: str | None = None) -> Iterator[QueuedEscalation]:
        """Yield the escalations that are decided, of threads whose state holds them."""
        wanted = {} if escalation_id is None else {escalation_id: {"id": escalation_id}}
        for thread in self._threads(values={"escalations": wanted}, select=[*FIELDS, "values"]):
            records = (thread.get("values") or {}).get("escalations") or {}
            for record in records.values() if escalation_id is None else [records[escalation_id]]:
                if record.get("decision") is not None:
                    yield self._row(thread, record, "applied")

    def _found(self, escalation_id: str) -> tuple[QueuedEscalation, str]:
        """Return an escalation, and the id of its interrupt when it waits."""
        wanted: Any = {"escalations": {escalation_id: {"id": escalation_id}}}
        for thread in self._threads(values=wanted, select=[*FIELDS]):
            for row, interrupt_id in self._asked(thread):
                if row.id == escalation_id:
                    return row, interrupt_id
        for row in self._applied(escalation_id):
            return row, ""
        for row, interrupt_id in self._waiting():  # a subgraph's records are not in the thread's state
            if row.id == escalation_id:
                return row, interrupt_id
        raise UnknownEscalationError(escalation_id)

    def _free(self, escalation_id: str, by: str | None) -> QueuedEscalation:
        """Return an open escalation that nobody else holds."""
        row = self.show(escalation_id)
        if row.state != "open" or (row.is_claimed(datetime.now(timezone.utc)) and row.owner != by):
            raise refused(row)
        return row

    def _lost(self, row: QueuedEscalation) -> QueuedEscalation:
        """Tell who was faster, as soon as it stands in the graph."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            now = self.show(row.id)
            if now.state != "open":
                raise AlreadyDecidedError(now)
            time.sleep(0.2)
        msg = f"escalation {row.id}: its thread is busy with another run; it is still open"
        raise QueueError(msg)

    def _arrived(
        self, row: QueuedEscalation, interrupt_id: str, decision: Mapping[str, Any], run_id: str
    ) -> QueuedEscalation:
        """Wait until a decision stands in the graph, and find out whether it is this one."""
        thread_id, end, pause = str(row.thread_id), time.monotonic() + PATIENCE, 0.05
        while time.monotonic() < end:
            with self._reaching():
                status = self.client.runs.get(thread_id, run_id)["status"]
                values: Any = self.client.threads.get_state(thread_id)["values"]
                thread: Any = self.client.threads.get(thread_id)
            stands = ((values or {}).get("escalations") or {}).get(row.id, {}).get("decision")
            if stands is not None:
                found = self.show(row.id)
                if stands["decided_at"] != decision["decided_at"]:
                    raise AlreadyDecidedError(found)
                return found
            asked = {identity for _, identity in self._asked(thread)}
            if status not in ("pending", "running") and interrupt_id in asked:
                msg = f"escalation {row.id} is still open, its run ended with {status}: {self._why(thread_id, run_id)}"
                raise QueueError(msg)
            if status not in ("pending", "running"):  # of a subgraph: its state is not the thread's
                return _with(row, "applied", decision)
            time.sleep(pause)
            pause = min(1.0, pause * 1.5)
        return _with(row, "decided", decision)

    def _why(self, thread_id: str, run_id: str) -> str:
        with self._reaching():
            result = self.client.runs.join(thread_id, run_id)
        error = result.get("__error__") if isinstance(result, Mapping) else None
        return str(error.get("message") if isinstance(error, Mapping) else error)

    def _note(self, row: QueuedEscalation, claim: Mapping[str, Any]) -> None:
        with self._reaching():
            self.client.threads.update(str(row.thread_id), metadata={f"{CLAIM}{row.id}": dict(claim)})

    def _threads(self, **query: Any) -> Iterator[Mapping[str, Any]]:
        offset = 0
        while True:
            with self._reaching():
                found = self.client.threads.search(
                    **query, limit=BATCH, offset=offset, sort_by="created_at", sort_order="asc"
                )
            yield from found
            if len(found) < BATCH:
                return
            offset += BATCH

    def _row(self, thread: Mapping[str, Any], given: Mapping[str, Any], state: State) -> QueuedEscalation:
        record = dict(given) if self.redact is None else self.redact(dict(given))
        metadata = thread.get("metadata") or {}
        claim = metadata.get(f"{CLAIM}{record['id']}") or {}
        until = int(claim.get("until") or 0)
        decision = given.get("decision")
        return QueuedEscalation(
            id=record["id"],
            state=state,
            thread_id=thread["thread_id"],
            loop=str(record.get("loop", "")),
            edge=str(record.get("edge", "")),
            outcome=str(record.get("outcome", "escalated")),
            condition=str((record.get("reason") or {}).get("condition", "")),
            question=str(record.get("question", "")),
            created_at=_time(record.get("created_at")),
            graph=str(metadata.get("graph_id") or metadata.get("assistant_id") or ""),
            scope_key=record.get("scope_key"),
            owner=(decision or {}).get("decided_by") or (claim.get("by") if until else None),
            claimed_until=datetime.fromtimestamp(until / 1e6, timezone.utc) if until and decision is None else None,
            decision=decision,
            decided_at=_time(decision["decided_at"]) if decision and decision.get("decided_at") else None,
            record=record,
        )

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except ConflictError:
            raise
        except NotFoundError as error:
            msg = f"the server at {self.url} does not know the thread any more: {error}"
            raise QueueError(msg) from error
        except (httpx.HTTPError, LangGraphError) as error:
            msg = f"the server at {self.url} cannot be reached: {type(error).__name__}: {error}"
            raise QueueUnavailableError(msg) from error


def _place(row: QueuedEscalation) -> tuple[int, str]:
    return micros_of(row.created_at), row.id


def _with(row: QueuedEscalation, state: State, decision: Mapping[str, Any]) -> QueuedEscalation:
    decided_at = _time(decision["decided_at"])
    return replace(
        row, state=state, decision=decision, owner=decision["decided_by"], decided_at=decided_at, claimed_until=None
    )


def _time(text: Any) -> datetime:
    found = datetime.fromisoformat(str(text))
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)
