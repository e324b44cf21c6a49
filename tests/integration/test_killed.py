"""Laws 1, 2 and 8 against kill -9: a process dies at a random moment, another one goes on, again and again."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.loop_worker import CAP, build, saver

ROOT = Path(__file__).parent.parent.parent
WORKER = "tests.integration.loop_worker"
SHORT, FULL, KILLS = 8, 100, 4


def run_to_the_end(url: str, thread: str, log: Path, dice: random.Random) -> int:
    """Start workers and kill them until one ends by itself; return how many were killed."""
    killed = 0
    while True:
        worker = subprocess.Popen(
            [sys.executable, "-m", WORKER, url, thread, str(log)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        # Most of the first second goes into imports; the loop itself takes about a tenth of one.
        lines = len(log.read_text().splitlines()) if log.exists() else 0
        deadline = time.monotonic() + 60
        while worker.poll() is None and time.monotonic() < deadline:
            now = len(log.read_text().splitlines()) if log.exists() else 0
            if now > lines and killed < KILLS:
                time.sleep(dice.uniform(0, 0.03))
                worker.kill()
                break
            time.sleep(0.001)
        error = worker.communicate()[1].decode()
        if worker.returncode == 0:
            return killed
        assert worker.returncode == -9, error
        killed += 1


def check(url: str, thread: str, log: Path) -> None:
    """The ledger counts each handoff once, nobody was entered too often, and the record is whole."""
    visits = Counter(log.read_text().split())
    with saver(url) as checkpointer:
        graph, guard = build(checkpointer)
        snapshot = graph.get_state({"configurable": {"thread_id": thread}})
        history = list(graph.get_state_history({"configurable": {"thread_id": thread}}))
    ledger = guard.ledger(snapshot)
    record = snapshot.values["escalation"]
    # What ran and was not committed ran again: the log may show more visits, never fewer.
    assert ledger.handoffs == {"reviewer->fixer": CAP, "fixer->reviewer": CAP}
    assert ledger.visits == {"reviewer": CAP + 1, "fixer": CAP}
    assert visits["fixer"] >= CAP
    assert visits["reviewer"] >= CAP + 1
    assert sum(state.next == ("fixer",) for state in history) == CAP
    assert [fix["content"]["patch"] for fix in record["fixes"]] == [f"fix {n}\n" for n in range(1, CAP + 1)]
    assert [review["content"]["review"] for review in record["reviews"]] == [f"remark {n}" for n in range(CAP + 1)]
    assert len(snapshot.values["escalations"]) == 1
    assert len(snapshot.interrupts) == 1


def make_tables(url: str) -> None:
    """Set the saver's tables up, once: it cannot be done twice at the same moment."""
    with saver(url) as checkpointer:
        checkpointer.setup()


def kill_and_go_on(url_of: Callable[[int], str], folder: Path, times: int) -> None:
    """Do it for as many threads as that number of kills takes, two at a time."""

    def one(number: int) -> int:
        url, log = url_of(number), folder / f"{number}.log"
        killed = run_to_the_end(url, str(number), log, random.Random(number))
        check(url, str(number), log)
        return killed

    # A worker may come to its end before its last kill, so the number of threads is not known beforehand.
    killed, number = 0, 0
    with ThreadPoolExecutor(2) as pool:
        while killed < times:
            more = max(2, (times - killed) // KILLS)
            killed += sum(pool.map(one, range(number, number + more)))
            number += more


def test_killed_on_sqlite(tmp_path: Path) -> None:
    """A few kills on SQLite files."""
    kill_and_go_on(lambda number: str(tmp_path / f"{number}.sqlite"), tmp_path, SHORT)


@pytest.mark.slow
def test_killed_a_hundred_times_on_sqlite(tmp_path: Path) -> None:
    """A hundred kills on SQLite files."""
    kill_and_go_on(lambda number: str(tmp_path / f"{number}.sqlite"), tmp_path, FULL)


@pytest.mark.postgres
def test_killed_on_postgres(tmp_path: Path, fresh_postgres_url: str) -> None:
    """A few kills on PostgreSQL, all threads in one database."""
    make_tables(fresh_postgres_url)
    kill_and_go_on(lambda number: fresh_postgres_url, tmp_path, SHORT)


@pytest.mark.slow
@pytest.mark.postgres
def test_killed_a_hundred_times_on_postgres(tmp_path: Path, fresh_postgres_url: str) -> None:
    """A hundred kills on PostgreSQL, all threads in one database."""
    make_tables(fresh_postgres_url)
    kill_and_go_on(lambda number: fresh_postgres_url, tmp_path, FULL)
