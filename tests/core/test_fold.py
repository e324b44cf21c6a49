"""The fold: a pure function from a ledger and one superstep's events to the next ledger, in plain JSON."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import Ledger, MaxCycles
from langgraph_loopguard.core.ledger import ARTIFACT_MEMORY, MOVED_MEMORY, Ring, fold, repeats
from tests.core.payloads import JSON, TEXTS

PAIR = Ring(("a", "b"), 4)
TRIPLE = Ring(("a", "b", "c"), 4)
RINGS = [PAIR, TRIPLE, Ring(("a", "b", "c", "d", "e"), 4)]


def step(node: str, *cross: str, **visit: Any) -> dict[str, Any]:
    """One visit, with what it wrote (`keys` and the rest) and the guarded edges that it crosses."""
    event: dict[str, Any] = {"event": "step", "node": node, "cross": list(cross)}
    return {**event, "visit": {"keys": {}, **visit}} if visit else event


def trip(node: str, *to: str, id: str = "t1") -> dict[str, Any]:
    reason = {"condition": "X", "kind": "stalled", "threshold": 1, "observed": 1, "message": "x", "evidence": []}
    shut = {"id": id, "source": node, "to": list(to), "reason": reason}
    return {"event": "step", "node": node, "cross": [], "trip": shut}


def decision(id: str = "t1", action: str = "retry", **granted: float) -> dict[str, Any]:
    return {"event": "decision", "id": id, "action": action, "granted": granted}


def supersteps(*steps: list[dict[str, Any]], ring: Ring = PAIR, start: Any = None) -> dict[str, Any]:
    """Fold one superstep after the other."""
    ledger = start
    for events in steps:
        ledger = fold(ledger, events, ring)
    return ledger


def walked(nodes: str, ring: Ring) -> dict[str, Any]:
    """The ledger of a walk, one superstep per crossing."""
    return supersteps(*[[step(one, other)] for one, other in pairwise(nodes)], ring=ring)


NODES = st.sampled_from(["a", "b", "c"])
VISITS = st.fixed_dictionaries(
    {"keys": st.dictionaries(TEXTS, st.one_of(st.integers(0, 9), st.sampled_from(["f1", "f2"])), max_size=3)},
    optional={
        "unmoved": st.lists(TEXTS, max_size=2),
        "seconds": st.floats(0, 10),
        "tokens": st.integers(0, 99),
        "artifact": st.sampled_from(["p1", "p2", "p3"]),
        "wrote_artifact": st.booleans(),
        "measure": st.integers(0, 9),
    },
)
REASONS = st.fixed_dictionaries({"reason": st.fixed_dictionaries({"condition": TEXTS, "observed": JSON})})
STEPS = st.fixed_dictionaries(
    {"event": st.just("step"), "node": NODES},
    optional={
        "visit": st.one_of(st.none(), VISITS),
        "cross": st.lists(NODES, max_size=2),
        "steps_left": st.one_of(st.none(), st.integers(0, 30)),
        "would_trip": REASONS,
        "trip": st.builds(
            lambda reason, id, to: {**reason, "id": id, "source": "a", "to": to},
            REASONS,
            st.sampled_from(["t1", "t2"]),
            st.lists(NODES, min_size=1, max_size=2),
        ),
    },
)
EVENTS = st.one_of(
    STEPS,
    STEPS,
    STEPS,
    st.fixed_dictionaries({"event": st.just("recorded"), "id": st.sampled_from(["t1", "t2"])}),
    st.fixed_dictionaries(
        {
            "event": st.just("decision"),
            "id": st.sampled_from(["t1", "t2"]),
            "action": st.sampled_from(["accept", "reject", "edit", "retry"]),
            "granted": st.dictionaries(st.sampled_from(["cycles", "tokens", "seconds"]), st.integers(1, 5)),
        }
    ),
    st.fixed_dictionaries({"event": st.just("turn"), "history_from": st.integers(0, 9)}),
)
SUPERSTEPS = st.lists(st.lists(EVENTS, max_size=4), max_size=12)


@given(SUPERSTEPS)
def test_fold_changes_nothing_that_it_is_given(batches: list[list[dict[str, Any]]]) -> None:
    """LangGraph calls reducers more than once on a live value: the fold leaves it as it was, at every depth."""
    ledger: Any = None
    for events in batches:
        before = copy.deepcopy((ledger, events))
        after = fold(ledger, events, TRIPLE)
        assert before == (ledger, events)
        assert after == fold(ledger, events, TRIPLE)
        ledger = after


@given(SUPERSTEPS)
def test_ledger_is_plain_json_at_each_step(batches: list[list[dict[str, Any]]]) -> None:
    """A ledger that went through a saver folds on as one that did not."""
    ledger: Any = None
    stored: Any = None
    for events in batches:
        ledger = fold(ledger, events, TRIPLE)
        stored = json.loads(json.dumps(fold(stored, events, TRIPLE), allow_nan=False))
        assert ledger == stored
        assert Ledger(ledger) == Ledger(stored) != Ledger({**stored, "cycles": -1})


@given(SUPERSTEPS)
def test_events_may_come_from_a_checkpoint(batches: list[list[dict[str, Any]]]) -> None:
    """Writes are stored before they are folded; stored events fold alike."""
    stored = json.loads(json.dumps(batches))
    assert supersteps(*batches, ring=TRIPLE) == supersteps(*stored, ring=TRIPLE)


@given(SUPERSTEPS)
def test_no_events_change_nothing(batches: list[list[dict[str, Any]]]) -> None:
    """A superstep without events keeps the ledger."""
    ledger = supersteps(*batches, [], ring=TRIPLE)
    assert ledger == fold(ledger, [], TRIPLE)


@given(SUPERSTEPS, STEPS.map(lambda event: {**event, "would_trip": None}))
def test_a_superstep_adds_one_handoff_per_edge_and_one_cycle_at_most(
    batches: list[list[dict[str, Any]]], event: dict[str, Any]
) -> None:
    """Three tasks of a `Send` that cross one edge are one handoff."""
    before = Ledger(supersteps(*batches, [], ring=TRIPLE))
    crossing = {"event": "step", "node": event["node"], "cross": event.get("cross", [])}
    after = Ledger(fold(before.data, [crossing] * 3, TRIPLE))
    once = Ledger(fold(before.data, [crossing], TRIPLE))
    assert (once.handoffs, once.cycles) == (after.handoffs, after.cycles)
    assert after.cycles - before.cycles in (0, 1)


@given(SUPERSTEPS, st.permutations([("a", "b"), ("a", "c"), ("b", "c"), ("c", "a"), ("c", "b")]), st.integers(1, 5))
def test_parallel_tasks_count_alike_in_any_order(
    batches: list[list[dict[str, Any]]], edges: list[tuple[str, str]], number: int
) -> None:
    """Which branch of a superstep finishes first has no say in the count."""
    before = supersteps(*batches, [], ring=TRIPLE)
    crossings = [step(source, target) for source, target in edges[:number]]
    one, other = fold(before, crossings, TRIPLE), fold(before, crossings[::-1], TRIPLE)
    assert (one["handoffs"], one["cycles"]) == (other["handoffs"], other["cycles"])
    assert one["cycles"] - before.get("cycles", 0) in (0, 1)


def test_an_edge_that_is_ahead_of_the_cycles_counts_once_in_any_order() -> None:
    """The walk came round by a way that nobody guards; the same superstep begins a cycle as well: it is one."""
    before = fold(None, [step("b", "c")], TRIPLE)
    for crossings in ([step("b", "c"), step("a", "b")], [step("a", "b"), step("b", "c")]):
        assert (1, {"b->c": 2, "a->b": 1}) == (
            fold(before, crossings, TRIPLE)["cycles"],
            fold(before, crossings, TRIPLE)["handoffs"],
        )


def test_an_edge_counts_cycles_that_no_guard_sees() -> None:
    """An edge crossed again and again is a loop, also when the way back is not among the guarded ones."""
    cycles = []
    ledger: Any = None
    for _ in range(4):
        ledger = fold(ledger, [step("b", "c")], TRIPLE)
        cycles.append(ledger["cycles"])
    assert [0, 1, 2, 3] == cycles


def test_a_new_superstep_counts_anew() -> None:
    """Only within one superstep are equal crossings one."""
    assert {"a->b": 2} == supersteps([step("a", "b"), step("a", "b")], [step("a", "b")])["handoffs"]


# -- cycles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("nodes", "cycles"),
    [("a", 0), ("ab", 1), ("aba", 1), ("abab", 2), ("ababab", 3), ("ba", 0), ("bab", 1), ("babab", 2), ("bb", 1)],
)
def test_cycles_of_a_pair(nodes: str, cycles: int) -> None:
    """In a pair each crossing of the first edge is a cycle, wherever the walk begins."""
    assert cycles == Ledger(walked(nodes, PAIR) or {}).cycles


@pytest.mark.parametrize(
    ("nodes", "cycles"),
    [
        ("abc", 1),
        ("abca", 1),
        ("abcabc", 2),
        ("bca", 0),
        ("bcab", 1),
        ("bcabcab", 2),
        ("cab", 1),
        ("cabcab", 2),
        ("cabca", 1),
        ("ac", 1),
        ("acac", 2),
        ("cbcb", 2),
        ("bcbc", 1),
        ("bcbcbc", 2),
        ("acbacb", 4),
    ],
)
def test_cycles_of_a_ring_of_three(nodes: str, cycles: int) -> None:
    """A ring may be entered at each node, cut short, and walked backwards: what passes the first place counts."""
    assert cycles == Ledger(walked(nodes, TRIPLE)).cycles


@given(st.sampled_from(RINGS), st.data())
def test_cycles_are_how_often_a_walk_passes_the_first_place(ring: Ring, data: st.DataObject) -> None:
    """Laid out on a line, ring after ring, a walk only goes forward: a cycle is each step past a first node."""
    walk = data.draw(st.lists(st.sampled_from(ring.nodes), min_size=1, max_size=40))
    size = len(ring.nodes)
    place = start = ring.nodes.index(walk[0])
    ledger: Any = None
    for source, target in pairwise(walk):
        ledger = fold(ledger, [step(source, target)], ring)
        place += (ring.nodes.index(target) - ring.nodes.index(source) - 1) % size + 1
        assert (place - 1) // size - (start - 1) // size == Ledger(ledger).cycles


@given(st.sampled_from(RINGS), st.integers(1, 4), st.booleans(), st.data())
def test_no_edge_is_crossed_more_than_the_cap_allows(ring: Ring, cap: int, parallel: bool, data: st.DataObject) -> None:
    """Whatever the walk: no guarded edge is crossed more than n + 1 times, an edge of the first node never more than n.

    The walk may also jump (over edges that nobody guards) and have several branches at a time.
    """
    condition = MaxCycles(cap)
    pairs = st.tuples(st.sampled_from(ring.nodes), st.sampled_from(ring.nodes))
    taken = data.draw(st.lists(pairs, min_size=1, max_size=6, unique=True))
    crossed: dict[tuple[str, str], int] = {}
    ledger: Any = None
    for _ in range(len(taken) * (cap + 1) + 1):
        edges = data.draw(st.lists(st.sampled_from(taken), min_size=1, max_size=3 if parallel else 1, unique=True))
        after = fold(ledger, [step(source, target) for source, target in edges], ring)
        if condition.check(Ledger(after)).tripped:
            break
        ledger = after
        for edge in edges:
            crossed[edge] = crossed.get(edge, 0) + 1
    else:
        pytest.fail("the walk never ends")
    assert max(crossed.values(), default=0) <= cap + 1
    assert max((count for (source, _), count in crossed.items() if source == ring.nodes[0]), default=0) <= cap


@given(st.sampled_from(RINGS), st.integers(1, 4), st.integers(0, 4))
def test_an_honest_ring_gets_all_its_cycles(ring: Ring, cap: int, enter: int) -> None:
    """Walked forward, a ring is refused exactly at the first edge's crossing number n + 1, wherever it was entered."""
    size = len(ring.nodes)
    place = enter % size
    firsts = 0
    ledger: Any = None
    while True:
        source, target = ring.nodes[place % size], ring.nodes[(place + 1) % size]
        after = fold(ledger, [step(source, target)], ring)
        if MaxCycles(cap).check(Ledger(after)).tripped:
            break
        firsts += source == ring.nodes[0]
        ledger = after
        place += 1
    assert (cap, ring.nodes[0]) == (firsts, source)


