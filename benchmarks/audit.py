"""What an audit takes: a graph of two thousand nodes, and a folder of a thousand files.

python benchmarks/audit.py [--nodes 2000] [--files 1000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from langgraph.graph import START, MessagesState, StateGraph

from langgraph_loopguard import audit

MODULE = '''"""Agents number {n}."""

from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command

from .agents_{before} import reviewer as other


def reviewer(state: MessagesState) -> dict:
    """Review."""
    return {{"messages": [("ai", "Please handle None.")]}}


def fixer(state: MessagesState):
    """Fix."""
    if len(state["messages"]) > {n}:
        return Command(goto=END)
    return Command(goto="reviewer", update={{"messages": [("ai", "Done.")]}})


def route(state: MessagesState) -> str:
    """Decide."""
    return "fixer" if "None" in state["messages"][-1].content else END


builder = StateGraph(MessagesState)
builder.add_node("reviewer", reviewer)
builder.add_node("fixer", fixer)
builder.add_node("other", other)
builder.add_edge(START, "reviewer")
builder.add_conditional_edges("reviewer", route)
builder.add_edge("other", END)
graph = builder.compile()
'''


def seconds(rounds: int, call: Callable[[], object]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def ring(nodes: int, *, ways_back: bool) -> StateGraph:
    """A ring of nodes, each with a router that is read; with ways back it has more cycles than can be listed."""
    builder = StateGraph(MessagesState)
    names = [f"node{number}" for number in range(nodes)]
    for name in names:
        builder.add_node(name, lambda state: {"messages": []})
    builder.add_edge(START, names[0])
    for name, after in itertools.pairwise([*names, names[0]]):
        builder.add_conditional_edges(name, lambda state: after, [after])  # noqa: B023 - read, never called
        if ways_back:
            builder.add_edge(after, name)
    return builder


def main() -> None:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    for ways_back in (False, True):
        graph = ring(args.nodes, ways_back=ways_back)
        report = audit(graph)
        took = seconds(args.rounds, lambda: audit(graph))  # noqa: B023
        kind = "a ring with ways back" if ways_back else "one ring"
        print(f"{args.nodes} nodes, {kind}: {took:.2f} s ({len(report.open)} open cycles listed)")
    with tempfile.TemporaryDirectory() as folder:
        lines = 0
        for n in range(args.files):
            text = MODULE.format(n=n, before=(n - 1) % args.files)
            lines += text.count("\n")
            Path(folder, f"agents_{n}.py").write_text(text)
        command = [sys.executable, "-m", "langgraph_loopguard.cli", "audit", folder]
        took = seconds(args.rounds, lambda: subprocess.run(command, capture_output=True, check=False))
        last = subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()[-1]
        print(f"{args.files} files, {lines} lines, `loopguard audit FOLDER` as a process: {took:.2f} s ({last})")


if __name__ == "__main__":
    main()
