"""What `graph/_pregel.py` relies on in LangGraph, asked of LangGraph alone: a version that moves it fails here."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.cache.memory import InMemoryCache
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import ParentCommand
from langgraph.graph import END, START, StateGraph
from langgraph.managed import RemainingSteps
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from typing_extensions import TypedDict

from langgraph_loopguard.graph import _pregel

MOVED = "LangGraph has moved what langgraph_loopguard/graph/_pregel.py relies on: "
RETRY = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3)


class State(TypedDict, total=False):
    n: int
    side: int


class Steps(State):
    left: RemainingSteps


def one_node(
    node: Callable[..., Any], path: Callable[..., Any] | None = None, *, schema: Any = State, **options: Any
) -> StateGraph[Any, Any, Any, Any]:
    """A graph of one node, with a router behind it."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(schema)
    builder.add_node("node", node, **options)
    builder.add_edge(START, "node")
    builder.add_conditional_edges("node", path or (lambda state: END), ["node", END])
    return builder


def thread(**more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": "thread"}, **more}


def note(seen: list[Any], what: Callable[[RunnableConfig], Any]) -> Callable[[Any, RunnableConfig], str]:
    """A router that notes what a config says and ends."""

    def path(state: Any, config: RunnableConfig) -> str:
        seen.append(what(config))
        return END

    return path


@pytest.mark.parametrize("key", ["READ", "SEND", "CHECKPOINTER"])
@pytest.mark.parametrize("where", ["node", "router"])
def test_the_private_config_keys_are_there(key: str, where: str) -> None:
    """Nodes and routers find all three under `configurable`."""
    seen: list[Any] = []
    look = note(seen, lambda config: getattr(_pregel, key) in config["configurable"])
    if where == "router":
        app = one_node(lambda state: {"n": 1}, look).compile(checkpointer=InMemorySaver())
    else:

        def node(state: State, config: RunnableConfig) -> State:
            look(state, config)
            return {"n": 1}

        app = one_node(node).compile(checkpointer=InMemorySaver())
    app.invoke({"n": 0}, thread())
    assert [True] == seen, f"{MOVED}{key} = {getattr(_pregel, key)!r} is not in the configurable of a {where}"


def test_read_returns_a_dict_with_and_without_the_tasks_own_writes() -> None:
    """`fresh` adds the present task's writes to the state; without it the state is as before the step."""
    seen: list[Any] = []

    def both(config: RunnableConfig) -> Any:
        return _pregel.read(config, ["n", "side"], fresh=True), _pregel.read(config, ["n"], fresh=False)

    one_node(lambda state: {"n": 1, "side": 2}, note(seen, both)).compile().invoke({"n": 0})
    assert [({"n": 1, "side": 2}, {"n": 0})] == seen, f"{MOVED}the reader ({_pregel.READ}) answers otherwise"


@pytest.mark.parametrize("fresh", [True, False])
def test_read_leaves_out_what_is_empty(fresh: bool) -> None:
    """A channel that nobody has written is no key of the answer, and no error."""
    seen: list[Any] = []
    look = note(seen, lambda config: _pregel.read(config, ["n", "side"], fresh=fresh))
    one_node(lambda state: {"n": 1}, look).compile().invoke({"n": 0})
    assert [{"n": int(fresh)}] == seen, f"{MOVED}the reader no longer leaves out empty channels"


def test_read_knows_managed_values() -> None:
    """`RemainingSteps` is read like a channel, and is at least what limit and step say."""
    seen: list[Any] = []

    def look(config: RunnableConfig) -> Any:
        return _pregel.read(config, ["left"], fresh=True)["left"], _pregel.steps_left_at_least(config)

    app = one_node(lambda state: {"n": 1}, note(seen, look), schema=Steps).compile(checkpointer=InMemorySaver())
    app.invoke({"n": 0}, thread(recursion_limit=9))
    app.invoke({"n": 0}, thread(recursion_limit=9))
    for left, least in seen:
        assert left >= least, f"{MOVED}recursion_limit and metadata's langgraph_step no longer bound RemainingSteps"
    assert [8, 8] == [left for left, _ in seen], f"{MOVED}RemainingSteps counts otherwise"
    assert 8 == seen[0][1], f"{MOVED}recursion_limit or metadata's langgraph_step is not in the config of a router"


def test_a_routers_write_belongs_to_the_step_of_its_node() -> None:
    """It is committed with the node's own update, in the same checkpoint and the same entry of `updates`."""

    def path(state: State, config: RunnableConfig) -> str:
        _pregel.write(config, [("side", 7)])
        return END

    app = one_node(lambda state: {"n": 1}, path).compile(checkpointer=InMemorySaver())
    updates = list(app.stream({"n": 0}, thread(), stream_mode="updates"))
    assert [{"node": {"n": 1, "side": 7}}] == updates, f"{MOVED}a write by {_pregel.SEND} is no part of the update"
    values = [snapshot.values for snapshot in app.get_state_history(thread())]
    expected = [{"n": 1, "side": 7}, {"n": 0}]
    assert expected == values[:2], f"{MOVED}a write by {_pregel.SEND} is not committed in its node's own step"


def test_a_retried_step_drops_what_it_wrote() -> None:
    """Writes of a failed attempt are gone; those of the attempt that ends stand once."""
    attempts: list[int] = []

    def node(state: State, config: RunnableConfig) -> State:
        attempts.append(1)
        _pregel.write(config, [("side", len(attempts))])
        if len(attempts) < 3:
            raise ConnectionError
        return {"n": 1}

    result = one_node(node, retry_policy=RETRY).compile().invoke({"n": 0})
    assert {"n": 1, "side": 3} == result, f"{MOVED}a retry keeps the writes of the attempts before it"


def test_an_interrupted_step_drops_what_it_wrote() -> None:
    """A node that is resumed writes anew; what it wrote before the interrupt is gone."""
    attempts: list[int] = []

    def node(state: State, config: RunnableConfig) -> State:
        attempts.append(1)
        _pregel.write(config, [("side", len(attempts))])
        interrupt("?")
        return {"n": 1}

    app = one_node(node).compile(checkpointer=InMemorySaver())
    app.invoke({"n": 0}, thread())
    assert {"n": 0} == app.get_state(thread()).values, f"{MOVED}an interrupted step keeps its writes"
    assert {"n": 1, "side": 2} == app.invoke(Command(resume=1), thread()), f"{MOVED}a resumed step writes otherwise"


@pytest.mark.parametrize(("own", "outer"), [(None, False), (None, True), (True, False)])
def test_whether_there_is_a_checkpointer_is_known_inside(own: Any, outer: bool) -> None:
    """In a subgraph too, whose checkpointer is its parent's."""
    seen: list[bool] = []
    inner = one_node(lambda state: {"n": 1}, note(seen, _pregel.has_checkpointer)).compile(checkpointer=own)
    app = one_node(inner).compile(checkpointer=InMemorySaver() if outer else None)  # type: ignore[arg-type]
    app.invoke({"n": 0}, thread())
    assert [outer] == seen, f"{MOVED}{_pregel.CHECKPOINTER} no longer says whether the run has a checkpointer"


def test_a_task_made_by_a_send_says_so() -> None:
    """Its triggers name the queue of Sends; those of a task made by an edge do not."""
    seen: list[bool] = []

    def node(state: State, config: RunnableConfig) -> State:
        seen.append(_pregel.is_send(config))
        return {"n": (state.get("n") or 0) + 1}

    one_node(node, lambda state: END if state["n"] > 1 else [Send("node", {"n": 1})]).compile().invoke({"n": 0})
    assert [False, True] == seen, f"{MOVED}metadata's langgraph_triggers no longer holds {_pregel.PUSH_TRIGGER!r}"


def test_a_task_has_one_name_over_retry_interrupt_and_resume() -> None:
    """Node and router see the same name, and each visit has its own."""
    seen: list[Any] = []

    def node(state: State, config: RunnableConfig) -> State:
        seen.append(_pregel.task_id(config))
        if len(seen) == 1:
            raise ConnectionError
        interrupt("?")
        return {"n": (state.get("n") or 0) + 1}

    def path(state: State, config: RunnableConfig) -> str:
        seen.append(_pregel.task_id(config))
        return END if state["n"] > 1 else "node"

    app = one_node(node, path, retry_policy=RETRY).compile(checkpointer=InMemorySaver())
    app.invoke({"n": 0}, thread())
    app.invoke(Command(resume=1), thread())
    app.invoke(Command(resume=1), thread())
    assert None not in seen, f"{MOVED}metadata's langgraph_node or langgraph_checkpoint_ns is gone"
    first, second = seen[:4], seen[4:]
    assert 1 == len(set(first)), f"{MOVED}a task's name differs over retry, resume and its router: {first}"
    assert 1 == len(set(second)), f"{MOVED}a task's name differs over resume and its router: {second}"
    assert first[0] != second[0], f"{MOVED}two visits of a node have one task name"


def test_a_router_that_update_state_asks_is_in_no_task() -> None:
    """There the metadata names no node."""
    seen: list[Any] = []
    app = one_node(lambda state: {"n": 1}, note(seen, _pregel.task_id)).compile(checkpointer=InMemorySaver())
    app.update_state(thread(), {"n": 5}, as_node="node")
    assert [None] == seen, f"{MOVED}update_state gives routers a task now: {seen}"


def test_what_a_node_leaves_its_router_finds() -> None:
    """The steps of one task share one `configurable`; two tasks of a superstep do not."""
    seen: list[Any] = []

    def node(state: State, config: RunnableConfig) -> State:
        _pregel.leave(config, (state.get("side"), _pregel.task_id(config)))
        return {}

    def path(state: State, config: RunnableConfig) -> str:
        seen.append(_pregel.left(config)[1] == _pregel.task_id(config))
        return END

    builder = one_node(node, path)
    builder.add_node("fan", lambda state: {})
    builder.edges.discard((START, "node"))
    builder.add_edge(START, "fan")
    builder.add_conditional_edges("fan", lambda state: [Send("node", {"side": n}) for n in range(3)], ["node"])
    builder.compile().invoke({})
    assert [True] * 3 == seen, f"{MOVED}a node and its router no longer share their configurable, or tasks do"


def test_the_last_router_of_a_node_is_the_one_added_last() -> None:
    """Routers of one node run one after the other, in the order of `builder.branches`."""
    seen: list[int] = []
    builder = one_node(lambda state: {})
    for number in range(5):
        builder.add_conditional_edges(
            "node", RunnableLambda(lambda state, n=number: seen.append(n) or END, name=str(number))
        )
    builder.compile().invoke({})
    assert [0, 1, 2, 3, 4] == seen, f"{MOVED}the routers of a node run in another order: {seen}"


def test_a_router_without_a_reader_is_handed_no_state() -> None:
    """`without_reader` finds `run(writer, reader)` on the branch, and LangGraph does without the reader."""
    seen: list[Any] = []
    builder = one_node(lambda state: {"n": 1}, lambda state: seen.append(state) or END)
    ((name, branch),) = builder.branches["node"].items()
    builder.branches["node"][name] = _pregel.without_reader(branch)
    builder.compile().invoke({"n": 0, "side": 5})
    assert len(seen) == 1, f"{MOVED}BranchSpec.run is not what makes a router run"
    assert {"n": 1, "side": 5} != seen[0], f"{MOVED}a router is handed the state whatever BranchSpec.run is given"


def test_the_default_cache_policy_of_a_builder_is_found() -> None:
    """`set_node_defaults` keeps it where `compile` finds it."""
    policy = CachePolicy(ttl=7)
    builder = one_node(lambda state: {})
    assert _pregel.default_cache_policy(builder) is None
    builder.set_node_defaults(cache_policy=policy)
    assert policy is _pregel.default_cache_policy(builder), f"{MOVED}builder._node_defaults.cache_policy"
    app = builder.compile(cache=InMemoryCache())
    assert policy is app.nodes["node"].cache_policy, f"{MOVED}compile no longer gives the default policy to nodes"


def test_the_default_error_handler_has_the_name_that_copies_leave_out() -> None:
    """`copy_builder` removes what `compile` has added, or a second compile would refuse it."""
    builder = one_node(lambda state: {})
    builder.set_node_defaults(error_handler=lambda state: {})
    builder.compile()
    assert "__default_error_handler__" in builder.nodes, f"{MOVED}the default error handler has another name"


def test_a_nodes_spec_can_be_replaced_field_by_field() -> None:
    """`dataclasses.replace` keeps what it does not name."""
    builder = one_node(lambda state: {}, metadata={"a": 1}, defer=True, destinations=("node",), retry_policy=RETRY)
    spec = builder.nodes["node"]
    again = dataclasses.replace(spec, runnable=spec.runnable)
    assert spec is not again
    assert spec == again, f"{MOVED}a node's spec is no plain dataclass"
    fields = {field.name for field in dataclasses.fields(spec)}
    needed = {"runnable", "input_schema", "ends", "cache_policy", "is_error_handler", "error_handler_node"}
    assert needed <= fields, f"{MOVED}a node's spec has lost {needed - fields}"


def test_a_builder_has_the_attributes_that_attach_changes() -> None:
    """Edges, joined edges, branches, channels, schemas and their classes."""
    builder = one_node(lambda state: {})
    builder.add_node("other", lambda state: {})
    builder.add_edge(["node", "other"], "node")
    assert {(START, "node")} == builder.edges, f"{MOVED}builder.edges"
    assert {(("node", "other"), "node")} == builder.waiting_edges, f"{MOVED}builder.waiting_edges"
    ((_, branch),) = builder.branches["node"].items()
    assert {"node": "node", END: END} == branch.ends, f"{MOVED}BranchSpec.ends"
    assert {"n", "side"} == set(builder.schemas[builder.state_schema]), f"{MOVED}builder.schemas"
    assert {"n", "side"} <= builder.channels.keys(), f"{MOVED}builder.channels"
    assert not builder.managed, f"{MOVED}builder.managed"
    assert builder.output_schema is builder.state_schema, f"{MOVED}builder.output_schema"
    assert builder is builder.compile().builder, f"{MOVED}CompiledStateGraph.builder"


def test_a_subgraph_behind_deps_is_found() -> None:
    """LangGraph looks for subgraphs at `deps` of a `RunnableLambda`, which is what a recorded node is."""
    inner = one_node(lambda state: {}).compile()

    class Wrapped(RunnableLambda[Any, Any]):
        def __init__(self) -> None:
            self.func = inner.invoke
            self.name = "wrapped"

        @property
        def deps(self) -> Any:
            return [inner]

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return inner.invoke(input, config)

    app = one_node(Wrapped()).compile()
    found = [name for name, _ in app.get_subgraphs()]
    assert ["node"] == found, f"{MOVED}subgraphs are no longer looked for at RunnableLambda.deps"


def test_a_handoff_to_the_parent_names_its_graph() -> None:
    """It arrives in a wrapper as `ParentCommand`, with the namespace of the graph that it is meant for."""
    seen: list[Any] = []
    inner = one_node(lambda state: Command(goto="other", graph=Command.PARENT)).compile()

    def node(state: State, config: RunnableConfig) -> Any:
        try:
            return inner.invoke(state, config)
        except ParentCommand as error:
            seen.append((error.args[0].graph, config["configurable"]["checkpoint_ns"].partition(":")[0]))
            raise

    builder = one_node(node)
    builder.add_node("other", lambda state: {"n": 2})
    assert {"n": 2} == builder.compile().invoke({"n": 0})
    ((graph, own),) = seen
    assert graph.partition(":")[0] == own == "node", f"{MOVED}a handoff to the parent says {graph!r}"


def test_a_delta_channel_has_the_parts_that_the_history_replaces() -> None:
    """The history shares values between copies, and sets its own pace of whole values."""
    channel: Any = DeltaChannel(lambda before, writes: [*before, *writes], list)
    for attribute in ("typ", "key", "reducer", "value", "snapshot_frequency", "copy", "update", "from_checkpoint"):
        assert hasattr(channel, attribute), f"{MOVED}DeltaChannel.{attribute}"


# -- what a checkpoint has still to run --------------------------------------------------------------------------------


class Joined(TypedDict, total=False):
    done: Annotated[list[str], operator.add]


def test_what_a_checkpoint_has_still_to_run_is_what_the_graph_says() -> None:
    """At every checkpoint of a run with branches, a join, a `Send` and an interrupt."""
    builder = StateGraph(Joined)
    for name in ("first", "left", "right", "joined", "sent"):
        builder.add_node(name, lambda state, name=name: {"done": [name]})
    builder.add_node("asks", lambda state: {"done": [interrupt("may I?")]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "left")
    builder.add_edge("first", "right")
    builder.add_edge(["left", "right"], "joined")
    builder.add_conditional_edges("joined", lambda state: [Send("sent", state), Send("sent", state)], ["sent"])
    builder.add_edge("sent", "asks")
    saver = InMemorySaver()
    graph = builder.compile(checkpointer=saver)
    graph.invoke({}, thread())
    graph.invoke(Command(resume="yes"), thread())
    seen = set()
    for state in graph.get_state_history(thread()):
        kept = saver.get_tuple(state.config)
        assert kept is not None
        assert set(state.next) == _pregel.pending(kept.checkpoint["channel_values"]), MOVED + "names of channels"
        seen |= set(state.next)
    assert {START, "first", "left", "right", "joined", "sent", "asks"} == seen
