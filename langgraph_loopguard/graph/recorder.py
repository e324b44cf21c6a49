"""The recorder: notes what a node wrote, beside the node's own update, which it leaves untouched.

For nodes that route by `Command` it is also the place of the gate: a node's own `goto`, or a handoff from an agent
inside it (`Command(graph=PARENT)`, an exception on its way up), is judged before LangGraph sees it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import ParentCommand
from langgraph.types import Command
from pydantic import BaseModel

from langgraph_loopguard.core.conditions import broken
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import VisitData
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import HISTORY
from langgraph_loopguard.graph.gate import ESCALATE, Destination, pass_gate, target_of
from langgraph_loopguard.graph.guard import LoopGuard, scope_name
from langgraph_loopguard.graph.state import Shape, StateView, _fields, own_keys
from langgraph_loopguard.graph.usage import UsageCounter, counting, message_tokens


@dataclasses.dataclass(slots=True)
class Recorder:
    """Records the visits of one node for all guards that watch it.

    Attributes:
        name: The node's name.
        guards: The guards that watch it.
        shape: What is known of the state; set when the guard is added to a builder.
        gated: A conditional edge of the node has the gate in it, so that visits without a `Command` are counted there.
    """

    name: str
    guards: tuple[LoopGuard, ...]
    shape: Shape | None = None
    gated: bool = True

    @contextmanager
    def visit(self, state: Any, config: RunnableConfig) -> Iterator[Visit]:
        """Record one visit: the node runs inside, and its result goes through `Visit.finish`.

        A handoff from inside the node to this graph ends the block and stands in `Visit.handoff`.
        """
        with counting() as usage:
            visit = Visit(self, state, config, usage, time.perf_counter())
            try:
                yield visit
            except ParentCommand as exc:
                command = exc.args[0]
                if not _for_this_graph(command, self.name, config):
                    raise
                visit.handoff = dataclasses.replace(command, graph=None)


@dataclasses.dataclass(slots=True)
class Visit:
    """One run of a node."""

    recorder: Recorder
    state: Any
    config: RunnableConfig
    usage: UsageCounter
    started: float
    handoff: Command[Any] | None = None

    def finish(self, result: Any) -> Any:
        """Write the emission, judge the `Command`s among the result, and return the result to hand on."""
        if self.handoff is not None:
            result = self.handoff
        update = written(result)
        entry = self._entry(update)
        _pregel.leave(self.config, {"task": entry["task"], "entry": entry, "counted": False})
        destinations = [goto for command in _commands(result) for goto in _gotos(command)]
        crossing = any(
            target_of(goto) in guard.nodes and target_of(goto) != self.recorder.name
            for guard in self.recorder.guards
            for goto in destinations
        )
        if crossing or not self.recorder.gated:
            # What a Command writes is not in the task's writes yet: the selectors must see the state with it.
            view = StateView(self.config, self.recorder.shape, self.state, update)
            denied = pass_gate(self.recorder.guards, self.recorder.name, destinations, view, self.config)
            if denied:
                result = _diverted(result, denied)
        _pregel.write(self.config, [(HISTORY, [entry])])
        return result

    def _entry(self, update: dict[str, Any]) -> dict[str, Any]:
        emission = own_keys(update)
        inputs = _fields(self.state)
        fresh = {key: _new_messages(value, inputs.get(key)) for key, value in emission.items()}
        unmoved = [key for key, value in emission.items() if key in inputs and _same(value, inputs[key])]
        seconds = round(time.perf_counter() - self.started, 6)
        tokens = self.usage.tokens or message_tokens(
            message for value in fresh.values() if isinstance(value, (list, BaseMessage)) for message in _as_list(value)
        )
        view = StateView(self.config, self.recorder.shape, self.state, update)
        entry: dict[str, Any] = {
            "node": self.recorder.name,
            "task": _pregel.task_id(self.config),
            "at": time.time(),
            "content": to_jsonable(fresh),
            "visits": {},
            "scopes": {},
        }
        for guard in self.recorder.guards:
            visit, extra = self._visit(guard, fresh, unmoved, view)
            visit["seconds"], visit["tokens"] = seconds, tokens
            entry["visits"][guard.name] = visit
            if extra:
                entry.setdefault("seen", {})[guard.name] = extra
            if (scope := self._scope(guard)) is not None:
                entry["scopes"][guard.name] = scope
        return entry

    def _visit(
        self, guard: LoopGuard, emission: Mapping[str, Any], unmoved: Sequence[str], view: StateView
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the ledger keeps of the visit, and what only the record needs."""
        where = f"the emission of {self.recorder.name!r}"
        extra: dict[str, Any] = {}
        try:
            artifact = measure = None
            if guard.artifact is not None:
                where = f"artifact={guard.artifact!r}"
                artifact = view.select(guard.artifact)
                if artifact is not None and guard.artifact not in emission:
                    extra["artifact"] = to_jsonable(artifact)
            if guard.measure is not None:
                where = f"measure={guard.measure!r}"
                measure = view.select(guard.measure)
                if measure is not None:
                    extra["measure"] = to_jsonable(measure)
            where = f"the emission of {self.recorder.name!r}"
            visit: VisitData = guard.visit(emission, unmoved=unmoved, artifact=artifact, measure=measure)
            if guard.artifact in emission:
                visit["wrote_artifact"] = True
        except Exception as error:  # a guard that breaks must not cost the run its work: the gate escalates it
            return {"keys": {}, "error": broken(error, where).to_json()}, extra
        return dict(visit), extra

    def _scope(self, guard: LoopGuard) -> Any:
        """Scope key of a task that a `Send` made: it stands in the `Send`'s argument, not in the state."""
        if guard.key is None or not _pregel.is_send(self.config):
            return None
        arg = _fields(self.state)
        if isinstance(guard.key, str):
            return to_jsonable(arg.get(guard.key))
        try:
            return to_jsonable(guard.key(self.state))
        except Exception:  # the argument is no state: the gate asks again with the state, and reports what it finds
            return None


