"""Law 9 against kill -9: an answer is applied once and never lost, whenever the process that brings it dies."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.integration.decision_worker import CAP, EXTRA, build, work
from tests.integration.loop_worker import saver
from tests.integration.test_killed import make_tables

SHORT, FULL, KILLS = 8, 100, 4
ALL = CAP + EXTRA

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(["tests.integration.decision_worker", "langgraph.checkpoint.sqlite"])


def run_to_the_end(url: str, thread: str, log: Path, durability: Any, dice: random.Random) -> int:
    """Start workers and kill them until one ends by itself; return how many were killed."""
    killed = 0
    while True:
        worker = processes.Process(target=work, args=(url, thread, str(log), durability))
        worker.start()
        worker.join(dice.uniform(0.02, 0.2) if killed < KILLS else 60)
        if worker.exitcode is None and worker.pid is not None:
            os.kill(worker.pid, signal.SIGKILL)
            killed += 1
            worker.join()
        elif worker.exitcode == 0:
            return killed
        assert worker.exitcode in (0, -signal.SIGKILL)


def check(url: str, thread: str, log: Path) -> None:
    """Both decisions stand, each was applied once, and the loop went exactly as far as they allowed."""
    with saver(url) as checkpointer:
        graph, guard = build(checkpointer)
        state = graph.get_state({"configurable": {"thread_id": thread}})
    ledger = guard.ledger(state)
    first, second = state.values["escalations"].values()
    assert [f"fix {n}" for n in range(1, ALL + 1)] == state.values["log"]
    assert {"reviewer->fixer": ALL, "fixer->reviewer": ALL} == ledger.handoffs
    assert (ALL, 2, EXTRA) == (ledger.cycles, ledger.decisions, ledger.granted("cycles"))
    assert ("retry", "accept") == (first["decision"]["action"], second["decision"]["action"])
    assert [ALL, ALL + 1] == [len(second[key]) for key in ("fixes", "reviews")]
    assert "line 1\n" == state.values["patch"]
    assert ((), ()) == (state.next, state.interrupts)
    visits = {line for line in log.read_text().splitlines() if line.startswith("fix")}
    assert {f"fix {n}" for n in range(1, ALL + 1)} == visits, "nobody was entered who should not have been"


def kill_and_go_on(url_of: Callable[[int], str], folder: Path, times: int) -> None:
    """Kill so often, over as many threads as it takes, one after the other."""
    killed = number = 0
    while killed < times:
        url, log = url_of(number), folder / f"{number}.log"
        durability = "async" if number % 2 else "sync"
        killed += run_to_the_end(url, str(number), log, durability, random.Random(number))
        check(url, str(number), log)
        number += 1


def test_decisions_survive_a_kill_on_sqlite(tmp_path: Path) -> None:
    """A few kills on SQLite files."""
    kill_and_go_on(lambda number: str(tmp_path / f"{number}.sqlite"), tmp_path, SHORT)


@pytest.mark.slow
def test_decisions_survive_a_hundred_kills_on_sqlite(tmp_path: Path) -> None:
    """A hundred kills on SQLite files."""
    kill_and_go_on(lambda number: str(tmp_path / f"{number}.sqlite"), tmp_path, FULL)


@pytest.mark.postgres
def test_decisions_survive_a_kill_on_postgres(tmp_path: Path, fresh_postgres_url: str) -> None:
    """A few kills on PostgreSQL, all threads in one database."""
    make_tables(fresh_postgres_url)
    kill_and_go_on(lambda number: fresh_postgres_url, tmp_path, SHORT)


@pytest.mark.slow
@pytest.mark.postgres
def test_decisions_survive_a_hundred_kills_on_postgres(tmp_path: Path, fresh_postgres_url: str) -> None:
    """A hundred kills on PostgreSQL, all threads in one database."""
    make_tables(fresh_postgres_url)
    kill_and_go_on(lambda number: fresh_postgres_url, tmp_path, FULL)
