"""The same guard in pieces: the recorder around nodes, the gate in edges, and the escalation added to the builder.

For those who want to see in their own code where the guard stands. `guard_loop` does the same to a finished builder.
"""

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import LoopGuard, UnchangedArtifact


class State(TypedDict, total=False):
    issues: list[str]
    patch: str


def reviewer(state: State) -> State:
    return {"issues": ["None is not handled"]}


def fixer(state: State) -> State:
    return {"patch": "return x or 0"}  # the same every time


def is_clean(state: State) -> bool:
    return not state["issues"]


guard = LoopGuard("reviewer", "fixer", max_cycles=5, artifact="patch", stop_when=UnchangedArtifact(2))

builder = StateGraph(State)
builder.add_node("reviewer", guard.node("reviewer", reviewer))
builder.add_node("fixer", guard.node("fixer", fixer))
builder.add_edge(START, "reviewer")
builder.add_conditional_edges("reviewer", *guard.edge("reviewer", is_clean, {True: END, False: "fixer"}))
builder.add_conditional_edges("fixer", *guard.edge("fixer", "reviewer"))  # a plain edge names its one target
guard.add_to(builder)  # last: it checks that nothing of the loop is left without a guard

graph = builder.compile()
result = graph.invoke({})
reason = result["escalation"]["reason"]
print("outcome:", result["outcome"])
print("edge:", result["escalation"]["edge"])
print(f"reason: {reason['condition']} ({reason['kind']}): {reason['message']}")
print("cycles:", result["escalation"]["cycles"])
