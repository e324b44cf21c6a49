"""How a guard gets onto nodes and edges, and that LangGraph still sees the nodes as they were."""

from __future__ import annotations

import asyncio
import logging
import operator
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_stream_writer
from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, RetryPolicy, Send, StreamWriter, interrupt
from typing_extensions import TypedDict

from langgraph_loopguard import LoopGuard, guard_compiled, guard_loop
from tests.graph.graphs import Form, Seen, build, plain, thread

Builder = StateGraph[Any, Any, Any, Any]


class State(TypedDict, total=False):
    n: int
    patch: str
    log: Annotated[list[Any], operator.add]


class Narrow(TypedDict, total=False):
    n: int


@dataclass
class Ctx:
    user: str = "nobody"


def loop(reviewer: Any, *, state: Any = State, context: Any = None, **options: Any) -> Builder:
    """A builder with the given reviewer, and a fixer that it asks twice."""
    builder: Builder = StateGraph(state, context_schema=context)
    builder.add_node("reviewer", reviewer, **options)
    builder.add_node("fixer", lambda state: {"n": (state.get("n") or 0) + 1})
    builder.add_edge(START, "reviewer")
    builder.add_conditional_edges(
        "reviewer", lambda state: "fixer" if (state.get("n") or 0) < 2 else END, ["fixer", END]
    )
    builder.add_edge("fixer", "reviewer")
    return builder


def both(make: Any, run: Any = None, **compile_options: Any) -> tuple[Any, Any]:
    """What a graph gives without and with a guard."""
    out = []
    for guarded in (False, True):
        builder = make()
        if guarded:
            guard_loop(builder, "reviewer", "fixer", max_cycles=5)
        app = builder.compile(**compile_options)
        out.append(plain((run or (lambda app: app.invoke({})))(app)))
    return out[0], out[1]


# -- what nodes are handed --------------------------------------------------------------------------------------------


def with_config(state: State, config: RunnableConfig) -> State:
    return {"log": [config["configurable"]["thread_id"], config["metadata"]["langgraph_node"]]}


def with_keyword_config(state: State, *, config: RunnableConfig) -> State:
    return {"log": [config["configurable"]["thread_id"]]}


def with_runtime(state: State, runtime: Runtime[Ctx]) -> State:
    return {"log": [runtime.context.user, runtime.execution_info.node_attempt if runtime.execution_info else 0]}


def with_writer(state: State, writer: StreamWriter) -> State:
    writer({"said": "by argument"})
    get_stream_writer()({"said": "by context"})
    return {"log": ["written"]}


def with_store(state: State, store: BaseStore) -> State:
    store.put(("seen",), "key", {"n": state.get("n") or 0})
    return {"log": [store.get(("seen",), "key").value]}  # type: ignore[union-attr]


def with_all(
    state: State, config: RunnableConfig, *, writer: StreamWriter, store: BaseStore, runtime: Runtime[Ctx]
) -> State:
    return {"log": [config["configurable"]["thread_id"], callable(writer), type(store).__name__, runtime.context.user]}


def with_default(state: State, extra: str = "default") -> State:
    return {"log": [extra]}


def with_runtime_only(state: State, runtime: Runtime) -> State:
    return {"log": [runtime.store is not None]}


async def with_async(state: State, config: RunnableConfig, runtime: Runtime[Ctx]) -> State:
    await asyncio.sleep(0)
    return {"log": [runtime.context.user, config["configurable"]["thread_id"]]}


class Callable_:
    def __call__(self, state: State, config: RunnableConfig) -> State:
        return {"log": [config["configurable"]["thread_id"]]}

    def method(self, state: State, runtime: Runtime[Ctx]) -> State:
        return {"log": [runtime.context.user]}


class AsyncCallable:
    async def __call__(self, state: State, config: RunnableConfig) -> State:
        return {"log": [config["configurable"]["thread_id"]]}


def generator(state: State) -> Iterator[Any]:
    yield {"log": ["one"]}
    yield {"log": ["two"]}


async def agenerator(state: State) -> AsyncIterator[Any]:
    yield {"log": ["one"]}
    yield {"log": ["two"]}


