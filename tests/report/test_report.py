"""Rows and sums: every way in which a loop can end, read from the checkpoints alone."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from langgraph_loopguard import LoopGuardError
from langgraph_loopguard.report import (
    Cost,
    LoopRun,
    MissingExtraError,
    Report,
    ReportError,
    read_loops,
    report,
    summarise,
)
from langgraph_loopguard.report.errors import need
from tests.graph.pairs import State, builder_of, pair, records, thread
from tests.report.runs import capped, every_end, row, run, spend

HOSTILE = "<script>alert(1)</script>\x1b[31m"


@pytest.fixture(scope="module")
def rows() -> dict[str, LoopRun]:
    """The rows of `every_end`, by thread."""
    return {one.thread: one for one in report(every_end()).loops}


@pytest.mark.parametrize(
    ("name", "outcome", "cycles", "stopped", "condition", "decision"),
    [
        ("at once", "complete", 0, None, None, None),
        ("complete", "complete", 2, None, None, None),
        ("escalated", "escalated", 3, 3, "MaxCycles", None),
        ("accepted", "escalated", 3, 3, "MaxCycles", "accept"),
        ("retried", "escalated", 4, 3, "MaxCycles", "retry"),
        ("again", "escalated", 4, 3, "MaxCycles", "retry"),
        ("blocked", "blocked", 0, 0, "Guard", None),
        ("watched", "complete", 6, 3, "MaxCycles", None),
        ("open", "open", 1, None, None, None),
    ],
)
def test_how_a_loop_ended(
    rows: dict[str, LoopRun],
    name: str,
    outcome: str,
    cycles: int,
    stopped: int | None,
    condition: str | None,
    decision: str | None,
) -> None:
    """Its end, its cycles, where a guard stopped it or would have, and what a person said."""
    found = rows[name]
    assert (outcome, cycles, decision) == (found.outcome, found.spent.cycles, found.decision)
    assert stopped == (None if found.stopped is None else found.stopped.cycles)
    assert (name == "watched") == found.observed
    assert condition == found.condition


def test_what_a_loop_cost(rows: dict[str, LoopRun]) -> None:
    """A hundred tokens a review, before the first stop and after it; nothing is known of dollars."""
    assert {"complete": 300, "escalated": 400, "retried": 500, "watched": 700} == {
        name: rows[name].spent.tokens for name in ("complete", "escalated", "retried", "watched")
    }
    assert [0, 0, 100, 300] == [rows[name].after.tokens for name in ("complete", "escalated", "retried", "watched")]
    assert all(one.spent.usd is None and one.to_json()["usd_after"] is None for one in rows.values())
    assert 0 < rows["complete"].spent.seconds == rows["complete"].before.seconds


def test_who_went_too_far(rows: dict[str, LoopRun]) -> None:
    """A retry that a person granted is no loop that went on unseen; a watched one is."""
    assert ["watched"] == [name for name, one in rows.items() if one.beyond(3)]
    assert {"watched", "escalated", "accepted", "retried", "again"} == {n for n, one in rows.items() if one.beyond(2)}


def test_the_sums(rows: dict[str, LoopRun]) -> None:
    """Shares of all loops."""
    summary = summarise(rows.values())
    plain = json.loads(json.dumps(summary.to_json(), allow_nan=False))
    assert {"complete": 3, "escalated": 4, "blocked": 1, "open": 1} == plain["outcomes"]
    assert (9, 1, pytest.approx(1 / 9), pytest.approx(5 / 9)) == (
        plain["loops"],
        plain["beyond"],
        plain["beyond_share"],
        plain["escalation_rate"],
    )
    assert (1, 1) == (plain["would_stop"], plain["would_stop_complete"])
    assert {"accept": 1, "retry": 2} == plain["decisions"]
    assert {"0": 2, "1": 1, "2": 1, "3": 2, "4": 2, "6": 1} == plain["cycles"]
    assert sum(one.spent.tokens for one in rows.values()) == plain["before"]["tokens"] + plain["after"]["tokens"]
    assert "55.6%" in dict(summary.lines())["escalation rate"]


def test_no_loops_are_no_share() -> None:
    """Nothing divided by nothing is not zero."""
    summary = summarise([])
    assert (None, None) == (summary.beyond_share, summary.escalation_rate)
    assert "none" == dict(summary.lines())["escalation rate"]
    assert () == report(InMemorySaver()).loops


@given(st.lists(st.tuples(st.integers(0, 9), st.booleans(), st.integers(0, 9), st.floats(0, 9)), max_size=30))
def test_sums_do_not_depend_on_the_order(found: list[tuple[int, bool, int, float]]) -> None:
    """And before and after together are what was spent."""
    made = [
        capped(cycles, spent=Cost(cycles=cycles + more, tokens=5, usd=usd)) if stop else row(cycles)
        for cycles, stop, more, usd in found
    ]
    one, other = summarise(made).to_json(), summarise(reversed(made)).to_json()
    assert one["outcomes"] == other["outcomes"]
    assert one["before"]["cycles"] + one["after"]["cycles"] == sum(each.spent.cycles for each in made)
    assert one["beyond"] == other["beyond"] <= one["loops"]


@pytest.mark.parametrize("threshold", [-1, 1.5, True, "3"])
def test_a_threshold_is_a_number_of_cycles(threshold: Any) -> None:
    """Nonsense is refused with the value."""
    with pytest.raises(ValueError, match="threshold must be a number of cycles"):
        report(InMemorySaver(), threshold=threshold)


def test_scope_keys_are_rows_of_their_own() -> None:
    """One thread, one row per key; the key comes back as it was."""
    app, _ = pair(spend, rounds=9, key="pr", max_cycles=2)
    for key in (7, "7", ["a", 1]):
        app.invoke({"pr": key, "n": 8}, thread())
    found = report(app, thread())
    assert [7, "7", ["a", 1]] == [one.scope for one in found.loops]
    assert {1} == {one.spent.cycles for one in found.loops}
    for key in (7, "7", ["a", 1]):
        assert [key] == [one.scope for one in found.only(scope=key).loops]
        assert 3 == len(found.only(scope=key).visits)
    assert () == found.only(scope=None).loops


def test_one_scope_waits_and_the_other_has_ended() -> None:
    """A thread that waits for a person is open for no other loop than the one that asks."""
    app, _ = pair(spend, rounds=9, key="pr", max_cycles=2)
    app.invoke({"pr": "done", "n": 8}, thread())
    app.invoke({"pr": "stuck", "n": 0}, thread())
    assert {"done": "complete", "stuck": "escalated"} == {one.scope: one.outcome for one in report(app).loops}


def test_a_turn_is_reported_without_the_trips_of_earlier_ones() -> None:
    """`per="turn"`: the row is the latest input's; what an earlier one escalated stays in its record."""
    app, _ = pair(spend, rounds=9, per="turn", max_cycles=2)
    app.invoke({"n": 0}, thread())
    assert "escalated" == report(app).loops[0].outcome
    app.invoke({"n": 8}, thread())
    (found,) = report(app).loops
    assert ("complete", 1, None, None) == (found.outcome, found.spent.cycles, found.stopped, found.condition)
    app.invoke({"n": 0}, thread())
    (found,) = report(app).loops
    assert (2, "escalated", 2) == (len(records(app)), found.outcome, found.before.cycles)


