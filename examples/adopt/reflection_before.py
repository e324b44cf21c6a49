"""Before: an essay and its reflection. What stops them is the number of messages, whatever they say."""

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def generate(state: MessagesState) -> dict:
    drafts = sum(message.type == "ai" for message in state["messages"])
    return {"messages": [AIMessage(f"Draft {drafts + 1}.")]}


def reflect(state: MessagesState) -> dict:
    return {"messages": [HumanMessage(f"{state['messages'][-1].text} It needs a source.")]}


def should_go_on(state: MessagesState) -> str:
    if len(state["messages"]) > 6:
        return END
    return "reflect"


builder = StateGraph(MessagesState)
builder.add_node("generate", generate)
builder.add_node("reflect", reflect)
builder.add_edge(START, "generate")
builder.add_conditional_edges("generate", should_go_on, ["reflect", END])
builder.add_edge("reflect", "generate")

graph = builder.compile()

if __name__ == "__main__":
    result = graph.invoke({"messages": [("user", "Write about bees.")]})
    print("the end:", result["messages"][-1].text)
