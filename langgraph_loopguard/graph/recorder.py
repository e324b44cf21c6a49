"""The recorder: notes what a node wrote, beside the node's own update, which it leaves untouched.

For nodes that route by `Command` it is also the place of the gate: a node's own `goto`, or a handoff from an agent
inside it (`Command(graph=PARENT)`, an exception on its way up), is judged before LangGraph sees it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import ParentCommand
from langgraph.types import Command
from pydantic import BaseModel

from langgraph_loopguard.core.conditions import broken
from langgraph_loopguard.core.cost import Call, cost_of
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import GUARD_KEYS, HISTORY, LEDGERS
from langgraph_loopguard.graph.gate import ESCALATE, Destination, new_note, pass_gate, target_of
from langgraph_loopguard.graph.guard import LoopGuard, notes_in, scope_name
from langgraph_loopguard.graph.state import Selector, Shape, StateView, _fields
from langgraph_loopguard.graph.usage import calls_of, start_counting, stop_counting


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


class Visit:
    """One run of a node: the node runs inside `with visit:`, its result goes through `visit.finish(result)`.

    A handoff from inside the node to this graph ends the block; `finish` judges it and sends it on.
    """

    __slots__ = ("_config", "_recorder", "_started", "_state", "_token", "_usage", "handoff")

    def __init__(self, recorder: Recorder, state: Any, config: RunnableConfig) -> None:
        self._recorder = recorder
        self._state = state
        self._config = config
        self.handoff: Command[Any] | None = None

    def __enter__(self) -> None:
        self._usage, self._token = start_counting()
        self._started = time.perf_counter()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        stop_counting(self._token)
        if not isinstance(error, ParentCommand):
            return False
        if not _for_this_graph(error.args[0], self._recorder.name, self._config):
            return False
        self.handoff = error.args[0]
        return True

    def finish(self, result: Any) -> Any:
        """Write the emission, judge the `Command`s among the result, and return the result to hand on."""
        recorder, config = self._recorder, self._config
        handoff = self.handoff
        if handoff is not None:
            result = dataclasses.replace(handoff, graph=None)
        update = result if type(result) is dict else written(result)
        view = StateView(config, recorder.shape, self._state, update)
        entry = self._entry(update, view)
        _pregel.leave(config, new_note(entry["task"], entry))
        commands = () if update is result else _commands(result)
        destinations = [goto for command in commands for goto in _gotos(command)]
        crossing = destinations and any(
            target_of(goto) in guard.nodes and target_of(goto) != recorder.name
            for guard in recorder.guards
            for goto in destinations
        )
        if crossing or not recorder.gated:
            # What a Command writes is not in the task's writes yet: the view shows the state with it.
            watches = [(guard, recorder.name) for guard in recorder.guards]
            denied = pass_gate(watches, destinations, view, config, last=not recorder.gated)
            if denied:
                result = _diverted(result, denied)
        _pregel.write(config, [(HISTORY, [entry])])
        if handoff is not None:
            # On its way again, as LangGraph sent it: what it streams and traces for a handoff stays as it was.
            raise ParentCommand(dataclasses.replace(result, graph=handoff.graph))
        return result

    def _entry(self, update: Mapping[str, Any], view: StateView) -> dict[str, Any]:
        inputs = self._state if isinstance(self._state, dict) else _fields(self._state)
        emission: dict[str, Any] = {}
        unmoved: list[str] = []
        told: list[Call] = []
        shape = self._recorder.shape
        for key, value in update.items():
            if key in GUARD_KEYS and (shape is None or shape.is_guards(key)):
                continue
            if key in inputs:
                before = inputs[key]
                if _same(value, before):
                    unmoved.append(key)
                if type(value) is list:
                    value = _new_messages(value, before)
            if isinstance(value, (list, BaseMessage)):
                told += calls_of(_as_list(value))
            emission[key] = value
        seconds = round(time.perf_counter() - self._started, 6)
        calls = self._usage.calls if self._usage.tokens else told
        visits: dict[str, Any] = {}
        entry: dict[str, Any] = {
            "node": self._recorder.name,
            "task": _pregel.task_id(self._config),
            "at": time.time(),
            "content": to_jsonable(emission),
            "visits": visits,
        }
        for guard in self._recorder.guards:
            visit, extra = self._visit(guard, emission, unmoved, view, calls)
            visit["seconds"], visit["tokens"] = seconds, sum(call.tokens for call in calls)
            visits[guard.name] = visit
            if extra:
                entry.setdefault("seen", {})[guard.name] = extra
            if guard.key is not None and (scope := self._scope(guard.key, view)) is not None:
                entry.setdefault("scopes", {})[guard.name] = scope
        return entry

    def _visit(
        self,
        guard: LoopGuard,
        emission: Mapping[str, Any],
        unmoved: Sequence[str],
        view: StateView,
        calls: Sequence[Call],
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the ledger keeps of the visit, and what only the record needs."""
        where, extra = "", {}
        try:
            artifact = measure = None
            if guard.artifact is not None:
                where = f"artifact={guard.artifact!r}"
                artifact = view.select(guard.artifact)
                if artifact is not None and not _emitted(guard.artifact, artifact, emission):
                    extra["artifact"] = to_jsonable(artifact)
            if guard.measure is not None:
                where = f"measure={guard.measure!r}"
                measure = view.select(guard.measure)
                if measure is not None:
                    extra["measure"] = to_jsonable(measure)
            where = ""
            visit: Any = guard.visit(
                self._recorder.name,
                emission,
                unmoved=unmoved,
                artifact=artifact,
                measure=measure,
                select=view.select,
                earlier=lambda reader: notes_in(self._ledgers(guard), reader),
            )
            if guard.condition.needs_cost and calls:
                where = "the price of the model calls"
                visit["usd"], visit["unpriced"] = cost_of(calls)
            if guard.artifact in emission:
                visit["wrote_artifact"] = True
        except Exception as error:  # a guard that breaks must not cost the run its work: the gate escalates it
            where = where or f"the emission of {self._recorder.name!r}"
            return {"keys": {}, "error": broken(error, where).to_json()}, extra
        return visit, extra

    def _ledgers(self, guard: LoopGuard) -> list[Mapping[str, Any]]:
        """The guard's ledgers of all scope keys, as they stood before this step."""
        found = _pregel.read(self._config, (LEDGERS,), fresh=False).get(LEDGERS) or {}
        return list(found.get(guard.name, {}).values())

    def _scope(self, selector: Selector, view: StateView) -> Any:
        """Scope key that the visit belongs to: of a task that a `Send` made, it stands in the `Send`'s argument."""
        try:
            arg = _fields(self._state) if _pregel.is_send(self._config) else None
            key = view.select(selector, arg)
            scope_name(key)  # one without a form of its own is the gate's to refuse
            return to_jsonable(key)
        except Exception:  # the gate asks again, and reports what it finds
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
    goto: Any = command.goto
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


def _emitted(selector: Selector, artifact: Any, emission: Mapping[str, Any]) -> bool:
    """Whether what a node wrote is the whole work product: a reducer may have made more of it."""
    return isinstance(selector, str) and selector in emission and _same(artifact, emission[selector])


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
