"""Many processes at one queue: one winner, each decision applied once, whoever is killed; a database comes back."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraph_loopguard.queue import EscalationQueue, Filter, QueueUnavailableError
from tests.graph.pairs import records, thread
from tests.integration.loop_worker import saver
from tests.queue.rows import fill
from tests.queue.worker import decide_all, decide_open, deliver, escalate, graph

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")]

BACKENDS = ("sqlite", pytest.param("postgres", marks=pytest.mark.postgres))
RACES, RACERS = 1_000, 8
EXTRA = 2

context = multiprocessing.get_context("fork")


@pytest.fixture(params=BACKENDS)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """URLs of a queue and of a checkpointer with its tables."""
    if request.param == "sqlite":
        url, threads = f"sqlite:///{tmp_path}/queue.db", str(tmp_path / "threads.db")
        with saver(threads) as checkpointer:
            checkpointer.setup()
        return url, threads
    url = request.getfixturevalue("fresh_postgres_url")
    with saver(url) as checkpointer:
        checkpointer.setup()
    return url, url


def start(target: Callable[..., None], *args: Any) -> Any:
    """Start a process."""
    process = context.Process(target=target, args=args)
    process.start()
    return process


def finish(processes: list[Any]) -> None:
    """Wait for processes; none may have failed."""
    for process in processes:
        process.join(100)
    assert [0] * len(processes) == [process.exitcode for process in processes]


def test_of_many_processes_one_decides(urls: tuple[str, str], tmp_path: Path) -> None:
    """A thousand rows, eight processes at each at the same moment: one winner, and the others are told its name."""
    url, _ = urls
    queue = EscalationQueue(url)
    ids = fill(queue, RACES)
    queue.close()
    barrier, results = context.Barrier(RACERS), tmp_path / "results"
    finish([start(decide_all, url, ids, f"person-{n}", barrier, results) for n in range(RACERS)])
    lines = [line.split() for line in results.read_text().splitlines()]
    assert RACES * RACERS == len(lines)
    winners = {one: name for one, what, name in lines if what == "won"}
    assert RACES == len(winners) == sum(what == "won" for _, what, _ in lines)
    assert all(name == winners[one] for one, _, name in lines)
    decided = {row.id: row.owner for row in queue.list(Filter(state="decided"), limit=1000).rows}
    assert winners == decided
    queue.close()


def test_killed_deliverers_apply_each_decision_once(urls: tuple[str, str]) -> None:
    """Eight processes deliver, and are killed at random moments: every thread has made its extra cycles, once."""
    url, threads = urls
    names = [f"t{n}" for n in range(40)]
    escalate(url, threads, names)
    queue = EscalationQueue(url)
    for row in queue.list(limit=1000).rows:
        queue.decide(row.id, {"action": "retry", "extra_cycles": EXTRA}, by="ada")
    queue.close()
    chance = random.Random(7)
    processes = [start(deliver, url, threads) for _ in range(8)]
    kills = 0
    while kills < 24:
        time.sleep(chance.uniform(0.02, 0.25))
        at = chance.randrange(len(processes))
        if processes[at].is_alive():
            os.kill(processes[at].pid, signal.SIGKILL)
            kills += 1
        processes[at].join()
        if processes[at].exitcode == 0:
            break
        processes[at] = start(deliver, url, threads)
    finish(processes)
    assert kills
    with saver(threads) as checkpointer:
        app = graph(checkpointer)
        for name in names:
            state = app.get_state(thread(name))
            assert [f"fix {n}" for n in range(1, 2 + EXTRA)] == state.values["log"]
            assert ["retry", None] == [(one["decision"] or {}).get("action") for one in records(app, thread(name))]
            assert 1 == len(state.interrupts)
        done = queue.reconcile(app)
    applied = queue.list(Filter(state="applied"), limit=1000).rows
    assert set(names) == {row.thread_id for row in applied}
    assert len(names) == len(applied) == len(done.added)
    queue.close()


@pytest.mark.postgres
def test_a_team_clears_its_queue(fresh_postgres_url: str) -> None:
    """Escalating, deciding and delivering at the same time, three processes each: every graph ends as decided."""
    url = fresh_postgres_url
    with saver(url) as checkpointer:
        checkpointer.setup()
    queue = EscalationQueue(url)
    queue.migrate()
    queue.close()
    names = [f"t{n}" for n in range(200)]
    makers = [start(escalate, url, url, names[n::3]) for n in range(3)]
    people = [start(decide_open, url, f"person-{n}", len(names)) for n in range(3)]
    while not queue.list(Filter(state="decided"), limit=1).rows:
        time.sleep(0.05)
    queue.close()
    couriers = [start(deliver, url, url) for _ in range(3)]
    finish([*makers, *people, *couriers])
    deliver(url, url)
    rows = {row.thread_id: row for row in queue.list(Filter(state=None), limit=1000).rows}
    assert set(names) == set(rows)
    assert Counter({"applied": len(names)}) == Counter(row.state for row in rows.values())
    with saver(url) as checkpointer:
        app = graph(checkpointer)
        for name in names:
            state = app.get_state(thread(name))
            (record,) = state.values["escalations"].values()
            assert ((), ["fix 1"], rows[name].decision) == (state.next, state.values["log"], record["decision"])
    queue.close()


@pytest.mark.postgres
def test_a_database_that_goes_and_comes_back(tmp_path: Path) -> None:
    """Down while a run escalates, while a person decides, while a decision is delivered: then the state is whole."""
    from tests.services import postgres_binaries, postgres_server

    binaries = postgres_binaries()
    if binaries is None:
        pytest.skip("PostgreSQL is not installed")
    threads = str(tmp_path / "threads.db")
    with saver(threads) as checkpointer:
        checkpointer.setup()
        with postgres_server(binaries) as url:
            queue = EscalationQueue(url)
            app = graph(checkpointer, queue)
            app.invoke({}, thread("a"))
            (row,) = queue.list().rows
            _stop_connections(url)
            assert "open" == queue.show(row.id).state  # a connection that was cut off is replaced
        app.invoke({}, thread("b"))
        assert 1 == len(app.get_state(thread("b")).interrupts)
        for operation in (
            queue.list,
            lambda: queue.decide(row.id, {"action": "accept"}),
            lambda: queue.deliver(app),
            lambda: queue.reconcile(app),
        ):
            with pytest.raises(QueueUnavailableError, match=r"127\.0\.0\.1"):
                operation()
        queue.close()
        with postgres_server(binaries) as url:  # restored as it was lost: empty
            back = EscalationQueue(url)
            assert 2 == len(back.reconcile(app).added)
            for found in back.list().rows:
                back.decide(found.id, {"action": "accept"}, by="ada")
            assert ["applied", "applied"] == [one.outcome for one in back.deliver(app)]
            assert all(() == app.get_state(thread(name)).next for name in ("a", "b"))
            back.close()


def _stop_connections(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'loopguard'"
        )
