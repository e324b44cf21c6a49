"""A Reviewer and a Fixer that never agree, small enough to see through, and what tests ask about them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import LoopGuard, guard_loop


class State(TypedDict, total=False):
    n: int
    """Reviews so far."""
    review: Any
    patch: Any
    open: Any
    pr: Any
    guidance: str
    log: Annotated[list[Any], operator.add]


Body = Callable[[int], dict[str, Any]]


def review(n: int) -> dict[str, Any]:
    """What the Reviewer writes at its nth visit."""
    return {"review": f"remark {n}"}


def fix(n: int) -> dict[str, Any]:
    """What the Fixer writes after the nth review."""
    return {"patch": f"line 0\nline {n}\n"}


def builder_of(
    review: Body = review, fix: Body = fix, *, rounds: int = 99, state: Any = State
) -> StateGraph[Any, Any, Any, Any]:
    """Return the builder: `rounds` fixes are asked for at most."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(state)

    def reviewer(state: Any) -> dict[str, Any]:
        n = (state.get("n") or 0) + 1
        return {"n": n, **review(n)}

    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", lambda state: fix(state["n"]))
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges("reviewer", lambda state: "fixer" if state["n"] <= rounds else END, ["fixer", END])
    builder.add_edge("fixer", "reviewer")
    return builder


def pair(
    review: Body = review,
    fix: Body = fix,
    *,
    rounds: int = 99,
    state: Any = State,
    saver: Any = "memory",
    **settings: Any,
) -> tuple[Any, LoopGuard]:
    """Return the compiled graph and its guard; `saver=None` compiles without a checkpointer."""
    builder = builder_of(review, fix, rounds=rounds, state=state)
    guard = guard_loop(builder, "reviewer", "fixer", **settings)
    return builder.compile(checkpointer=InMemorySaver() if saver == "memory" else saver), guard


def thread(name: str = "thread", **more: Any) -> dict[str, Any]:
    """Return the config of one thread."""
    return {"configurable": {"thread_id": name, **more}}


def answer(app: Any, decision: Any, config: Any = None) -> dict[str, Any]:
    """Answer the question that waits; return what `invoke` returns."""
    result: dict[str, Any] = app.invoke(Command(resume=decision), config or thread())
    return result


def records(app: Any, config: Any = None) -> list[dict[str, Any]]:
    """All records of a thread, oldest first."""
    return list(app.get_state(config or thread()).values.get("escalations", {}).values())


def is_json(value: Any) -> bool:
    """Whether every saver keeps a value as it is: no tuple, enum, object, int over 64 bits, NaN or lone surrogate."""
    if type(value) is dict:
        return all(type(key) is str and is_json(key) and is_json(item) for key, item in value.items())
    if type(value) is list:
        return all(is_json(item) for item in value)
    if type(value) is str:
        return value == value.encode("utf-8", "replace").decode()
    if type(value) is int:
        return -(2**63) <= value < 2**63
    if type(value) is float:
        return math.isfinite(value)
    return value is None or type(value) is bool
