"""In a graph, a guard that cannot see a repeat says so once, and names the key."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import MaxCycles, RepeatedPayload, guard_loop
from langgraph_loopguard.core.conditions import Condition


class State(TypedDict, total=False):
    patch: str
    nonce: str


@pytest.mark.parametrize(("condition", "lines"), [(RepeatedPayload(times=3), 1), (MaxCycles(7), 0)])
@pytest.mark.parametrize("visits", [1, 2])
def test_a_guard_that_cannot_fire_says_so_once(
    condition: Condition, lines: int, visits: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Six equal patches with a new nonce each: one warning per run, and only where a condition compares visits."""
    nonces = itertools.count(10)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(State)
    builder.add_node("reviewer", lambda state: {})
    builder.add_node("fixer", lambda state: {"patch": "x = 1", "nonce": f"n{next(nonces)}"})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda state: "fixer", ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=6, stop_when=condition)
    app = builder.compile()
    for _ in range(visits):
        app.invoke({})
    told = [message for message in caplog.messages if "cannot see that fixer repeats itself: 'nonce'" in message]
    assert lines * visits == len(told)
