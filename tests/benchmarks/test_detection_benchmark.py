"""The detection benchmark counts what it says: readers, plays, intervals, curves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.detection import made
from benchmarks.detection.__main__ import BEGIN, END, collected
from benchmarks.detection.play import bare, play, score, wilson
from benchmarks.detection.rules import RULES, alone, preset
from benchmarks.detection.similarity import auc, recall
from benchmarks.detection.traces import Event, Trace, read
from langgraph_loopguard import MaxCycles, RepeatedPayload

NODES = ("reviewer", "fixer")


def write(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    """One JSON object a line."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_a_folder_is_read(tmp_path: Path) -> None:
    """Each file in its form; what is not there is left out."""
    event = {"thread": "t1", "agent": "fixer", "msg": {"patch": "p"}, "open": ["F1"], "rev": "r1"}
    write(tmp_path, "families.jsonl", {"family": "a_exact", "seed": 0, "should_fire": True, "events": [event] * 5})
    stream = {"id": "s", "guard": "a->b", "cycles": 4, "expect": {"trip": True, "kind": "repeat", "at": 3}}
    lines = [{"from": "a", "content": "x"}] * 3 + [{"from": "human", "content": "go on"}, {"from": "b", "content": "y"}]
    write(tmp_path, "streams.jsonl", {**stream, "events": [*lines, {"from": "outer", "content": "z"}]})
    steps = [{"kind": "action", "key": "1"}, {"kind": "observation", "key": "2"}, {"kind": "user", "key": "3"}]
    write(tmp_path, "openhands_v0_traces.jsonl", {"test": "t", "verdict": False, "headless": False, "events": steps})
    turns = [{"agent": "Code Reviewer", "content": "r"}, {"agent": "Programmer", "content": "p"}] * 3
    rounds = [
        {"code_changed": True, "reverts_to_round": None},
        {"code_changed": False, "reverts_to_round": None},
        {"code_changed": True, "reverts_to_round": 0},
    ]
    write(tmp_path, "traces/chatdev_review.dev.jsonl", {"id": "c", "label": "ok", "events": turns, "rounds": rounds})
    said = [
        {"agent": "human", "content": "task"},
        {"agent": "Orchestrator (thought)", "framework": True, "content": "hidden"},
        {"agent": "Orchestrator (-> WebSurfer)", "content": "look"},
        {"agent": "WebSurfer", "content": "found"},
    ]
    write(tmp_path, "traces/magentic_one.dev.jsonl", {"id": "m", "label": "loop", "events": said})
    calls = [{"agent": "user", "content": "u"}, {"agent": "agent", "content": "a"}, {"agent": "tool:x", "content": "t"}]
    write(tmp_path, "traces/tau_airline_x.dev.jsonl", {"id": "t", "label": "ok", "events": calls})
    found = {trace.set: trace for trace in read(tmp_path)}
    assert {"families", "streams", "openhands", "chatdev_review", "magentic_one", "tau_airline"} == found.keys()
    assert ("reviewer", "fixer") == found["families"].nodes
    assert Event("fixer", {"patch": "p"}, "r1", ["F1"]) == found["families"].events[0]
    assert ["a", "a", "a", None, None] == [event.node for event in found["streams"].events]
    assert ["decision", "turn"] == [event.payload for event in found["streams"].events[3:]]
    assert [{"action": "1", "seen": "2"}, "turn"] == [event.payload for event in found["openhands"].events]
    artifacts = [event.artifact for event in found["chatdev_review"].events]
    assert ["state 0", "state 1", "state 1", "state 1", "state 1", "state 1"] == artifacts
    assert [("Orchestrator", "look"), ("WebSurfer", "found")] == [event[:2] for event in found["magentic_one"].events]
    assert ["user", "agent"] == [event.node for event in found["tau_airline"].events]
    assert {"made", "made, bare", "families", "families, bare"} < collected(tmp_path).keys()
    assert ["made", "made, bare"] == list(collected(None))


