"""What a preset promises, on runs of our own making; and that no guard forgets what its conditions need."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.detection import made
from benchmarks.detection.play import bare, play
from benchmarks.detection.traces import Trace
from langgraph_loopguard import (
    Condition,
    LoopGuard,
    MaxCycles,
    NoProgress,
    Oscillation,
    RepeatedPayload,
    RestatedPayload,
    RevisitedArtifact,
    UnchangedArtifact,
)
from langgraph_loopguard.core.presets import PRESETS

NO_CAP = 10**6
TRACES = made.traces(3)


@pytest.mark.parametrize("trace", TRACES, ids=[trace.id for trace in TRACES])
def test_progress_stops_loops_and_nothing_else(trace: Trace) -> None:
    """Every kind of loop at the latest in its fourth cycle, no kind of honest work at all."""
    stop = play(trace, LoopGuard(*trace.nodes, preset="progress"))
    assert (trace.label == "loop") == (stop is not None)
    assert stop is None or stop.cycle <= 4


@pytest.mark.parametrize("trace", TRACES, ids=[trace.id for trace in TRACES])
def test_strict_stops_at_the_cap_always(trace: Trace) -> None:
    """It looks at nothing: the fourth cycle is refused."""
    stop = play(bare(trace), LoopGuard(*trace.nodes, preset="strict"))
    assert stop is not None
    assert ("MaxCycles", 3) == (stop.reason.condition, stop.cycle)


def test_a_pair_that_makes_something_new_each_time_needs_a_measure() -> None:
    """Stated in the docs: without one only the cap ends it."""
    traces = [trace for trace in made.traces(1) if trace.id.startswith("swaps")]
    for trace in traces:
        own = [event._replace(payload=f"{event.node} {number}") for number, event in enumerate(trace.events)]
        new = Trace("t", "t", "loop", trace.nodes, own * 4)
        measured = play(new, LoopGuard(*trace.nodes, preset="progress"))
        assert measured is not None
        assert "NoProgress" == measured.reason.condition
    text = [("a" if n % 2 == 0 else "b", f"n{n}") for n in range(80)]
    guard, ledger = LoopGuard("a", "b", preset="progress"), None
    for number, (node, payload) in enumerate(text):
        ledger, verdict = guard.observe(ledger, node, payload)
        if verdict.tripped:
            assert verdict.reason is not None
            assert ("MaxCycles", 50) == (verdict.reason.condition, number)
            break
    else:
        pytest.fail("the cap never came")


def test_observe_only_says_what_progress_would_do() -> None:
    """At the same event, and goes on."""
    for trace in TRACES:
        stop = play(trace, LoopGuard(*trace.nodes, preset="progress"))
        guard, ledger, first = LoopGuard(*trace.nodes, preset="observe-only"), None, None
        for number, event in enumerate(trace.events, 1):
            assert event.node is not None
            ledger, verdict = guard.observe(
                ledger, event.node, event.payload, artifact=event.artifact, measure=event.measure
            )
            assert not verdict.tripped
            if verdict.warned and first is None:
                first = number
        assert (stop.event if stop else None) == first


# -- windows and thresholds ------------------------------------------------------------------------------------------

TIMES = st.integers(2, 9)
CONDITIONS: st.SearchStrategy[Condition] = st.one_of(
    st.builds(RepeatedPayload, TIMES),
    TIMES.flatmap(lambda times: st.builds(RepeatedPayload, st.just(times), window=st.integers(times, 20))),
    st.builds(RestatedPayload, times=TIMES),
    TIMES.flatmap(lambda times: st.builds(RestatedPayload, times=st.just(times), window=st.integers(times, 20))),
    st.builds(Oscillation, st.integers(1, 5), st.integers(2, 5)),
    st.builds(UnchangedArtifact, st.integers(1, 9)),
    st.builds(NoProgress, st.integers(1, 9)),
    st.just(RevisitedArtifact()),
)


@given(st.lists(CONDITIONS, min_size=1, max_size=5), st.sampled_from(sorted(PRESETS)), st.booleans())
def test_every_window_holds_its_threshold(conditions: list[Condition], preset: Any, every: bool) -> None:
    """However they are joined, the guard keeps as much as the most forgetful one needs."""
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = joined & condition if every else joined | condition
    guard = LoopGuard("a", "b", stop_when=joined, preset=preset)
    assert guard.ring.window >= max(condition.memory for condition in conditions)


@given(CONDITIONS)
def test_every_condition_can_fire(condition: Condition) -> None:
    """A pair that says and makes the same for ever is stopped by any of them but the one for returns."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition)
    ledger: Any = None
    for number in range(120):
        artifact = f"version {number % 3}" if isinstance(condition, RevisitedArtifact) else "p"
        for node in ("a", "b"):
            ledger, verdict = guard.observe(
                json.loads(json.dumps(ledger)), node, "the same text", artifact=artifact, measure=1
            )
            if verdict.tripped:
                return
    pytest.fail(f"{condition!r} never fires")


@pytest.mark.parametrize("condition", [part for rules in PRESETS.values() for part in rules.conditions])
def test_no_condition_of_a_preset_fires_on_new_work(condition: Condition) -> None:
    """A hundred new texts, patches and lower measures."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition)
    ledger: Any = None
    for number in range(100):
        ledger, verdict = guard.observe(ledger, "a", f"Remark{number} is about item{number}", measure=1000 - number)
        assert not verdict.tripped
        ledger, verdict = guard.observe(ledger, "b", f"patch {number}", artifact=f"state {number}")
        assert not verdict.tripped


@given(st.integers(1, 40))
def test_the_ledger_does_not_grow_with_the_cycles(cycles: int) -> None:
    """All conditions of the preset on: after the windows are full it stays as large as it is."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, preset="progress", stop_when=MaxCycles(NO_CAP))

    def size(count: int) -> int:
        ledger: Any = None
        for number in range(count):
            text = f"Remark{number:06} is about item{number:06} and nothing else"
            ledger, _ = guard.observe(ledger, "a", text, measure=10**6 - number)
            ledger, _ = guard.observe(ledger, "b", f"patch {number:06}", artifact=f"state {number}")
        return len(json.dumps(ledger))

    assert size(40 + cycles) <= size(40) + 60