NODES = {
    "config": with_config,
    "keyword config": with_keyword_config,
    "runtime": with_runtime,
    "writer": with_writer,
    "store": with_store,
    "all": with_all,
    "default": with_default,
    "bare runtime": with_runtime_only,
    "async": with_async,
    "callable": Callable_(),
    "method": Callable_().method,
    "async callable": AsyncCallable(),
    "generator": generator,
    "async generator": agenerator,
    "runnable": RunnableLambda(with_config),
    "sequence": RunnableLambda(lambda state: {"log": ["in"]})
    | RunnableLambda(lambda update: {"log": [*update["log"], "out"]}),
    "partial": RunnableLambda(with_config).with_config(tags=["tag"]),
}


@pytest.mark.parametrize("name", NODES)
@pytest.mark.parametrize("wiring", ["guard_loop", "by hand"])
@pytest.mark.parametrize("mode", ["values", "updates", "custom"])
def test_nodes_are_handed_what_they_ask_for(name: str, wiring: str, mode: Any) -> None:
    """Config, runtime, context, store, writer: each kind of node runs as without a guard, sync or async."""
    node = NODES[name]
    out = []
    for guarded in (False, True):
        guard = LoopGuard("reviewer", "fixer", max_cycles=5)
        by_hand = guarded and wiring == "by hand"
        builder: Builder = StateGraph(State, context_schema=Ctx)
        fixer = lambda state: {"n": (state.get("n") or 0) + 1}  # noqa: E731
        builder.add_node("reviewer", guard.node("reviewer", node) if by_hand else node)
        builder.add_node("fixer", guard.node("fixer", fixer) if by_hand else fixer)
        builder.add_edge(START, "reviewer")

        def route(state: Any) -> str:
            return "fixer" if (state.get("n") or 0) < 2 else END

        edges = [("reviewer", route, ["fixer", END]), ("fixer", lambda state: "reviewer", ["reviewer"])]
        for source, path, targets in edges:
            builder.add_conditional_edges(source, *(guard.edge(source, path, targets) if by_hand else (path, targets)))
        if guarded:
            guard.add_to(builder) if by_hand else guard_loop(builder, "reviewer", "fixer", max_cycles=5)
        app = builder.compile(store=InMemoryStore(), checkpointer=InMemorySaver())

        async def run(app: Any = app) -> list[Any]:
            return [plain(c) async for c in app.astream({}, thread(), context=Ctx("ada"), stream_mode=mode)]

        out.append(asyncio.run(run()))
        if "async" not in name:
            config = {"configurable": {"thread_id": "other"}}
            out[-1] += [plain(c) for c in app.stream({}, config, context=Ctx("ada"), stream_mode=mode)]
    assert out[0] == out[1]
    assert (mode == "custom") == (not out[0]) or name == "writer"


@pytest.mark.parametrize("key", ["config", "runtime", "writer", "store"])
def test_routers_are_handed_what_they_ask_for(key: str) -> None:
    """The same for what a router asks for."""
    seen: list[Any] = []

    def router_config(state: State, config: RunnableConfig) -> str:
        seen.append(config["configurable"]["thread_id"])
        return END

    def router_runtime(state: State, runtime: Runtime[Ctx]) -> str:
        seen.append(runtime.context.user)
        return END

    def router_writer(state: State, *, writer: StreamWriter) -> str:
        writer({"routed": 1})
        seen.append("wrote")
        return END

    def router_store(state: State, *, store: BaseStore) -> str:
        seen.append(type(store).__name__)
        return END

    path = {"config": router_config, "runtime": router_runtime, "writer": router_writer, "store": router_store}[key]

    def make() -> Builder:
        builder: Builder = StateGraph(State, context_schema=Ctx)
        builder.add_node("reviewer", lambda state: {"n": 1})
        builder.add_node("fixer", lambda state: {"n": 2})
        builder.add_edge(START, "reviewer")
        builder.add_conditional_edges("reviewer", path, ["fixer", END])
        builder.add_edge("fixer", "reviewer")
        return builder

    def run(app: Any) -> Any:
        return list(app.stream({}, thread(), context=Ctx("ada"), stream_mode=["custom", "updates"]))

    expected, actual = both(make, run, store=InMemoryStore())
    assert expected == actual
    assert 2 == len(seen)
    assert seen[0] == seen[1]


def test_a_narrower_input_schema_is_kept() -> None:
    """A node with an input class of its own is handed that class, by hint or by argument."""
    inputs: list[Any] = []

    def hinted(state: Narrow) -> dict[str, Any]:
        inputs.append(dict(state))
        return {"log": [sorted(state)]}

    def free(state: Any) -> dict[str, Any]:
        inputs.append(dict(state))
        return {"log": [sorted(state)]}

    for node, options in ((hinted, {}), (free, {"input_schema": Narrow})):
        expected, actual = both(lambda node=node, options=options: loop(node, **options))
        assert expected == actual
    assert all(set(one) <= {"n"} for one in inputs)