def test_loops_in_subgraphs_are_found() -> None:
    """With the namespace that they are in."""
    inner, _ = pair(spend, rounds=9, saver=None, max_cycles=2)
    outer = StateGraph(State)
    outer.add_node("inner", inner)
    outer.add_edge(START, "inner")
    app = outer.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    (found,) = report(app, thread()).loops
    assert ("escalated", 2) == (found.outcome, found.spent.cycles)
    assert found.namespace.startswith("inner:")


def test_a_ledger_of_a_shape_that_is_not_known_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    """As the guard itself does; the log says so."""
    app, _ = pair(spend, rounds=0)
    app.invoke({}, thread())
    saver = app.checkpointer
    found = saver.get_tuple(thread())
    changed = {**found.checkpoint, "channel_values": {**found.checkpoint["channel_values"]}}
    changed["channel_values"]["loopguard"] = {"reviewer-fixer": {"null": {"v": 99}}}
    changed["channel_versions"] = {**changed["channel_versions"], "loopguard": "9"}
    changed["id"] = "f" + changed["id"][1:]
    saver.put(found.config, changed, found.metadata, {"loopguard": "9"})
    assert () == report(app).loops
    assert "shape that is not known" in caplog.text


def test_a_trip_whose_record_is_not_written_yet() -> None:
    """A process that died on the way to the escalation node: the loop is shut all the same."""
    app, _ = pair(spend, rounds=9)
    app.invoke({}, thread(), interrupt_before=["loopguard_escalate"])
    (found,) = report(app).loops
    assert ("escalated", "MaxCycles", 3) == (found.outcome, found.condition, found.before.cycles)


