"""Time per cycle of a guarded loop against the same loop without a guard, side by side in one run.

Two trivial nodes go round; the loop's own routing ends it. Both graphs run in turns, so that the machine's mood meets
both. Printed per saver: milliseconds per cycle of each, the ratio, and the ratio of late to early cycles.

    python benchmarks/guard_cost.py [--cycles 200] [--rounds 7] [--long 10000]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


class State(TypedDict, total=False):
    """What the two nodes pass on."""

    review: str
    patch: str
    n: int


def build(cycles: int, *, guarded: bool, saver: Any = None) -> Any:
    """Compile a reviewer and a fixer that go round `cycles` times."""
    builder = StateGraph(State)
    builder.add_node("reviewer", lambda state: {"review": f"remark {state.get('n', 0)}"})
    builder.add_node("fixer", lambda state: {"patch": f"fix {state.get('n', 0)}", "n": state.get("n", 0) + 1})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges(
        "reviewer", lambda state: "end" if state.get("n", 0) >= cycles else "fix", {"fix": "fixer", "end": END}
    )
    builder.add_edge("fixer", "reviewer")
    if guarded:
        guard_loop(builder, "reviewer", "fixer", max_cycles=cycles + 1)
    return builder.compile(checkpointer=saver)


@contextmanager
def no_saver() -> Iterator[Callable[[], Any]]:
    """No checkpointer."""
    yield lambda: None


@contextmanager
def memory() -> Iterator[Callable[[], Any]]:
    """A fresh `InMemorySaver` for each run."""
    yield InMemorySaver


@contextmanager
def sqlite() -> Iterator[Callable[[], Any]]:
    """A fresh SQLite file for each run."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    with tempfile.TemporaryDirectory() as folder:
        opened: list[Any] = []

        def fresh() -> Any:
            context = SqliteSaver.from_conn_string(str(Path(folder) / f"{len(opened)}.sqlite"))
            opened.append(context)
            return context.__enter__()

        yield fresh
        for context in opened:
            context.__exit__(None, None, None)


SAVERS: dict[str, Any] = {"no saver": no_saver, "InMemorySaver": memory, "SQLite": sqlite}


def run(graph: Any, cycles: int) -> float:
    """Seconds of one run."""
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 3 * cycles + 100}
    start = time.perf_counter()
    graph.invoke({}, config)
    return time.perf_counter() - start


def compare(name: str, cycles: int, rounds: int) -> None:
    """Print one row."""
    ratios, plain, guarded = [], [], []
    with SAVERS[name]() as fresh:
        for _ in range(rounds + 1):
            a = run(build(cycles, guarded=False, saver=fresh()), cycles)
            b = run(build(cycles, guarded=True, saver=fresh()), cycles)
            plain.append(a)
            guarded.append(b)
            ratios.append(b / a)
    per = [1000 * statistics.median(times[1:]) / cycles for times in (plain, guarded)]
    print(
        f"{name:<14} {per[0]:7.3f} ms  {per[1]:7.3f} ms   {statistics.median(ratios[1:]):5.2f}x"
        f"   (min {min(ratios[1:]):.2f}, max {max(ratios[1:]):.2f})"
    )


def late_against_early(cycles: int, rounds: int) -> None:
    """Print how much longer a late cycle takes than an early one, guarded and not: the best of some runs, in turns."""
    best = {False: [0.0, 0.0], True: [0.0, 0.0]}
    for _ in range(rounds):
        for guarded, found in best.items():
            for place, seconds in enumerate(early_and_late(cycles, guarded=guarded)):
                found[place] = min(found[place] or seconds, seconds)
    for guarded, (early, late) in best.items():
        print(
            f"{'guarded' if guarded else 'plain':<14} cycle 10: {2000 * early:.3f} ms"
            f"   cycle {cycles}: {2000 * late:.3f} ms   {late / early:5.2f}x"
        )


def early_and_late(cycles: int, *, guarded: bool) -> tuple[float, float]:
    """Median seconds of a superstep at the beginning and at the end of one long run."""
    stamps: list[float] = []
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 3 * cycles + 100}
    for _ in build(cycles, guarded=guarded).stream({}, config, stream_mode="updates"):
        stamps.append(time.perf_counter())
    steps = [b - a for a, b in pairwise(stamps)]
    window = max(20, len(steps) // 20)
    return statistics.median(steps[20 : 20 + window]), statistics.median(steps[-window:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=200, help="cycles of a run")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each graph")
    parser.add_argument("--long", type=int, default=10_000, help="cycles of the long run; 0 leaves it out")
    parser.add_argument("--saver", choices=list(SAVERS), help="only this one")
    arguments = parser.parse_args()
    print(f"{'':<14} {'plain':>10}  {'guarded':>10}   ratio   ({arguments.cycles} cycles, {arguments.rounds} rounds)")
    for name in [arguments.saver] if arguments.saver else SAVERS:
        compare(name, arguments.cycles, arguments.rounds)
    if arguments.long:
        late_against_early(arguments.long, rounds=3)


if __name__ == "__main__":
    main()
