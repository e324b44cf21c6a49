"""Does what people have said: the update and the way on that their decisions mean.

The questions of one superstep are answered by tasks of their own, and LangGraph takes one value per state key and
superstep. So each task only writes its decision down, and one task does what all of them say, in one update.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.constants import END
from langgraph.types import Command, Overwrite, Send

from langgraph_loopguard.core.jsonable import to_jsonable
from langgraph_loopguard.graph import _pregel
from langgraph_loopguard.graph.channels import ESCALATIONS, HELD, LEDGERS, STANDING
from langgraph_loopguard.graph.gate import held_name
from langgraph_loopguard.graph.guard import LoopGuard
from langgraph_loopguard.graph.models import Decision
from langgraph_loopguard.graph.restore import KEEP, chosen_work
from langgraph_loopguard.graph.state import Shape
from langgraph_loopguard.graph.tool_calls import MESSAGES, REDUCED, answer_tool_calls

logger = logging.getLogger("langgraph_loopguard")


def written_down(
    guard: LoopGuard,
    scope: str,
    record: Mapping[str, Any],
    decision: Decision,
    tripped: Mapping[str, Any],
    shape: Shape,
    config: RunnableConfig,
) -> dict[str, Any]:
    """Return the update that writes one decision into its record and its ledger, and keeps what is left to do.

    Args:
        guard: The guard of the loop.
        scope: Name of the scope key.
        record: The escalation's record.
        decision: What the person said.
        tripped: What the ledger says of the trip.
        shape: What is known of the state.
        config: The asking task's config.
    """
    case = {"id": record["id"], "scope": scope, "source": tripped.get("source"), "to": list(tripped.get("to", ()))}
    if decision.action == "edit":
        case["artifact"] = decision.artifact  # as it was given: the record has only its JSON
    event = _event(guard, scope, record["id"], decision)
    events = [event]
    if decision.action == "retry" and decision.guidance and answer_tool_calls(shape, config, decision.guidance):
        # Where an agent waits for its tools, guidance is the answer to the tool calls, and the agent goes on: a chat
        # model takes no other message there.
        event["reenter"] = False
        case["answers"] = True
    elif decision.action == "retry":
        events += tripped.get("beside", ())
    logger.info("guard %r: %s is decided: %s", guard.name, record["edge"], decision.action)
    decided = {**record, "decision": to_jsonable(decision.model_dump())}
    return {ESCALATIONS: {record["id"]: decided}, LEDGERS: events, HELD: {_case_name(record["id"]): [case]}}


def _case_name(escalation_id: str) -> str:
    """Name under which a decision is held until it is carried out; no guard's `held_name` is like it."""
    return held_name("", escalation_id)