def test_a_handoff_to_the_first_node_and_another_at_once_passes_over_nobody() -> None:
    """The first node is being visited in that superstep, and its own handoff will begin the cycle."""
    assert 0 == fold(None, [step("c", "a", "b")], TRIPLE)["cycles"]
    assert 1 == fold(None, [step("c", "b")], TRIPLE)["cycles"]


# -- trips and decisions -----------------------------------------------------------------------------------------------


def test_a_trip_shuts_the_loop_once() -> None:
    """Asked again, a shut loop keeps its first reason and its count of trips, and holds back all that comes."""
    ledger = supersteps([trip("a", "b")], [trip("a", "c", id="t2"), trip("a", "b", id="t3")], ring=TRIPLE)
    assert ("t1", 1, ["b", "c"], 1) == (
        ledger["tripped"]["id"],
        ledger["trips"],
        ledger["tripped"]["to"],
        ledger["tripped"]["n"],
    )
    assert Ledger(ledger).tripped


def test_a_recorded_trip_carries_the_escalations_id() -> None:
    """The decision will name the escalation; without a trip there is nothing to name."""
    assert "e9" == supersteps([trip("a", "b")], [{"event": "recorded", "id": "e9"}])["tripped"]["id"]
    assert {"v": 1} == supersteps([{"event": "recorded", "id": "e9"}])


