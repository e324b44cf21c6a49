"""The rules that are compared: each condition by its defaults, each preset, and two to measure them by."""

from __future__ import annotations

from benchmarks.detection.play import Maker
from benchmarks.detection.traces import Trace
from langgraph_loopguard import (
    Condition,
    Ledger,
    LoopGuard,
    MaxCycles,
    NoProgress,
    Oscillation,
    RepeatedPayload,
    RestatedPayload,
    RevisitedArtifact,
    UnchangedArtifact,
)

NO_CAP = 10**6


def alone(condition: Condition) -> Maker:
    """A guard that has this condition and no cap."""
    return lambda trace: LoopGuard(*trace.nodes, max_cycles=NO_CAP, stop_when=condition)


def preset(name: str, *, cap: bool = True) -> Maker:
    """A guard with a preset and its own cap, or without one; a cap that belongs to the case stands."""

    def make(trace: Trace) -> LoopGuard:
        limit = trace.max_cycles or (None if cap else NO_CAP)
        return LoopGuard(*trace.nodes, max_cycles=limit, preset=name)  # type: ignore[arg-type]

    return make


RULES: dict[str, Maker] = {
    "a bare counter, 3": alone(MaxCycles(3)),
    "a bare counter, 10": alone(MaxCycles(10)),
    "hashes alone": alone(RepeatedPayload(3) | Oscillation()),
    "`RepeatedPayload()`": alone(RepeatedPayload()),
    "`Oscillation()`": alone(Oscillation()),
    "`Oscillation(laps=3)`": alone(Oscillation(laps=3)),
    "`UnchangedArtifact()`": alone(UnchangedArtifact()),
    "`RevisitedArtifact()`": alone(RevisitedArtifact()),
    "`RestatedPayload()`": alone(RestatedPayload()),
    "`RestatedPayload(times=2)`": alone(RestatedPayload(times=2)),
    "`UnchangedArtifact(1) & RestatedPayload(times=2)`": alone(
        UnchangedArtifact(1, stand_in=False) & RestatedPayload(times=2, window=6, same_names=False)
    ),
    "`NoProgress()`": alone(NoProgress()),
    'preset `"strict"`': preset("strict"),
    'preset `"progress"`': preset("progress"),
    'preset `"progress"`, no cap': preset("progress", cap=False),
}


def alternates(ledger: Ledger) -> str:
    """Two different steps in turn, three times over: a plain function is a condition too."""
    steps = [step["keys"] for step in ledger.window("agent")[-6:]]
    turns = len(steps) == 6 and steps[:2] * 3 == steps and steps[0] != steps[1]
    return "two steps in turn, three times over" if turns else ""


def stuck_detector(trace: Trace) -> LoopGuard:
    """The thresholds of the OpenHands cases, written with our conditions: what their labels follow from."""
    times = trace.times or 4
    own = RepeatedPayload(times, node="agent", window=times) | RepeatedPayload(3, node="message", window=3)
    return LoopGuard(*trace.nodes, max_cycles=NO_CAP, stop_when=own | alternates)
