"""A budget for each file: `key="file"`. The files are worked on side by side with `Send`, and none counts for another.

Each file that cannot be settled has a record and a question of its own; they are answered by the interrupt's id.
"""

import operator
from operator import itemgetter
from typing import Annotated, Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send
from typing_extensions import TypedDict

from langgraph_loopguard import guard_loop


class State(TypedDict, total=False):
    files: list[str]
    done: Annotated[list[str], operator.add]


class Job(TypedDict):
    file: str
    attempts: int


NEEDED = {"easy.py": 1, "hard.py": 3, "hopeless.py": 99, "worse.py": 99}
"""Attempts after which the reviewer is content."""


def each_file(state: State) -> list[Send]:
    return [Send("reviewer", {"file": file, "attempts": 0}) for file in state["files"]]


def reviewer(job: Job) -> Command[Any]:
    if job["attempts"] >= NEEDED[job["file"]]:
        return Command(update={"done": [job["file"]]})
    return Command(goto=Send("fixer", job))


def fixer(job: Job) -> Command[Any]:
    return Command(goto=Send("reviewer", {**job, "attempts": job["attempts"] + 1}))


builder = StateGraph(State)
builder.add_node(reviewer)
builder.add_node(fixer)
builder.add_conditional_edges(START, each_file, ["reviewer"])

guard = guard_loop(builder, "reviewer", "fixer", max_cycles=3, key="file")

graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "release"}}
result = graph.invoke({"files": list(NEEDED)}, config)
print("done:", *result["done"])
print("cycles:", {scope: ledger.cycles for scope, ledger in guard.report(graph.get_state(config)).items()})
for record in sorted(
    (question.value["escalation"] for question in result["__interrupt__"]), key=itemgetter("scope_key")
):
    print(f"waiting: {record['scope_key']}: {record['reason']['message']}")

answers = {question.id: {"action": "reject", "decided_by": "ada"} for question in result["__interrupt__"]}
graph.invoke(Command(resume=answers), config)
decided = graph.get_state(config).values["escalations"].values()
print(
    "decided:",
    {record["scope_key"]: record["decision"]["action"] for record in sorted(decided, key=itemgetter("scope_key"))},
)
