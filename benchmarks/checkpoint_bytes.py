"""Bytes that a guarded loop stores against the same loop without a guard.

Two nodes write 2 kB each per cycle, to a key of their own. Printed per saver and number of cycles: bytes of both, the
ratio, and bytes per cycle (equal numbers mean linear growth). PostgreSQL is a server of its own, started where its
binaries are found.

    python benchmarks/checkpoint_bytes.py [--cycles 50 100 200 400]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.services import postgres_binaries, postgres_server

SIZE = 2_000
WORDS = (Path(__file__).parents[1] / "README.md").read_text().split()


class State(TypedDict, total=False):
    """What the two nodes pass on."""

    review: str
    patch: str
    n: int


def build(cycles: int, saver: Any, *, guarded: bool) -> Any:
    """Compile a loop of `cycles` cycles whose nodes write 2 kB of new text each time."""
    builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"review": _text("review", state.get("n", 0))})
    builder.add_node("fixer", lambda state: {"patch": _text("patch", state.get("n", 0)), "n": state.get("n", 0) + 1})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges(
        "reviewer", lambda state: END if state.get("n", 0) >= cycles else "fixer", ["fixer", END]
    )
    builder.add_edge("fixer", "reviewer")
    if guarded:
        guard_loop(builder, "reviewer", "fixer", max_cycles=cycles + 1, artifact="patch")
    return builder.compile(checkpointer=saver)


def _text(name: str, n: int) -> str:
    """Words in random order: PostgreSQL compresses rows, and a repeated phrase would shrink to nothing."""
    words = random.Random(f"{name} {n}").choices(WORDS, k=SIZE // 5)
    return " ".join(words)[:SIZE]


@contextmanager
def sqlite() -> Iterator[tuple[Any, Any]]:
    """A saver on a new file, and a function that counts its bytes."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saver.sqlite"
        with SqliteSaver.from_conn_string(str(path)) as saver:

            def stored() -> int:
                saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return path.stat().st_size

            yield saver, stored


@contextmanager
def postgres(url: str) -> Iterator[tuple[Any, Any]]:
    """A saver on an emptied database, and a function that counts the bytes of its rows."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
        tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
        for table in tables:
            saver.conn.execute(f"TRUNCATE {table}")

        def stored() -> int:
            rows = (saver.conn.execute(f"SELECT sum(pg_column_size(t.*)) AS n FROM {table} t") for table in tables)
            return sum(int(row.fetchone()["n"] or 0) for row in rows)

        yield saver, stored


def measure(saver: Any, cycles: int, *, guarded: bool) -> int:
    """Bytes stored by one run."""
    with saver() as (opened, stored):
        config = {"configurable": {"thread_id": "1"}, "recursion_limit": 3 * cycles + 100}
        build(cycles, opened, guarded=guarded).invoke({}, config)
        return int(stored())


def compare(name: str, saver: Any, runs: list[int]) -> None:
    """Print a saver's rows."""
    for cycles in runs:
        plain, guarded = (measure(saver, cycles, guarded=flag) for flag in (False, True))
        print(
            f"{name:<12} {cycles:>6}  {plain / 1e6:>7.2f} MB  {guarded / 1e6:>7.2f} MB   {guarded / plain:4.2f}x"
            f"   {guarded / cycles / 1000:8.1f} kB"
        )


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, nargs="+", default=[50, 100, 200, 400])
    arguments = parser.parse_args()
    print(f"{'saver':<12} {'cycles':>6}  {'plain':>10}  {'guarded':>10}   ratio   guarded per cycle")
    compare("SQLite", sqlite, arguments.cycles)
    if (binaries := postgres_binaries()) is not None:
        with postgres_server(binaries) as url:
            compare("PostgreSQL", partial(postgres, url), arguments.cycles)


if __name__ == "__main__":
    main()
