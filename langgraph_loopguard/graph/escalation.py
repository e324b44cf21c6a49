"""The two nodes behind a shut edge: one writes the record into state, the next one asks a person.

They are two because a node that interrupts runs again from its start when it is resumed. Each record is asked for by a
task of its own, so that several trips of one superstep have several questions, each answered by its own id.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.channels import BinaryOperatorAggregate, DeltaChannel
from langgraph.constants import END
from langgraph.types import Command, Overwrite, Send, interrupt

from langgraph_loopguard.core.errors import EscalationError
from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.core.ledger import Ledger
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import ESCALATION, ESCALATIONS, HELD, HISTORY, LEDGERS
from langgraph_loopguard.graph.decision import answer_schema, hitl_request
from langgraph_loopguard.graph.gate import held_name
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.models import Decision
from langgraph_loopguard.graph.record import build_escalation
from langgraph_loopguard.graph.state import Shape

ASK = "loopguard_ask"
"""Name of the node that asks a person."""

MESSAGES = "messages"

logger = logging.getLogger("langgraph_loopguard")


class _GuardNode(Runnable[Any, Any]):
    """A node that serves all guards of one builder."""

    def __init__(self, name: str, guards: tuple[LoopGuard, ...], shape: Shape) -> None:
        self.name = name
        self.guards = guards
        self.shape = shape

    def guard(self, name: str) -> LoopGuard | None:
        """The guard of a name; `None` for one that this graph does not have (an older version of it had)."""
        return next((guard for guard in self.guards if guard.name == name), None)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The same as `invoke`: there is nothing to wait for."""
        if config is None:
            return self.invoke(input, config, **kwargs)
        # Before Python 3.11 a task has no context of its own, and `interrupt` would find no config.
        with set_config_context(config) as context:
            return context.run(self.invoke, input, config, **kwargs)


class EscalationNode(_GuardNode):
    """Writes a record for every trip that has none yet, and sends each one on."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Return the records and where they go."""
        if config is None:
            msg = "the escalation node runs in a graph only"
            raise ValueError(msg)
        found = _pregel.read(config, (LEDGERS, HISTORY, ESCALATIONS), fresh=False)
        known: Mapping[str, Any] = found.get(ESCALATIONS) or {}
        records: dict[str, dict[str, Any]] = {}
        events: list[dict[str, Any]] = []
        goto: list[str | Send] = []
        for guard in self.guards:
            for scope, data in (found.get(LEDGERS) or {}).get(guard.name, {}).items():
                trip = data.get("tripped")
                if trip is None:
                    continue
                new = trip.get("id") not in known
                if new:
                    record = build_escalation(guard, scope, Ledger(data), found.get(HISTORY), config)
                    records[record["id"]] = record
                    events.append({**guard.stamp, "event": "recorded", "scope": scope, "id": record["id"]})
                else:
                    record = known[trip["id"]]
                way = self._way_on(guard, scope, record, config, new=new)
                if way is not None and way not in goto:
                    goto.append(way)
        update: dict[str, Any] = {}
        if records:
            last = list(records.values())[-1]
            update = {LEDGERS: events, ESCALATIONS: records, **self.shape.shown(last)}
        if not goto:
            update |= _answer_tool_calls(self.shape, config, "the loop guard stopped the loop")
        return Command(update=update, goto=goto or END)

    def _way_on(
        self, guard: LoopGuard, scope: str, record: dict[str, Any], config: RunnableConfig, *, new: bool
    ) -> str | Send | None:
        message = f"guard {guard.name!r} stopped {record['edge']}: {record['reason']['message']}"
        if guard.escalate_to is not None:
            logger.warning("%s", message)
            # A second try at a shut edge ends the run: the user's own node has had the record once.
            return guard.escalate_to if new else None
        waits = _pregel.has_checkpointer(config)
        if guard.ask_human and not waits:
            advice = "ask_human=True needs a checkpointer: compile(checkpointer=...); the record is in error.escalation"
            raise EscalationError(f"{message}. {advice}", record)
        if guard.ask_human is False or not waits:
            logger.warning("%s; the run ends here, the record is in state['escalation']", message)
            return None
        logger.warning("%s; a person is asked", message)
        return Send(ASK, {"id": record["id"], "scope": scope})


class AskNode(_GuardNode):
    """Asks a person about one escalation and does what they say."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Wait for the decision; return its update and where the run goes on."""
        if config is None:
            msg = "the asking node runs in a graph only"
            raise ValueError(msg)
        found = _pregel.read(config, (LEDGERS, ESCALATIONS, HELD), fresh=False)
        record = (found.get(ESCALATIONS) or {}).get(input["id"])
        if record is None or record["decision"] is not None:
            return None
        guard = self.guard(record["loop"])
        if guard is None:
            logger.warning("escalation %s is of guard %r, which the graph has no longer", record["id"], record["loop"])
            return None
        decision: Decision = interrupt(hitl_request(record), response_schema=answer_schema(record))
        scope = input["scope"]
        held = (found.get(HELD) or {}).get(held_name(guard.name, scope)) or []
        tripped = ((found.get(LEDGERS) or {}).get(guard.name, {}).get(scope) or {}).get("tripped") or {}
        return decide(guard, scope, record, decision, self.shape, config, tripped=tripped, held=held)


