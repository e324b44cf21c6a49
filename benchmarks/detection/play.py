"""Plays runs against a guard and counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from benchmarks.detection.traces import Trace
from langgraph_loopguard import LoopGuard, Reason

Maker = Callable[[Trace], LoopGuard]


@dataclass(frozen=True)
class Stop:
    """Where and why a guard stopped a run."""

    event: int
    """The emission, from 1 (of the last turn, where there are several)."""
    cycle: int
    reason: Reason
    paid: float
    """Share of the run's text that was written until then."""


def play(trace: Trace, guard: LoopGuard) -> Stop | None:
    """Return where the guard stops the run; `None` when it lets it go on to its end."""
    ledger: Any = None
    stop: Stop | None = None
    number, written = 0, 0
    sizes = [len(json.dumps(event.payload, default=str)) for event in trace.events if event.node is not None]
    total = sum(sizes) or 1
    for event in trace.events:
        if event.node is None:
            if event.payload == "turn":
                ledger, stop, number = None, None, 0
            elif ledger is not None and ledger.get("tripped"):
                ledger = guard.decide(ledger, "retry", extra_cycles=1)
            continue
        written += sizes.pop(0)
        number += 1
        open_before = not (ledger or {}).get("tripped")
        ledger, verdict = guard.observe(
            ledger, event.node, event.payload, artifact=event.artifact, measure=event.measure
        )
        if verdict.tripped and open_before and stop is None and verdict.reason is not None:
            stop = Stop(number, ledger.get("cycles", 0), verdict.reason, written / total)
    return stop


@dataclass(frozen=True)
class Score:
    """What a rule makes of a set of runs."""

    stopped: dict[str, int]
    """Runs stopped, by label."""
    runs: dict[str, int]
    paid: float | None
    """Mean share of a looping run's text until the stop."""
    cycle: float | None
    """Median cycle of the stops of looping runs."""
    right: int
    """Runs with the labelled verdict, at the labelled place where there is one."""
    late: int
    """Looping runs stopped later than one cycle after the pattern is complete."""
    wrong: list[str]
    """The runs that are not right."""


def score(traces: Iterable[Trace], maker: Maker) -> Score:
    """Play all runs of a set."""
    stopped, runs = dict.fromkeys(("loop", "ok", "unknown"), 0), dict.fromkeys(("loop", "ok", "unknown"), 0)
    paid, cycles, wrong = [], [], []
    late = 0
    for trace in traces:
        stop = play(trace, maker(trace))
        runs[trace.label] += 1
        stopped[trace.label] += stop is not None
        good = trace.label == "unknown" or (stop is not None) == (trace.label == "loop")
        if trace.label == "loop":
            paid.append(stop.paid if stop else 1.0)
            if stop is not None:
                cycles.append(stop.cycle)
                slow = trace.latest is not None and stop.event > trace.latest
                late += slow
                good = good and not slow
                good = good and (trace.at is None or stop.event == trace.at)
                good = good and (trace.kind is None or stop.reason.kind == trace.kind)
        if not good:
            wrong.append(f"{trace.id} ({f'stopped at {stop.event}: {stop.reason.message}' if stop else 'not stopped'})")
    total = sum(runs.values())
    return Score(
        stopped,
        runs,
        sum(paid) / len(paid) if paid else None,
        median(cycles) if cycles else None,
        total - len(wrong),
        late,
        wrong,
    )


def bare(trace: Trace) -> Trace:
    """Return a run with its payloads alone."""
    return replace(trace, events=[event._replace(artifact=None, measure=None) for event in trace.events])


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Return the interval of a rate at 95 %, by Wilson's score."""
    if not total:
        return 0.0, 1.0
    z, rate = 1.96, hits / total
    middle = rate + z * z / (2 * total)
    spread = z * (rate * (1 - rate) / total + z * z / (4 * total * total)) ** 0.5
    return max(0.0, (middle - spread) / (1 + z * z / total)), min(1.0, (middle + spread) / (1 + z * z / total))
