"""`NoProgress`, and what a new low of the measure does to everything that counts repeats."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import LoopGuard, NoProgress, Oscillation, RepeatedPayload, UnchangedArtifact, Verdict

NO_CAP = 10**6


def cycles(condition: Any, opens: list[Any], **settings: Any) -> list[Verdict]:
    """Verdicts at the start of each cycle; in each, the reviewer says what is open and the fixer writes something new."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition, **settings)
    ledger: Any = None
    out = []
    for number, left in enumerate(opens):
        ledger, verdict = guard.observe(json.loads(json.dumps(ledger)), "a", f"remark {number}", measure=left)
        out.append(verdict)
        ledger, _ = guard.observe(ledger, "b", f"fix {number}")
    return out


def first_trip(verdicts: list[Verdict]) -> int | None:
    """Number of the cycle that was refused, from 1."""
    return next((number for number, verdict in enumerate(verdicts, 1) if verdict.tripped), None)


def test_cycles_without_a_new_low_trip() -> None:
    """Three whole cycles without one: the fourth is refused, with the lowest, the last and when it was reached."""
    found = cycles(NoProgress(), [5, 5, 5, 5])
    assert 4 == first_trip(found)
    reason = found[3].reason
    assert reason is not None
    assert ("NoProgress", "stalled", 3, 3) == (reason.condition, reason.kind, reason.threshold, reason.observed)
    assert "5 are open, no new low for 3 cycles (the lowest was 5)" == reason.message
    assert ({"best": 5, "last": 5, "reached_in_cycle": 0, "cycle": 4},) == reason.evidence


def test_swapping_one_finding_for_another_is_no_progress() -> None:
    """Only how many are open counts, and only a new low of it."""
    assert 4 == first_trip(cycles(NoProgress(), [["F1"], ["F2"], ["F3"], ["F4"]]))
    assert 5 == first_trip(cycles(NoProgress(), [3, 2, 3, 2, 3]))


def test_new_lows_go_on_for_ever() -> None:
    """Each one begins the count anew."""
    assert None is first_trip(cycles(NoProgress(1), list(range(40, 0, -1))))
    assert None is first_trip(cycles(NoProgress(3), [5, 5, 5, 4, 4, 4, 3, 3, 3, 2]))


def test_ids_count_once() -> None:
    """A finding that is listed twice is one; findings without a hash count each."""
    assert 4 == first_trip(cycles(NoProgress(), [["F1"], ["F1", "F1"], ["F1"], ["F1", "F1"]]))
    assert None is first_trip(cycles(NoProgress(1), [[{"id": 1}, {"id": 2}], [{"id": 1}], []]))


def test_without_a_measure_it_says_nothing() -> None:
    """What is not measured has no low; the first value is no progress either, and no lack of it."""
    assert None is first_trip(cycles(NoProgress(1), [None] * 9))
    assert 5 == first_trip(cycles(NoProgress(1), [None, None, None, 7, 7]))


def test_it_warns_before_it_trips() -> None:
    """`warn_at` cycles without a new low are said, and let pass."""
    found = cycles(NoProgress(3, warn_at=2), [5, 5, 5, 5])
    assert [False, False, True, False] == [verdict.warned for verdict in found]
    assert 4 == first_trip(found)


def test_a_measure_of_its_own() -> None:
    """A key or a function of the payload, outside a graph; the guard's own measure is another one."""
    for measure in ("open", lambda payload: payload["open"]):
        guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=NoProgress(2, measure=measure))
        ledger: Any = None
        tripped = []
        for number in range(4):
            ledger, verdict = guard.observe(ledger, "a", {"open": ["F1"], "n": f"x{number}"}, measure=9 - number)
            tripped.append(verdict.tripped)
            ledger, _ = guard.observe(ledger, "b", {"open": ["F1"], "patch": f"p{number}"})
        assert [False, False, True, True] == tripped
        assert ledger == json.loads(json.dumps(ledger))


