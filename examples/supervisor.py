"""A supervisor (langgraph-supervisor) that sends its worker back to work for ever.

The guard is on both ways: supervisor -> worker is a handoff tool, worker -> supervisor a plain edge.
"""

from itertools import count

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_supervisor import create_supervisor

from langgraph_loopguard import guard_loop
from langgraph_loopguard.testing import ScriptedChatModel


def orders():
    for number in count(1):
        call = {"name": "transfer_to_researcher", "args": {}, "id": f"order-{number}"}
        yield AIMessage("Please look again.", tool_calls=[call])


def answers():
    for number in count(1):
        yield AIMessage(f"Report {number}: I have found nothing new.")


researcher = create_agent(ScriptedChatModel(messages=answers()), name="researcher")
builder = create_supervisor([researcher], model=ScriptedChatModel(messages=orders()))

guard = guard_loop(builder, "supervisor", "researcher", max_cycles=3)

graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "incident-9"}}
result = graph.invoke({"messages": [("user", "Find the cause.")]}, config)
record = result["escalation"]
print("outcome:", result["outcome"])
print("edge:", record["edge"])
print("handoffs:", guard.ledger(graph.get_state(config)).handoffs)
for fix in record["fixes"]:
    print(f"report {fix['n']}:", fix["content"]["messages"][0]["content"])
