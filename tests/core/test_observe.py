"""`observe` and `decide`: the guard outside a graph, with a ledger that is only ever plain JSON."""

from __future__ import annotations

import copy
import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import (
    Ledger,
    LoopGuard,
    Oscillation,
    RepeatedPayload,
    RevisitedArtifact,
    TimeBudget,
    TokenBudget,
    UnchangedArtifact,
)
from langgraph_loopguard.core.ledger import MOVED_MEMORY
from tests.core.payloads import ANYTHING, JSON
from tests.core.streams import play

NODES = ("a", "b", "c")
PAYLOADS = st.one_of(st.sampled_from(["x", "y", {"k": "x", "n": 1}, {"k": "x", "n": 2}, None, 5]), JSON)
EVENTS = st.tuples(
    st.sampled_from(NODES),
    PAYLOADS,
    st.fixed_dictionaries(
        {},
        optional={
            "artifact": st.sampled_from(["p", "q"]),
            "measure": st.one_of(st.integers(0, 5), st.lists(st.text(max_size=2), max_size=3)),
            "usage": st.one_of(st.integers(0, 50), st.just({"input_tokens": 3, "output_tokens": 4, "seconds": 1.5})),
            "at": st.floats(0, 2e9),
        },
    ),
)
STREAMS = st.lists(EVENTS, max_size=25)
GUARDS = [
    LoopGuard(*NODES, max_cycles=2),
    LoopGuard(*NODES, max_cycles=4, preset="progress"),
    LoopGuard(*NODES, max_cycles=50, mode="observe", preset="progress"),
    LoopGuard(
        *NODES,
        max_cycles=50,
        stop_when=(RepeatedPayload(2) & Oscillation()) | RevisitedArtifact() | TokenBudget(200) | TimeBudget(1e9),
    ),
    LoopGuard(*NODES, max_cycles=50, stop_when=lambda ledger: 1 / (3 - ledger.visits.get("b", 0)) < 0),
]


def observed(guard: LoopGuard, stream: list[Any], *, through_json: bool = False) -> tuple[list[Any], list[Any]]:
    """All ledgers and verdicts of a stream."""
    ledger: Any = None
    ledgers, verdicts = [], []
    for node, payload, more in stream:
        ledger, verdict = guard.observe(ledger, node, payload, **more)
        ledgers.append(ledger)
        verdicts.append(verdict)
        if through_json:
            ledger = json.loads(json.dumps(ledger, allow_nan=False, ensure_ascii=False).encode())
    return ledgers, verdicts


@given(st.sampled_from(GUARDS), STREAMS)
def test_the_ledger_is_plain_json_between_all_events(guard: LoopGuard, stream: list[Any]) -> None:
    """Through a database or another process: the same ledgers and the same verdicts."""
    assert observed(guard, stream) == observed(guard, stream, through_json=True)


@given(st.sampled_from(GUARDS), STREAMS, STREAMS, st.randoms(use_true_random=False))
def test_two_ledgers_never_see_each_other(guard: LoopGuard, one: list[Any], other: list[Any], order: Any) -> None:
    """One guard, two threads in any order: each goes as if it were alone."""
    alone = [observed(guard, stream) for stream in (one, other)]
    turns = [0] * len(one) + [1] * len(other)
    order.shuffle(turns)
    ledgers: list[Any] = [None, None]
    found: list[Any] = [([], []), ([], [])]
    rest = [list(one), list(other)]
    for turn in turns:
        node, payload, more = rest[turn].pop(0)
        ledgers[turn], verdict = guard.observe(ledgers[turn], node, payload, **more)
        found[turn][0].append(ledgers[turn])
        found[turn][1].append(verdict)
    assert alone == found


