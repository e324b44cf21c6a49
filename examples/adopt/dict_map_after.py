"""After: the pair stops after three cycles, or when the fixer writes the same again, and a person gets the patch."""

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import UnchangedArtifact, guard_loop


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

guard_loop(builder, "reviewer", "fixer", max_cycles=3, artifact="patch", stop_when=UnchangedArtifact(2))

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({"patch": ""})
    record = result["escalation"]
    print(f"outcome: {result['outcome']}: {record['reason']['message']}")
    print("the patch:", record["fixes"][-1]["content"]["patch"])
