"""A swarm (langgraph-swarm) whose two agents hand the talk to each other for ever: the guard sees handoff tools too."""

from itertools import count

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from langgraph_swarm import create_handoff_tool, create_swarm

from langgraph_loopguard import guard_loop
from langgraph_loopguard.testing import ScriptedChatModel


def hands_over_to(other: str):
    for number in count(1):
        call = {"name": f"transfer_to_{other}", "args": {}, "id": f"to-{other}-{number}"}
        yield AIMessage("That is not for me.", tool_calls=[call])


def agent(name: str, other: str):
    model = ScriptedChatModel(messages=hands_over_to(other))
    return create_agent(model, [create_handoff_tool(agent_name=other)], name=name)


builder = create_swarm([agent("billing", "support"), agent("support", "billing")], default_active_agent="billing")

guard = guard_loop(builder, "billing", "support", max_cycles=3)

graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "customer-5"}}
result = graph.invoke({"messages": [("user", "Why was I charged twice?")]}, config)
record = result["escalation"]
print("outcome:", result["outcome"])
print("edge:", record["edge"])
print("handoffs:", guard.ledger(graph.get_state(config)).handoffs)
print("waiting:", len(result["__interrupt__"]), "question")

# A person ends it; the thread can go on.
result = graph.invoke(Command(resume={"action": "reject", "decided_by": "ada"}), config)
print("decision:", result["escalation"]["decision"]["action"], "by", result["escalation"]["decision"]["decided_by"])
print("active agent:", result["active_agent"])
