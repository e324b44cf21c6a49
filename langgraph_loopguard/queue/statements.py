"""The SQL of a queue. Each function is one step within a transaction that the caller holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, insert, or_, select, tuple_, update
from sqlalchemy.dialects import postgresql, sqlite

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.queue.base import micros_of
from langgraph_loopguard.queue.database import MICROS
from langgraph_loopguard.queue.delivery import Delivery, Standing, gone_because
from langgraph_loopguard.queue.rows import Filter, Health, QueuedEscalation, State, summary
from langgraph_loopguard.queue.schema import deliveries, escalations, records

LONGEST = 2_000
"""Characters of a question or an error that a row keeps; the record has the question whole."""

C = escalations.c


def insert_new(connection: Connection, record: Mapping[str, Any], *, graph: str, now: int) -> bool:
    """Write a record's row if there is none of its id. Returns whether it is new."""
    kind = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = kind.insert(escalations).values(row_of(record, graph=graph, now=now))
    if connection.execute(new.on_conflict_do_nothing(index_elements=["id"]).returning(C.id)).first() is None:
        return False
    connection.execute(insert(records).values(id=record["id"], record=dump(record)))
    return True


def row_of(record: Mapping[str, Any], *, graph: str, now: int) -> dict[str, Any]:
    """Return the row of a record that is new."""
    return {
        "id": record["id"],
        "graph": graph,
        "thread_id": _plain(record.get("thread_id")),
        "loop": _plain(record.get("loop")) or "",
        "edge": _plain(record.get("edge")) or "",
        "scope_key": None if record.get("scope_key") is None else dump(record["scope_key"]),
        "outcome": _plain(record.get("outcome")) or "escalated",
        "condition": _plain((record.get("reason") or {}).get("condition")) or "",
        "question": _cut(record.get("question")) or "",
        "summary": _plain(summary(record)),
        "created_at": _created(record, now),
        "put_at": now,
        "state": "open",
        "tries": 0,
        "next_try": 0,
    }


def read_page(
    connection: Connection,
    where: Filter,
    *,
    after: tuple[int, str] | None,
    limit: int,
    now: int,
    whole: bool = False,
) -> tuple[QueuedEscalation, ...]:
    """Return rows in the order of age; `whole` ones with their records."""
    query = select(escalations).where(*_conditions(connection, where, now)).order_by(C.created_at, C.id).limit(limit)
    if after is not None:
        query = query.where(tuple_(C.created_at, C.id) > tuple_(*after))
    if whole:
        query = query.add_columns(records.c.record).join(records, records.c.id == C.id)
    return tuple(_row(found) for found in connection.execute(query))


def read_one(connection: Connection, escalation_id: str) -> QueuedEscalation | None:
    """Return a row with its record."""
    query = select(escalations, records.c.record).join(records, records.c.id == C.id).where(C.id == escalation_id)
    found = connection.execute(query).one_or_none()
    return None if found is None else _row(found)


def ids_from(connection: Connection, start: str) -> tuple[str, ...]:
    """Return up to two ids that begin so, in order."""
    query = select(C.id).where(C.id.startswith(start, autoescape=True)).order_by(C.id).limit(2)
    return tuple(connection.execute(query).scalars())


def claim(connection: Connection, escalation_id: str, by: str, *, now: int, until: int) -> bool:
    """Give an open row that nobody else holds to a person. Returns whether it was."""
    change = update(escalations).where(C.id == escalation_id, C.state == "open", _free_for(by, now))
    return connection.execute(change.values(owner=by, claimed_until=until)).rowcount == 1


def release(connection: Connection, escalation_id: str, by: str) -> None:
    """Take a person's claim back."""
    change = update(escalations).where(C.id == escalation_id, C.state == "open", C.owner == by)
    connection.execute(change.values(owner=None, claimed_until=None))


def decide(
    connection: Connection, escalation_id: str, decision: Mapping[str, Any], *, by: str | None, now: int
) -> bool:
    """Write a decision into an open row that nobody else holds. Returns whether it was: there is one winner, ever."""
    change = update(escalations).where(C.id == escalation_id, C.state == "open", _free_for(by, now))
    values: dict[str, Any] = {"state": "decided", "decision": dump(decision), "decided_at": now, "claimed_until": None}
    if by is not None:
        values["owner"] = by
    return connection.execute(change.values(values)).rowcount == 1


