"""Where runs are read from: memory, SQLite and PostgreSQL, never written to, and memory that does not grow."""

from __future__ import annotations

import os
import sqlite3
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from langgraph_loopguard.report import LoopRun, ReportError, read_loops, report
from langgraph_loopguard.report import source as source_module
from tests.graph.pairs import builder_of, thread
from tests.report.runs import every_end


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with every end."""
    path = tmp_path_factory.mktemp("runs") / "a b?#%.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        every_end(saver)
    return path


def comparable(rows: Any) -> list[dict[str, Any]]:
    """Rows without what differs from run to run, by thread."""
    plain = [{k: v for k, v in one.to_json().items() if k not in ("seconds", "seconds_after", "at")} for one in rows]
    return sorted(plain, key=lambda one: str(one["thread"]))


def test_a_path_a_saver_and_memory_say_the_same(database: Path) -> None:
    """As text and as `Path`; from the file's own saver; one thread alone."""
    expected = comparable(report(every_end()).loops)
    assert expected == comparable(report(database).loops) == comparable(report(str(database)).loops)
    with SqliteSaver.from_conn_string(str(database)) as saver:
        assert expected == comparable(report(saver).loops)
        assert 2 == report(saver, thread("complete")).loops[0].spent.cycles
        assert 5 == len(report(builder_of().compile(checkpointer=saver), thread("complete")).visits)
    assert 5 == len(report(database, thread("complete")).visits)


def test_reading_writes_nothing(database: Path) -> None:
    """The file stays as it is, to the byte."""
    before = database.read_bytes()
    report(database)
    report(database, thread("retried"))
    assert before == database.read_bytes()


def test_a_file_that_must_not_be_written_can_be_read(database: Path, tmp_path: Path) -> None:
    """A backup, for example: not even the tables are looked after."""
    copy = tmp_path / "backup.sqlite"
    with closing(sqlite3.connect(database)) as conn, closing(sqlite3.connect(copy)) as target:
        conn.backup(target)
    copy.chmod(0o444)
    assert 9 == report(copy).summary.loops


def test_pages_hold_every_thread_once(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever their size, and threads that are alike in their beginnings."""
    everything = comparable(report(database).loops)
    for size in (1, 2, 9, 10):
        monkeypatch.setattr(source_module, "PAGE", size)
        assert everything == comparable(report(database).loops)


def test_memory_does_not_grow_with_the_threads(tmp_path: Path) -> None:
    """Five times the threads, read one after the other: far from five times the memory."""
    path = tmp_path / "many.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        every_end(saver)
    with closing(sqlite3.connect(path)) as conn, conn:
        for table in ("checkpoints", "writes"):
            kept = ", ".join(r[1] for r in conn.execute(f"PRAGMA table_info({table})") if r[1] != "thread_id")
            for copy in range(200):
                conn.execute(
                    f"INSERT INTO {table} (thread_id, {kept}) SELECT thread_id || '-{copy}', {kept} FROM {table}"
                    " WHERE thread_id IN ('complete', 'escalated', 'retried')"
                )
    peaks = []
    for limit in (120, 120, 600):  # the first one fills caches
        tracemalloc.start()
        rows = read_loops(path)
        assert limit == sum(1 for _, _ in zip(range(limit), rows, strict=False))
        rows.close()  # type: ignore[attr-defined]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] < 1.6 * peaks[1]


def test_threads_may_be_deleted_meanwhile() -> None:
    """A place that is empty when its turn comes is passed over."""
    saver = every_end()
    rows = iter(read_loops(saver))
    first: LoopRun = next(rows)
    for name in ("at once", "complete", "escalated", "accepted", "retried", "again", "blocked", "watched", "open"):
        if name != first.thread:
            saver.delete_thread(name)
    assert [] == list(rows)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nowhere.sqlite", "there is no file 'nowhere.sqlite'"),
        (Path("/"), "there is no file '/'"),
        (builder_of().compile(), "has no checkpointer"),
        (builder_of().compile(checkpointer=True), "has no checkpointer"),
        (17, "source must be a compiled graph, a checkpointer, a path or a URL, got 17"),
    ],
)
def test_what_cannot_be_read(source: Any, message: str) -> None:
    """Says so in one line."""
    with pytest.raises(ReportError, match=message):
        report(source)


def test_files_that_are_something_else(tmp_path: Path) -> None:
    """No database, or none of LangGraph's; and nothing is made of them."""
    text, other = tmp_path / "text", tmp_path / "other.sqlite"
    text.write_text("x" * 5000)
    with closing(sqlite3.connect(other)) as conn, conn:
        conn.execute("CREATE TABLE t (a)")
    with pytest.raises(ReportError, match="no SQLite database that can be read"):
        report(text)
    with pytest.raises(ReportError, match="holds no checkpoints"):
        report(other)
    with closing(sqlite3.connect(other)) as conn:
        assert [("t",)] == conn.execute("SELECT name FROM sqlite_master").fetchall()


async def test_a_saver_of_an_event_loop_is_refused(tmp_path: Path) -> None:
    """It could only be asked from there: the message says what to give instead."""
    path = str(tmp_path / "a.sqlite")
    async with AsyncSqliteSaver.from_conn_string(path) as saver:
        await saver.setup()
        with pytest.raises(ReportError, match="AsyncSqliteSaver answers its own event loop only: .* path or URL"):
            report(saver)
        assert 0 == report(path).summary.loops


def test_another_saver_is_read_through_its_public_list() -> None:
    """One that is of no known kind."""

    class Other(InMemorySaver):
        listed = 0

        def list(self, *args: Any, **kwargs: Any) -> Any:
            self.listed += 1
            return super().list(*args, **kwargs)

    saver = every_end(Other())
    assert 9 == report(saver).summary.loops
    assert 1 == saver.listed


def test_a_database_that_cannot_be_reached_shows_no_password() -> None:
    """The URL stays out of the message."""
    with pytest.raises(ReportError, match="PostgreSQL cannot be reached") as caught:
        report("postgresql://u:secret@[bad")
    assert "secret" not in str(caught.value)


@pytest.mark.postgres
def test_postgres_by_url_by_saver_and_by_pool(fresh_postgres_url: str) -> None:
    """The same rows as in memory, page by page; one thread with its visits; nothing but LangGraph's tables."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    with pytest.raises(ReportError, match="holds no checkpoints"):
        report(fresh_postgres_url)
    with PostgresSaver.from_conn_string(fresh_postgres_url) as saver:
        saver.setup()
        every_end(saver)
        expected = comparable(report(every_end()).loops)
        assert expected == comparable(report(saver).loops)
    assert expected == comparable(report(fresh_postgres_url).loops)
    found = report(fresh_postgres_url, thread("retried"))
    assert ["reviewer", "fixer"] == [visit.node for visit in found.visits[:2]]
    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    with ConnectionPool(fresh_postgres_url, kwargs=options, min_size=1, max_size=2) as pool:
        assert expected == comparable(report(PostgresSaver(pool)).loops)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a terminal of its own")
def test_long_reads_show_progress(database: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """On the standard error, when it is a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    report(database, progress=True)
    assert "9/9" in capsys.readouterr().err
    monkeypatch.delenv("FORCE_COLOR")
    report(database, progress=True)
    assert "" == capsys.readouterr().err
