"""After: the critic may ask three times. The router and its hint stay as they are."""

from typing import Literal

from langgraph.graph import START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


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

guard_loop(builder, "critic", "writer", max_cycles=3, artifact="draft")

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({})
    record = result["escalation"]
    print(f"outcome: {result['outcome']}: {record['reason']['message']}")
    print("the last remark:", record["reviews"][-1]["content"]["remark"])
