"""Three agents in a ring are one loop with one count, and a lap that cuts a corner counts as well."""

import operator
from typing import Annotated

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


class State(TypedDict, total=False):
    path: Annotated[list[str], operator.add]
    plans: int


def planner(state: State) -> State:
    return {"path": ["planner"], "plans": state.get("plans", 0) + 1}


def coder(state: State) -> State:
    return {"path": ["coder"]}


def tester(state: State) -> State:
    return {"path": ["tester"]}


def after_test(state: State) -> str:
    return "planner" if state["plans"] < 2 else "coder"  # the second plan must do: from then on past the planner


builder = StateGraph(State)
builder.add_node(planner)
builder.add_node(coder)
builder.add_node(tester)
builder.add_edge(START, "planner")
builder.add_edge("planner", "coder")
builder.add_edge("coder", "tester")
builder.add_conditional_edges("tester", after_test, ["planner", "coder"])

guard_loop(builder, "planner", "coder", "tester", max_cycles=4)

result = builder.compile().invoke({})
print("path:", " ".join(result["path"]))
print("outcome:", result["outcome"])
print("cycles:", result["escalation"]["cycles"])
print("edge:", result["escalation"]["edge"])