def written(result: Any) -> dict[str, Any]:
    """Return what a node's result writes into the state, whatever form it has."""
    if isinstance(result, Command):
        if result.graph is not None or result.update is None:
            return {}
        return _pairs(result.update)
    if isinstance(result, (list, tuple)):
        out: dict[str, Any] = {}
        for item in result:
            out.update(written(item))
        return out
    return _pairs(result)


def _pairs(update: Any) -> dict[str, Any]:
    if isinstance(update, BaseModel):
        return {key: getattr(update, key) for key in type(update).model_fields if key in update.model_fields_set}
    if isinstance(update, (list, tuple)) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in update):
        return dict(update)
    return {str(key): value for key, value in _fields(update).items()}


def _commands(result: Any) -> list[Command[Any]]:
    items = result if isinstance(result, (list, tuple)) else [result]
    return [item for item in items if isinstance(item, Command) and item.graph is None]


def _gotos(command: Command[Any]) -> Sequence[Destination]:
    goto = command.goto
    return list(goto) if isinstance(goto, (list, tuple)) else [goto] if goto else []


def _diverted(result: Any, denied: frozenset[int]) -> Any:
    """Return the result with each denied destination (counted over all its commands) replaced by the escalation."""
    number = 0
    diverted = False

    def divert(item: Any) -> Any:
        nonlocal number, diverted
        if not isinstance(item, Command) or item.graph is not None:
            return item
        kept: list[Any] = []
        for goto in _gotos(item):
            if number not in denied:
                kept.append(goto)
            elif not diverted:
                kept.append(ESCALATE)
                diverted = True
            number += 1
        return dataclasses.replace(item, goto=kept)

    return [divert(item) for item in result] if isinstance(result, (list, tuple)) else divert(result)


def _for_this_graph(command: Command[Any], node: str, config: RunnableConfig) -> bool:
    """Whether a handoff from inside a node is meant for the graph that the node is in (as LangGraph decides it)."""
    namespace = str(config["configurable"].get("checkpoint_ns", ""))
    plain = "|".join(part.split(":")[0] for part in namespace.split("|") if not part.isdigit())
    numbered = "|".join(part for part in namespace.split("|") if not part.isdigit())
    return command.graph in (namespace, numbered, plain, node)


def _new_messages(value: Any, before: Any) -> Any:
    """Leave out messages that were in the state already: an agent as a node returns all of them each time."""
    if not isinstance(value, list) or not isinstance(before, list) or not before:
        return value
    if not all(isinstance(item, BaseMessage) for item in value):
        return value
    known = {message.id for message in before if isinstance(message, BaseMessage) and message.id}
    return [message for message in value if message.id is None or message.id not in known]


def _same(value: Any, before: Any) -> bool:
    if value is before:
        return True
    try:
        return bool(value == before)
    except Exception:  # arrays and frames compare element by element, or not at all: then the value has moved
        return False


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
