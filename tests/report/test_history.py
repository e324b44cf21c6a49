"""Visits: what the record of an escalation holds, without its contents, and which of them say the same."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from langgraph_loopguard import guard_loop
from langgraph_loopguard.core.ledger import alike
from langgraph_loopguard.report import report
from langgraph_loopguard.report.repeats import fingerprints
from tests.graph.pairs import builder_of, pair, records, thread
from tests.report.runs import spend


@pytest.mark.parametrize("cycles", [1, 3, 150])
def test_visits_are_those_of_the_record(cycles: int, tmp_path: Path) -> None:
    """Node, cycle, time, tokens, seconds and measure of every visit, from a file; also when the history is long."""
    path = tmp_path / "runs.sqlite"
    with SqliteSaver.from_conn_string(str(path)) as saver:
        app, _ = pair(spend, rounds=999, saver=saver, max_cycles=cycles, measure=lambda state: state["n"])
        app.invoke({}, thread())
        (record,) = records(app)
    kept = sorted(record["reviews"] + record["fixes"], key=lambda one: (one["time"], one["node"] != "reviewer"))
    found = report(path, thread()).visits
    assert 2 * cycles + 1 == len(found)
    for visit, one in zip(found, kept, strict=True):
        plain = visit.to_json()
        assert (one["node"], one["cycle"], one["time"]) == (plain["node"], plain["cycle"], plain["at"])
        assert [one[name] for name in ("tokens", "seconds", "measure")] == [
            plain[name] for name in ("tokens", "seconds", "measure")
        ]
    assert list(range(1, len(found) + 1)) == [visit.n for visit in found]


def test_without_a_record_the_ring_begins_where_its_cycles_do() -> None:
    """The first node named to the guard need not be the first one visited."""
    builder = builder_of(rounds=2)
    guard_loop(builder, "fixer", "reviewer", max_cycles=9)
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    found = report(app, thread())
    assert 2 == found.loops[0].spent.cycles
    assert [("reviewer", 0), ("fixer", 1), ("reviewer", 1), ("fixer", 2), ("reviewer", 2)] == [
        (visit.node, visit.cycle) for visit in found.visits
    ]


def test_a_resumed_and_a_forked_thread_have_the_visits_of_their_branch() -> None:
    """As the history channel has them."""
    app, _ = pair(spend, max_cycles=2)
    app.invoke({}, thread())
    app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    assert [1, 1, 2, 2, 3, 3, 4] == [visit.cycle for visit in report(app, thread()).visits]
    history = [state for state in app.get_state_history(thread()) if state.next == ("fixer",)]
    app.invoke(None, history[-1].config, interrupt_after=["fixer"])
    assert ["reviewer", "fixer"] == [visit.node for visit in report(app, thread()).visits]


def test_a_repeated_patch_is_one_whatever_counter_stands_beside_it() -> None:
    """Two patches in turn, and a number that grows: two fingerprints; reviews that differ stay apart."""
    app, _ = pair(spend, lambda n: {"patch": "ab"[n % 2], "pr": n}, max_cycles=6)
    app.invoke({}, thread())
    found = report(app, thread()).visits
    fixes = [visit.fingerprint for visit in found if visit.node == "fixer"]
    assert (2, fixes[:2] * 3) == (len(set(fixes)), fixes)
    reviews = [visit.fingerprint for visit in found if visit.node == "reviewer"]
    assert len(reviews) == len(set(reviews))


VALUES = st.sampled_from(["x", "y", "z"])


def made(said: list[str], *, start: int, position: bool = False) -> list[dict[str, Any]]:
    """Visits that wrote a text beside a counter."""
    number = "page" if position else "attempt"
    return [{"keys": {"patch": text, number: start + n}} for n, text in enumerate(said)]


@given(st.lists(VALUES, min_size=2, max_size=20), st.integers(-5, 5))
def test_equal_fingerprints_are_what_the_ledger_calls_alike(said: list[str], start: int) -> None:
    """Pair by pair, with a counter beside the text."""
    visits = made(said, start=start)
    found = fingerprints(visits)
    entries = [{"n": n, "keys": visit["keys"]} for n, visit in enumerate(visits)]
    for (one, first), (other, second) in itertools.combinations(zip(entries, found, strict=True), 2):
        assert alike(one, other) == (first == second)


@given(st.lists(VALUES, min_size=2, max_size=20))
def test_a_position_is_no_counter(said: list[str]) -> None:
    """Page 2 is another page than page 1, whatever stands on it."""
    found = fingerprints(made(said, start=1, position=True))
    assert len(found) == len(set(found))


def test_what_a_visit_wrote_alone_counts() -> None:
    """A counter by itself, nothing at all, and a key that was never moved."""
    assert len(set(fingerprints([{"keys": {"n": 1}}, {"keys": {"n": 2}}]))) == 2
    assert [None, None] == fingerprints([{"keys": {}}, {}])
    whole = [{"keys": {"title": title, "patch": "p"}, "unmoved": ["title"]} for title in "ab"]
    assert len(set(fingerprints(whole))) == 1
    once = [{"keys": {"n": 1, "patch": "p"}}]
    assert fingerprints(once) != fingerprints([{"keys": {"n": 2, "patch": "p"}}])
