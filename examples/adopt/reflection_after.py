"""After: the router says only where it goes on. Cycles are counted, not messages, and each new question has its own."""

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langgraph_loopguard import guard_loop


def generate(state: MessagesState) -> dict:
    drafts = sum(message.type == "ai" for message in state["messages"])
    return {"messages": [AIMessage(f"Draft {drafts + 1}.")]}


def reflect(state: MessagesState) -> dict:
    return {"messages": [HumanMessage(f"{state['messages'][-1].text} It needs a source.")]}


def should_go_on(state: MessagesState) -> str:
    return "reflect" if "source:" not in state["messages"][-1].text else END


builder = StateGraph(MessagesState)
builder.add_node("generate", generate)
builder.add_node("reflect", reflect)
builder.add_edge(START, "generate")
builder.add_conditional_edges("generate", should_go_on, ["reflect", END])
builder.add_edge("reflect", "generate")

guard_loop(builder, "generate", "reflect", max_cycles=3, per="turn")

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({"messages": [("user", "Write about bees.")]})
    print(f"outcome: {result['outcome']}: {result['escalation']['reason']['message']}")
    print("the end:", result["messages"][-1].text)
