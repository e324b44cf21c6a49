"""Law 5, and 1 and 2 with it: a guarded graph does as the unguarded one did, until its cap is reached."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_loopguard import LoopGuard, guard_loop
from tests.graph.drive import ASYNC_DOORS, SYNC_DOORS, run
from tests.graph.graphs import COMMANDED, ROUTED, ROUTERS, STATES, Form, Seen, build, fixes, plain, thread


@st.composite
def forms(draw: st.DrawFn) -> Form:
    forward = draw(st.sampled_from((*ROUTED, *COMMANDED)))
    back = draw(st.sampled_from(("plain", *ROUTED, *COMMANDED)))
    form = Form(
        forward=forward,
        back=back,
        router=draw(st.sampled_from(ROUTERS)),
        state=draw(st.sampled_from(sorted(STATES))),
        reviewer=draw(st.sampled_from(("sync", "async", "subgraph"))),
        fixer=draw(st.sampled_from(("sync", "async", "subgraph"))),
        rounds=draw(st.integers(0, 4)),
        self_loop=draw(st.booleans()),
        side=draw(st.booleans()),
        via=draw(st.booleans()),
        flaky_nodes=draw(st.booleans()),
        flaky_router=draw(st.booleans()),
        interrupts=draw(st.booleans()),
    )
    return form


def pair(form: Form, cap: int, *, saver: bool, **settings: Any) -> tuple[Any, Any, Seen, Seen, LoopGuard]:
    """The same graph without and with a guard."""
    seen_bare, seen_guarded = Seen(), Seen()
    bare = build(form, seen_bare).compile(checkpointer=InMemorySaver() if saver else None)
    builder = build(form, seen_guarded)
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=cap, **settings)
    guarded = builder.compile(checkpointer=InMemorySaver() if saver else None)
    return bare, guarded, seen_bare, seen_guarded, guard


def until_cap(visits: list[str], cap: int) -> list[str]:
    """What a ten-line counter lets happen: everything up to the crossing after `cap` crossings."""
    out: list[str] = []
    crossed = 0
    for before, node in zip([None, *visits], visits, strict=False):
        if (before, node) == ("reviewer", "fixer"):
            crossed += 1
            if crossed > cap:
                break
        out.append(node)
    return out


@given(form=forms(), more=st.integers(0, 2), data=st.data())
def test_a_graph_that_does_not_trip_runs_as_without_a_guard(form: Form, more: int, data: st.DataObject) -> None:
    """Same state, same streams of the user's keys, same visits, same supersteps; each router called once per pass."""
    door = data.draw(st.sampled_from(ASYNC_DOORS if form.needs_async else SYNC_DOORS + ASYNC_DOORS))
    saver = form.interrupts or data.draw(st.booleans())
    event(door)
    bare, guarded, seen_bare, seen_guarded, guard = pair(form, max(1, form.rounds + more), saver=saver)
    expected, expected_chunks = run(bare, door, thread())
    actual, actual_chunks = run(guarded, door, thread())
    assert plain(expected) == plain(actual)
    assert expected_chunks == actual_chunks
    assert seen_bare.visits == seen_guarded.visits
    assert seen_bare.routed == seen_guarded.routed
    assert seen_bare.attempts == seen_guarded.attempts
    if saver:
        history = list(guarded.get_state_history(thread()))
        assert len(list(bare.get_state_history(thread()))) == len(history)
        assert len(fixes(expected)) == guard.ledger(history[0]).handoffs.get("reviewer->fixer", 0)


@given(form=forms(), cap=st.integers(1, 3), data=st.data())
def test_the_cap_holds_in_every_form(form: Form, cap: int, data: st.DataObject) -> None:
    """With a cap of N the target is entered N times, the run escalates, and up to there nothing is different."""
    doors = ASYNC_DOORS if form.needs_async else SYNC_DOORS + ASYNC_DOORS
    door = data.draw(st.sampled_from([door for door in doors if "v2" not in door]))
    saver = form.interrupts or data.draw(st.booleans())
    bare, guarded, seen_bare, seen_guarded, guard = pair(form, cap, saver=saver)
    wanted = fixes(run(bare, door, thread())[0])
    assume(len(wanted) > cap)
    state, _ = run(guarded, door, thread())
    assert until_cap(seen_bare.visits, cap) == seen_guarded.visits
    assert wanted[:cap] == fixes(state)
    if saver:
        ledger = guard.ledger(guarded.get_state(thread()))
        assert (cap, cap) == (ledger.cycles, ledger.handoffs["reviewer->fixer"])
    if not isinstance(state, dict) or "escalation" not in state:
        assert form.state in ("dataclass", "pydantic", "forbid")
        assert not saver
        return
    record = state["escalation"]
    assert state["outcome"] == "escalated"
    reason = record["reason"]
    assert ("MaxCycles", cap, cap + 1) == (reason["condition"], reason["threshold"], reason["observed"])
    assert cap == record["cycles"]
    assert cap == len(record["fixes"])
