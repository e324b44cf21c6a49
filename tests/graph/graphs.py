"""Small looping graphs in every form that LangGraph has for nodes, edges and states; each can be had with and without a guard."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.runnables import RunnableLambda
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel, ConfigDict
from typing_extensions import TypedDict

GUARD_KEYS = (
    "loopguard",
    "loopguard_history",
    "loopguard_held",
    "loopguard_standing",
    "loopguard_steps_left",
    "escalations",
    "escalation",
    "outcome",
)


class Dict(TypedDict, total=False):
    n: int
    patch: str
    log: Annotated[list[str], operator.add]


@dataclass
class Data:
    n: int = 0
    patch: str = ""
    log: Annotated[list[str], operator.add] = field(default_factory=list)


class Model(BaseModel):
    n: int = 0
    patch: str = ""
    log: Annotated[list[str], operator.add] = []


class Strict(Model):
    model_config = ConfigDict(extra="forbid")


class Messages(MessagesState, total=False):
    n: int
    patch: str
    log: Annotated[list[str], operator.add]


def last(before: Any, after: Any) -> Any:
    """A reducer that keeps the last value."""
    return after


class Reduced(TypedDict, total=False):
    n: Annotated[int, last]
    patch: Annotated[str, last]
    log: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]


STATES: dict[str, type] = {
    "dict": Dict,
    "dataclass": Data,
    "pydantic": Model,
    "forbid": Strict,
    "messages": Messages,
    "reducers": Reduced,
}

ROUTED = ("dict_map", "bool_map", "end_label", "list_map", "literal", "no_map", "list", "send")
"""Forms of an edge that a router makes."""
COMMANDED = ("command", "command_undeclared", "command_list", "command_send", "handoff")
"""Forms of an edge that the node itself makes."""
ROUTERS = ("function", "lambda", "method", "partial", "object", "runnable", "async", "async_object")


@dataclass(frozen=True)
class Form:
    """How one looping graph is written. The graph does the same whatever its form."""

    forward: str = "dict_map"
    back: str = "plain"
    router: str = "function"
    state: str = "dict"
    reviewer: Literal["sync", "async", "subgraph"] = "sync"
    fixer: Literal["sync", "async", "subgraph"] = "sync"
    rounds: int = 2
    """Fixes that the reviewer asks for."""
    self_loop: bool = False
    side: bool = False
    via: bool = False
    """Another node stands between fixer and reviewer."""
    flaky_nodes: bool = False
    flaky_router: bool = False
    interrupts: bool = False

    @property
    def needs_async(self) -> bool:
        routed = any(edge in ROUTED and edge != "literal" for edge in (self.forward, self.back))
        return "async" in (self.reviewer, self.fixer) or (routed and self.router.startswith("async"))


@dataclass
class Seen:
    """What happened in the user's own code during a run."""

    visits: list[str] = field(default_factory=list)
    routed: list[str] = field(default_factory=list)
    attempts: dict[str, int] = field(default_factory=dict)

    def flake(self, what: str, on: bool) -> None:
        """Raise on every other call."""
        self.attempts[what] = self.attempts.get(what, 0) + 1
        if on and self.attempts[what] % 2:
            raise ConnectionError(what)


def get(state: Any, key: str, default: Any = None) -> Any:
    """Read a key from a state of whatever kind."""
    return state.get(key, default) if isinstance(state, dict) else getattr(state, key, default)


def build(form: Form, seen: Seen) -> StateGraph:
    """Return a builder: a reviewer that asks for `rounds` fixes, and a fixer."""
    builder = StateGraph(STATES[form.state])
    retry = RetryPolicy(initial_interval=0.0, backoff_factor=1.0, jitter=False, max_attempts=5)
    keeps_messages = form.state in ("messages", "reducers")

    def review(state: Any) -> dict[str, Any]:
        seen.flake("reviewer", form.flaky_nodes)
        n = (get(state, "n") or 0) + 1
        seen.visits.append("reviewer")
        get_stream_writer()({"reviewer": n})
        update: dict[str, Any] = {"n": n, "log": [f"review {n}"]}
        if keeps_messages:
            update["messages"] = [AIMessage(f"review {n}", id=f"review-{n}-{len(seen.visits)}")]
        return update

    def fix(state: Any) -> dict[str, Any]:
        seen.flake("fixer", form.flaky_nodes)
        n = get(state, "n")
        if form.interrupts:
            said = interrupt({"fix": n})
            assert said == "go"
        seen.visits.append("fixer")
        get_stream_writer()({"fixer": n})
        return {"patch": f"patch {n}", "log": [f"fix {n}"]}

    def choose(n: int) -> str:
        if form.self_loop and n % 3 == 1:
            return "reviewer"
        return "fixer" if n <= form.rounds else END

    def after_fix(n: int) -> str:
        return "via" if form.via else "reviewer"

    _add(builder, form, "reviewer", form.forward, form.reviewer, review, choose, seen, retry)
    _add(builder, form, "fixer", form.back, form.fixer, fix, after_fix, seen, retry)
    if form.via:
        builder.add_node("via", lambda state: {"log": ["via"]})
        builder.add_edge("via", "reviewer")
    if form.side:
        builder.add_node("side", lambda state: {"log": ["side"]})
        builder.add_edge("reviewer", "side")
    builder.add_edge(START, "reviewer")
    return builder