# -- options of nodes -------------------------------------------------------------------------------------------------


def test_a_timeout_strikes_and_what_it_stopped_is_not_counted() -> None:
    """A node that is too slow is stopped and tried again; the visit counts once."""
    attempts: list[int] = []

    async def slow(state: State) -> State:
        attempts.append(1)
        await asyncio.sleep(5 if len(attempts) == 1 else 0)
        return {"log": ["done"]}

    retry = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3, retry_on=NodeTimeoutError)
    builder = loop(slow, timeout=0.2, retry_policy=retry)
    guard = guard_loop(builder, "reviewer", "fixer", max_cycles=5)
    app = builder.compile(checkpointer=InMemorySaver())
    result = asyncio.run(app.ainvoke({}, thread()))
    assert ["done"] * 3 == result["log"]
    assert 3 == guard.ledger(app.get_state(thread())).visits["reviewer"]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_timeout_is_refused_for_the_same_nodes_as_before(kind: str) -> None:
    """LangGraph wants an async node for a timeout, guarded or not."""

    async def anode(state: State) -> State:
        return {}

    outcomes = []
    for guarded in (False, True):
        builder = loop(anode if kind == "async" else (lambda state: {}), timeout=1.0)
        if guarded:
            guard_loop(builder, "reviewer", "fixer")
        try:
            builder.compile()
            outcomes.append(None)
        except Exception as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
    assert (kind == "async") == (outcomes[0] is None)


@pytest.mark.parametrize("defaults", [False, True])
@pytest.mark.parametrize("way", ["update", "command"])
def test_an_error_handler_takes_over(defaults: bool, way: str) -> None:
    """A node that fails for good goes to its handler, and the loop goes on as without a guard."""

    def failing(state: State) -> State:
        if (state.get("n") or 0) == 1:
            raise ValueError("at one")
        return {"log": ["fine"]}

    def handler(state: State, error: NodeError) -> Any:
        update = {"log": [f"handled {error.error}"], "n": 2}
        return Command(update=update, goto="reviewer") if way == "command" else update

    def make() -> Builder:
        builder = loop(failing, **({} if defaults else {"error_handler": handler}))
        return builder.set_node_defaults(error_handler=handler) if defaults else builder

    expected, actual = both(make)
    assert expected == actual
    assert "handled at one" in expected["log"]


def test_an_error_handlers_way_into_the_loop_does_not_make_it_endless() -> None:
    """A reviewer that always fails, and a handler that goes to the fixer past the edge: the way back has been seen."""
    entered: list[int] = []

    def failing(state: State) -> State:
        raise ValueError("always")

    builder: Builder = StateGraph(State)
    builder.add_node("reviewer", failing, error_handler=lambda state: Command(goto="fixer"))
    builder.add_node("fixer", lambda state: entered.append(1) or {"n": 1})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "fixer")
    builder.add_edge("fixer", "reviewer")
    guard_loop(builder, "reviewer", "fixer", max_cycles=3)
    result = builder.compile().invoke({}, {"recursion_limit": 60})
    assert "escalated" == result["outcome"]
    assert len(entered) <= 5


def test_defaults_for_nodes_are_kept() -> None:
    """`set_node_defaults(retry_policy=...)` before or after the guard retries guarded nodes too."""
    for order in ("before", "after"):
        failures = [ConnectionError(), ConnectionError()]

        def flaky(state: State, failures: list[Any] = failures) -> State:
            if failures:
                raise failures.pop()
            return {"log": ["fine"]}

        retry = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=5)
        builder = loop(flaky)
        if order == "before":
            builder.set_node_defaults(retry_policy=retry)
        guard = guard_loop(builder, "reviewer", "fixer", max_cycles=5)
        if order == "after":
            builder.set_node_defaults(retry_policy=retry)
        app = builder.compile(checkpointer=InMemorySaver())
        assert ["fine"] * 3 == app.invoke({}, thread())["log"]
        assert {"reviewer": 3, "fixer": 2} == guard.ledger(app.get_state(thread())).visits


