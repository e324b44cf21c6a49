"""Shares by cycle: equal to what the books say, and their intervals hold what is true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.duration.survfunc import SurvfuncRight

from langgraph_loopguard.report import Cost
from langgraph_loopguard.report.recommend import LEAST, _outlook
from langgraph_loopguard.report.survival import ENDINGS, Ending, curve, observation, tally
from tests.report.runs import World, capped, row, rows_of


def histories(*endings: Ending) -> st.SearchStrategy[np.ndarray]:
    """Counts of any loops that end so."""
    return st.lists(st.tuples(st.integers(0, 9), st.sampled_from(endings)), min_size=1, max_size=60).map(tally)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (row(2), (2, "resolved")),
        (row(0), (0, "resolved")),
        (row(2, "open"), (1, "censored")),  # the cycle that it is in has not ended
        (row(0, "open"), None),
        (capped(3), (3, "censored")),
        (capped(2, "UnchangedArtifact"), (2, "stopped")),
        (capped(2, "StepReserve"), (2, "censored")),
        (capped(2, "KeyError", kind="broken"), (2, "censored")),
        # after a decision it is no longer the loop by itself
        (capped(3, decision="retry", spent=Cost(cycles=7)), (3, "censored")),
        # watched: what happened after the cap is known
        (capped(3, observed=True, outcome="complete", spent=Cost(cycles=7)), (7, "resolved")),
        (capped(3, observed=True, outcome="open", spent=Cost(cycles=7)), (6, "censored")),
        (capped(2, "RepeatedPayload", observed=True, outcome="complete", spent=Cost(cycles=7)), (2, "stopped")),
    ],
)
def test_how_a_row_is_read(seen: object, expected: object) -> None:
    """A cap cuts off what is known; another condition is an end of its own."""
    assert expected == observation(seen)  # type: ignore[arg-type]


def test_an_example_by_hand() -> None:
    """Ten loops: 4 end after one cycle, 2 are capped there; of the 4 left 3 end after two, one is capped."""
    found = [(1, "resolved")] * 4 + [(1, "censored")] * 2 + [(2, "resolved")] * 3 + [(2, "censored")]
    steps = curve(tally(found))  # type: ignore[arg-type]
    assert [10, 10, 4] == [step.at_risk for step in steps]
    assert [0.0, 0.4, 0.75] == pytest.approx([step.chance.estimate for step in steps])
    assert [0.0, 0.4, 0.85] == pytest.approx([step.share.estimate for step in steps])
    assert [1.0, 0.6, 0.15] == pytest.approx([step.left for step in steps])


def test_an_ending_of_another_kind_competes() -> None:
    """Half of the loops are stopped in cycle 1: they never come to an end by themselves, and are no unknowns either."""
    found = [(1, "stopped")] * 5 + [(2, "resolved")] * 5
    steps = curve(tally(found))  # type: ignore[arg-type]
    assert [0.0, 0.0, 0.5] == pytest.approx([step.share.estimate for step in steps])
    assert 1.0 == steps[2].chance.estimate


@given(histories("censored", "resolved"))
def test_with_caps_alone_it_is_kaplan_meier(counts: np.ndarray) -> None:
    """What is stopped by nothing but caps."""
    if not counts[1].any():
        return
    times = np.concatenate([np.repeat(np.arange(counts.shape[1]), n) for n in counts])
    known = SurvfuncRight(times, np.repeat([0, 1, 2], counts.sum(1)))
    steps = curve(counts)
    for at, left in zip(known.surv_times, known.surv_prob, strict=True):
        assert 1 - left == pytest.approx(steps[int(at)].share.estimate)


@given(histories(*ENDINGS), st.sampled_from([0.5, 0.9, 0.95]))
def test_curves_are_whole(counts: np.ndarray, level: float) -> None:
    """Shares grow, stay between their limits and between 0 and 1; the resampling uses the very same estimates."""
    steps = curve(counts, level)
    shares = [step.share.estimate for step in steps]
    assert shares == sorted(shares)
    for step in steps:
        for interval in (step.chance, step.share):
            assert 0 <= interval.low <= interval.estimate + 1e-9
            assert interval.estimate - 1e-9 <= interval.high <= 1
    cycles, resolved = _outlook(counts)
    assert shares == pytest.approx(list(resolved))
    left = [step.left for step in steps]
    assert [sum(left[:cap]) for cap in range(len(left))] == pytest.approx(list(cycles))


def test_nothing_known_is_no_curve() -> None:
    """No loops at all, or none that ended."""
    assert () == curve(tally([]))
    steps = curve(tally([(2, "censored")] * 5))
    assert [0.0] * 3 == [step.share.estimate for step in steps]
    assert steps[2].share.high > 0.4


@pytest.mark.parametrize(
    "world",
    [
        World([0.02, 0.3, 0.35, 0.3, 0.2, 0.15, 0.1, 0.08, 0.05]),
        World([0.0, 0.2, 0.3, 0.3, 0.2, 0.1, 0.1, 0.05, 0.05], [0.0, 0.0, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]),
        World([0.0, 0.8, 0.5, 0.3, 0.1, 0.1, 0.1, 0.1, 0.1]),
    ],
    ids=["caps alone", "other conditions too", "quick"],
)
@pytest.mark.parametrize("loops", [60, 250])
def test_intervals_cover_the_truth_at_their_level(world: World, loops: int) -> None:
    """In 400 simulated histories with mixed caps, at every cycle that all of them can judge.

    Of 400 independent draws at 95%, fewer than 366 would happen once in 10,000 times.
    """
    rng, histories = np.random.default_rng(7), 400
    hits: dict[str, np.ndarray] = {name: np.zeros(len(world.left)) for name in ("chance", "share", "judged")}
    for _ in range(histories):
        for step in curve(world.history(rng, loops, [3, 4, 6, 8])):
            at = step.cycle
            if step.at_risk >= LEAST:
                hits["judged"][at] += 1
                hits["chance"][at] += step.chance.low <= world.resolve[at] <= step.chance.high
                hits["share"][at] += step.share.low <= world.share[at] <= step.share.high
    always = hits["judged"] == histories
    assert 2 <= always.sum()
    for name in ("chance", "share"):
        assert 366 <= hits[name][always].min()


def test_rows_and_counts_say_the_same() -> None:
    """A simulated history survives the way through rows."""
    counts = World([0.1, 0.3, 0.3], [0.0, 0.1, 0.1]).history(np.random.default_rng(1), 50, [1, 2])
    found = [seen for one in rows_of(counts) if (seen := observation(one)) is not None]
    assert np.array_equal(counts, tally(found))