def test_a_decision_counts_once() -> None:
    """A decision that arrives again, or for another trip, changes nothing."""
    tripped = supersteps([step("a", "b")], [trip("a", "b")])
    decided = fold(tripped, [decision(cycles=2)], PAIR)
    assert (False, 1, 2.0) == (Ledger(decided).tripped, Ledger(decided).decisions, Ledger(decided).granted("cycles"))
    assert decided == fold(decided, [decision(cycles=2)], PAIR)
    assert decided == fold(tripped, [decision(cycles=2), decision(cycles=2)], PAIR)
    assert tripped == fold(tripped, [decision("t0", cycles=2)], PAIR)
    again = fold(decided, [trip("a", "b", id="t2")], PAIR)
    assert again == fold(again, [decision("t1", cycles=2)], PAIR)
    assert 2 == again["trips"]


@pytest.mark.parametrize("action", ["accept", "reject", "edit"])
def test_only_a_retry_grants(action: str) -> None:
    """The other decisions end the loop: they open the ledger and renew no budget, whatever the event carries."""
    ledger = supersteps([step("a", "b")], [trip("a", "b")], [decision(action=action, cycles=5)])
    assert (False, 0.0, {"a->b": 1}) == (
        Ledger(ledger).tripped,
        Ledger(ledger).granted("cycles"),
        Ledger(ledger).handoffs,
    )


