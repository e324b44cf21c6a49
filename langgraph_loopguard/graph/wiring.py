"""The two things that stand in a guarded graph: the recorder around a node, the gate in a conditional edge."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.types import Command, Send

from langgraph_loopguard.graph.gate import ESCALATE, Destination, pass_gate
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.recorder import Recorder, Visit
from langgraph_loopguard.graph.state import Shape, StateView

RECORDER = "__loopguard_recorder__"
"""Attribute of a recorded function: its recorder."""


class RecordedNode(RunnableLambda[Any, Any]):
    """A node's Runnable with the recorder around it.

    It is a `RunnableLambda` only so that LangGraph looks through it for subgraphs (`deps`) and knows whether it can be
    cancelled (`afunc`); it opens no run of its own, so traces look as before.
    """

    def __init__(
        self, inner: Runnable[Any, Any], recorder: Recorder, plain: Callable[[Any], Any] | None = None
    ) -> None:
        # RunnableLambda.__init__ is passed over on purpose: it inspects a function, and there is none.
        self.inner = inner
        self.recorder = recorder
        self.plain = plain
        self.name = inner.get_name()
        self.func = inner.invoke
        if _native_async(inner):
            self.afunc = inner.ainvoke

    def __repr__(self) -> str:
        return f"RecordedNode({self.inner!r})"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]  # RunnableLambda compares functions; there is none here
        return id(self)

    @property
    def deps(self) -> list[Runnable[Any, Any]]:
        """What the node runs: LangGraph looks for subgraphs here."""
        return [self.inner]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node and record what it wrote."""
        if self.plain is not None:
            input = self.plain(input)
        if config is None:
            return self.inner.invoke(input, config, **kwargs)
        visit, result = Visit(self.recorder, input, config), None
        with visit:
            result = self.inner.invoke(input, config, **kwargs)
        return visit.finish(result)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Run the node and record what it wrote."""
        if self.plain is not None:
            input = self.plain(input)
        if config is None:
            return await self.inner.ainvoke(input, config, **kwargs)
        visit, result = Visit(self.recorder, input, config), None
        with visit:
            result = await self.inner.ainvoke(input, config, **kwargs)
        return visit.finish(result)

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Stream the node's chunks and record the last. A chunk with a `Command` waits for the gate."""
        if self.plain is not None:
            input = self.plain(input)
        if config is None:
            yield from self.inner.stream(input, config, **kwargs)
            return
        visit, last = Visit(self.recorder, input, config), _Last()
        with visit:
            for chunk in self.inner.stream(input, config, **kwargs):
                if last.add(chunk):
                    yield chunk
        result = visit.finish(last.value)
        if last.held:
            yield result

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Stream the node's chunks and record the last. A chunk with a `Command` waits for the gate."""
        if self.plain is not None:
            input = self.plain(input)
        if config is None:
            async for chunk in self.inner.astream(input, config, **kwargs):
                yield chunk
            return
        visit, last = Visit(self.recorder, input, config), _Last()
        with visit:
            async for chunk in self.inner.astream(input, config, **kwargs):
                if last.add(chunk):
                    yield chunk
        result = visit.finish(last.value)
        if last.held:
            yield result

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """As in `Runnable`: the input is collected first."""
        return Runnable.transform(self, input, config, **kwargs)

    def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """As in `Runnable`: the input is collected first."""
        return Runnable.atransform(self, input, config, **kwargs)


class _Last:
    """The chunk that counts when a node streams: the last one, as LangGraph has it."""

    def __init__(self) -> None:
        self.value: Any = None
        self.held = False

    def add(self, chunk: Any) -> bool:
        """Take a chunk; False when it must be held back for the gate."""
        if isinstance(chunk, Command) or (
            isinstance(chunk, (list, tuple)) and any(isinstance(item, Command) for item in chunk)
        ):
            self.held = True
        self.value = chunk
        return not self.held


