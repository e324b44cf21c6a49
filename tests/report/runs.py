"""Runs to report about: every way in which a loop can end, and simulated histories with a known truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langgraph_loopguard.report import Cost, LoopRun
from tests.graph.pairs import pair, thread

USED = AIMessage("x", usage_metadata={"input_tokens": 70, "output_tokens": 30, "total_tokens": 100})


def spend(n: int) -> dict[str, Any]:
    """A review that costs a hundred tokens."""
    return {"review": f"remark {n}", "open": USED}


def fail(state: Any) -> Any:
    """A selector that raises."""
    raise ZeroDivisionError


def run(saver: Any, name: str, rounds: int, decision: Any = None, **settings: Any) -> dict[str, Any]:
    """Run the pair in a thread until it ends or asks; answer once."""
    app, _ = pair(spend, rounds=rounds, saver=saver, **{"max_cycles": 3, "artifact": "patch", **settings})
    result: dict[str, Any] = app.invoke({}, thread(name))
    if decision is not None:
        result = app.invoke(Command(resume=decision), thread(name))
    return result


def every_end(saver: Any = None) -> Any:
    """Threads that end in every way; their names say how."""
    saver = saver or InMemorySaver()
    run(saver, "at once", 0)
    run(saver, "complete", 2)
    run(saver, "escalated", 9)
    run(saver, "accepted", 9, {"action": "accept", "fix": 1})
    run(saver, "retried", 4, {"action": "retry", "extra_cycles": 2})
    run(saver, "again", 9, {"action": "retry", "extra_cycles": 1})
    run(saver, "blocked", 9, measure=fail)
    run(saver, "watched", 6, mode="observe")
    app, _ = pair(spend, rounds=9, saver=saver, artifact="patch")
    app.invoke({}, thread("open"), interrupt_before=["fixer"])
    return saver


def row(cycles: int, outcome: Any = "complete", **more: Any) -> LoopRun:
    """A row of one loop that nothing was stored of."""
    kept = {"thread": "t", "namespace": "", "loop": "pair", "scope": None, "outcome": outcome, "handoffs": 2 * cycles}
    return LoopRun(**{**kept, "spent": Cost(cycles=cycles, seconds=2.0 * cycles, tokens=1000 * cycles), **more})


def capped(cycles: int, condition: str = "MaxCycles", **more: Any) -> LoopRun:
    """A row of a loop that a guard stopped."""
    kind = "exhausted" if condition == "MaxCycles" else "stalled"
    stop = {"stopped": Cost(cycles=cycles), "condition": condition, "kind": kind}
    return row(cycles, **{"outcome": "escalated", **stop, **more})


class World:
    """Loops whose chances are known: by cycle, to end by themselves, and to be stopped by a condition."""

    def __init__(self, resolve: list[float], stop: list[float] | None = None) -> None:
        self.resolve = np.array(resolve)
        self.stop = np.zeros(len(resolve)) if stop is None else np.array(stop)
        self.left = np.cumprod(1 - self.resolve - self.stop)
        before = np.concatenate(([1.0], self.left[:-1]))
        self.share = np.cumsum(before * self.resolve)

    def history(self, rng: np.random.Generator, loops: int, caps: list[int]) -> np.ndarray:
        """Counts as `tally` returns them, of loops under caps drawn at random."""
        cycles = np.arange(len(self.resolve))
        cap = rng.choice(caps, loops)[:, None]
        drawn = rng.random((loops, len(cycles)))
        resolved, stopped = drawn < self.resolve, (drawn >= self.resolve) & (drawn < self.resolve + self.stop)
        ended = resolved | stopped | (cycles == cap) | (cycles == cycles[-1])
        at = ended.argmax(1)
        place = np.arange(loops), at
        ending = np.where(resolved[place], 1, np.where(stopped[place], 2, 0))
        counts = np.zeros((3, len(cycles)), dtype=np.int64)
        np.add.at(counts, (ending, at), 1)
        return counts[:, : at.max() + 1]

    def best_cap(self, cycle_usd: float, escalation_usd: float) -> int:
        """The cap that costs least."""
        caps = range(1, len(self.left))
        prices = [cycle_usd * self.left[:cap].sum() + escalation_usd * (1 - self.share[cap]) for cap in caps]
        return int(np.argmin(prices)) + 1


def rows_of(counts: np.ndarray) -> list[LoopRun]:
    """The rows that such counts come from."""
    makers = (capped, row, lambda cycles: capped(cycles, "UnchangedArtifact"))
    return [make(at) for make, kind in zip(makers, counts, strict=True) for at, n in enumerate(kind) for _ in range(n)]
