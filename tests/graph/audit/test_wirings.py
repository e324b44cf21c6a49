"""Every way to write an edge is found, guarded and not: no cycle is missed and none is invented."""

from __future__ import annotations

import enum
import functools
import sys
from typing import Any, Literal

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from langgraph_loopguard import assert_guarded, audit, guard_compiled, guard_loop
from tests.graph.graphs import COMMANDED, ROUTED, ROUTERS, Form, Seen, build


class State(MessagesState, total=False):
    next: str


def noop(state: State) -> dict[str, Any]:
    return {}


def pair(router: Any = None, path_map: Any = None, **nodes: Any) -> StateGraph:
    """Two nodes and a way out: a to b as told, b back to a."""
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, nodes.get(name, noop))
    builder.add_edge(START, "a")
    if router is not None:
        builder.add_conditional_edges("a", router, path_map)
    builder.add_edge("b", "a")
    return builder


def found(graph: Any) -> dict[str, str]:
    return {f"{cycle.graph}: {cycle}": cycle.verdict for cycle in audit(graph, name="g").cycles}


FORMS = ["plain", *ROUTED, *COMMANDED]


@pytest.mark.parametrize("forward", FORMS)
@pytest.mark.parametrize("back", FORMS)
def test_the_pair_is_found_and_its_guard_seen(forward: str, back: str) -> None:
    """Whatever form the two edges have, the cycle is open without a guard and guarded with one."""
    pair_cycle = ("reviewer", "fixer")
    report = audit(build(Form(forward, back), Seen()))
    assert pair_cycle in {cycle.nodes for cycle in report.open}
    assert "unknown" not in {cycle.verdict for cycle in report.cycles}
    builder = build(Form(forward, back), Seen())
    guard_loop(builder, "reviewer", "fixer")
    report = audit(builder)
    assert ["guarded"] == [cycle.verdict for cycle in report.cycles if cycle.nodes == pair_cycle]
    # What is left are nodes that may go to themselves, as their routers say.
    assert {1} >= {len(cycle.nodes) for cycle in report.open}


@pytest.mark.parametrize("router", ROUTERS)
@pytest.mark.parametrize("form", ["no_map", "list", "dict_map"])
def test_routers_of_every_kind_are_read(router: str, form: str) -> None:
    """Functions, lambdas, methods, partials, objects, Runnables, async ones."""
    report = audit(build(Form(form, router=router), Seen()))
    assert ("reviewer", "fixer") in {cycle.nodes for cycle in report.open}
    assert "unknown" not in {cycle.verdict for cycle in report.cycles}


@pytest.mark.parametrize("kind", ["sync", "async", "subgraph"])
def test_compiled_graphs_and_async_nodes(kind: Any) -> None:
    """The same for compiled graphs, and for nodes that are async or subgraphs."""
    graph = build(Form("dict_map", "plain", reviewer=kind, fixer=kind), Seen()).compile()
    assert ("reviewer", "fixer") in {cycle.nodes for cycle in audit(graph).open}
    guarded = guard_compiled(graph, "reviewer", "fixer")
    assert ("reviewer", "fixer") not in {cycle.nodes for cycle in audit(guarded).open}


def test_a_straight_graph_has_no_cycle() -> None:
    """Nothing is invented."""
    builder = StateGraph(State)
    builder.add_sequence([("a", noop), ("b", noop), ("c", noop)])
    builder.add_edge(START, "a")
    builder.add_conditional_edges("c", lambda state: END)
    assert {} == found(builder)
    assert audit(builder).ok


def test_a_self_loop_is_a_cycle() -> None:
    """A node that goes to itself, beside a guarded pair."""
    builder = pair(lambda state: state["next"], ["a", "b"])
    guard_loop(builder, "a", "b")
    assert {"g: a -> a": "missing", "g: a -> b -> a": "guarded"} == found(builder)


def names_b(state: State) -> Literal["b", "__end__"]:
    return state["next"]  # type: ignore[return-value]


TABLE = {"go": "b", "stop": END}
TARGET = "b"


class Router:
    other = "b"

    def route(self, state: State) -> str:
        return self.other if state["messages"] else END

    def by_helper(self, state: State) -> str:
        return self._decide(state)

    def _decide(self, state: State) -> str:
        return TABLE.get(state["next"], END)


def by_match(state: State) -> str:
    match state["next"]:
        case "go":
            target = TARGET
        case _:
            target = END
    return target


def fan_out(state: State) -> list[Send]:
    return [Send(TARGET, {"messages": [message]}) for message in state["messages"]]


