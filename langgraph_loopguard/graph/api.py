"""`guard_loop` and `guard_compiled`: one line for an existing graph."""

from __future__ import annotations

from typing import Any, cast

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from langgraph_loopguard.core.conditions import ConditionLike
from langgraph_loopguard.core.fingerprint import Fingerprinter
from langgraph_loopguard.graph.attach import attach, copy_builder
from langgraph_loopguard.graph.guard import LoopGuard, Mode, Per, Preset
from langgraph_loopguard.graph.handover import EscalationSink
from langgraph_loopguard.graph.state import Selector

Compiled = CompiledStateGraph[Any, Any, Any, Any]


def guard_loop(
    builder: StateGraph[Any, Any, Any, Any],
    *nodes: str,
    max_cycles: int | None = None,
    stop_when: ConditionLike | None = None,
    preset: Preset = "strict",
    key: Selector | None = None,
    per: Per = "thread",
    artifact: Selector | None = None,
    measure: Selector | None = None,
    escalate_to: str | None = None,
    ask_human: bool | None = None,
    mode: Mode = "enforce",
    name: str | None = None,
    queue: EscalationSink | None = None,
    fingerprinter: Fingerprinter | None = None,
) -> LoopGuard:
    """Put a guard on the edges among some nodes of a graph that is otherwise done. The builder is changed in place.

    Every edge from one of the nodes to another is guarded, however it is written: plain, conditional, `Send`,
    `Command(goto=...)`, or a handoff from an agent inside a node.

    Args:
        builder: A `StateGraph` with its nodes and edges.
        *nodes: Two or more node names; the loop's first edge is `nodes[0] -> nodes[1]`. Three or more are one ring.
        max_cycles: Cycles allowed: with 3, the fourth crossing of the first edge goes to the escalation. `None`: 3, or
            25 with a preset that looks for progress.
        stop_when: A condition (or a function of the `Ledger`) that stops the loop too.
        preset: Conditions that come with the guard (see `Preset`).
        key: What a budget belongs to: a state key or a function of the state. `None`: one budget.
        per: What renews the budget: `"thread"`, only a decision; `"turn"`, each new input too.
        artifact: The work product: a state key or a function of the state. It is the record's diff.
        measure: What is still open: a state key or a function; a number or a collection of ids.
        escalate_to: A node of yours for trips. It finds the record in its state as `escalation`, where the state is a
            dict; with a dataclass or a pydantic state, add the node with `input_schema=GuardedState`.
        ask_human: Whether the escalation stops with `interrupt()` for a decision. `None`: when there is a checkpointer.
        mode: `"observe"` writes what the guard would have done and diverts nothing.
        name: Name of the guard, for its ledger and its records. Default: the node names, joined.
        queue: Where an escalation is put when its run begins to wait (see `langgraph_loopguard.queue`).
        fingerprinter: How emissions are compared.

    Returns:
        The guard, for `guard.ledger(state)`.

    Raises:
        ValueError: A setting makes no sense, a node is unknown, or no edge joins the nodes; with parameter and value.

    Example:
        ```python
        from typing_extensions import TypedDict
        from langgraph.graph import START, StateGraph
        from langgraph_loopguard import guard_loop

        class State(TypedDict, total=False):
            review: str
            patch: str

        builder = StateGraph(State)
        builder.add_node("reviewer", lambda state: {"review": "Please handle None."})
        builder.add_node("fixer", lambda state: {"patch": "if x is None: return"})
        builder.add_edge(START, "reviewer")
        builder.add_edge("reviewer", "fixer")
        builder.add_edge("fixer", "reviewer")

        guard_loop(builder, "reviewer", "fixer", max_cycles=3)
        result = builder.compile().invoke({})
        assert result["outcome"] == "escalated"
        assert len(result["escalation"]["fixes"]) == 3
        ```
    """
    if not isinstance(builder, StateGraph):
        hint = "; for a compiled graph there is guard_compiled" if isinstance(builder, CompiledStateGraph) else ""
        msg = f"builder must be a StateGraph, got {type(builder).__name__}{hint}"
        raise TypeError(msg)
    guard = LoopGuard(
        *nodes,
        max_cycles=max_cycles,
        stop_when=stop_when,
        preset=preset,
        key=key,
        per=per,
        artifact=artifact,
        measure=measure,
        escalate_to=escalate_to,
        ask_human=ask_human,
        mode=mode,
        name=name,
        queue=queue,
        fingerprinter=fingerprinter,
    )
    attach(builder, guard)
    return guard


def guard_compiled(graph: Compiled, *nodes: str, **settings: Any) -> Compiled:
    """Return a compiled graph with a guard on it; the given one stays as it is.

    Checkpointer, store, cache, interrupts, name, transformers and what `with_config` has set are kept.

    Args:
        graph: A compiled `StateGraph`, for example an agent of `create_agent`.
        *nodes: As in `guard_loop`.
        **settings: As in `guard_loop`.

    Raises:
        TypeError: `graph` is not a compiled `StateGraph`.
        ValueError: As in `guard_loop`.
    """
    if not isinstance(graph, CompiledStateGraph):
        hint = "; for a builder there is guard_loop" if isinstance(graph, StateGraph) else ""
        msg = f"graph must be a compiled StateGraph, got {type(graph).__name__}{hint}"
        raise TypeError(msg)
    builder = copy_builder(graph.builder)
    guard_loop(builder, *nodes, **settings)
    compiled = builder.compile(
        checkpointer=graph.checkpointer,
        cache=graph.cache,
        store=graph.store,
        interrupt_before=cast("Any", graph.interrupt_before_nodes) or None,
        interrupt_after=cast("Any", graph.interrupt_after_nodes) or None,
        debug=graph.debug,
        name=graph.name,
        transformers=graph.stream_transformers or None,
    )
    for attribute in KEPT:
        setattr(compiled, attribute, getattr(graph, attribute))
    return compiled


KEPT = ("config", "step_timeout", "retry_policy", "cache_policy", "stream_mode", "stream_eager")
"""Attributes of a compiled graph that `compile` takes no argument for."""
