"""A queue on SQLite, and the same on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from langgraph_loopguard.queue import EscalationQueue

BACKENDS = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))


@pytest.fixture(scope="session")
def shared_postgres(postgres_url: str) -> str:
    """URL of one database for all tests of the queue: its tables are made once."""
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS queue_tests")
        connection.execute("CREATE DATABASE queue_tests")
    url = postgres_url.rsplit("/", 1)[0] + "/queue_tests"
    queue = EscalationQueue(url)
    queue.migrate()
    queue.close()
    return url


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with the tables and nothing in them, to copy."""
    path = tmp_path_factory.mktemp("queue") / "empty.db"
    queue = EscalationQueue(f"sqlite:///{path}")
    queue.migrate()
    queue.close()
    return path


@pytest.fixture(params=BACKENDS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty queue."""
    if request.param == "postgres":
        import psycopg

        found: str = request.getfixturevalue("shared_postgres")
        with psycopg.connect(found, autocommit=True) as connection:
            connection.execute("TRUNCATE loopguard_escalations, loopguard_records, loopguard_deliveries")
        return found
    path = tmp_path / "queue.db"
    path.write_bytes(request.getfixturevalue("empty_sqlite").read_bytes())
    return f"sqlite:///{path}"


@pytest.fixture
def queue(url: str) -> Iterator[EscalationQueue]:
    """An empty queue on each database."""
    opened = EscalationQueue(url)
    yield opened
    opened.close()


@pytest.fixture
def lite(tmp_path: Path, empty_sqlite: Path) -> Iterator[EscalationQueue]:
    """An empty queue on SQLite, for what no database sees."""
    path = tmp_path / "lite.db"
    path.write_bytes(empty_sqlite.read_bytes())
    opened = EscalationQueue(f"sqlite:///{path}")
    yield opened
    opened.close()
