"""A key that is new at each visit blinds the conditions that compare visits; whoever set them is told once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraph_loopguard import Fingerprinter, LoopGuard, MaxCycles, Oscillation, RepeatedPayload
from langgraph_loopguard.core.conditions import Condition
from langgraph_loopguard.core.defeat import defeating_key
from langgraph_loopguard.core.ledger import alike

NONCES = ["a81f", "07cc", "3b2e", "99d0", "c4c4", "1f1f", "e0e1", "7a7b"]


def window(updates: Sequence[dict[str, Any]], kept: int = 8) -> list[dict[str, Any]]:
    """The window of a ledger after a node has written `updates`."""
    fingerprints = Fingerprinter().fingerprints
    return [{"n": n, "cycle": n, "keys": fingerprints(update)} for n, update in enumerate(updates, start=1)][-kept:]


def told(updates: Sequence[dict[str, Any]], condition: Condition | None = None, kept: int = 8) -> list[str | None]:
    """What is said at each visit."""
    condition = condition or MaxCycles(9) | RepeatedPayload(times=3)
    out = []
    for n, update in enumerate(updates, start=1):
        out.append(defeating_key(condition, "fixer", window(updates[:n], kept), update))
    return out


def with_nonce(**rest: Any) -> list[dict[str, Any]]:
    return [{"patch": "x = 1", "nonce": nonce, **rest} for nonce in NONCES]


def test_the_key_is_named_once() -> None:
    """At the visit at which the condition would have fired without it, and at none of those after it."""
    assert [None, None, "nonce", None, None, None, None, None] == told(with_nonce())


def test_the_key_is_named_once_in_a_window_that_is_always_full() -> None:
    """A window may hold just what its condition needs."""
    found = told(with_nonce(), RepeatedPayload(times=4, window=4), kept=4)
    assert [None, None, None, "nonce", None, None, None, None] == found


@pytest.mark.parametrize(
    ("condition", "at"),
    [
        (RepeatedPayload(times=5), 5),
        (RepeatedPayload(times=2), 3),
        (RepeatedPayload(times=4) & MaxCycles(2), 4),
        (RepeatedPayload(times=4, node="fixer"), 4),
        (RepeatedPayload(times=4, node="reviewer"), None),
        (Oscillation(), 3),
        (RepeatedPayload(times=5) | Oscillation(laps=4), 4),
        (MaxCycles(3), None),
    ],
)
def test_it_takes_a_condition_that_compares_visits(condition: Condition, at: int | None) -> None:
    """As many visits as the condition needs, and three at least; without such a condition there is nothing to say."""
    found = told(with_nonce(), condition)
    assert ["nonce" if at == n else None for n in range(1, 9)] == found


@pytest.mark.parametrize(
    "updates",
    [
        [{"nonce": nonce} for nonce in NONCES],
        [{"patch": "x = 1", "verdict": word} for word in ("reject", "approve", "unsure", "later")],
        [{"status": "open", "patch": f"x = {n} # y"} for n in range(8)],
        [{"patch": f"x{nonce}", "nonce": nonce} for nonce in NONCES],
        [{"patch": "x = 1", "failures": n} for n in (9, 7, 4, 1)],
        [{"patch": "x = 1", "elapsed": n} for n in (1, 7, 9, 22)],
        [{"patch": "x = 1", "line": n} for n in (9, 1, 22, 3)],
        [{"patch": "x = 1", "round": n} for n in range(8)],
        [{"patch": "x = 1", "nonce": NONCES[n % 2]} for n in range(8)],
        [{"patch": "x = 1"} for _ in range(8)],
        [{"patch": "x = 1", f"nonce{n}": n} for n in range(8)],
    ],
)
def test_progress_and_real_repeats_are_not_blamed(updates: list[dict[str, Any]]) -> None:
    """Work that is new, numbers that fall or rise, positions, counters, and what the condition does see."""
    assert {None} == set(told(updates))


def test_numbers_without_a_direction_are_blamed() -> None:
    """A seed is a whole number as well; fractions are measured times."""
    assert "seed" in told([{"patch": "x = 1", "seed": n} for n in (9, 1, 22, 3)])
    assert "seconds" in told([{"patch": "x = 1", "seconds": n} for n in (0.5, 0.7, 0.9)])


def test_a_counter_beside_it_does_not_hide_it() -> None:
    """Counters hide no repeat, so they hide no nonce either."""
    updates = [{"patch": "x = 1", "round": n, "nonce": nonce} for n, nonce in enumerate(NONCES)]
    assert "nonce" == told(updates)[2]


def test_it_is_said_again_after_something_else() -> None:
    """A new row of such visits is a new finding, also when the window has moved on."""
    updates = [*with_nonce(), {"patch": "y = 2", "nonce": "zz9"}, *with_nonce(more=1)]
    assert 2 == len([key for key in told(updates) if key])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"a": st.sampled_from(["x", "y"]), "b": st.sampled_from([*NONCES, 1, 2, 7])}, optional={"c": st.just("z1")}
        ),
        max_size=9,
    ),
    st.integers(2, 5),
)
def test_without_the_key_the_condition_would_have_fired(updates: list[dict[str, Any]], times: int) -> None:
    """What is named is right: the last visits are alike but for that key, and it is new in each."""
    found = window(updates)
    key = defeating_key(RepeatedPayload(times=times), "fixer", found, updates[-1] if updates else {})
    if key is not None:
        tail = found[-max(times, 3) :]
        rest = [{"n": entry["n"], "keys": {k: v for k, v in entry["keys"].items() if k != key}} for entry in tail]
        assert all(alike(entry, rest[-1]) for entry in rest[:-1])
        assert len(tail) == len({str(entry["keys"][key]) for entry in tail})


def test_observe_says_it(caplog: pytest.LogCaptureFixture) -> None:
    """One line for the ledger, with the guard, the node, the key and what to do; none once the key is ignored."""
    caplog.set_level(logging.WARNING, "langgraph_loopguard")
    for fingerprinter, lines in ((Fingerprinter(), 1), (Fingerprinter(ignore={"nonce"}), 0)):
        caplog.clear()
        guard = LoopGuard("a", "b", max_cycles=20, stop_when=RepeatedPayload(times=4), fingerprinter=fingerprinter)
        ledger = None
        for update in with_nonce():
            ledger, verdict = guard.observe(ledger, "b", update)
        assert lines == len(caplog.messages)
        assert verdict.tripped is (lines == 0)
        if lines:
            assert caplog.messages[0].startswith("guard a-b cannot see that b repeats itself: 'nonce' is new")
            assert "ignore={'nonce'}" in caplog.messages[0]


def test_the_work_product_is_not_blamed(caplog: pytest.LogCaptureFixture) -> None:
    """A key that the guard was told to look at is content, however short it is."""
    guard = LoopGuard("a", "b", max_cycles=20, stop_when=RepeatedPayload(), artifact="nonce")
    ledger = None
    for update in with_nonce():
        ledger, _ = guard.observe(ledger, "b", update, artifact=update["nonce"])
    assert [] == caplog.messages
