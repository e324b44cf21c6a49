"""The graph of one review, run twice: as it is, until the demo has seen enough, and with a guard on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Literal, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langgraph_loopguard import RevisitedArtifact, UnchangedArtifact, guard_loop
from langgraph_loopguard.demo.agents import Agents, Bench, ReviewState

Ended = Literal["complete", "escalated", "blocked", "stopped"]
"""How a run ended.

- `complete`: the Reviewer had nothing left to ask for.
- `escalated`, `blocked`: the guard stopped it; see the outcome of an escalation.
- `stopped`: the demo stopped watching an unguarded run.
"""

Graph = CompiledStateGraph[ReviewState, Any, ReviewState, ReviewState]
Watch = Callable[[int], None]
"""Is told the number of each cycle as it begins."""

THE_LINE = (
    "guard_loop(builder, *nodes, max_cycles={max_cycles}, stop_when=UnchangedArtifact() | RevisitedArtifact(), "
    'artifact="diff", measure="open")'
)
"""The one line that is the difference between the two runs, for people."""

PATIENCE = 10_000
"""LangGraph's recursion limit for the runs; no run comes near it."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run of a review came to."""

    ended: Ended
    cycles: int
    tool_runs: int
    seconds: float
    tokens: int
    condition: str | None = None
    """The condition that stopped it, if a guard did."""
    message: str | None = None
    """That condition's words."""


def review_graph(nodes: tuple[str, ...], agents: Agents) -> StateGraph[ReviewState, Any, ReviewState, ReviewState]:
    """Return the builder of a review: round and round, until the Reviewer (the first node) has nothing left open."""
    reviewer, *fixers = nodes
    builder = StateGraph(ReviewState)
    for name in nodes:
        builder.add_node(name, cast("Any", agents[name]))
    builder.add_edge(START, reviewer)
    builder.add_conditional_edges(reviewer, lambda state: fixers[0] if state["open"] else END, [fixers[0], END])
    for source, target in zip(fixers, [*fixers[1:], reviewer], strict=True):
        builder.add_edge(source, target)
    return builder


def guarded_graph(
    nodes: tuple[str, ...], agents: Agents, *, max_cycles: int, checkpointer: BaseCheckpointSaver[Any]
) -> Graph:
    """Return the same graph with a guard on its loop, the escalations in the checkpointer's database."""
    builder = review_graph(nodes, agents)
    guard_loop(
        builder,
        *nodes,
        max_cycles=max_cycles,
        stop_when=UnchangedArtifact() | RevisitedArtifact(),
        artifact="diff",
        measure="open",
    )
    return builder.compile(checkpointer=checkpointer)


def thread(pull: str) -> RunnableConfig:
    """Return the config of a pull request's thread."""
    return {"configurable": {"thread_id": pull}, "recursion_limit": PATIENCE}


def run_unguarded(bench: Bench, agents: Agents, *, bound: int, watch: Watch) -> Run:
    """Run the bare graph. Nothing in it would stop a hopeless loop, so the demo stops watching after `bound` cycles."""
    graph = review_graph(bench.pull.pull.nodes, agents).compile()
    return _follow(graph, bench, bound=bound, watch=watch)


def run_guarded(
    bench: Bench, agents: Agents, *, max_cycles: int, checkpointer: BaseCheckpointSaver[Any], watch: Watch
) -> Run:
    """Run the guarded graph until it ends or asks a person."""
    graph = guarded_graph(bench.pull.pull.nodes, agents, max_cycles=max_cycles, checkpointer=checkpointer)
    return _follow(graph, bench, bound=None, watch=watch)


def escalation_of(name: str, nodes: tuple[str, ...], checkpointer: BaseCheckpointSaver[Any]) -> dict[str, Any] | None:
    """Return the record that a pull request's guarded run has left in the database, if it was escalated."""
    nobody: Agents = dict.fromkeys(nodes, lambda state: {})
    # Reading needs the graph's channels, not the cap that it ran with.
    graph = guarded_graph(nodes, nobody, max_cycles=1, checkpointer=checkpointer)
    record: dict[str, Any] | None = graph.get_state(thread(name)).values.get("escalation")
    return record


def _follow(graph: Graph, bench: Bench, *, bound: int | None, watch: Watch) -> Run:
    reviewer, fixer = bench.pull.pull.nodes[:2]
    config = thread(bench.pull.name)
    cycles, still_open, record = 0, True, None
    started = perf_counter()
    opened: ReviewState = {"title": bench.pull.title, "diff": bench.diff()}
    for step in graph.stream(opened, config, stream_mode="updates"):
        for node, update in step.items():
            if node == fixer:
                cycles += 1
                watch(cycles)
            elif node == reviewer:
                still_open = bool(update["open"])
            elif isinstance(update, dict) and "escalation" in update:
                record = update["escalation"]
        if still_open and cycles == bound and reviewer in step:
            break
    seconds = perf_counter() - started
    reason = record["reason"] if record else {}
    ended: Ended = record["outcome"] if record else "stopped" if still_open else "complete"
    return Run(
        ended,
        cycles,
        bench.shell.runs,
        seconds,
        bench.tokens,
        condition=reason.get("condition"),
        message=reason.get("message"),
    )
