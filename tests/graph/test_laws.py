"""Laws 3, 4 and 10: what a guard remembers is plain JSON, threads never meet, and a guard that breaks costs no work."""

from __future__ import annotations

import math
import operator
from decimal import Decimal
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import LoopGuard, Reason, Verdict, guard_loop
from tests.graph.graphs import Form, Seen, build, thread


def extend(before: list[str], after: list[str]) -> list[str]:
    """A reducer that changes its left side, as many do."""
    before.extend(after)
    return before


class InPlace(TypedDict, total=False):
    n: Annotated[int, operator.add]
    log: Annotated[list[str], extend]


def guarded(rounds: int = 9, **settings: Any) -> tuple[Any, LoopGuard]:
    """A plain pair with a guard and a checkpointer."""
    builder = build(Form(rounds=rounds), Seen())
    guard = guard_loop(builder, "reviewer", "fixer", **settings)
    return builder.compile(checkpointer=InMemorySaver()), guard


def assert_json(value: Any) -> None:
    """Only what every saver keeps: no tuple, enum, object, int over 64 bits, NaN or infinity."""
    if type(value) is dict:
        assert all(type(key) is str for key in value)
        for item in value.values():
            assert_json(item)
    elif type(value) is list:
        for item in value:
            assert_json(item)
    elif type(value) is int:
        assert -(2**63) <= value < 2**63
    elif type(value) is float:
        assert math.isfinite(value)
    else:
        assert value is None or type(value) in (str, bool), value


@pytest.mark.parametrize(
    "reason",
    [
        Reason("mine", "stalled", Decimal(3), {1, 2}, "why", ()),
        Reason("mine", "stalled", math.inf, 2**70, "why \ud800", ("a text", Decimal(1), {"at": object()})),
    ],
)
@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_a_reason_of_the_users_own_is_kept_as_json(reason: Reason, mode: Any) -> None:
    """Whatever a condition puts into its reason, the state holds JSON and the run goes on."""
    app, _ = guarded(rounds=2, mode=mode, stop_when=lambda ledger: Verdict(tripped=True, reason=reason))
    app.invoke({"n": 0}, thread())
    values = app.get_state(thread()).values
    for key in ("loopguard", "loopguard_history", "escalations"):
        assert_json(values.get(key))


@pytest.mark.parametrize("measure", [2**70, 10**400, math.inf, -math.inf, math.nan, "x", b"x", True, None, object()])
def test_a_measure_that_cannot_be_kept_blocks(measure: Any) -> None:
    """A measure is a finite number of 64 bits, or a collection; anything else ends in `blocked`, and `None` is no measure."""
    app, guard = guarded(measure=lambda state: measure)
    state = app.invoke({"n": 0}, thread())
    assert ("escalated" if measure is None else "blocked") == state["outcome"]
    assert_json(guard.ledger(app.get_state(thread())).data)


def test_a_selector_does_not_disturb_a_reducer_that_changes_its_left_side() -> None:
    """Reading the artifact after a node's write applies the reducer to a copy."""
    builder = StateGraph(InPlace)
    builder.add_node("reviewer", lambda state: {"n": 1, "log": ["review"]})
    builder.add_node("fixer", lambda state: Command(update={"log": ["fix"]}, goto="reviewer" if state["n"] < 2 else END))
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    guard_loop(builder, "reviewer", "fixer", artifact="log")
    assert ["review", "fix", "review", "fix"] == builder.compile().invoke({})["log"]