def test_a_measure_of_its_own_that_makes_no_sense_breaks_the_guard() -> None:
    """It is the guard that fails, not the loop."""
    guard = LoopGuard("a", "b", stop_when=NoProgress(measure="open"))
    _, verdict = guard.observe(None, "a", {"open": "many"})
    assert verdict.reason is not None
    assert ("broken", "ValueError") == (verdict.reason.kind, verdict.reason.observed)


def test_two_measures_of_one_name_are_refused() -> None:
    """Two lambdas are called alike, and would overwrite each other."""
    condition = NoProgress(2, measure=lambda payload: 1) | NoProgress(3, measure=lambda payload: 2)
    with pytest.raises(ValueError, match="stop_when has two measures named"):
        LoopGuard("a", "b", stop_when=condition)
    twice = NoProgress(2, measure="open") | NoProgress(3, measure="open")
    assert (("open", "open"),) == LoopGuard("a", "b", stop_when=twice).measures


def test_after_a_decision_patience_begins_anew() -> None:
    """As many whole cycles as at the start."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=NoProgress(2))
    ledger: Any = None
    for _ in range(2):
        ledger, _ = guard.observe(ledger, "a", "r", measure=5)
        ledger, _ = guard.observe(ledger, "b", "f")
    ledger, verdict = guard.observe(ledger, "a", "r", measure=5)
    assert verdict.tripped
    ledger = guard.decide(ledger, "retry")
    tripped = []
    for _ in range(2):
        ledger, _ = guard.observe(ledger, "b", "f")
        ledger, verdict = guard.observe(ledger, "a", "r", measure=5)
        tripped.append(verdict.tripped)
    assert [False, True] == tripped


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": 0}, r"NoProgress\(patience\) must be a whole number of at least 1, got 0"),
        ({"measure": ""}, r"NoProgress\(measure\) must be a key or a function, got ''"),
        ({"measure": 3}, r"NoProgress\(measure\) must be a key or a function, got 3"),
        ({"warn_at": 3}, r"NoProgress\(warn_at\) must be a number from 1 to below 3, where it trips, got 3"),
    ],
)
def test_nonsense_is_refused(settings: dict[str, Any], message: str) -> None:
    """With the parameter and the value."""
    with pytest.raises(ValueError, match=message):
        NoProgress(**settings)


# -- progress ends repeats, an entry does not ------------------------------------------------------------------------

REPEATS = [RepeatedPayload(), Oscillation(), Oscillation(laps=3), UnchangedArtifact(), NoProgress()]


@given(st.sampled_from(REPEATS), st.lists(st.integers(0, 3), min_size=1, max_size=12))
def test_counts_reset_on_progress_and_never_on_entry(condition: Any, falls: list[int]) -> None:
    """A pair that repeats itself for ever trips at the same place after every new low, wherever that one falls."""
    guard = LoopGuard("a", "b", max_cycles=NO_CAP, stop_when=condition)

    def until_trip(ledger: Any, left: int) -> int:
        for number in range(1, 30):
            for node in ("a", "b"):
                # Each event is a new entry: all that is known comes out of the JSON.
                ledger, verdict = guard.observe(
                    json.loads(json.dumps(ledger)), node, "same", artifact="p", measure=left
                )
                if verdict.tripped:
                    return number
        pytest.fail("it never trips")

    left = 10**6
    ledger, _ = guard.observe(None, "a", "same", artifact="p", measure=left)
    expected = until_trip(ledger, left)
    for fall in falls:
        left -= fall
        before = ledger
        ledger, verdict = guard.observe(ledger, "b", "same", artifact="p", measure=left)
        if verdict.tripped:
            ledger = before
        elif fall:
            ledger, _ = guard.observe(ledger, "a", "same", artifact="p", measure=left)
            assert abs(until_trip(ledger, left) - expected) <= 1


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30), st.integers(1, 5))
def test_it_trips_exactly_when_no_new_low_came(opens: list[int], patience: int) -> None:
    """Against the definition, cycle by cycle."""
    found = cycles(NoProgress(patience), opens)
    best, since, expected = opens[0], 0, None
    for number, left in enumerate(opens[1:], 2):
        since = 0 if left < best else since + 1
        best = min(best, left)
        if since >= patience:
            expected = number
            break
    assert expected == first_trip(found)