def test_metadata_defer_and_destinations_are_kept() -> None:
    """Whatever else `add_node` was told stays with the node."""
    builder = loop(lambda state: {}, metadata={"owner": "ada"}, defer=True)
    before = builder.nodes["reviewer"]
    guard_loop(builder, "reviewer", "fixer")
    after = builder.nodes["reviewer"]
    for attribute in (
        "metadata",
        "defer",
        "input_schema",
        "retry_policy",
        "timeout",
        "trace_policy",
        "error_handler_node",
    ):
        assert getattr(before, attribute) == getattr(after, attribute), attribute


def test_drawings_show_the_nodes_that_were_there_and_two_more() -> None:
    """No edge is lost in a drawing, and the names of routes stay."""
    for forward in ("plain", "dict_map", "command", "list_map"):
        form = Form(forward=forward if forward != "plain" else "dict_map", back="plain", side=True)
        bare = build(form, Seen()).compile().get_graph()
        builder = build(form, Seen())
        guard_loop(builder, "reviewer", "fixer")
        drawn = builder.compile().get_graph()
        added = {"loopguard_escalate", "loopguard_ask"}
        assert added == set(drawn.nodes) - set(bare.nodes)
        own = {(edge.source, edge.target, edge.data) for edge in drawn.edges if not {edge.source, edge.target} & added}
        had = {(edge.source, edge.target, edge.data) for edge in bare.edges}
        assert had <= own | {(s, t, None) for s, t, _ in own}
        assert {(s, t) for s, t, _ in own} == {(s, t) for s, t, _ in had}
        assert "loopguard_escalate" in drawn.draw_mermaid()


@pytest.mark.parametrize("how", ["direct", "function", "async function", "by hand"])
@pytest.mark.parametrize("xray", [True, 1])
def test_subgraphs_are_found_and_drawn(how: str, xray: Any) -> None:
    """`get_subgraphs` and `xray` look through the recorder, whichever way a subgraph is in the node."""
    inner: Builder = StateGraph(State)
    inner.add_node("inside", lambda state: {"log": ["inside"]})
    inner.add_edge(START, "inside")
    sub = inner.compile()

    def call(state: State) -> Any:
        return sub.invoke(state)

    async def acall(state: State) -> Any:
        return await sub.ainvoke(state)

    node: Any = {"function": call, "async function": acall}.get(how, sub)
    builder = loop(node)
    if how == "by hand":
        guard = LoopGuard("reviewer", "fixer", max_cycles=5)
        builder = StateGraph(State)
        builder.add_node("reviewer", guard.node("reviewer", sub))
        builder.add_node("fixer", guard.node("fixer", lambda state: {}))
        builder.add_edge(START, "reviewer")
        builder.add_conditional_edges("reviewer", *guard.edge("reviewer", lambda state: END, ["fixer", END]))
        builder.add_conditional_edges("fixer", *guard.edge("fixer", "reviewer"))
        guard.add_to(builder)
    else:
        guard_loop(builder, "reviewer", "fixer", max_cycles=5)
    app = builder.compile(checkpointer=InMemorySaver())
    assert ["reviewer"] == [name for name, _ in app.get_subgraphs(recurse=True)]
    bare = loop(node).compile()
    expected = {name for name in bare.get_graph(xray=xray).nodes if "inside" in name}
    assert expected == {name for name in app.get_graph(xray=xray).nodes if "inside" in name}


def test_an_interrupt_in_a_subgraph_shows_its_state() -> None:
    """`get_state(subgraphs=True)` sees into a recorded subgraph."""
    inner: Builder = StateGraph(State)
    inner.add_node("inside", lambda state: {"patch": interrupt("what?")})
    inner.add_edge(START, "inside")
    builder = loop(inner.compile())
    guard_loop(builder, "reviewer", "fixer")
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    (task,) = app.get_state(thread(), subgraphs=True).tasks
    assert ("inside",) == task.state.next  # type: ignore[union-attr]
    app.invoke(Command(resume="this"), thread())
    assert "this" == app.get_state(thread()).values["patch"]


# -- the pieces -------------------------------------------------------------------------------------------------------