READABLE = {
    "literal": names_b,
    "table": lambda state: TABLE[state["next"]],
    "both arms": lambda state: "b" if state["messages"] else END,
    "method": Router().route,
    "helper": Router().by_helper,
    "match": by_match,
    "send": fan_out,
    "partial": functools.partial(lambda target, state: target, "b"),
    "runnable": RunnableLambda(by_match),
}


@pytest.mark.parametrize("name", sorted(READABLE))
def test_a_router_without_a_map_is_read(name: str) -> None:
    """Where its code says where it goes, nothing is unknown and nothing else is claimed."""
    assert {"g: a -> b -> a": "missing"} == found(pair(READABLE[name]))


def test_a_router_that_cannot_be_read_is_unknown() -> None:
    """It may go anywhere, and that is what the report says: no edge is made up for it."""
    builder = pair(lambda state: state["next"])
    (cycle,) = audit(builder).cycles
    assert ("unknown", "a -> ?") == (cycle.verdict, str(cycle))
    assert "no map" in cycle.reason


def test_a_router_whose_source_is_gone_is_unknown() -> None:
    """Code without a file, as `exec` makes it."""
    names: dict[str, Any] = {}
    exec("def route(state):\n    return 'b'\n", names)
    assert {"g: a -> ?": "unknown"} == found(pair(names["route"]))


def test_a_gate_on_an_unknown_router_is_said() -> None:
    """What it does inside the loop passes the gate; that it might go elsewhere is a note."""
    builder = pair(lambda state: state["next"])
    guard_loop(builder, "a", "b")
    report = audit(builder)
    assert report.ok
    assert any("others are unknown" in note for graph in report.graphs for note in graph.notes)


def hand(state: State) -> Command[Any]:
    goto = "b" if state["messages"] else END
    return Command(update={"next": goto}, goto=goto)


def hand_by_helper(state: State) -> Any:
    return _to("b") if state["messages"] else {}


def _to(node: str) -> Command[Any]:
    return Command(goto=node)


def hand_sends(state: State) -> Command[Any]:
    return Command(goto=[Send("b", {})])


def hand_list(state: State) -> Any:
    return [{"next": "b"}, Command(goto=("b",))]


def hand_hinted(state: State) -> Command[Literal["b", "__end__"]]:
    return Command(goto=state["next"])  # type: ignore[arg-type]


TO_B = Command(goto="b")
TO_EVERYONE = [Send("b", {})]


class Step(str, enum.Enum):
    B = "b"


class Holder:
    target = "b"

    @property
    def hidden(self) -> str:
        raise AssertionError("a property was run")


HOLDER = Holder()


def hand_constant(state: State) -> Any:
    return TO_B


def hand_enum(state: State) -> Any:
    return Command(goto=Step.B)


def hand_value(state: State) -> Any:
    return Command(goto=[Step.B.value, *TO_EVERYONE])


def hand_module(state: State) -> Any:
    return Command(goto=HOLDER.target, graph=None)


def hand_either(state: State) -> Any:
    result = {**state}
    if state["messages"]:
        result = Command(goto=TARGET)
    for to in ("b",):
        result = result or Command(goto=to)
    return result


def hand_built(state: State) -> Any:
    out = []
    out.append(Command(goto="b"))
    return sorted(out)


@pytest.mark.parametrize(
    "node", [hand_constant, hand_enum, hand_value, hand_module, hand_either, hand_built], ids=lambda f: f.__name__
)
def test_more_ways_to_command(node: Any) -> None:
    """Made beforehand, named by an enum or an attribute, under a name, gathered in a list."""
    assert {"g: a -> b -> a": "missing"} == found(pair(a=node))


def test_no_property_is_run() -> None:
    """Reading is only reading: what a property would say is unknown."""
    assert {"g: a -> ?": "unknown"} == found(pair(lambda state: HOLDER.hidden))


def test_lambdas_on_one_line_are_told_apart() -> None:
    """By their columns, which Python keeps from 3.11 on; before, they are unknown."""
    first, second = (lambda state: "b"), (lambda state: END)
    if sys.version_info >= (3, 11):
        assert {"g: a -> b -> a": "missing"} == found(pair(first))
        assert {} == found(pair(second))


def test_a_router_that_is_a_sequence() -> None:
    """Runnables in a row: what the last one makes of it is not followed, and nothing else is claimed."""
    assert {"g: a -> ?": "unknown"} == found(pair(RunnableLambda(noop) | RunnableLambda(lambda x: x["next"])))


class Hand(BaseTool):
    name: str = "hand"
    description: str = "Hand over."

    def _run(self, to: str) -> Any:
        return Command(goto="b", graph=Command.PARENT)


