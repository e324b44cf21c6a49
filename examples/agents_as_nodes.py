"""Agents of `create_agent` as nodes: their tokens stand in the record, and a `TokenBudget` stops the pair.

The models are scripts, so that this runs without a key; put any chat model in their place. Tokens are read from the
`usage_metadata` of every model call, whatever the agent keeps of it.
"""

from collections.abc import Iterator

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph

from langgraph_loopguard import TokenBudget, guard_loop


def says(text: str, tokens: int) -> Iterator[AIMessage]:
    number = 0
    while True:
        number += 1
        usage = {"input_tokens": tokens - 20, "output_tokens": 20, "total_tokens": tokens}
        yield AIMessage(f"{text} ({number})", usage_metadata=usage)


reviewer = create_agent(GenericFakeChatModel(messages=says("Please handle None.", 400)), name="reviewer")
fixer = create_agent(GenericFakeChatModel(messages=says("I have handled it.", 600)), name="fixer")

builder = StateGraph(MessagesState)
builder.add_node("reviewer", reviewer)
builder.add_node("fixer", fixer)
builder.add_edge(START, "reviewer")
builder.add_edge("reviewer", "fixer")
builder.add_edge("fixer", "reviewer")

guard_loop(builder, "reviewer", "fixer", max_cycles=50, stop_when=TokenBudget(3000))

result = builder.compile().invoke({"messages": [("user", "Review my pull request.")]})
record = result["escalation"]
print("outcome:", result["outcome"])
print(f"reason: {record['reason']['condition']}: {record['reason']['message']}")
print("spent:", record["spent"]["tokens"], "tokens in", record["cycles"], "cycles")
for fix in record["fixes"]:
    print(f"fix {fix['n']}: {fix['tokens']} tokens: {fix['content']['messages'][-1]['content']}")
