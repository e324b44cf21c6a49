"""A guarded graph for LangGraph Server: compiled without a checkpointer, because the server supplies its own.

The guard asks at run time whether there is one, so a trip here ends in an interrupt.
"""

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


class State(TypedDict, total=False):
    pull_request: str
    attempts: int
    review: str
    patch: str
    guidance: str


async def reviewer(state: State) -> State:
    return {"review": f"Attempt {state.get('attempts', 0)} still does not handle None."}


async def fixer(state: State) -> State:
    attempts = state.get("attempts", 0) + 1
    default = "0" if state.get("guidance") else f"DEFAULT_{attempts}"
    return {"attempts": attempts, "patch": f"return x or {default}\n"}


builder = StateGraph(State)
builder.add_node(reviewer)
builder.add_node(fixer)
builder.add_edge(START, "reviewer")
builder.add_edge("reviewer", "fixer")
builder.add_edge("fixer", "reviewer")

guard_loop(builder, "reviewer", "fixer", max_cycles=3, artifact="patch")

graph = builder.compile()