def pieces(*guards: LoopGuard, forward: str = "router", leave_open: str = "") -> Builder:
    """A pair wired by hand with one or more guards."""
    builder: Builder = StateGraph(State)

    def reviewer(state: State) -> Any:
        update = {"n": (state.get("n") or 0) + 1, "log": ["reviewer"]}
        return Command(update=update, goto="fixer") if forward == "command" else update

    nodes: dict[str, Any] = {"reviewer": reviewer, "fixer": lambda state: {"log": ["fixer"]}}
    for guard in guards:
        nodes = {name: guard.node(name, node) for name, node in nodes.items() if name != leave_open} | {
            name: node for name, node in nodes.items() if name == leave_open
        }
    for name in ("reviewer", "fixer"):
        builder.add_node(name, nodes[name])
    builder.add_edge(START, "reviewer")

    def edge(source: str, path: Any, path_map: Any = None) -> None:
        gated: Any = (path, path_map)
        gating = guards if leave_open != f"{source} edge" else ()
        for guard in gating:
            gated = guard.edge(source, *gated)
        if not gating and isinstance(path, str):
            builder.add_edge(source, path)
            return
        builder.add_conditional_edges(source, *gated)

    if forward == "router":
        edge("reviewer", lambda state: "go" if state["n"] < 99 else "stop", {"go": "fixer", "stop": END})
    elif forward == "name":
        edge("reviewer", "fixer")
    elif forward == "list":
        edge("reviewer", lambda state: ["fixer"], ["fixer", END])
    elif forward == "literal":

        def hinted(state: State) -> Literal["fixer", "__end__"]:
            return "fixer"

        edge("reviewer", hinted)
    elif forward == "send":
        edge("reviewer", lambda state: Send("fixer", {"n": state["n"]}), ["fixer"])
    edge("fixer", "reviewer")
    return builder


def seen_of(app: Any, guard: LoopGuard) -> Any:
    """What a run of a pair says: its state, its ledger without times, its record without times and names of tasks."""
    app.invoke({}, thread())
    snapshot = app.get_state(thread())
    (record,) = snapshot.values["escalations"].values()
    ledger = {k: v for k, v in guard.ledger(snapshot).data.items() if k not in ("seconds", "tripped")}
    reviews = [(one["node"], one["cycle"], one["content"]) for one in record["reviews"] + record["fixes"]]
    return plain(snapshot.values), ledger, record["reason"], reviews, len(list(app.get_state_history(thread())))


@pytest.mark.parametrize("forward", ["router", "name", "list", "literal", "send", "command"])
def test_wiring_by_hand_is_the_same_as_guard_loop(forward: str) -> None:
    """State, ledger, record and supersteps are equal."""
    guard = LoopGuard("reviewer", "fixer", max_cycles=3)
    builder = pieces(guard, forward=forward)
    assert guard is guard.add_to(builder)
    bare = pieces(forward=forward)
    guarded = guard_loop(bare, "reviewer", "fixer", max_cycles=3)
    by_hand = seen_of(builder.compile(checkpointer=InMemorySaver()), guard)
    assert seen_of(bare.compile(checkpointer=InMemorySaver()), guarded) == by_hand


@pytest.mark.parametrize("forward", ["router", "name", "send", "command"])
@pytest.mark.parametrize("second", ["guard_loop", "by hand"])
def test_a_second_guard_on_nodes_wired_by_hand_records_a_visit_once(forward: str, second: str) -> None:
    """Whichever way the second one comes, each visit is one entry of the history, and both guards count it."""
    first = LoopGuard("reviewer", "fixer", max_cycles=9, name="first")
    if second == "by hand":
        other = LoopGuard("reviewer", "fixer", max_cycles=2, name="second")
        builder = pieces(first, other, forward=forward)
        first.add_to(builder)
        other.add_to(builder)
    else:
        builder = pieces(first, forward=forward)
        first.add_to(builder)
        other = guard_loop(builder, "reviewer", "fixer", max_cycles=2, name="second")
    app = builder.compile(checkpointer=InMemorySaver())
    app.invoke({}, thread())
    snapshot = app.get_state(thread())
    (record,) = snapshot.values["escalations"].values()
    assert ("second", 2, 3, 2) == (record["loop"], record["cycles"], len(record["reviews"]), len(record["fixes"]))
    for guard in (first, other):
        assert {"reviewer": 3, "fixer": 2} == guard.ledger(snapshot).visits
    assert 2 == snapshot.values["log"].count("fixer")


