"""Before: two nodes that say by `Command` who is next. No edge is declared, so no drawing shows the loop."""

import operator
from typing import Annotated, Any

from langgraph.errors import GraphRecursionError
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    task: str
    log: Annotated[list[str], operator.add]


def planner(state: State) -> Command[Any]:
    if state.get("log") and state["log"][-1] == "executor: done":
        return Command(goto=END)
    return Command(goto="executor", update={"log": [f"planner: do {state['task']!r}"]})


def executor(state: State) -> Command[Any]:
    return Command(goto="planner", update={"log": ["executor: I have no tool for that"]})


builder = StateGraph(State)
builder.add_node("planner", planner)
builder.add_node("executor", executor)
builder.add_edge(START, "planner")

graph = builder.compile()

if __name__ == "__main__":
    try:
        graph.invoke({"task": "book a room"}, {"recursion_limit": 50})
    except GraphRecursionError:
        print("recursion limit: 50 steps, and nothing to show")