def test_tools_that_are_classes() -> None:
    """A tool's `_run` is read like a function."""
    builder = StateGraph(State)
    builder.add_node("x", agent(Hand(), name="x"))
    builder.add_node("b", noop)
    builder.add_edge(START, "x")
    builder.add_edge("b", "x")
    assert {"g: x -> b -> x": "missing"} == found(builder)


@pytest.mark.parametrize("node", [hand, hand_by_helper, hand_sends, hand_list, hand_hinted], ids=lambda f: f.__name__)
def test_commands_that_nothing_declares_are_read(node: Any) -> None:
    """`Command(goto=...)` by hand, by a helper, with `Send`, in a list, with a hint."""
    assert {"g: a -> b -> a": "missing"} == found(pair(a=node))


def test_a_command_without_a_goto_is_no_edge() -> None:
    """A `Command` that only updates goes nowhere."""

    def update(state: State) -> Command[Any]:
        return Command(update={"next": "b"})

    assert {} == found(pair(a=update))


def test_a_command_to_wherever_the_model_says_is_unknown() -> None:
    """The name comes from the state."""

    def free(state: State) -> Command[Any]:
        return Command(goto=state["next"])

    assert {"g: a -> ?": "unknown"} == found(pair(a=free))
    builder = pair(a=free)
    guard_loop(builder, "a", "b")
    assert audit(builder).ok


def test_declared_destinations_are_believed() -> None:
    """`destinations=` stands for what cannot be read."""
    builder = StateGraph(State)
    builder.add_node("a", lambda state: Command(goto=state["next"]), destinations=("b", END))
    builder.add_node("b", noop)
    builder.add_edge(START, "a")
    builder.add_edge("b", "a")
    assert {"g: a -> b -> a": "missing"} == found(builder)


def test_a_send_past_the_map_is_found() -> None:
    """A router with a map may send to a node that the map does not name."""

    def route(state: State) -> Any:
        return [Send("b", {})] if state["messages"] else END

    assert {"g: a -> b -> a": "missing"} == found(pair(route, [END]))


def test_a_join_fires_when_all_its_sources_are_done() -> None:
    """Through a join is a cycle only when all its sources come again; else it fires once."""
    builder = StateGraph(State)
    for name in ("once", "a", "b", "c"):
        builder.add_node(name, noop)
    builder.add_edge(START, "once")
    builder.add_edge(START, "a")
    builder.add_edge(["once", "a"], "c")
    builder.add_edge("c", "a")
    assert {} == found(builder)
    builder.add_edge("c", "once")
    assert {"g: once -> c -> once": "missing", "g: a -> c -> a": "missing"} == found(builder)
    guard_loop(builder, "a", "c")
    assert {"guarded"} == set(found(builder).values())


def test_a_guard_on_a_join_and_plain_edges() -> None:
    """The join's gate is a node of its own, which the report does not show."""
    builder = StateGraph(State)
    for name in ("a", "b", "c"):
        builder.add_node(name, noop)
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    builder.add_edge("a", "c")
    builder.add_edge(["b", "c"], "a")
    guard_loop(builder, "a", "b")
    (graph,) = audit(builder, name="g").graphs
    assert ("a", "b", "c") == graph.nodes
    assert {"g: a -> b -> a": "guarded", "g: a -> c -> a": "guarded"} == found(builder)


class Scripted(GenericFakeChatModel):
    def bind_tools(self, tools: Any, **kwargs: Any) -> Scripted:
        return self


def agent(*tools: Any, name: str = "agent", **settings: Any) -> Any:
    return create_agent(Scripted(messages=iter([])), list(tools), name=name, **settings)


@tool
def look(path: str) -> str:
    """Look."""
    return path


def test_an_agent_as_a_node_is_looked_into() -> None:
    """Its model decides when to stop calling tools, and that is no bound."""
    builder = StateGraph(MessagesState)
    builder.add_node("a", agent(look))
    builder.add_edge(START, "a")
    (cycle,) = audit(builder, name="g").open
    assert ("g/a", "missing", ("model", "tools")) == (cycle.graph, cycle.verdict, cycle.nodes)
    assert "model's decision" in cycle.reason


def test_an_agent_called_inside_a_node_is_looked_into() -> None:
    """By a closure, a global, an attribute, a dict, or inside a tool."""
    inner = agent(look)
    team = {"one": inner}

    class Node:
        def __init__(self) -> None:
            self.helper = inner

        def __call__(self, state: State) -> Any:
            return self.helper.invoke(state)

    def by_closure(state: State) -> Any:
        return inner.invoke(state)

    def by_table(state: State) -> Any:
        return team["one"].invoke(state)

    def ask(question: str) -> str:
        """Ask the other agent."""
        return str(inner.invoke({"messages": [("user", question)]}))

    for node in (by_closure, by_table, Node(), ToolNode([ask])):
        builder = StateGraph(State)
        builder.add_node("a", node)
        builder.add_edge(START, "a")
        assert {"g/a: model -> tools -> model": "missing"} == found(builder)