@dataclass(slots=True)
class Resolution:
    """What one or several decisions mean together: of two that set the same key, the later one stands."""

    shape: Shape
    config: RunnableConfig
    update: dict[str, Any] = field(default_factory=dict)
    goto: list[str | Send] = field(default_factory=list)

    def add_all(self, guards: Sequence[LoopGuard], found: Mapping[str, Any]) -> Command[Any]:
        """Return the update and the way on of all decisions that are written down.

        Args:
            guards: The guards of the graph.
            found: Its records, what is held back, and the trips that speak of this run.
        """
        held: Mapping[str, Any] = found.get(HELD) or {}
        records: Mapping[str, Any] = found.get(ESCALATIONS) or {}
        by_name = {guard.name: guard for guard in guards}
        done: dict[str, None] = {}
        retried: dict[str, None] = {}
        for name in (name for name in held if name.startswith(_case_name(""))):
            (case,) = held[name]
            record = records[case["id"]]
            sends = held_name(record["loop"], case["scope"])
            done |= {key: None for key in (name, sends) if key in held}
            if (guard := by_name.get(record["loop"])) is None:
                logger.warning("escalation %s is of guard %r, which is gone", record["id"], record["loop"])
                continue
            self._add(guard, record, case, held.get(sends) or ())
            if record["decision"]["action"] == "retry":
                retried[record["id"]] = None
        if done:
            self.update[HELD] = done
        if retried:  # the loop goes on: its trip is no longer how this run ended
            standing = [outcome for key, outcome in (found.get(STANDING) or {}).items() if key not in retried]
            self.update[STANDING] = retried
            self.update |= self.shape.shown(outcome=standing[-1] if standing else None)
        goto: list[str | Send] = []
        for way in self.goto:
            if way not in goto:
                goto.append(way)
        return Command(update=self.update, goto=goto or END)

    def _add(self, guard: LoopGuard, record: Mapping[str, Any], case: Mapping[str, Any], sends: Sequence[Send]) -> None:
        """Take one decision in.

        `retry` enters the shut edge's targets, again with what a `Send` had carried. All else ends the loop.
        """
        decision = Decision(**record["decision"])
        if decision.action == "retry":
            if "answers" in case:
                self._answer_tool_calls(decision.guidance or "")
                self.goto.append(case["source"])
                return
            sent = {send.node for send in sends}
            self.goto += [*sends, *(target for target in case["to"] if target not in sent)]
            if decision.guidance:
                self._guide(decision.guidance)
            return
        if isinstance(guard.artifact, str):
            work = chosen_work(guard.artifact, record, decision, self.shape, self.config, given=case.get("artifact"))
            if work is not KEEP:
                self._set(guard.artifact, work)
            elif decision.fix is not None:  # it is what the state holds, whatever an earlier decision has put there
                self.update.pop(guard.artifact, None)
        self._answer_tool_calls(f"the loop guard stopped the loop; a person said: {decision.action}")

    def _set(self, key: str, value: Any) -> None:
        """Set a key, whatever its reducer does."""
        holds = isinstance(self.shape.channels.get(key), REDUCED) and key in _pregel.read(
            self.config, (key,), fresh=False
        )
        # A reduced key that holds nothing yet takes its first write as it is, an `Overwrite` too.
        self.update[key] = Overwrite(value) if holds else value

    def _guide(self, guidance: str) -> None:
        """Put a person's guidance where the nodes see it: among the messages, and under the key `guidance`."""
        # PostgreSQL takes neither a lone surrogate nor a NUL in a key that is a text.
        guidance = to_jsonable(guidance).replace("\0", "\\0")
        messages = self.shape.channels.get(MESSAGES)
        if isinstance(messages, REDUCED):
            said = guidance if _items(messages.ValueType) is str else HumanMessage(guidance)
            before = self.update.get(MESSAGES, [])
            self.update[MESSAGES] = (
                Overwrite([*before.value, said]) if isinstance(before, Overwrite) else [*before, said]
            )
        if "guidance" in self.shape.keys:
            before = self.update.get("guidance")
            if _items(self.shape.channels["guidance"].ValueType) is not None:
                self.update["guidance"] = [*(before or ()), guidance]
            else:
                self.update["guidance"] = guidance if before is None else f"{before}\n\n{guidance}"

    def _answer_tool_calls(self, text: str) -> None:
        if MESSAGES not in self.update:
            self.update |= answer_tool_calls(self.shape, self.config, text)


def _event(guard: LoopGuard, scope: str, escalation_id: str, decision: Decision) -> dict[str, Any]:
    granted: dict[str, Any] = {
        "cycles": decision.extra_cycles,
        "tokens": decision.extra_tokens,
        "seconds": decision.extra_seconds,
        "usd": f"{decision.extra_usd:f}" if decision.extra_usd else None,
    }
    return {
        **guard.stamp,
        "scope": scope,
        "event": "decision",
        "id": escalation_id,
        "action": decision.action,
        "granted": {what: extra for what, extra in granted.items() if extra},
    }


def _items(typ: Any) -> Any:
    """Return what a list of this type holds, `object` when it does not say; `None` when the type is no list."""
    if get_origin(typ) is Annotated:
        return _items(get_args(typ)[0])
    return next(iter(get_args(typ)), object) if list in (typ, get_origin(typ)) else None
