"""Connections, migrations, and databases that are not there."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlalchemy import text

from langgraph_loopguard.queue import EscalationQueue, Filter, QueueUnavailableError
from langgraph_loopguard.queue.database import parse_url
from langgraph_loopguard.queue.schema import HEAD, VERSION_TABLE, metadata
from tests.queue.rows import fill, record


def test_migrations_make_the_tables(url: str) -> None:
    """What the migrations have made is what the statements are written for."""
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    queue = EscalationQueue(url)
    with queue.database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        found = [change for change in compare_metadata(context, metadata) if "loopguard" in str(change)]
        assert [] == found
        assert HEAD == context.get_current_revision()
    queue.close()


def test_the_latest_migration_is_the_one_that_is_needed() -> None:
    """A migration without its number in the schema, or the other way round, fails here."""
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "langgraph_loopguard.queue:migrations")
    config.set_main_option("path_separator", "os")
    assert [HEAD] == ScriptDirectory.from_config(config).get_heads()


def _open_and_put(url: str, n: int) -> None:
    queue = EscalationQueue(url)
    queue.put(record(n))
    queue.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_several_processes_may_make_the_tables_at_once(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """One makes them, the others wait; nobody fails."""
    url = f"sqlite:///{tmp_path}/new.db" if kind == "sqlite" else request.getfixturevalue("fresh_postgres_url")
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_open_and_put, args=(url, n)) for n in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [0] * 4 == [worker.exitcode for worker in workers]
    queue = EscalationQueue(url)
    assert 4 == len(queue.list().rows)
    queue.close()


def test_tables_of_another_version_are_refused(lite: EscalationQueue, tmp_path: Path) -> None:
    """Newer ones by name; missing ones too, when the queue may not make them."""
    with lite.database.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    lite.close()
    with pytest.raises(QueueUnavailableError, match="does not know.*9999"):
        lite.list()
    bare = EscalationQueue(f"sqlite:///{tmp_path}/bare.db", migrate=False)
    with pytest.raises(QueueUnavailableError, match=f"schema None, this version needs {HEAD}: call migrate"):
        bare.list()
    bare.migrate()
    assert () == bare.list().rows
    bare.close()


def test_other_tables_of_the_database_stay(tmp_path: Path) -> None:
    """A database may be shared with an application that has migrations of its own."""
    import sqlite3

    with sqlite3.connect(tmp_path / "app.db") as connection:
        connection.execute("CREATE TABLE alembic_version (version_num TEXT)")
        connection.execute("INSERT INTO alembic_version VALUES ('theirs')")
    connection.close()
    queue = EscalationQueue(f"sqlite:///{tmp_path}/app.db")
    fill(queue, 1)
    with queue.database.reading() as found:
        assert "theirs" == found.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    queue.close()


@pytest.mark.parametrize(
    "bad",
    ["", "queue.db", "mysql://host/db", "postgresql+asyncpg://h/d", "sqlite+aiosqlite:///q", "sqlite://", "x://y"],
)
def test_urls_of_other_kinds_are_refused(bad: str) -> None:
    """At construction, with what it must be."""
    with pytest.raises(ValueError, match="url must"):
        EscalationQueue(bad)


def test_postgres_urls_name_the_driver() -> None:
    """Whichever of the usual spellings."""
    for given in ("postgres://u@h/d", "postgresql://u@h/d", "postgresql+psycopg://u@h/d"):
        assert "postgresql+psycopg" == parse_url(given).drivername


@pytest.mark.parametrize(
    "url", ["postgresql://ada:geheim@127.0.0.1:1/queue", "sqlite:////nowhere/that/exists/queue.db"]
)
def test_a_database_that_is_not_there_is_named_without_its_password(url: str) -> None:
    """One error for all of them, that says where and why."""
    queue = EscalationQueue(url)
    for operation in (queue.list, queue.health, lambda: queue.put(record(1)), lambda: queue.decide("x", {})):
        with pytest.raises(QueueUnavailableError, match="127.0.0.1|nowhere") as failed:
            operation()
        assert "geheim" not in str(failed.value)
    assert "geheim" not in repr(queue)
    queue.close()


def test_threads_share_a_queue(queue: EscalationQueue) -> None:
    """Each puts its own, all are there."""
    threads = [threading.Thread(target=queue.put, args=(record(n),)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 20 == len(queue.list(Filter(state=None)).rows)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_opens_connections_of_its_own(queue: EscalationQueue) -> None:
    """A worker that is forked after the queue was used; parent and child both go on."""
    fill(queue, 1)
    child = os.fork()
    if child == 0:
        try:
            done = queue.put(record(7)) and len(queue.list().rows) == 2
            os._exit(0 if done else 1)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    assert 0 == os.waitstatus_to_exitcode(status)
    assert 2 == len(queue.list().rows)


def test_the_extra_is_named_where_it_is_missing() -> None:
    """Without SQLAlchemy the package is imported all the same, and its name says what to install."""
    code = "import sys; sys.modules['sqlalchemy'] = None; from langgraph_loopguard import queue; queue.EscalationQueue"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert 1 == done.returncode
    assert done.stderr.strip().endswith("EscalationQueue needs sqlalchemy: pip install 'langgraph-loopguard[queue]'")
