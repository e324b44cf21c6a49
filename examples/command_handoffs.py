"""Nodes that say by `Command(goto=...)` where it goes next: the guard needs no edge to be drawn.

Here the two write their talk into one list, and the guard sees a pair that goes round between two answers.
"""

import operator
from typing import Annotated, Literal

from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import Oscillation, guard_loop


class State(TypedDict, total=False):
    talk: Annotated[list[str], operator.add]
    style: str


def reviewer(state: State) -> Command[Literal["fixer", "__end__"]]:
    style = state.get("style")
    if style == "both":
        return Command(goto="__end__", update={"talk": ["reviewer: fine"]})
    wanted = "spaces" if style == "tabs" else "tabs"
    return Command(goto="fixer", update={"talk": [f"reviewer: please use {wanted}"]})


def fixer(state: State) -> Command[Literal["reviewer"]]:
    wanted = state["talk"][-1].split()[-1]
    return Command(goto="reviewer", update={"talk": [f"fixer: now with {wanted}"], "style": wanted})


builder = StateGraph(State)
builder.add_node(reviewer)
builder.add_node(fixer)
builder.add_edge(START, "reviewer")

guard_loop(builder, "reviewer", "fixer", max_cycles=20, stop_when=Oscillation(max_period=2, laps=2))

result = builder.compile().invoke({})
record = result["escalation"]
print(*result["talk"], sep="\n")
print("outcome:", result["outcome"])
print(f"reason: {record['reason']['condition']}: {record['reason']['message']}")
print(f"cycles: {record['cycles']} of at most 20")