def test_a_ledger_from_before_the_spent_was_kept() -> None:
    """Loops that an older version watched."""
    saver = InMemorySaver()
    run(saver, "watched", 6, mode="observe")
    would = saver.get_tuple(thread("watched")).checkpoint["channel_values"]["loopguard"]["reviewer-fixer"]["null"]
    assert {"cycles": 3, "tokens": 400} == {k: would["would_trip"]["spent"][k] for k in ("cycles", "tokens")}


def test_frames_have_a_row_per_loop_and_per_visit() -> None:
    """pandas, with plain columns."""
    app, _ = pair(spend, rounds=2)
    app.invoke({}, thread())
    found = report(app, thread())
    assert [("thread", 2, "complete")] == list(
        found.frame()[["thread", "cycles", "outcome"]].itertuples(index=False, name=None)
    )
    visits = found.visits_frame()
    assert ["reviewer", "fixer"] * 2 + ["reviewer"] == list(visits["node"])
    assert 300 == visits["tokens"].sum()
    assert 0 == len(report(InMemorySaver()).frame())


def test_a_report_in_a_notebook_shows_text_only() -> None:
    """Thread ids, scope keys and reasons are somebody else's words."""
    loops = tuple(row(n, thread=HOSTILE, scope={HOSTILE: 1}, reason=HOSTILE, condition=HOSTILE) for n in range(30))
    view = Report(loops, summarise(loops))._repr_html_()
    assert "<script>" not in view
    assert "\x1b" not in view
    assert "and 10 more" in view
    assert "&lt;script&gt;" in view
    assert "<script>" not in loops[0]._repr_html_()


def test_streaming_gives_the_same_rows() -> None:
    """And says how far it is."""
    saver, seen = every_end(), []
    assert list(report(saver).loops) == list(read_loops(saver, tick=lambda done, total: seen.append((done, total))))
    assert [(n, 9) for n in range(1, 10)] == seen


def test_only_one_guard_is_asked_for() -> None:
    """By its name."""
    saver = every_end()
    assert 9 == len(report(saver, loop="reviewer-fixer").loops)
    assert 0 == report(saver, loop="other").summary.loops


@pytest.mark.parametrize("config", [{}, {"configurable": {}}, {"configurable": {"thread_id": None}}])
def test_a_config_names_a_thread(config: Any) -> None:
    """Or there is nothing to look for."""
    with pytest.raises(ValueError, match="config must name a thread"):
        report(InMemorySaver(), config)


def test_a_thread_that_is_not_there() -> None:
    """Is no empty report."""
    with pytest.raises(ReportError, match="there is no thread 'nobody'"):
        report(InMemorySaver(), thread("nobody"))


def test_a_graph_that_nothing_guards_has_no_rows() -> None:
    """Its threads are read all the same."""
    app = builder_of(rounds=1).compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    found = report(app, thread())
    assert ((), ()) == (found.loops, found.visits)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line with what to install; a package that is broken inside is not called missing."""
    for module in ("pandas", "rich.console", "rich"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(
        MissingExtraError, match=r"pandas is not installed: pip install 'langgraph-loopguard\[notebook\]'"
    ):
        report(InMemorySaver()).frame()
    with pytest.raises(LoopGuardError, match=r"langgraph-loopguard\[report\]"):
        report(InMemorySaver(), progress=True)


def test_a_package_that_fails_inside_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own error, not ours."""
    (tmp_path / "half_there.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all") as caught:
        need("half_there")
    assert not isinstance(caught.value, MissingExtraError)


def test_importing_the_library_or_the_reports_brings_no_extra_along() -> None:
    """Core and graph stay free of them; reports import them where they are used."""
    code = "import sys, langgraph_loopguard, langgraph_loopguard.report, langgraph_loopguard.cli; "
    code += "langgraph_loopguard.cli.build_parser(); "
    code += "print(sorted({'pandas', 'matplotlib', 'statsmodels', 'scipy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert "[]" == done.stdout.strip()


def test_rows_are_plain_json(rows: dict[str, LoopRun]) -> None:
    """Every column."""
    for one in rows.values():
        assert one.to_json() == json.loads(json.dumps(one.to_json(), allow_nan=False))
        assert dataclasses.replace(one) == one
