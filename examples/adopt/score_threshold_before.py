"""Before: an answer is written and graded until its score is 8. A counter flips the verdict, so that it ends at all:
what it ends with looks like a success.
"""

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict


class State(TypedDict, total=False):
    answer: str
    score: int
    attempts: int
    verdict: str


SCORES = (4, 7, 6, 6)
"""What the grader thinks of each attempt."""


def write(state: State) -> State:
    attempts = state.get("attempts", 0) + 1
    return {"attempts": attempts, "answer": f"answer {attempts}"}


def grade(state: State) -> State:
    score = SCORES[min(state["attempts"], len(SCORES)) - 1]
    if score >= 8 or state["attempts"] >= 4:
        return {"score": score, "verdict": "pass"}
    return {"score": score, "verdict": "fail"}


def by_verdict(state: State) -> str:
    return END if state["verdict"] == "pass" else "write"


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("grade", grade)
builder.add_edge(START, "write")
builder.add_edge("write", "grade")
builder.add_conditional_edges("grade", by_verdict, ["write", END])

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({})
    print(f"verdict: {result['verdict']} with {result['answer']!r}, score {result['score']}")