def _native_async(inner: Runnable[Any, Any]) -> bool:
    """Whether a node's Runnable can run on the event loop by itself (not by a thread around a sync function)."""
    if isinstance(inner, RunnableLambda):
        return hasattr(inner, "afunc")
    afunc = getattr(inner, "afunc", None)
    if hasattr(inner, "func") and hasattr(inner, "afunc"):  # how StateGraph holds functions
        return afunc is not None and not isinstance(afunc, functools.partial)
    return type(inner).ainvoke is not Runnable.ainvoke


class GatedPath(RunnableLambda[Any, Any]):
    """A router with the gate behind it: it calls the router once, and replaces what must not be entered.

    Args:
        guards: The guards that watch the source.
        source: The node that the edge leaves.
        path: The router; `None` when the edge always goes to `targets`.
        targets: Where an edge without a router goes.
        ends: The router's labels and the nodes they stand for.
        shape: What is known of the state.
        name: The branch's name; by default the router's.
        last: No other gated edge of the source is judged after this one.
    """

    def __init__(
        self,
        guards: tuple[LoopGuard, ...],
        source: str,
        path: Runnable[Any, Any] | None,
        *,
        targets: Sequence[str] = (),
        ends: Mapping[Hashable, str] | None = None,
        shape: Shape | None = None,
        name: str | None = None,
        last: bool = True,
    ) -> None:
        self.guards = guards
        self.watches = [(guard, source) for guard in guards]
        self.source = source
        self.path = path
        self.targets = tuple(targets)
        self.ends = ends
        self.shape = shape
        self.last = last
        self.name = name or (path.get_name() if path is not None else "loopguard")
        # LangGraph reads the router's hints here: the class of its argument, and the names that it may return.
        func: Any = self._static if path is None else getattr(path, "func", None)
        self.func = func
        if afunc := getattr(path, "afunc", None):
            self.afunc = afunc

    def __repr__(self) -> str:
        return f"GatedPath({self.source!r}, {self.path!r})"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]  # RunnableLambda compares functions; there is none here
        return id(self)

    @property
    def deps(self) -> list[Runnable[Any, Any]]:
        """What the router runs."""
        return [] if self.path is None else [self.path]

    def _static(self, state: Any) -> Any:
        return list(self.targets)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Route, then judge."""
        result = list(self.targets) if self.path is None else self.path.invoke(input, config, **kwargs)
        return self._judge(result, input, config)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Route, then judge."""
        result = list(self.targets) if self.path is None else await self.path.ainvoke(input, config, **kwargs)
        return self._judge(result, input, config)

    def _judge(self, result: Any, state: Any, config: RunnableConfig | None) -> Any:
        if config is None:
            return result
        labels = list(result) if isinstance(result, (list, tuple)) else [result]
        destinations = [self._destination(label) for label in labels]
        if None in destinations:
            return result  # not a place to go: LangGraph says so better
        view = StateView(config, self.shape, state)
        denied = pass_gate(self.watches, destinations, view, config, last=self.last)
        if not denied:
            return result
        return [*(label for index, label in enumerate(labels) if index not in denied), ESCALATE]

    def _destination(self, label: Any) -> Any:
        if isinstance(label, Send):
            return label
        if self.ends is None:
            return label if isinstance(label, str) else None
        try:
            return self.ends.get(label)
        except TypeError:  # not hashable
            return None


def record_node(guard: LoopGuard, name: str, action: Any) -> Any:
    """Return the recorder around a node's action (see `LoopGuard.node`)."""
    if name not in guard.nodes:
        msg = f"name {name!r} is not in the loop {', '.join(guard.nodes)}"
        raise ValueError(msg)
    known: Recorder | None = getattr(action, RECORDER, None) or getattr(action, "recorder", None)
    if isinstance(known, Recorder):
        known.guards = (*known.guards, guard)
        return action
    recorder = Recorder(name, (guard,))
    if isinstance(action, Runnable):
        return RecordedNode(action, recorder)
    if not callable(action):
        msg = f"action must be a function or a Runnable, got {action!r}"
        raise ValueError(msg)
    if inspect.isgeneratorfunction(action) or inspect.isasyncgenfunction(action):
        return RecordedNode(RunnableLambda(action, name=name), recorder)
    return _recorded_function(action, recorder)


