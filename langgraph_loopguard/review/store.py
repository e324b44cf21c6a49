"""What a review remembers between runs, in SQLite, outside the repository that is reviewed.

An attempt is reserved, on disk, before the reviewer starts, and finished after it: a machine that is killed loses at
most the attempt in flight, and that one can be read and counts.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langgraph_loopguard.review.errors import ReviewError
from langgraph_loopguard.review.models import Attempt, Evidence, Finding
from langgraph_loopguard.review.times import now

SCHEMA_VERSION = 1

TABLES = """
CREATE TABLE attempts (n INTEGER PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE findings (id TEXT PRIMARY KEY, position INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE evidence (n INTEGER PRIMARY KEY AUTOINCREMENT, data TEXT NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, data TEXT NOT NULL);
"""

KEPT_EVIDENCE = 200
"""Results of checks that are kept, the latest ones: a check that cannot run is tried again at every run."""

COUNTED = ("recorded", "failed", "timed_out")
"""Attempts that have a result, which an identical question takes again."""


@dataclass(frozen=True)
class Memory:
    """All that is remembered of one change.

    Attributes:
        attempts: All attempts, the first one first.
        findings: All findings.
        evidence: All evidence, in the order of time.
        facts: Named values: the round, the budget, the files of the last round, the hand-off.
    """

    attempts: list[Attempt] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def last_with_result(self) -> Attempt | None:
        """Return the last attempt that came to an end of its own; interrupted ones are passed over."""
        return next((attempt for attempt in reversed(self.attempts) if attempt.status in COUNTED), None)

    def recurring(self) -> list[str]:
        """Return the findings that were open at the end of each of the last two recorded reviews."""
        recorded = [attempt for attempt in self.attempts if attempt.status == "recorded"]
        if len(recorded) < 2:
            return []
        before = set(recorded[-2].open_after)
        return [identity for identity in recorded[-1].open_after if identity in before]


class ReviewStore:
    """The store of one change.

    Args:
        path: The SQLite file; it is made when it is not there.

    Raises:
        ReviewError: A newer version of the library wrote it, or it is no such file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._open() as connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            _check_version(version, path)
            if version == 0:
                connection.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                yield connection
        except sqlite3.DatabaseError as error:
            msg = f"the store {str(self.path)!r} cannot be used: {error}"
            raise ReviewError(msg) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            connection.execute("COMMIT")

    def load(self) -> Memory:
        """Return all that is remembered."""
        with self._open() as connection:
            return _load(connection)

    def reserve(self, attempt: Attempt) -> Attempt:
        """Write an attempt down before its reviewer starts; return it with its number."""
        with self._transaction() as connection:
            (last,) = connection.execute("SELECT coalesce(max(n), 0) FROM attempts").fetchone()
            attempt = attempt.model_copy(update={"n": last + 1, "status": "reserved"})
            connection.execute("INSERT INTO attempts VALUES (?, ?)", (attempt.n, attempt.model_dump_json()))
        return attempt

    def finish(self, attempt: Attempt, **facts: Any) -> None:
        """Write down how an attempt ended."""
        with self._transaction() as connection:
            _put_attempt(connection, attempt)
            _put_facts(connection, facts)

    def interrupt(self) -> list[Attempt]:
        """Mark attempts that a killed process left reserved; call it under the lock. Returns them."""
        left = [attempt for attempt in self.load().attempts if attempt.status == "reserved"]
        with self._transaction() as connection:
            for attempt in left:
                _put_attempt(connection, interrupted(attempt, "the process that ran it is gone"))
        return left

    def save(
        self,
        findings: Sequence[Finding],
        evidence: Sequence[Evidence] = (),
        attempt: Attempt | None = None,
        **facts: Any,
    ) -> None:
        """Write what a pass has come to, all of it or nothing.

        Args:
            findings: All findings; they replace those that are there.
            evidence: New evidence.
            attempt: The attempt that brought it.
            **facts: Named values.
        """
        with self._transaction() as connection:
            connection.execute("DELETE FROM findings")
            rows = [(finding.id, n, finding.model_dump_json()) for n, finding in enumerate(findings)]
            connection.executemany("INSERT INTO findings VALUES (?, ?, ?)", rows)
            for item in evidence:
                connection.execute("INSERT INTO evidence (data) VALUES (?)", (item.model_dump_json(),))
            connection.execute("DELETE FROM evidence WHERE n <= (SELECT max(n) FROM evidence) - ?", (KEPT_EVIDENCE,))
            if attempt is not None:
                _put_attempt(connection, attempt)
            _put_facts(connection, facts)

    def note(self, **facts: Any) -> None:
        """Write named values."""
        with self._transaction() as connection:
            _put_facts(connection, facts)


def read_memory(path: Path) -> Memory | None:
    """Return what a store remembers without writing anything, not even a lock; `None` when there is none.

    A store that was left in the middle of a write is copied, and read where it may be put right.

    Raises:
        ReviewError: It cannot be read.
    """
    if not path.exists():
        return None
    try:
        return _read(path, f"{path.resolve().as_uri()}?mode=ro")
    except sqlite3.OperationalError:
        pass  # its writer was killed in the middle of a write, and to put it right would be to write
    except sqlite3.DatabaseError as error:
        raise _unreadable(path, error) from error
    with tempfile.TemporaryDirectory(prefix="loopguard-read-") as folder:
        for name in (path.name, f"{path.name}-journal"):
            if path.with_name(name).exists():
                shutil.copy2(path.with_name(name), folder)
        try:
            return _read(path, Path(folder, path.name).as_uri())
        except sqlite3.DatabaseError as error:
            raise _unreadable(path, error) from error


def _read(path: Path, uri: str) -> Memory:
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None, timeout=30)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        _check_version(version, path)
        return _load(connection) if version else Memory()


def _unreadable(path: Path, error: sqlite3.DatabaseError) -> ReviewError:
    return ReviewError(f"the store {str(path)!r} cannot be read: {error}")


def interrupted(attempt: Attempt, why: str) -> Attempt:
    """Return an attempt as one that was interrupted."""
    return attempt.model_copy(update={"status": "interrupted", "error": why, "finished_at": now()})


def _check_version(version: int, path: Path) -> None:
    if version > SCHEMA_VERSION:
        msg = f"the store {str(path)!r} has version {version}, this library knows {SCHEMA_VERSION}: update the library"
        raise ReviewError(msg)


def _load(connection: sqlite3.Connection) -> Memory:
    def rows(query: str) -> list[Any]:
        return [row[0] for row in connection.execute(query)]

    return Memory(
        attempts=[Attempt.model_validate_json(data) for data in rows("SELECT data FROM attempts ORDER BY n")],
        findings=[Finding.model_validate_json(data) for data in rows("SELECT data FROM findings ORDER BY position")],
        evidence=[Evidence.model_validate_json(data) for data in rows("SELECT data FROM evidence ORDER BY n")],
        facts={name: json.loads(data) for name, data in connection.execute("SELECT name, data FROM facts")},
    )


def _put_attempt(connection: sqlite3.Connection, attempt: Attempt) -> None:
    connection.execute("UPDATE attempts SET data = ? WHERE n = ?", (attempt.model_dump_json(), attempt.n))


def _put_facts(connection: sqlite3.Connection, facts: dict[str, Any]) -> None:
    for name, value in facts.items():
        connection.execute(
            "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET data = excluded.data",
            (name, json.dumps(value)),
        )