@pytest.mark.parametrize("budget", ["cycles", "tokens", "seconds"])
def test_a_retry_renews_only_the_budget_that_it_names(budget: str) -> None:
    """Grants of one kind add up over decisions; the others stay at nothing."""
    ledger = supersteps(
        [trip("a", "b")], [decision(**{budget: 2})], [trip("a", "b", id="t2")], [decision("t2", **{budget: 3})]
    )
    assert {"cycles": 0.0, "tokens": 0.0, "seconds": 0.0, budget: 5.0} == {
        what: Ledger(ledger).granted(what) for what in ("cycles", "tokens", "seconds")
    }


def test_a_retry_lets_the_refused_handoff_pass_and_counts_it() -> None:
    """The handoff that was refused takes place now, so it is one of the cycles that were granted."""
    ledger = supersteps([step("a", "b")], [trip("a", "b")], [decision(cycles=1)])
    assert (2, {"a->b": 2}) == (Ledger(ledger).cycles, Ledger(ledger).handoffs)
    stays = supersteps([step("a", "b")], [trip("a", "b")], [{**decision(cycles=1), "reenter": False}])
    assert (1, {"a->b": 1}) == (Ledger(stays).cycles, Ledger(stays).handoffs)


def test_a_retry_clears_the_windows_and_keeps_the_counts() -> None:
    """After a person has spoken, what was repeated is forgotten; what was spent is not."""
    visit = {"keys": {"k": "f1"}, "artifact": "p1", "measure": 3, "tokens": 5, "seconds": 1.5}
    ledger = supersteps(
        [step("a", "b", **visit)], [step("b", "a", **visit)], [step("a", "b", **visit)], [trip("a", "b")], [decision()]
    )
    view = Ledger(ledger)
    assert ([], [], 0) == (view.window("a"), view.window("b"), view.unchanged)
    assert ({"a": 2, "b": 1}, 15, 4.5, 3) == (view.visits, view.tokens, view.seconds, view.cycles)
    assert ({"last": 3, "best": 3, "cycle": 2}, ["p1"]) == (view.measure, ledger["artifact"]["seen"])


