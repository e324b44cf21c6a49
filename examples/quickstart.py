"""A reviewer and a fixer who never agree, and the one line that stops them: `guard_loop`."""

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


class State(TypedDict, total=False):
    round: int
    review: str
    patch: str
    guidance: str  # what a person says to a retry stands here


def reviewer(state: State) -> State:
    round = state.get("round", 0) + 1
    return {"round": round, "review": f"Remark {round}: None is still not handled."}


def fixer(state: State) -> State:
    default = "0" if "0" in state.get("guidance", "") else f"DEFAULT_{state['round']}"
    return {"patch": f"def total(x):\n    return x or {default}\n"}


builder = StateGraph(State)
builder.add_node(reviewer)
builder.add_node(fixer)
builder.add_edge(START, "reviewer")
builder.add_edge("reviewer", "fixer")
builder.add_edge("fixer", "reviewer")  # for ever

guard = guard_loop(builder, "reviewer", "fixer", max_cycles=3, artifact="patch")  # the one line

# Without a checkpointer nothing can wait for a person: the run ends, and the record is in its result.
result = builder.compile().invoke({})
print("outcome:", result["outcome"])
print("reason:", result["escalation"]["reason"]["message"])

# With a checkpointer the run stops with an interrupt and waits.
graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "pull-request-17"}}
result = graph.invoke({}, config)
record = result["escalation"]
print("waiting:", len(result["__interrupt__"]), "question")
print("question:", record["question"])
print("record:", len(record["reviews"]), "reviews,", len(record["fixes"]), "fixes")
print(record["diff"])

# The person lets the loop go on for one cycle more, with guidance...
answer = {"action": "retry", "guidance": "Return 0 for None.", "extra_cycles": 1, "decided_by": "ada"}
result = graph.invoke(Command(resume=answer), config)
print("after retry:", guard.ledger(graph.get_state(config)).cycles, "cycles, waiting:", len(result["__interrupt__"]))

# ...and then accepts the fourth attempt.
result = graph.invoke(Command(resume={"action": "accept", "fix": 4, "decided_by": "ada"}), config)
print("decision:", result["escalation"]["decision"]["action"])
print("patch:", result["patch"])
print("next:", graph.get_state(config).next)
