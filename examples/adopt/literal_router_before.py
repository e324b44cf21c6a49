"""Before: a writer and a critic. The router's `Literal` hint stands for a map, and the critic is the only way out."""

from typing import Literal

from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    draft: str
    remark: str
    satisfied: bool


WORDS = ("better", "clearer", "shorter")


def writer(state: State) -> State:
    return {"draft": f"A {WORDS[len(state.get('draft', '')) % 3]} text."}


def critic(state: State) -> State:
    return {"satisfied": False, "remark": f"{state['draft']!r} does not say who it is for."}


def good_enough(state: State) -> Literal["writer", "__end__"]:
    return "__end__" if state["satisfied"] else "writer"


builder = StateGraph(State)
builder.add_node("writer", writer)
builder.add_node("critic", critic)
builder.add_edge(START, "writer")
builder.add_edge("writer", "critic")
builder.add_conditional_edges("critic", good_enough)

graph = builder.compile()

if __name__ == "__main__":
    try:
        graph.invoke({}, {"recursion_limit": 50})
    except GraphRecursionError:
        print("recursion limit: 50 steps, and nothing to show")