def test_a_retry_does_not_look_back_at_earlier_work() -> None:
    """A work product that was seen before the decision is no revisit after it."""
    ledger = supersteps(
        [step("b", "a", artifact="p1")],
        [step("b", "a", artifact="p2")],
        [trip("b", "a")],
        [decision()],
        [step("b", "a", artifact="p1")],
    )
    assert (None, 0) == (Ledger(ledger).revisited, Ledger(ledger).unchanged)


def test_would_trip_keeps_the_first_reason_and_counts() -> None:
    """A guard that only observes says when it would have stopped first, and how often since."""
    reasons = [{"reason": {**trip("a", "b")["trip"]["reason"], "condition": name}} for name in ("X", "Y")]
    events = [[{**step("a", "b"), "would_trip": reason}] for reason in reasons]
    ledger = supersteps(*events)
    assert ({"reason": reasons[0]["reason"], "cycles": 1, "count": 2, "spent": {"cycles": 0}}, "X", False) == (
        ledger["would_trip"],
        Ledger(ledger).would_trip.condition,  # type: ignore[union-attr]
        Ledger(ledger).tripped,
    )


def test_what_would_have_tripped_at_once_is_counted_from_nothing() -> None:
    """Before the first cycle, too."""
    ledger = fold(None, [{**step("b"), "would_trip": {"reason": {}}}], PAIR)
    assert {"reason": {}, "cycles": 0, "count": 1, "spent": {"cycles": 0}} == ledger["would_trip"]


# -- turns -------------------------------------------------------------------------------------------------------------


def test_a_turn_renews_everything_but_what_is_counted_over_the_thread() -> None:
    """A new input begins with an empty ledger that knows its turns, trips and decisions."""
    ledger = supersteps(
        [step("a", "b", keys={"k": "f"}, tokens=5)],
        [trip("a", "b")],
        [decision(cycles=3)],
        [{"event": "turn", "history_from": 7}],
    )
    assert {"v": 1, "turns": 1, "trips": 1, "trips_before": 1, "decisions": 1, "history_from": 7} == ledger
    assert 2 == Ledger(fold(ledger, [{"event": "turn"}], PAIR)).turns