@given(st.sampled_from(GUARDS), STREAMS, EVENTS)
def test_observing_changes_nothing_that_it_is_given(guard: LoopGuard, stream: list[Any], event: Any) -> None:
    """The old ledger can be kept, and asked again; the guard and the payload stay as they were."""
    ledgers, _ = observed(guard, stream)
    ledger = ledgers[-1] if ledgers else None
    node, payload, more = event
    before = copy.deepcopy((ledger, payload, more))
    settings = (repr(guard), hash(guard), copy.deepcopy(guard.stamp))
    first = guard.observe(ledger, node, payload, **more)
    assert before == (ledger, payload, more)
    assert settings == (repr(guard), hash(guard), guard.stamp)
    assert first == guard.observe(ledger, node, payload, **more)


@given(ANYTHING)
def test_any_payload_keeps_the_ledger_plain(payload: Any) -> None:
    """Whatever a node writes, alone, as an update, and as the work product."""
    guard = LoopGuard("a", "b", max_cycles=99, preset="progress")
    ledger: Any = None
    for what in (payload, {"k": payload}):
        ledger, verdict = guard.observe(ledger, "a", what, artifact=payload)
        assert not verdict.tripped
        assert ledger == json.loads(json.dumps(ledger, allow_nan=False, ensure_ascii=False).encode())


# -- the cap ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cap", [1, 2, 3, 7])
def test_the_attempt_after_the_cap_is_refused(cap: int) -> None:
    """`max_cycles=3`: the fourth attempt trips."""
    guard = LoopGuard("a", "b", max_cycles=cap)
    events = [(node, f"{node}{number}") for number in range(cap + 2) for node in ("a", "b")]
    _, verdicts = play(guard, events)
    assert 2 * cap + 1 == 1 + [verdict.tripped for verdict in verdicts].index(True)
    assert all(verdict.tripped for verdict in verdicts[2 * cap :])


@given(st.integers(1, 4), st.integers(2, 4), st.data())
def test_no_node_hands_over_more_often_than_the_cap_allows(cap: int, size: int, data: st.DataObject) -> None:
    """In any walk: the first node at most n times, every other one at most n + 1 times."""
    nodes = ("a", "b", "c", "d")[:size]
    guard = LoopGuard(*nodes, max_cycles=cap)
    passed = dict.fromkeys(nodes, 0)
    ledger: Any = None
    for _ in range((cap + 1) * size + 1):
        node = data.draw(st.sampled_from(nodes))
        ledger, verdict = guard.observe(ledger, node, "x")
        if verdict.tripped:
            break
        passed[node] += 1
    else:
        pytest.fail("the walk never ends")
    assert passed["a"] <= cap
    assert max(passed.values()) <= cap + 1


def test_each_node_hands_over_to_the_next_one_of_the_ring() -> None:
    """Outside a graph nobody says where a handoff goes, so it goes round."""
    ledger, _ = play(LoopGuard("a", "b", "c", max_cycles=9), [(node, "x") for node in "abcabc"])
    assert ({"a->b": 2, "b->c": 2, "c->a": 2}, 2) == (Ledger(ledger).handoffs, Ledger(ledger).cycles)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=20))
def test_a_walk_in_any_order_counts_how_often_it_passes_the_first_place(walk: list[str]) -> None:
    """A node that is seen again, or an earlier one, has been come back to past the first, whether that was seen or not."""
    guard = LoopGuard("a", "b", "c", max_cycles=99)
    place = start = "abc".index(walk[0])
    ledger: Any = None
    for number, node in enumerate(walk):
        if number:
            place += ("abc".index(node) - "abc".index(walk[number - 1]) - 1) % 3 + 1
        ledger, _ = guard.observe(ledger, node, f"x{number}")
        assert place // 3 - (start - 1) // 3 == Ledger(ledger).cycles


