"""The only place that names private parts of LangGraph.

LangGraph gives each task a function that reads state (`__pregel_read`) and one that writes it (`__pregel_send`);
`interrupt()` and conditional edges stand on them. The guard's writes go the same way, so they belong to the step of
the node that they are about: they are committed with its own update, dropped when it is retried and replayed with it.
Whether there is a checkpointer is known only at run time (`__pregel_checkpointer`). What a checkpoint has still to run
stands among its values, under names that only a graph could translate otherwise.

`tests/graph/test_pregel.py` states what is relied on, so that a LangGraph that moves it fails there and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.checkpoint.serde.types import TASKS
from langgraph.constants import START
from langgraph.types import CachePolicy

BranchT = TypeVar("BranchT", bound=tuple[Any, ...])

READ = "__pregel_read"
SEND = "__pregel_send"
CHECKPOINTER = "__pregel_checkpointer"
PUSH_TRIGGER = "__pregel_push"
RUNTIME = "__pregel_runtime"
BRANCH = "branch:to:"
JOIN = "join:"
NOTE = "__loopguard_visit"
"""Key of our own, beside LangGraph's."""


def read(config: RunnableConfig, keys: Sequence[str], *, fresh: bool) -> dict[str, Any]:
    """Read channels and managed values; with `fresh`, with the writes that the present task has made so far."""
    found: dict[str, Any] = config["configurable"][READ](list(keys), fresh)
    return found


def write(config: RunnableConfig, writes: Sequence[tuple[str, Any]]) -> None:
    """Add writes to those of the present task."""
    config["configurable"][SEND](writes)


def stream(config: RunnableConfig, chunk: Any) -> None:
    """Send a chunk to the run's `custom` stream, where somebody listens to it; outside of a run nobody does."""
    writer = getattr(config["configurable"].get(RUNTIME), "stream_writer", None)
    if writer is not None:
        with set_config_context(config) as context:  # the writer asks the context which graph it is in
            context.run(writer, chunk)


def without_reader(branch: BranchT) -> BranchT:
    """Return a conditional edge that is not handed the state, because its router does not look at it.

    LangGraph copies every channel to read a state for a router; an edge that was plain before needs none.
    """
    kind: Any = type(branch)

    class Unread(kind):  # type: ignore[misc]  # LangGraph's own spec, whose module is private
        def run(self, writer: Any, reader: Any = None) -> Any:
            return super().run(writer, None)

    return cast("BranchT", Unread(*branch))


def default_cache_policy(builder: Any) -> CachePolicy[Any] | None:
    """Return the cache policy that `set_node_defaults` has set, and `compile` will give to nodes without their own."""
    found: CachePolicy[Any] | None = builder._node_defaults.cache_policy
    return found


def leave(config: RunnableConfig, note: Any) -> None:
    """Leave a note for what runs later in the same task: the steps of one task share their `configurable`.

    Should a LangGraph copy it between the steps, the note is not found and the reader falls back on `read`.
    """
    config["configurable"][NOTE] = note


def left(config: RunnableConfig) -> Any:
    """Return the note left in this task, or by an earlier attempt at it, or in the task around it; `None` if none."""
    return config["configurable"].get(NOTE)


def has_checkpointer(config: RunnableConfig) -> bool:
    """Whether the run has a checkpointer, its own or its parent's."""
    return config["configurable"].get(CHECKPOINTER) is not None


def spans_inputs(config: RunnableConfig) -> bool:
    """Whether what the present graph remembers outlives its input.

    It takes a checkpointer; and a subgraph that has none of its own (`compile(checkpointer=True)`) begins anew at each
    call: its namespace holds the id of the task around it.
    """
    *around, _ = str(config["configurable"].get("checkpoint_ns", "")).split("|")
    return has_checkpointer(config) and not any(":" in part for part in around)


def task_id(config: RunnableConfig) -> str | None:
    """Name of the present task: the same over retry, interrupt and resume, new at each visit.

    `None` where no task runs (`update_state` calls path functions outside of one).
    """
    metadata: Mapping[str, Any] = config.get("metadata") or {}
    if "langgraph_node" not in metadata:
        return None
    return metadata.get("langgraph_checkpoint_ns")


def steps_left_at_least(config: RunnableConfig) -> int:
    """Return a number of supersteps that the recursion limit leaves for certain (a resumed run may have more)."""
    return int(config.get("recursion_limit", 0) - (config.get("metadata") or {}).get("langgraph_step", 0))


def is_send(config: RunnableConfig) -> bool:
    """Whether the present task was made by a `Send`, so that its input is the `Send`'s argument and not the state."""
    return PUSH_TRIGGER in ((config.get("metadata") or {}).get("langgraph_triggers") or ())


def pending(values: Mapping[str, Any]) -> set[str]:
    """Return the nodes that a checkpoint has still to run, from its channel values; none when the run has ended."""
    nodes = {send.node for send in values.get(TASKS) or ()}
    for channel, value in values.items():
        if channel.startswith(BRANCH):
            nodes.add(channel.removeprefix(BRANCH))
        elif channel.startswith(JOIN):
            sources, _, target = channel.removeprefix(JOIN).rpartition(":")
            if isinstance(value, (set, frozenset, list)) and set(value) == set(sources.split("+")):
                nodes.add(target)
    return nodes | ({START} & values.keys())
