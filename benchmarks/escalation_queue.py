"""How long lists, filters and health take with many escalations in the queue, on SQLite and PostgreSQL.

    python benchmarks/escalation_queue.py [ROWS]

Prints milliseconds: the median and the slowest of 20 calls. Nine of ten rows are decided and applied, and rows hold the
records of real loops in size (2 kB).
"""

from __future__ import annotations

import hashlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from sqlalchemy import insert, text

from langgraph_loopguard.queue import EscalationQueue, Filter
from langgraph_loopguard.queue.schema import escalations, records
from langgraph_loopguard.queue.statements import dump, row_of

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.services import postgres_binaries, postgres_server

WORDS = ["null", "default", "import", "cache", "retry", "timeout", "parser", "index", "token", "schema", "path", "lock"]
CALLS = 20
BATCH = 5_000


def record(n: int, now: datetime) -> dict[str, Any]:
    """The nth of many records, of the last thirty days."""
    chance = random.Random(n)
    words = " ".join(chance.choices(WORDS, k=6))
    return {
        "id": hashlib.md5(str(n).encode()).hexdigest(),
        "thread_id": f"thread-{n}",
        "loop": f"loop-{n % 20}",
        "edge": "reviewer->fixer",
        "reason": {"condition": "MaxCycles", "message": "cycle 4 was asked for, the cap is 3"},
        "question": f"reviewer and fixer have not come to an end after 3 cycles: cycle 4 was asked for. {words}",
        "reviews": [{"content": {"review": f"Please handle {words}. " * 3}}],
        "diff": f"+{words}\n" * 40,
        "created_at": (now - timedelta(seconds=chance.random() * 30 * 86_400)).isoformat(),
    }


def fill(queue: EscalationQueue, count: int) -> None:
    """Write many rows, one in ten of them open."""
    now = datetime.now(timezone.utc)
    for start in range(0, count, BATCH):
        found = [record(n, now) for n in range(start, min(count, start + BATCH))]
        rows = [row_of(one, graph="", now=0) for one in found]
        for n, row in enumerate(rows):
            row |= {"state": "open" if n % 10 == 0 else "applied", "owner": f"person-{n % 50}"}
        with queue.database.writing() as connection:
            connection.execute(insert(escalations), rows)
            connection.execute(insert(records), [{"id": one["id"], "record": dump(one)} for one in found])
    if not queue.database.is_sqlite:
        with queue.database.writing() as connection:
            connection.execute(text("ANALYZE loopguard_escalations"))


def calls(queue: EscalationQueue) -> dict[str, Callable[[], Any]]:
    """What people and probes ask."""
    middle = queue.list(Filter(state=None), limit=1000)
    for _ in range(3):
        middle = queue.list(Filter(state=None), limit=1000, after=middle.next)
    return {
        "list, open, 50 rows": lambda: queue.list(),
        "list, any state, 50 rows": lambda: queue.list(Filter(state=None)),
        "list, a page in the middle": lambda: queue.list(Filter(state=None), after=middle.next),
        "filter: loop": lambda: queue.list(Filter(state=None, loop="loop-7")),
        "filter: owner": lambda: queue.list(Filter(state=None, owner="person-7")),
        "filter: age over 20 days": lambda: queue.list(Filter(min_age=20 * 86_400)),
        "filter: claimed": lambda: queue.list(Filter(claimed=True)),
        "filter: text, common": lambda: queue.list(Filter(text="cache")),
        "filter: text, in none of the open": lambda: queue.list(Filter(text="nowhere at all")),
        "filter: text, in none of all": lambda: queue.list(Filter(state=None, text="nowhere at all")),
        "health": queue.health,
        "show": lambda: queue.show(middle.rows[0].id),
    }


def measure(call: Callable[[], Any]) -> tuple[float, float]:
    """Return the median and the slowest call, in milliseconds."""
    call()
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        call()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times), max(times)


@contextmanager
def urls() -> Iterator[dict[str, str]]:
    """The databases that there are."""
    with tempfile.TemporaryDirectory() as folder:
        found = {"SQLite": f"sqlite:///{folder}/queue.db"}
        binaries = postgres_binaries()
        if binaries is None:
            yield found
            return
        with postgres_server(binaries) as url:
            yield {**found, "PostgreSQL": url}


def main() -> None:
    """Fill and measure each database."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with urls() as databases:
        for name, url in databases.items():
            queue = EscalationQueue(url)
            start = time.perf_counter()
            fill(queue, count)
            table = Table(title=f"{name}, {count:,} rows (written in {time.perf_counter() - start:.0f} s)")
            for column in ("", "median ms", "slowest ms"):
                table.add_column(column, justify="right" if column else "left")
            for what, call in calls(queue).items():
                median, slowest = measure(call)
                table.add_row(what, f"{median:.1f}", f"{slowest:.1f}")
            Console().print(table)
            queue.close()


if __name__ == "__main__":
    main()