def settle(connection: Connection, delivery: Delivery, now: int) -> None:
    """Write down what became of a decision."""
    change = update(escalations).where(C.id == delivery.id, C.state == "decided")
    values: dict[str, Any] = {"error": _cut(delivery.detail)}
    if delivery.outcome in ("applied", "superseded"):
        values |= {"state": delivery.outcome, "settled_at": now}
    elif delivery.outcome == "refused":
        values |= {"state": "open", "decision": None, "decided_at": None, "owner": None, "tries": 0, "next_try": 0}
    connection.execute(change.values(values))


def supersede(connection: Connection, escalation_id: str, standing: Standing, now: int) -> bool:
    """Close an open row whose question is gone. Returns whether it was open."""
    values: dict[str, Any] = {
        "state": "superseded",
        "settled_at": now,
        "error": _cut(gone_because(standing)),
        "claimed_until": None,
    }
    if standing.decision is not None:
        values["decision"] = dump(standing.decision)
    change = update(escalations).where(C.id == escalation_id, C.state == "open")
    return connection.execute(change.values(values)).rowcount == 1


def health(connection: Connection, now: int) -> Health:
    """Return the numbers of a queue, each from the part of an index that it needs."""

    def number(query: Select[Any]) -> int | None:
        found: int | None = connection.execute(query).scalar_one_or_none()
        return found

    def count(state: State, *more: ColumnElement[bool]) -> int:
        return number(select(func.count()).select_from(escalations).where(C.state == state, *more)) or 0

    oldest = number(select(C.created_at).where(C.state == "open").order_by(C.created_at).limit(1))
    return Health(
        open=count("open"),
        claimed=count("open", C.claimed_until > now),
        oldest_open=_since(oldest, now),
        undelivered=count("decided"),
        oldest_undelivered=_since(number(select(func.min(C.decided_at)).where(C.state == "decided")), now),
        failing=count("decided", C.error.is_not(None)),
    )


def due_threads(
    connection: Connection, graph: str, loops: Sequence[str], *, ids: Sequence[str] | None, limit: int, now: int
) -> tuple[str, ...]:
    """Return threads with decisions to deliver, the longest waiting first."""
    wanted = C.next_try <= now if ids is None else C.id.in_(ids)
    query = (
        select(C.thread_id)
        .where(C.state == "decided", C.graph == graph, C.loop.in_(loops), C.thread_id.is_not(None), wanted)
        .group_by(C.thread_id)
        .order_by(func.min(C.decided_at))
        .limit(limit)
    )
    return tuple(connection.execute(query).scalars())


def rows_of_thread(
    connection: Connection, graph: str, thread_id: str, loops: Sequence[str], state: State
) -> tuple[QueuedEscalation, ...]:
    """Return a thread's rows in a state."""
    query = select(escalations).where(C.thread_id == thread_id, C.graph == graph, C.state == state, C.loop.in_(loops))
    return tuple(_row(found) for found in connection.execute(query.order_by(C.created_at, C.id)))


def open_threads(connection: Connection, graph: str, loops: Sequence[str]) -> tuple[str, ...]:
    """Return the threads with open rows."""
    query = select(C.thread_id).where(C.state == "open", C.graph == graph, C.loop.in_(loops), C.thread_id.is_not(None))
    return tuple(connection.execute(query.distinct()).scalars())


def begin_try(connection: Connection, rows: Sequence[QueuedEscalation], now: int) -> None:
    """Note that a delivery of these rows begins, and when the next one may: later with each try."""
    for row in rows:
        pause = min(300.0, 0.25 * 2.0 ** min(row.tries, 20))
        change = update(escalations).where(C.id == row.id)
        connection.execute(change.values(tries=C.tries + 1, next_try=now + int(pause * MICROS)))