def test_a_shut_loop_stays_shut_with_one_reason() -> None:
    """Asked again and again, also with something new to say: the first reason, and one trip."""
    guard = LoopGuard("a", "b", max_cycles=1, stop_when=RepeatedPayload(2))
    ledger, verdicts = play(guard, [("a", "x"), ("b", "y"), ("a", "x"), ("b", "z"), ("a", "x"), ("a", "x")])
    assert [False, False, True, True, True, True] == [verdict.tripped for verdict in verdicts]
    assert {"MaxCycles"} == {verdict.reason.condition for verdict in verdicts[2:]}  # type: ignore[union-attr]
    view = Ledger(ledger)
    assert (1, 1, {"a->b": 1, "b->a": 1}, 4) == (ledger["trips"], view.cycles, view.handoffs, view.visits["a"])
    assert view.reason == verdicts[-1].reason


def test_a_refused_handoff_is_not_counted() -> None:
    """The node's visit is, for it took place."""
    guard = LoopGuard("a", "b", max_cycles=1)
    ledger, _ = play(guard, [("a", "x"), ("b", "y"), ("a", "z")])
    assert (1, {"a->b": 1, "b->a": 1}, {"a": 2, "b": 1}) == (
        Ledger(ledger).cycles,
        Ledger(ledger).handoffs,
        Ledger(ledger).visits,
    )


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_extra_cycles_are_exactly_that_many(cap: int, extra: int, rounds: int) -> None:
    """The refused handoff takes place with the decision and is the first of the extra ones."""
    guard = LoopGuard("a", "b", max_cycles=cap)
    ledger: Any = None
    crossed = 0
    for number in range(rounds + 1):
        while True:
            ledger, verdict = guard.observe(ledger, "a", "x")
            if verdict.tripped:
                break
            crossed += 1
        assert cap + number * extra == crossed
        assert cap + number * extra == verdict.reason.threshold  # type: ignore[union-attr]
        ledger = guard.decide(ledger, "retry", extra_cycles=extra)
        crossed += 1
    assert rounds + 1 == Ledger(ledger).decisions


# -- decisions ---------------------------------------------------------------------------------------------------------


def tripped() -> tuple[LoopGuard, dict[str, Any]]:
    guard = LoopGuard("a", "b", max_cycles=1)
    ledger, _ = play(guard, [("a", "x"), ("b", "y"), ("a", "z")])
    return guard, ledger


def test_a_decision_can_be_made_once() -> None:
    """The second time there is nothing to decide about."""
    guard, ledger = tripped()
    before = copy.deepcopy(ledger)
    decided = guard.decide(ledger, "retry", extra_cycles=1)
    assert before == ledger
    with pytest.raises(ValueError, match="ledger has no trip to decide about"):
        guard.decide(decided, "retry", extra_cycles=1)
    with pytest.raises(ValueError, match="ledger has no trip to decide about"):
        guard.decide({}, "accept")


def test_an_unknown_action_is_refused() -> None:
    """With its value and with what there is."""
    guard, ledger = tripped()
    with pytest.raises(ValueError, match="action must be one of 'accept', 'reject', 'edit', 'retry', got 'approve'"):
        guard.decide(ledger, "approve")


@pytest.mark.parametrize("action", ["accept", "reject", "edit"])
def test_other_decisions_renew_nothing(action: str) -> None:
    """The loop is decided, and its budget is as spent as it was."""
    guard, ledger = tripped()
    ledger = guard.decide(ledger, action, extra_cycles=5)
    assert (False, 1, 0.0) == (Ledger(ledger).tripped, Ledger(ledger).decisions, Ledger(ledger).granted("cycles"))
    ledger, verdict = guard.observe(ledger, "a", "more")
    assert (True, 2) == (verdict.tripped, ledger["trips"])


# -- watching only -----------------------------------------------------------------------------------------------------


