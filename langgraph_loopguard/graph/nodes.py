"""What a guard adds to a builder: the two escalation nodes, its channels, and its keys in the graph's output."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any, cast

from langgraph.constants import END, START
from typing_extensions import TypedDict, get_type_hints

from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import (
    GUARD_KEYS,
    LEDGERS,
    GuardChannels,
    GuardedState,
    ValueChannel,
)
from langgraph_loopguard.graph.edges import Builder
from langgraph_loopguard.graph.escalation import ASK, EscalationNode
from langgraph_loopguard.graph.gate import ESCALATE
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.handover import QueuedAskNode
from langgraph_loopguard.graph.inputs import INPUT, InputGate
from langgraph_loopguard.graph.state import PLAIN, SHOWN, Shape, is_object, without_guard_keys

typed_dict: Any = TypedDict
"""`TypedDict` as a function: the checker allows it only with literals."""

logger = logging.getLogger("langgraph_loopguard")


def guards_of(builder: Builder) -> tuple[LoopGuard, ...]:
    """Return the guards on a builder."""
    spec = builder.nodes.get(ESCALATE)
    return spec.runnable.guards if spec is not None and isinstance(spec.runnable, EscalationNode) else ()


def add_nodes(builder: Builder, guard: LoopGuard, shape: Shape) -> None:
    """Add the escalation nodes, or let those that are there serve one more guard.

    Raises:
        ValueError: A node or a key of the user's has a name that the guard needs.
    """
    known = guards_of(builder)
    guards = (*known, guard)
    if not known:
        channels = _channels_beside(builder)
        for node in (ESCALATE, ASK):
            if node in builder.nodes:
                msg = f"the node name {node!r} is the guard's own, and taken"
                raise ValueError(msg)
        builder.add_node(ESCALATE, EscalationNode(ESCALATE, guards, shape), input_schema=channels)
        builder.add_node(ASK, QueuedAskNode(ASK, guards, shape), input_schema=channels)
        _join_output(builder)
        for schema in ("state_schema", "output_schema"):
            plain = getattr(builder, schema)
            if is_object(plain) and not hasattr(plain, PLAIN):
                setattr(builder, schema, without_guard_keys(plain))
                builder.schemas[getattr(builder, schema)] = builder.schemas[plain]
    ways = {guard.escalate_to for guard in guards if guard.escalate_to is not None}
    loops = {node for guard in guards for node in guard.nodes}
    for name, kind, ends in ((ESCALATE, EscalationNode, {ASK, END} | ways), (ASK, QueuedAskNode, {END} | loops)):
        builder.nodes[name] = dataclasses.replace(
            builder.nodes[name], runnable=kind(name, guards, shape), ends=tuple(sorted(ends))
        )
    if guard.escalate_to is not None:
        _hand_record(builder, guard.escalate_to)
    builder.branches[START].pop(INPUT, None)
    builder.add_conditional_edges(START, InputGate(guards, shape, builder), {})
    builder.branches[START][INPUT] = _pregel.without_reader(builder.branches[START][INPUT])


def _channels_beside(builder: Builder) -> type[Any]:
    """Return the guard's channels, less those that the state has by `GuardedState` or as keys of the user's own."""
    foreign = [
        key
        for key in sorted(builder.channels)
        if (key in GUARD_KEYS or key.startswith(LEDGERS)) and not isinstance(builder.channels[key], ValueChannel)
    ]
    for key in foreign:
        if key not in SHOWN:
            msg = f"the state key {key!r} is the guard's own, and taken"
            raise ValueError(msg)
        logger.warning("the state key %r is yours, so the guard does not write it; mix in GuardedState to see it", key)
    taken = [key for key in SHOWN if key in builder.channels]
    if not taken:
        return GuardChannels
    hints = get_type_hints(GuardChannels, include_extras=True)
    return cast("type[Any]", typed_dict("GuardChannels", {key: hints[key] for key in hints if key not in taken}))


def _hand_record(builder: Builder, node: str) -> None:
    """Let a node of the user's find `escalation` and `outcome` in its input, for states that are dicts."""
    spec = builder.nodes[node]
    known = spec.input_schema
    if not (isinstance(known, type) and issubclass(known, dict)):
        return
    widened = _with_shown(builder, known)
    if widened is not None:
        builder.nodes[node] = dataclasses.replace(spec, input_schema=widened)


def _join_output(builder: Builder) -> None:
    """Let `escalation` and `outcome` stand in what `invoke` returns, for states that are dicts."""
    output = builder.output_schema
    if not (isinstance(output, type) and issubclass(output, dict)):
        return
    joined = _with_shown(builder, output)
    if joined is not None:
        builder.output_schema = joined


def _with_shown(builder: Builder, known: type[Any]) -> type[Any] | None:
    """Return a dict class that has the guard's `escalation` and `outcome` too; `None` when there is none to add."""
    schema = builder.schemas[known]
    missing = [key for key in SHOWN if key not in schema and isinstance(builder.channels[key], ValueChannel)]
    if not missing:
        return None
    hints = get_type_hints(known, include_extras=True)
    extra = get_type_hints(GuardedState, include_extras=True)
    joined = typed_dict(known.__name__, {**hints, **{key: extra[key] for key in missing}}, total=False)
    builder.schemas[joined] = {**schema, **{key: builder.channels[key] for key in missing}}
    return cast("type[Any]", joined)