def run(label: str, count: int, **more: Any) -> Trace:
    """A pair that says the same."""
    return Trace("t", f"{label}{count}", label, NODES, [Event(NODES[n % 2], "same") for n in range(count)], **more)


def test_scores() -> None:
    """Stops by label, what was paid, and who came too late."""
    traces = [run("loop", 8), run("loop", 2), run("ok", 8), run("ok", 2), run("unknown", 8)]
    found = score(traces, alone(RepeatedPayload()))
    assert {"loop": 1, "ok": 1, "unknown": 1} == found.stopped
    assert {"loop": 2, "ok": 2, "unknown": 1} == found.runs
    assert (5 / 8 + 1) / 2 == found.paid
    assert (2, 3) == (found.cycle, found.right)
    assert 1 == score([run("loop", 8, latest=4)], alone(RepeatedPayload())).late
    assert 0 == score([run("loop", 8, at=4)], alone(RepeatedPayload())).right
    assert 0 == score([run("loop", 8, kind="exhausted")], alone(RepeatedPayload())).right
    assert 1 == score([run("loop", 8, at=5, kind="stalled")], alone(RepeatedPayload())).right


def test_a_turn_begins_anew_and_a_decision_goes_on() -> None:
    """As the labels of the streams have it."""
    same = [Event("a", "same")] * 3
    guard = alone(RepeatedPayload())(Trace("t", "t", "ok", ("a", "b"), []))
    assert None is play(Trace("t", "t", "ok", ("a", "b"), [*same[:2], Event(None, "turn"), *same[:2]]), guard)
    stop = play(Trace("t", "t", "loop", ("a", "b"), [*same, Event(None, "decision"), *same[:2]]), guard)
    assert stop is not None
    assert 3 == stop.event


def test_a_cap_of_the_case_stands() -> None:
    """Whatever the preset says."""
    assert 7 == preset("progress")(run("ok", 2, max_cycles=7)).max_cycles
    assert MaxCycles(3) == preset("strict")(run("ok", 2)).condition.conditions[0]  # type: ignore[attr-defined]


def test_bare_runs_have_payloads_alone() -> None:
    """And the same ones."""
    trace = made.traces(1)[0]
    assert [event.payload for event in trace.events] == [event.payload for event in bare(trace).events]
    assert {(None, None)} == {(event.artifact, event.measure) for event in bare(trace).events}


def test_made_runs_are_the_same_each_time() -> None:
    """A seed makes all of it."""
    assert made.traces(2) == made.traces(2)
    assert made.pairs(5) == made.pairs(5)


@given(st.integers(0, 200), st.integers(1, 200))
def test_wilson_holds_the_rate(hits: int, total: int) -> None:
    """And stays within 0 and 1."""
    hits = min(hits, total)
    low, high = wilson(hits, total)
    assert 0 <= low <= hits / total + 1e-9
    assert hits / total - 1e-9 <= high <= 1


def test_wilson_as_published() -> None:
    """No hit in nine: up to 30 %."""
    assert pytest.approx((0.0, 0.299), abs=0.001) == wilson(0, 9)
    assert (0.0, 1.0) == wilson(0, 0)


def test_the_area_under_the_curve() -> None:
    """By hand: three of four orders are right, a tie is half of one."""
    assert 0.75 == auc([(0.9, True), (0.5, False), (0.4, True), (0.1, False)])
    assert 0.5 == auc([(0.5, True), (0.5, False)])
    assert [0.5, 1.0] == [recall([(0.9, True), (0.5, False), (0.4, True), (0.1, False)], rate) for rate in (0, 0.5)]


def test_the_docs_have_the_tables() -> None:
    """Made by the command, for the rules that there are."""
    page = (Path(__file__).parents[2] / "docs" / "detection.md").read_text(encoding="utf-8")
    tables = page.split(BEGIN)[1].split(END)[0]
    assert [] == [rule for rule in RULES if f"| {rule} |" not in tables]