def test_observe_mode_warns_and_goes_on() -> None:
    """A trial in production: never tripped, the first reason is kept, and the count goes on."""
    guard = LoopGuard("a", "b", max_cycles=1, mode="observe")
    ledger, verdicts = play(guard, [("a", f"x{number}") for number in range(4)])
    assert [(False, False), (False, True), (False, True), (False, True)] == [
        (verdict.tripped, verdict.warned) for verdict in verdicts
    ]
    view = Ledger(ledger)
    assert (4, 3, False, 2) == (view.cycles, ledger["would_trip"]["count"], view.tripped, view.would_trip.observed)  # type: ignore[union-attr]


def test_observe_mode_warns_of_a_broken_guard_too() -> None:
    """An error in the guard is seen in the trial, and does not stop it."""
    guard = LoopGuard("a", "b", mode="observe")
    _, verdict = guard.observe(None, "a", object())
    assert (False, True, "broken") == (verdict.tripped, verdict.warned, verdict.reason and verdict.reason.kind)


# -- time, tokens, measures --------------------------------------------------------------------------------------------


def test_time_between_events_is_active_time() -> None:
    """A clock that went back counts as nothing, and the wait for a decision does not count."""
    guard = LoopGuard("a", "b", max_cycles=2)
    seconds = []
    ledger: Any = None
    for at in (100.0, 101.5, 100.0, 103.0):
        ledger, _ = guard.observe(ledger, "a", "x", at=at)
        seconds.append(Ledger(ledger).seconds)
    assert [0.0, 1.5, 1.5, 4.5] == seconds
    ledger = guard.decide(ledger, "retry", extra_cycles=9)
    ledger, _ = guard.observe(ledger, "a", "x", at=9_000.0)
    ledger, _ = guard.observe(ledger, "a", "x", at=9_001.0)
    assert 5.5 == Ledger(ledger).seconds


def test_time_may_come_as_datetime() -> None:
    """In any time zone."""
    guard = LoopGuard("a", "b", max_cycles=9)
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    ledger, _ = guard.observe(None, "a", "x", at=start)
    later = (start + timedelta(seconds=2)).astimezone(timezone(timedelta(hours=9)))
    ledger, _ = guard.observe(ledger, "b", "y", at=later)
    assert 2.0 == Ledger(ledger).seconds


@pytest.mark.parametrize(
    ("usage", "tokens", "seconds"),
    [
        (None, 0, 2.0),
        (7, 7, 2.0),
        ({"total_tokens": 7, "input_tokens": 99}, 7, 2.0),
        ({"input_tokens": 3, "output_tokens": 4}, 7, 2.0),
        ({"input_tokens": 3, "output_tokens": None}, 3, 2.0),
        ({"total_tokens": 7, "seconds": 0.5}, 7, 0.5),
        ({"seconds": 0.5}, 0, 0.5),
        ({}, 0, 2.0),
    ],
)
def test_usage_comes_in_the_usual_shapes(usage: Any, tokens: int, seconds: float) -> None:
    """A number, a message's `usage_metadata`, and seconds that one has measured oneself."""
    guard = LoopGuard("a", "b", max_cycles=9)
    ledger, _ = guard.observe(None, "a", "x", at=0)
    ledger, _ = guard.observe(ledger, "b", "y", at=2, usage=usage)
    assert (tokens, seconds) == (Ledger(ledger).tokens, Ledger(ledger).seconds)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"node": "c"}, "node 'c' is not in the loop a, b"),
        ({"usage": -1}, "usage must be a number of tokens or a mapping with total_tokens, got -1"),
        ({"usage": True}, "usage must be a number of tokens or a mapping with total_tokens, got True"),
        ({"usage": "7"}, "usage must be a number of tokens or a mapping with total_tokens, got '7'"),
        ({"at": "now"}, "at must be seconds since the epoch or a datetime, got 'now'"),
        ({"at": True}, "at must be seconds since the epoch or a datetime, got True"),
        ({"at": float("nan")}, "at must be seconds since the epoch or a datetime, got nan"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict[str, Any], message: str) -> None:
    """The caller's mistake is the caller's error, and names the argument."""
    with pytest.raises(ValueError, match=r"must|not in") as error:
        LoopGuard("a", "b").observe(None, **{"node": "a", "payload": "x", **arguments})
    assert message == str(error.value)