def _add(
    builder: StateGraph,
    form: Form,
    name: str,
    edge: str,
    kind: str,
    body: Callable[[Any], dict[str, Any]],
    choose: Callable[[int], str],
    seen: Seen,
    retry: RetryPolicy,
) -> None:
    options = {"retry_policy": retry}
    ends = ("reviewer", "fixer", "via", END) if form.via else ("reviewer", "fixer", END)
    if edge in COMMANDED:

        def act(state: Any) -> Any:
            update = body(state)
            goto = choose(update.get("n") or get(state, "n"))
            if edge == "command_list":
                return [{"log": update.pop("log")}, Command(update=update, goto=goto)]
            if edge == "command_send":
                # What a Send carries is the whole input of its target.
                now = {key: get(state, key) for key in ("n", "patch") if get(state, key) is not None}
                sent = {**now, **{key: update[key] for key in ("n", "patch") if key in update}}
                arg = sent if form.state in ("dict", "messages", "reducers") else STATES[form.state](**sent)
                return Command(update=update, goto=goto if goto == END else Send(goto, arg))
            if edge == "handoff":
                return Command(update=update, goto=goto, graph=Command.PARENT)
            return Command(update=update, goto=goto)

        if edge == "handoff":
            inner = StateGraph(STATES[form.state])
            inner.add_node("inner", _async(act) if kind == "async" else act)
            inner.add_edge(START, "inner")
            builder.add_node(name, inner.compile(), destinations=ends, **options)
        elif edge == "command_undeclared":
            builder.add_node(name, _async(act) if kind == "async" else act, **options)
        else:
            builder.add_node(name, _async(act) if kind == "async" else act, destinations=ends, **options)
        return
    if kind == "subgraph":
        inner = StateGraph(STATES[form.state])
        inner.add_node("inner", body)
        inner.add_edge(START, "inner")
        builder.add_node(name, inner.compile(), **options)
    else:
        builder.add_node(name, _async(body) if kind == "async" else body, **options)
    if edge == "plain":
        builder.add_edge(name, choose(0))
        return
    labels: dict[str, Any] = {node: node for node in ends}
    if edge == "dict_map":
        labels = {"reviewer": "again", "fixer": "fix it", "via": "via", END: "ok"}
    elif edge == "bool_map":
        labels = {"reviewer": None, "fixer": True, "via": 0.5, END: False}
        labels["reviewer"] = "self"
    elif edge == "end_label":
        labels = {**labels, END: "end"}

    def route(state: Any) -> Any:
        seen.flake(f"router of {name}", form.flaky_router)
        seen.routed.append(name)
        target = choose(get(state, "n"))
        if edge == "list":
            return [] if target == END else [target]
        if edge == "send":
            return END if target == END else [Send(target, state)]
        return labels[target]

    path_map: Any = None
    if edge in ("dict_map", "bool_map", "end_label"):
        path_map = {labels[node]: node for node in ends}
    elif edge in ("list_map", "send"):
        path_map = list(ends)
    builder.add_conditional_edges(name, _router(form.router, route, literal=edge == "literal", via=form.via), path_map)


def _async(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    async def run(state: Any) -> Any:
        return function(state)

    return run


def _router(kind: str, route: Callable[[Any], Any], *, literal: bool, via: bool) -> Any:
    if literal:

        def hinted(state: Any) -> Literal["reviewer", "fixer", "__end__"]:
            return route(state)

        def hinted_via(state: Any) -> Literal["reviewer", "fixer", "via", "__end__"]:
            return route(state)

        return hinted_via if via else hinted

    class Holder:
        def method(self, state: Any) -> Any:
            return route(state)

        def __call__(self, state: Any) -> Any:
            return route(state)

    class AsyncObject:
        async def __call__(self, state: Any) -> Any:
            return route(state)

    return {
        "function": route,
        "lambda": lambda state: route(state),
        "method": Holder().method,
        "partial": functools.partial(lambda extra, state: route(state), None),
        "object": Holder(),
        "runnable": RunnableLambda(route),
        "async": _async(route),
        "async_object": AsyncObject(),
    }[kind]


def fixes(state: Any) -> list[str]:
    """The fixes that were committed, by the state's log; a subgraph that returns its whole state writes each again."""
    return list(dict.fromkeys(line for line in get(state, "log") if line.startswith("fix")))


def plain(value: Any) -> Any:
    """Return a value in a form that compares: messages by kind and text, states by their own keys, without the guard's."""
    if isinstance(value, BaseMessage):
        return (value.type, value.text)
    if isinstance(value, BaseModel):
        return plain(dict(value))
    if hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        return plain({key: getattr(value, key) for key in value.__dataclass_fields__})
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if key not in GUARD_KEYS}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def thread(**more: Any) -> dict[str, Any]:
    """Return a config for one thread."""
    return {"configurable": {"thread_id": "thread"}, **more}