def test_a_thread_may_begin_with_a_turn() -> None:
    """Nothing has been counted before the first input."""
    assert {"v": 1, "turns": 1, "trips": 0, "trips_before": 0, "decisions": 0, "history_from": 0} == fold(
        None, [{"event": "turn"}], PAIR
    )


def test_a_turn_and_the_handoff_behind_it_may_share_a_superstep() -> None:
    """What was crossed before the turn does not hide what is crossed after it."""
    ledger = fold(None, [step("a", "b"), {"event": "turn"}, step("a", "b")], PAIR)
    assert (1, {"a->b": 1}) == (ledger["cycles"], ledger["handoffs"])


# -- visits ------------------------------------------------------------------------------------------------------------


def test_window_holds_the_last_visits_of_each_node() -> None:
    """Windows are per node, oldest first, and have a fixed length."""
    ledger: Any = None
    for number in range(10):
        ledger = fold(ledger, [step("a", "b", keys={"k": f"f{number}"}), step("b", "a", keys={"k": "x"})], PAIR)
        view = Ledger(ledger)
        assert min(number + 1, 4) == len(view.window("a")) == len(view.window("b"))
        assert {"n": number + 1, "cycle": number, "keys": {"k": f"f{number}"}} == view.window("a")[-1]
    assert [{"n": n + 1, "cycle": n, "keys": {"k": f"f{n}"}} for n in range(6, 10)] == view.window("a")
    assert (4, {"a": 10, "b": 10}, "b", []) == (len(view.window("b")), view.visits, view.last, view.window("c"))


def test_what_a_node_hands_through_is_not_what_it_wrote() -> None:
    """A node that returns the whole state wrote the keys that it has ever moved, and they count from then on."""
    ledger = supersteps(
        [step("a", keys={"title": "t", "patch": "p1"}, unmoved=["title"])],
        [step("a", keys={"title": "t", "patch": "p1"}, unmoved=["title", "patch"])],
        [step("a", keys={"title": "t2", "patch": "p1"}, unmoved=["patch"])],
        [step("a", keys={"title": "t2", "patch": "p1"}, unmoved=["title", "patch"])],
    )
    assert [{"patch": "p1"}, {"patch": "p1"}, {"title": "t2", "patch": "p1"}, {"title": "t2", "patch": "p1"}] == [
        entry["keys"] for entry in Ledger(ledger).window("a")
    ]


def test_a_node_that_only_ever_repeats_the_state_wrote_that() -> None:
    """With nothing moved at all, what it returned is all that there is."""
    ledger = supersteps([step("a", keys={"patch": "p1"}, unmoved=["patch"])])
    assert [{"patch": "p1"}] == [entry["keys"] for entry in Ledger(ledger).window("a")]


def test_names_of_moved_keys_are_bounded() -> None:
    """A payload whose keys are new each time (files, ticket numbers) does not make the ledger grow."""
    ledger: Any = None
    for number in range(MOVED_MEMORY + 50):
        ledger = fold(ledger, [step("a", keys={f"k{number}": "f"})], PAIR)
    moved = ledger["nodes"]["a"]["moved"]
    again = fold(ledger, [step("a", keys={f"k{number}": "g"})], PAIR)
    assert moved == again["nodes"]["a"]["moved"]
    assert (MOVED_MEMORY, True) == (len(moved), f"k{number}" in moved)


def test_nothing_repeats_in_an_empty_window() -> None:
    """As it is after a decision."""
    assert [] == repeats([])


def test_measure_remembers_its_lowest_and_when() -> None:
    """Progress is a new low: a swap of one finding for another is none, and neither is a way down from a new high."""
    ledger: Any = None
    seen = []
    for open_findings in (5, 3, 3, 7, 4, 2):
        ledger = fold(ledger, [step("a", "b", measure=open_findings), step("b", "a")], PAIR)
        seen.append((Ledger(ledger).measure["best"], Ledger(ledger).measure["cycle"]))
    assert [(5, 0), (3, 1), (3, 1), (3, 1), (3, 1), (2, 5)] == seen
    assert 2 == Ledger(ledger).measure["last"]