@pytest.mark.parametrize(("measure", "found"), [(3, 3), (2.5, 2.5), (["a", "b"], 2), ({"a", "b"}, 2), ({}, 0), (0, 0)])
def test_a_measure_is_a_number_or_a_collection(measure: Any, found: float) -> None:
    """Of a collection its size counts."""
    ledger, _ = LoopGuard("a", "b").observe(None, "a", "x", measure=measure)
    assert found == Ledger(ledger).measure["last"]


# -- a guard that breaks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"payload": object()}, "FingerprintError"),
        ({"payload": {"k": object()}}, "FingerprintError"),
        ({"artifact": lambda: None}, "FingerprintError"),
        ({"measure": "three"}, "ValueError"),
        ({"measure": True}, "ValueError"),
        ({"measure": float("nan")}, "ValueError"),
        ({"measure": float("inf")}, "ValueError"),
        ({"measure": 2**64}, "ValueError"),
    ],
)
def test_what_cannot_be_judged_trips_as_broken(arguments: dict[str, Any], error: str) -> None:
    """The run's work is kept, and a person sees the error; the loop does not go on unguarded."""
    guard = LoopGuard("a", "b", max_cycles=9)
    ledger, verdict = guard.observe(None, "a", **{"payload": "x", **arguments})
    assert verdict.reason is not None
    assert (True, "Guard", "broken", error) == (
        verdict.tripped,
        verdict.reason.condition,
        verdict.reason.kind,
        verdict.reason.observed,
    )
    assert "the payload of 'a'" in verdict.reason.message
    ledger = guard.decide(json.loads(json.dumps(ledger, allow_nan=False)), "retry")
    assert not guard.observe(ledger, "b", "y")[1].tripped


# -- size --------------------------------------------------------------------------------------------------------------

SIZED: dict[str, tuple[LoopGuard, Any, int]] = {
    "strict": (LoopGuard("a", "b", max_cycles=3), lambda n: {"review": f"remark {n}", "n": n}, 4_000),
    "progress": (
        LoopGuard("a", "b", max_cycles=10**6, preset="progress"),
        lambda n: {"patch": f"p{n}", "tests": n % 7, "at": f"{n}"},
        8_000,
    ),
    "observe": (
        LoopGuard("a", "b", "c", max_cycles=3, mode="observe", preset="progress"),
        lambda n: {"patch": f"p{n % 3}"},
        12_000,
    ),
    "new keys": (LoopGuard("a", "b", max_cycles=10**6), lambda n: {f"file{n}.py": n}, 30 * MOVED_MEMORY * 2),
    "work products": (
        LoopGuard("a", "b", max_cycles=10**6, stop_when=UnchangedArtifact(9) | RevisitedArtifact()),
        lambda n: f"text {n}",
        8_000,
    ),
}


@pytest.mark.parametrize("name", SIZED)
def test_the_ledger_has_a_fixed_size(name: str) -> None:
    """Over 5,000 events, with a decision at each trip: its JSON stays under a bound, and does not creep up to it."""
    guard, payload, bound = SIZED[name]
    ledger: Any = None
    sizes = []
    for number in range(5_000):
        node = guard.nodes[number % len(guard.nodes)]
        ledger, verdict = guard.observe(
            ledger, node, payload(number), artifact=f"v{number}", measure=number % 5, at=number
        )
        if verdict.tripped:
            sizes.append(len(json.dumps(ledger)))
            ledger = guard.decide(ledger, "retry", extra_cycles=1)
        sizes.append(len(json.dumps(ledger)))
    assert max(sizes) < bound
    assert max(sizes[len(sizes) // 2 :]) < max(sizes[: len(sizes) // 2]) + 100