@pytest.mark.parametrize(
    ("open_part", "words"),
    [
        ("reviewer", ["'reviewer'", "not recorded", "guard.node"]),
        ("fixer", ["'fixer'", "not recorded", "guard.node"]),
        ("reviewer edge", ["reviewer->fixer", "guard.edge"]),
        ("fixer edge", ["fixer->reviewer", "guard.edge"]),
    ],
)
@pytest.mark.parametrize("forward", ["router", "literal", "list", "send"])
def test_what_is_left_open_is_refused(open_part: str, words: list[str], forward: str) -> None:
    """`add_to` names the node without a recorder, or the edge without a gate, and what to call."""
    guard = LoopGuard("reviewer", "fixer")
    builder = pieces(guard, forward=forward, leave_open=open_part)
    with pytest.raises(ValueError, match=".*") as caught:
        guard.add_to(builder)
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize("edge", ["plain", "router", "joined", "command declared"])
def test_an_edge_among_the_loops_nodes_without_a_gate_is_refused(edge: str) -> None:
    """A third way among the nodes, beside those that are gated, is named too."""
    guard = LoopGuard("a", "b", "c")
    builder: Builder = StateGraph(State)
    for node in "abc":
        builder.add_node(
            node,
            guard.node(node, lambda state: {}),
            **({"destinations": ("c",)} if edge == "command declared" and node == "a" else {}),
        )
    builder.add_edge(START, "a")
    for source, target in ("ab", "bc", "ca"):
        builder.add_conditional_edges(source, *guard.edge(source, target))
    if edge == "plain":
        builder.add_edge("a", "c")
    elif edge == "router":
        builder.add_conditional_edges("a", lambda state: "c", ["c", END])
    elif edge == "joined":
        builder.add_edge(["a", "b"], "c")
    if edge == "command declared":
        guard.add_to(builder)  # the recorder judges what a node routes by itself
        return
    with pytest.raises(ValueError, match="guard.edge") as caught:
        guard.add_to(builder)
    assert "->c" in str(caught.value)


# -- refusals ---------------------------------------------------------------------------------------------------------


def test_a_node_that_routes_by_command_beside_a_plain_edge_can_be_guarded() -> None:
    """Its code mentions `Command`, so it may go anywhere, whatever else leaves it."""

    def reviewer(state: State) -> Any:
        return Command(update={"n": (state.get("n") or 0) + 1}, goto="fixer")

    def make() -> Builder:
        builder: Builder = StateGraph(State)
        builder.add_node("reviewer", reviewer)
        builder.add_node("fixer", lambda state: Command(update={"log": ["fixer"]}, goto="reviewer"))
        builder.add_node("notes", lambda state: {"log": ["notes"]})
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "notes")
        builder.add_edge("fixer", "notes")
        return builder

    builder = make()
    guard_loop(builder, "reviewer", "fixer", max_cycles=2)
    result = builder.compile().invoke({})
    assert ("escalated", 2) == (result["outcome"], result["escalation"]["cycles"])
    assert 2 == result["log"].count("fixer")


def to_fixer(state: State) -> Any:
    """A helper that several nodes of a module may call."""
    return Command(update={"n": 1}, goto="fixer")


@pytest.mark.parametrize(
    "kind",
    [
        *("method", "callable", "partial", "decorated", "async", "imported"),
        *("closure", "async closure", "helper", "own method", "holder", "recursive"),
    ],
)
def test_a_command_is_seen_in_every_kind_of_node(kind: str) -> None:
    """As a method, an object, behind `partial` or a decorator, or made by a function that the node calls."""
    import functools

    from langgraph import types

    def decide(state: State) -> Any:
        return Command(update={"n": 1}, goto="fixer")

    class Holder:
        def method(self, state: State) -> Any:
            return Command(update={"n": 1}, goto="fixer")

        def calls(self, state: State) -> Any:
            return self.method(state)

        def __call__(self, state: State) -> Any:
            return Command(update={"n": 1}, goto="fixer")

    @functools.wraps(decide)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        return decide(*args, **kwargs)

    async def acts(state: State) -> Any:
        return Command(update={"n": 1}, goto="fixer")

    def imported(state: State) -> Any:
        return types.Command(update={"n": 1}, goto="fixer")

    def closure(state: State) -> Any:
        return decide(state)

    async def aclosure(state: State) -> Any:
        return decide(state)

    class Plain:
        step = Holder.method

    plain = Plain()

    def recursive(state: State, again: bool = True) -> Any:
        return recursive(state, False) if again else plain.step(state)

    nodes: dict[str, Any] = {
        "own method": Holder().calls, "holder": lambda state: plain.step(state), "recursive": recursive,
        "closure": closure, "async closure": aclosure, "helper": lambda state: to_fixer(state),
        "method": Holder().method, "callable": Holder(), "partial": functools.partial(decide), "decorated": decorated,
        "async": acts, "imported": imported,
    }  # fmt: skip
    builder: Builder = StateGraph(State)
    builder.add_node("reviewer", nodes[kind])
    builder.add_node("fixer", lambda state: {"log": ["fixer"]})
    builder.add_node("notes", lambda state: {"log": ["notes"]})
    builder.add_edge(START, "reviewer")
    builder.add_edge("reviewer", "notes")
    builder.add_edge("fixer", "notes")
    guard_loop(builder, "reviewer", "fixer", max_cycles=2)