@pytest.mark.parametrize(
    ("visits", "unchanged"),
    [
        ("a1", 0),
        ("a1 b1", 1),
        ("a1 b1 a1 b1", 2),
        ("a1 b2 a2 b2", 1),
        ("a1 b2 a2 b2 a2 b2", 2),
        ("a1 b2 a2 b3", 0),
        ("a1 b1 a1 b2 a2 b2", 1),
        ("b1 b1 b1", 2),
    ],
)
def test_unchanged_counts_attempts(visits: str, unchanged: int) -> None:
    """An attempt is a visit of the node that makes the work product; the reviewer's visits are none."""
    ledger: Any = None
    for node, artifact in visits.split():
        ledger = fold(ledger, [step(node, artifact=artifact)], PAIR)
    assert unchanged == Ledger(ledger).unchanged


def test_the_node_that_writes_the_work_product_is_the_one_that_attempts() -> None:
    """Where the first node writes it, its visits are the attempts and the second's are not."""
    ledger: Any = None
    for _ in range(3):
        ledger = fold(ledger, [step("a", artifact="p1", wrote_artifact=True)], PAIR)
        ledger = fold(ledger, [step("b", artifact="p1")], PAIR)
    assert 2 == Ledger(ledger).unchanged


def test_who_writes_the_work_product_later_counts_from_then_on() -> None:
    """It stood in the state when the loop began, so the first visit says nothing about who makes it."""
    ledger = supersteps(
        [step("a", artifact="p1")], [step("a", artifact="p1", wrote_artifact=True)], [step("b", artifact="p1")]
    )
    assert 1 == Ledger(ledger).unchanged


def test_makers_of_the_work_product_are_named_once() -> None:
    """However often they write and change it."""
    ledger: Any = None
    for number in range(6):
        ledger = fold(ledger, [step("ab"[number % 2], artifact=str(number), wrote_artifact=True)], PAIR)
    assert (["a", "b"], ["a", "b"]) == (ledger["artifact"]["by"], ledger["artifact"]["wrote"])


def test_who_changes_the_work_product_counts_before_who_writes_it() -> None:
    """A reviewer that hands the state through writes the key as well, and never changes it."""
    ledger: Any = None
    for number in (1, 2, 2, 2):
        ledger = fold(
            ledger, [step("a", artifact=ledger["artifact"]["seen"][-1] if ledger else "0", wrote_artifact=True)], PAIR
        )
        ledger = fold(ledger, [step("b", artifact=str(number), wrote_artifact=True)], PAIR)
    assert 2 == Ledger(ledger).unchanged


@pytest.mark.parametrize(
    ("artifacts", "revisited"),
    [
        ("1", None),
        ("12", None),
        ("11", None),
        ("121", 1),
        ("1231", 2),
        ("1212", 1),
        ("1213", None),
        ("12131", 1),
        ("1211", 1),
    ],
)
def test_revisited_says_how_many_versions_ago(artifacts: str, revisited: int | None) -> None:
    """Work that was replaced and comes back; work that merely stays is not revisited."""
    ledger: Any = None
    for artifact in artifacts:
        ledger = fold(ledger, [step("b", artifact=artifact)], PAIR)
    assert revisited == Ledger(ledger).revisited


def test_memory_of_work_products_is_bounded() -> None:
    """After many versions the oldest are forgotten."""
    ledger: Any = None
    for number in range(ARTIFACT_MEMORY + 10):
        ledger = fold(ledger, [step("b", artifact=str(number))], PAIR)
    assert ARTIFACT_MEMORY == len(ledger["artifact"]["seen"])
    assert ARTIFACT_MEMORY - 1 == Ledger(fold(ledger, [step("b", artifact="10")], PAIR)).revisited
    assert None is Ledger(fold(ledger, [step("b", artifact="9")], PAIR)).revisited


