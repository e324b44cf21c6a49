"""Where runs are read from: a graph, a checkpointer, a SQLite file or a PostgreSQL URL, one thread at a time."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.pregel import Pregel

from langgraph_loopguard.report.errors import ReportError, need

Saver = BaseCheckpointSaver[Any]
Source = Pregel[Any, Any, Any, Any] | Saver | str | Path
"""A compiled graph with a checkpointer, a checkpointer, the path of a SQLite file, or a `postgresql://` URL."""

Place = tuple[str, str]
"""A thread and a namespace in it: `""` is the graph itself, everything else a subgraph of it."""

PAGE = 1000
"""Places that one query reads ahead. No cursor stays open between two pages, so writers are not held up."""

URLS = ("postgresql://", "postgres://")

_PLACES = """SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints
    WHERE (thread_id, checkpoint_ns) > ({0}, {0}) ORDER BY thread_id, checkpoint_ns LIMIT {1}"""
_COUNT = "SELECT count(*) FROM (SELECT DISTINCT thread_id, checkpoint_ns FROM checkpoints) AS places"


@contextmanager
def opened(source: Source) -> Iterator[Saver]:
    """Open a source for reading.

    Yields:
        Its checkpointer. What was opened here is closed again; nothing is written.

    Raises:
        ReportError: There is nothing to read, or it cannot be read from here.
    """
    if isinstance(source, Pregel):
        saver = source.checkpointer
        if not isinstance(saver, BaseCheckpointSaver):
            msg = f"graph {source.name!r} has no checkpointer, so no run of it is kept: compile(checkpointer=...)"
            raise ReportError(msg)
        yield _synchronous(saver)
    elif isinstance(source, BaseCheckpointSaver):
        yield _synchronous(source)
    elif isinstance(source, str) and source.startswith(URLS):
        yield from _postgres(source)
    elif isinstance(source, (str, Path)):
        yield from _sqlite(Path(source))
    else:
        msg = f"source must be a compiled graph, a checkpointer, a path or a URL, got {source!r}"
        raise ReportError(msg)


def places(saver: Saver, thread: str | None = None) -> tuple[int, Iterator[Place]]:
    """Return how many places a checkpointer holds, and the places themselves.

    Args:
        saver: The checkpointer.
        thread: Only this thread's. Default: those of all threads.
    """
    conn = getattr(saver, "conn", None)
    if thread is None and _is(saver, "langgraph.checkpoint.sqlite", "SqliteSaver"):
        return _pages(lambda query, values: _sqlite_rows(saver, query, values), "?")
    if thread is None and _is(saver, "langgraph.checkpoint.postgres", "PostgresSaver"):
        return _pages(lambda query, values: _postgres_rows(conn, query, values), "%s")
    found = _listed(saver, thread)
    return len(found), iter(found)


def latest(saver: Saver, place: Place) -> CheckpointTuple | None:
    """Return the newest checkpoint of a place; `None` when it has been deleted meanwhile."""
    config: RunnableConfig = {"configurable": {"thread_id": place[0], "checkpoint_ns": place[1]}}
    return saver.get_tuple(config)


def _synchronous(saver: Saver) -> Saver:
    if isinstance(getattr(saver, "loop", None), asyncio.AbstractEventLoop):
        msg = f"{type(saver).__name__} answers its own event loop only: give the report its path or URL instead"
        raise ReportError(msg)
    return saver


def _sqlite(path: Path) -> Iterator[Saver]:
    if not path.is_file():
        msg = f"there is no file {str(path)!r}"
        raise ReportError(msg)
    module = need("langgraph.checkpoint.sqlite", "sqlite")
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, check_same_thread=False)) as conn:
        try:
            found = conn.execute("SELECT count(*) FROM sqlite_master WHERE name = 'checkpoints'").fetchone()[0]
        except sqlite3.DatabaseError as error:
            msg = f"{str(path)!r} is no SQLite database that can be read: {error}"
            raise ReportError(msg) from error
        if not found:
            msg = f"{str(path)!r} holds no checkpoints of LangGraph"
            raise ReportError(msg)
        yield cast("Saver", module.SqliteSaver(conn))


def _postgres(url: str) -> Iterator[Saver]:
    module = need("langgraph.checkpoint.postgres", "postgres")
    psycopg = need("psycopg", "postgres")
    rows = need("psycopg.rows", "postgres")
    try:
        conn = psycopg.connect(url, autocommit=True, prepare_threshold=0, row_factory=rows.dict_row)
    except psycopg.Error as error:
        msg = f"PostgreSQL cannot be reached: {' '.join(str(error).replace(url, '(its URL)').split())}"
        raise ReportError(msg) from error
    with conn:
        if conn.execute("SELECT to_regclass('checkpoints') AS name").fetchone()["name"] is None:
            msg = f"database {conn.info.dbname!r} on {conn.info.host} holds no checkpoints of LangGraph"
            raise ReportError(msg)
        yield module.PostgresSaver(conn)


def _pages(ask: Any, mark: str) -> tuple[int, Iterator[Place]]:
    ((total,),) = ask(_COUNT, ())
    return total, _paged(ask, mark)


def _paged(ask: Any, mark: str) -> Iterator[Place]:
    query, last = _PLACES.format(mark, PAGE), ("", "")
    while page := ask(query, last):
        yield from page
        last = page[-1]


def _sqlite_rows(saver: Any, query: str, values: Sequence[str]) -> list[Any]:
    with saver.cursor(transaction=False) as cursor:
        return list(cursor.execute(query, values).fetchall())


def _postgres_rows(conn: Any, query: str, values: Sequence[str]) -> list[Any]:
    if hasattr(conn, "getconn"):  # a pool
        with conn.connection() as one:
            return _postgres_rows(one, query, values)
    return [tuple(row.values()) if isinstance(row, dict) else tuple(row) for row in conn.execute(query, values)]


def _listed(saver: Saver, thread: str | None) -> list[Place]:
    """The places of any checkpointer, through its public `list`: slower, for it reads every checkpoint.

    It is read to its end first: some checkpointers answer no other question while they list.
    """
    config: RunnableConfig | None = None if thread is None else {"configurable": {"thread_id": thread}}
    found = (checkpoint.config["configurable"] for checkpoint in saver.list(config))
    return list(dict.fromkeys((str(keys["thread_id"]), str(keys.get("checkpoint_ns", ""))) for keys in found))


def _is(saver: Saver, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(saver, kind)
