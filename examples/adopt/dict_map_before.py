"""Before: a reviewer and a fixer, joined by a router with a dict map. Only "approve" ends it, and it never comes."""

from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    patch: str
    review: str
    decision: str


def reviewer(state: State) -> State:
    patch = state.get("patch", "")
    if "raise" in patch:
        return {"decision": "approve", "review": "Good."}
    return {"decision": "revise", "review": "An empty list must raise."}


def fixer(state: State) -> State:
    return {"patch": "return sum(items) / max(len(items), 1)"}  # it thinks that this is the answer


def by_decision(state: State) -> str:
    return state["decision"]


builder = StateGraph(State)
builder.add_node("reviewer", reviewer)
builder.add_node("fixer", fixer)
builder.add_edge(START, "reviewer")
builder.add_conditional_edges("reviewer", by_decision, {"revise": "fixer", "approve": END})
builder.add_edge("fixer", "reviewer")

graph = builder.compile()

if __name__ == "__main__":
    try:
        graph.invoke({"patch": ""}, {"recursion_limit": 50})
    except GraphRecursionError:
        print("recursion limit: 50 steps, and nothing to show")