def test_nodes_that_cannot_reach_each_other_are_refused() -> None:
    """The message lists the edges that there are."""
    builder: Builder = StateGraph(State)
    for node in ("reviewer", "fixer", "notes"):
        builder.add_node(node, lambda state: {})
    builder.add_edge(START, "reviewer")
    builder.add_edge(START, "fixer")
    builder.add_edge("reviewer", "notes")
    builder.add_edge("fixer", "notes")
    with pytest.raises(ValueError, match="no edge between reviewer, fixer") as caught:
        guard_loop(builder, "reviewer", "fixer")
    assert "fixer->notes" in str(caught.value)
    assert "reviewer->notes" in str(caught.value)
    assert not any(name.startswith("loopguard") for name in builder.nodes), "a refused guard leaves nothing behind"


REFUSED: dict[str, tuple[tuple[str, ...], dict[str, Any], list[str]]] = {
    "unknown node": (("reviewer", "fixxer"), {}, ["nodes", "'fixxer'", "fixer, reviewer"]),
    "unknown way": (("reviewer", "fixer"), {"escalate_to": "boss"}, ["escalate_to", "'boss'"]),
    "way in the loop": (("reviewer", "fixer"), {"escalate_to": "fixer"}, ["escalate_to", "'fixer'"]),
    "artifact": (("reviewer", "fixer"), {"artifact": "pach"}, ["artifact", "'pach'", "patch"]),
    "measure": (("reviewer", "fixer"), {"measure": "opn"}, ["measure", "'opn'", "patch"]),
    "one node": (("reviewer",), {}, ["nodes", "two"]),
    "twice": (("reviewer", "reviewer"), {}, ["nodes", "different"]),
    "end": (("reviewer", END), {}, ["nodes", repr(END)]),
    "cap": (("reviewer", "fixer"), {"max_cycles": 0}, ["max_cycles", "0"]),
    "mode": (("reviewer", "fixer"), {"mode": "watch"}, ["mode", "'watch'"]),
    "ask": (("reviewer", "fixer"), {"ask_human": "yes"}, ["ask_human", "'yes'"]),
    "name": (("reviewer", "fixer"), {"name": "a|b"}, ["name", "'a|b'"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_guard_that_does_not_fit_is_refused(case: str) -> None:
    """With the parameter's name, its value, and what there is instead; the builder stays as it was."""
    nodes, settings, words = REFUSED[case]
    builder = build(Form(), Seen())
    before = (set(builder.nodes), set(builder.edges), set(builder.channels))
    with pytest.raises(ValueError, match=".*") as caught:
        guard_loop(builder, *nodes, **settings)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert before == (set(builder.nodes), set(builder.edges), set(builder.channels))


def test_a_second_guard_of_one_name_is_refused() -> None:
    """Their ledgers would be one."""
    builder = build(Form(), Seen())
    guard_loop(builder, "reviewer", "fixer")
    with pytest.raises(ValueError, match="name: a guard named 'reviewer-fixer'"):
        guard_loop(builder, "reviewer", "fixer", max_cycles=7)
    guard_loop(builder, "reviewer", "fixer", max_cycles=7, name="again")


@pytest.mark.parametrize("name", ["loopguard_escalate", "loopguard_ask"])
def test_a_node_of_the_guards_name_is_refused(name: str) -> None:
    """The name is said."""
    builder = build(Form(), Seen())
    builder.add_node(name, lambda state: {})
    with pytest.raises(ValueError, match=name):
        guard_loop(builder, "reviewer", "fixer")


def test_the_wrong_kind_of_graph_is_refused() -> None:
    """Each function names the other one."""
    builder = build(Form(), Seen())
    with pytest.raises(TypeError, match="guard_compiled"):
        guard_loop(builder.compile(), "reviewer", "fixer")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="guard_loop"):
        guard_compiled(builder, "reviewer", "fixer")  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["node", "edge"])
def test_pieces_for_a_strange_node_are_refused(call: str) -> None:
    """A guard's pieces are for its own nodes."""
    guard = LoopGuard("reviewer", "fixer")
    with pytest.raises(ValueError, match="'notes' is not in the loop reviewer, fixer"):
        getattr(guard, call)("notes", lambda state: {})


# -- compiled graphs --------------------------------------------------------------------------------------------------


def test_guard_compiled_keeps_everything_and_leaves_the_original_alone() -> None:
    """Saver, store, cache, interrupts, name, config and defaults are kept; the original runs unguarded."""
    saver, store, cache = InMemorySaver(), InMemoryStore(), InMemoryCache()
    builder = build(Form(rounds=5), Seen())
    builder.set_node_defaults(error_handler=lambda state: {})
    original = builder.compile(
        checkpointer=saver,
        store=store,
        cache=cache,
        interrupt_before=["fixer"],
        interrupt_after=["reviewer"],
        name="pair",
        debug=False,
    ).with_config(tags=["mine"], recursion_limit=77)
    original.step_timeout = 9
    nodes, edges, branches = set(builder.nodes), set(builder.edges), {s: dict(b) for s, b in builder.branches.items()}
    specs = dict(builder.nodes)
    app = guard_compiled(original, "reviewer", "fixer", max_cycles=2)
    for attribute in (
        "checkpointer",
        "store",
        "cache",
        "interrupt_before_nodes",
        "interrupt_after_nodes",
        "name",
        "config",
        "step_timeout",
        "debug",
        "stream_mode",
    ):
        assert getattr(original, attribute) == getattr(app, attribute), attribute
    assert (saver, store, cache) == (app.checkpointer, app.store, app.cache)
    assert (nodes, edges) == (set(builder.nodes), set(builder.edges))
    assert branches == {s: dict(b) for s, b in builder.branches.items()}
    assert all(builder.nodes[name].runnable is spec.runnable for name, spec in specs.items())
    given: Any = {"n": 0, "log": []}
    for _ in range(30):
        app.invoke(given, thread())
        given = None
        if any(isinstance(one.value, dict) for one in app.get_state(thread()).interrupts):
            break
    assert 2 == app.get_state(thread()).values["escalation"]["cycles"]
    config = {"configurable": {"thread_id": "bare"}}
    given = {"n": 0, "log": []}
    while True:
        result = original.invoke(given, config)
        given = None
        if not original.get_state(config).next:
            break
    assert 5 == sum("fix" in line for line in result["log"])


def test_guard_compiled_can_be_done_twice() -> None:
    """Two loops of one compiled graph, one after the other."""
    builder: Builder = StateGraph(State)
    for node in "abc":
        builder.add_node(node, lambda state, node=node: {"log": [node]})
    for source, target in ((START, "a"), ("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")):
        builder.add_edge(source, target)
    app = guard_compiled(guard_compiled(builder.compile(), "a", "b", max_cycles=2), "b", "c", max_cycles=2)
    result = app.invoke({"log": []}, {"recursion_limit": 50})
    assert "escalated" == result["outcome"]


def test_the_settings_of_a_compiled_graph_reach_the_guard(caplog: pytest.LogCaptureFixture) -> None:
    """They are those of `guard_loop`, refusals too."""
    app = build(Form(rounds=9), Seen()).compile()
    with pytest.raises(ValueError, match="max_cycles"):
        guard_compiled(app, "reviewer", "fixer", max_cycles=-1)
    with caplog.at_level(logging.INFO, logger="langgraph_loopguard"):
        result = guard_compiled(app, "reviewer", "fixer", max_cycles=1, mode="observe").invoke({"n": 0})
    assert "outcome" not in result


def test_a_guarded_subgraph_escalates_inside_its_parent() -> None:
    """The question of a guard in a subgraph reaches the caller, and its answer comes back in."""
    inner = build(Form(rounds=9), Seen())
    guard_loop(inner, "reviewer", "fixer", max_cycles=2)
    outer: Builder = StateGraph(State)
    outer.add_node("team", inner.compile())
    outer.add_node("after", lambda state: {"log": ["after"]})
    outer.add_edge(START, "team")
    outer.add_edge("team", "after")
    app = outer.compile(checkpointer=InMemorySaver())
    result = app.invoke({"n": 0}, thread())
    (asked,) = result["__interrupt__"]
    assert 2 == asked.value["escalation"]["cycles"]
    result = app.invoke(Command(resume={"action": "retry", "extra_cycles": 1}), thread())
    (asked,) = result["__interrupt__"]
    assert 3 == asked.value["escalation"]["cycles"]
    result = app.invoke(Command(resume={"action": "accept"}), thread())
    assert "after" == result["log"][-1]
    assert "__interrupt__" not in result
