"""After: the grade is only a grade. Who has had enough is the guard, and that is no success: a person finds
every attempt in the record.
"""

from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


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
    return {"score": score, "verdict": "pass" if score >= 8 else "fail"}


def by_verdict(state: State) -> str:
    return END if state["verdict"] == "pass" else "write"


builder = StateGraph(State)
builder.add_node("write", write)
builder.add_node("grade", grade)
builder.add_edge(START, "write")
builder.add_edge("write", "grade")
builder.add_conditional_edges("grade", by_verdict, ["write", END])

guard_loop(builder, "grade", "write", max_cycles=3, artifact="answer")

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({})
    print(f"outcome: {result['outcome']}, verdict: {result['verdict']}")
    scores = [review["content"]["score"] for review in result["escalation"]["reviews"]]
    print("the scores:", *scores)