def _recorded_function(action: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    """Return a function that LangGraph reads like `action`: same hints, same injected arguments, and the config."""
    signature = inspect.signature(action)
    wants_config = "config" in signature.parameters
    call = action if inspect.isroutine(action) else getattr(action, "__call__", action)  # noqa: B004 - its hints
    if inspect.iscoroutinefunction(action) or inspect.iscoroutinefunction(call):

        @functools.wraps(call)
        async def recorded(*args: Any, config: RunnableConfig, **kwargs: Any) -> Any:
            if wants_config:
                kwargs["config"] = config
            visit, result = Visit(recorder, args[0], config), None
            with visit:
                result = await action(*args, **kwargs)
            return visit.finish(result)
    else:

        @functools.wraps(call)
        def recorded(*args: Any, config: RunnableConfig, **kwargs: Any) -> Any:
            if wants_config:
                kwargs["config"] = config
            visit, result = Visit(recorder, args[0], config), None
            with visit:
                result = action(*args, **kwargs)
            return visit.finish(result)

    parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    if not wants_config:
        parameters.append(inspect.Parameter("config", inspect.Parameter.KEYWORD_ONLY, annotation=RunnableConfig))
    recorded.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    recorded.__name__ = getattr(action, "__name__", recorder.name)
    setattr(recorded, RECORDER, recorder)
    return recorded


def gate_edge(
    guard: LoopGuard, source: str, path: Any, path_map: Mapping[Hashable, str] | Sequence[str] | None
) -> tuple[GatedPath, dict[Hashable, str] | None]:
    """Return a gated router and its map (see `LoopGuard.edge`)."""
    if source not in guard.nodes:
        msg = f"source {source!r} is not in the loop {', '.join(guard.nodes)}"
        raise ValueError(msg)
    if isinstance(path, GatedPath):
        ends = {**path.ends, ESCALATE: ESCALATE} if path.ends is not None else None
        gated = GatedPath(
            (*path.guards, guard), source, path.path, targets=path.targets, ends=path.ends, name=path.name
        )
        return gated, ends
    if isinstance(path, str):
        ends = {path: path, ESCALATE: ESCALATE}
        return GatedPath((guard,), source, None, targets=[path], ends=ends), ends
    if not callable(path) and not isinstance(path, Runnable):
        msg = f"path must be a router or the name of a node, got {path!r}"
        raise ValueError(msg)
    labels = _labels(path, path_map)
    router = path if isinstance(path, Runnable) else _router(path)
    gated = GatedPath((guard,), source, router, ends=labels)
    return gated, None if labels is None else {**labels, ESCALATE: ESCALATE}


def _labels(path: Any, path_map: Any) -> dict[Hashable, str] | None:
    if isinstance(path_map, Mapping):
        return dict(path_map)
    if path_map is not None:
        return {name: name for name in path_map}
    try:
        returned = get_type_hints(path).get("return")
    except (TypeError, NameError):
        return None
    return {name: name for name in get_args(returned)} if get_origin(returned) is Literal else None


def _router(path: Callable[..., Any]) -> Runnable[Any, Any]:
    """Return a router as StateGraph would hold it, with everything that it injects."""
    from langgraph.graph import StateGraph

    scratch: StateGraph[Any] = StateGraph(dict)
    scratch.add_node("source", lambda state: state)
    scratch.add_conditional_edges("source", path)
    (branch,) = scratch.branches["source"].values()
    return branch.path


__all__ = ["Destination", "GatedPath", "RecordedNode", "gate_edge", "record_node"]
