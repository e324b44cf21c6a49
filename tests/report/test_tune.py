"""`tune`: a cap from a history, within one of the best, or nothing."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from langgraph_loopguard.report import Cost, LoopRun, ReportError, Tuning, report, tune
from tests.report.runs import World, capped, every_end, row, rows_of

STEEP = World([0.0, 0.3, 0.5, 0.5, 0.2, 0.05, 0.02, 0.02, 0.01, 0.01])
LATE = World([0.0, 0.05, 0.1, 0.5, 0.5, 0.4, 0.1, 0.02, 0.01, 0.01], [0.0, 0.02, 0.02, 0.02, 0.05] + [0.1] * 5)


def tuned(world: World, loops: int, seed: int, caps: list[int], minute_usd: float = 1.0) -> Tuning:
    """Tune one simulated history; a cycle costs a dollar, an escalation ten minutes."""
    rows = rows_of(world.history(np.random.default_rng(seed), loops, caps))
    return tune(rows, minute_usd=minute_usd, cycle_usd=1.0)


@pytest.mark.parametrize("caps", [[9], [3, 5, 8]], ids=["watched", "capped"])
@pytest.mark.parametrize(("world", "minute_usd"), [(STEEP, 0.3), (STEEP, 1.0), (LATE, 0.6), (LATE, 1.5)])
def test_a_recommended_cap_is_within_one_of_the_best(world: World, caps: list[int], minute_usd: float) -> None:
    """Over 25 simulated histories of 400 loops; one that says "or more" is never above the best."""
    best = world.best_cap(1.0, 10 * minute_usd)
    found = [tuned(world, 400, seed, caps, minute_usd) for seed in range(25)]
    said = [one for one in found if one.recommended is not None]
    assert len(said) >= 15
    off = [one for one in said if not one.at_least and abs((one.recommended or 0) - best) > 1]
    assert len(off) <= 1
    assert all((one.recommended or 0) <= best + 1 for one in said if one.at_least)


def test_few_runs_say_nothing() -> None:
    """Not enough for any cap, or so many that chance decides."""
    few = tuned(STEEP, 12, 1, [9])
    assert (None, ()) == (few.recommended, few.caps)
    assert few.why.startswith("too few runs to say: 12 loops")
    flat = World([0.0] + [0.2] * 9)  # every cap costs nearly the same
    some = [tuned(flat, 150, seed, [9], minute_usd=0.5) for seed in range(5)]
    assert any(one.recommended is None and "the best cap anywhere from" in one.why for one in some)
    assert all(one.agreement is not None and one.agreement < 0.9 for one in some if one.recommended is None)


def test_nothing_is_said_beyond_what_was_seen() -> None:
    """Loops that a cap of three has cut off do not know whether a fourth cycle pays."""
    found = tuned(LATE, 400, 3, [3])
    assert (3, True) == (found.recommended, found.at_least)
    assert "a cap of 3 or more" in found.why
    assert [1, 2, 3] == [cap.cap for cap in found.caps]


def test_the_table_adds_up() -> None:
    """What a cap of two would have done to these loops, by hand: half end in cycle 1, half in cycle 3."""
    found = tune([row(1)] * 50 + [row(3)] * 50, minute_usd=2.0, cycle_usd=0.5)
    two = found.caps[1]
    assert (2, 0.5, 0.5, 1.5, 3.0, 5.0) == pytest.approx(
        (two.cap, two.resolved, two.escalated, two.cycles, two.seconds, two.minutes)
    )
    assert (0.75, 10.0, 10.75) == pytest.approx((two.loop_usd, two.person_usd, two.usd))
    assert (3, False) == (found.recommended, found.at_least)
    assert {"censored": 0, "resolved": 100, "stopped": 0} == found.endings


def test_the_same_history_gives_the_same_answer() -> None:
    """The resampling is seeded."""
    assert tuned(STEEP, 200, 5, [9]) == tuned(STEEP, 200, 5, [9])


@pytest.mark.parametrize(
    ("rows", "prices", "per_cycle"),
    [
        ([row(2, spent=Cost(cycles=2, usd=0.5))] * 40, {}, 0.25),
        ([row(2)] * 40, {"million_tokens_usd": 3.0}, 0.003),
        ([row(2, spent=Cost(cycles=2, usd=0.5))] * 40, {"cycle_usd": 7.0}, 7.0),
    ],
)
def test_what_a_cycle_costs(rows: list[LoopRun], prices: dict[str, float], per_cycle: float) -> None:
    """As recorded, by the tokens, or as told."""
    found = tune(rows, minute_usd=1.0, **prices)
    assert per_cycle == pytest.approx(found.caps[0].loop_usd)


def test_without_a_price_of_a_minute_there_is_a_table_and_no_cap() -> None:
    """Nothing is guessed."""
    found = tune([row(1)] * 40)
    assert (None, None, 1) == (found.recommended, found.caps[0].usd, len(found.caps))
    assert "price of a person's minute" in found.why


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minute_usd": 1.0}, "recorded no dollars"),
        ({"loop": "other"}, "no loop 'other'"),
    ],
)
def test_what_cannot_be_tuned(arguments: dict[str, object], message: str) -> None:
    """One line that says what is missing."""
    with pytest.raises(ReportError, match=message):
        tune([row(1)] * 40, **arguments)  # type: ignore[arg-type]


def test_two_loops_are_two_caps() -> None:
    """They are never mixed."""
    rows = [row(1)] * 30 + [row(2, loop="other")] * 30
    with pytest.raises(ReportError, match="'other', 'pair'"):
        tune(rows)
    assert {"resolved": 30, "censored": 0, "stopped": 0} == tune(rows, loop="other").endings
    with pytest.raises(ReportError, match="no guarded loop"):
        tune([])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"level": 1.0}, "level must be between 0 and 1, got 1.0"),
        ({"minutes": -1.0}, "minutes must be 0 or more, got -1.0"),
        ({"minute_usd": math.nan}, "minute_usd must be 0 or more, got nan"),
        ({"cycle_usd": math.inf}, "cycle_usd must be 0 or more, got inf"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, float], message: str) -> None:
    """With the parameter's name and the value."""
    with pytest.raises(ValueError, match=message):
        tune([row(1)], **arguments)  # type: ignore[arg-type]


def test_a_source_and_its_report_say_the_same() -> None:
    """A checkpointer, its report and the rows; the loops that were watched count to their end."""
    saver = every_end()
    found = tune(saver)
    assert found == tune(report(saver)) == tune(report(saver).loops)
    # at once, complete, watched | escalated, accepted, retried, again, blocked, open
    assert {"resolved": 3, "censored": 6, "stopped": 0} == found.endings


def test_a_long_loop_is_no_burden() -> None:
    """Loops that ran away for thousands of cycles: the memory of the resampling is bounded by batches."""
    rows = [row(1)] * 60 + [row(3000)] * 3 + [capped(2)] * 30
    found = tune(rows, minute_usd=5.0, cycle_usd=0.1)
    assert 3001 == len(found.steps)
    assert 2 == len(found.caps)


def test_views_are_plain_and_escaped() -> None:
    """JSON, a frame, and a table in which a guard's name is text."""
    found = tune([row(1, loop="<script>")] * 40, minute_usd=1.0, cycle_usd=0.1)
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["caps"][0]["resolved"] == 1.0
    assert ["cap", "at_risk"] == list(found.frame().columns[:2])
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()
    assert "too few" in tune([row(1)])._repr_html_()
