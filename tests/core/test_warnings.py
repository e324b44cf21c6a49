"""Every graded condition: it warns from `warn_at` on, trips at its threshold, and refuses a warning that comes too late."""

from __future__ import annotations

from typing import Any

import pytest

from langgraph_loopguard import (
    LoopGuard,
    MaxCycles,
    RepeatedPayload,
    TimeBudget,
    TokenBudget,
    UnchangedArtifact,
)

NO_CAP = 10**6


def grades(condition: Any, count: int, node: str = "a", **more: Any) -> str:
    """One letter per emission: `.` go on, `w` warned, `T` tripped for the first time."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition)
    ledger: Any = None
    out = ""
    for _ in range(count):
        ledger, verdict = guard.observe(ledger, node, "same", **more)
        assert (verdict.reason is None) == (not verdict.tripped and not verdict.warned)
        out += "T" if verdict.tripped else "w" if verdict.warned else "."
        if verdict.tripped:
            break
    return out


@pytest.mark.parametrize(
    ("condition", "more", "expected"),
    [
        (MaxCycles(4, warn_at=3), {}, "..wwT"),
        (MaxCycles(4, warn_at=4), {}, "...wT"),
        (RepeatedPayload(4, warn_at=2), {}, ".wwT"),
        (UnchangedArtifact(3, warn_at=1), {"node": "b", "artifact": "p"}, ".wwT"),
        (TokenBudget(50, warn_at=20), {"usage": 10}, ".wwwT"),
        (TimeBudget(50, warn_at=20), {"usage": {"seconds": 10}}, ".wwwT"),
    ],
)
def test_it_warns_and_then_trips(condition: Any, more: dict[str, Any], expected: str) -> None:
    """The same reason, before and at the threshold."""
    assert expected == grades(condition, 9, **more)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MaxCycles(3, warn_at=4), r"MaxCycles\(warn_at\) must be a number from 1 to below 4, .* got 4"),
        (
            lambda: RepeatedPayload(3, warn_at=1),
            r"RepeatedPayload\(warn_at\) must be a number from 2 to below 3, .* got 1",
        ),
        (lambda: UnchangedArtifact(2, warn_at=2), r"UnchangedArtifact\(warn_at\) must be .* below 2, .* got 2"),
        (lambda: TokenBudget(9, warn_at=0), r"TokenBudget\(warn_at\) must be a number from 1 to below 9, .* got 0"),
        (lambda: TimeBudget(9, warn_at=True), r"TimeBudget\(warn_at\) must be .* got True"),
    ],
)
def test_a_warning_that_would_not_come_first_is_refused(make: Any, message: str) -> None:
    """It would never be seen."""
    with pytest.raises(ValueError, match=message):
        make()


def test_a_retry_moves_the_warning_too() -> None:
    """It keeps its distance to the trip."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=TokenBudget(20, warn_at=10))
    ledger, verdict = guard.observe(None, "a", "x", usage=20)
    assert verdict.tripped
    ledger = guard.decide(ledger, "retry", extra_tokens=30)
    seen = []
    for node in "baba":
        ledger, verdict = guard.observe(ledger, node, f"y{len(seen)}", usage=8)
        seen.append((verdict.tripped, verdict.warned))
    assert [(False, False), (False, False), (False, True), (True, False)] == seen


def test_an_artifact_that_only_stands_in_can_be_left_out() -> None:
    """What the second node writes is no work product unless it is said to be."""
    assert "..T" == grades(UnchangedArtifact(), 9, node="b")
    assert "........." == grades(UnchangedArtifact(stand_in=False), 9, node="b")
    assert "..T" == grades(UnchangedArtifact(stand_in=False), 9, node="b", artifact="p")
