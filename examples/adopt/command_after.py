"""After: the handoffs by `Command` are counted and compared. The nodes stay as they are, and need declare nothing."""

import operator
from typing import Annotated, Any

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import RepeatedPayload, guard_loop


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

guard_loop(builder, "planner", "executor", max_cycles=5, stop_when=RepeatedPayload(2, node="executor"))

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({"task": "book a room"})
    print(f"outcome: {result['outcome']}: {result['escalation']['reason']['message']}")
    print("the log:", *result["log"], sep="\n  ")
