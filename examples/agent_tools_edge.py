"""The loop inside one agent: `guard_compiled` on the edge between the model of `create_agent` and its tools.

A trip answers the open tool calls, so that the thread can go on with a new question: chat models refuse a history with
tool calls that nobody has answered.

With an `after_model` middleware the way to the tools leaves from that node: name it instead of `model`. The error for a
pair without an edge lists the edges.
"""

from itertools import count

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langgraph_loopguard import guard_compiled
from langgraph_loopguard.testing import ScriptedChatModel


def lines():
    for number in range(4):  # it asks for the same tool, whatever it answers
        call = {"name": "run_tests", "args": {"path": "tests"}, "id": f"call-{number}"}
        yield AIMessage("Let me run the tests.", tool_calls=[call])
    for number in count(1):
        yield AIMessage(f"Sorry. The tests have failed all the time. ({number})")


@tool
def run_tests(path: str) -> str:
    """Run the tests."""
    return "1 failed"


agent = create_agent(ScriptedChatModel(messages=lines()), [run_tests], checkpointer=InMemorySaver())

# per="turn": each new question has a budget of its own. ask_human=False: the trip ends the turn, nobody is asked.
agent = guard_compiled(agent, "model", "tools", max_cycles=3, per="turn", ask_human=False)

config = {"configurable": {"thread_id": "1"}}
result = agent.invoke({"messages": [("user", "Do the tests pass?")]}, config)
print("outcome:", result["outcome"])
print("reason:", result["escalation"]["reason"]["message"])
for message in result["messages"][-4:]:
    print(f"  {message.type}: {message.text}", *(call["id"] for call in getattr(message, "tool_calls", [])))

result = agent.invoke({"messages": [("user", "What have you seen?")]}, config)
print("next turn:", result["messages"][-1].text)
