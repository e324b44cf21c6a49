"""The twenty pull requests, run for real."""

from __future__ import annotations

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from langgraph_loopguard.demo.batch import Totals
from langgraph_loopguard.demo.git import Git
from langgraph_loopguard.demo.loop import escalation_of
from tests.demo.playing import BOUND, Played


def test_fifteen_close_and_five_do_not(played: Played) -> None:
    """Unguarded, fifteen end by themselves and five go on until the demo stops them."""
    ended = [row.unguarded.ended for row in played.rows]

    assert (ended.count("complete"), ended.count("stopped")) == (15, 5)


def test_exactly_the_seeded_five_are_escalated(played: Played) -> None:
    """The guard stops the hopeless ones and no other."""
    assert [row.pull.pull.hopeless for row in played.rows] == [row.guarded.ended == "escalated" for row in played.rows]
    assert all(row.as_seeded for row in played.rows)


def test_honest_ones_take_the_cycles_that_they_are_seeded_with(played: Played) -> None:
    """One, two or three cycles, with and without the guard."""
    honest = [row for row in played.rows if not row.pull.pull.hopeless]

    assert [row.pull.pull.cycles for row in honest] == [row.unguarded.cycles for row in honest]
    assert [row.pull.pull.cycles for row in honest] == [row.guarded.cycles for row in honest]
    assert {1, 2, 3} == {row.guarded.cycles for row in honest}


def test_no_guarded_run_exceeds_the_cap(played: Played) -> None:
    """Three cycles at most, for all of them; unguarded ones reach the demo's bound."""
    assert max(row.guarded.cycles for row in played.rows) == 3
    assert max(row.unguarded.cycles for row in played.rows) == BOUND


def test_the_hopeless_are_stopped_for_different_reasons(played: Played) -> None:
    """The cap, undone work and fixes that change nothing are all seen."""
    reasons = {row.guarded.condition for row in played.rows if row.pull.pull.hopeless}

    assert {"MaxCycles", "RevisitedArtifact", "UnchangedArtifact"} == reasons


def test_a_guard_costs_an_honest_run_no_tool_run(played: Played) -> None:
    """Closed by the pair, both runs start the same processes."""
    honest = [row for row in played.rows if not row.pull.pull.hopeless]

    assert [row.unguarded.tool_runs for row in honest] == [row.guarded.tool_runs for row in honest]


def test_the_guard_saves_cycles_and_tool_runs(played: Played) -> None:
    """The totals of the guarded runs are lower."""
    before = Totals.of([row.unguarded for row in played.rows])
    after = Totals.of([row.guarded for row in played.rows])

    assert after.cycles < before.cycles
    assert after.tool_runs < before.tool_runs


def test_every_escalation_can_be_read_back(played: Played) -> None:
    """The database holds a whole record of each: reviews, fixes, diff and question."""
    with SqliteSaver.from_conn_string(str(played.work.database)) as saver:
        records = {row.pull.name: escalation_of(row.pull.name, row.pull.pull.nodes, saver) for row in played.rows}

    escalated = {name: record for name, record in records.items() if record}
    assert {row.pull.name for row in played.rows if row.pull.pull.hopeless} == set(escalated)
    for name, record in escalated.items():
        assert name == record["thread_id"]
        assert record["reviews"]
        assert record["fixes"]
        assert record["findings"]
        assert record["diff"].startswith("diff --git ")
        assert record["question"]


def test_each_fix_that_changes_something_is_a_commit(played: Played) -> None:
    """The guarded branch of a three-cycle pull request has three commits more than it was opened with."""
    row = next(row for row in played.rows if row.pull.pull.cycles == 3)
    git = Git(played.work.repository)

    count = git.run("rev-list", "--count", f"{row.pull.name}..guarded/{row.pull.name}").strip()

    assert count == "3"


@pytest.mark.parametrize("run", ["unguarded", "guarded"])
def test_progress_tells_every_run(played: Played, run: str) -> None:
    """The watcher hears of the beginning of each run."""
    begun = [name for name, which, cycle in played.watched if which == run and cycle == 0]

    assert [pull.name for pull in played.opened] == begun