@pytest.mark.parametrize(
    ("lefts", "stride"), [([20], None), ([20, 18], 2), ([20, 18, 13, 11], 5), ([20, 18, 40, 39], 2), ([20, 20], None)]
)
def test_stride_is_the_longest_way_between_two_crossings(lefts: list[int], stride: int | None) -> None:
    """A limit that rises is a new run and says nothing about the way."""
    ledger: Any = None
    for left in lefts:
        ledger = fold(ledger, [{**step("a", "b"), "steps_left": left}], PAIR)
        ledger = fold(ledger, [{**step("b"), "steps_left": 1}], PAIR)  # crosses nothing: not counted
    assert (stride, lefts[-1]) == (Ledger(ledger).stride, Ledger(ledger).steps_left)


@pytest.mark.parametrize(
    ("lefts", "growth"),
    [([90, 88], 0), ([90, 89, 80, 79, 70, 69], 0), ([90, 88, 86, 84, 80], 2), ([90, 88, 86, 84, 80, 73, 70], 3)],
)
def test_growth_is_by_how_much_ways_got_longer_after_the_first_lap(lefts: list[int], growth: int) -> None:
    """The two ways of a pair differ in length, which is no growth."""
    ledger: Any = None
    for turn, left in enumerate(lefts):
        source, target = ("a", "b") if turn % 2 == 0 else ("b", "a")
        ledger = fold(ledger, [{**step(source, target), "steps_left": left}], PAIR)
    assert growth == Ledger(ledger).growth


def test_a_refused_crossing_has_a_stride_too() -> None:
    """The way to a trip is as long as the way to a handoff."""
    crossed = {**step("a", "b"), "steps_left": 20}
    ledger = supersteps([crossed], [{**trip("a", "b"), "steps_left": 13}])
    assert (7, 13) == (Ledger(ledger).stride, Ledger(ledger).steps_left)


def test_a_ledger_with_little_in_it_goes_on() -> None:
    """What an earlier or later version wrote beside our own keys is kept, and what it lacks is begun."""
    old = {"v": 1, "cycles": 2, "of_a_later_version": [1]}
    ledger = fold(old, [step("a", "b", keys={"k": "f"})], PAIR)
    assert (3, [1]) == (Ledger(ledger).cycles, ledger["of_a_later_version"])


def test_an_event_of_a_later_version_is_passed_over() -> None:
    """A thread that went back to an older release goes on."""
    ledger = supersteps([step("a", "b")])
    assert ledger == fold(ledger, [{"event": "of a later version"}], PAIR)


def test_an_empty_ledger_says_so() -> None:
    """The view of nothing: every count is zero, every question has an answer."""
    view = Ledger()
    assert (0, {}, False, None, None, 0.0, 0, None, None, {}, 0, 0, 0, None, {}, None, 0) == (
        view.cycles,
        view.handoffs,
        view.tripped,
        view.reason,
        view.would_trip,
        view.seconds,
        view.tokens,
        view.steps_left,
        view.last,
        view.visits,
        view.decisions,
        view.turns,
        view.unchanged,
        view.revisited,
        view.measure,
        view.stride,
        view.growth,
    )
    assert ({"v": 1}, "Ledger(cycles=0, handoffs={}, tripped=False)") == (view.to_json(), repr(view))
    assert view != {"v": 1}


def test_the_view_gives_no_way_to_change_the_ledger() -> None:
    """What the view hands out are copies."""
    data = supersteps([step("a", "b", keys={"k": "f"}, measure=1)])
    before = copy.deepcopy(data)
    view = Ledger(data)
    for found in (view.handoffs, view.visits, view.measure, view.to_json()):
        found.clear()
    view.window("a").clear()
    assert before == data
