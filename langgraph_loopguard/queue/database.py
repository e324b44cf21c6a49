"""The database behind a queue: connections, transactions, the clock, and the schema's version.

SQLite runs in WAL mode, and each write takes the lock at its beginning: a transaction that reads first and writes later
would fail rather than wait. Everybody's clock is the database's, so that leases mean the same on all machines.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from langgraph_loopguard.queue.errors import QueueUnavailableError
from langgraph_loopguard.queue.schema import HEAD, VERSION_TABLE

BUSY_SECONDS = 30
"""How long a write waits for other writers of an SQLite file."""

CONNECT_SECONDS = 5
"""How long a connection to PostgreSQL may take: a graph that escalates waits for it."""

MIGRATION_LOCK = 0x6C6F6F7067756172
"""PostgreSQL's advisory lock around a migration."""

MICROS = 1_000_000


class Database:
    """Connections to one database. Safe to share among threads, and to carry over a fork."""

    def __init__(self, url: str, *, migrate: bool = True) -> None:
        self.url = parse_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._migrate = migrate
        self._lock = threading.Lock()
        self._engine: Engine | None = None
        self._pid = 0

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        return self.url.render_as_string(hide_password=True)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction that only reads.

        Raises:
            QueueUnavailableError: The database cannot be reached, or has tables of another version.
        """
        with self._transaction(self._ready(), write=False) as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction that is committed at the end, or rolled back by an exception.

        Raises:
            QueueUnavailableError: The database cannot be reached, or has tables of another version.
        """
        with self._transaction(self._ready(), write=True) as connection:
            yield connection

    def now(self, connection: Connection) -> int:
        """Return the database's time, in microseconds since the epoch."""
        if self.is_sqlite:
            return time.time_ns() // 1_000
        found = connection.execute(text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"))
        return int(found.scalar_one())

    def migrate(self) -> None:
        """Bring the tables to this version. Several processes may do it at once.

        Raises:
            QueueUnavailableError: The database cannot be reached, or its tables are newer than this version.
        """
        with self._transaction(self._engine_here(), write=True) as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            if _version(connection) != HEAD:
                _upgrade(connection, self.name)

    def close(self) -> None:
        """Close all connections. The next use opens new ones."""
        with self._lock:
            if self._engine is not None and self._pid == os.getpid():
                self._engine.dispose()
            self._engine = None

    def _ready(self) -> Engine:
        """The engine, once the tables are known to be of this version."""
        engine = self._engine_here()
        if engine.get_execution_options().get("loopguard_ready"):
            return engine
        with self._transaction(engine, write=False) as connection:
            found = _version(connection)
        if found != HEAD:
            if not self._migrate:
                msg = f"the queue at {self.name} has schema {found}, this version needs {HEAD}: call migrate()"
                raise QueueUnavailableError(msg)
            self.migrate()
        engine.update_execution_options(loopguard_ready=True)
        return engine

    def _engine_here(self) -> Engine:
        """The engine of this process: connections do not survive a fork."""
        with self._lock:
            if self._engine is None or self._pid != os.getpid():
                if self._engine is not None:
                    self._engine.dispose(close=False)
                self._engine, self._pid = self._make(), os.getpid()
            return self._engine

    def _make(self) -> Engine:
        if self.is_sqlite:
            engine = create_engine(self.url, connect_args={"timeout": BUSY_SECONDS})
            event.listen(engine, "connect", _prepare_sqlite)
            event.listen(engine, "begin", _begin_sqlite)
            return engine
        arguments = {"connect_timeout": CONNECT_SECONDS, "application_name": "loopguard"}
        return create_engine(self.url, connect_args=arguments, pool_pre_ping=True)

    @contextmanager
    def _transaction(self, engine: Engine, *, write: bool) -> Iterator[Connection]:
        try:
            with engine.connect().execution_options(loopguard_write=write) as connection, connection.begin():
                yield connection
        except DBAPIError as error:
            msg = f"the queue at {self.name} failed: {' '.join(str(error.orig).split())}"
            raise QueueUnavailableError(msg) from error


def parse_url(url: str) -> URL:
    """Return a database URL with the driver that is used here.

    Raises:
        ValueError: It is no URL of an SQLite file or a PostgreSQL database.
    """
    given = "postgresql://" + url.removeprefix("postgres://") if url.startswith("postgres://") else url
    try:
        parsed = make_url(given)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError):
        msg = "url must be like sqlite:///queue.db or postgresql://user@host/database; this one cannot be read"
        raise ValueError(msg) from None
    drivers = {"sqlite": ("sqlite", "sqlite+pysqlite"), "postgresql": ("postgresql", "postgresql+psycopg")}
    if parsed.drivername not in drivers.get(backend, ()):
        msg = f"url must begin with sqlite:// or postgresql://, got {parsed.drivername}://"
        raise ValueError(msg)
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.database in (None, "", ":memory:"):
        msg = f"url must name a file: a queue in memory is gone with its process, got {url!r}"
        raise ValueError(msg)
    return parsed


def sqlite_file(url: str) -> Path | None:
    """Return the file of an SQLite URL; `None` for other databases."""
    parsed = parse_url(url)
    return Path(str(parsed.database)) if parsed.get_backend_name() == "sqlite" else None


def _prepare_sqlite(connection: sqlite3.Connection, _: Any) -> None:
    connection.isolation_level = None  # transactions begin where `_begin_sqlite` says, and nowhere else
    cursor = connection.cursor()
    end = time.monotonic() + BUSY_SECONDS
    # A file that several processes open for the first time: the switch to WAL does not wait for the lock by itself.
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    write = connection.get_execution_options().get("loopguard_write")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")


def _version(connection: Connection) -> str | None:
    """The migration that the tables are; `None` where there are none."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    found = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()
    return None if found is None else str(found)


def _upgrade(connection: Connection, name: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", "langgraph_loopguard.queue:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        msg = f"the queue at {name} has a schema that this version does not know: {error}"
        raise QueueUnavailableError(msg) from error
