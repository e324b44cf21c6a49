"""How long a report over many runs takes, and how much memory: 10,000 runs in one SQLite file.

Sixty real runs (complete after none to nine cycles, escalated, watched, decided) are made and then copied in SQL under
other thread ids, each copy with all its checkpoints and writes. The report runs in a process of its own (Linux: the
peak is what the kernel says of it).
"""

from __future__ import annotations

import argparse
import json
import logging
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop

REAL = 60
READ = r"""
import json, pathlib, re, sys, time
from langgraph_loopguard.report import read_loops, report, summarise
def peak():  # not getrusage: that one begins with what the parent had
    return int(re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text()).group(1)) / 1024
loaded, started = peak(), time.perf_counter()
if sys.argv[2] == "report":
    summary = report(sys.argv[1], progress=True).summary
else:
    summary = summarise(read_loops(sys.argv[1]))
seconds = time.perf_counter() - started
print(json.dumps({"loops": summary.loops, "seconds": seconds, "loaded": loaded, "peak": peak()}))
"""


class State(TypedDict, total=False):
    """What the pair works on."""

    n: int
    review: str
    patch: str


def make_real_runs(path: Path) -> None:
    """Run the pair in every way in which a run can end."""
    with SqliteSaver.from_conn_string(str(path)) as saver:
        for number in range(REAL):
            builder = StateGraph(State)
            builder.add_node("reviewer", lambda state: {"review": f"Please handle case {state.get('n', 0)}. " * 20})
            builder.add_node("fixer", lambda state: {"n": state.get("n", 0) + 1, "patch": "line\n" * 50})
            builder.add_edge(START, "reviewer")
            needed = number % 10
            builder.add_conditional_edges(
                "reviewer", lambda state, n=needed: END if state.get("n", 0) >= n else "fixer", ["fixer", END]
            )
            builder.add_edge("fixer", "reviewer")
            guard_loop(builder, "reviewer", "fixer", artifact="patch", mode=("enforce", "observe")[number % 3 == 0])
            graph = builder.compile(checkpointer=saver)
            config: Any = {"configurable": {"thread_id": f"run-{number}"}}
            if "__interrupt__" in graph.invoke({}, config) and number % 2:
                graph.invoke(Command(resume={"action": "retry", "extra_cycles": 2}), config)


def copy_runs(path: Path, runs: int) -> int:
    """Copy the real runs under other names until there are enough; return how many checkpoints there are."""
    with sqlite3.connect(path) as conn:
        for table in ("checkpoints", "writes"):
            columns = [row[1] for row in conn.execute(f"PRAGMA table_info({table})") if row[1] != "thread_id"]
            kept = ", ".join(columns)
            for copy in range(1, -(-runs // REAL)):
                where = f"thread_id IN (SELECT 'run-' || value FROM json_each('{json.dumps(list(range(REAL)))}'))"
                if copy * REAL + REAL > runs:
                    where = " OR ".join(f"thread_id = 'run-{n}'" for n in range(runs - copy * REAL))
                conn.execute(
                    f"INSERT INTO {table} (thread_id, {kept}) "
                    f"SELECT thread_id || '-{copy}', {kept} FROM {table} WHERE {where}"
                )
        return int(conn.execute("SELECT count(*) FROM checkpoints").fetchone()[0])


def main() -> None:
    """Print one line per way of reading."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10_000)
    args = parser.parse_args()
    logging.getLogger("langgraph_loopguard").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        make_real_runs(path)
        checkpoints = copy_runs(path, args.runs)
        size = path.stat().st_size / 2**20
        print(f"{args.runs:,} runs, {checkpoints:,} checkpoints, {size:,.0f} MiB of SQLite")
        for way in ("report", "read_loops"):
            done = subprocess.run(
                [sys.executable, "-c", READ, str(path), way], check=True, stdout=subprocess.PIPE, text=True
            )
            found = json.loads(done.stdout)
            print(
                f"{way:<11} {found['loops']:,} loops in {found['seconds']:.2f} s; "
                f"peak {found['peak']:.0f} MiB, {found['loaded']:.0f} MiB of it before the first run was read"
            )


if __name__ == "__main__":
    main()