def decide(
    guard: LoopGuard,
    scope: str,
    record: Mapping[str, Any],
    decision: Decision,
    shape: Shape,
    config: RunnableConfig,
    *,
    tripped: Mapping[str, Any],
    held: Sequence[Send],
) -> Command[Any]:
    """Return the update and the way on that a decision means.

    `retry` enters the shut edge's targets, again with what a `Send` had carried. Where an agent waits for its tools,
    guidance is the answer to the tool calls, and the agent goes on: a chat model takes no other message there. All
    else ends the loop.
    """
    decided = {**record, "decision": to_jsonable(decision.model_dump())}
    event = {
        **guard.stamp,
        "scope": scope,
        "event": "decision",
        "id": record["id"],
        "action": decision.action,
        "granted": {
            what: extra
            for what, extra in (
                ("cycles", decision.extra_cycles),
                ("tokens", decision.extra_tokens),
                ("seconds", decision.extra_seconds),
            )
            if extra
        },
    }
    update: dict[str, Any] = {ESCALATIONS: {record["id"]: decided}, LEDGERS: [event]}
    if ESCALATION in (shown := shape.shown(decided)):
        update[ESCALATION] = shown[ESCALATION]
    if held:
        update[HELD] = {held_name(guard.name, scope): None}
    logger.info("guard %r: %s is decided: %s", guard.name, record["edge"], decision.action)
    if decision.action == "retry":
        if decision.guidance and (answers := _answer_tool_calls(shape, config, decision.guidance)):
            event["reenter"] = False
            return Command(update=update | answers, goto=tripped.get("source", END))
        update[LEDGERS] = [event, *tripped.get("beside", ())]
        sent = {send.node for send in held}
        targets = [target for target in tripped.get("to", ()) if target not in sent]
        return Command(update=update | _guidance(shape, decision.guidance), goto=[*held, *targets])
    if isinstance(guard.artifact, str):
        if decision.action == "edit":
            update[guard.artifact] = _replacement(shape, guard.artifact, decision.artifact)
        elif decision.fix is not None:
            fix = record["fixes"][decision.fix - 1]
            chosen = fix["content"].get(guard.artifact, fix.get("artifact"))
            if chosen is not None:
                update[guard.artifact] = _replacement(shape, guard.artifact, chosen)
    update |= _answer_tool_calls(shape, config, f"the loop guard stopped the loop; a person said: {decision.action}")
    return Command(update=update, goto=END)


def _replacement(shape: Shape, key: str, value: Any) -> Any:
    """Return a write that sets a key, whatever its reducer does."""
    if isinstance(shape.channels.get(key), (BinaryOperatorAggregate, DeltaChannel)):
        return Overwrite(value)
    return value


def _guidance(shape: Shape, guidance: str | None) -> dict[str, Any]:
    """Put a person's guidance where the nodes see it: among the messages, and under the key `guidance`."""
    if not guidance:
        return {}
    # PostgreSQL takes neither a lone surrogate nor a NUL in a key that is a text.
    guidance = to_jsonable(guidance).replace("\0", "\\0")
    out: dict[str, Any] = {}
    messages = shape.channels.get(MESSAGES)
    if isinstance(messages, (BinaryOperatorAggregate, DeltaChannel)):
        out[MESSAGES] = [guidance if _items(messages.ValueType) is str else HumanMessage(guidance)]
    if "guidance" in shape.keys:
        out["guidance"] = guidance if _items(shape.channels["guidance"].ValueType) is None else [guidance]
    return out


def _items(typ: Any) -> Any:
    """Return what a list of this type holds, `object` when it does not say; `None` when the type is no list."""
    if get_origin(typ) is Annotated:
        return _items(get_args(typ)[0])
    return next(iter(get_args(typ)), object) if list in (typ, get_origin(typ)) else None


def _answer_tool_calls(shape: Shape, config: RunnableConfig, text: str) -> dict[str, Any]:
    """Answer the tool calls that a shut edge left open: a chat model refuses a thread with open ones."""
    if not isinstance(shape.channels.get(MESSAGES), (BinaryOperatorAggregate, DeltaChannel)):
        return {}
    messages = _pregel.read(config, (MESSAGES,), fresh=False).get(MESSAGES)
    if not isinstance(messages, list):
        return {}
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    last = next((message for message in reversed(messages) if isinstance(message, AIMessage)), None)
    calls = last.tool_calls if last is not None else []
    answers = [
        ToolMessage(f"Not run: {text}.", tool_call_id=call["id"], name=call["name"], status="error")
        for call in calls
        if call["id"] not in answered
    ]
    return {MESSAGES: answers} if answers else {}
