"""Two graphs for a LangGraph Server: a guarded loop, and one that is a subgraph."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


class State(TypedDict, total=False):
    """What the nodes pass on."""

    n: int
    review: str
    patch: str
    log: Annotated[list[str], operator.add]


async def reviewer(state: State) -> dict[str, Any]:
    """Remark something."""
    return {"review": f"remark {state.get('n', 0)} \u202e<script>"}


async def fixer(state: State) -> dict[str, Any]:
    """Try again."""
    n = state.get("n", 0) + 1
    return {"n": n, "patch": f"line {n}\n", "log": [f"fix {n}"]}


async def after(state: State) -> dict[str, Any]:
    """Say that the loop is over."""
    return {"log": ["after"]}


def loop() -> StateGraph[State]:
    """Return a loop that never ends by itself, guarded."""
    builder = StateGraph(State)
    builder.add_node("reviewer", reviewer)
    builder.add_node("fixer", fixer)
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=2, artifact="patch")
    return builder


review = loop().compile()

outer = StateGraph(State)
outer.add_node("inner", loop().compile())
outer.add_node("after", after)
outer.add_edge(START, "inner")
outer.add_edge("inner", "after")
nested = outer.compile()