def hold(connection: Connection, graph: str, thread_id: str, holder: str, *, now: int, until: int) -> bool:
    """Take or keep the lease on deliveries to a thread. Returns whether the holder has it."""
    kind = postgresql if connection.dialect.name == "postgresql" else sqlite
    new = kind.insert(deliveries).values(graph=graph, thread_id=thread_id, holder=holder, until=until)
    mine = or_(deliveries.c.until <= now, deliveries.c.holder == holder)
    taken = new.on_conflict_do_update(
        index_elements=["graph", "thread_id"], set_={"holder": holder, "until": until}, where=mine
    )
    return connection.execute(taken.returning(deliveries.c.holder)).first() is not None


def let_go(connection: Connection, graph: str, thread_id: str, holder: str) -> None:
    """Give the lease on deliveries to a thread back."""
    own = and_(deliveries.c.graph == graph, deliveries.c.thread_id == thread_id, deliveries.c.holder == holder)
    connection.execute(deliveries.delete().where(own))


def dump(value: Any) -> str:
    """Return a value as JSON that every database stores: a NUL is spelt as JSON spells it."""
    return orjson.dumps(to_jsonable(value)).decode()


def moment(micros: int) -> datetime:
    """Return microseconds since the epoch as a time."""
    return datetime.fromtimestamp(micros // MICROS, timezone.utc) + timedelta(microseconds=micros % MICROS)


def _conditions(connection: Connection, where: Filter, now: int) -> list[ColumnElement[bool]]:
    out: list[ColumnElement[bool]] = []
    if where.states is not None:
        out.append(C.state.in_(where.states) if len(where.states) != 1 else C.state == where.states[0])
    for column, value in (
        (C.loop, where.loop),
        (C.owner, where.owner),
        (C.graph, where.graph),
        (C.thread_id, where.thread_id),
    ):
        if value is not None:
            out.append(column == value)
    if where.claimed is not None:
        held = and_(C.claimed_until.is_not(None), C.claimed_until > now)
        out.append(held if where.claimed else or_(C.claimed_until.is_(None), C.claimed_until <= now))
    if where.min_age is not None:
        out.append(C.created_at <= now - int(where.min_age * MICROS))
    if where.max_age is not None:
        out.append(C.created_at >= now - int(where.max_age * MICROS))
    if where.text:
        find = func.strpos if connection.dialect.name == "postgresql" else func.instr
        out.append(find(C.summary, (_plain(where.text) or "").casefold()) > 0)
    return out


def _free_for(by: str | None, now: int) -> ColumnElement[bool]:
    """Whether nobody else's lease runs on a row."""
    free = or_(C.claimed_until.is_(None), C.claimed_until <= now)
    return free if by is None else or_(free, C.owner == by)


def _plain(value: Any) -> str | None:
    """Return a text that PostgreSQL stores: without NUL and lone surrogates."""
    return None if value is None else to_jsonable(str(value)).replace("\0", "\\0")


def _cut(text: str | None) -> str | None:
    return None if text is None else (_plain(text) or "")[:LONGEST]


def _created(record: Mapping[str, Any], now: int) -> int:
    try:
        created = datetime.fromisoformat(str(record.get("created_at")))
    except ValueError:
        return now
    return micros_of(created if created.tzinfo else created.replace(tzinfo=timezone.utc))


def _since(micros: int | None, now: int) -> timedelta | None:
    return None if micros is None else timedelta(microseconds=max(0, now - micros))


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else moment(micros)


def _row(found: Row[Any]) -> QueuedEscalation:
    record = getattr(found, "record", None)
    return QueuedEscalation(
        id=found.id,
        state=found.state,
        thread_id=found.thread_id,
        loop=found.loop,
        edge=found.edge,
        outcome=found.outcome,
        condition=found.condition,
        question=found.question,
        created_at=moment(found.created_at),
        graph=found.graph,
        scope_key=None if found.scope_key is None else orjson.loads(found.scope_key),
        owner=found.owner,
        claimed_until=_time(found.claimed_until),
        decision=None if found.decision is None else orjson.loads(found.decision),
        decided_at=_time(found.decided_at),
        settled_at=_time(found.settled_at),
        tries=found.tries,
        error=found.error,
        record=None if record is None else orjson.loads(record),
    )