def test_subgraphs_at_any_depth() -> None:
    """A cycle three graphs down is found, and its guard too."""
    for guarded in (False, True):
        graph: Any = pair(lambda state: "b")
        if guarded:
            guard_loop(graph, "a", "b")
        for _ in range(3):
            outer = StateGraph(State)
            outer.add_node("in", graph.compile())
            outer.add_edge(START, "in")
            graph = outer
        assert {"g/in/in/in: a -> b -> a": "guarded" if guarded else "missing"} == found(graph)


ELSEWHERE = agent(look)


def test_a_name_that_is_only_an_attribute_is_no_agent() -> None:
    """A node that reads `thing.ELSEWHERE` does not call the global of that name."""

    def node(state: State) -> Any:
        return {"next": state.ELSEWHERE}  # type: ignore[attr-defined]

    def caller(state: State) -> Any:
        return ELSEWHERE.invoke(state)

    for action, cycles in ((node, {}), (caller, {"g/a: model -> tools -> model": "missing"})):
        builder = StateGraph(State)
        builder.add_node("a", action)
        builder.add_edge(START, "a")
        assert cycles == found(builder)


def test_a_graph_that_calls_itself_is_read_once() -> None:
    """A node may call the graph that it is in."""
    holder: dict[str, Any] = {}

    def again(state: State) -> Any:
        return holder["graph"].invoke(state)

    builder = StateGraph(State)
    builder.add_node("a", again)
    builder.add_edge(START, "a")
    holder["graph"] = builder.compile()
    assert {} == found(holder["graph"])


def test_handoff_tools_are_ways_of_the_outer_graph() -> None:
    """A tool that hands over to the parent is an edge there, declared or not; the agent ends with it."""

    def swarm() -> Any:
        return create_swarm(
            [agent(create_handoff_tool(agent_name=b), name=a) for a, b in (("x", "y"), ("y", "x"))],
            default_active_agent="x",
        )

    assert {"g: x -> y -> x": "missing"} == found(swarm())
    builder = swarm()
    guard_loop(builder, "x", "y")
    assert_guarded(builder)

    bare = StateGraph(State)
    for a, b in (("x", "y"), ("y", "x")):
        bare.add_node(a, agent(create_handoff_tool(agent_name=b), name=a))
    bare.add_edge(START, "x")
    assert {"g: x -> y -> x": "missing"} == found(bare)


def test_an_agent_with_a_handoff_and_a_tool_still_goes_round_inside() -> None:
    """Only where all tools hand over is the way back left out."""
    builder = StateGraph(State)
    builder.add_node("x", agent(create_handoff_tool(agent_name="y"), look, name="x"))
    builder.add_node("y", noop)
    builder.add_edge(START, "x")
    builder.add_edge("y", "x")
    assert {"g: x -> y -> x": "missing", "g/x: model -> tools -> model": "missing"} == found(builder)


@pytest.mark.filterwarnings("ignore:create_react_agent has been moved:DeprecationWarning")
def test_a_supervisor_and_its_worker() -> None:
    """langgraph-supervisor: a handoff tool one way, a plain edge the other."""
    builder = create_supervisor([agent(name="worker")], model=Scripted(messages=iter([])))
    assert {"g: supervisor -> worker -> supervisor": "missing"} == found(builder)
    guard_loop(builder, "supervisor", "worker")
    assert_guarded(builder)


def test_a_command_to_the_parent_from_a_subgraph() -> None:
    """A node of a subgraph hands over to a node beside it."""

    def up(state: State) -> Command[Any]:
        return Command(goto="b", graph=Command.PARENT)

    inner = StateGraph(State)
    inner.add_node("up", up)
    inner.add_edge(START, "up")
    builder = pair(a=inner.compile())
    assert {"g: a -> b -> a": "missing"} == found(builder)
    guard_loop(builder, "a", "b")
    assert_guarded(builder)


def test_an_error_handler_is_a_way() -> None:
    """A handler that sends a failed node's work elsewhere closes a cycle; the handlers that LangGraph adds do not."""

    def handle(state: State) -> Command[Any]:
        return Command(goto="b")

    builder = pair()
    builder.nodes.pop("a")
    builder.add_node("a", noop, error_handler=handle)
    report = audit(builder)
    assert [True] == ["a" in cycle.nodes and "b" in cycle.nodes for cycle in report.open]


def test_only_graphs_are_audited() -> None:
    """Anything else is refused by name."""
    with pytest.raises(TypeError, match="got dict"):
        audit({})
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        audit(pair(), limit=0)
